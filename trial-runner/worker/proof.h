/* What samples of a message with an encoder come back as.
 *
 * Devices write small whole numbers at a message's samples, which all know, and zero elsewhere (mpi/gradients.h,
 * nccl/gradients.h). So every device can work out by itself what the encoder leaves of them, without any of the
 * gradients. */
#ifndef TRIAL_RUNNER_WORKER_PROOF_H
#define TRIAL_RUNNER_WORKER_PROOF_H

#include <stdint.h>

#include "strategy/plan.h"
#include "trial-runner/worker/layout.h"

struct proof_matrices;

struct proof {
    /* [n_messages] topk: what each device has not sent so far of each sample, [n_devices * LAYOUT_SAMPLES]. */
    float **kept;
    struct proof_matrices **matrices; /* [n_messages] powersgd; NULL: not yet */
};

void proof_init(struct proof *proof, const struct plan *plan);

/* Not of powersgd: all samples of message m, in the next iteration. O(samples² * devices). */
void proof_next(struct proof *proof, const struct plan *plan, uint32_t m, uint32_t iteration,
                float samples[LAYOUT_SAMPLES]);

/* powersgd: the first sample in whose row something is wrong in the next iteration, or as many as there are
 * (proof_matrices.h). */
uint32_t proof_find_wrong(struct proof *proof, const struct plan *plan, uint32_t m, uint32_t iteration,
                          double back[LAYOUT_SAMPLES][LAYOUT_SAMPLES]);

void proof_release(struct proof *proof, const struct plan *plan);

#endif
