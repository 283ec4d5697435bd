/* A message with an encoder, among all devices: encode, all-to-all, add, encode the sum, all-gather, decode
 * (strategy/encoder.h). Both ways are single sends and receives of all devices at once. Collectives would have to start
 * in one order everywhere, which the second way, ready at each device when it has its own part, does not.
 *
 * Part k of B blocks on n devices is k * B / n up to (k + 1) * B / n. */
#ifndef TRIAL_RUNNER_WORKER_MPI_ENCODED_H
#define TRIAL_RUNNER_WORKER_MPI_ENCODED_H

#include <stdbool.h>
#include <stdint.h>

#include "strategy/plan.h"
#include "trial-runner/worker/mpi/pool.h"
#include "trial-runner/worker/requests.h"
#include "trial-runner/worker/world.h"

struct encoded {
    char *data;     /* all blocks of the message */
    char *incoming; /* the own part of every device, one after another; NULL on the way back */
    uint32_t pending;
};

/* Encode the gradients of message m, f32 in one run, and send their parts, DONE_ENCODED each. */
void encoded_start(struct encoded *encoded, const float *gradients, const struct world *world, const struct plan *plan,
                   uint32_t m, struct pool *pool, struct requests *requests);

/* Go on once one of the requests has completed, or where there was none to wait for. True when `gradients` hold the
 * sum. */
bool encoded_goes_on(struct encoded *encoded, float *gradients, const struct world *world, const struct plan *plan,
                     uint32_t m, struct pool *pool, struct requests *requests);

#endif
