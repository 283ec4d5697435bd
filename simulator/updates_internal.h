/* What simulator/updates.c (workers and servers) and simulator/updates_schedule.c (the scheduler) share. */
#ifndef SIMULATOR_UPDATES_INTERNAL_H
#define SIMULATOR_UPDATES_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "simulator/wire.h"
#include "strategy/cost/cost.h"
#include "strategy/plan.h"
#include "strategy/updates/turns.h"
#include "strategy/weather.h"

struct updates_options; /* simulator/updates.h, as the next */
struct updates_prediction;

enum worker_state {
    WORKER_COMPUTES, /* until ready_us */
    WORKER_WAITS,    /* its update is ready; the scheduler has not seen it */
    WORKER_PUSHES,   /* until its update is applied or dropped */
    WORKER_ASKS,     /* for the model */
    WORKER_PULLS,
};

struct worker {
    enum worker_state state;
    uint32_t node, parts; /* parts that are still on their way */
    uint32_t place;       /* of its update in the sequence, where there is a replica */
    uint64_t iteration;   /* iterations that it has ended */
    uint64_t *versions;   /* of each server's model that it computes with */
    double began_us, ready_us;
};

/* `what` of a transfer */
enum transfer_kind {
    TRANSFER_PUSH,           /* a part: worker * servers + server */
    TRANSFER_TO_AGGREGATOR,  /* a group */
    TRANSFER_SUM,            /* a group */
    TRANSFER_COPY,           /* of an update, to the replica: its place in the sequence */
    TRANSFER_SUM_OF_COPIES,  /* a group */
    TRANSFER_PULL,           /* a part */
    TRANSFER_TO_DISTRIBUTOR, /* a group */
    TRANSFER_TO_NODE,        /* the model, to all workers of the node that pull */
};

/* Updates that are added up at a node for another, or nodes to which a node passes the model. */
struct update_group {
    uint32_t node, to, first, n; /* members[first .. first + n): workers; places in the sequence where the sum goes to
                                    the replica; or nodes */
    uint32_t missing;            /* updates that have not come yet */
    uint64_t turn;               /* of the sum of copies, or of the model that is passed on */
    uint64_t version;            /* of the model that is passed on */
    double ready_us;             /* scratch: when the sum can go, as planned */
    bool waits;                  /* for the updates that are missing */
    bool copies;                 /* for the replica */
};

/* Where there is a replica, updates are applied in the order in which they were scheduled, here and there. */
struct sequel {
    uint32_t worker;
    bool here, at_replica; /* has come */
};

/* What ends a known time after its cause: a transfer's latency and its sum. */
struct landing {
    double us;
    struct wire_transfer transfer;
};

struct updates {
    struct arena arena;
    const struct plan *plan;
    const struct cost *cost;
    const struct consistency *consistency;
    const struct updates_options *options;
    double now_us;
    uint32_t n_workers, n_servers;
    struct worker *workers;
    uint32_t *servers;     /* nodes */
    double *bytes, *share; /* of an update's part for each server; over all of it */
    double all_bytes;
    uint64_t *version;         /* of each server */
    double *busy_us;           /* of each server: until when it adds */
    uint64_t turns, committed; /* committed: updates that are scheduled and not yet applied */
    struct wire wire;
    struct turn *due;         /* [n_servers][n_workers] what is to come to each server, by its scheduler's order */
    uint32_t *n_due;          /* of each server */
    struct landing *landings; /* malloc'd, in no order */
    size_t n_landings, landing_room;
    struct update_group *groups;              /* malloc'd */
    size_t n_groups, first_group, group_room; /* before first_group no sum is waited for */
    uint32_t *members;                        /* malloc'd */
    size_t n_members, member_room;
    struct sequel *sequence; /* malloc'd: every update that was scheduled, where there is a replica */
    double *norms;           /* malloc'd, n_sequence: 1 where it was applied, 0 where it was late */
    size_t n_sequence, sequence_room, norm_room;
    size_t next, replica_next, replica_sent; /* the first that is not applied; at the replica; not on its way there */
    double replica_step;                     /* bound on the replica's last step (strategy/updates/replicate.h) */
    uint32_t in_version;                     /* synchronous: updates of this iteration so far */
    struct weather weather, reported;
    double *reported_rates; /* bytes per microsecond, as the monitor has them */
    uint64_t ended;         /* updates applied or dropped, since time 0 */
    double applied;         /* updates, since time 0 */
    double counts_from_us;  /* INFINITY: not yet */
    struct updates_prediction *out;
};

/* updates.c, for the scheduler. */
enum status updates_send(struct updates *u, enum transfer_kind kind, uint32_t what, uint32_t from, uint32_t to,
                         double bytes, uint64_t turn, struct error *err);
/* The whole model of this version, by TRANSFER_TO_DISTRIBUTOR or TRANSFER_TO_NODE. */
enum status updates_send_model(struct updates *u, enum transfer_kind kind, uint32_t what, uint32_t from, uint32_t to,
                               uint64_t version, uint64_t turn, struct error *err);
/* The worker's update is applied, or not: it asks for the model. */
enum status updates_end(struct updates *u, uint32_t worker, struct error *err);
/* Whether the servers answer a worker that asks now. */
bool updates_may_have_model(const struct updates *u, uint32_t worker);
/* Note the versions of the models that the worker is sent now. */
void updates_take_versions(struct updates *u, uint32_t worker);

/* Order what waits and group it; answer who asks. Fails: ST_NO_MEMORY. */
enum status updates_schedule(struct updates *u, struct error *err);
/* Let what is due set out, as far as it may. Fails: ST_NO_MEMORY. */
enum status updates_set_out(struct updates *u, struct error *err);
/* All members of the group have come to its aggregator; what was due has come to its server. */
void updates_sum_is_ready(struct updates *u, uint32_t group);
void updates_came(struct updates *u, uint32_t server, enum transfer_kind kind, uint32_t what);

#endif
