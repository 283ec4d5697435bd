/* Half of a ring all-reduce among all devices, or of sharded parameters a reduce-scatter or an all-gather: the sum of a
 * part to each of them, or the parts from each to all.
 *
 * The ring is made of single sends and receives. Open MPI's reduce-scatters are no rings (MPI_Ireduce_scatter_block
 * takes about ten times as long as an all-gather of the same bytes), and collectives would have to start in one order
 * everywhere, which second halves, ready at each device when it has its own part, do not.
 *
 * Part k of E elements on n devices is k * E / n up to (k + 1) * E / n. In step s device r sends part r - s to r + 1
 * and adds part r - s - 1 from r - 1 (all modulo n), so that after n - 1 steps it has the sum of part r + 1; in the
 * second half it sends part r + 1 - s and takes part r - s. */
#ifndef TRIAL_RUNNER_WORKER_MPI_RING_H
#define TRIAL_RUNNER_WORKER_MPI_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "strategy/plan.h"
#include "trial-runner/worker/mpi/pool.h"
#include "trial-runner/worker/requests.h"
#include "trial-runner/worker/world.h"

struct ring {
    char *data;     /* all elements of the message */
    uint64_t chunk; /* how many bytes go at once, at most (chunks_bytes) */
    void *incoming; /* first half: the part that is being received */
    uint32_t step;  /* 0 .. devices - 1; that many are done */
    uint32_t pending;
};

/* Elements of a message, from `begin` to before `end`. */
struct ring_part {
    uint64_t begin, end;
};

/* The part that device `device` of n has the sum of after a reduce-scatter, and brings to an all-gather. */
struct ring_part ring_part_of_device(const struct message *message, uint32_t device, uint32_t n);

/* Post step ring->step of message m: sends and receives, DONE_RING each. `data`, `chunk` and `step` are set. */
void ring_post(struct ring *ring, const struct world *world, const struct plan *plan, uint32_t m, struct pool *pool,
               struct requests *requests);

/* One of them has completed. True when the step is done, what came is added, and `step` is the next. */
bool ring_came(struct ring *ring, const struct world *world, const struct plan *plan, uint32_t m, struct pool *pool);

#endif
