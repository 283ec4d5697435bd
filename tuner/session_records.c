/* A session in the dataset: its beginning, and how one that was interrupted finds its state again by walking through
 * its records. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "dataset/describe.h"
#include "dataset/query.h"
#include "tuner/session_internal.h"

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
              cJSON_AddNumberToObject(json, "least_gain", s->options.least_gain) &&
              cJSON_AddNumberToObject(json, "earlier", (double)s->options.earlier) &&
              (!s->options.ranker_id || cJSON_AddStringToObject(json, "ranker", s->options.ranker_id)) &&
              (!s->options.hosts || cJSON_AddStringToObject(json, "hosts", s->options.hosts));
    char *text = ok ? json_line(json) : NULL;
    cJSON_Delete(json);
    return text;
}

/* Take one record in: trials of one strategy become their mean; what can no longer be lowered or predicted is left
 * out. */
static enum status add_earlier(struct session *s, const struct record *record, size_t *counts, struct error *err) {
    struct strategy *strategy = &s->earlier_strategies[s->n_earlier];
    struct prediction prediction;
    for (size_t i = 0; i < s->n_earlier; i++)
        if (!strcmp(s->earlier_strategies[i].id.hex, record->strategy)) {
            s->earlier[i].us += (record->median_us - s->earlier[i].us) / (double)++counts[i];
            return ST_OK;
        }
    enum status st = store_get_strategy(s->store, record->strategy, s->model, s->cluster, strategy, err);
    if (!st && (st = predictor_run(&s->predictor, strategy, &prediction, err)))
        strategy_release(strategy);
    if (st)
        return st == ST_INVALID || st == ST_INFEASIBLE || st == ST_TOO_LARGE ? ST_OK : st;
    counts[s->n_earlier] = 1;
    s->earlier[s->n_earlier++] = (struct tried){strategy, record->median_us, NULL};
    return ST_OK;
}

/* The fastest complete trials in this domain of before `began`, by the same runner; later ones are left out, so that a
 * resumed session knows what it knew. */
static enum status load_earlier(struct session *s, const char *began, struct error *err) {
    struct arena arena = {0};
    struct record *records;
    size_t n = 0;
    const enum record_state complete = RECORD_COMPLETE;
    const struct query query = {.model = s->model->id.hex,
                                .cluster = s->cluster->id.hex,
                                .runner = s->runner->name,
                                .state = &complete,
                                .until = began,
                                .order = QUERY_BY_measured,
                                .limit = s->options.earlier};
    if (!s->options.earlier)
        return ST_OK;
    enum status st = query_collect(s->store, &query, &arena, &n, &records, err);
    s->earlier = calloc(n + 1, sizeof *s->earlier);
    s->earlier_strategies = calloc(n + 1, sizeof *s->earlier_strategies);
    size_t *counts = calloc(n + 1, sizeof *counts);
    if (!st && (!s->earlier || !s->earlier_strategies || !counts))
        st = error_no_memory(err);
    s->predictor.brief = true;
    for (size_t i = 0; i < n && !st; i++)
        if (strcmp(records[i].session ? records[i].session : "", s->id))
            st = add_earlier(s, &records[i], counts, err);
    s->predictor.brief = false;
    free(counts);
    arena_release(&arena);
    return st;
}

static enum status load_earlier_of(struct session *s, struct error *err) {
    struct arena arena = {0};
    struct stored_session stored;
    enum status st = store_session_get(s->store, s->id, &arena, &stored, err);
    if (!st)
        st = load_earlier(s, stored.started, err);
    arena_release(&arena);
    return st;
}

enum status session_begin(struct session *s, struct error *err) {
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
    return st ? st : load_earlier_of(s, err);
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
        s->options.least_gain = number_of(options, "least_gain");
        s->options.earlier = (size_t)number_of(options, "earlier");
        if (!s->options.trials && !(s->options.time_us > 0))
            st = error_set(err, ST_CONFLICT,
                           "session %s has no budget: it is a collection; go on with: syncopate collect", s->id);
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
    struct entry *e = session_find(s, &id);
    if (!e) {
        enum status st = store_get_strategy(s->store, record->strategy, s->model, s->cluster, &strategy, err);
        if (st)
            return st;
        e = session_add(s, &strategy, record->proposer, record->predicted_us);
        if (!e)
            return error_no_memory(err);
    }
    double wall = stamp_us(record->ended) - stamp_us(record->started);
    if (isfinite(wall))
        s->earlier_us += wall;
    enum status st =
        session_learn(s, e, record->state, record->n_iterations, record->iterations_us, record->reason, err);
    if (!st)
        session_tell(s, e, &(struct tune_outcome){.state = record->state, .reason = record->reason}, record->median_us,
                     true);
    return st;
}

enum status session_resume(struct session *s, const char *id, struct error *err) {
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
    return st ? st : load_earlier_of(s, err);
}
