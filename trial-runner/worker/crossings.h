/* Where the rows of a message's samples cross the columns of others: there lie all numbers that powersgd leaves of a
 * message whose gradients are zero but for its samples. */
#ifndef TRIAL_RUNNER_WORKER_CROSSINGS_H
#define TRIAL_RUNNER_WORKER_CROSSINGS_H

#include <stdint.h>

#include "strategy/plan.h"
#include "trial-runner/worker/layout.h"

#define CROSSINGS_NOWHERE UINT64_MAX

/* places[j][k]: the offset, among the gradients, of the element in the row of sample j and the column of sample k, or
 * CROSSINGS_NOWHERE where these are of different matrices. A sample of a variable of one axis crosses itself alone. */
void crossings_find(const struct layout *layout, const struct plan *plan, uint32_t m,
                    uint64_t places[LAYOUT_SAMPLES][LAYOUT_SAMPLES]);

#endif
