/* MLfabric's scheduler of updates and models (§5.1) in the rank of the first server: what simulator/updates_schedule.c
 * does, for real.
 *
 * Updates that are ready wait at their workers until the next multiple of batch_us, or until no other worker can join
 * them. Then they are ordered (strategy/updates/order.h) on the rates that a monitor has reported, behind what is still
 * on its way. An update that cannot keep its bound is dropped. The others go when it is their turn
 * (strategy/updates/turns.h).
 *
 * Where the model lies on several servers (§10.2) an update is ordered with all its parts, and each part has a turn of
 * its own at its server.
 *
 * Where there are aggregators, updates are grouped (strategy/updates/aggregate.h), and a group's turn is that of its
 * sum, which is applied whole. Its aggregator collects the group at once.
 *
 * Where there are distributors, models wait for the end of a batch as well, and take turns on the server's NIC (§10.3).
 *
 * The monitor's reports are the cluster's weather of its lag ago, or the description's rates where there is no weather.
 * The caller moves the bytes. Threads: one. Memory that runs out ends the job. */
#ifndef TRIAL_RUNNER_WORKER_MPI_UPDATE_SCHEDULE_H
#define TRIAL_RUNNER_WORKER_MPI_UPDATE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "trial-runner/worker/mpi/update.h"
#include "trial-runner/worker/mpi/update_copies.h"

struct update_schedule;

enum { UPDATE_DIRECT = UINT32_MAX };

/* Updates that come to the server together. */
struct update_turn {
    uint32_t server; /* of run->servers */
    uint32_t via;    /* the aggregator's node; UPDATE_DIRECT: one worker itself */
    uint32_t n;
    uint32_t *workers; /* in their order; the first of them names the turn */
};

struct update_schedule *update_schedule_new(const struct update_run *run);
void update_schedule_free(struct update_schedule *schedule); /* NULL is allowed */

/* The worker's update, computed from versions[n_servers] of the model's parts, could go. */
void update_schedule_ready(struct update_schedule *schedule, uint32_t worker, const uint64_t *versions);

/* Whether a batch is to be ordered now; `idle` workers send nothing before they get a model, and `asking` of them wait
 * for this scheduler to send it. */
bool update_schedule_is_due(struct update_schedule *schedule, uint32_t idle, uint32_t asking);

/* Order it; the model has `version`. Copies of updates are ordered behind it, where there are any. */
void update_schedule_order(struct update_schedule *schedule, uint64_t version, struct update_copies *copies);

/* [2 * n_nodes] bytes per microsecond, as the monitor has them: at 2 * node + enum direction. */
const double *update_schedule_rates(const struct update_schedule *schedule);

/* A worker whose update was dropped; a new group for its aggregator to collect; and what is to come to a server now,
 * where the first has `version` of its model. False or NULL: none. A turn is valid until its updates have arrived. */
bool update_schedule_take_dropped(struct update_schedule *schedule, uint32_t *worker);
const struct update_turn *update_schedule_take_group(struct update_schedule *schedule);
const struct update_turn *update_schedule_take_next(struct update_schedule *schedule, uint64_t version);

/* The aggregator has the sum of the group whose first worker this is. */
void update_schedule_collected(struct update_schedule *schedule, uint32_t worker);

/* How the model goes to n nodes with workers, not the server's own. Nodes come out in the order in which they get it:
 * the server sends it where first[i], and that node passes it on to the next ones (§10.3). */
void update_schedule_models(struct update_schedule *schedule, uint32_t n, uint32_t *nodes, bool *first);

/* Whether the server sends a model to the node now, as its NIC is free; and when it has left. */
bool update_schedule_model_goes(struct update_schedule *schedule, uint32_t node);
void update_schedule_model_left(struct update_schedule *schedule, uint32_t node);

/* All of the worker's update for this server has come, alone or in a sum; the server's model has `version` now. */
void update_schedule_arrived(struct update_schedule *schedule, uint32_t server, uint32_t worker, uint64_t version);

#endif
