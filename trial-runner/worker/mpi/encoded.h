/* A message with an encoder, among all devices (strategy/encoder.h). int8: encode, all-to-all, add, encode the sum,
 * all-gather, decode. topk: take the largest elements, all-gather, add. powersgd: make P, all-to-all, add, all-gather,
 * make Q, and these two ways once more (mpi/power.h). Each way is n - 1 sends and receives on n devices. Device r sends
 * to r + 1 first, then to r + 2 (modulo n), so that not all devices send to device 0 first. A device posts all of a way
 * at once. If each send waited for the one before, it would wait for a device that encodes (docs/decisions.md). A part
 * goes in chunks that need no answer first: on a slow port answers wait behind what others send, and a message took 30%
 * longer in the lab. A collective would not do: all devices would have to start it in one order, but each device is
 * ready for the second way when it has its own part.
 *
 * Part k of B blocks on n devices is k * B / n up to (k + 1) * B / n. With topk part k is what device k sends. With
 * powersgd a block is an element of what an all-reduce adds. */
#ifndef TRIAL_RUNNER_WORKER_MPI_ENCODED_H
#define TRIAL_RUNNER_WORKER_MPI_ENCODED_H

#include <stdbool.h>
#include <stdint.h>

#include "strategy/plan.h"
#include "trial-runner/worker/mpi/pool.h"
#include "trial-runner/worker/requests.h"
#include "trial-runner/worker/world.h"

struct encoded {
    char *data;     /* all parts */
    bool second;    /* powersgd: it is in its second all-reduce */
    char *incoming; /* the own part of every device, one after another; NULL on the way back */
    uint64_t chunk; /* how many bytes go at once, at most */
    bool posted;    /* all of the present way */
    uint32_t pending;
};

/* Encode the gradients of message m, f32 in one run. Nothing is sent yet. `residual`, of topk and powersgd alone, has
 * layout_kept_bytes: what was not sent so far, which is added before, and what is not sent now; zeros at first.
 * eager_bytes: 0 where it is not known. */
void encoded_begin(struct encoded *encoded, const float *gradients, float *residual, const struct world *world,
                   const struct plan *plan, uint32_t m, uint64_t eager_bytes, struct pool *pool);

/* Go on, at first and whenever one of the requests, DONE_ENCODED each, has completed. True when `gradients` hold the
 * sum. */
bool encoded_goes_on(struct encoded *encoded, float *gradients, float *residual, const struct world *world,
                     const struct plan *plan, uint32_t m, struct pool *pool, struct requests *requests);

#endif
