/* The end of a run in which a rank may have died unseen. */
#ifndef TRIAL_RUNNER_WORKER_WAIT_H
#define TRIAL_RUNNER_WORKER_WAIT_H

#include <mpi.h>

/* Wait until all n requests are done. When that takes longer than limit_us (INFINITY: no limit) a rank has died: say so
 * and end the job. `statuses` [n] may be MPI_STATUSES_IGNORE. */
void wait_for_all(int n, MPI_Request *requests, MPI_Status *statuses, double limit_us);

#endif
