/* Each record opens a row or adds to one. A strategy that was in the final is measured by its rounds there alone: its
 * first trial got it into the final, and the least of many noisy values is biased low. Cost: O(records * strategies),
 * and that of importance_of. */
#include "tuner/session/outcome.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/work.h"
#include "dataset/describe.h"
#include "simulator/bound.h"
#include "strategy/cost/cost.h"
#include "strategy/plan.h"
#include "tuner/search/importance.h"
#include "tuner/session/session_options.h"
#include "tuner/session/trials.h"

#define X(constant, words) words,
static const char *const stop_words[] = {TUNE_STOP_TABLE(X)};
#undef X

const char *tune_stop_label(enum tune_stop stop) {
    return stop_words[stop];
}

enum tune_stop tune_stop_of(const char *reason) {
    for (int stop = 0; stop < TUNE_STOP_COUNT && reason; stop++)
        if (!strcmp(reason, stop_words[stop]))
            return (enum tune_stop)stop;
    return TUNE_STOP_ASKED;
}

/* ---- rows ---- */

static bool has_iterations(const struct record *record) {
    return record->state == RECORD_COMPLETE && record->n_iterations;
}

static bool is_under_way(const struct record *record) {
    return record->state == RECORD_WAITING || record->state == RECORD_RUNNING;
}

const struct baseline *outcome_baseline(const char *proposer) {
    const struct baseline *baseline = proposer ? baselines_find(proposer) : NULL;
    return baseline && baseline->kind != BASELINE_EXACT ? baseline : NULL;
}

bool outcome_row_is_void(const struct outcome_row *row) {
    return row->state == RECORD_CANCELLED && !trial_reason_is_lost(row->reason);
}

static struct outcome_row *row_of(struct outcome *o, const struct record *record) {
    for (size_t i = 0; i < o->n_rows; i++)
        if (!strcmp(o->rows[i].strategy, record->strategy))
            return &o->rows[i];
    struct outcome_row *row = &o->rows[o->n_rows++];
    *row = (struct outcome_row){.strategy = record->strategy,
                                .name = record->strategy_name,
                                .proposer = record->proposer,
                                .baseline = outcome_baseline(record->proposer),
                                .predicted_us = record->predicted_us,
                                .first_us = INFINITY};
    return row;
}

/* Add a record, and return the place of its row. */
static size_t add_record(struct outcome *o, const struct record *record) {
    struct outcome_row *row = row_of(o, record);
    row->trials++;
    row->state = record->state;
    row->reason = record->reason;
    row->early |= trial_ended_early(record);
    o->under_way += is_under_way(record);
    o->ended += !is_under_way(record) && record->state != RECORD_CANCELLED;
    o->failed += record->state == RECORD_FAILED || record->state == RECORD_INFEASIBLE;
    return (size_t)(row - o->rows);
}

/* Arrays of n_trials that rows share one after another. */
struct scratch {
    size_t *places; /* of each record's row */
    size_t *counts; /* of a row's rounds: how many iterations each has, and which */
    const double **rounds;
};

static enum status scratch_init(struct scratch *out, size_t n, struct error *err) {
    *out = (struct scratch){.places = calloc(n + 1, sizeof *out->places),
                            .counts = calloc(n + 1, sizeof *out->counts),
                            .rounds = calloc(n + 1, sizeof *out->rounds)};
    return out->places && out->counts && out->rounds ? ST_OK : error_no_memory(err);
}

static void scratch_release(struct scratch *s) {
    free(s->places);
    free(s->counts);
    free(s->rounds);
}

/* Collect the trials that measure a row; returns how many. For a strategy outside the final that is its first complete
 * trial; in a collection, which chooses nothing, all of them. */
static size_t collect_rounds(const struct outcome *o, struct outcome_row *row, struct scratch *s) {
    const size_t place = (size_t)(row - o->rows);
    size_t n = 0;
    for (size_t i = 0; i < o->n_trials; i++) {
        const struct record *record = &o->trials[i];
        if (s->places[i] != place || !has_iterations(record))
            continue;
        if (!row->complete++)
            row->first_us = record->median_us;
        if (n && !record->round && !o->collection)
            continue;
        s->counts[n] = record->n_iterations;
        s->rounds[n++] = record->iterations_us;
    }
    return n;
}

static enum status measure(const struct outcome *o, struct outcome_row *row, struct scratch *s, struct error *err) {
    const size_t n = collect_rounds(o, row, s), first = n > 1 && !o->collection;
    row->final = first;
    row->early = row->early && n == 1;
    row->state = n ? RECORD_COMPLETE : row->state;
    return summary_of_rounds(n - first, s->counts + first, s->rounds + first, &row->measured, err);
}

static enum status make_rows(struct outcome *o, struct error *err) {
    struct scratch scratch;
    enum status st = scratch_init(&scratch, o->n_trials, err);
    o->rows = arena_alloc(&o->arena, o->n_trials, sizeof *o->rows);
    if (!st && !o->rows)
        st = error_no_memory(err);
    for (size_t i = 0; i < o->n_trials && !st; i++)
        scratch.places[i] = add_record(o, &o->trials[i]);
    for (size_t i = 0; i < o->n_rows && !st; i++)
        st = measure(o, &o->rows[i], &scratch, err);
    scratch_release(&scratch);
    return st;
}

void outcome_order(const struct outcome *o, size_t *order) {
    for (size_t i = 0; i < o->n_rows; i++) {
        const double us = o->rows[i].measured.n ? o->rows[i].measured.median_us : INFINITY;
        size_t at = i;
        for (; at > 0; at--) {
            const struct outcome_row *before = &o->rows[order[at - 1]];
            if ((before->measured.n ? before->measured.median_us : INFINITY) <= us)
                break;
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
}

/* ---- the best, and who found it ---- */

/* The fastest of those that were in the final, or of all when none was. */
static size_t fastest(const struct outcome *o, bool baselines_only) {
    size_t best = SIZE_MAX;
    bool any_final = false;
    for (size_t i = 0; i < o->n_rows; i++)
        any_final |= o->rows[i].final;
    for (size_t i = 0; i < o->n_rows; i++) {
        const struct outcome_row *row = &o->rows[i];
        if (!row->measured.n || (baselines_only && !row->baseline) || (any_final && !row->final))
            continue;
        if (best == SIZE_MAX || row->measured.median_us < o->rows[best].measured.median_us)
            best = i;
    }
    return best;
}

static void compare_best(struct outcome *o) {
    o->best = fastest(o, false);
    o->baseline = fastest(o, true);
    o->gap = o->speedup = o->speedup_low = o->speedup_high = NAN;
    if (o->best == SIZE_MAX)
        return;
    const struct summary *best = &o->rows[o->best].measured;
    o->gap = best->median_us / o->lower_bound_us - 1;
    if (o->baseline == SIZE_MAX)
        return;
    const struct summary *baseline = &o->rows[o->baseline].measured;
    o->speedup = baseline->median_us / best->median_us;
    o->speedup_low = baseline->low_us / best->high_us;
    o->speedup_high = baseline->high_us / best->low_us;
    o->overlap = o->best != o->baseline && best->high_us >= baseline->low_us;
}

static bool is_comparable(const struct outcome_row *row) {
    return row->measured.n && row->predicted_us > 0;
}

static enum status judge_predictions(struct outcome *o, struct error *err) {
    double *off = calloc(o->n_rows + 1, sizeof *off);
    size_t n = 0, pairs = 0, right = 0;
    if (!off)
        return error_no_memory(err);
    for (size_t i = 0; i < o->n_rows; i++) {
        const struct outcome_row *a = &o->rows[i];
        if (!is_comparable(a))
            continue;
        off[n++] = fabs(a->predicted_us / a->measured.median_us - 1);
        for (size_t j = 0; j < i; j++) {
            const struct outcome_row *b = &o->rows[j];
            if (!is_comparable(b))
                continue;
            pairs++;
            right += (a->predicted_us < b->predicted_us) == (a->measured.median_us < b->measured.median_us);
        }
    }
    o->accuracy =
        (struct outcome_accuracy){n, n ? median_of(n, off) : NAN, pairs ? (double)right / (double)pairs : NAN};
    free(off);
    return ST_OK;
}

static enum status judge_proposers(struct outcome *o, struct error *err) {
    struct tried *tried = calloc(o->n_rows + 1, sizeof *tried);
    size_t n = 0;
    if (!tried)
        return error_no_memory(err);
    for (size_t i = 0; i < o->n_rows; i++)
        if (!outcome_row_is_void(&o->rows[i]))
            tried[n++] = (struct tried){.us = o->rows[i].first_us, .proposer = o->rows[i].proposer};
    proposers_judge(n, tried, o->proposers);
    free(tried);
    return ST_OK;
}

/* ---- what must be read or computed beside the records ---- */

static enum status find_bound(struct outcome *o, const struct model *model, const struct cluster *cluster,
                              struct error *err) {
    struct cost cost;
    struct bound bound;
    struct session_options kept;
    enum status st = session_options_read(&o->session, &o->arena, &kept, err);
    if (!st)
        st = cost_init(&cost, cluster, err);
    if (st)
        return st;
    st = bound_iteration(model, &cost, kept.allow_lossy, &bound, err);
    cost_release(&cost);
    if (!st)
        o->lower_bound_us = bound.iteration_us;
    return st;
}

static enum status read_strategy(struct outcome *o, struct store *store, const struct model *model,
                                 const struct cluster *cluster, struct error *err) {
    const struct outcome_row *best = &o->rows[o->best];
    enum status st = store_get_strategy(store, best->strategy, model, cluster, &o->strategy, err);
    if (st)
        return st;
    o->strategy.name = arena_strdup(&o->strategy.arena, best->name);
    return o->strategy.name ? ST_OK : error_no_memory(err);
}

bool outcome_leaves_out(enum status st) {
    return st == ST_INVALID || st == ST_INFEASIBLE || st == ST_TOO_LARGE || st == ST_NUMERIC || st == ST_NOT_FOUND;
}

/* What strategies are described by, for importance. */
struct describer {
    struct store *store;
    const struct model *model;
    const struct cluster *cluster;
    struct cost cost;
    struct plan plan;
};

/* Importance does not use what the timeline computes, so the timeline is not run. */
static enum status describe(struct describer *d, const char *id, struct features *out, struct error *err) {
    const double compute_us = d->model->forward_us + d->model->backward_us;
    const struct timeline_terms terms = {.iteration_us = compute_us, .compute_us = compute_us};
    struct strategy strategy;
    enum status st = work_check(err);
    if (!st)
        st = store_get_strategy(d->store, id, d->model, d->cluster, &strategy, err);
    if (st)
        return st;
    st = plan_relower(&d->plan, d->model, d->cluster, &strategy, err);
    if (!st)
        st = features_of(&strategy, &d->plan, &d->cost, &terms, out, err);
    strategy_release(&strategy);
    return st;
}

static enum status describe_rows(struct describer *d, const struct outcome *o, size_t *n, struct features *features,
                                 struct advisor_observation *observed, struct error *err) {
    for (size_t i = 0; i < o->n_rows && *n < IMPORTANCE_MOST; i++) {
        if (!isfinite(o->rows[i].first_us))
            continue;
        enum status st = describe(d, o->rows[i].strategy, &features[*n], err);
        if (st && !outcome_leaves_out(st))
            return st;
        if (st)
            continue;
        observed[*n] = (struct advisor_observation){&features[*n], o->rows[i].first_us};
        ++*n;
    }
    return ST_OK;
}

static enum status find_importance(struct outcome *o, struct store *store, const struct model *model,
                                   const struct cluster *cluster, struct error *err) {
    struct describer d = {.store = store, .model = model, .cluster = cluster};
    struct features features[IMPORTANCE_MOST];
    struct advisor_observation observed[IMPORTANCE_MOST];
    size_t n = 0;
    enum status st = cost_init(&d.cost, cluster, err);
    if (st)
        return st;
    st = describe_rows(&d, o, &n, features, observed, err);
    if (!st)
        st = importance_of(n, observed, o->importance, err);
    o->has_importance = !st;
    for (size_t i = 0; i < n; i++)
        features_release(&features[i]);
    plan_release(&d.plan);
    cost_release(&d.cost);
    return outcome_leaves_out(st) ? ST_OK : st;
}

/* ---- all of it ---- */

static enum status read_session(struct outcome *o, struct store *store, const char *id, struct error *err) {
    struct session_budget budget;
    enum status st = store_session_get(store, id, &o->arena, &o->session, err);
    if (!st)
        st = session_budget_read(&o->session, &budget, err);
    if (st)
        return st;
    o->budget_trials = budget.trials;
    o->budget_us = budget.time_us;
    o->collection = !session_budget_is_limited(&budget);
    o->stop = tune_stop_of(o->session.reason);
    return store_trials(store, id, &o->arena, &o->n_trials, &o->trials, err);
}

static enum status gather(struct outcome *o, struct store *store, const char *id, const struct model *model,
                          const struct cluster *cluster, unsigned parts, struct error *err) {
    enum status st = read_session(o, store, id, err);
    if (!st)
        st = make_rows(o, err);
    if (!st)
        st = find_bound(o, model, cluster, err);
    if (st)
        return st;
    compare_best(o);
    st = judge_predictions(o, err);
    if (!st)
        st = judge_proposers(o, err);
    if (!st && (parts & OUTCOME_STRATEGY) && o->best != SIZE_MAX)
        st = read_strategy(o, store, model, cluster, err);
    return !st && (parts & OUTCOME_IMPORTANCE) ? find_importance(o, store, model, cluster, err) : st;
}

enum status outcome_gather(struct store *store, const char *id, const struct model *model,
                           const struct cluster *cluster, unsigned parts, struct outcome *out, struct error *err) {
    struct outcome o = {.best = SIZE_MAX, .baseline = SIZE_MAX};
    enum status st = gather(&o, store, id, model, cluster, parts, err);
    if (st)
        outcome_release(&o);
    else
        *out = o;
    return st;
}

void outcome_release(struct outcome *o) {
    strategy_release(&o->strategy);
    arena_release(&o->arena);
    *o = (struct outcome){0};
}
