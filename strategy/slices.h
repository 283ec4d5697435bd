/* The slices of policy preemptive: the order in which bytes go, cut as an exact schedule cuts them (PACE §IV).
 *
 * A group's gradients form one stream, its members in the order of readiness. A slice is the next `bytes` of one
 * group's stream. The rules:
 *   - only policy preemptive has slices;
 *   - under it every variable is all-reduced and not cut, and no group has a partition size: only slices cut;
 *   - a slice is of a group that exists and holds whole elements, at least one;
 *   - a group's slices add up to the bytes that its gradients have on the wire. */
#ifndef STRATEGY_SLICES_H
#define STRATEGY_SLICES_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "strategy/model.h"
#include "strategy/strategy.h"

/* Read the member "group" of `at`, which is a slice or a variable: *out is the position in groups[] of the group with
 * this id. Defined in strategy/strategy_json.c. Fails: ST_INVALID. */
enum status strategy_read_group(const struct json_at *at, const struct strategy *strategy, uint32_t *out,
                                struct error *err);

/* Read the slices of the description `root` into the strategy, whose policy, groups and variables are there already,
 * and check them. Fails: ST_INVALID with the place, ST_NO_MEMORY. */
enum status slices_read(const struct json_at *root, const struct model *model, struct strategy *strategy,
                        struct error *err);

/* Add "slices" to the description of the schedule; nothing when there are none. False when memory is out. */
bool slices_write(const struct strategy *strategy, cJSON *schedule);

/* The rules that are about one group or one variable, for any policy. Fails: ST_INVALID. */
enum status slices_check_group(const struct strategy *strategy, const struct group *group, struct error *err);
enum status slices_check_variable(const struct strategy *strategy, const struct variable *variable,
                                  const struct variable_sync *sync, struct error *err);

/* The rules that are about the slices themselves; the groups of variables must exist. Fails: ST_INVALID,
 * ST_NO_MEMORY. O(groups + variables + slices). */
enum status slices_check(const struct strategy *strategy, const struct model *model, struct error *err);

#endif
