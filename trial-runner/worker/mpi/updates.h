/* Run a plan whose workers send whole updates (strategy/consistency.h), in place of execute.c's event loop.
 *
 * `iterations` and `warmup` count rounds of so many applied updates as there are workers, and a line "iteration" is one
 * of these rounds. A dropped update is no progress, so it makes its round longer. */
#ifndef TRIAL_RUNNER_WORKER_MPI_UPDATES_H
#define TRIAL_RUNNER_WORKER_MPI_UPDATES_H

#include "trial-runner/worker/execute.h"

/* As execute_run. Afterwards device 0 prints the lines "updates" and, for each device, "worker"; out->time_us is NULL,
 * since no device knows the rounds. */
void updates_run(const struct plan *plan, const struct world *world, const struct execute_options *options,
                 struct execute_result *out);

#endif
