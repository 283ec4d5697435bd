/* PACE's schedule, but gradients fused so that the schedule is as short as it can be instead of into balanced sizes:
 * what PACE §V leaves open. Of all ways to fuse neighbours in the order of readiness the best, by fusion_makespan. */
#include "strategy/baselines/baselines.h"
#include "strategy/baselines/preemptive.h"

enum status baseline_pace_makespan(const struct model *model, const struct cost *cost, struct strategy *out,
                                   struct error *err) {
    return baseline_preemptive("pace-makespan", fusion_makespan, model, cost, out, err);
}
