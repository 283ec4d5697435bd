/* What the handlers of sessions and of their trials share. */
#ifndef SERVICE_HTTP_API_SESSIONS_H
#define SERVICE_HTTP_API_SESSIONS_H

#include "service/http/transport/request.h"
#include "service/hub.h"
#include "tuner/session/outcome.h"

/* Whether `who` may see the session: it is their team's, or shared with their team or with all. An administrator sees
 * every session. */
bool session_may_see(const struct principal *who, const struct stored_session *session);

/* The session of this id, which the asker may see. Fails: ST_NOT_FOUND. */
enum status request_session_of(struct request *request, const char *id, struct stored_session *out, struct error *err);

/* The session of the path, which the asker may see; to `steer` it must be its team's. Fails: ST_NOT_FOUND,
 * PROBLEM_FORBIDDEN. */
enum status request_session(struct request *request, bool steer, struct stored_session *out, struct error *err);

/* As request_session, but gets the session from the hub. Give it back with hub_drop. */
enum status request_hub_session(struct request *request, bool steer, struct hub_session **out, struct error *err);

/* Lock the session, and read it into memory if it is not there. Unlock it with hub_unlock. *held is false when another
 * thread holds the lock or reading takes long: then return ST_OK at once, and the handler is called again. `search`:
 * its search will be used, which must know what other services did (hub_search). Fails: as hub_wake. */
enum status request_lock(struct request *request, struct hub_session *live, bool search, bool *held, struct error *err);

/* Why a session without trials has none, and what to do. */
const char *session_note(const struct stored_session *session);

/* The member "algorithms" of `body`, as text and as a set (algorithms_parse); NULL and 0 without one. Fails:
 * ST_INVALID, with the place. */
enum status request_algorithms(struct request *request, const struct json_at *body, const char **names, uint32_t *set,
                               struct error *err);

/* The member "shared" of `body` ("all", "team", or a list of teams) as the dataset has it; without one, with all. */
enum status request_shared(struct request *request, const struct json_at *body, const char **out, struct error *err);

/* The outcome so far of the session of the path, with its model and cluster; `parts` as for outcome_gather.
 * request_best fails with ST_NOT_FOUND while no trial has completed. Release with session_outcome_release. */
struct session_outcome {
    struct model model;
    struct cluster cluster;
    struct outcome outcome;
};
enum status request_outcome(struct request *request, unsigned parts, struct session_outcome *out, struct error *err);
enum status request_best(struct request *request, unsigned parts, struct session_outcome *out, struct error *err);
void session_outcome_release(struct session_outcome *outcome);

#endif
