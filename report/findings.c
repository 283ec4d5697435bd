/* See findings.h. Records are walked once; each either opens a row or adds to one. */
#include "report/findings.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/describe.h"
#include "report/lanes.h"
#include "simulator/bound.h"
#include "tuner/search/importance.h"
#include "tuner/session/trials.h"

enum {
    FIT_MOST = 12, /* strategies to correct the simulator by, beside the best two; more change little */
    COMPARED_NODES = 2
};
static const double FIT_WORK = 1e4;

/* ---- reading ---- */

static double number_of(const cJSON *json, const char *key) {
    const cJSON *node = cJSON_GetObjectItemCaseSensitive(json, key);
    return cJSON_IsNumber(node) ? node->valuedouble : 0;
}

static enum status read_budget(struct findings *f, struct error *err) {
    cJSON *budget = cJSON_Parse(f->session.budget), *options = cJSON_Parse(f->session.options);
    const char *runner = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(options, "runner"));
    f->budget_trials = (uint64_t)number_of(budget, "trials");
    f->budget_us = number_of(budget, "time_us");
    f->collection = !f->budget_trials && !(f->budget_us > 0);
    f->runner = runner ? arena_strdup(&f->arena, runner) : f->n_trials ? f->trials[0].runner : NULL;
    enum status st = !budget || !options || (runner && !f->runner) ? error_no_memory(err) : ST_OK;
    cJSON_Delete(budget);
    cJSON_Delete(options);
    return st;
}

static enum status read_session(struct findings *f, struct store *store, const char *session, struct error *err) {
    enum status st = store_session_get(store, session, &f->arena, &f->session, err);
    if (!st)
        st = store_get_model(store, f->session.model, &f->model, err);
    if (!st)
        st = store_get_cluster(store, f->session.cluster, &f->cluster, err);
    if (!st)
        st = store_trials(store, session, &f->arena, &f->n_trials, &f->trials, err);
    return st ? st : read_budget(f, err);
}

/* ---- rows ---- */

static struct finding *row_of(struct findings *f, const struct record *record) {
    for (size_t i = 0; i < f->n; i++)
        if (!strcmp(f->items[i].strategy, record->strategy))
            return &f->items[i];
    struct finding *row = &f->items[f->n++];
    const struct baseline *baseline = baselines_find(record->proposer);
    *row = (struct finding){.strategy = record->strategy,
                            .name = record->strategy_name,
                            .proposer = record->proposer,
                            .baseline = baseline && baseline->kind != BASELINE_EXACT ? baseline : NULL,
                            .predicted_us = record->predicted_us,
                            .first_us = INFINITY};
    return row;
}

static bool has_iterations(const struct record *record) {
    return record->state == RECORD_COMPLETE && record->n_iterations;
}

static void add_record(struct findings *f, const struct record *record) {
    struct finding *row = row_of(f, record);
    row->trials++;
    row->state = record->state;
    row->reason = record->reason;
    row->early |= trial_ended_early(record);
    const bool under_way = record->state == RECORD_RUNNING || record->state == RECORD_WAITING;
    f->under_way += under_way;
    f->ended += !under_way && record->state != RECORD_CANCELLED;
    f->failed += record->state == RECORD_FAILED || record->state == RECORD_INFEASIBLE;
    if (!has_iterations(record))
        return;
    if (!row->complete++)
        row->first_us = record->median_us;
}

/* Of several rounds the first chose the strategy and does not count; in a collection nothing is chosen. */
static enum status summarize(struct findings *f, struct finding *row, struct error *err) {
    size_t *counts = calloc(row->complete + 1, sizeof *counts), n = 0;
    double **rounds = calloc(row->complete + 1, sizeof *rounds);
    for (size_t i = 0; counts && rounds && i < f->n_trials; i++) {
        const struct record *record = &f->trials[i];
        if (strcmp(record->strategy, row->strategy) != 0 || !has_iterations(record))
            continue;
        counts[n] = record->n_iterations;
        rounds[n] = arena_alloc(&f->arena, record->n_iterations, sizeof **rounds);
        if (!rounds[n])
            break;
        memcpy(rounds[n], record->iterations_us, record->n_iterations * sizeof **rounds);
        n++;
    }
    const size_t first = n > 1 && !f->collection;
    enum status st = counts && rounds && n == row->complete ? ST_OK : error_no_memory(err);
    if (!st && n)
        st = summary_of_rounds(n - first, counts + first, rounds + first, &row->measured, err);
    row->final = row->complete > 1 && !f->collection;
    row->early = row->early && row->complete == 1;
    free(counts);
    free(rounds);
    return st;
}

static enum status make_rows(struct findings *f, struct error *err) {
    enum status st = ST_OK;
    f->items = arena_alloc(&f->arena, f->n_trials, sizeof *f->items);
    if (!f->items)
        return error_no_memory(err);
    for (size_t i = 0; i < f->n_trials; i++)
        add_record(f, &f->trials[i]);
    for (size_t i = 0; i < f->n && !st; i++)
        st = summarize(f, &f->items[i], err);
    return st;
}

/* ---- what they say ---- */

/* The fastest of those that were in the final, or of all when none was. */
static size_t fastest(const struct findings *f, bool baselines_only) {
    size_t best = SIZE_MAX;
    bool any_final = false;
    for (size_t i = 0; i < f->n; i++)
        any_final |= f->items[i].final;
    for (size_t i = 0; i < f->n; i++) {
        const struct finding *row = &f->items[i];
        if (!row->measured.n || (baselines_only && !row->baseline) || (any_final && !row->final))
            continue;
        if (best == SIZE_MAX || row->measured.median_us < f->items[best].measured.median_us)
            best = i;
    }
    return best;
}

static void compare_best(struct findings *f) {
    f->best = fastest(f, false);
    f->baseline = fastest(f, true);
    f->gap = f->speedup = f->speedup_low = f->speedup_high = NAN;
    if (f->best == SIZE_MAX)
        return;
    const struct summary *best = &f->items[f->best].measured;
    f->gap = best->median_us / f->bound_us - 1;
    if (f->baseline == SIZE_MAX)
        return;
    const struct summary *baseline = &f->items[f->baseline].measured;
    f->speedup = baseline->median_us / best->median_us;
    f->speedup_low = baseline->low_us / best->high_us;
    f->speedup_high = baseline->high_us / best->low_us;
    f->overlap = f->best != f->baseline && best->high_us >= baseline->low_us;
}

static bool is_comparable(const struct finding *row) {
    return row->measured.n && row->predicted_us > 0;
}

static enum status judge_predictions(struct findings *f, struct error *err) {
    double *off = calloc(f->n + 1, sizeof *off);
    size_t n = 0, pairs = 0, right = 0;
    if (!off)
        return error_no_memory(err);
    for (size_t i = 0; i < f->n; i++) {
        const struct finding *a = &f->items[i];
        if (!is_comparable(a))
            continue;
        off[n++] = fabs(a->predicted_us / a->measured.median_us - 1);
        for (size_t j = 0; j < i; j++) {
            const struct finding *b = &f->items[j];
            if (!is_comparable(b))
                continue;
            pairs++;
            right += (a->predicted_us < b->predicted_us) == (a->measured.median_us < b->measured.median_us);
        }
    }
    f->accuracy =
        (struct finding_accuracy){n, n ? median_of(n, off) : NAN, pairs ? (double)right / (double)pairs : NAN};
    free(off);
    return ST_OK;
}

static enum status judge_proposers(struct findings *f, struct error *err) {
    struct tried *tried = calloc(f->n + 1, sizeof *tried);
    if (!tried)
        return error_no_memory(err);
    for (size_t i = 0; i < f->n; i++)
        tried[i] = (struct tried){.us = f->items[i].first_us, .proposer = f->items[i].proposer};
    proposers_judge(f->n, tried, f->proposers);
    free(tried);
    return ST_OK;
}

/* ---- what must be simulated ---- */

static bool is_fatal(enum status st) {
    return st && st != ST_INVALID && st != ST_INFEASIBLE && st != ST_TOO_LARGE && st != ST_NUMERIC &&
           st != ST_NOT_FOUND;
}

/* Importance leaves out what the timeline tells, so it is not run. */
static enum status describe(struct predictor *p, const struct strategy *strategy, struct features *out,
                            struct error *err) {
    const double compute_us = p->model->forward_us + p->model->backward_us;
    const struct timeline_terms terms = {.iteration_us = compute_us, .compute_us = compute_us};
    enum status st = plan_relower(&p->plan, p->model, p->cluster, strategy, err);
    return st ? st : features_of(strategy, &p->plan, &p->cost, &terms, out, err);
}

static enum status find_importance(struct findings *f, struct store *store, struct predictor *p, struct error *err) {
    struct features *features = calloc(f->n + 1, sizeof *features);
    struct advisor_observation *observed = calloc(f->n + 1, sizeof *observed);
    enum status st = features && observed ? ST_OK : error_no_memory(err);
    size_t n = 0;
    for (size_t i = 0; i < f->n && n < IMPORTANCE_MOST && !is_fatal(st); i++) {
        struct strategy strategy;
        if (!isfinite(f->items[i].first_us))
            continue;
        st = store_get_strategy(store, f->items[i].strategy, &f->model, &f->cluster, &strategy, err);
        if (st)
            continue;
        st = describe(p, &strategy, &features[n], err);
        strategy_release(&strategy);
        if (!st) {
            observed[n] = (struct advisor_observation){&features[n], f->items[i].first_us};
            n++;
        }
    }
    if (!is_fatal(st))
        st = importance_of(n, observed, f->importance, err);
    f->has_importance = !st;
    for (size_t i = 0; i < n; i++)
        features_release(&features[i]);
    free(features);
    free(observed);
    return is_fatal(st) ? st : ST_OK;
}

/* Which row is fitted to next: the best, the best baseline, then others spread over the session; SIZE_MAX after the
 * last. */
static size_t fitted_row(const struct findings *f, size_t k) {
    const size_t step = f->n / FIT_MOST + 1;
    if (k < 2)
        return k ? f->baseline : f->best;
    return (k - 2) * step < f->n ? (k - 2) * step : SIZE_MAX;
}

/* About what a prediction costs. */
static double work_of(const struct plan *plan, const struct cost *cost) {
    return plan->n_messages * (plan->any_server ? (double)cost->n_workers : 1);
}

static bool is_fitted_to(const struct findings *f, size_t k) {
    const size_t row = fitted_row(f, k);
    return row != SIZE_MAX && f->items[row].measured.n && (k < 2 || (row != f->best && row != f->baseline)) &&
           (k != 1 || f->baseline != f->best);
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
        const struct finding *row = &f->items[fitted_row(f, k)];
        st = store_get_strategy(store, row->strategy, &f->model, &f->cluster, &strategies[n], err);
        if (st)
            continue;
        st = plan_relower(&p->plan, &f->model, &f->cluster, &strategies[n], err);
        if (st) {
            strategy_release(&strategies[n]);
            continue;
        }
        work += work_of(&p->plan, &p->cost);
        measured[n] = (struct measured){&strategies[n], row->measured.median_us};
        n++;
    }
    if (!is_fatal(st))
        st = predictor_fit(p, n, measured, err);
    for (size_t i = 0; i < n; i++)
        strategy_release(&strategies[i]);
    return is_fatal(st) ? st : ST_OK;
}

static enum status add_timeline(struct findings *f, struct store *store, struct predictor *p, size_t row,
                                struct error *err) {
    struct strategy *strategy = &f->strategies[f->n_timelines];
    enum status st = store_get_strategy(store, f->items[row].strategy, &f->model, &f->cluster, strategy, err);
    if (st)
        return is_fatal(st) ? st : ST_OK;
    const size_t nodes = f->baseline != SIZE_MAX && f->baseline != f->best ? COMPARED_NODES : LANES_NODES;
    st = lanes_of(p, strategy, nodes, &f->arena, &f->timelines[f->n_timelines], err);
    if (st)
        strategy_release(strategy);
    else
        f->timelines[f->n_timelines++].name = f->items[row].name;
    return is_fatal(st) ? st : ST_OK;
}

static enum status simulate(struct findings *f, struct store *store, struct error *err) {
    struct predictor p;
    enum status st = predictor_init(&p, &f->model, &f->cluster, err);
    if (st)
        return is_fatal(st) ? st : ST_OK;
    st = find_importance(f, store, &p, err);
    if (!st && f->best != SIZE_MAX)
        st = correct(f, store, &p, err);
    f->correction = p.correction;
    if (!st && f->baseline != SIZE_MAX && f->baseline != f->best)
        st = add_timeline(f, store, &p, f->baseline, err);
    if (!st && f->best != SIZE_MAX)
        st = add_timeline(f, store, &p, f->best, err);
    predictor_release(&p);
    return st;
}

static enum status find_bound(struct findings *f, struct error *err) {
    struct cost cost;
    struct bound bound;
    enum status st = cost_init(&cost, &f->cluster, err);
    if (st)
        return st;
    st = bound_iteration(&f->model, &cost, &bound, err);
    cost_release(&cost);
    if (!st)
        f->bound_us = bound.iteration_us;
    return st;
}

/* ---- all of it ---- */

enum status findings_gather(struct store *store, const char *session, enum findings_depth depth, struct findings *out,
                            struct error *err) {
    struct findings f = {.best = SIZE_MAX, .baseline = SIZE_MAX, .correction = {1, 1}};
    enum status st = read_session(&f, store, session, err);
    if (!st)
        st = make_rows(&f, err);
    if (!st)
        st = find_bound(&f, err);
    if (!st) {
        compare_best(&f);
        st = judge_predictions(&f, err);
    }
    if (!st)
        st = judge_proposers(&f, err);
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
    model_release(&f->model);
    cluster_release(&f->cluster);
    arena_release(&f->arena);
    *f = (struct findings){0};
}

const struct chart_trial *findings_trials(struct findings *f) {
    struct chart_trial *trials = arena_alloc(&f->arena, f->n_trials, sizeof *trials);
    for (size_t i = 0; trials && i < f->n_trials; i++) {
        const struct record *r = &f->trials[i];
        const struct baseline *baseline = baselines_find(r->proposer);
        trials[i] =
            (struct chart_trial){.number = r->number,
                                 .strategy = r->strategy_name,
                                 .proposer = r->proposer,
                                 .baseline = baseline && baseline->kind != BASELINE_EXACT,
                                 .final = r->round > 0 && !f->collection,
                                 .outcome = r->state == RECORD_COMPLETE                                ? CHART_COMPLETE
                                            : r->state == RECORD_WAITING || r->state == RECORD_RUNNING ? CHART_UNDERWAY
                                                                                                       : CHART_FAILED,
                                 .predicted_us = r->predicted_us,
                                 .measured_us = r->median_us};
    }
    return trials;
}
