/* See retry.h. */
#include "cli/client/retry.h"

static const double FIRST_US = 0.2e6, LONGEST_US = 10e6;

double retry_backoff(struct rng *rng, unsigned n) {
    double us = FIRST_US;
    for (unsigned i = 1; i < n && us < LONGEST_US; i++)
        us *= 2;
    us = us > LONGEST_US ? LONGEST_US : us;
    return rng_between(rng, us / 2, us);
}

double retry_wait(struct retry *retry, enum try_ending ending, double asked_us, double now_us) {
    retry->tries++;
    if (ending == TRY_DONE || (ending == TRY_UNCERTAIN && !retry->repeatable))
        return -1;
    if (retry->most && retry->tries >= retry->most)
        return -1;
    const double wait_us = retry_backoff(&retry->rng, retry->tries) + asked_us;
    return now_us + wait_us < retry->deadline_us ? wait_us : -1;
}
