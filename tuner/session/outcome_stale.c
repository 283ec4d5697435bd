/* What strategies whose models may be stale did, beside the session's best: how fast their rounds are, how old their
 * models, and how soon workers learn with them.
 *
 * The sum of an iteration's gradients is the same by whatever synchronous strategy it is made. So one run of
 * synchronous training as updates says after how many iterations the loss is at the target, and the best strategy's own
 * trials, in which nothing is learned, say how long these take. Rounds of the final are compared one by one: the three
 * met the same weather and drew the same batches. */
#include <math.h>

#include "tuner/session/outcome.h"
#include "tuner/session/outcome_internal.h"
#include "tuner/session/trials.h"

/* The shortest rounds of those in the final, or of all when none was. */
static size_t find(const struct outcome *o, bool in_step) {
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < o->n_rows; i++) {
        const struct outcome_row *row = &o->rows[i], *before = best == SIZE_MAX ? NULL : &o->rows[best];
        if (!(in_step ? row->in_step : row->stale) || !row->measured.n)
            continue;
        if (!before || row->final > before->final || (row->final == before->final && row->us < before->us))
            best = i;
    }
    return best;
}

/* Of a row's trials that measure it: each round of the final, or else the first trial. */
struct figures {
    size_t n;
    double delay_mean, delay_variance, delay_largest, dropped;
    struct trial_figures last; /* whose options and target are those of all */
    struct outcome_learning learning;
};

static void add(struct figures *f, const struct trial_figures *t) {
    struct outcome_learning *l = &f->learning;
    f->n++;
    f->delay_mean += t->delay_mean;
    f->delay_variance += t->delay_variance;
    f->delay_largest = fmax(f->delay_largest, t->delay_largest);
    f->dropped += t->dropped_share;
    f->last = *t;
    l->trials++;
    l->last += t->last;
    if (isnan(t->reached_update))
        return;
    l->reached++;
    l->updates += t->reached_update;
    l->us += t->reached_us;
}

static struct figures figures_of(const struct outcome *o, size_t row) {
    struct figures f = {0};
    struct trial_figures trial;
    for (uint64_t round = o->rows[row].final; round <= outcome_last_round(o); round++) {
        const struct record *record = outcome_trial(o, row, round);
        if (record && trial_figures_read(record, &trial))
            add(&f, &trial);
        if (!round)
            break;
    }
    struct outcome_learning *l = &f.learning;
    l->last = l->trials ? l->last / (double)l->trials : NAN;
    l->updates = l->reached ? l->updates / (double)l->reached : NAN;
    l->us = l->reached ? l->us / (double)l->reached : NAN;
    return f;
}

/* How long the best strategy takes, in this round, to the target that synchronous training reached in it, over the time
 * that the stale one took; NaN where one of the three is missing. */
static double gain_in(const struct outcome *o, size_t in_step, uint64_t round, uint32_t n_workers) {
    struct trial_figures together, stale;
    const struct record *best = outcome_trial(o, o->best, round), *x = outcome_trial(o, in_step, round),
                        *y = outcome_trial(o, o->stale.best, round);
    if (!best || !x || !y || !trial_figures_read(x, &together) || !trial_figures_read(y, &stale))
        return NAN;
    return together.reached_update / n_workers * best->mean_us / stale.reached_us;
}

static struct outcome_ratio gain_of(const struct outcome *o, size_t in_step, uint32_t n_workers) {
    const uint64_t last = outcome_last_round(o);
    double sum = 0, squares = 0;
    size_t n = 0;
    for (uint64_t round = last > 0; round <= last; round++) {
        const double gain = log(gain_in(o, in_step, round, n_workers));
        if (!isfinite(gain))
            continue;
        sum += gain;
        squares += gain * gain;
        n++;
    }
    return outcome_ratio_of_logs(n, sum, squares);
}

static void compare_learning(struct outcome *o, size_t in_step, uint32_t n_workers) {
    struct outcome_stale *s = &o->stale;
    s->in_step = figures_of(o, in_step).learning;
    s->in_step.us = s->in_step.updates / n_workers * o->rows[o->best].measured.mean_us;
    s->gain = gain_of(o, in_step, n_workers);
}

void outcome_find_stale(struct outcome *o, uint32_t n_workers) {
    struct outcome_stale *s = &o->stale;
    const size_t in_step = find(o, true);
    s->best = find(o, false);
    if (s->best == SIZE_MAX)
        return;
    const struct figures f = figures_of(o, s->best);
    s->learning = f.learning;
    if (f.n > 0) {
        s->delay_mean = f.delay_mean / (double)f.n;
        s->delay_variance = f.delay_variance / (double)f.n;
        s->delay_largest = f.delay_largest;
        s->dropped = f.dropped / (double)f.n;
        s->rate = f.last.rate;
        s->momentum = f.last.momentum;
        s->first = f.last.first;
        s->least = f.last.least;
        s->target = f.last.target;
        s->updates = f.last.updates;
    }
    if (o->best == SIZE_MAX)
        return;
    s->speedup = outcome_compare(o, o->best, s->best);
    if (in_step != SIZE_MAX)
        compare_learning(o, in_step, n_workers);
}
