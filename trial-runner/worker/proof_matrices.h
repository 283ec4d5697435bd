/* What a message by powersgd comes back as: a plain reading, in doubles, of what strategy/encoder.h says.
 *
 * A gradient is zero but for its samples, and what is sent and kept of it lies in their rows and columns. So a small
 * matrix of these rows and columns has all of it, for every device. From iteration to iteration rounding grows until
 * another P is as good. So each iteration is worked out from what really came back in those before. */
#ifndef TRIAL_RUNNER_WORKER_PROOF_MATRICES_H
#define TRIAL_RUNNER_WORKER_PROOF_MATRICES_H

#include <stdint.h>

#include "strategy/plan.h"
#include "trial-runner/worker/layout.h"

struct proof_matrices;

/* Of message m. Never NULL: ends the job when memory is out. */
struct proof_matrices *proof_matrices_new(const struct plan *plan, uint32_t m);
void proof_matrices_free(struct proof_matrices *matrices); /* NULL is allowed */

/* The next iteration. back[j][k] is what came back in the row of sample j and the column of sample k; of samples of one
 * axis those with j = k. Returns the first row in which something is wrong, or the number of samples. */
uint32_t proof_matrices_find_wrong(struct proof_matrices *matrices, uint32_t iteration,
                                   double back[LAYOUT_SAMPLES][LAYOUT_SAMPLES]);

#endif
