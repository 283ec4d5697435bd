/* What the handlers of sessions and of their trials share. */
#ifndef SERVICE_HTTP_API_SESSIONS_H
#define SERVICE_HTTP_API_SESSIONS_H

#include "service/http/transport/request.h"
#include "service/hub.h"

/* Its team's, shared with the asker's, or with all; an administrator sees every session. */
bool session_may_see(const struct principal *who, const struct stored_session *session);

/* The session of the path, which the asker may see; to `steer` it must be its team's. *refused: the response is
 * written. Fails: ST_NOT_FOUND. */
enum status request_session(struct request *request, bool steer, struct stored_session *out, struct response *response,
                            bool *refused, struct error *err);

/* The same in the hub, to be given back with hub_drop; NULL when refused. */
enum status request_served(struct request *request, bool steer, struct hub_session **out, struct response *response,
                           struct error *err);

/* Lock it and read it into memory where it is not; to be given up with hub_unlock. *held false: somebody else has it,
 * or reading it takes long; then return ST_OK at once, and the handler is called again. Fails: as hub_wake. */
enum status request_lock(struct request *request, struct hub_session *served, bool *held, struct error *err);

/* The member "shared" of `body` ("all", "team", or a list of teams) as the dataset has it; without one, with all. */
enum status request_shared(struct request *request, const struct json_at *body, const char **out, struct error *err);

/* What the session of the path came to so far: `write` fills in *root, which is an empty object then, while the session
 * is locked. *out is that object, NULL when refused (the response is written). Fails: ST_NOT_FOUND (no trial has
 * completed). */
typedef enum status outcome_write(struct hub_session *served, const struct tuning *tuning, void *context, cJSON *root,
                                  struct error *err);
enum status request_outcome(struct request *request, outcome_write *write, void *context, cJSON **out,
                            struct response *response, struct error *err);

#endif
