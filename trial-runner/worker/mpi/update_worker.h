/* A worker that sends updates: compute, push, pull the newest model, and so on until the run ends. */
#ifndef TRIAL_RUNNER_WORKER_MPI_UPDATE_WORKER_H
#define TRIAL_RUNNER_WORKER_MPI_UPDATE_WORKER_H

#include <stdint.h>

#include "trial-runner/worker/mpi/update.h"

struct update_worker_result {
    uint32_t iterations; /* all, also those that warm up */
    double iteration_us; /* mean of the measured ones; of all, where a worker has fewer than warm up */
    uint64_t checked;    /* samples of models found right */
};

/* To be called on every worker, while servers run update_server_run; they begin together. A wrong model ends the job.
 */
void update_worker_run(const struct update_run *run, struct update_worker_result *out);

#endif
