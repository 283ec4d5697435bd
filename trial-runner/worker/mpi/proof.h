/* What samples of a message with an encoder come back as.
 *
 * Devices write small whole numbers at a message's samples, which all know, and zero elsewhere (mpi/gradients.h). So
 * every device can work out by itself what the encoder leaves of them, without any of the gradients. */
#ifndef TRIAL_RUNNER_WORKER_MPI_PROOF_H
#define TRIAL_RUNNER_WORKER_MPI_PROOF_H

#include <stdint.h>

#include "strategy/plan.h"

/* Sample k of message m. O(samples * devices). */
float proof_of_sample(const struct plan *plan, uint32_t m, uint32_t iteration, uint32_t k);

#endif
