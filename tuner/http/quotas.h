/* Daily quotas of trials at requests (service/quota.h). */
#ifndef TUNER_HTTP_QUOTAS_H
#define TUNER_HTTP_QUOTAS_H

#include "tuner/http/request.h"
#include "tuner/http/response.h"

/* Reserve `least` to `most` trials of the asker's quota: *granted, to be settled. False: the response says why not and
 * when to come again. */
bool request_reserve(struct request *request, uint64_t least, uint64_t most, uint64_t *granted,
                     struct response *response);

/* Of those `granted`, `used` were; the rest is given back. */
void request_settle(struct request *request, uint64_t granted, uint64_t used);

#endif
