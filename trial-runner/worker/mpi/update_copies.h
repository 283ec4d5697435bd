/* What a replica is sent, and how far the server may go ahead of it (MLfabric §3.3, §5.3;
 * strategy/updates/replicate.h): the server's side, as simulator/updates_schedule.c does it, for real.
 *
 * A worker keeps each update until it has sent the replica a copy of it. After each batch, replicate_updates says how
 * many copies may go now, in the order in which the updates went; they go one after another, or together where the
 * NICs of those on their way leave some of the replica's free. The server applies no step that would take it out of the
 * bound, as far as the replica has said what it has applied.
 *
 * The bound is in norms of a typical update: the mean norm of the first updates, one a worker. Where nothing is learned
 * every norm is 1. Threads: one. Memory that runs out ends the job. */
#ifndef TRIAL_RUNNER_WORKER_MPI_UPDATE_COPIES_H
#define TRIAL_RUNNER_WORKER_MPI_UPDATE_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "strategy/updates/calendar.h"
#include "trial-runner/worker/mpi/update_sequence.h"

struct update_copies;

/* `sequence` is what goes to the server; rates as a monitor has them, bytes per microsecond at 2 * node + direction.
 * Both stay the caller's. */
struct update_copies *update_copies_new(const struct update_run *run, const struct update_sequence *sequence,
                                        const double *rates);
void update_copies_free(struct update_copies *copies); /* NULL is allowed */

/* The worker's next update moves the weights so far. */
void update_copies_ready(struct update_copies *copies, uint32_t worker, double norm);

/* How far a step of these members moves them at most. */
double update_copies_norm(const struct update_copies *copies, uint32_t n, const struct update_member *members);

/* The sequence has one more step. */
void update_copies_add(struct update_copies *copies);

/* The end of a batch: `pending` workers' updates have a turn and have not gone; the calendar has all transfers to the
 * server, which is through with them at last_us. */
void update_copies_order(struct update_copies *copies, struct calendar *calendar, uint32_t pending,
                         const uint32_t *workers, double now_us, double last_us);

/* A copy that is to go now. False: none. */
bool update_copies_take(struct update_copies *copies, uint32_t *worker, uint32_t *iteration);

/* The replica has another copy from the worker (UPDATE_NOBODY: from none), and has applied so many steps. */
void update_copies_has(struct update_copies *copies, uint32_t worker, size_t steps);

/* Whether the server may apply its next step. Where it may not and no copy is to go, one more may go. */
bool update_copies_may_apply(struct update_copies *copies);

/* The bound of the replica's divergence, in norms. */
double update_copies_bound(const struct update_copies *copies);

/* So many copies were taken; how far at most the replica was behind, in norms of a typical update. */
size_t update_copies_taken(const struct update_copies *copies);
double update_copies_divergence_most(const struct update_copies *copies);

#endif
