/* See quotas.h. */
#include "service/http/api/quotas.h"

#include "dataset/usage.h"
#include "service/http/transport/route.h"

enum status request_reserve(struct request *rq, uint64_t least, uint64_t most, uint64_t *granted, struct response *rs,
                            struct error *err) {
    const struct principal *who = &rq->principal;
    unsigned wait_s;
    if (quota_reserve(rq->service->quota, who, least, most, granted, &wait_s))
        return ST_OK;
    *granted = 0;
    if (!wait_s)
        return problem_fail(err, PROBLEM_TOO_LARGE, "this token may have %llu trials a day, and these are %llu",
                            (unsigned long long)who->trials_per_day, (unsigned long long)least);
    const char *text = arena_printf(&rq->arena, "%u", wait_s);
    response_header(rs, HEADER_RETRY_AFTER, text ? text : "3600");
    return problem_fail(err, PROBLEM_QUOTA,
                        "this token may have %llu trials within 24 hours, which are used up for the next %u s",
                        (unsigned long long)who->trials_per_day, wait_s);
}

void request_settle(struct request *rq, uint64_t granted, uint64_t used) {
    quota_settle(rq->service->quota, &rq->principal, granted, used);
}

/* Waiting a moment does not help: an administrator must raise the limit, or prune. */
static enum status refuse(struct request *rq, struct response *rs, const char *what, uint64_t most, struct error *err) {
    response_header(rs, HEADER_RETRY_AFTER, "3600");
    return problem_fail(err, PROBLEM_QUOTA,
                        "team %s may have %llu %s in the dataset, and has them; an administrator raises the "
                        "bound or prunes",
                        rq->principal.team, (unsigned long long)most, what);
}

enum status request_has_room(struct request *rq, struct store *store, struct response *rs, struct error *err) {
    const struct service_limits *most = &rq->service->limits;
    struct usage used;
    if (rq->principal.role == ROLE_ADMIN || rq->route->flags & ROUTE_GOES_ON || (!most->rows && !most->bytes))
        return ST_OK;
    enum status st = usage_get(store, rq->principal.team, &used, err);
    if (!st && most->rows && (uint64_t)used.rows >= most->rows)
        return refuse(rq, rs, "rows", most->rows, err);
    if (!st && most->bytes && (uint64_t)used.bytes >= most->bytes)
        return refuse(rq, rs, "bytes", most->bytes, err);
    return st;
}

enum status request_may_open(struct request *rq, struct store *store, struct response *rs, struct error *err) {
    const uint64_t most = rq->service->limits.sessions;
    uint64_t open = 0;
    if (rq->principal.role == ROLE_ADMIN || !most)
        return ST_OK;
    enum status st = usage_open_sessions(store, rq->principal.team, &open, err);
    if (st || open < most)
        return st;
    response_header(rs, HEADER_RETRY_AFTER, "60");
    return problem_fail(err, PROBLEM_QUOTA, "team %s may have %llu sessions open, and has them; stop or cancel one",
                        rq->principal.team, (unsigned long long)most);
}
