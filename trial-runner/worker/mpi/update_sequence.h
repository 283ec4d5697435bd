/* The order in which server and replica apply updates, in steps, and the updates that wait for their step. A step is
 * one update, or some that are applied as one sum, for the momentum's sake on both sides alike.
 *
 * Both keep the order in which the scheduler lets updates go. At the server the bytes of a step come in one piece. The
 * replica gets a copy of each update from its worker, and adds up those of a step as an aggregator does: in the same
 * order, so that both models are equal to the last bit. Threads: one. Memory that runs out ends the job. */
#ifndef TRIAL_RUNNER_WORKER_MPI_UPDATE_SEQUENCE_H
#define TRIAL_RUNNER_WORKER_MPI_UPDATE_SEQUENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trial-runner/worker/mpi/pool.h"
#include "trial-runner/worker/mpi/update.h"

struct update_step {
    uint32_t n;
    struct update_member *members; /* [n] */
    double norm;                   /* at most so far it moves the weights, but for the momentum */
};

struct update_arrival; /* one that waits */

/* Zeroed: empty. */
struct update_sequence {
    struct update_step *steps; /* [n]; those before `next` have been taken */
    size_t n, next, room;
    struct update_arrival *waiting;
    uint32_t n_waiting; /* updates */
};

/* One more step at the end. */
void update_sequence_add(struct update_sequence *sequence, uint32_t n, const struct update_member *members,
                         double norm);

/* An update, or a sum whose members stand behind its body, has come; the buffer is the sequence's. */
void update_sequence_keep(struct update_sequence *sequence, const struct update_form *form, char *buffer);

/* Whether all of the next step is here. */
bool update_sequence_is_whole(const struct update_sequence *sequence);

/* The next step's bytes, for the caller to give to the pool; all of it must be here. Where it came in pieces, their
 * buffers must have room for all workers behind the body. */
char *update_sequence_take(struct update_sequence *sequence, const struct update_form *form, struct pool *pool);

/* After a takeover, when no more copies come: forget updates in steps that nobody has sent, and give what has come
 * without a step one of its own, the oldest version first. Returns how many these are. */
uint32_t update_sequence_settle(struct update_sequence *sequence);

void update_sequence_release(struct update_sequence *sequence, struct pool *pool);

#endif
