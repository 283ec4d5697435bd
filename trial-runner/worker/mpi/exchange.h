/* A worker's side of every message: from gradients ready to sum in place.
 *
 * What is cast is converted as it is gathered, and back as it is scattered.
 *   all-reduce      gather -> MPI_Iallreduce -> scatter
 *   all-gather      gather -> MPI_Iallgather -> add the slices of all devices -> scatter
 *   int8            gather -> encode -> parts to all -> add, encode -> sums to all -> decode -> scatter
 *   topk            gather -> take the largest -> those to all -> add -> scatter
 *   powersgd        gather -> P -> parts to all -> add -> sums to all -> Q, and these ways again -> restore -> scatter
 *   halves          gather -> a ring that adds; the other half: a ring that passes on -> scatter
 *   sharded parameters  an all-gather: this device's part -> a ring that passes on -> scatter. A reduce-scatter:
 *                   gather -> a ring that adds; each device keeps its part where it lies, and with replicas -> a
 *                   ring of those that have it
 *   hierarchical    gather -> sum at the node's leader -> MPI_Iallreduce between leaders -> back -> scatter
 *   parameter server gather -> [sum at the leader] -> push -> pull -> [back] -> scatter
 *
 * The schedule says which message goes next; under priority device 0 decides for the all-reduces of all. Credit comes
 * back when an all-reduce has completed here and when a push has left.
 *
 * Pulls by priority: this worker has a second schedule, for its pulls, with a credit of its own. MPI announces a large
 * sum by its first bytes and sends the rest when the receive is posted. So the worker takes announcements as they come
 * (MPI_Improbe), and posts the receive of a sum when its turn has come. A sum that MPI sends whole with its
 * announcement has no turn. Nothing here blocks: exchange_progress is one
 * turn of the event loop. Times are clock_now_us. */
#ifndef TRIAL_RUNNER_WORKER_MPI_EXCHANGE_H
#define TRIAL_RUNNER_WORKER_MPI_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "trial-runner/worker/coordinator.h"
#include "trial-runner/worker/mpi/descent.h"
#include "trial-runner/worker/mpi/encoded.h"
#include "trial-runner/worker/mpi/gradients.h"
#include "trial-runner/worker/mpi/pool.h"
#include "trial-runner/worker/mpi/ring.h"
#include "trial-runner/worker/requests.h"
#include "trial-runner/worker/schedule.h"
#include "trial-runner/worker/world.h"

/* One message's life in one iteration. */
struct transfer {
    uint32_t iteration, pending; /* pending: requests that its present stage waits for */
    bool started;
    bool summed;  /* at the leader: the node's own gradients are together */
    char *buffer; /* its bytes in one run */
    /* Pulls by priority: the push has left; the server has announced the sum; the pull waits for its turn or has it. */
    bool pushed, announced, queued;
    MPI_Message sum;
    struct ring ring; /* of half an all-reduce */
    struct encoded encoded;
    bool has_part; /* second half: the first is over here */
    double ready_us, start_us, end_us;
    double sum_us, pull_us; /* pulls by priority: when the sum was announced, and its receive posted */
};

struct exchange {
    const struct plan *plan;
    const struct world *world;
    bool verify;
    struct gradients gradients;
    struct gradients variables; /* sharded parameters, as they are gathered; zeroed where there are none */
    struct descent descent;     /* for the owner to begin and end; zeroed: nothing is learned */
    struct requests requests;
    struct schedule schedule, pulls;
    uint64_t eager_bytes;   /* a message of no more needs no answer before it goes; 0: not known */
    uint64_t unasked_bytes; /* a sum of no more comes whole with its announcement */
    struct coordinator coordinator;
    struct pool pool;
    struct transfer *transfers; /* [n_messages] */
    float **residuals;          /* [n_messages] what an encoder keeps (layout_kept_bytes); NULL: nothing */
    void **shards;              /* [n_messages] of sharded parameters in other types (mpi/sharded.h); NULL: none */
    uint32_t *between;          /* ring of n_messages: hierarchical ones, in the order that leaders must start them */
    uint32_t n_between, first_between;
    uint32_t *closed;   /* [n_steps] messages that the step's gate still waits for */
    double *opened_us;  /* [n_steps] when the last of them came */
    uint64_t to_report; /* steps finished that device 0 must hear of; 0 = nothing new */
    uint32_t n_live;    /* messages ready and not done */
    /* Called when a message is done; may be NULL. */
    void (*on_done)(void *context, uint32_t message, const struct transfer *transfer);
    void *context;
};

void exchange_init(struct exchange *exchange, const struct plan *plan, const struct world *world, bool verify);

/* Step `step` of `iteration` ended at `now_us`: its gradients are there. */
void exchange_step_done(struct exchange *exchange, uint32_t iteration, uint32_t step, double now_us);

/* For tests of the check itself: make this device's part of a message that has just become ready wrong. */
void exchange_spoil(struct exchange *exchange, uint32_t message);

/* Start what may start and take in what has completed; true when anything did. */
bool exchange_progress(struct exchange *exchange);

/* To be called by all workers together, when n_live is 0 everywhere. */
void exchange_release(struct exchange *exchange);

#endif
