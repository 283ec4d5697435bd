/* Quotas at requests: trials a day (service/quota.h), and what a team may have in the dataset (dataset/usage.h). */
#ifndef SERVICE_HTTP_API_QUOTAS_H
#define SERVICE_HTTP_API_QUOTAS_H

#include "service/http/transport/request.h"
#include "service/http/transport/response.h"

/* Reserve `least` to `most` trials of the asker's quota: *granted, to be settled. Fails: PROBLEM_TOO_LARGE,
 * PROBLEM_QUOTA; the response says when to repeat the request. */
enum status request_reserve(struct request *request, uint64_t least, uint64_t most, uint64_t *granted,
                            struct response *response, struct error *err);

/* Of the `granted` trials `used` were used; give the rest back. */
void request_settle(struct request *request, uint64_t granted, uint64_t used);

/* Whether the team may write more. Fails: PROBLEM_QUOTA when its rows or bytes are used up. It is checked before the
 * effect, so the last request may exceed the limit by what it adds. Requests that go on with a trial or a session
 * always pass, and so do administrators. */
enum status request_has_room(struct request *request, struct store *store, struct response *response,
                             struct error *err);

/* Likewise whether the team may open another session. */
enum status request_may_open(struct request *request, struct store *store, struct response *response,
                             struct error *err);

#endif
