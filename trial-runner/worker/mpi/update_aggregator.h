/* An aggregator of updates (MLfabric §5.2): the rank on a node that adds updates up on their way to the server.
 *
 * The scheduler gives it groups. It asks a group's workers one after another for their updates and adds these up. It
 * tells the scheduler when it has the sum, and sends the sum when it is told to, with the list of what is in it. */
#ifndef TRIAL_RUNNER_WORKER_MPI_UPDATE_AGGREGATOR_H
#define TRIAL_RUNNER_WORKER_MPI_UPDATE_AGGREGATOR_H

#include "trial-runner/worker/mpi/update.h"

/* To be called on every aggregator, while the server runs update_server_run, which ends it. */
void update_aggregator_run(const struct update_run *run);

#endif
