/* The end of the bench that a session offers before its first trial (service/hub.h): measured, failed, or given back.
 * It is given out by :suggest (trials.c). */
#include <string.h>

#include "base/json.h"
#include "service/http/api/api.h"
#include "service/http/api/sessions.h"

struct ending {
    struct hub_session *live;
    struct hub_bench_end end;
};

/* `known` are the members that the body may have. */
static enum status read_ending(struct request *rq, const char *const *known, struct json_at *body, struct ending *out,
                               struct error *err) {
    *body = request_body(rq);
    enum status st = json_expect_object(body, known, err);
    if (!st)
        st = json_get_string(body, "client", JSON_REQUIRED, &out->end.client, err);
    return st ? st : json_get_integer(body, "attempt", JSON_REQUIRED, 1, 1ull << 32, &out->end.attempt, err);
}

static enum status end_effect(struct request *rq, struct store *store, void *context, struct response *rs,
                              struct error *err) {
    const struct ending *e = context;
    bool used;
    (void)rq;
    enum status st = hub_bench_end(e->live, store, &e->end, &used, err);
    if (st)
        return st;
    cJSON *root = cJSON_CreateObject();
    const bool whole = root && cJSON_AddBoolToObject(root, "used", used) &&
                       (!used || cJSON_AddStringToObject(root, "cluster", e->end.measured->id.hex));
    return response_json(rs, 200, root, whole, err);
}

/* What is measured must be of the session's cluster. */
static enum status check_measured(struct request *rq, const struct ending *e, struct error *err) {
    const struct json_at body = request_body(rq);
    struct json_at at;
    bool same;
    if (!e->end.measured)
        return ST_OK;
    enum status st = cluster_is_same_but_measured(e->end.measured, hub_cluster(e->live), &same, err);
    json_has(&body, "cluster", &at);
    if (!st && !same)
        st = json_fail(&at, err, "is not the session's cluster %.12s with figures of a bench: something else differs",
                       hub_cluster(e->live)->id.hex);
    else if (!st && !e->end.measured->n_measurements)
        st = json_fail(&at, err, "has no \"measurements\"");
    return st;
}

static enum status end_locked(struct request *rq, struct ending *e, struct response *rs, struct error *err) {
    struct error behind;
    enum status st = check_measured(rq, e, err);
    if (!st)
        st = request_commit(rq, end_effect, e, rs, err);
    const enum status caught = hub_catch_up(e->live, &behind);
    if (st == ST_CONFLICT)
        return error_code(err, st, problem_code(PROBLEM_STALE_ATTEMPT));
    return st ? st : caught ? error_pass(err, &behind) : ST_OK;
}

static enum status end(struct request *rq, struct ending *e, struct response *rs, struct error *err) {
    bool held = false;
    enum status st = request_hub_session(rq, true, &e->live, err);
    if (!st)
        st = request_lock(rq, e->live, true, &held, err);
    if (held) {
        st = end_locked(rq, e, rs, err);
        hub_unlock(e->live);
    }
    hub_drop(e->live);
    return st;
}

enum status api_bench_complete(struct request *rq, struct response *rs, struct error *err) {
    static const char *const known[] = {"client", "attempt", "cluster", NULL};
    struct ending e = {0};
    struct cluster measured;
    struct json_at body, at;
    enum status st = read_ending(rq, known, &body, &e, err);
    if (!st && !json_has(&body, "cluster", &at))
        st = json_fail(&body, err, "needs cluster: its description with what was measured");
    if (!st)
        st = cluster_read(at.node, "request body: cluster", &measured, err);
    if (st)
        return st;
    e.end.measured = &measured;
    st = end(rq, &e, rs, err);
    cluster_release(&measured);
    return st;
}

enum status api_bench_fail(struct request *rq, struct response *rs, struct error *err) {
    static const char *const known[] = {"client", "attempt", "reason", "again", NULL};
    struct ending e = {0};
    struct json_at body;
    enum status st = read_ending(rq, known, &body, &e, err);
    if (!st)
        st = json_get_string(&body, "reason", JSON_REQUIRED, &e.end.reason, err);
    if (!st)
        st = json_get_bool(&body, "again", JSON_OPTIONAL, &e.end.again, err);
    return st ? st : end(rq, &e, rs, err);
}
