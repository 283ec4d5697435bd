/* The outcome of a session (tuner/session/outcome.h), from the dataset alone: a request never waits for a session that
 * computes. */
#include "base/json.h"
#include "dataset/describe.h"
#include "service/http/api/api.h"
#include "service/http/api/sessions.h"

enum status request_outcome(struct request *rq, unsigned parts, struct session_outcome *out, struct error *err) {
    struct stored_session stored;
    struct store *store;
    *out = (struct session_outcome){0};
    enum status st = request_session(rq, false, &stored, err);
    if (!st)
        st = request_reader(rq, &store, err);
    if (!st)
        st = store_get_model(store, stored.model, &out->model, err);
    if (!st)
        st = store_get_cluster(store, stored.cluster, &out->cluster, err);
    if (!st)
        st = outcome_gather(store, stored.id, &out->model, &out->cluster, parts, &out->outcome, err);
    if (st)
        session_outcome_release(out);
    return st;
}

void session_outcome_release(struct session_outcome *o) {
    outcome_release(&o->outcome);
    model_release(&o->model);
    cluster_release(&o->cluster);
}

enum status request_best(struct request *rq, unsigned parts, struct session_outcome *out, struct error *err) {
    enum status st = request_outcome(rq, parts, out, err);
    if (st || out->outcome.best != SIZE_MAX)
        return st;
    session_outcome_release(out);
    return error_set(err, ST_NOT_FOUND, "no trial of the session has completed; GET its trials to see how each stands");
}

static bool add_strategy(cJSON *to, const char *key, const struct session_outcome *o, const struct strategy *which) {
    cJSON *strategy = strategy_write(which, &o->model, &o->cluster);
    if (strategy && cJSON_AddItemToObject(to, key, strategy))
        return true;
    cJSON_Delete(strategy);
    return false;
}

static bool add_measured(cJSON *to, const char *key, const struct outcome_row *row) {
    cJSON *o = cJSON_AddObjectToObject(to, key);
    return o && cJSON_AddStringToObject(o, "strategy_id", row->strategy) &&
           cJSON_AddStringToObject(o, "name", row->name) && cJSON_AddNumberToObject(o, "measured_us", row->us) &&
           outcome_write_interval(row, o) && json_add_known(o, "p95_us", row->p95_us) &&
           cJSON_AddNumberToObject(o, "iterations", (double)row->measured.n) &&
           cJSON_AddBoolToObject(o, "final", row->final);
}

enum status api_sessions_best(struct request *rq, struct response *rs, struct error *err) {
    struct session_outcome so;
    enum status st = request_best(rq, OUTCOME_STRATEGY, &so, err);
    if (st)
        return st;
    const struct outcome *o = &so.outcome;
    cJSON *root = cJSON_CreateObject();
    const bool whole =
        root && cJSON_AddNumberToObject(root, "trials", (double)o->ended) &&
        add_measured(root, "best", &o->rows[o->best]) &&
        (o->baseline == SIZE_MAX || add_measured(root, "baseline", &o->rows[o->baseline])) &&
        json_add_known(root, "speedup", o->speedup) && cJSON_AddBoolToObject(root, "overlap", o->overlap) &&
        cJSON_AddNumberToObject(root, "lower_bound_us", o->lower_bound_us) &&
        cJSON_AddNumberToObject(root, "gap", o->gap) && add_strategy(root, "strategy", &so, &o->strategy);
    session_outcome_release(&so);
    return response_json(rs, 200, root, whole, err);
}

enum status api_sessions_importance(struct request *rq, struct response *rs, struct error *err) {
    struct session_outcome so;
    enum status st = request_best(rq, OUTCOME_IMPORTANCE, &so, err);
    if (st)
        return st;
    cJSON *root = cJSON_CreateObject();
    const bool whole = root && outcome_write_lessons(&so.outcome, root);
    session_outcome_release(&so);
    return response_json(rs, 200, root, whole, err);
}

enum status api_sessions_outcome(struct request *rq, struct response *rs, struct error *err) {
    struct session_outcome so;
    enum status st = request_outcome(rq, OUTCOME_STRATEGY | OUTCOME_IMPORTANCE | OUTCOME_WEATHER, &so, err);
    if (st)
        return st;
    const struct outcome *o = &so.outcome;
    const struct stored_session *s = &o->session;
    cJSON *root = cJSON_CreateObject();
    const bool whole = root && cJSON_AddStringToObject(root, "schema", "syncopate.outcome/1") &&
                       cJSON_AddStringToObject(root, "session", s->id) &&
                       cJSON_AddStringToObject(root, "state", stored_session_state_word(s->state)) &&
                       (!s->reason || cJSON_AddStringToObject(root, "reason", s->reason)) &&
                       cJSON_AddNumberToObject(root, "trials", (double)o->ended) &&
                       cJSON_AddNumberToObject(root, "lower_bound_us", o->lower_bound_us) && outcome_write(o, root) &&
                       outcome_write_lessons(o, root) &&
                       (o->best == SIZE_MAX || add_strategy(root, "strategy", &so, &o->strategy)) &&
                       (o->stale.best == SIZE_MAX || add_strategy(root, "stale_strategy", &so, &o->stale_strategy));
    session_outcome_release(&so);
    return response_json(rs, 200, root, whole, err);
}
