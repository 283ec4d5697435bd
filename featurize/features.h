/* What a strategy looks like in numbers: what learned rankers read.
 *
 * Three views of one (model, cluster, strategy). Their features are the same for every domain (AutoSync §3.1.1,
 * §3.1.2):
 *   - global: the predefined terms (per-variable costs under parameter server and all-reduce, maximum and mean over
 *     variables), the timeline's own terms, bytes by NIC, and the strategy's knobs. A vector of fixed length.
 *   - shards: a row for each shard, in the order in which gradients become ready, with its predefined terms and its
 *     attributes. Shards of a variable that no feature tells apart share a row, and `weight` counts them.
 *   - edges: the variable graph, the model's operators pruned to producers, which produce gradients. The variables of a
 *     producer form a chain in the order of the sequence. An edge also leads from the last variable of one producer to
 *     the first of another, if a path of operators joins the two and passes no third producer. A producer keeps only
 *     its FEATURE_FAN_IN latest predecessors, so there are O(variables) edges.
 * The features with their units are the tables in featurize/features_table.h and docs/features.md.
 * A gathered gradient counts as all-reduced, by none of the algorithms. An all-gather has no feature of its own, so
 * rankers that were trained before there was one can still be read.
 * Sizes and times enter as logarithms of base 2, log2(1 + x), so that no feature spans more than some tens.
 * Threads: features are plain data; a const struct features may be shared. */
#ifndef FEATURIZE_FEATURES_H
#define FEATURIZE_FEATURES_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "featurize/features_table.h"
#include "strategy/cost/cost.h"
#include "strategy/plan.h"

/* What the timeline says of the plan; the caller runs it, since featurize lies below the simulator. Microseconds, all
 * finite. None is negative, except exposed_us: a value below 0 counts as 0. */
struct timeline_terms {
    double iteration_us, compute_us, exposed_us, busy_us, queue_us;
};

enum { FEATURE_FAN_IN = 8 };

struct feature_edge {
    uint32_t from, to; /* places in the sequence of variables, from < to: from's gradient is ready no later than to's */
};

struct features {
    struct arena arena; /* owns the arrays */
    double global[FEATURE_GLOBAL_COUNT];
    uint32_t n_variables; /* places of the sequence: the model's variables in backward order */
    size_t n_shards;
    double *shards;     /* row-major n_shards x FEATURE_SHARD_COUNT; rows of one variable lie together, in order */
    uint32_t *variable; /* [n_shards] place of the row's variable in the sequence, rising */
    double *weight;     /* [n_shards] how many shards the row stands for, at least 1 */
    size_t n_edges;
    struct feature_edge *edges; /* sorted by from, then to; no two alike */
    uint64_t partitions;        /* P of AutoSync's equation 3: shards of all variables together */
    double timeline_us;         /* terms->iteration_us: what a residual ranker corrects */
};

/* All views of a plan, which must be `strategy` lowered onto the cluster of `cost`. Every number is finite.
 * Fails: ST_NO_MEMORY. O(operators + shards log shards + pieces + servers * (workers + links)). Release with
 * features_release. */
enum status features_of(const struct strategy *strategy, const struct plan *plan, const struct cost *cost,
                        const struct timeline_terms *terms, struct features *out, struct error *err);
void features_release(struct features *features); /* zeroed ones are allowed */

const char *feature_global_name(size_t i); /* i < FEATURE_GLOBAL_COUNT */
const char *feature_shard_name(size_t i);  /* i < FEATURE_SHARD_COUNT */

#endif
