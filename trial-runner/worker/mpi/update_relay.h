/* The rank on a node that adds updates up on their way to the server (an aggregator, MLfabric §5.2), and passes models
 * on (a distributor, §10.3).
 *
 * The scheduler gives it groups of updates. It asks a group's workers one after another for theirs and adds these up.
 * It tells the scheduler when it has the sum, and sends the sum when it is told to, with the list of what is in it.
 *
 * A model that comes has a list of workers behind its body. Those on this node, and one that is alone on its node, get
 * the model from here; several on another node get it from that node's relay. */
#ifndef TRIAL_RUNNER_WORKER_MPI_UPDATE_RELAY_H
#define TRIAL_RUNNER_WORKER_MPI_UPDATE_RELAY_H

#include "trial-runner/worker/mpi/update.h"

/* To be called on every such rank, while the server runs update_server_run, which ends it. Returns how many parts of
 * models it sent for workers of other nodes in measured rounds. */
uint64_t update_relay_run(const struct update_run *run);

#endif
