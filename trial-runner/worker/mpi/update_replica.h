/* The replica of a server of updates (MLfabric §3.3, §5.3): it applies copies of the server's updates in the server's
 * order, and is the server when that one dies.
 *
 * Server and replica speak by update_sequence.h and update_copies.h. A server that the replica has not heard of for
 * UPDATE_SILENCE_US is dead to all:
 *   1. The replica tells everybody. Workers and relays forget what they have on the way to or from the server. A server
 *      that is alive after all stops.
 *   2. Every worker says where it stands, and sends all updates that it has kept since the last copy. So nothing is
 *      lost while workers live, whatever the bound. The bound says how much these are at most.
 *   3. The replica applies them in the server's order, each once, and orders those of which it does not know when the
 *      server would have applied them. Where it comes by the version of a model that a worker has, both must be the
 *      same model.
 *   4. It answers the workers that wait, and serves.
 * Workers that have the last model stay until the replica lets them go, so that there is always someone to ask.
 *
 * A worker, a relay or a replica that dies ends the trial (UPDATE_LOST_US). Threads: one. Memory that runs out ends the
 * job. */
#ifndef TRIAL_RUNNER_WORKER_MPI_UPDATE_REPLICA_H
#define TRIAL_RUNNER_WORKER_MPI_UPDATE_REPLICA_H

#include <stdint.h>

#include "trial-runner/worker/mpi/learned.h"
#include "trial-runner/worker/mpi/update.h"
#include "trial-runner/worker/mpi/update_counts.h"

struct update_server;
struct replica;

/* To be called on the replica's rank. *out is what the server counted, or this rank where it took over. *learned is for
 * its owner to release, and to tell where this rank took over. Says {"event":"takeover",...} then. */
void update_replica_run(const struct update_run *run, struct update_counts *out, struct learned *learned);

/* What update_server.c tells the replica in its rank: a control message; whose updates are applied
 * next; a step was applied; a worker's copy came; a round has ended; all is over. */
void update_replica_take(struct update_server *s, const struct update_head *head);
void update_replica_follows(struct update_server *s, uint32_t n, const struct update_member *members);
void update_replica_applied(struct update_server *s);
void update_replica_has(struct update_server *s, uint32_t worker);
void update_replica_round(struct replica *replica, uint32_t round, double time_us);
void update_replica_releases(struct update_server *s);

#endif
