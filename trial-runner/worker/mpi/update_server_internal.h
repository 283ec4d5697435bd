/* A server of updates, and a replica that may become one (update_replica.h). */
#ifndef TRIAL_RUNNER_WORKER_MPI_UPDATE_SERVER_INTERNAL_H
#define TRIAL_RUNNER_WORKER_MPI_UPDATE_SERVER_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "trial-runner/worker/mpi/learned.h"
#include "trial-runner/worker/mpi/pool.h"
#include "trial-runner/worker/mpi/update.h"
#include "trial-runner/worker/mpi/update_copies.h"
#include "trial-runner/worker/mpi/update_counts.h"
#include "trial-runner/worker/mpi/update_schedule.h"
#include "trial-runner/worker/mpi/update_sequence.h"
#include "trial-runner/worker/requests.h"

struct replica;

/* A version of a part of the model. */
struct copy {
    char *buffer;
    uint32_t sending;
    bool newest;
};

struct client {
    uint32_t ended;   /* iterations whose update came */
    uint64_t version; /* the last one sent to it */
    bool waits, gone;
};

struct part {
    const struct update_form *form;
    struct copy *model;
    struct client *clients; /* [n_devices] */
    uint32_t n_gone;
    double began_us; /* the iteration that is going on */
};

/* The model for a worker, or for several by way of a node's relay. */
struct delivery {
    struct delivery *next;
    uint32_t node, n;
    struct update_member *workers; /* in whole units */
    struct copy **copies;          /* [n_messages] */
    uint32_t sending;
};

struct update_server {
    const struct update_run *run;
    struct requests requests;
    struct pool pool;
    struct part *parts; /* [n_messages]; those of others have no model */
    struct learned *learned;
    struct update_schedule *schedule; /* NULL: updates come as they are ready */
    uint32_t number, n_parts;         /* of run->servers; parts that it keeps */
    uint32_t *missing;                /* [n_devices] of these, parts of the worker's next update that have not come */
    struct delivery *first, *last;    /* models that wait for their turn */
    bool *asks;                       /* [n_devices] scratch, as the next two of [n_nodes] */
    uint32_t *nodes;
    bool *heads;
    uint32_t n_open; /* parts whose workers have not all gone */
    struct update_counts counts;
    /* Where a replica follows the server; there is one part then. */
    struct update_sequence *sequence; /* what is applied next, here and there; NULL: as it comes */
    struct update_copies *copies;     /* at the server */
    double beat_us;                   /* this rank's last sign of life */
    double *heard_us;                 /* [ranks] that of others */
    double polled_us;                 /* when this rank last listened */
    bool fenced;                      /* the server was taken for dead */
    struct replica *replica;          /* at the replica; it is the server when `sequence` is NULL */
    uint32_t epoch;                   /* then 1, else 0 */
    bool halts;                       /* it applies nothing before it has heard all workers */
};

/* What came: an update, or the sum of some. */
struct arrival {
    char *buffer;
    uint32_t n;
    struct update_member alone;
    const struct update_member *members;
};

static inline uint32_t workers(const struct update_server *s) {
    return s->run->world->cluster->n_devices;
}

static inline struct update_head *head_of(const struct part *part) {
    return update_head_of(part->model->buffer);
}

/* A new, newest version of a part, in memory of the pool. */
struct copy *update_server_copy(struct update_server *s, const struct update_form *form);

/* What the buffer has. */
void update_server_open(const struct part *part, char *buffer, struct arrival *out);

/* Check it, make it part of the model and count it (update_apply.c). A wrong update ends the job. */
void update_server_apply(struct update_server *s, struct part *part, const struct arrival *arrival);

/* All of the run's parts that this rank keeps. */
void update_server_init(struct update_server *s, const struct update_run *run, struct learned *learned);
void update_server_release(struct update_server *s);

/* Take what has come; whether anything has. */
bool update_server_poll(struct update_server *s);

/* Apply the steps of the sequence that are here and may be applied. */
void update_server_go_on(struct update_server *s);

/* Until all workers have left, and this rank has told the other servers and relays. */
void update_server_serve(struct update_server *s);

/* Whether the rank has not been heard for so long, while this one listened. */
bool update_server_misses(const struct update_server *s, int rank, double limit_us);

/* End the trial when another rank but the server has been silent for long: without it the run would not end. */
void update_server_begin_watch(struct update_server *s);
void update_server_watch(const struct update_server *s);

void update_server_tell(struct update_server *s, int rank, const struct update_head *head);

/* A worker's update is in the model, or is not to come: the worker waits for a model. */
void update_server_answer(struct update_server *s);

#endif
