/* The server of updates: applies them one by one in the order in which they come, each making a version of the model,
 * and sends each worker the newest version when the worker may go on.
 *
 *   stale_synchronous  a worker goes on when no other has ended more than `staleness` iterations fewer
 *   asynchronous       at once; an update whose delay is over the bound is dropped
 *   synchronous        when all updates of the iteration are in the model; these make one version
 *
 * With a scheduler (update_schedule.h) a worker says when its update is ready, and sends it when it is told to.
 *
 * Each message of the plan is a part of the model with versions of its own. The server of the largest ends the run:
 * update_target says when, and the version that it sends tells the workers. Where workers learn, it keeps the weights
 * of up to LEARNED_MOST versions, at equal distances, and after the run tells their losses. */
#ifndef TRIAL_RUNNER_WORKER_MPI_UPDATE_SERVER_H
#define TRIAL_RUNNER_WORKER_MPI_UPDATE_SERVER_H

#include <stdint.h>

#include "trial-runner/worker/mpi/learned.h"
#include "trial-runner/worker/mpi/update.h"
#include "trial-runner/worker/mpi/update_counts.h"

/* To be called on every server, while workers run update_worker_run. Prints a line an iteration: so many updates as
 * there are workers. A wrong update ends the job. *learned is on the server of the largest message alone, unless its
 * replica took it for dead and is the server now, and for its owner to release. */
void update_server_run(const struct update_run *run, struct update_counts *out, struct learned *learned);

#endif
