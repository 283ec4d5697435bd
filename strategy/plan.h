/* A plan: a strategy lowered onto a model and a cluster. The simulator runs it in virtual time and the worker programs
 * run it for real; both read only this.
 *
 * Compute. Every device runs the same operators in the same order on one stream; only the device's speed differs. So
 * the plan cuts that stream into `steps`: step k takes step_us[k] (times the node's compute_scale). Before a step a
 * device waits for the messages whose `gate` is k; after it the gradients whose `ready` is k are there. Steps
 * 0..n_forward_steps-1 are the forward pass, the rest the backward pass.
 *
 * Messages. A message moves `bytes`, either by one all-reduce (or all-gather) or by a push from every worker to one
 * server and a pull back to every worker. One message may hold several variables: those of a merge group, or the served
 * variables that share a push. It may start once step `ready` has ended, and the next iteration's step
 * `gate` waits for it. With the barrier (cross_iteration false) every gate is 0.
 *
 * Halves. An all-reduce of a group with "sharded" optimizer or gradients is two messages with the same pieces. The
 * first, a reduce-scatter of the gradients, opens no gate. When it has ended everywhere the second is ready, an
 * all-gather of the variables that the devices have updated, and the gate waits for that.
 *
 * Updates take the model's "update_us", a variable's part of it by its elements. Without the barrier a variable is
 * updated in the step that reads it, else all are in step 0. Of what is sharded a device updates its part alone, and
 * not before it is read but with all others: in step 0, beside the all-gathers, or in the update that follows.
 *
 * Sharded parameters. If any group has them, one more step ends the plan: the update, which takes the time of updates
 * alone. All reduce-scatters have ended before it, and nothing is in flight. Each run of bytes of such a group is up to
 * three messages, each with a gate and without another half:
 *   all-gather      ready when the forward pass comes to the group forward_prefetch groups before, or after the update;
 *                   the group's first forward step waits for it
 *   all-gather      likewise for the backward pass, and ready when that begins at the earliest; none if the group keeps
 *                   what was gathered
 *   reduce-scatter  ready after the group's last backward step. The step after the next group's backward pass waits for
 *                   it, since FSDP2 frees its input there
 * The backward pass needs a group from the step that makes the first of its gradients.
 *
 * Accumulation. With several micro-batches the steps above, with the update if there is one, come once for each: step k
 * of micro-batch i is step i * pass + k, where a pass has so many steps. All-gathers of sharded parameters go in every
 * micro-batch, as FSDP2 frees a group after each backward pass, whether or not its gradients are summed
 * (set_requires_gradient_sync). Sums go in the last micro-batch alone ("last"), or in each. The sum of a micro-batch
 * before the last is waited for where the next pass comes to its gate, as that of the last one is in the next
 * iteration. Of a group in halves only the last micro-batch has the second one, and replicas add in the last alone.
 * The step that ends a micro-batch is no update; what is gathered after it is ready then.
 *
 * Replicas. With "shard_ranks" (HSDP) these messages move within shard groups of so many consecutive devices, in all
 * shard groups at once. A fourth message follows each reduce-scatter as soon as it has ended everywhere: an all-reduce
 * of each part among the devices that have it, the replicas, which the update waits for. It goes on a stream of its
 * own: no order and no credit holds it, and it holds no other message up. With a number as "reshard_after_forward" the
 * all-gather for the backward pass moves within so many consecutive devices.
 *
 * Order. Messages are stored in the order in which they go: message 0 goes first when all are ready.
 *   fifo        by readiness; ties: groups before served variables, and of groups what is gathered last, by gate
 *   priority    by gate (what the next forward pass needs first); ties: in the order of fifo
 *   preemptive  the order of the strategy's slices, one message a slice
 * In the order of fifo second halves come after all other messages, by gate: when the backward pass ends all first
 * halves are on their way, and then the next forward pass gets its variables in turn (DeAR). All-reduces among replicas
 * are last, beyond that order.
 * priority passes over messages that are not ready. fifo and preemptive never do: they keep to the order, so that every
 * device knows it beforehand.
 *
 * Pulls start as soon as their servers have the sums. With pulls_by_priority (under priority alone) they wait at each
 * worker, in the order of messages, for a credit of their own (simulator/timeline.h).
 *
 * A strict order cannot deadlock, whichever it is. Gates are forward steps and gradients come from backward steps. So
 * once an iteration's last gate has opened, compute alone makes all its messages ready, on every device. The message
 * whose turn it is comes, and with nothing in flight it always fits the credit. A bad order only wastes time.
 *
 * With a consistency that is not plain (strategy/consistency.h) the messages are the parts of one update, one to each
 * server (and element type): they are ready after the last step, and gate 0 waits for the model that the server sends
 * back. Only simulator/updates.h and the worker's updates run such plans.
 *
 * Bytes are after encoding. Sparse variables under a parameter server or all_gather move only their touched rows and
 * 8 bytes of index a row; an all-reduce moves them dense. The bytes of a gathered message, and of one by topk, are
 * those of one device. A gradient that is encoded is converted as it goes into its message, and converted back as it
 * comes out. Pieces of a message with an encoder count bytes before encoding.
 * Of groups with "gathered_as" and "summed_as" a device converts its part before an all-gather, each gradient as it
 * goes into its reduce-scatter, and its part of the sum as that has come. Pieces, also of all-gathers, count bytes as
 * summed.
 *
 * A new kind of message is a new enum sync_kind. `grep -rnE 'SYNC_|any_server|any_all_reduce|parameter_server'` finds
 * the code that asks for the kind, in these folders:
 *   strategy/          its JSON, rules, lowering, slices and baselines; in space/ how a search draws and changes it
 *   featurize/         what learned rankers see of it
 *   simulator/         its events and the resources that it uses; the closed form and the trace
 *   trial-runner/      who takes part, and moving it: trial.c, and worker/ by MPI and by NCCL
 *   interop/export/    which frameworks can say it, and what is noted where not
 *   tuner/, report/, cli/, service/   how a search sets it, and how it is shown
 *   tests/             property/simulator/reference.h is the plain simulation that the timeline is checked against
 * Others do not name the kind and still depend on it: strategy/cost/ (what one such message costs alone),
 * simulator/bound.c (the lower bound must stay below it), enum interval_kind (simulator/timeline.h), timer_kind
 * (timeline_internal.h), completion_kind (worker/requests.h), network_kind and note_kind (worker/nccl/network.h). */
#ifndef STRATEGY_PLAN_H
#define STRATEGY_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"

/* A run of bytes of one variable's gradient inside a message. */
struct piece {
    uint32_t variable;
    /* Into the variable's gradient as it travels, shard after shard: cast, and compacted if only rows travel. */
    uint64_t offset_bytes;
    uint64_t bytes;
};

/* A whole all-reduce, or what is half of one, or an all-reduce of each part among its replicas. */
enum half { HALF_none, HALF_scatter, HALF_gather, HALF_replicas };
#define NO_MESSAGE UINT32_MAX

struct message;

/* What a message of SYNC_ALL_REDUCE is, for people: all-reduce, reduce-scatter, all-gather or all-reduce among
 * replicas, or its encoder. */
const char *message_way(const struct message *message);

struct message {
    uint64_t bytes;
    uint32_t ready; /* step after which every gradient in it is there, or its variables are to be gathered */
    uint32_t gate;  /* the step that waits for it: the next such one after `ready` */
    enum sync_kind kind;
    enum algorithm algorithm; /* SYNC_ALL_REDUCE */
    enum half half;           /* SYNC_ALL_REDUCE */
    uint32_t other;           /* the other half; of HALF_replicas the reduce-scatter; NO_MESSAGE: there is none */
    uint32_t replicas;        /* of a reduce-scatter: the all-reduce among replicas that follows; 0: none */
    /* SYNC_ALL_REDUCE: it moves within groups of `ranks` devices each, `stride` apart, in all such groups at once; 0:
     * all devices are one group. Of HALF_replicas a group has one part of `bytes`, of `stride` parts. */
    uint32_t ranks, stride;
    uint32_t server;       /* SYNC_PARAMETER_SERVER: node */
    bool local_reduction;  /* SYNC_PARAMETER_SERVER: one push a node instead of one a device */
    bool shards_gradients; /* of halves: nobody needs a gradient that is in it (ZeRO-2) */
    enum dtype dtype;      /* of its elements on the wire; with an encoder of those that are encoded */
    enum encoding encoder; /* of all that is in it (strategy/encoder.h); ENCODING_none: it has none */
    double figure;         /* of the encoder */
    /* Of the gradients in it that are encoded: bytes on the wire, a part of `bytes`, and bytes before encoding. */
    uint64_t encoded_bytes, unencoded_bytes;
    /* Of sharded parameters that are gathered or summed in another type than the model's. */
    enum carried in_use;      /* in which a device has what the message brings, or the gradients that go into it */
    uint64_t piece_bytes;     /* of an all-gather in another type than that of the sums: of its pieces; else 0 */
    uint64_t converted_bytes; /* of a device's part, in the wider type, which it converts before an all-gather, or after
                               * a sum; else 0 */
    enum lossiness lossy;     /* the most that what is in it loses */
    uint64_t second_bytes;    /* powersgd: of `bytes`, those of the second all-reduce; else 0 */
    uint32_t fifo_rank;       /* its place in the order of readiness: 0 is ready first */
    uint32_t first_piece, n_pieces;
};

/* What the devices of a plan have in parts: nothing; updates of some variables; and their sums, which replicas add. */
enum in_parts { IN_PARTS_none, IN_PARTS_updates, IN_PARTS_replicas, IN_PARTS_COUNT };

struct plan {
    struct arena arena;            /* owns the arrays */
    const struct model *model;     /* borrowed: must outlive the plan */
    const struct cluster *cluster; /* borrowed */
    enum policy policy;
    uint64_t credit_bytes; /* CREDIT_UNLIMITED: all that are ready go at once; 0: one at a time */
    bool cross_iteration;
    struct consistency consistency;
    bool pulls_by_priority; /* a worker's pulls go in the order of messages, at most credit_bytes of them at once */
    bool ends_in_update;    /* the last step is the update that sharded parameters wait for; so ends each micro-batch */
    uint32_t micro_batches; /* passes an iteration */
    bool sums_each;         /* gradients are summed in each micro-batch; false: in the last */
    uint32_t n_steps, n_forward_steps; /* of all micro-batches; of one */
    uint32_t n_messages, n_pieces;
    uint32_t n_replicas;            /* of the messages: the last, all-reduces among replicas */
    const double *step_us;          /* n_steps, on a device with compute_scale 1 */
    double update_us;               /* of these, of updates */
    const uint32_t *step_of;        /* by operator: the step that it is in, of the first micro-batch */
    const struct message *messages; /* n_messages, in the order they go */
    const struct piece *pieces;
    /* Messages by the step that makes them ready / that waits for them (no second halves, nothing among replicas / no
     * first halves): step k's are by_ready[first_ready[k] .. first_ready[k+1]), in the order they go; the same for
     * gates. */
    const uint32_t *first_ready, *by_ready; /* n_steps + 1, n_messages */
    const uint32_t *first_gate, *by_gate;
    bool any_all_reduce, any_server;
    enum in_parts in_parts;
    enum lossiness lossy; /* the most that a gradient loses on its way */
    uint64_t bytes;       /* of all gradients: message_brings_gradients */
    uint64_t max_bytes;   /* of the largest message */
};

/* The steps of one micro-batch, and which of these a step is. */
static inline uint32_t plan_pass_steps(const struct plan *plan) {
    return plan->n_steps / plan->micro_batches;
}
static inline uint32_t plan_step_in_pass(const struct plan *plan, uint32_t step) {
    const uint32_t pass = plan_pass_steps(plan);
    return step < pass ? step : step % pass;
}

/* Whether the step is of the last micro-batch. */
static inline bool plan_is_last_pass(const struct plan *plan, uint32_t step) {
    return step >= plan->n_steps - plan_pass_steps(plan);
}

/* Whether the step is the update; or the one that ends any micro-batch, where it takes no time. */
static inline bool plan_is_update(const struct plan *plan, uint32_t step) {
    return plan->ends_in_update && step + 1 == plan->n_steps;
}
static inline bool plan_ends_pass(const struct plan *plan, uint32_t step) {
    return plan->ends_in_update && (step + 1) % plan_pass_steps(plan) == 0;
}

/* How many samples all devices process in an iteration. */
static inline double plan_samples(const struct plan *plan) {
    return plan->model->batch_per_device * plan->micro_batches * plan->cluster->n_devices;
}

/* What the step is part of, for people: forward, backward, update, or end of micro-batch. */
const char *plan_phase(const struct plan *plan, uint32_t step);

/* One of two halves: the first opens no gate, the second is ready when the first has ended. */
static inline bool message_is_first_half(const struct message *message) {
    return message->half == HALF_scatter && message->other != NO_MESSAGE;
}
static inline bool message_is_second_half(const struct message *message) {
    return message->half == HALF_gather && message->other != NO_MESSAGE;
}
/* An all-gather of sharded parameters before a pass, or a reduce-scatter after which every device keeps its part of the
 * sum: of sharded parameters, or in a micro-batch before the last. Each is whole in itself. */
static inline bool message_is_of_shards(const struct message *message) {
    return message->half != HALF_none && message->other == NO_MESSAGE;
}
static inline bool message_is_of_replicas(const struct message *message) {
    return message->half == HALF_replicas;
}
/* Whether it is the first message of the gradients in it: whole, or a reduce-scatter. */
static inline bool message_brings_gradients(const struct message *message) {
    return message->half != HALF_gather && message->half != HALF_replicas;
}
static inline bool message_gathers_parameters(const struct message *message) {
    return message->half == HALF_gather && message_is_of_shards(message);
}

/* The bytes of a message's pieces; its elements; and how many bytes of a piece are one element. */
static inline uint64_t message_piece_bytes(const struct message *message) {
    return message->encoder ? message->unencoded_bytes : message->piece_bytes ? message->piece_bytes : message->bytes;
}
static inline uint64_t message_elements(const struct message *message) {
    return (message->encoder ? message->unencoded_bytes : message->bytes) / dtype_bytes(message->dtype);
}
static inline uint64_t message_piece_width(const struct message *message) {
    return message->piece_bytes ? message->piece_bytes / message_elements(message) : dtype_bytes(message->dtype);
}

/* In which type a device has a variable that the message brings, or the gradient that goes into it. */
static inline enum dtype message_dtype_in_use(const struct message *message, const struct variable *variable) {
    return carried_dtype(message->in_use, variable->dtype);
}

/* Lower. Fails: ST_INVALID (strategy_check), ST_INFEASIBLE (more than PLAN_MAX_MESSAGES messages, or so many steps),
 * ST_NO_MEMORY. Cost O(steps + variables + messages). */
enum { PLAN_MAX_MESSAGES = 4000000 };
enum status plan_lower(const struct model *model, const struct cluster *cluster, const struct strategy *strategy,
                       struct plan *out, struct error *err);

/* The same into a plan that was lowered before, reusing its memory: for loops over candidates. A failure leaves an
 * empty plan that may be lowered again or released. */
enum status plan_relower(struct plan *plan, const struct model *model, const struct cluster *cluster,
                         const struct strategy *strategy, struct error *err);

/* Rows of shard k when `dim` rows are cut into `shards`: the first dim mod shards have one more (AutoSync §2). */
uint64_t plan_shard_rows(uint64_t dim, uint32_t shards, uint32_t k);

/* Bytes of shard k as it travels, before an encoder; 0 where a sparse gradient touches fewer rows than there are
 * shards. */
uint64_t plan_shard_bytes(const struct strategy *strategy, const struct variable *variable,
                          const struct variable_sync *sync, uint32_t k);

/* Bytes of the variable's gradient as this strategy moves it: cast (not encoded by an encoder), and compacted if only
 * touched rows travel; and those of its part k alone (sync_part). `sync` is the variable's, not a part's. */
uint64_t plan_gradient_bytes(const struct strategy *strategy, const struct variable *variable,
                             const struct variable_sync *sync);
uint64_t plan_part_bytes(const struct strategy *strategy, const struct variable *variable,
                         const struct variable_sync *sync, uint32_t k);

void plan_release(struct plan *plan);

/* The bytes of all messages of an iteration: also of all-gathers, of second halves, of replicas, and of every
 * micro-batch. O(messages). */
uint64_t plan_moved_bytes(const struct plan *plan);

/* Whether messages are summed at the node. O(messages). */
bool plan_serves(const struct plan *plan, uint32_t node);

/* Whether the node needs a server's process: for that, or to add updates up, pass models on or follow a server. */
bool plan_needs_server(const struct plan *plan, uint32_t node);

#endif
