/* PACE's schedule, but gradients are not fused into balanced sizes: of all ways to fuse neighbours in the order of
 * readiness, fusion_makespan finds the one whose schedule is the shortest. PACE §V leaves this problem open. */
#include "strategy/baselines/baselines.h"
#include "strategy/baselines/preemptive.h"

enum status baseline_pace_makespan(const struct model *model, const struct cost *cost, struct strategy *out,
                                   struct error *err) {
    return baseline_preemptive("pace-makespan", fusion_makespan, model, cost, out, err);
}
