/* Many trials that ended elsewhere, in one request: into the dataset, or into a session, whose search then learns from
 * them. All go in or none; an error has the JSON pointer of the record. A record has the members of an exported one, so
 * lines of an export can be sent. It belongs to the team of the token. A uid that is here with the same content is a
 * duplicate, so a batch may be sent again. The uid of a trial that is hidden from the sender is refused, without a word
 * about that trial. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "dataset/describe.h"
#include "dataset/ingest.h"
#include "service/http/api/api.h"
#include "service/http/api/quotas.h"
#include "service/http/api/records.h"
#include "service/http/api/references.h"
#include "service/http/api/sessions.h"
#include "service/http/transport/server.h"

enum { MOST_RECORDS = 1000, MOST_ITERATIONS = 100000, MOST_ATTEMPTS = 1000, KNOWN = 256 };
static const double LEAST_US = 1e-3, MOST_US = 1e13;

struct known {
    const char *word, *id; /* what it names, */
    int64_t row;           /* and its row, or 0 (reference_row) */
};

struct batch {
    const char *list; /* the body's member with the records */
    size_t n;
    struct record *records;
    struct record_rows *rows;
    const char **uids;
    struct import_options options;
    struct hub_session *live; /* the session they go to, or NULL */
    const struct stored_session *session;
    struct import_report report;
    bool done;
    uint64_t reserved; /* of the asker's daily quota */
    /* Records of one batch name few models and clusters. */
    struct known known[STORE_KIND_COUNT][KNOWN];
};

/* ---- a record ---- */

static enum status read_stamps(const struct json_at *at, struct record *out, struct error *err) {
    const struct {
        const char *key, **to;
    } stamps[] = {{"queued", &out->queued}, {"started", &out->started}, {"ended", &out->ended}};
    enum status st = ST_OK;
    for (size_t i = 0; i < sizeof stamps / sizeof *stamps && !st; i++) {
        struct json_at member;
        st = json_get_string(at, stamps[i].key, JSON_OPTIONAL, stamps[i].to, err);
        if (!st && json_has(at, stamps[i].key, &member) && !clock_is_utc(*stamps[i].to))
            st = json_fail(&member, err, "must be UTC as 2026-11-21T08:41:17.123Z");
    }
    return st;
}

enum status record_iterations(struct request *rq, const struct json_at *at, size_t *n, const double **out,
                              struct error *err) {
    struct json_at list;
    size_t told, i = 0;
    enum status st = json_array(at, "iterations_us", MOST_ITERATIONS, &list, &told, err);
    if (st)
        return st;
    double *us = arena_alloc(&rq->arena, told, sizeof *us);
    if (!us)
        return error_no_memory(err);
    for (struct json_at e = json_first(&list); e.node && !st; e = json_next(&e))
        st = json_number_at(&e, LEAST_US, MOST_US, &us[i++], err);
    if (!st) {
        *n = told;
        *out = us;
    }
    return st;
}

static enum status read_times(struct request *rq, const struct json_at *at, struct record *out, struct error *err) {
    const struct {
        const char *key;
        double *to;
    } times[] = {{"predicted_us", &out->predicted_us},
                 {"mean_us", &out->mean_us},
                 {"median_us", &out->median_us},
                 {"low_us", &out->low_us},
                 {"high_us", &out->high_us}};
    struct json_at list;
    enum status st = ST_OK;
    for (size_t i = 0; i < sizeof times / sizeof *times && !st; i++) {
        *times[i].to = NAN;
        st = json_get_number(at, times[i].key, JSON_OPTIONAL, LEAST_US, MOST_US, times[i].to, err);
    }
    return st || !json_has(at, "iterations_us", &list)
               ? st
               : record_iterations(rq, at, &out->n_iterations, &out->iterations_us, err);
}

/* The place of a word in the cache: from the one that the end of the word chooses, the first that has the word or is
 * free; where none of a few is, the word overwrites an earlier one. */
static struct known *place_of(struct batch *batch, enum store_kind kind, const char *word) {
    enum { TRIED = 8 };
    const size_t n = strlen(word);
    struct known *known = batch->known[kind], *at;
    unsigned place = 0;
    for (size_t i = n > 4 ? n - 4 : 0; i < n; i++)
        place = place * 31 + (unsigned char)word[i];
    for (unsigned i = 0; i < TRIED; i++) {
        at = &known[(place + i) % KNOWN];
        if (!at->word || !strcmp(at->word, word))
            return at;
    }
    return &known[place % KNOWN];
}

/* The whole id of what the member names, and its row. */
static enum status read_reference(struct request *rq, struct batch *batch, const struct json_at *at,
                                  enum store_kind kind, const char *key, const char **out, int64_t *row,
                                  struct error *err) {
    const char *word;
    struct json_at member;
    struct id id;
    int64_t found;
    struct error why = {0};
    enum status st = json_member(at, key, &member, err);
    if (!st)
        st = json_string_at(&member, &word, err);
    if (st)
        return st;
    struct known *known = place_of(batch, kind, word);
    if (known->word && !strcmp(known->word, word)) {
        *out = known->id;
        *row = known->row;
        return ST_OK;
    }
    st = reference_row(rq, kind, word, &id, &found, &why);
    if (st) { /* the error keeps its status, and gets its place in the body */
        access_hide_path(rq->service->access, &why);
        json_fail(&member, err, "%s", ERROR_TEXT(&why));
        return err->status = st == ST_USAGE ? ST_INVALID : st;
    }
    *out = arena_strdup(&rq->arena, id.hex);
    *known = (struct known){*out ? word : NULL, *out, found};
    *row = found;
    return *out ? ST_OK : error_no_memory(err);
}

static enum status read_state(const struct json_at *at, struct record *out, struct error *err) {
    static const char *const words[] = {"complete", "failed", "infeasible", "cancelled", NULL};
    static const enum record_state states[] = {RECORD_COMPLETE, RECORD_FAILED, RECORD_INFEASIBLE, RECORD_CANCELLED};
    size_t place = 0;
    enum status st = json_get_word(at, "state", JSON_OPTIONAL, words, &place, err);
    out->state = states[place];
    return st ? st : json_get_string(at, "reason", JSON_OPTIONAL, &out->reason, err);
}

static enum status read_uid(struct request *rq, const struct json_at *at, struct record *out, struct error *err) {
    struct json_at member;
    enum status st = json_get_string(at, "uid", JSON_OPTIONAL, &out->uid, err);
    if (st)
        return st;
    if (json_has(at, "uid", &member))
        return record_uid_is_valid(out->uid)
                   ? ST_OK
                   : json_fail(&member, err, "must be 1 to %d letters, digits, '.', '-' and '_'", RECORD_UID_MAX);
    char *made = arena_alloc(&rq->arena, RECORD_UID_MAX + 1, 1);
    out->uid = made;
    return made ? record_uid_make(made, err) : error_no_memory(err);
}

static enum status read_counts(const struct json_at *at, struct record *out, struct error *err) {
    out->attempt = 1;
    enum status st = json_get_integer(at, "round", JSON_OPTIONAL, 0, 1u << 20, &out->round, err);
    if (!st)
        st = json_get_integer(at, "seed", JSON_OPTIONAL, 0, 1ull << 53, &out->seed, err);
    return st ? st : json_get_integer(at, "attempt", JSON_OPTIONAL, 1, MOST_ATTEMPTS, &out->attempt, err);
}

/* A session's trials need not say what they are about, but may not say otherwise. */
static enum status read_domain(struct request *rq, struct batch *batch, const struct json_at *at, struct record *out,
                               struct error *err) {
    const struct stored_session *session = batch->session;
    const bool both = !session || cJSON_GetObjectItemCaseSensitive(at->node, "model") ||
                      cJSON_GetObjectItemCaseSensitive(at->node, "cluster");
    struct record_rows *rows = &batch->rows[out - batch->records];
    enum status st = both ? read_reference(rq, batch, at, STORE_MODEL, "model", &out->model, &rows->model, err) : ST_OK;
    if (!st && both)
        st = read_reference(rq, batch, at, STORE_CLUSTER, "cluster", &out->cluster, &rows->cluster, err);
    if (st || !session)
        return st;
    if (both && (strcmp(out->model, session->model) || strcmp(out->cluster, session->cluster)))
        return json_fail(at, err, "is about another model or cluster than the session");
    out->session = session->id;
    out->model = session->model;
    out->cluster = session->cluster;
    return ST_OK;
}

static enum status read_names(struct request *rq, struct batch *batch, const struct json_at *at, struct record *out,
                              struct error *err) {
    struct record_rows *rows = &batch->rows[out - batch->records];
    enum status st = read_domain(rq, batch, at, out, err);
    if (!st && rows->strategy) /* found already, by its id */
        st = json_get_string(at, "strategy", JSON_REQUIRED, &out->strategy, err);
    else if (!st)
        st = read_reference(rq, batch, at, STORE_STRATEGY, "strategy", &out->strategy, &rows->strategy, err);
    if (!st)
        st = json_get_string(at, "proposer", JSON_REQUIRED, &out->proposer, err);
    return st ? st : json_get_string(at, "runner", JSON_REQUIRED, &out->runner, err);
}

/* The first six members are ignored: in an export they are about the dataset that it came from. */
static enum status read_record(struct request *rq, struct batch *batch, const struct json_at *at, struct record *out,
                               struct error *err) {
    static const char *const known[] = {"schema",      "trial",   "model_name", "cluster_name",  "strategy_name",
                                        "environment", "uid",     "strategy",   "round",         "seed",
                                        "proposer",    "runner",  "state",      "reason",        "attempt",
                                        "queued",      "started", "ended",      "predicted_us",  "mean_us",
                                        "median_us",   "low_us",  "high_us",    "iterations_us", "environment_details",
                                        "model",       "cluster", NULL};
    struct json_at unused;
    enum status st = json_expect_object(at, known, err);
    if (!st && json_has(at, "schema", &unused))
        st = json_expect_schema(at, "syncopate.record/1", err);
    if (!st)
        st = read_uid(rq, at, out, err);
    if (!st)
        st = read_names(rq, batch, at, out, err);
    if (!st)
        st = read_state(at, out, err);
    if (!st)
        st = read_counts(at, out, err);
    if (batch->session)
        out->round = 0; /* only the session's own final has rounds */
    if (!st)
        st = read_stamps(at, out, err);
    if (!st)
        st = read_times(rq, at, out, err);
    return st ? st : record_environment(rq, at, "environment_details", &out->environment_json, err);
}

/* The rows of the strategies that records name by their ids, all at once: there may be as many as there are records. */
static enum status find_strategies(struct request *rq, struct batch *batch, const cJSON *list, struct error *err) {
    const struct viewer asker = request_asker(rq);
    const char **ids = arena_alloc(&rq->arena, batch->n, sizeof *ids);
    int64_t *rows = arena_alloc(&rq->arena, batch->n, sizeof *rows);
    struct store *store;
    size_t i = 0;
    if (!ids || !rows)
        return error_no_memory(err);
    for (const cJSON *record = list->child; record; record = record->next, i++) {
        const char *word = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(record, "strategy"));
        ids[i] = word && reference_is_id(word) ? word : NULL;
    }
    enum status st = request_reader(rq, &store, err);
    if (!st)
        st = seen_rows(store, STORE_STRATEGY, batch->n, ids, &asker, rows, err);
    for (i = 0; i < batch->n && !st; i++)
        batch->rows[i].strategy = rows[i];
    return st;
}

static enum status read_records(struct request *rq, struct batch *batch, struct error *err) {
    const struct json_at body = request_body(rq);
    struct json_at list;
    enum status st = json_array(&body, batch->list, MOST_RECORDS, &list, &batch->n, err);
    if (!st && !batch->n)
        st = json_fail(&list, err, "needs at least one");
    if (st)
        return st;
    batch->records = arena_alloc(&rq->arena, batch->n, sizeof *batch->records);
    batch->rows = arena_alloc(&rq->arena, batch->n, sizeof *batch->rows);
    if (!batch->records || !batch->rows)
        return error_no_memory(err);
    batch->options.rows = batch->rows;
    st = find_strategies(rq, batch, list.node, err);
    size_t i = 0;
    for (struct json_at e = json_first(&list); e.node && !st; e = json_next(&e))
        st = read_record(rq, batch, &e, &batch->records[i++], err);
    return st;
}

/* ---- adding them ---- */

static enum status answer(const struct batch *batch, struct response *rs, struct error *err) {
    cJSON *root = cJSON_CreateObject();
    bool whole = root && cJSON_AddNumberToObject(root, "added", (double)batch->report.added) &&
                 cJSON_AddNumberToObject(root, "duplicates", (double)batch->report.duplicates);
    cJSON *uids = whole ? cJSON_AddArrayToObject(root, "uids") : NULL;
    whole = uids != NULL;
    for (size_t i = 0; i < batch->n && whole; i++) {
        cJSON *uid = cJSON_CreateString(batch->records[i].uid);
        whole = uid && cJSON_AddItemToArray(uids, uid);
    }
    return response_json(rs, batch->report.added ? 201 : 200, root, whole, err);
}

/* Fail with what the dataset says of a record. */
static enum status fail_import(const struct request *rq, const struct batch *batch, enum status st, struct error *err) {
    const size_t position = err->position;
    if (!position)
        return st;
    if (st == ST_NOT_FOUND)
        error_set(err, st, "its model, cluster or strategy is not here");
    return request_fail_item(rq, batch->list, position - 1, st, err);
}

/* Give back what was reserved for an effect that was undone. */
static void give_back(struct request *rq, struct batch *batch) {
    request_settle(rq, batch->reserved, 0);
    batch->reserved = 0;
    batch->done = false;
}

static enum status import_effect(struct request *rq, struct store *store, void *context, struct response *rs,
                                 struct error *err) {
    struct batch *batch = context;
    give_back(rq, batch);
    enum status st = store_trials_import(store, batch->n, batch->records, &batch->options, &batch->report, err);
    if (st)
        return fail_import(rq, batch, st, err);
    if (batch->report.added)
        st = request_reserve(rq, batch->report.added, batch->report.added, &batch->reserved, rs, err);
    if (!st && batch->live)
        st = hub_tell_import(batch->live, store, batch->report.added, err);
    batch->done = !st;
    return st ? st : answer(batch, rs, err);
}

/* Commit it; records that were here already cost nothing of the quota. */
static enum status commit(struct request *rq, struct batch *batch, struct response *rs, struct error *err) {
    enum status st = request_commit(rq, import_effect, batch, rs, err);
    const uint64_t added = !st && batch->done ? batch->report.added : 0;
    request_settle(rq, batch->reserved, added);
    metrics_add_records(server_metrics(rq->server), added);
    return st;
}

enum status api_records_create(struct request *rq, struct response *rs, struct error *err) {
    static const char *const known[] = {"records", "shared", NULL};
    const struct json_at body = request_body(rq);
    struct batch batch = {.list = "records", .options = {.team = rq->principal.team, .viewer = request_viewer(rq)}};
    enum status st = json_expect_object(&body, known, err);
    if (!st)
        st = request_shared(rq, &body, &batch.options.shared, err);
    if (!st)
        st = read_records(rq, &batch, err);
    return st ? st : commit(rq, &batch, rs, err);
}

/* ---- into a session ---- */

/* Refuse times from which the search cannot learn. */
static enum status check_times(const struct batch *batch, const struct record *r, struct error *err) {
    const uint64_t weather = hub_weather(batch->live);
    if (r->state != RECORD_COMPLETE)
        return ST_OK;
    if (!r->n_iterations)
        return error_set(err, ST_INVALID, "needs iterations_us, from which a search learns");
    if (weather && trial_weather(r) != weather)
        return error_set(
            err, ST_INVALID,
            "needs environment_details with \"weather\":%lu, since the session compares trials in the same "
            "weather",
            (unsigned long)weather);
    return ST_OK;
}

/* Refuse a record that the search cannot use: the session would fail whenever it is read. */
static enum status check_record(const struct request *rq, const struct batch *batch, struct store *store, size_t i,
                                struct error *err) {
    const struct record *r = &batch->records[i];
    struct strategy strategy = {0};
    enum status st = check_times(batch, r, err);
    if (st)
        return request_fail_item(rq, batch->list, i, st, err);
    for (size_t k = 0; k < i; k++)
        if (!strcmp(batch->records[k].strategy, r->strategy))
            return ST_OK;
    st = store_get_strategy(store, r->strategy, hub_model(batch->live), hub_cluster(batch->live), &strategy, err);
    if (!st && !consistency_is_plain(&strategy.consistency))
        st = error_set(err, ST_INVALID, "%s has a \"consistency\"; a session searches strategies without one",
                       strategy.name);
    strategy_release(&strategy);
    return st ? request_fail_item(rq, batch->list, i, st, err) : ST_OK;
}

/* The records were read before the session was locked; meanwhile a bench may have moved it to another cluster. */
static enum status check_cluster(const struct batch *batch, struct error *err) {
    if (!strcmp(batch->session->cluster, hub_cluster(batch->live)->id.hex))
        return ST_OK;
    return error_code(
        err,
        error_set(err, ST_UNREACHABLE, "session %s moved to another cluster meanwhile; ask again", batch->session->id),
        "overloaded");
}

/* The session is locked. */
static enum status import_locked(struct request *rq, struct batch *batch, struct response *rs, struct error *err) {
    struct store *store;
    enum status st = hub_can_import(batch->live, err);
    if (!st)
        st = check_cluster(batch, err);
    if (!st)
        st = request_reader(rq, &store, err);
    for (size_t i = 0; i < batch->n && !st; i++)
        st = check_record(rq, batch, store, i, err);
    if (!st)
        st = commit(rq, batch, rs, err);
    if (!st && batch->done)
        st = hub_learn_imported(batch->live, err);
    return st;
}

enum status api_trials_import(struct request *rq, struct response *rs, struct error *err) {
    static const char *const known[] = {"trials", NULL};
    const struct json_at body = request_body(rq);
    struct stored_session session;
    struct batch batch = {.list = "trials", .session = &session, .options.viewer = request_viewer(rq)};
    enum status st = json_expect_object(&body, known, err);
    if (!st)
        st = request_session(rq, true, &session, err);
    if (st)
        return st;
    st = read_records(rq, &batch, err);
    if (!st)
        st = hub_find(rq->service->hub, session.id, &batch.live, err);
    if (st)
        return st;
    bool held;
    st = request_lock(rq, batch.live, true, &held, err);
    if (held) {
        st = import_locked(rq, &batch, rs, err);
        hub_unlock(batch.live);
    }
    hub_drop(batch.live);
    return st;
}
