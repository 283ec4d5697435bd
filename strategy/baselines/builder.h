/* What the baselines share in building.
 *
 * In two things the strategy format differs from most systems, and no baseline imitates those systems there:
 *   - Shards of a variable are rows of an axis, as equal as they can be. Many systems slice a flat buffer into full
 *     slices and a rest.
 *   - A sparse gradient travels as its touched rows to a server, and dense in an all-reduce, but for baselines whose
 *     system gathers it: horovod. */
#ifndef STRATEGY_BASELINES_BUILDER_H
#define STRATEGY_BASELINES_BUILDER_H

#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"

/* Seal *built and move it to *out; on failure release it. `st` is the status so far, passed on when it is not ST_OK. */
enum status baseline_finish(enum status st, struct strategy *built, const struct model *model,
                            const struct cluster *cluster, struct strategy *out, struct error *err);

/* Bytes of so many elements of the model's mean width: exact where the model has one dtype. */
uint64_t baseline_bytes_of(const struct model *model, double elements);

/* ---- cutting ---- */

/* The smallest divisor of n from 2 up, n itself for a prime; 1 for 1. O(sqrt(n)). */
uint64_t baseline_least_divisor(uint64_t n);

/* As many shards as a strategy may have, at most `want`, at least 1. */
uint32_t baseline_shards(uint64_t want);

/* The fewest shards of axis 0 that hold at most `elements` each; its rows where one row holds more. 1 for a scalar. */
uint32_t baseline_shards_of_at_most(const struct variable *variable, uint64_t elements);

/* ---- servers ---- */

/* Nodes that serve: those without devices where there are any, else all. */
struct servers {
    uint32_t n;
    uint32_t *nodes;
};
enum status baseline_servers(struct arena *arena, const struct cluster *cluster, struct servers *out,
                             struct error *err);

/* Put variable v, whole, on one server, a node, with local reduction. Fails: ST_NO_MEMORY. */
enum status baseline_serve(struct strategy *strategy, uint32_t v, uint32_t node, struct error *err);

/* Cut variable v along axis 0 and put shard k on the pool's server (first + k) mod n, with local reduction. */
enum status baseline_spread(struct strategy *strategy, uint32_t v, uint32_t shards, const struct servers *pool,
                            uint64_t first, struct error *err);

/* The bytes that every node of the cluster holds so far, as AutoDist's greedy balancers count them. */
struct balance {
    uint32_t n;
    uint32_t *heap; /* nodes, the one with the fewest bytes on top, the first of equals */
    double *bytes;
};
enum status balance_init(struct balance *balance, struct arena *arena, uint32_t n_nodes, struct error *err);

/* Cut variable v (of so many bytes) along axis 0 and put its shards on the nodes with the fewest bytes, from the
 * fewest up, around again where there are more shards than nodes. O(min(shards, nodes) log nodes). */
enum status baseline_balance(struct strategy *strategy, uint32_t v, uint32_t shards, double bytes,
                             struct balance *balance, struct error *err);

/* ---- chunks ---- */

/* AutoDist's merge groups: the variables' parts are counted in the order of the model, 128 make a group, one a dtype.
 * {0} is the beginning. */
enum { AUTODIST_CHUNK = 128 };
struct chunker {
    uint64_t parts;
    uint32_t n_groups;
    uint32_t group[DTYPE_COUNT];
    uint64_t chunk[DTYPE_COUNT]; /* of group[], counted from 1; 0: the dtype has none yet */
};

/* The group of the next variable, which has `parts` parts. All go into the group of the first part, so a call makes at
 * most one group. */
uint32_t chunker_next(struct chunker *chunker, enum dtype dtype, uint32_t parts);

#endif
