/* A strategy: how each variable's gradient is synchronized (schema syncopate.strategy/1; AutoSync §2).
 *
 * The description is a JSON object that names a model's variables and a cluster's nodes. A member without a default is
 * required; an unknown member is refused.
 *   "schema"           "syncopate.strategy/1"
 *   "name"             a name for people; it is not part of the id
 *   "schedule"
 *     "policy"           which ready message goes first: fifo (the one that was ready first), priority (the one that
 *                        the next forward pass needs first) or preemptive (the order of "slices"); strategy/plan.h
 *     "credit_bytes"     how many bytes may be in flight (ByteScheduler §4); 0: one message at a time; default: no
 *                        limit
 *     "cross_iteration"  whether messages may run on into the next iteration's forward pass; default false: a barrier
 *     "pulls"            when a worker pulls a sum from its server: at_once (default: as soon as the server has it) or
 *                        priority, under policy priority alone: the worker pulls what the next forward pass needs first
 *                        first, and has at most credit_bytes of pulls in flight, beside those of pushes (ByteScheduler
 *                        theorem 1). A schedule without a limit or without servers has nothing to order: at_once
 *     "forward_prefetch", "backward_prefetch"  how many groups ahead sharded parameters are gathered in that pass;
 *                        default 1, and at most as many as there are such groups. 0: when the pass comes to the group
 *     "shard_ranks"      how many consecutive devices share sharded parameters (HSDP): each such shard group has them
 *                        all, and its sums are added to those of the other groups, its replicas. At least 2, and it
 *                        divides the number of devices; default all. Beside "sharded" parameters alone
 *     "accumulation"     how many micro-batches a device computes before an update. The model's times and its batch
 *                        are those of one micro-batch. Default: one
 *       "micro_batches"    1 to 4096
 *       "synchronize"      last (default): gradients are added up on their device, and travel after the last one.
 *                          each: they travel after each, and the sums are added up
 *                          each_all_reduce_last: likewise, and replicas of shards add theirs after the last one. With
 *                          "shard_ranks" it is this or last, and without it is not there
 *     "slices"           of policy preemptive alone, which requires it: the messages in the order in which they go:
 *       "group"            id of a group
 *       "bytes"            the next so many bytes of the group's gradients, its members in the order of readiness
 *   "groups"           an array of merge groups, by rising id; default none:
 *     "id"               the number by which variables and slices name it
 *     "algorithm"        of its all-reduce, as in strategy/cluster.h; default auto: the library chooses.
 *                        all_gather: every device sends its touched rows to all others; all variables of the
 *                        group are sparse
 *     "partition_bytes"  the largest message, at least 1024; default: the group is one message
 *     "sharded"          what each device keeps a part of alone: none (default), optimizer, gradients or parameters.
 *                        Messages are then halves of a ring, so "algorithm" is auto or ring. Gradients are not encoded.
 *                        optimizer (ZeRO-1, DeAR, Megatron's distributed optimizer) splits the all-reduce. A
 *                        reduce-scatter brings each device the sum of its part. The optimizer updates that part. An
 *                        all-gather brings the updated variables to all.
 *                        gradients (ZeRO-2): the same messages; of the sums too each device keeps its part alone.
 *                        parameters (ZeRO-3, FSDP): each device keeps its part of the variables too. All-gathers
 *                        before the forward and the backward pass of the group bring the rest, which is freed after
 *                        them. Under policy fifo, with the barrier
 *     "reshard_after_forward"  of sharded parameters alone: true (default), or false: what is gathered before the
 *                        forward pass stays for the backward pass. Or a number of devices: after the forward pass
 *                        each device keeps the part that it has among so many consecutive ones, and the backward pass
 *                        gathers among these. It divides the shard group; 1 is false, all of the group is true
 *     "gathered_as"      of sharded parameters alone: f32, f16 or bf16, the type in which they are gathered, computed
 *                        with, and given gradients. Devices keep their parts, and update them, in the model's type.
 *                        Default: the model's type, which is a type of floats here
 *     "summed_as"        likewise: the type in which gradients travel and are summed, also among replicas, and in
 *                        which several micro-batches add them up that are summed last. "partition_bytes" counts bytes
 *                        of this type
 *   "variables"        an array, each variable of the model once, in any order:
 *     "name"             the variable's
 *     "partition"        default: not cut
 *       "axis"             the axis that is cut; default 0
 *       "shards"           into how many parts; the first (size mod shards) have one more row
 *     "encoding"         in which its gradient travels: none (default), f16 or bf16; or an object of an encoder
 *                        (strategy/encoder.h), whose groups have no "algorithm" and no "sharded":
 *       "kind"             int8: 8-bit integers in blocks that share a scale. topk: the elements of largest size
 *                          alone; what does not travel is added to the next iteration's gradient. powersgd: as the
 *                          product of two thin matrices; likewise. Its variables are whole, in a group without
 *                          "partition_bytes"
 *       "block_size"       of int8: how many elements share a scale, 8 to 65536; default 256
 *       "part"             of topk: the part of a message's elements that travels, 1e-6 to 0.5; default 0.01
 *       "rank"             of powersgd: columns of the thin matrices, 1 to 256, no more than a variable has rows or
 *                          columns; default 1
 *     "sync"             "kind" is all_reduce, with "group" id of its group, or parameter_server, with
 *       "servers"          names of nodes; shard k lives on server k mod their number
 *       "local_reduction"  whether devices of a node sum first, so that one push a node is sent; default true
 *       "partition_bytes"  the largest push or pull, at least 1024; default: a shard is one message
 *       "push"             a number from 1. Served variables with the same number travel in one push and one pull, as
 *                          the variables of a merge group do. They are not cut, and have the same server,
 *                          local_reduction, partition_bytes and element type on the wire; default: alone
 *     "each_shard"       in place of "encoding" and "sync", of a variable that is cut: an array with an entry for each
 *                        shard, which has these two members. A served shard has one server and no "push"
 *   "consistency"      how far workers may drift apart, and who orders their updates (strategy/consistency.h); default:
 *                      synchronous, which is all that is said here about sums
 *
 *   {"name": "embedding", "partition": {"shards": 3}, "each_shard": [
 *       {"sync": {"kind": "all_reduce", "group": 0}},
 *       {"sync": {"kind": "all_reduce", "group": 1}, "encoding": "f16"},
 *       {"sync": {"kind": "parameter_server", "servers": ["n2"]}}]}
 *
 * A sparse variable that is cut along axis 0 sends its touched rows in all shards or in none: nobody knows which of its
 * shards will have fewer. The slices of a group add up to its bytes on the wire. Under preemptive nothing else may cut:
 * every variable is all-reduced whole, in a group without "partition_bytes" and "sharded" and not by all_gather.
 *
 * A strategy in memory is plain data; strategy_check checks it for a model and a cluster. */
#ifndef STRATEGY_STRATEGY_H
#define STRATEGY_STRATEGY_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/id.h"
#include "strategy/cluster.h"
#include "strategy/consistency.h"
#include "strategy/model.h"

#define POLICY_TABLE(X) X(fifo) X(priority) X(preemptive)
enum policy {
#define X(name) POLICY_##name,
    POLICY_TABLE(X)
#undef X
        POLICY_COUNT
};

#define ENCODING_TABLE(X) X(none) X(f16) X(bf16) X(int8) X(topk) X(powersgd)
enum encoding {
#define X(name) ENCODING_##name,
    ENCODING_TABLE(X)
#undef X
        ENCODING_COUNT
};

/* How few bytes an element of a gradient travels in: as many as it has, two, one, or any number. */
enum lossiness { LOSSY_none, LOSSY_half, LOSSY_byte, LOSSY_any, LOSSINESS_COUNT };

#define SHARDED_TABLE(X) X(none) X(optimizer) X(gradients) X(parameters)
enum sharded {
#define X(name) SHARDED_##name,
    SHARDED_TABLE(X)
#undef X
        SHARDED_COUNT
};

#define SYNCHRONIZE_TABLE(X) X(last) X(each) X(each_all_reduce_last)
enum synchronize {
#define X(name) SYNCHRONIZE_##name,
    SYNCHRONIZE_TABLE(X)
#undef X
        SYNCHRONIZE_COUNT
};

/* In which type sharded parameters are gathered, or their gradients summed. */
#define CARRIED_TABLE(X) X(f32) X(f16) X(bf16)
enum carried {
    CARRIED_own, /* the model's */
#define X(name) CARRIED_##name,
    CARRIED_TABLE(X)
#undef X
        CARRIED_COUNT
};

enum sync_kind { SYNC_ALL_REDUCE, SYNC_PARAMETER_SERVER };

#define CREDIT_UNLIMITED UINT64_MAX

/* POLICY_preemptive: the next `bytes` of a merge group's stream travel as one message (PACE §IV). */
struct slice {
    uint32_t group; /* position in groups[] */
    uint64_t bytes; /* whole elements, at least one */
};

/* Limits: of any number of bytes, the least "partition_bytes", of a variable's shards, of a strategy's slices. */
#define STRATEGY_MAX_BYTES (UINT64_C(1) << 48)
enum { STRATEGY_MIN_PARTITION_BYTES = 1024, STRATEGY_MAX_SHARDS = 65536, STRATEGY_MAX_SLICES = 4000000 };
enum { STRATEGY_MAX_MICRO_BATCHES = 4096 };

struct group {
    uint64_t id; /* the number that variables name; groups are kept in rising order of it */
    enum algorithm algorithm;
    uint64_t partition_bytes; /* largest message; 0 = whole */
    enum sharded sharded;
    bool keeps_gathered; /* SHARDED_parameters: from the forward to the backward pass ("reshard_after_forward" false) */
    uint32_t reshard_ranks; /* SHARDED_parameters: among how many devices parts are kept between the passes; 0: among
                             * those that share the shards, or keeps_gathered */
    enum carried gathered_as, summed_as; /* SHARDED_parameters */
};

/* How a variable is synchronized: mostly in one way for all of its shards. A shard with a way of its own has the same
 * struct, with the axis and the number of shards of its variable. Code that reads a strategy goes through the parts of
 * each variable (sync_parts, sync_part): a part is synchronized in one way. */
struct variable_sync {
    uint32_t axis, shards;      /* shards = 1: not cut; the first (dim mod shards) shards have one more row */
    struct variable_sync *each; /* NULL: what follows is the way of all shards. Else it is that of shard 0, once
                                 * sealed, and the ways of all are here: `shards` entries */
    enum sync_kind kind;
    enum encoding encoding;
    double figure;  /* of an encoder (strategy/encoder.h); else 0 */
    uint32_t group; /* SYNC_ALL_REDUCE: position in groups[] */
    /* SYNC_PARAMETER_SERVER: shard k lives on servers[k mod n_servers] (positions in the cluster's nodes). */
    uint32_t n_servers;
    const uint32_t *servers;
    bool local_reduction;     /* sum inside a node first, and send once a node */
    uint64_t partition_bytes; /* largest push or pull; 0 = whole shard */
    uint32_t push;            /* the variables with the same number, from 1, travel in one push; 0 = alone */
};

struct strategy {
    struct arena arena; /* owns everything below */
    struct id id;       /* filled by strategy_read and strategy_seal */
    const char *name;
    enum policy policy;
    uint64_t credit_bytes;
    bool cross_iteration;
    bool pulls_by_priority;                       /* "pulls"; sealed: only where it makes a difference */
    uint32_t forward_prefetch, backward_prefetch; /* sealed: 1 where no parameters are sharded */
    uint32_t shard_ranks;                         /* devices that share sharded parameters; 0: all */
    uint32_t micro_batches;                       /* an iteration; at least 1 */
    enum synchronize synchronize;                 /* sealed: last where there is one micro-batch */
    struct consistency consistency;
    uint32_t n_groups, n_variables, n_slices; /* n_variables = the model's; n_slices: POLICY_preemptive only */
    struct group *groups;
    struct slice *slices;            /* in the order in which they go; those of a group add up to its bytes */
    struct variable_sync *variables; /* in the model's order of variables */
};

/* The parts of a variable: one, which is all shards, or each shard. sync_part(sync, k) is also the way of shard k. */
static inline uint32_t sync_parts(const struct variable_sync *sync) {
    return sync->each ? sync->shards : 1;
}
static inline const struct variable_sync *sync_part(const struct variable_sync *sync, uint32_t k) {
    return sync->each ? &sync->each[k] : sync;
}
static inline struct variable_sync *sync_edit_part(struct variable_sync *sync, uint32_t k) {
    return sync->each ? &sync->each[k] : sync;
}

const char *policy_name(enum policy policy);
const char *encoding_name(enum encoding encoding);
enum lossiness encoding_lossiness(enum encoding encoding);

/* Whether no all-reduce can add what travels (strategy/encoder.h). */
static inline bool encoding_is_encoder(enum encoding encoding) {
    return encoding >= ENCODING_int8;
}
/* Whether what does not travel of a gradient is added to the next one. */
static inline bool encoding_keeps_back(enum encoding encoding) {
    return encoding == ENCODING_topk || encoding == ENCODING_powersgd;
}
/* NULL: of CARRIED_own. */
const char *carried_name(enum carried carried);
/* The type of elements that are `own` in the model. */
enum dtype carried_dtype(enum carried carried, enum dtype own);
/* Whether elements of `own` may be rounded as they are carried so. */
bool carried_rounds(enum carried carried, enum dtype own);
extern const char *const carried_words[]; /* the names from CARRIED_f32 on, and NULL behind them */

const char *sharded_name(enum sharded sharded);
extern const char *const sharded_words[SHARDED_COUNT + 1]; /* the names, and NULL behind them */

/* From its name. Fails: ST_USAGE. */
enum status sharded_named(const char *word, enum sharded *out, struct error *err);
const char *synchronize_name(enum synchronize synchronize);

/* Whether a gradient, or this part of it, travels as its touched rows: sparse, and under a server or gathered. */
bool strategy_moves_rows(const struct strategy *strategy, const struct variable *variable,
                         const struct variable_sync *sync);

/* How many groups have sharded parameters. O(groups). */
uint32_t strategy_sharded_parameters(const struct strategy *strategy);

/* How many devices share sharded parameters: shard_ranks, or all. */
uint32_t strategy_shard_group(const struct strategy *strategy, const struct cluster *cluster);

/* How far ahead parameters can be gathered: over so many groups, or 1. */
uint32_t strategy_deepest_prefetch(const struct strategy *strategy);

/* Whether pulls wait for their turn: pulls_by_priority, and policy, credit and servers are such that it matters. */
bool strategy_orders_pulls(const struct strategy *strategy);

/* The dtype into which "encoding" turns this part of a variable's gradient; with an encoder, and where groups say
 * "summed_as", its own. */
enum dtype strategy_wire_dtype(const struct variable *variable, const struct variable_sync *sync);

/* The dtype in which it travels: that, or as its group says. */
enum dtype strategy_sum_dtype(const struct strategy *strategy, const struct variable *variable,
                              const struct variable_sync *sync);

/* The encoding in which it travels: its own, or f16 or bf16 where its group is "summed_as" that. */
enum encoding strategy_sum_encoding(const struct strategy *strategy, const struct variable_sync *sync);

/* Read a description for this model and cluster: every variable of the model exactly once, servers that the cluster
 * has. Fails: ST_INVALID, ST_NO_MEMORY. Release with strategy_release. */
enum status strategy_read(const cJSON *json, const char *name, const struct model *model, const struct cluster *cluster,
                          struct strategy *out, struct error *err);
enum status strategy_read_file(const char *path, const struct model *model, const struct cluster *cluster,
                               struct strategy *out, struct error *err);

/* The description; NULL when memory is out. */
cJSON *strategy_write(const struct strategy *strategy, const struct model *model, const struct cluster *cluster);

/* The canonical text whose SHA-256 is the id: the description without its name. malloc'd; NULL when memory is out. */
char *strategy_canonical(const struct strategy *strategy, const struct model *model, const struct cluster *cluster);

/* An empty strategy for `model`: arrays of n_groups zeroed groups and the model's variables, each all-reduced whole in
 * group 0 (shards = 1); fifo, no credit limit, barrier, prefetch 1, one micro-batch, no slices. For builders, who take
 * the memory of slices and servers from its arena; finish with strategy_seal. */
enum status strategy_init(struct strategy *out, const char *name, const struct model *model, uint32_t n_groups,
                          struct error *err);

/* A deep copy under a new name, to be changed and sealed. */
enum status strategy_copy(const struct strategy *from, const char *name, struct strategy *out, struct error *err);

/* Give what *sync points to memory of its own, from the strategy's arena. False when memory is out. */
bool strategy_own_sync(struct strategy *strategy, struct variable_sync *sync);

/* No partitions in groups whose members powersgd encodes, which needs whole matrices. */
void strategy_leave_matrices_whole(struct strategy *strategy);

/* Check a built strategy (strategy_check), bring it into its one form and compute its id: groups without members are
 * dropped and the rest are numbered 0, 1, ... in the order of their first variable, pushes 1, 2, ... likewise, a push
 * of one variable is 0, axis is 0 where shards is 1, fields of the other kind are cleared; pulls_by_priority is false
 * where it changes nothing (without policy priority, a credit and servers); prefetch is at most the number of groups
 * with sharded parameters, or 1 without any; shard_ranks of all devices is 0, and so is reshard_ranks of all that share
 * the shards; one micro-batch is summed last, and each_all_reduce_last is each without replicas; a type in which a
 * group is carried is CARRIED_own where it is the model's; slices follow their groups and keep their order; shards that
 * all do what one entry can say have no entries of their own. The name is not part of the id: the id says what is done,
 * not what it is called. */
enum status strategy_seal(struct strategy *strategy, const struct model *model, const struct cluster *cluster,
                          struct error *err);

/* Every rule: axis < rank, shards <= the axis, servers exist and are distinct and no more than shards, one dtype and
 * encoding a merge group, only sparse ones where it is gathered, groups exist, at least one device, what shares a push
 * is whole and alike, shard groups divide the devices, and those of strategy/slices.h. The message says which rule is
 * broken, for which variable, group or slice. Fails: ST_INVALID, ST_NO_MEMORY. */
enum status strategy_check(const struct strategy *strategy, const struct model *model, const struct cluster *cluster,
                           struct error *err);

/* The rules about one group alone. Fails: ST_INVALID. */
enum status strategy_check_group(const struct strategy *strategy, const struct group *group, struct error *err);

/* The rules about one variable alone. Fails: ST_INVALID. */
enum status strategy_check_variable(const struct strategy *strategy, const struct variable *variable,
                                    const struct variable_sync *sync, const struct cluster *cluster, struct error *err);

/* The set of 1u << ALGORITHM_... that its groups name, without auto, for which every runner has something. */
uint32_t strategy_algorithms(const struct strategy *strategy);

/* What two served variables differ in that may not share a push, as a word for people; NULL: they may share one. */
const char *strategy_push_difference(const struct strategy *strategy, const struct model *model, uint32_t a,
                                     uint32_t b);

/* The rule about the push of variable i: it may be shared with the first variable of the same number.
 * `first_of_push` has n_variables + 1 slots, UINT32_MAX where no variable of the number was seen yet; the function
 * fills them. Fails: ST_INVALID. */
enum status strategy_check_push(const struct strategy *strategy, const struct model *model, uint32_t i,
                                uint32_t *first_of_push, struct error *err);

void strategy_release(struct strategy *strategy);

#endif
