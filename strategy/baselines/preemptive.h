/* Strategies from an exact preemptive schedule of fused gradients: what pace and pace-makespan share. */
#ifndef STRATEGY_BASELINES_PREEMPTIVE_H
#define STRATEGY_BASELINES_PREEMPTIVE_H

#include "base/error.h"
#include "strategy/cost/cost.h"
#include "strategy/exact/fusion.h"
#include "strategy/model.h"
#include "strategy/strategy.h"

/* fusion_balanced or fusion_makespan. */
typedef enum status fusion_rule(uint32_t n, const struct gradient *gradients, const struct cost_line *line,
                                struct fusion *out, struct error *err);

/* Fuse by `rule` and cut as the exact schedule does. Release times and tails are those of the slowest node; a group
 * costs what the fitted line of an all-reduce on this cluster says. A slice ends at a multiple of 8 bytes, which is a
 * whole number of elements of any dtype, or at the end of its group. Fails: ST_NO_MEMORY. */
enum status baseline_preemptive(const char *name, fusion_rule *rule, const struct model *model, const struct cost *cost,
                                struct strategy *out, struct error *err);

#endif
