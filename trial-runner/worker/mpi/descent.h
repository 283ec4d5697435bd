/* Training under a synchronous plan: what a worker adds to the largest message, and what it does with the sum.
 *
 * In front of that message lie a device's changes of the weights, -rate * gradient, in the message's element type.
 * Their sum over all devices is one step with momentum, as in trial-runner/training.h. Every worker makes this step, so
 * all have the same weights, which is checked at the end. The message of an iteration is done before the next one's is
 * ready, so no gradient is older than its weights.
 * Threads: one. */
#ifndef TRIAL_RUNNER_WORKER_MPI_DESCENT_H
#define TRIAL_RUNNER_WORKER_MPI_DESCENT_H

#include <stdint.h>

#include "trial-runner/training.h"
#include "trial-runner/worker/execute.h"
#include "trial-runner/worker/mpi/gradients.h"
#include "trial-runner/worker/mpi/learned.h"
#include "trial-runner/worker/world.h"

/* Zeroed: nothing is learned. */
struct descent {
    const struct world *world;
    const struct execute_options *options;
    struct training training;
    struct learned learned;
    uint32_t message;
    double *weights, *step; /* [n_weights] */
};

/* Take the front of the largest message; the owner sets learned.began_us. Nothing where nothing is learned. Ends the
 * job when memory or room is out. */
void descent_init(struct descent *descent, struct gradients *gradients, const struct world *world,
                  const struct execute_options *options);

/* The message is about to go; its sum is there. Of other messages nothing happens. */
void descent_put(struct descent *descent, struct gradients *gradients, uint32_t message, uint32_t iteration);
void descent_take(struct descent *descent, const struct gradients *gradients, uint32_t message, uint32_t iteration);

/* After the run, by all workers together: prove that all have the same weights; device 0 tells the losses. */
void descent_end(struct descent *descent);

#endif
