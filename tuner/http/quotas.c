/* See quotas.h. */
#include "tuner/http/quotas.h"

bool request_reserve(struct request *rq, uint64_t least, uint64_t most, uint64_t *granted, struct response *rs) {
    const struct principal *who = &rq->principal;
    unsigned wait_s;
    if (quota_reserve(service_quota(rq->service), who, least, most, granted, &wait_s))
        return true;
    *granted = 0;
    if (!wait_s) {
        response_problem(rs, &rq->arena, PROBLEM_TOO_LARGE, "this token may have %llu trials a day, and these are %llu",
                         (unsigned long long)who->trials_per_day, (unsigned long long)least);
        return false;
    }
    const char *text = arena_printf(&rq->arena, "%u", wait_s);
    response_header(rs, HEADER_RETRY_AFTER, text ? text : "3600");
    response_problem(rs, &rq->arena, PROBLEM_QUOTA,
                     "this token may have %llu trials within 24 hours, which are used up for the next %u s",
                     (unsigned long long)who->trials_per_day, wait_s);
    return false;
}

void request_settle(struct request *rq, uint64_t granted, uint64_t used) {
    quota_settle(service_quota(rq->service), &rq->principal, granted, used);
}
