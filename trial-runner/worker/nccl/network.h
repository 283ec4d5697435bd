/* The NCCL communicators of a job: made when first asked for, kept to the end, watched for failures.
 *
 * An all-reduce's algorithm belongs to its communicator: NCCL's configuration of a communicator has no such member, but
 * NCCL reads NCCL_ALGO while it makes one, so that each is made with a value of its own. Collectives follow one
 * another, as in frameworks, which have one communicator for them (strategy/cost/transport.h, transport_is_in_order).
 *
 * Every call that makes a communicator is collective over its ranks, in one order on all. Notes are small words between
 * hosts by MPI: what is about to be sent, so that nobody posts a receive that blocks others. */
#ifndef TRIAL_RUNNER_WORKER_NCCL_NETWORK_H
#define TRIAL_RUNNER_WORKER_NCCL_NETWORK_H

#include <nccl.h>
#include <stdbool.h>
#include <stdint.h>

#include "strategy/plan.h"
#include "trial-runner/worker/nccl/device.h"
#include "trial-runner/worker/requests.h"
#include "trial-runner/worker/world.h"

enum { NETWORK_GROUP = 8 }; /* sends or receives that go together at most */

enum network_kind {
    NETWORK_WORKERS,  /* all devices, ranked by device, or each group of them */
    NETWORK_PARTS,    /* as NETWORK_WORKERS, for the parts of messages by int8 and topk */
    NETWORK_REPLICAS, /* the devices that have the same part, which all-reduce it beside other collectives */
    NETWORK_NODE,     /* the devices of this node, its leader first */
    NETWORK_LEADERS,  /* the nodes' leaders; none elsewhere */
    NETWORK_RETURN,   /* as NETWORK_NODE, for sums on their way back from a server */
    NETWORK_PUSH,     /* all ranks, numbered as MPI_COMM_WORLD: to servers */
    NETWORK_PULL      /* all ranks: from servers */
};

struct network_link; /* a communicator, and what it was used for already */
struct network {
    const struct world *world;
    struct device device;
    MPI_Comm node; /* the devices of this node; MPI_COMM_NULL at a server */
    struct network_link *links;
    double watched_us; /* when the communicators were last checked for failures */
};

/* Collective. Fails: as device_choose. */
enum status network_open(struct network *network, struct world *world, struct error *err);
void network_close(struct network *network);

static inline struct network *network_of(const struct world *world) {
    return world->backend;
}

/* True when messages of this kind have NCCL's algorithm. */
bool network_has(enum algorithm algorithm);

/* The communicator for it; NULL at a rank that it leaves out. Algorithms that NCCL does not tell apart share one. */
ncclComm_t network_comm(struct network *network, enum network_kind kind, enum algorithm algorithm);

/* That of a message of SYNC_ALL_REDUCE: among all, among leaders, or within its groups of devices. */
ncclComm_t network_comm_of(struct network *network, const struct message *message);

/* Make all communicators that the plan needs, and use each once for every type and for sizes up to the largest, one
 * after the other, so that connections are there before a run is timed. `scratch`: zeroed device memory, at least
 * plan->max_bytes, and what all devices send of any message by topk; zero afterwards. */
void network_connect(struct network *network, const struct plan *plan, void *scratch);

/* The same for one way between two ranks, for the others nothing. Collective over the kind's ranks. */
void network_connect_pair(struct network *network, int sender, int receiver, enum network_kind kind, void *scratch);

/* Ask every communicator for failures that came after its calls, now and then. One ends the job. */
void network_watch(struct network *network);

/* End the job when a call of NCCL failed; `what` names it. */
void network_check(struct network *network, ncclResult_t result, const char *what);

ncclDataType_t network_type(enum dtype dtype);

enum note_kind {
    NOTE_PUSH,  /* worker to server: I am sending you this message's gradient */
    NOTE_SUM,   /* server to worker: I am sending you its sum */
    NOTE_RETURN /* leader to its node: its sum comes by broadcast */
};

struct note {
    enum note_kind kind;
    int rank;
    uint32_t message;
};

void note_send(struct requests *requests, const struct world *world, enum note_kind kind, int rank, uint32_t message);

/* The next that has arrived, in order for each sender. */
bool note_take(const struct world *world, struct note *out);

#endif
