/* XLA's combiners on GPUs: which all-reduces, all-gathers and reduce-scatters go together under given thresholds. The
 * exporter asks the other way round: which thresholds make given groups. Both take the items from xla_items and the
 * rule from buckets.h (BUCKET_COMBINED).
 * Source: openxla/xla, service/collective_combiner_utils.h, all_gather_combiner.h, reduce_scatter_combiner.h. */
#ifndef STRATEGY_BASELINES_XLA_H
#define STRATEGY_BASELINES_XLA_H

#include <stdint.h>

#include "base/error.h"
#include "strategy/baselines/buckets.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"

/* In each flag: --xla_gpu_NAME_combine_threshold_bytes. */
enum xla_collective { XLA_ALL_REDUCE, XLA_ALL_GATHER, XLA_REDUCE_SCATTER, XLA_COLLECTIVES };
const char *xla_collective_name(enum xla_collective collective); /* "all_reduce" */

/* Each threshold where nobody gives it, in bytes. */
#define XLA_THRESHOLD_BYTES (UINT64_C(30) * 1024 * 1024 + 7)

struct xla_settings {
    enum sharded sharded;                      /* of all variables: the program says it, no flag */
    uint64_t threshold_bytes[XLA_COLLECTIVES]; /* at least 1 */
};

/* The collectives of one kind that a program with this strategy has, in the order in which the combiner meets them:
 * items[] and of which variable each is, variables[]; both have room for all variables. The label is the variable's
 * group, BUCKET_ANY of a served one, which the program would all-reduce. `ready` and `read` are the orders of
 * strategy/space/ready_order.h. The strategy need not be sealed. Returns how many. O(variables). */
uint32_t xla_items(enum xla_collective collective, const struct strategy *strategy, const struct model *model,
                   const struct cluster *cluster, const uint32_t *ready, const uint32_t *read,
                   struct bucket_item *items, uint32_t *variables);

/* What XLA makes of a program under these settings; sealed under the name. What is sharded is gathered and summed in
 * the same groups here, so variables are in one group where both thresholds combine them. Fails: ST_NO_MEMORY.
 * O(variables log variables). */
enum status xla_build(const struct model *model, const struct cluster *cluster, const struct xla_settings *settings,
                      const char *name, struct strategy *out, struct error *err);

#endif
