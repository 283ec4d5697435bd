/* The best wrapping of sharded parameters that fits into a device's memory. */
#ifndef STRATEGY_BASELINES_FSDP_OPTIMAL_H
#define STRATEGY_BASELINES_FSDP_OPTIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "strategy/cost/cost.h"
#include "strategy/model.h"
#include "strategy/strategy.h"

/* budget_bytes: what a device may hold at most (strategy/memory.h); 0: any. Fails: ST_INFEASIBLE (nothing fits; the
 * message says how much is needed), ST_NO_MEMORY, as work_check. */
enum status fsdp_optimal_within(const struct model *model, const struct cost *cost, uint64_t budget_bytes,
                                struct strategy *out, struct error *err);

/* The same, and where nothing fits what needs the least memory (fsdp_least_memory). Fails: ST_NO_MEMORY, as work_check.
 */
enum status fsdp_optimal_nearest(const struct model *model, const struct cost *cost, uint64_t budget_bytes,
                                 struct strategy *out, struct error *err);

/* fsdp_optimal_within for each of n budgets, what they share computed once. fits[n]: whether out[i] is there, the
 * caller's to release. Fails: ST_NO_MEMORY, as work_check. */
enum status fsdp_optimal_for_each(const struct model *model, const struct cost *cost, size_t n, const uint64_t *budgets,
                                  struct strategy *out, bool *fits, struct error *err);

/* What needs the least memory: mostly every layer in a group of its own. Fails: ST_NO_MEMORY, as work_check. */
enum status fsdp_least_memory(const struct model *model, const struct cost *cost, struct strategy *out,
                              struct error *err);

#endif
