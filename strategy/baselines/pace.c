/* PACE: gradients fused into runs of balanced size, for the number of runs whose preemptive schedule is the shortest,
 * and cut where that schedule cuts them. No barrier: a forward step waits only for the gradients that it needs.
 * Source: Bao et al., INFOCOM 2020, algorithm 1 with the schedule of §IV. The paper solves its integer program with a
 * linear program and slots of some milliseconds; here time is continuous and the schedule exact. One message at a time
 * (equation 6): credit 0. */
#include "strategy/baselines/baselines.h"
#include "strategy/baselines/preemptive.h"

enum status baseline_pace(const struct model *model, const struct cost *cost, struct strategy *out, struct error *err) {
    return baseline_preemptive("pace", fusion_balanced, model, cost, out, err);
}
