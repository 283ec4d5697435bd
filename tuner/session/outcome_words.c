/* What models that may be stale bring, in words that a terminal and a report share. */
#include <math.h>

#include "base/text.h"
#include "base/units.h"
#include "tuner/session/outcome.h"

struct words {
    struct outcome_line *lines;
    size_t n, at; /* at: where the last line ends */
};

static void begin(struct words *w, bool listed) {
    w->lines[w->n++] = (struct outcome_line){.listed = listed};
    w->at = 0;
}

/* Add to the last line. */
static void say(struct words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct words *w, const char *format, ...) {
    struct outcome_line *line = &w->lines[w->n - 1];
    va_list arguments;
    va_start(arguments, format);
    w->at += text_vformat(line->text + w->at, sizeof line->text - w->at, format, arguments);
    va_end(arguments);
}

static void say_interval(struct words *w, const struct outcome_ratio *r) {
    if (isnan(r->low))
        say(w, " (one round)");
    else
        say(w, " (%.2f .. %.2f, %zu rounds each)", r->low, r->high, r->n);
}

static void say_rounds(struct words *w, const struct outcome *o) {
    const struct outcome_stale *s = &o->stale;
    const struct outcome_row *stale = &o->rows[s->best];
    char round[32];
    begin(w, false);
    say(w, "Where models may be stale by %lu, %s is the fastest: %s a round of updates", (unsigned long)s->allowed,
        stale->name, units_format_time(stale->us, round, sizeof round));
    if (!isnan(s->speedup.mean)) {
        say(w, ", %.2fx as fast as %s", s->speedup.mean, o->rows[o->best].name);
        say_interval(w, &s->speedup);
    }
    say(w, ".");
    if (isnan(s->delay_mean))
        return;
    begin(w, false);
    say(w, "Delays of its updates: mean %.2f, variance %.2f, largest %.0f; %.1f%% were dropped.", s->delay_mean,
        s->delay_variance, s->delay_largest, s->dropped * 100);
}

/* When the target was reached, and the loss at the end. `by` is the strategy by whose iterations the time is computed,
 * NULL where it was measured. */
static void say_learner(struct words *w, const struct outcome_learning *l, double updates, const char *name,
                        const char *by) {
    char time[32];
    begin(w, true);
    say(w, "%s: ", name);
    if (l->reached)
        say(w, "after %.0f updates, in %s", l->updates, units_format_time(l->us, time, sizeof time));
    else
        say(w, "not reached");
    if (l->reached && by)
        say(w, " computed from the mean iteration of %s", by);
    if (l->reached > 0 && l->reached < l->trials)
        say(w, " (%zu of %zu trials reached it)", l->reached, l->trials);
    if (isnan(l->last))
        say(w, "; its training went astray");
    else
        say(w, "; %.4g after %.0f", l->last, updates);
}

/* Who is sooner at the target, as far as trials can tell. */
static void say_gain(struct words *w, const struct outcome *o) {
    const struct outcome_ratio *gain = &o->stale.gain;
    begin(w, false);
    if (isnan(gain->mean)) {
        say(w, "In no round did both reach that loss, so neither can be said to be sooner there.");
        return;
    }
    say(w, "To that loss %s is %.2fx as fast as %s", o->rows[o->stale.best].name, gain->mean, o->rows[o->best].name);
    say_interval(w, gain);
    say(w, "%s.",
        isnan(gain->low)                  ? ": not confirmed"
        : gain->low > 1 || gain->high < 1 ? ""
                                          : ": no measurable difference");
}

static void say_training(struct words *w, const struct outcome *o) {
    const struct outcome_stale *s = &o->stale;
    begin(w, false);
    say(w,
        "Its workers learned softmax regression, a small convex task and not this model, at rate %.3g with momentum "
        "%.3g.",
        s->rate, s->momentum);
    begin(w, false);
    say(w, "From a loss of %.4g to %.4g, the least being %.4g:", s->first, s->target, s->least);
    say_learner(w, &s->learning, s->updates, o->rows[s->best].name, NULL);
    if (s->in_step.trials > 0) {
        say_learner(w, &s->in_step, s->updates, "synchronous training", o->rows[o->best].name);
        say_gain(w, o);
    }
}

const char *outcome_fastest_words(const struct outcome *o) {
    return o->stale.best == SIZE_MAX ? "the fastest" : "the fastest synchronous strategy";
}

size_t outcome_stale_words(const struct outcome *o, struct outcome_line out[OUTCOME_LINES]) {
    struct words w = {.lines = out};
    if (!o->stale.allowed || o->best == SIZE_MAX)
        return 0;
    if (o->stale.best == SIZE_MAX) {
        begin(&w, false);
        say(&w, "No trial with stale models has completed.");
        return w.n;
    }
    say_rounds(&w, o);
    if (!isnan(o->stale.target))
        say_training(&w, o);
    begin(&w, false);
    say(&w, "What it computes is not what synchronous training computes: see that your model learns with it.");
    return w.n;
}
