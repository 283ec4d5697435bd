/* What travels between a worker and a server of updates (strategy/consistency.h), and the proof that nothing is lost,
 * torn or applied twice.
 *
 * A message of the plan travels as a head and the message's bytes, from a worker as its update and from a server as a
 * version of the model. All bytes are zero except at up to UPDATE_SAMPLES elements, where an update has small numbers
 * that only the worker, the iteration and the place determine. Both ends know them. The server checks an update's
 * numbers as it comes, adds all of the update to the model, and knows what must stand there then. A model's head
 * carries these sums, so the worker sees whether the model that it got is whole.
 *
 * Where workers learn (trial-runner/training.h) the largest message's bytes begin with the weights, or their changes,
 * as doubles. The samples lie behind these. */
#ifndef TRIAL_RUNNER_WORKER_MPI_UPDATE_H
#define TRIAL_RUNNER_WORKER_MPI_UPDATE_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "strategy/plan.h"
#include "trial-runner/worker/execute.h"
#include "trial-runner/worker/mpi/learned.h"
#include "trial-runner/worker/requests.h"
#include "trial-runner/worker/world.h"

enum { UPDATE_SAMPLES = 16 };

enum update_kind {
    UPDATE_PUSH,
    UPDATE_MODEL,
    UPDATE_BYE,   /* a head alone, as the next: the worker sends no more */
    UPDATE_READY, /* to the scheduler: the worker's update could go; with its model's version at every server behind */
    UPDATE_GO,    /* from the scheduler or an aggregator: it goes now, or its part for one server */
    UPDATE_DROP,  /* from the scheduler: it does not go; the model comes */
    /* Between the scheduler and an aggregator; the group's first worker names the group. */
    UPDATE_GROUP,     /* collect these members */
    UPDATE_COLLECTED, /* their sum is there */
    UPDATE_SEND,      /* send it */
    UPDATE_SUM,       /* the sum, with its members behind the body */
    /* Between the scheduler and another server (§10.2); DROP too. */
    UPDATE_CAME, /* the worker's part of its update is in that server's model, which has this version */
    /* Where a replica follows the server (update_replica.h). */
    UPDATE_SEQUEL,   /* to the replica: these members are applied next, as one step */
    UPDATE_COPY,     /* to a worker: send the replica the update of this iteration */
    UPDATE_HAS,      /* from the replica: it has the worker's copy, and has applied so many steps */
    UPDATE_BEAT,     /* between the server, or the replica after a takeover, and all others: the sender is alive */
    UPDATE_END,      /* to the replica: all workers have left; so many copies were asked for, and what was counted */
    UPDATE_TAKEOVER, /* from the replica to all: it is the server now */
    UPDATE_STATE,    /* from a worker to it: where it stands */
};

struct update_head {
    enum update_kind kind;
    uint32_t worker, iteration;    /* of a push, and of READY */
    uint64_t version;              /* of these: of the model that it was computed from; of a model: its own */
    uint64_t updates;              /* of a model: how many are in it */
    uint32_t members;              /* of a group, a sum and a sequel: how many follow */
    int to;                        /* of GO: the rank that gets the update; of STATE: enum update_phase */
    uint32_t epoch;                /* of GO and DROP: 1 after a takeover, else 0 */
    uint32_t server;               /* of CAME: of run->servers */
    uint64_t weights;              /* of a model and STATE: a hash of what is learned */
    double norm;                   /* of READY and a sequel: how far it moves the weights; 1 where nothing is learned */
    uint32_t sums[UPDATE_SAMPLES]; /* of a model: what its samples hold; of STATE: of the worker's last one */
};

/* Where a worker stands when the replica takes over. */
enum update_phase {
    PHASE_COMPUTES,
    PHASE_READY,  /* waits for the scheduler */
    PHASE_WAITS,  /* its update has gone, or was dropped; waits for a model */
    PHASE_LEAVES, /* has the last model */
};

/* An update in a group; of a model that is passed on, a worker that gets it. */
enum { UPDATE_NOBODY = UINT32_MAX };
struct update_member {
    uint32_t worker, iteration;
    uint64_t version;
};

/* How a message travels: in units of UPDATE_UNIT bytes, the head first. */
enum { UPDATE_UNIT = 64, UPDATE_HEAD_UNITS = 2, UPDATE_HEAD_BYTES = UPDATE_UNIT * UPDATE_HEAD_UNITS };
_Static_assert(sizeof(struct update_head) <= UPDATE_HEAD_BYTES, "a head has room");

struct update_form {
    const struct message *message;
    uint32_t number;        /* of the message, and its tag */
    uint64_t weights_bytes; /* at the front */
    uint32_t n_samples;
    uint64_t samples[UPDATE_SAMPLES]; /* where they lie behind the head */
    int units;
};

/* Where there is a replica, the death of a rank ends no other. Each says so often that it lives: a server that is
 * silent for longer is dead to its replica, and another rank to the server, which then ends the trial. Time in which
 * the rank that listens was away itself, for more than UPDATE_GAP_US, does not count. */
enum { UPDATE_BEAT_US = 20000, UPDATE_SILENCE_US = 1000000, UPDATE_LOST_US = 10000000, UPDATE_GAP_US = 100000 };

/* What worker and server of a run share. */
struct update_run {
    const struct plan *plan;
    const struct world *world;
    const struct execute_options *options;
    MPI_Datatype unit;
    struct update_form *forms; /* [n_messages] */
    int control;               /* tag of what is about a whole update: READY, GO and so on */
    uint32_t largest;          /* message, the first of them: its server ends the run, and keeps the weights */
    int server, replica;       /* ranks: of the largest message's server; -1 where nobody follows it */
    uint32_t *servers;         /* [n_servers] nodes, the first that of the largest message */
    uint32_t *first_of;        /* [n_servers] a message that it keeps, whose versions are meant by the server's: of the
                                * first server the largest */
    uint32_t n_servers;
    MPI_Comm lasting; /* all ranks but the server where it has a replica, without which none of them waits */
    struct training training;
};

/* Release with update_run_release. Ends the job when memory is out. */
void update_run_init(struct update_run *run, const struct plan *plan, const struct world *world,
                     const struct execute_options *options);
void update_run_release(struct update_run *run);

/* Which of run->servers keeps the message. */
uint32_t update_server_of(const struct update_run *run, uint32_t message);

/* So many updates of all workers together are applied, the last of which ends the run. */
uint64_t update_target(const struct update_run *run);

/* Whether what comes after so many updates counts: neither warm-up nor after the end. */
bool update_is_measured(const struct update_run *run, uint64_t updates);

/* So many updates make a version of the model: all of an iteration where training is synchronous, else 1. */
uint32_t updates_in_version(const struct update_run *run);

/* What the server learns. */
struct learned_subject update_subject(const struct update_run *run);

static inline uint64_t update_bytes(const struct update_form *form) {
    return (uint64_t)form->units * UPDATE_UNIT;
}

static inline struct update_head *update_head_of(void *buffer) {
    return buffer;
}

static inline char *update_body(void *buffer) {
    return (char *)buffer + UPDATE_HEAD_BYTES;
}

/* What a sum, or a model for a relay, has behind its body: the members, in so many units. */
static inline struct update_member *update_members(const struct update_form *form, void *buffer) {
    return (struct update_member *)(void *)((char *)buffer + update_bytes(form));
}

static inline int update_member_units(uint32_t n) {
    return (int)((n * sizeof(struct update_member) + UPDATE_UNIT - 1) / UPDATE_UNIT);
}

/* Tell `rank` that this one is alive, if it is time: *beat_us is when it last was. `norm` and `updates` go with it. */
void update_beat(const struct update_run *run, struct requests *requests, int rank, double norm, uint64_t updates,
                 double *beat_us);

/* A hash of the weights in a model of this form: 0 where it has none. */
uint64_t update_hash(const struct update_form *form, void *buffer);

/* Send a model with n members behind it. `members` fill whole units and stay as they are until the request completes,
 * those behind the first n too. */
void update_send_with_members(const struct update_run *run, const struct update_form *form, void *buffer, uint32_t n,
                              struct update_member *members, int rank, MPI_Request *request);

/* Add the elements behind the weights of an update, or a sum of some, to another's or a model's. */
void update_add(const struct update_form *form, void *sum, void *update);

/* Add an update to a sum of some, the weights' changes too. */
void update_sum(const struct update_form *form, void *sum, void *update);

/* Of the largest message, where workers learn. */
static inline double *update_weights(void *buffer) {
    return (double *)(void *)update_body(buffer);
}

/* The number of a worker's update at sample k. */
uint32_t update_value(const struct update_run *run, const struct update_form *form, uint32_t worker, uint32_t iteration,
                      uint32_t k);

/* Write a number at sample k, and whether one is there. */
void update_store(const struct update_form *form, void *buffer, uint32_t k, uint32_t value);
bool update_holds(const struct update_form *form, void *buffer, uint32_t k, uint32_t value);

#endif
