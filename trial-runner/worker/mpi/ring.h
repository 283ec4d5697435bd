/* Half of a ring all-reduce, or of sharded parameters a reduce-scatter or an all-gather: the sum of a part to each
 * device, or the parts from each to all. All devices are one ring, or each group of devices that the message names
 * (struct message, `ranks`). Among replicas of a part it is both halves, one after the other, of that part alone.
 *
 * The ring is made of single sends and receives. Open MPI's reduce-scatters are no rings (MPI_Ireduce_scatter_block
 * takes about ten times as long as an all-gather of the same bytes), and collectives would have to start in one order
 * everywhere, which second halves, ready at each device when it has its own part, do not.
 *
 * Of n devices in a ring each has a part (trial-runner/worker/parts.h). In step s device r sends part r - 1 - s to r +
 * 1 and adds part r - 2 - s from r - 1 (all modulo n), so that after n - 1 steps it has the sum of part r, its own; in
 * the second half it sends part r - s and takes part r - 1 - s. */
#ifndef TRIAL_RUNNER_WORKER_MPI_RING_H
#define TRIAL_RUNNER_WORKER_MPI_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "strategy/plan.h"
#include "trial-runner/worker/mpi/pool.h"
#include "trial-runner/worker/parts.h"
#include "trial-runner/worker/requests.h"
#include "trial-runner/worker/world.h"

struct ring {
    struct kernel_devices members;
    struct part whole; /* what the ring moves, in as many parts as it has devices */
    char *data;        /* the elements of `whole` */
    uint64_t chunk;    /* how many bytes go at once, at most (chunks_bytes) */
    void *incoming;    /* while it adds: the part that is being received */
    bool adds;         /* first half */
    uint32_t step;     /* 0 .. devices - 1; that many are done */
    uint32_t pending;
};

/* Ready for the first step, with what it moves at `data`: the message's elements or, among replicas, those of the part.
 * A message of `eager_bytes` needs no answer; 0: that is not known. */
void ring_begin(struct ring *ring, const struct world *world, const struct message *message, char *data,
                uint64_t eager_bytes);

/* Whether steps are left. Among replicas the second half begins here when the first is over. */
bool ring_goes_on(struct ring *ring, const struct message *message);

/* Post step ring->step of message m: sends and receives, DONE_RING each. */
void ring_post(struct ring *ring, const struct world *world, const struct plan *plan, uint32_t m, struct pool *pool,
               struct requests *requests);

/* One of them has completed. True when the step is done, what came is added, and `step` is the next. */
bool ring_came(struct ring *ring, const struct world *world, const struct plan *plan, uint32_t m, struct pool *pool);

#endif
