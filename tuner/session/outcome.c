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
#include "strategy/cost/transport.h"
#include "strategy/plan.h"
#include "tuner/predict/predictor.h"
#include "tuner/search/importance.h"
#include "tuner/session/outcome_internal.h"
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

static double mean_of(size_t n, const double *values) {
    double mean = 0;
    for (size_t i = 0; i < n; i++)
        mean += values[i] / (double)n;
    return mean;
}

static bool is_under_way(const struct record *record) {
    return record->state == RECORD_WAITING || record->state == RECORD_RUNNING;
}

const struct baseline *outcome_baseline(const char *proposer) {
    const struct baseline *baseline = proposer ? baselines_find(proposer) : NULL;
    return baseline && baseline->kind != BASELINE_EXACT ? baseline : NULL;
}

bool outcome_row_is_of_updates(const struct outcome_row *row) {
    return row->stale || row->in_step;
}

bool outcome_row_has_interval(const struct outcome_row *row) {
    return row->measured.n && row->measured.low_us < row->measured.high_us;
}

bool outcome_row_is_void(const struct outcome_row *row) {
    return row->state == RECORD_CANCELLED && !trial_reason_is_lost(row->reason);
}

static bool is_called(const char *proposer, const char *name) {
    return proposer && !strcmp(proposer, name);
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
                                .stale = is_called(record->proposer, OUTCOME_STALE),
                                .in_step = is_called(record->proposer, OUTCOME_IN_STEP),
                                .predicted_us = record->predicted_us,
                                .first_us = INFINITY,
                                .us = INFINITY,
                                .p95_us = NAN,
                                .quiet_us = NAN};
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

/* Whether the mean counts of a row, and not the median: people wait for the sum of iterations that differ for a
 * reason. */
static bool goes_by_mean(const struct outcome *o, const struct outcome_row *row) {
    return o->weather.seed || outcome_row_is_of_updates(row);
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
            row->first_us = goes_by_mean(o, row) ? record->mean_us : record->median_us;
        if (n && !record->round && !o->collection)
            continue;
        s->counts[n] = record->n_iterations;
        s->rounds[n++] = record->iterations_us;
    }
    return n;
}

struct outcome_ratio outcome_ratio_of_logs(size_t n, double sum, double squares) {
    if (n < 2)
        return (struct outcome_ratio){n, n ? exp(sum) : NAN, NAN, NAN};
    const double mean = sum / (double)n, variance = fmax(squares - sum * mean, 0) / (double)(n - 1);
    const double off = student_quantile(n - 1) * sqrt(variance / (double)n);
    return (struct outcome_ratio){n, exp(mean), exp(mean - off), exp(mean + off)};
}

/* The mean of all, and its interval by how the rounds differ: in weather each had weather of its own. */
static enum status measure_by_mean(struct outcome_row *row, size_t n_rounds, const size_t *counts,
                                   const double *const *rounds, struct error *err) {
    double *pooled = malloc(row->measured.n * sizeof *pooled), sum = 0, squares = 0;
    size_t n = 0;
    if (!pooled)
        return error_no_memory(err);
    for (size_t r = 0; r < n_rounds; r++) {
        const double us = mean_of(counts[r], rounds[r]);
        memcpy(pooled + n, rounds[r], counts[r] * sizeof *pooled);
        n += counts[r];
        sum += log(us);
        squares += log(us) * log(us);
    }
    numbers_sort(n, pooled);
    row->us = row->measured.mean_us;
    row->p95_us = pooled[(size_t)ceil(0.95 * (double)n) - 1];
    free(pooled);
    const struct outcome_ratio rounds_us = outcome_ratio_of_logs(n_rounds, sum, squares);
    row->measured.low_us = n_rounds > 1 ? row->us * rounds_us.low / rounds_us.mean : row->us;
    row->measured.high_us = n_rounds > 1 ? row->us * rounds_us.high / rounds_us.mean : row->us;
    return ST_OK;
}

static enum status measure(const struct outcome *o, struct outcome_row *row, struct scratch *s, struct error *err) {
    const size_t n = collect_rounds(o, row, s), first = n > 1 && !o->collection;
    row->final = first;
    row->early = row->early && n == 1;
    row->state = n ? RECORD_COMPLETE : row->state;
    enum status st = summary_of_rounds(n - first, s->counts + first, s->rounds + first, &row->measured, err);
    if (st || !n)
        return st;
    row->us = row->measured.median_us;
    return goes_by_mean(o, row) ? measure_by_mean(row, n - first, s->counts + first, s->rounds + first, err) : ST_OK;
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
        const double us = o->rows[i].us;
        size_t at = i;
        for (; at > 0; at--) {
            if (o->rows[order[at - 1]].us <= us)
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
        any_final |= o->rows[i].final && !outcome_row_is_of_updates(&o->rows[i]);
    for (size_t i = 0; i < o->n_rows; i++) {
        const struct outcome_row *row = &o->rows[i];
        if (!row->measured.n || (baselines_only && !row->baseline) || (any_final && !row->final) ||
            outcome_row_is_of_updates(row))
            continue;
        if (best == SIZE_MAX || row->us < o->rows[best].us)
            best = i;
    }
    return best;
}

const struct record *outcome_trial(const struct outcome *o, size_t row, uint64_t round) {
    for (size_t i = 0; i < o->n_trials; i++)
        if (o->trials[i].round == round && has_iterations(&o->trials[i]) &&
            !strcmp(o->trials[i].strategy, o->rows[row].strategy))
            return &o->trials[i];
    return NULL;
}

uint64_t outcome_last_round(const struct outcome *o) {
    uint64_t last = 0;
    for (size_t i = 0; i < o->n_trials; i++)
        last = o->trials[i].round > last ? o->trials[i].round : last;
    return last;
}

struct outcome_ratio outcome_compare(const struct outcome *o, size_t a, size_t b) {
    const uint64_t last = outcome_last_round(o);
    double sum = 0, squares = 0;
    size_t n = 0;
    for (uint64_t k = 1; k <= last + 1; k++) {
        const uint64_t round = k <= last ? k : 0;
        const struct record *x = outcome_trial(o, a, round), *y = outcome_trial(o, b, round);
        if (!x || !y || (n && !round))
            continue;
        const double ratio = log(x->mean_us / y->mean_us);
        sum += ratio;
        squares += ratio * ratio;
        n++;
    }
    return outcome_ratio_of_logs(n, sum, squares);
}

static void compare_quietly(struct outcome *o) {
    const struct summary *best = &o->rows[o->best].measured, *baseline = &o->rows[o->baseline].measured;
    o->speedup = baseline->median_us / best->median_us;
    o->speedup_low = baseline->low_us / best->high_us;
    o->speedup_high = baseline->high_us / best->low_us;
    o->overlap = o->best != o->baseline && best->high_us >= baseline->low_us;
}

static void compare_best(struct outcome *o) {
    o->best = fastest(o, false);
    o->baseline = fastest(o, true);
    o->gap = o->speedup = o->speedup_low = o->speedup_high = NAN;
    if (o->best == SIZE_MAX)
        return;
    o->gap = o->rows[o->best].us / o->lower_bound_us - 1;
    if (o->baseline == SIZE_MAX)
        return;
    if (!o->weather.seed) {
        compare_quietly(o);
        return;
    }
    const struct outcome_ratio ratio = outcome_compare(o, o->baseline, o->best);
    o->speedup = ratio.mean;
    o->speedup_low = ratio.low;
    o->speedup_high = ratio.high;
    o->overlap = o->best != o->baseline && ratio.low <= 1;
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
        off[n++] = fabs(a->predicted_us / a->us - 1);
        for (size_t j = 0; j < i; j++) {
            const struct outcome_row *b = &o->rows[j];
            if (!is_comparable(b))
                continue;
            pairs++;
            right += (a->predicted_us < b->predicted_us) == (a->us < b->us);
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

enum status outcome_bound(const struct session_options *kept, const struct model *model, const struct cost *cost,
                          struct bound *out, struct error *err) {
    const enum lossiness lossy = kept->allow_lossy ? transport_lossiness(cost->cluster) : LOSSY_none;
    const enum in_parts in_parts = kept->allow_sharded == SHARDED_none         ? IN_PARTS_none
                                   : kept->allow_sharded == SHARDED_parameters ? IN_PARTS_replicas
                                                                               : IN_PARTS_updates;
    enum status st = bound_iteration(model, cost, lossy, in_parts, out, err);
    if (!st && lossy == LOSSY_none && kept->allow_stale == 0)
        bound_within(out, model, cost, kept->memory_bytes);
    return st;
}

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
    st = outcome_bound(&kept, model, &cost, &bound, err);
    cost_release(&cost);
    if (!st)
        o->lower_bound_us = bound.iteration_us;
    return st;
}

/* Of this row, under the row's name; nothing for SIZE_MAX. */
static enum status read_strategy(const struct outcome *o, size_t row, struct store *store, const struct model *model,
                                 const struct cluster *cluster, struct strategy *out, struct error *err) {
    if (row == SIZE_MAX)
        return ST_OK;
    enum status st = store_get_strategy(store, o->rows[row].strategy, model, cluster, out, err);
    if (st)
        return st;
    out->name = arena_strdup(&out->arena, o->rows[row].name);
    return out->name ? ST_OK : error_no_memory(err);
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
        if (!isfinite(o->rows[i].first_us) || outcome_row_is_of_updates(&o->rows[i]))
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

/* ---- weather ---- */

/* What the quiet network would make of every row, by its description. */
static enum status predict_quietly(struct outcome *o, struct store *store, struct predictor *p, struct error *err) {
    enum status st = ST_OK;
    const uint64_t weather = p->weather;
    p->weather = 0;
    for (size_t i = 0; i < o->n_rows && !st; i++) {
        struct strategy strategy;
        struct prediction prediction;
        st = store_get_strategy(store, o->rows[i].strategy, p->model, p->cluster, &strategy, err);
        if (!st) {
            st = predictor_run(p, &strategy, &prediction, err);
            o->rows[i].quiet_us = st ? NAN : prediction.iteration_us;
            strategy_release(&strategy);
        }
        if (outcome_leaves_out(st))
            st = ST_OK;
    }
    p->weather = weather;
    return st;
}

static enum status expect(struct outcome *o, struct store *store, struct predictor *p, size_t row, struct error *err) {
    struct strategy strategy;
    struct outlook outlook;
    if (row == SIZE_MAX)
        return ST_OK;
    enum status st = store_get_strategy(store, o->rows[row].strategy, p->model, p->cluster, &strategy, err);
    if (st)
        return outcome_leaves_out(st) ? ST_OK : st;
    st = predictor_outlook(p, &strategy, &outlook, err);
    strategy_release(&strategy);
    if (!st)
        o->rows[row].expected = outlook.expected;
    return outcome_leaves_out(st) ? ST_OK : st;
}

/* The quiet network's best of all that was tried. */
static size_t quiet_best(const struct outcome *o) {
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < o->n_rows; i++)
        if (o->rows[i].measured.n && o->rows[i].quiet_us > 0 &&
            (best == SIZE_MAX || o->rows[i].quiet_us < o->rows[best].quiet_us))
            best = i;
    return best;
}

static enum status find_weather(struct outcome *o, struct store *store, const struct model *model,
                                const struct cluster *cluster, struct error *err) {
    struct predictor p;
    enum status st = predictor_init_in_weather(&p, model, cluster, o->weather.seed, err);
    if (st)
        return outcome_leaves_out(st) ? ST_OK : st;
    st = predict_quietly(o, store, &p, err);
    if (!st) {
        o->weather.quiet = quiet_best(o);
        st = expect(o, store, &p, o->best, err);
    }
    if (!st && o->baseline != o->best)
        st = expect(o, store, &p, o->baseline, err);
    if (!st && o->weather.quiet != o->best && o->weather.quiet != o->baseline)
        st = expect(o, store, &p, o->weather.quiet, err);
    if (!st && o->best != SIZE_MAX && o->weather.quiet != SIZE_MAX)
        o->weather.loss = outcome_compare(o, o->weather.quiet, o->best);
    predictor_release(&p);
    return st;
}

/* ---- all of it ---- */

static enum status read_session(struct outcome *o, struct store *store, const char *id, struct error *err) {
    struct session_budget budget;
    struct session_options kept;
    enum status st = store_session_get(store, id, &o->arena, &o->session, err);
    if (!st)
        st = session_budget_read(&o->session, &budget, err);
    if (!st)
        st = session_options_read(&o->session, &o->arena, &kept, err);
    if (st)
        return st;
    o->weather.seed = kept.weather;
    o->stale.allowed = kept.allow_stale;
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
    outcome_find_stale(o, cluster->n_devices);
    st = judge_predictions(o, err);
    if (!st)
        st = judge_proposers(o, err);
    if (!st && (parts & OUTCOME_STRATEGY))
        st = read_strategy(o, o->best, store, model, cluster, &o->strategy, err);
    if (!st && (parts & OUTCOME_STRATEGY))
        st = read_strategy(o, o->stale.best, store, model, cluster, &o->stale_strategy, err);
    if (!st && (parts & OUTCOME_WEATHER) && o->weather.seed)
        st = find_weather(o, store, model, cluster, err);
    return !st && (parts & OUTCOME_IMPORTANCE) ? find_importance(o, store, model, cluster, err) : st;
}

enum status outcome_gather(struct store *store, const char *id, const struct model *model,
                           const struct cluster *cluster, unsigned parts, struct outcome *out, struct error *err) {
    struct outcome o = {
        .best = SIZE_MAX, .baseline = SIZE_MAX, .weather = OUTCOME_NO_WEATHER, .stale = OUTCOME_NO_STALE};
    enum status st = gather(&o, store, id, model, cluster, parts, err);
    if (st)
        outcome_release(&o);
    else
        *out = o;
    return st;
}

void outcome_release(struct outcome *o) {
    strategy_release(&o->strategy);
    strategy_release(&o->stale_strategy);
    arena_release(&o->arena);
    *o = (struct outcome){0};
}
