/* A session's trials: looked at, suggested under a lease, kept alive, reported, ended; and the session's events.
 * A change is made while the session is locked, in one transaction with its event and the answer that is kept for a
 * repetition; the session then catches up with what was written (service/hub.h). */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/stream.h"
#include "dataset/events.h"
#include "dataset/export.h"
#include "service/http/api/api.h"
#include "service/http/api/lists.h"
#include "service/http/api/quotas.h"
#include "service/http/api/records.h"
#include "service/http/api/references.h"
#include "service/http/api/sessions.h"
#include "service/http/transport/cookies.h"
#include "tuner/search/sketch.h"

enum { PAGE_SIZE = 100, PAGE_MAX = 1000, EVENTS_AT_ONCE = 256 };
static const double LEAST_LEASE_S = 1, MOST_LEASE_S = 86400;

/* ---- looking ---- */

/* malloc'd; NULL when memory is out. */
static char *record_text(const struct record *record) {
    char *text;
    size_t n;
    FILE *to = stream_open(&text, &n);
    if (to)
        export_json(record, to);
    stream_close(to, ST_OK, &text, NULL);
    return text;
}

static enum status record_answer(const struct record *record, struct response *rs, struct error *err) {
    char *text = record_text(record);
    if (!text)
        return error_no_memory(err);
    free(rs->owned);
    rs->owned = text;
    response_bytes(rs, 200, "application/json", text, strlen(text));
    return ST_OK;
}

enum status record_answer_tagged(struct request *rq, const struct record *record, struct response *rs,
                                 struct error *err) {
    struct id id;
    enum status st = record_answer(record, rs, err);
    if (!st)
        st = id_of(rs->body, rs->n, &id, err);
    if (st)
        return st;
    rs->etag = arena_printf(&rq->arena, "%.16s", id.hex);
    rs->cache_control = "private, no-cache";
    return rs->etag ? ST_OK : error_no_memory(err);
}

static bool add_record(cJSON *items, const struct record *record) {
    char *text = record_text(record);
    cJSON *raw = text ? cJSON_CreateRaw(text) : NULL;
    free(text);
    return raw && cJSON_AddItemToArray(items, raw);
}

const char *session_note(const struct stored_session *s) {
    if (s->state != STORED_SESSION_RUNNING)
        return "the session has no trials, and offers none in this state; GET the session to see its state";
    return s->mode == STORED_SESSION_OWN
               ? "the session has no trials yet; the service runs them, so ask again in a while"
               : "the session has no trials yet; take some: POST /api/v1/sessions/{session}/trials:suggest";
}

enum status api_trials_list(struct request *rq, struct response *rs, struct error *err) {
    struct stored_session stored;
    struct record *records;
    struct list_answer answer;
    struct store *store;
    char next[QUERY_CURSOR_ROOM];
    uint64_t size = PAGE_SIZE;
    size_t n;
    struct query query = {
        .order = QUERY_BY_number, .after = request_query(rq, "page_token"), .viewer = request_viewer(rq)};
    enum status st = request_session(rq, false, &stored, err);
    if (!st)
        st = request_query_integer(rq, "page_size", 1, PAGE_MAX, &size, err);
    if (!st)
        st = request_query_bool(rq, "iterations", &query.iterations, err);
    if (!st)
        st = request_reader(rq, &store, err);
    if (st)
        return st;
    query.session = stored.id;
    query.limit = (size_t)size;
    st = query_page(store, &query, &rq->arena, &n, &records, next, err);
    if (st)
        return list_fault(st, query.after, err);
    list_begin(&answer);
    for (size_t i = 0; i < n && answer.whole; i++)
        answer.whole = add_record(answer.items, &records[i]);
    return list_end(&answer, next, list_note(query.after, false, "", session_note(&stored)), rs, err);
}

static enum status trial_number(struct request *rq, uint64_t *out, struct error *err) {
    const char *text = request_parameter(rq, "number");
    char *end;
    *out = strtoull(text, &end, 10);
    if (*text < '1' || *text > '9' || *end || end - text > 15)
        return error_set(err, ST_NOT_FOUND, "there is no trial %.40s", text);
    return ST_OK;
}

static enum status answer_trial(struct request *rq, struct store *store, const char *session, uint64_t number,
                                struct response *rs, struct error *err) {
    struct record *records;
    size_t n;
    const struct query query = {.session = session, .number = number, .iterations = true, .viewer = request_viewer(rq)};
    enum status st = query_collect(store, &query, &rq->arena, &n, &records, err);
    if (!st && !n)
        st = error_set(err, ST_NOT_FOUND, "session %s has no trial %lu", session, (unsigned long)number);
    return st ? st : record_answer(&records[0], rs, err);
}

enum status api_trials_get(struct request *rq, struct response *rs, struct error *err) {
    struct stored_session stored;
    struct store *store;
    uint64_t number;
    enum status st = request_session(rq, false, &stored, err);
    if (!st)
        st = trial_number(rq, &number, err);
    if (!st)
        st = request_reader(rq, &store, err);
    return st ? st : answer_trial(rq, store, stored.id, number, rs, err);
}

/* ---- suggesting ---- */

struct suggest {
    struct hub_session *live;
    const char *client;
    uint64_t count;
    double lease_s;      /* 0: the service's */
    uint32_t algorithms; /* that the client can execute; 0: not said */
    double bench_s;      /* within which it can measure the cluster; 0: it cannot */
    enum hub_bench bench;
    enum session_step step;
    size_t n;
    struct assignment taken[ASSIGNMENTS_MOST];
};

static bool client_is_valid(const char *client) {
    return strlen(client) <= CLIENT_NAME_MAX && strcmp(client, "service");
}

static enum status read_client(const struct json_at *body, const char **out, struct error *err) {
    enum status st = json_get_string(body, "client", JSON_REQUIRED, out, err);
    if (!st && !client_is_valid(*out))
        st = json_fail(&(struct json_at){.node = body->node, .parent = body, .key = "client"}, err,
                       "must be a name of at most %d bytes that is not \"service\"", CLIENT_NAME_MAX);
    return st;
}

static enum status read_lease(const struct json_at *body, double *lease_s, struct error *err) {
    return json_get_number(body, "lease_s", JSON_OPTIONAL, LEAST_LEASE_S, MOST_LEASE_S, lease_s, err);
}

static bool add_assignment(cJSON *trials, struct hub_session *live, const struct assignment *a) {
    const struct tune_order *order = &a->suggestion.order;
    const double predicted_us = a->suggestion.predicted_us;
    cJSON *trial = cJSON_CreateObject();
    cJSON *strategy = strategy_write(order->strategy, hub_model(live), hub_cluster(live));
    if (!trial || !strategy || !cJSON_AddItemToArray(trials, trial)) {
        cJSON_Delete(strategy);
        return false;
    }
    return cJSON_AddNumberToObject(trial, "number", (double)a->number) &&
           cJSON_AddNumberToObject(trial, "attempt", (double)a->attempt) &&
           cJSON_AddNumberToObject(trial, "round", (double)a->suggestion.round) &&
           cJSON_AddStringToObject(trial, "proposer", a->suggestion.proposer) &&
           cJSON_AddNumberToObject(trial, "lease_s", a->lease_us / 1e6) &&
           cJSON_AddNumberToObject(trial, "iterations", (double)order->iterations) &&
           cJSON_AddNumberToObject(trial, "warmup", (double)order->warmup) &&
           (!(predicted_us > 0) || cJSON_AddNumberToObject(trial, "predicted_us", predicted_us)) &&
           (!(order->give_up_us > 0) || cJSON_AddNumberToObject(trial, "give_up_us", order->give_up_us)) &&
           (!order->weather || cJSON_AddNumberToObject(trial, "weather", (double)order->weather)) &&
           cJSON_AddStringToObject(trial, "strategy_id", order->strategy->id.hex) &&
           cJSON_AddItemToObject(trial, "strategy", strategy);
}

/* The word that tells a client which got fewer trials than it asked for what to do. */
static const char *step_word(const struct suggest *s) {
    return s->n ? "trials" : s->step == SESSION_OVER ? "over" : "wait";
}

static enum status suggest_effect(struct request *rq, struct store *store, void *context, struct response *rs,
                                  struct error *err) {
    struct suggest *s = context;
    (void)rq;
    enum status st = hub_take(s->live, store, s->client, (size_t)s->count, s->lease_s * 1e6, s->taken, &s->n, err);
    if (st)
        return st;
    cJSON *root = cJSON_CreateObject();
    bool whole = root && cJSON_AddStringToObject(root, "next", step_word(s));
    cJSON *trials = whole ? cJSON_AddArrayToObject(root, "trials") : NULL;
    whole = trials != NULL;
    for (size_t i = 0; i < s->n && whole; i++)
        whole = add_assignment(trials, s->live, &s->taken[i]);
    return response_json(rs, 200, root, whole, err);
}

static enum status read_suggest(struct request *rq, struct suggest *s, struct error *err) {
    static const char *const known[] = {"client", "count", "lease_s", "algorithms", "bench_s", NULL};
    const struct json_at body = request_body(rq);
    const char *algorithms;
    s->count = 1;
    enum status st = json_expect_object(&body, known, err);
    if (!st)
        st = read_client(&body, &s->client, err);
    if (!st)
        st = json_get_integer(&body, "count", JSON_OPTIONAL, 1, ASSIGNMENTS_MOST, &s->count, err);
    if (!st)
        st = request_algorithms(rq, &body, &algorithms, &s->algorithms, err);
    if (!st)
        st = json_get_number(&body, "bench_s", JSON_OPTIONAL, LEAST_LEASE_S, HUB_BENCH_MOST_US / 1e6, &s->bench_s, err);
    return st ? st : read_lease(&body, &s->lease_s, err);
}

/* Lock the session, and have it keep to what the client can execute. As request_lock. */
static enum status lock_narrowed(struct request *rq, struct suggest *s, bool *held, struct error *err) {
    enum status st = request_lock(rq, s->live, true, held, err);
    if (st || !*held || !s->algorithms)
        return st;
    st = hub_narrow(s->live, s->algorithms, err);
    if (st || hub_is_awake(s->live))
        return st;
    hub_unlock(s->live);
    return request_lock(rq, s->live, true, held, err);
}

static enum status bench_effect(struct request *rq, struct store *store, void *context, struct response *rs,
                                struct error *err) {
    struct suggest *s = context;
    const bool own = s->bench == HUB_BENCH_YOURS;
    uint64_t attempt = 0;
    (void)rq;
    enum status st = own ? hub_bench_take(s->live, store, s->client, s->bench_s * 1e6, &attempt, err) : ST_OK;
    if (st)
        return st;
    cJSON *root = cJSON_CreateObject();
    bool whole =
        root && cJSON_AddStringToObject(root, "next", own ? "bench" : "wait") && cJSON_AddArrayToObject(root, "trials");
    cJSON *bench = whole && own ? cJSON_AddObjectToObject(root, "bench") : NULL;
    whole = whole && (!own || (bench && cJSON_AddNumberToObject(bench, "attempt", (double)attempt) &&
                               cJSON_AddNumberToObject(bench, "lease_s", s->bench_s) &&
                               cJSON_AddStringToObject(bench, "cluster", hub_cluster(s->live)->id.hex)));
    return response_json(rs, 200, root, whole, err);
}

/* The quota is checked after the session, so that a session that is over says so whatever the quota. */
static enum status suggest_locked(struct request *rq, struct suggest *s, struct response *rs, struct error *err) {
    uint64_t granted = 0;
    size_t ready;
    enum status st = hub_make_ready(s->live, (size_t)s->count, &ready, &s->step, err);
    if (!st && ready)
        st = request_reserve(rq, 1, ready < s->count ? ready : s->count, &granted, rs, err);
    if (st)
        return st;
    s->count = granted;
    st = request_commit(rq, suggest_effect, s, rs, err);
    if (!st)
        hub_taken(s->live, s->n, s->taken);
    if (granted)
        request_settle(rq, granted, st ? 0 : s->n);
    return st;
}

/* The session's first trial is a bench, where the client can do one and somebody should. */
static enum status suggest_after_bench(struct request *rq, struct suggest *s, struct response *rs, struct error *err) {
    enum status st = s->bench_s > 0 ? hub_bench_look(s->live, s->client, &s->bench, err) : ST_OK;
    if (st)
        return st;
    if (!s->bench)
        return suggest_locked(rq, s, rs, err);
    st = request_commit(rq, bench_effect, s, rs, err);
    return st ? st : hub_catch_up(s->live, err);
}

enum status api_trials_suggest(struct request *rq, struct response *rs, struct error *err) {
    struct suggest s = {0};
    bool held = false;
    enum status st = read_suggest(rq, &s, err);
    if (!st)
        st = request_hub_session(rq, true, &s.live, err);
    if (st)
        return st;
    st = hub_is_own(s.live)
             ? error_set(err, ST_CONFLICT, "the service runs the trials of session %s itself", hub_session_id(s.live))
             : lock_narrowed(rq, &s, &held, err);
    if (held) {
        st = st ? st : suggest_after_bench(rq, &s, rs, err);
        hub_unlock(s.live);
    }
    hub_drop(s.live);
    return st;
}

/* ---- running ones ---- */

struct turn {
    struct hub_session *live;
    struct holder holder;
    const char *runner; /* what ran the trial; NULL: what the session says */
    double lease_s;     /* 0: as it is */
    size_t n;
    const double *iterations_us;
    struct tune_outcome outcome;
};

/* `known` are the members that the body may have. */
static enum status read_turn(struct request *rq, const char *const *known, const struct json_at *body, struct turn *t,
                             struct error *err) {
    enum status st = json_expect_object(body, known, err);
    if (!st)
        st = trial_number(rq, &t->holder.number, err);
    if (!st)
        st = json_get_string(body, "runner", JSON_OPTIONAL, &t->runner, err);
    if (!st)
        st = read_client(body, &t->holder.client, err);
    if (!st)
        st = json_get_integer(body, "attempt", JSON_REQUIRED, 1, 1ull << 32, &t->holder.attempt, err);
    return st;
}

/* Run `effect` on the trial and let the session catch up. A client that lost the trial gets the problem stale-attempt.
 */
static enum status take_turn(struct request *rq, struct turn *t, request_effect *effect, bool changes,
                             struct response *rs, struct error *err) {
    struct error behind;
    bool held;
    enum status st = request_hub_session(rq, true, &t->live, err);
    if (st)
        return st;
    st = request_lock(rq, t->live, false, &held, err);
    if (!held) {
        hub_drop(t->live);
        return st;
    }
    st = request_commit(rq, effect, t, rs, err);
    enum status caught = changes ? hub_catch_up(t->live, &behind) : ST_OK;
    hub_unlock(t->live);
    hub_drop(t->live);
    if (st == ST_CONFLICT)
        return error_code(err, st, problem_code(PROBLEM_STALE_ATTEMPT));
    return st ? st : caught ? error_pass(err, &behind) : ST_OK;
}

static enum status renew(struct turn *t, struct store *store, cJSON *root, struct error *err) {
    double length_us;
    enum status st = hub_renew(t->live, store, &t->holder, t->lease_s * 1e6, &length_us, err);
    if (!st && (!root || !cJSON_AddNumberToObject(root, "lease_s", length_us / 1e6)))
        st = error_no_memory(err);
    return st;
}

static enum status heartbeat_effect(struct request *rq, struct store *store, void *context, struct response *rs,
                                    struct error *err) {
    struct turn *t = context;
    bool stop = false;
    cJSON *root = cJSON_CreateObject();
    (void)rq;
    enum status st = renew(t, store, root, err);
    if (!st)
        st = hub_judge(t->live, store, &t->holder, t->n, t->iterations_us, &stop, err);
    if (st) {
        cJSON_Delete(root);
        return st;
    }
    return response_json(rs, 200, root, cJSON_AddBoolToObject(root, "stop", stop), err);
}

enum status api_trials_heartbeat(struct request *rq, struct response *rs, struct error *err) {
    static const char *const known[] = {"client", "attempt", "lease_s", NULL};
    const struct json_at body = request_body(rq);
    struct turn t = {0};
    enum status st = read_turn(rq, known, &body, &t, err);
    if (!st)
        st = read_lease(&body, &t.lease_s, err);
    return st ? st : take_turn(rq, &t, heartbeat_effect, false, rs, err);
}

enum status api_trials_report(struct request *rq, struct response *rs, struct error *err) {
    static const char *const known[] = {"client", "attempt", "iterations_us", NULL};
    const struct json_at body = request_body(rq);
    struct turn t = {0};
    enum status st = read_turn(rq, known, &body, &t, err);
    if (!st)
        st = record_iterations(rq, &body, &t.n, &t.iterations_us, err);
    return st ? st : take_turn(rq, &t, heartbeat_effect, false, rs, err);
}

static enum status end_effect(struct request *rq, struct store *store, void *context, struct response *rs,
                              struct error *err) {
    const struct turn *t = context;
    enum status st = hub_end_trial(t->live, store, &t->holder, t->runner, &t->outcome, err);
    return st ? st : answer_trial(rq, store, hub_session_id(t->live), t->holder.number, rs, err);
}

enum status api_trials_complete(struct request *rq, struct response *rs, struct error *err) {
    static const char *const known[] = {"client", "attempt", "iterations_us", "environment", "runner", "early", NULL};
    const struct json_at body = request_body(rq);
    struct turn t = {0};
    enum status st = read_turn(rq, known, &body, &t, err);
    if (!st)
        st = record_iterations(rq, &body, &t.n, &t.iterations_us, err);
    if (!st && !t.n)
        st = json_fail(&body, err, "needs iterations_us: what was measured");
    t.outcome = (struct tune_outcome){.state = RECORD_COMPLETE, .n = t.n, .iterations_us = t.iterations_us};
    if (!st)
        st = json_get_bool(&body, "early", JSON_OPTIONAL, &t.outcome.early, err);
    if (!st)
        st = record_environment(rq, &body, "environment", &t.outcome.environment, err);
    return st ? st : take_turn(rq, &t, end_effect, true, rs, err);
}

enum status api_trials_fail(struct request *rq, struct response *rs, struct error *err) {
    static const char *const known[] = {"client", "attempt", "reason", "infeasible", "runner", NULL};
    const struct json_at body = request_body(rq);
    struct turn t = {0};
    bool infeasible = false;
    enum status st = read_turn(rq, known, &body, &t, err);
    if (!st)
        st = json_get_string(&body, "reason", JSON_REQUIRED, &t.outcome.reason, err);
    if (!st)
        st = json_get_bool(&body, "infeasible", JSON_OPTIONAL, &infeasible, err);
    t.outcome.state = infeasible ? RECORD_INFEASIBLE : RECORD_FAILED;
    return st ? st : take_turn(rq, &t, end_effect, true, rs, err);
}

/* ---- events ---- */

struct stream {
    struct service *service;
    struct principal who;
    char sign_in[SIGN_IN_LENGTH + 1]; /* by which they listen; "": by a token */
    char session[64];
    int64_t after;
    bool begun;
};

/* Tokens are revoked, people sign out, and sessions are shared anew while somebody listens. */
static bool may_listen(void *context) {
    struct stream *s = context;
    struct stored_session stored;
    struct arena arena = {0};
    struct store *store;
    bool may = (!*s->sign_in || sign_ins_holds(s->service->sign_ins, s->sign_in)) &&
               tokens_confirm(s->service->tokens, &s->who) && !access_read(s->service->access, &store, NULL) &&
               !store_session_get(store, s->session, &arena, &stored, NULL) && session_may_see(&s->who, &stored);
    arena_release(&arena);
    return may;
}

/* Tell a listener who missed events that are no longer kept which is the last of these. */
static enum status tell_pruned(struct stream *s, struct store *store, struct event_text *out, struct error *err) {
    int64_t last = 0;
    char content[64];
    enum status st = s->begun ? ST_OK : event_pruned(store, s->session, &last, err);
    s->begun = !st;
    if (st || last <= s->after)
        return st;
    snprintf(content, sizeof content, "{\"after\":%lld,\"up_to\":%lld}", (long long)s->after, (long long)last);
    s->after = last;
    return event_append(out, (uint64_t)last, "pruned", content, err);
}

static enum status read_events(void *context, struct event_text *out, bool *more, bool *end, struct error *err) {
    struct stream *s = context;
    struct arena arena = {0};
    struct store *store;
    struct stored_event *events;
    size_t n = 0;
    *end = false;
    enum status st = access_read(s->service->access, &store, err);
    if (!st)
        st = tell_pruned(s, store, out, err);
    if (!st)
        st = event_list(store, s->session, s->after, EVENTS_AT_ONCE, &arena, &n, &events, err);
    for (size_t i = 0; i < n && !st; i++) {
        st = event_append(out, (uint64_t)events[i].id, events[i].kind, events[i].content, err);
        s->after = events[i].id;
    }
    *more = n == EVENTS_AT_ONCE;
    arena_release(&arena);
    return st;
}

/* Read the number of an event. A browser that has none yet sends nothing. */
static enum status read_last_event(struct request *rq, int64_t *out, struct error *err) {
    const char *id = rq->last_event_id ? rq->last_event_id : "";
    errno = 0;
    *out = *id ? strtoll(id, NULL, 10) : 0;
    return !errno && !id[strspn(id, "0123456789")]
               ? ST_OK
               : problem_fail(err, PROBLEM_BAD_REQUEST, "Last-Event-ID: \"%.40s\" is no number of an event", id);
}

enum status api_sessions_events(struct request *rq, struct response *rs, struct error *err) {
    struct stored_session stored;
    int64_t after;
    enum status st = request_session(rq, false, &stored, err);
    if (!st)
        st = read_last_event(rq, &after, err);
    if (st)
        return st;
    struct stream *s = calloc(1, sizeof *s);
    if (!s)
        return error_no_memory(err);
    s->service = rq->service;
    s->who = rq->principal;
    if (rq->authorization || !cookie_read(rq, s->sign_in))
        *s->sign_in = '\0';
    snprintf(s->session, sizeof s->session, "%s", stored.id);
    s->after = after;
    struct event_source source = {.context = s, .read = read_events, .allowed = may_listen, .release = free};
    snprintf(source.topic, sizeof source.topic, "%s", stored.id);
    rs->source = event_source_new(&source);
    if (!rs->source)
        free(s);
    return rs->source ? ST_OK : error_no_memory(err);
}
