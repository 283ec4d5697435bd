/* powersgd of a message (strategy/encoder.h): what its two all-reduces bring to all devices, and what these make of it.
 *
 * `thin` is the message's bytes: first P of each matrix, and variables of one axis as they are; then Q of each matrix
 * (trial-runner/worker/thin.h).
 * `kept` is what a device has from iteration to iteration: an f32 for each element of the message, of what was not sent
 * so far, and behind them all Q. Zeros at first. */
#ifndef TRIAL_RUNNER_WORKER_MPI_POWER_H
#define TRIAL_RUNNER_WORKER_MPI_POWER_H

#include <stdint.h>

#include "strategy/plan.h"

/* Add the gradients, f32 in one run, to what was kept, and write what the first all-reduce adds. O(elements * rank). */
void power_begin(float *thin, const float *gradients, float *kept, const struct plan *plan, uint32_t m);

/* Between them: from the sum of P, what the second all-reduce adds. */
void power_turn(float *thin, float *kept, const struct plan *plan, uint32_t m);

/* At the end: the sum of gradients, and what is kept of this device's. */
void power_end(float *sum, float *thin, float *kept, const struct plan *plan, uint32_t m);

#endif
