/* The outcome of a service's session, by one request. */
#include "cli/remote.h"
#include "cli/remote_copy.h"
#include "cli/remote_session.h"

static enum status fetch(struct client *client, const char *session, const struct inputs *inputs, struct outcome *out,
                         struct error *err) {
    cJSON *json = NULL;
    enum status st = remote_get(client, &json, err, "/api/v1/sessions/%s/outcome", session);
    if (!st)
        st = outcome_read(json, &inputs->model, &inputs->cluster, out, err);
    cJSON_Delete(json);
    return st;
}

/* An older service has no such route: its records say the same. */
static enum status compute(struct client *client, const char *session, const struct inputs *inputs, struct outcome *out,
                           struct error *err) {
    struct store *store;
    enum status st = remote_session_copy(client, session, &store, err);
    if (st)
        return st;
    st = outcome_gather(store, session, &inputs->model, &inputs->cluster,
                        OUTCOME_STRATEGY | OUTCOME_IMPORTANCE | OUTCOME_WEATHER, out, err);
    store_close(store);
    return st;
}

enum status remote_session_answer(struct client *client, const struct remote_session *s, const struct inputs *inputs,
                                  struct outcome *out, struct error *err) {
    struct outcome outcome = {0};
    enum status st = fetch(client, s->id, inputs, &outcome, err);
    if (st == ST_NOT_FOUND)
        st = compute(client, s->id, inputs, &outcome, err);
    if (st == ST_NOT_FOUND || (!st && outcome.best == SIZE_MAX)) {
        outcome_release(&outcome);
        return error_set(err, ST_INFEASIBLE, "session %s is %s, and no trial of it completed%s%s", s->id, s->state,
                         *s->reason ? ": " : "", s->reason);
    }
    if (st)
        return st;
    *out = outcome;
    out->stop = tune_stop_of(s->reason);
    return ST_OK;
}
