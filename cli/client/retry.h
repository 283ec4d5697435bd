/* Whether a request that went wrong is sent again, and when: waits that double, shortened at random so that the clients
 * of a service that comes back do not all come at once. A wait is never shorter than the service's Retry-After.
 * Units: microseconds, of any one clock. */
#ifndef CLI_CLIENT_RETRY_H
#define CLI_CLIENT_RETRY_H

#include <stdbool.h>

#include "base/rng.h"

enum try_ending {
    TRY_DONE,     /* an answer, good or bad */
    TRY_UNSENT,   /* no connection: nothing was sent */
    TRY_REFUSED,  /* 429, 503: the service did nothing */
    TRY_UNCERTAIN /* cut off, timed out, 502, 504: it may have been done */
};

struct retry {
    double deadline_us;
    unsigned tries, most; /* made so far, and at most; 0: no limit but the deadline */
    bool repeatable;      /* sent twice, it has the same effect as sent once */
    struct rng rng;
};

/* After a try that ended so at now_us: how long to wait before the next, or a negative number: no more. `asked_us` is
 * what the service asked for, or 0. */
double retry_wait(struct retry *retry, enum try_ending ending, double asked_us, double now_us);

/* The wait after the n-th failure in a row (n from 1): between half of and all of 0.2 s, 0.4 s, ... up to 10 s. */
double retry_backoff(struct rng *rng, unsigned n);

#endif
