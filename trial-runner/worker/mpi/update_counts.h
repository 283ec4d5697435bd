/* What a server of updates counts. */
#ifndef TRIAL_RUNNER_WORKER_MPI_UPDATE_COUNTS_H
#define TRIAL_RUNNER_WORKER_MPI_UPDATE_COUNTS_H

#include <stdint.h>

enum { UPDATE_DELAYS = 64 }; /* the last one counts all that are larger, too */

/* Of this rank's parts, without what warms up. */
struct update_counts {
    uint64_t useful, largest;         /* updates; largest: delay of one that was applied */
    uint64_t summed;                  /* applied updates that came in a sum with others */
    uint64_t dropped, late;           /* by the scheduler, at the worker; here, over the bound */
    uint64_t passed;                  /* models that a relay sent to workers of other nodes */
    double delays, squares;           /* sums over applied updates */
    uint64_t of_delay[UPDATE_DELAYS]; /* applied updates */
    uint64_t copies;                  /* that the replica was sent */
    double divergence_most;           /* of the replica, in norms of a typical update: its bound by update_copies.h */
    double window_us;                 /* in which the part of the largest message was measured; else 0 */
};

#endif
