/* A cluster's costs as exact programs see them, and what the timeline makes of a strategy by them. */
#ifndef TESTS_SUPPORT_STRATEGY_LONE_MESSAGES_H
#define TESTS_SUPPORT_STRATEGY_LONE_MESSAGES_H

#include <stddef.h>

#include "simulator/timeline.h"
#include "strategy/cost/cost.h"
#include "strategy/plan.h"
#include "tests/support/check.h"

/* An exact program reads a message's time from its curve alone; what NICs save up between messages only the timeline
 * knows. */
static inline void lone_messages_save_nothing(struct cost *cost) {
    cost->burst_bytes = cost->all_reduce.burst_us = 0;
    for (int a = 0; a < ALGORITHM_COUNT; a++)
        cost->all_reduce.curves[a].hold_per_byte_us = NULL;
    for (int h = 0; h < HALVES; h++)
        cost->all_reduce.halves[h].hold_per_byte_us = NULL;
}

/* The iteration of a strategy for this model, on the cluster of `cost`. */
static inline double lone_messages_us(struct timeline *timeline, const struct model *model, const struct cost *cost,
                                      const struct strategy *strategy) {
    struct error err;
    struct plan plan;
    struct prediction p;
    assert_ok(plan_lower(model, cost->cluster, strategy, &plan, &err));
    assert_ok(timeline_run(timeline, &plan, cost, NULL, &p, &err));
    plan_release(&plan);
    return p.iteration_us;
}

#endif
