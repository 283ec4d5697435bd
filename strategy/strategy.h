/* A strategy: how each variable's gradient is synchronized (schema syncopate.strategy/1; AutoSync §2).
 *
 * Per variable: partition (at most one axis is cut) and architecture, either all-reduce in a merge group or parameter
 * server on one or more servers. Per group: algorithm and partition size. For the whole: scheduling policy, credit and
 * whether communication may run on into the next iteration's forward pass (ByteScheduler §4).
 *
 * A strategy is plain data that names a model's variables and a cluster's nodes; strategy_check holds it against both.
 * Three optional members beside DESIGN.md's: "credit_bytes" absent means no limit (0 is stop-and-wait), a
 * parameter_server sync may carry "partition_bytes", the largest push or pull, and the schedule of policy preemptive
 * carries "slices", the messages in the one order in which they go:
 *     "schedule":{"policy":"preemptive","slices":[{"group":0,"bytes":4096},{"group":1,"bytes":512}, ...]}
 * A slice is the next `bytes` of its group's gradients, members in the order of readiness; a group's slices add up to
 * its bytes on the wire. Under this policy slices alone cut: all variables are all-reduced whole, in groups without
 * partition_bytes. */
#ifndef STRATEGY_STRATEGY_H
#define STRATEGY_STRATEGY_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/id.h"
#include "strategy/cluster.h"
#include "strategy/model.h"

#define POLICY_TABLE(X) X(fifo) X(priority) X(preemptive)
enum policy {
#define X(name) POLICY_##name,
    POLICY_TABLE(X)
#undef X
        POLICY_COUNT
};

#define ENCODING_TABLE(X) X(none) X(f16) X(bf16)
enum encoding {
#define X(name) ENCODING_##name,
    ENCODING_TABLE(X)
#undef X
        ENCODING_COUNT
};

enum sync_kind { SYNC_ALL_REDUCE, SYNC_PARAMETER_SERVER };

#define CREDIT_UNLIMITED UINT64_MAX

/* POLICY_preemptive: the next `bytes` of a merge group's stream travel as one message (PACE §IV). */
struct slice {
    uint32_t group; /* position in groups[] */
    uint64_t bytes; /* whole elements, at least one */
};

enum { STRATEGY_MAX_SLICES = 4000000 };

struct group {
    uint64_t id; /* the number that variables name; groups are kept in rising order of it */
    enum algorithm algorithm;
    uint64_t partition_bytes; /* largest message; 0 = whole */
};

struct variable_sync {
    uint32_t axis, shards; /* shards = 1: not cut; the first (dim mod shards) shards have one more row */
    enum sync_kind kind;
    enum encoding encoding;
    uint32_t group; /* SYNC_ALL_REDUCE: position in groups[] */
    /* SYNC_PARAMETER_SERVER: shard k lives on servers[k mod n_servers] (positions in the cluster's nodes). */
    uint32_t n_servers;
    const uint32_t *servers;
    bool local_reduction;     /* sum inside a node first, and send once a node */
    uint64_t partition_bytes; /* largest push or pull; 0 = whole shard */
};

struct strategy {
    struct arena arena; /* owns everything below */
    struct id id;       /* filled by strategy_read and strategy_seal */
    const char *name;
    enum policy policy;
    uint64_t credit_bytes;
    bool cross_iteration;
    uint32_t n_groups, n_variables, n_slices; /* n_variables = the model's; n_slices: POLICY_preemptive only */
    struct group *groups;
    struct slice *slices;            /* in the order in which they go; those of a group add up to its bytes */
    struct variable_sync *variables; /* in the model's order of variables */
};

const char *policy_name(enum policy policy);
const char *encoding_name(enum encoding encoding);

/* The dtype in which a variable's gradient travels. */
enum dtype strategy_wire_dtype(const struct variable *variable, const struct variable_sync *sync);

/* Read a description for this model and cluster: every variable of the model exactly once, servers that the cluster
 * has. Fails: ST_INVALID, ST_NO_MEMORY. Release with strategy_release. */
enum status strategy_read(const cJSON *json, const char *name, const struct model *model, const struct cluster *cluster,
                          struct strategy *out, struct error *err);
enum status strategy_read_file(const char *path, const struct model *model, const struct cluster *cluster,
                               struct strategy *out, struct error *err);

/* The description; NULL when memory is out. */
cJSON *strategy_write(const struct strategy *strategy, const struct model *model, const struct cluster *cluster);

/* The canonical text that the id is made of: the description without its name. malloc'd; NULL when memory is out. */
char *strategy_canonical(const struct strategy *strategy, const struct model *model, const struct cluster *cluster);

/* An empty strategy for `model`: arrays of n_groups zeroed groups and the model's variables, each all-reduced whole in
 * group 0 (shards = 1); fifo, no credit limit, barrier, no slices. For builders, who take the memory of slices and
 * servers from its arena; finish with strategy_seal. */
enum status strategy_init(struct strategy *out, const char *name, const struct model *model, uint32_t n_groups,
                          struct error *err);

/* A deep copy under a new name, to be changed and sealed. */
enum status strategy_copy(const struct strategy *from, const char *name, struct strategy *out, struct error *err);

/* Bring a built strategy into its one form and compute its id: groups without members are dropped and the rest are
 * numbered 0, 1, ... in the order of their first variable, axis is 0 where shards is 1, fields of the other kind are
 * cleared; slices follow their groups and keep their order. Then strategy_check. The name is not part of the id: the id
 * says what is done, not what it is called. */
enum status strategy_seal(struct strategy *strategy, const struct model *model, const struct cluster *cluster,
                          struct error *err);

/* Every rule: axis < rank, shards <= the axis, servers exist and are distinct and no more than shards, one dtype and
 * encoding a merge group, groups exist, at least one device, and those of slices.h. The message says which rule is
 * broken, for which variable, group or slice. Fails: ST_INVALID, ST_NO_MEMORY. */
enum status strategy_check(const struct strategy *strategy, const struct model *model, const struct cluster *cluster,
                           struct error *err);

void strategy_release(struct strategy *strategy);

#endif
