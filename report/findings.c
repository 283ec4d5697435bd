/* Figures come from the outcome. Only timelines are simulated here, with the two factors of the simulator fitted to
 * what the session measured. A strategy that cannot be simulated any more is left out. */
#include "report/findings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/describe.h"
#include "report/lanes.h"
#include "simulator/bound.h"
#include "tuner/search/importance.h"
#include "tuner/session/session_options.h"

enum {
    FIT_MOST = 12, /* strategies to correct the simulator by, beside the best two; more change little */
    COMPARED_NODES = 2
};
static const double FIT_WORK = 1e4;

static bool is_fatal(enum status st) {
    return st && !outcome_leaves_out(st);
}

/* ---- reading ---- */

/* Its options, and the runner of its trials: from these, or else from its first trial. */
static enum status read_options(struct findings *f, struct error *err) {
    const struct outcome *o = &f->outcome;
    enum status st = session_options_read(&o->session, &f->arena, &f->options, err);
    if (!st)
        f->runner = f->options.launch.runner ? f->options.launch.runner : o->n_trials ? o->trials[0].runner : NULL;
    return st;
}

static enum status read_session(struct findings *f, struct store *store, const char *session, unsigned parts,
                                struct error *err) {
    struct stored_session stored;
    enum status st = store_session_get(store, session, &f->arena, &stored, err);
    if (!st)
        st = store_get_model(store, stored.model, &f->model, err);
    if (!st)
        st = store_get_cluster(store, stored.cluster, &f->cluster, err);
    if (!st)
        st = outcome_gather(store, session, &f->model, &f->cluster, parts, &f->outcome, err);
    return st ? st : read_options(f, err);
}

/* ---- what must be simulated ---- */

/* Which row is fitted to next: the best, the best baseline, then others spread over the session; SIZE_MAX after the
 * last. */
static size_t fitted_row(const struct findings *f, size_t k) {
    const size_t step = f->outcome.n_rows / FIT_MOST + 1;
    if (k < 2)
        return k ? f->outcome.baseline : f->outcome.best;
    return (k - 2) * step < f->outcome.n_rows ? (k - 2) * step : SIZE_MAX;
}

/* The cost of a prediction, roughly. */
static double work_of(const struct plan *plan, const struct cost *cost) {
    return plan->n_messages * (plan->any_server ? (double)cost->n_workers : 1);
}

static bool is_fitted_to(const struct findings *f, size_t k) {
    const size_t row = fitted_row(f, k);
    return row != SIZE_MAX && f->outcome.rows[row].measured.n && !outcome_row_is_of_updates(&f->outcome.rows[row]) &&
           (k < 2 || (row != f->outcome.best && row != f->outcome.baseline)) &&
           (k != 1 || f->outcome.baseline != f->outcome.best);
}

/* Fit the simulator's two factors to some strategies, as many as FIT_WORK allows and the best in any case. */
static enum status correct(struct findings *f, struct store *store, struct predictor *p, struct error *err) {
    struct strategy strategies[FIT_MOST + 3];
    struct measured measured[FIT_MOST + 3];
    enum status st = ST_OK;
    double work = 0;
    size_t n = 0;
    for (size_t k = 0; k < FIT_MOST + 3 && (!n || work < FIT_WORK) && !is_fatal(st); k++) {
        if (!is_fitted_to(f, k))
            continue;
        const struct outcome_row *row = &f->outcome.rows[fitted_row(f, k)];
        st = store_get_strategy(store, row->strategy, &f->model, &f->cluster, &strategies[n], err);
        if (st)
            continue;
        st = plan_relower(&p->plan, &f->model, &f->cluster, &strategies[n], err);
        if (st) {
            strategy_release(&strategies[n]);
            continue;
        }
        if (!consistency_is_plain(&strategies[n].consistency)) { /* whose updates no factor is fitted to */
            strategy_release(&strategies[n]);
            continue;
        }
        work += work_of(&p->plan, &p->cost);
        measured[n] = (struct measured){.strategy = &strategies[n], .us = row->us};
        n++;
    }
    if (!is_fatal(st))
        st = predictor_fit(p, n, measured, err);
    for (size_t i = 0; i < n; i++)
        strategy_release(&strategies[i]);
    return is_fatal(st) ? st : ST_OK;
}

/* What was predicted of its updates, beside what its trials measured. */
static enum status add_delays(struct findings *f, struct predictor *p, const struct strategy *strategy, size_t row,
                              struct error *err) {
    struct delays *delays = &f->delays[f->n_delays];
    if (consistency_is_plain(&strategy->consistency))
        return ST_OK;
    *delays = (struct delays){.name = f->outcome.rows[row].name};
    enum status st = delays_predict(p, strategy, &delays->predicted, err);
    if (st)
        return is_fatal(st) ? st : ST_OK;
    for (size_t i = 0; i < f->outcome.n_trials; i++)
        if (!strcmp(f->outcome.trials[i].strategy, f->outcome.rows[row].strategy))
            delays->trials += delays_add_record(&f->outcome.trials[i], &delays->measured);
    f->n_delays++;
    return ST_OK;
}

static enum status add_timeline(struct findings *f, struct store *store, struct predictor *p, size_t row,
                                struct error *err) {
    struct strategy *strategy = &f->strategies[f->n_timelines];
    enum status st = store_get_strategy(store, f->outcome.rows[row].strategy, &f->model, &f->cluster, strategy, err);
    if (st)
        return is_fatal(st) ? st : ST_OK;
    const size_t nodes =
        f->outcome.baseline != SIZE_MAX && f->outcome.baseline != f->outcome.best ? COMPARED_NODES : LANES_NODES;
    st = lanes_of(p, strategy, nodes, &f->arena, &f->timelines[f->n_timelines], err);
    if (st)
        strategy_release(strategy);
    else
        f->timelines[f->n_timelines++].name = f->outcome.rows[row].name;
    if (!st)
        st = add_delays(f, p, strategy, row, err);
    return is_fatal(st) ? st : ST_OK;
}

/* Of the fastest strategy whose models may be stale. */
static enum status add_stale(struct findings *f, struct store *store, struct predictor *p, struct error *err) {
    const size_t row = f->outcome.stale.best;
    struct strategy strategy;
    enum status st = store_get_strategy(store, f->outcome.rows[row].strategy, &f->model, &f->cluster, &strategy, err);
    if (st)
        return is_fatal(st) ? st : ST_OK;
    st = lanes_of(p, &strategy, LANES_NODES, &f->arena, &f->stale, err);
    if (!st) {
        f->has_stale = true;
        f->stale.name = f->outcome.rows[row].name;
        st = add_delays(f, p, &strategy, row, err);
    }
    strategy_release(&strategy);
    return is_fatal(st) ? st : ST_OK;
}

static enum status simulate(struct findings *f, struct store *store, struct error *err) {
    const uint64_t weather = f->outcome.weather.seed;
    struct predictor p;
    enum status st = weather ? predictor_init_in_weather(&p, &f->model, &f->cluster, weather, err)
                             : predictor_init(&p, &f->model, &f->cluster, err);
    if (st)
        return is_fatal(st) ? st : ST_OK;
    if (f->outcome.best != SIZE_MAX && !weather)
        st = correct(f, store, &p, err);
    f->correction = p.correction;
    if (!st && f->outcome.baseline != SIZE_MAX && f->outcome.baseline != f->outcome.best)
        st = add_timeline(f, store, &p, f->outcome.baseline, err);
    if (!st && f->outcome.best != SIZE_MAX)
        st = add_timeline(f, store, &p, f->outcome.best, err);
    if (!st && f->outcome.stale.best != SIZE_MAX)
        st = add_stale(f, store, &p, err);
    predictor_release(&p);
    return st;
}

/* ---- all of it ---- */

enum status findings_gather(struct store *store, const char *session, enum findings_depth depth, struct findings *out,
                            struct error *err) {
    struct findings f = {.correction = {1, 1}};
    enum status st =
        read_session(&f, store, session, depth == FINDINGS_ALL ? OUTCOME_IMPORTANCE | OUTCOME_WEATHER : 0, err);
    if (!st && depth == FINDINGS_ALL)
        st = simulate(&f, store, err);
    if (st)
        findings_release(&f);
    else
        *out = f;
    return st;
}

void findings_release(struct findings *f) {
    for (size_t i = 0; i < f->n_timelines; i++)
        strategy_release(&f->strategies[i]);
    outcome_release(&f->outcome);
    model_release(&f->model);
    cluster_release(&f->cluster);
    arena_release(&f->arena);
    *f = (struct findings){0};
}

bool findings_is_of_updates(const struct findings *f, const struct record *record) {
    for (size_t i = 0; i < f->outcome.n_rows; i++)
        if (!strcmp(f->outcome.rows[i].strategy, record->strategy))
            return outcome_row_is_of_updates(&f->outcome.rows[i]);
    return false;
}

const struct chart_trial *findings_trials(struct findings *f) {
    struct chart_trial *trials = arena_alloc(&f->arena, f->outcome.n_trials, sizeof *trials);
    for (size_t i = 0; trials && i < f->outcome.n_trials; i++) {
        const struct record *r = &f->outcome.trials[i];
        const bool updates = findings_is_of_updates(f, r);
        trials[i] =
            (struct chart_trial){.number = r->number,
                                 .strategy = r->strategy_name,
                                 .proposer = r->proposer,
                                 .baseline = outcome_baseline(r->proposer) != NULL,
                                 .final = r->round > 0 && !f->outcome.collection,
                                 .outcome = r->state == RECORD_COMPLETE                                ? CHART_COMPLETE
                                            : r->state == RECORD_WAITING || r->state == RECORD_RUNNING ? CHART_UNDERWAY
                                                                                                       : CHART_FAILED,
                                 .updates = updates,
                                 .predicted_us = r->predicted_us,
                                 .measured_us = f->outcome.weather.seed || updates ? r->mean_us : r->median_us};
    }
    return trials;
}
