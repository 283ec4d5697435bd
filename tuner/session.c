/* See session.h. What to do next is decided from the entries alone (the distinct strategies and what was measured of
 * them), never from how the process came to know them; `number` of trials so far names the random stream of the next
 * proposal. That makes resuming the same as going on.
 *
 * The answer is decided in the final: each finalist is run again `final_rounds` times, interleaved with the best
 * baseline so that drift of the machine meets all alike, and only those rounds are reported. The first trial of a
 * strategy chose it, and what is chosen for being the least of many noisy values looks better than it is. */
#include "tuner/session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "dataset/describe.h"
#include "dataset/query.h"
#include "simulator/bound.h"
#include "tuner/predictor.h"
#include "tuner/search/proposals.h"
#include "tuner/search/starts.h"

enum { MAX_ROUNDS = 32, MAX_FINALISTS = 3, LEAST_ITERATIONS = 6, MOST_ITERATIONS = 60, WARMUP = 2 };

/* Similarity counts this much against a candidate, in units of the best prediction; every third proposal explores. */
static const double DIVERSITY = 0.01, DIVERSITY_EXPLORING = 0.3;
/* A trial this much slower than the best is ended early. */
static const double HOPELESS = 1.5;

#define X(constant, words) words,
static const char *const stop_words[] = {TUNE_STOP_TABLE(X)};
#undef X

const char *tune_stop_words(enum tune_stop stop) {
    return stop_words[stop];
}

/* A distinct strategy and all that was measured of it. Round 0 is its first trial, later ones are the final's. */
struct entry {
    struct strategy strategy;
    char proposer[32];
    const struct baseline *baseline;
    double predicted_us;
    enum record_state state; /* of the last trial */
    char reason[160];
    size_t n_rounds, counts[MAX_ROUNDS];
    double *rounds[MAX_ROUNDS];
    double median_us; /* of round 0; INFINITY when it did not complete */
    uint64_t trials;  /* all that were spent on it */
};

struct session {
    struct store *store;
    const struct model *model;
    const struct cluster *cluster;
    const struct tune_runner *runner;
    struct tune_options options;
    char id[64];
    struct space space;
    struct predictor predictor;
    struct starts starts;
    size_t n, capacity;
    struct entry *entries;
    uint64_t trials; /* counted against the budget */
    double lower_bound_us, started_us, earlier_us;
    enum tune_phase phase;
    enum tune_stop stop;
    bool fitted; /* the predictor knows all entries */
};

struct tune_options tune_default_options(void) {
    return (struct tune_options){
        .trials = 40, .final_rounds = 3, .trial_us = 4e6, .seed = 1, .space = space_default_options()};
}

/* ---- entries ---- */

static struct entry *find_entry(struct session *s, const struct id *id) {
    for (size_t i = 0; i < s->n; i++)
        if (!memcmp(&s->entries[i].strategy.id, id, sizeof *id))
            return &s->entries[i];
    return NULL;
}

/* Exact schedules are candidates: what they win over the baselines is ours to give. */
static const struct baseline *baseline_called(const char *name) {
    const struct baseline *row = baselines_find(name);
    return row && row->kind != BASELINE_EXACT ? row : NULL;
}

/* Takes the strategy over. NULL when memory is out; the strategy is then released. */
static struct entry *add_entry(struct session *s, struct strategy *strategy, const char *proposer, double predicted) {
    if (s->n == s->capacity) {
        size_t capacity = s->capacity ? 2 * s->capacity : 64;
        struct entry *entries = realloc(s->entries, capacity * sizeof *entries);
        if (!entries) {
            strategy_release(strategy);
            return NULL;
        }
        s->entries = entries;
        s->capacity = capacity;
    }
    struct entry *e = &s->entries[s->n++];
    *e = (struct entry){.strategy = *strategy,
                        .baseline = baseline_called(proposer),
                        .predicted_us = predicted,
                        .state = RECORD_WAITING,
                        .median_us = INFINITY};
    snprintf(e->proposer, sizeof e->proposer, "%s", proposer);
    return e;
}

static enum status learn(struct session *s, struct entry *e, enum record_state state, size_t n,
                         const double *iterations_us, const char *reason, struct error *err) {
    e->state = state;
    e->trials++;
    s->trials++;
    s->fitted = false;
    snprintf(e->reason, sizeof e->reason, "%s", reason ? reason : "");
    if (state != RECORD_COMPLETE || e->n_rounds == MAX_ROUNDS)
        return ST_OK;
    double *copy = malloc((n ? n : 1) * sizeof *copy);
    if (!copy)
        return error_no_memory(err);
    memcpy(copy, iterations_us, n * sizeof *copy);
    if (!e->n_rounds)
        e->median_us = median_of(n, copy);
    e->counts[e->n_rounds] = n;
    e->rounds[e->n_rounds++] = copy;
    return ST_OK;
}

static double best_so_far(const struct session *s) {
    double best = INFINITY;
    for (size_t i = 0; i < s->n; i++)
        best = fmin(best, s->entries[i].median_us);
    return best;
}

/* ---- one trial ---- */

static double elapsed(const struct session *s) {
    return s->earlier_us + clock_now_us() - s->started_us;
}

/* How much longer, by the pace so far: of the budget that is nearer to its end. */
static double time_left(const struct session *s) {
    double by_time = s->options.time_us > 0 ? s->options.time_us - elapsed(s) : INFINITY, by_trials = INFINITY;
    if (s->options.trials && s->trials)
        by_trials = elapsed(s) / (double)s->trials * (double)(s->options.trials - s->trials);
    double left = fmin(by_time, by_trials);
    return left > 0 ? left : 0;
}

static void tell(const struct session *s, const struct entry *e, const struct tune_outcome *outcome, double median_us,
                 bool recorded) {
    if (!s->options.listen)
        return;
    const struct tune_event event = {.phase = s->phase,
                                     .number = outcome ? s->trials : s->trials + 1,
                                     .budget = s->options.trials,
                                     .name = e->strategy.name,
                                     .proposer = e->proposer,
                                     .predicted_us = e->predicted_us,
                                     .outcome = outcome,
                                     .median_us = median_us,
                                     .best_us = best_so_far(s),
                                     .elapsed_us = elapsed(s),
                                     .left_us = time_left(s),
                                     .recorded = recorded};
    s->options.listen(s->options.context, &event);
}

static uint64_t iterations_for(const struct session *s, const struct entry *e) {
    double per_iteration = isfinite(e->median_us) ? e->median_us : e->predicted_us;
    double n = per_iteration > 0 ? s->options.trial_us / per_iteration : MOST_ITERATIONS;
    return (uint64_t)fmin(fmax(n, LEAST_ITERATIONS), MOST_ITERATIONS);
}

static enum status start_trial(struct session *s, const struct entry *e, uint64_t round, int64_t *trial,
                               struct error *err) {
    const struct trial_start start = {.model = s->model,
                                      .cluster = s->cluster,
                                      .strategy = &e->strategy,
                                      .session = s->id,
                                      .proposer = e->proposer,
                                      .runner = s->runner->name,
                                      .round = round,
                                      .seed = s->options.seed,
                                      .predicted_us = e->predicted_us};
    return trial_record_start(s->store, &start, trial, err);
}

static enum status say_how_to_resume(const struct session *s, struct error *err) {
    return error_set(err, ST_CANCELLED, "interrupted; go on with: syncopate tune --resume %s --dataset %s", s->id,
                     store_path(s->store));
}

/* Run entry `index` once more, record it and learn from it. */
static enum status try_entry(struct session *s, size_t index, uint64_t round, struct error *err) {
    struct entry *e = &s->entries[index];
    struct tune_outcome outcome = {0};
    const struct tune_order order = {.strategy = &e->strategy,
                                     .iterations = iterations_for(s, e),
                                     .warmup = WARMUP,
                                     .expected_us = isfinite(e->predicted_us) ? e->predicted_us : 0,
                                     .give_up_us = round || isinf(best_so_far(s)) ? 0 : HOPELESS * best_so_far(s)};
    int64_t trial;
    enum status st = start_trial(s, e, round, &trial, err);
    if (st)
        return st;
    tell(s, e, NULL, 0, false);
    st = s->runner->run(s->runner->context, &order, &outcome, err);
    if (st) {
        struct error ignored;
        store_trial_fail(s->store, trial, RECORD_CANCELLED, err ? err->message : NULL, &ignored);
        return st == ST_CANCELLED ? say_how_to_resume(s, err) : st;
    }
    struct summary summary;
    st = trial_record_end(s->store, trial, &outcome, err);
    if (!st)
        st = learn(s, e, outcome.state, outcome.n, outcome.iterations_us, outcome.reason, err);
    if (!st)
        st = summary_of_copy(outcome.n, outcome.iterations_us, &summary, err);
    if (!st)
        tell(s, e, &outcome, outcome.n ? summary.median_us : NAN, false);
    return st;
}

/* ---- phases ---- */

static enum status refit(struct session *s, struct error *err) {
    if (s->fitted)
        return ST_OK;
    struct measured *measured = calloc(s->n ? s->n : 1, sizeof *measured);
    if (!measured)
        return error_no_memory(err);
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (isfinite(s->entries[i].median_us))
            measured[n++] = (struct measured){&s->entries[i].strategy, s->entries[i].median_us};
    enum status st = predictor_fit(&s->predictor, n, measured, err);
    free(measured);
    s->fitted = !st;
    return st;
}

/* Trials that the final will need. */
static uint64_t reserve(const struct session *s) {
    uint64_t wanted = s->options.final_rounds * MAX_FINALISTS;
    return s->options.trials && wanted > s->options.trials / 3 ? s->options.trials / 3 / MAX_FINALISTS * MAX_FINALISTS
                                                               : wanted;
}

/* The baseline phase takes at most half of what the final leaves. */
static size_t starts_limit(const struct session *s) {
    if (!s->options.trials)
        return s->starts.n;
    uint64_t half = (s->options.trials - reserve(s) + 1) / 2;
    return half < s->starts.n ? (size_t)half : s->starts.n;
}

/* Run the first of the starts that was not tried; *done when all were. */
static enum status next_start(struct session *s, bool *done, struct error *err) {
    *done = false;
    for (size_t i = 0; i < starts_limit(s); i++) {
        const struct start *start = &s->starts.items[i];
        struct strategy strategy;
        if (find_entry(s, &start->strategy.id))
            continue;
        enum status st = strategy_copy(&start->strategy, start->strategy.name, &strategy, err);
        if (st)
            return st;
        strategy.id = start->strategy.id;
        if (!add_entry(s, &strategy, start->baseline->name, start->predicted_us))
            return error_no_memory(err);
        return try_entry(s, s->n - 1, 0, err);
    }
    *done = true;
    return ST_OK;
}

static enum status next_candidate(struct session *s, struct error *err) {
    struct tried *tried = calloc(s->n ? s->n : 1, sizeof *tried);
    if (!tried)
        return error_no_memory(err);
    for (size_t i = 0; i < s->n; i++)
        tried[i] = (struct tried){&s->entries[i].strategy, s->entries[i].median_us};
    struct rng rng;
    struct proposal proposal;
    rng_split(&rng, s->options.seed, s->trials);
    enum status st = refit(s, err);
    if (!st)
        st = proposal_next(&s->space, &s->predictor,
                           s->options.evaluations ? s->options.evaluations : proposal_evaluations(s->model),
                           s->trials % 3 == 2 ? DIVERSITY_EXPLORING : DIVERSITY, s->n, tried, &rng, &proposal, err);
    free(tried);
    if (st)
        return st;
    char name[32];
    snprintf(name, sizeof name, "%s-%lu", proposal.proposer, (unsigned long)s->trials + 1);
    proposal.strategy.name = arena_strdup(&proposal.strategy.arena, name);
    if (!proposal.strategy.name) {
        strategy_release(&proposal.strategy);
        return error_no_memory(err);
    }
    if (!add_entry(s, &proposal.strategy, proposal.proposer, proposal.predicted_us))
        return error_no_memory(err);
    return try_entry(s, s->n - 1, 0, err);
}

/* The best baseline and the best others, by their first trials; at most MAX_FINALISTS. */
static size_t finalists(const struct session *s, size_t out[MAX_FINALISTS]) {
    size_t n = 0;
    for (int others = 0; others < 2; others++)
        while (n < (others ? (size_t)MAX_FINALISTS : 1)) {
            size_t best = SIZE_MAX;
            for (size_t i = 0; i < s->n; i++) {
                const struct entry *e = &s->entries[i];
                bool taken = false;
                for (size_t k = 0; k < n; k++)
                    taken |= out[k] == i;
                if (!taken && isfinite(e->median_us) && (others || e->baseline) &&
                    (best == SIZE_MAX || e->median_us < s->entries[best].median_us))
                    best = i;
            }
            if (best == SIZE_MAX)
                break;
            out[n++] = best;
        }
    return n;
}

static bool in_final(const struct session *s) {
    for (size_t i = 0; i < s->n; i++)
        if (s->entries[i].trials > 1)
            return true;
    return false;
}

/* Whether the search is over, and why. */
static bool search_over(struct session *s) {
    double per_trial = s->trials ? elapsed(s) / (double)s->trials : 0;
    if (s->options.trials && s->trials + reserve(s) >= s->options.trials) {
        s->stop = TUNE_STOP_TRIALS;
        return true;
    }
    if (s->options.time_us > 0 && elapsed(s) + (double)(reserve(s) + 1) * per_trial > s->options.time_us) {
        s->stop = TUNE_STOP_TIME;
        return true;
    }
    if (s->options.gap > 0 && best_so_far(s) <= s->lower_bound_us * (1 + s->options.gap)) {
        s->stop = TUNE_STOP_GAP;
        return true;
    }
    return false;
}

static enum status check_cancel(const struct session *s, struct error *err) {
    return s->options.cancel && *s->options.cancel ? say_how_to_resume(s, err) : ST_OK;
}

static enum status run_search(struct session *s, struct error *err) {
    bool done = false;
    enum status st = ST_OK;
    s->phase = TUNE_BASELINES;
    while (!st && !done && !in_final(s) && !(s->trials && search_over(s)))
        if (!(st = check_cancel(s, err)))
            st = next_start(s, &done, err);
    s->phase = TUNE_SEARCH;
    while (!st && !in_final(s) && !search_over(s))
        if (!(st = check_cancel(s, err)))
            st = next_candidate(s, err);
    if (st == ST_NOT_FOUND) {
        s->stop = TUNE_STOP_EXHAUSTED;
        st = ST_OK;
    }
    return st;
}

static enum status run_final(struct session *s, struct error *err) {
    size_t who[MAX_FINALISTS], n = finalists(s, who);
    uint64_t rounds = n ? reserve(s) / MAX_FINALISTS : 0;
    s->phase = TUNE_FINAL;
    for (uint64_t round = 1; round <= rounds && round < MAX_ROUNDS; round++)
        for (size_t k = 0; k < n; k++) {
            if (s->entries[who[k]].trials > round)
                continue;
            enum status st = check_cancel(s, err);
            if (!st)
                st = try_entry(s, who[k], round, err);
            if (st)
                return st;
        }
    return ST_OK;
}

/* ---- beginning and resuming ---- */

/* Session ids are for people to type: the time, and four hex digits that keep two of one second apart. */
static void make_id(char out[64]) {
    char stamp[32];
    struct rng rng;
    rng_seed(&rng, (uint64_t)(clock_now_us() * 1e3));
    clock_utc(stamp, sizeof stamp);
    snprintf(out, 64, "%.4s%.2s%.2s-%.2s%.2s%.2s-%04x", stamp, stamp + 5, stamp + 8, stamp + 11, stamp + 14, stamp + 17,
             (unsigned)(rng_next(&rng) & 0xffff));
}

/* What a resumed session must know again; malloc'd. */
static char *options_text(const struct session *s) {
    cJSON *json = cJSON_CreateObject();
    bool ok = json && cJSON_AddNumberToObject(json, "final_rounds", (double)s->options.final_rounds) &&
              cJSON_AddNumberToObject(json, "trial_us", s->options.trial_us) &&
              cJSON_AddStringToObject(json, "runner", s->runner->name) &&
              (!s->options.hosts || cJSON_AddStringToObject(json, "hosts", s->options.hosts));
    char *text = ok ? json_line(json) : NULL;
    cJSON_Delete(json);
    return text;
}

static enum status begin_session(struct session *s, struct error *err) {
    char budget[160];
    make_id(s->id);
    snprintf(budget, sizeof budget, "{\"trials\":%lu,\"time_us\":%.17g,\"gap\":%.17g}",
             (unsigned long)s->options.trials, s->options.time_us, s->options.gap);
    char *options = options_text(s);
    if (!options)
        return error_no_memory(err);
    const struct stored_session session = {.id = s->id,
                                           .model = s->model->id.hex,
                                           .cluster = s->cluster->id.hex,
                                           .seed = s->options.seed,
                                           .budget = budget,
                                           .options = options};
    enum status st = store_put_model(s->store, s->model, err);
    if (!st)
        st = store_put_cluster(s->store, s->cluster, err);
    if (!st)
        st = store_session_begin(s->store, &session, err);
    free(options);
    return st;
}

static double stamp_us(const char *stamp) {
    struct tm tm = {0};
    const char *rest = stamp ? strptime(stamp, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
    return rest ? (double)timegm(&tm) * 1e6 + strtod(rest, NULL) * 1e6 : NAN;
}

static double number_of(const cJSON *json, const char *key) {
    const cJSON *node = cJSON_GetObjectItemCaseSensitive(json, key);
    return cJSON_IsNumber(node) ? node->valuedouble : 0;
}

/* The budget and options are those of the beginning, whatever this command line says. */
static enum status restore_options(struct session *s, const struct stored_session *stored, struct error *err) {
    cJSON *budget = cJSON_Parse(stored->budget), *options = cJSON_Parse(stored->options);
    enum status st = budget && options ? ST_OK : error_set(err, ST_INVALID, "session %s: damaged options", s->id);
    if (!st) {
        s->options.seed = stored->seed;
        s->options.trials = (uint64_t)number_of(budget, "trials");
        s->options.time_us = number_of(budget, "time_us");
        s->options.gap = number_of(budget, "gap");
        s->options.final_rounds = (uint64_t)number_of(options, "final_rounds");
        s->options.trial_us = number_of(options, "trial_us");
    }
    cJSON_Delete(budget);
    cJSON_Delete(options);
    return st;
}

static enum status replay(struct session *s, const struct record *record, struct error *err) {
    struct id id;
    struct strategy strategy;
    if (record->state == RECORD_CANCELLED)
        return ST_OK;
    snprintf(id.hex, sizeof id.hex, "%s", record->strategy);
    struct entry *e = find_entry(s, &id);
    if (!e) {
        enum status st = store_get_strategy(s->store, record->strategy, s->model, s->cluster, &strategy, err);
        if (st)
            return st;
        e = add_entry(s, &strategy, record->proposer, record->predicted_us);
        if (!e)
            return error_no_memory(err);
    }
    double wall = stamp_us(record->ended) - stamp_us(record->started);
    if (isfinite(wall))
        s->earlier_us += wall;
    enum status st = learn(s, e, record->state, record->n_iterations, record->iterations_us, record->reason, err);
    if (!st)
        tell(s, e, &(struct tune_outcome){.state = record->state, .reason = record->reason}, record->median_us, true);
    return st;
}

static enum status resume_session(struct session *s, const char *id, struct error *err) {
    struct arena arena = {0};
    struct stored_session stored;
    struct record *records;
    size_t n = 0;
    enum status st = store_session_get(s->store, id, &arena, &stored, err);
    if (!st && (strcmp(stored.model, s->model->id.hex) || strcmp(stored.cluster, s->cluster->id.hex)))
        st = error_set(err, ST_CONFLICT, "session %s is about another model or cluster", id);
    if (!st) {
        snprintf(s->id, sizeof s->id, "%s", stored.id);
        st = restore_options(s, &stored, err);
    }
    if (!st)
        st = store_session_reconcile(s->store, s->id, NULL, err);
    if (!st)
        st = store_trials(s->store, s->id, &arena, &n, &records, err);
    for (size_t i = 0; i < n && !st; i++)
        st = replay(s, &records[i], err);
    arena_release(&arena);
    return st;
}

/* ---- the answer ---- */

static struct summary summarize(const struct entry *e) {
    double pooled[MAX_ROUNDS * MOST_ITERATIONS * 2];
    size_t first = e->n_rounds > 1;
    size_t total = 0;
    for (size_t r = first; r < e->n_rounds; r++)
        total += e->counts[r];
    if (!total || total > sizeof pooled / sizeof *pooled)
        return (struct summary){0};
    return summary_of_rounds(e->n_rounds - first, e->counts + first, e->rounds + first, pooled);
}

static int compare_rows(const void *a, const void *b) {
    const struct tune_row *x = a, *y = b;
    if (x->baseline != y->baseline)
        return x->baseline ? -1 : 1;
    if (x->baseline || !x->measured.n || !y->measured.n)
        return 0;
    return (x->measured.median_us > y->measured.median_us) - (x->measured.median_us < y->measured.median_us);
}

static void fill_row(struct tune_row *row, const struct entry *e) {
    *row = (struct tune_row){.id = e->strategy.id,
                             .baseline = e->baseline,
                             .proposer = e->baseline ? e->baseline->name : NULL,
                             .final = e->n_rounds > 1,
                             .state = e->n_rounds ? RECORD_COMPLETE : e->state,
                             .predicted_us = e->predicted_us,
                             .measured = summarize(e)};
    snprintf(row->name, sizeof row->name, "%s", e->strategy.name);
    snprintf(row->reason, sizeof row->reason, "%s", e->reason);
}

/* The fastest row of those that were in the final, or of all when there was none. */
static size_t fastest(const struct tuning *t, bool baselines_only, bool any_final) {
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < t->n_rows; i++) {
        const struct tune_row *row = &t->rows[i];
        if (!row->measured.n || (baselines_only && !row->baseline) || (any_final && !row->final))
            continue;
        if (best == SIZE_MAX || row->measured.median_us < t->rows[best].measured.median_us)
            best = i;
    }
    return best;
}

static enum status answer(struct session *s, struct tuning *out, struct error *err) {
    bool any_final = false;
    struct tuning t = {.trials = s->trials,
                       .stop = s->stop,
                       .n_rows = s->n,
                       .hopeless = s->starts.hopeless,
                       .lower_bound_us = s->lower_bound_us};
    memcpy(t.session, s->id, sizeof t.session);
    t.rows = calloc(s->n ? s->n : 1, sizeof *t.rows);
    if (!t.rows)
        return error_no_memory(err);
    for (size_t i = 0; i < s->n; i++) {
        fill_row(&t.rows[i], &s->entries[i]);
        any_final |= t.rows[i].final;
    }
    qsort(t.rows, t.n_rows, sizeof *t.rows, compare_rows);
    t.best = fastest(&t, false, any_final);
    t.best_baseline = fastest(&t, true, any_final);
    if (t.best == SIZE_MAX) {
        const char *reason = s->n ? s->entries[0].reason : "none was run";
        error_set(err, ST_INFEASIBLE, "no trial of session %s completed; the first: %s", s->id, reason);
        free(t.rows);
        return ST_INFEASIBLE;
    }
    const struct summary *best = &t.rows[t.best].measured;
    t.gap = best->median_us / t.lower_bound_us - 1;
    t.speedup = NAN;
    if (t.best_baseline != SIZE_MAX) {
        const struct summary *baseline = &t.rows[t.best_baseline].measured;
        t.speedup = baseline->median_us / best->median_us;
        t.overlap = t.best_baseline != t.best && best->high_us >= baseline->low_us;
    }
    const struct entry *e = find_entry(s, &t.rows[t.best].id);
    enum status st = strategy_copy(&e->strategy, e->strategy.name, &t.strategy, err);
    t.strategy.id = e->strategy.id;
    if (st)
        free(t.rows);
    else
        *out = t;
    return st;
}

static void release(struct session *s) {
    for (size_t i = 0; i < s->n; i++) {
        strategy_release(&s->entries[i].strategy);
        for (size_t r = 0; r < s->entries[i].n_rounds; r++)
            free(s->entries[i].rounds[r]);
    }
    free(s->entries);
    starts_release(&s->starts);
    space_release(&s->space);
    predictor_release(&s->predictor);
}

static enum status lower_bound(struct session *s, struct error *err) {
    struct bound bound;
    enum status st = bound_iteration(s->model, &s->predictor.cost, &bound, err);
    if (!st)
        s->lower_bound_us = bound.iteration_us;
    return st;
}

static enum status prepare(struct session *s, const char *resume, struct error *err) {
    enum status st = space_init(&s->space, s->model, s->cluster, &s->options.space, err);
    if (!st)
        st = predictor_init(&s->predictor, s->model, s->cluster, err);
    if (!st)
        st = lower_bound(s, err);
    if (!st)
        st = starts_list(&s->predictor, &s->starts, err);
    if (!st)
        st = resume ? resume_session(s, resume, err) : begin_session(s, err);
    return st;
}

enum status tune_run(struct store *store, const struct model *model, const struct cluster *cluster,
                     const struct tune_runner *runner, const struct tune_options *options, const char *resume,
                     struct tuning *out, struct error *err) {
    struct session s = {.store = store,
                        .model = model,
                        .cluster = cluster,
                        .runner = runner,
                        .options = *options,
                        .started_us = clock_now_us()};
    enum status st = prepare(&s, resume, err);
    if (!st)
        st = run_search(&s, err);
    if (!st)
        st = run_final(&s, err);
    if (!st)
        st = answer(&s, out, err);
    if (*s.id) {
        struct error ignored;
        store_session_update(store, s.id,
                             !st                  ? STORED_SESSION_DONE
                             : st == ST_CANCELLED ? STORED_SESSION_STOPPED
                                                  : STORED_SESSION_FAILED,
                             st && err ? err->message : tune_stop_words(s.stop), &ignored);
    }
    release(&s);
    return st;
}

void tuning_release(struct tuning *tuning) {
    free(tuning->rows);
    strategy_release(&tuning->strategy);
    *tuning = (struct tuning){0};
}
