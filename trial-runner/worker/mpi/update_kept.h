/* Updates that a worker keeps until it has sent the replica a copy of them. Copies go one at a time, and none begins
 * beside an update that goes to the server. Threads: one. Memory that runs out ends the job. */
#ifndef TRIAL_RUNNER_WORKER_MPI_UPDATE_KEPT_H
#define TRIAL_RUNNER_WORKER_MPI_UPDATE_KEPT_H

#include <stdbool.h>
#include <stdint.h>

#include "trial-runner/worker/mpi/pool.h"
#include "trial-runner/worker/mpi/update.h"
#include "trial-runner/worker/requests.h"

struct kept;

/* Zeroed: nothing is kept. */
struct update_kept {
    struct kept *first; /* the oldest */
    struct pool pool;
    bool flying;   /* a copy is on its way */
    uint64_t sent; /* copies that were asked for */
    bool lost;     /* the server is dead: MPI may still read buffers that were on their way to it, so all stay */
};

/* A buffer for an update of this form. */
char *update_kept_buffer(struct update_kept *kept, const struct update_form *form);

/* The buffer's update has gone to the server. */
void update_kept_add(struct update_kept *kept, char *buffer);

/* A copy of the iteration's update is to go; after a takeover, of all of which none was asked for. */
void update_kept_ask(struct update_kept *kept, uint32_t iteration);
void update_kept_ask_all(struct update_kept *kept);

/* Send the next copy, if one was asked for and none is on its way: DONE_COPY. */
void update_kept_send(struct update_kept *kept, const struct update_run *run, struct requests *requests);

/* The copy has left. */
void update_kept_left(struct update_kept *kept, char *buffer);

void update_kept_release(struct update_kept *kept);

#endif
