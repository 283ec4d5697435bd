/* DeAR: all-reduces in halves, a reduce-scatter during the backward pass, an all-gather that the next forward pass
 * waits for. Buckets of 25 MiB in the order of readiness. The all-gathers follow all reduce-scatters, in the order in
 * which the forward pass needs them. The system searches the size of its buckets by measurements; here the size is the
 * one that the search begins with. One message at a time, on one stream of NCCL.
 *
 * Here all parts are updated before the forward pass begins (strategy/plan.h). Source: Zhang et al., "DeAR" (ICDCS
 * 2023). */
#include "strategy/baselines/baselines.h"
#include "strategy/baselines/builder.h"
#include "strategy/baselines/pytorch_ddp.h"

enum status baseline_dear(const struct model *model, const struct cost *cost, struct strategy *out, struct error *err) {
    struct strategy s;
    enum status st = pytorch_ddp_build(model, cost->cluster, UINT64_C(25) << 20, "dear", &s, err);
    if (st)
        return st;
    for (uint32_t g = 0; g < s.n_groups; g++)
        s.groups[g].sharded = s.groups[g].algorithm == ALGORITHM_auto ? SHARDED_optimizer : SHARDED_none;
    s.cross_iteration = true;
    return baseline_finish(ST_OK, &s, model, cost->cluster, out, err);
}
