/* One parameter server: every variable whole on the first node, as AutoDist's PS builder takes the first host CPU of
 * its resource list. Each push goes when its gradient is ready, with no limit on what is in flight; devices of a node
 * reduce among themselves first; the next iteration waits for all pulls. Source: AutoDist, strategy PS; Li et al., OSDI
 * 2014. */
#include "strategy/baselines/baselines.h"
#include "strategy/baselines/builder.h"

enum status baseline_ps(const struct model *model, const struct cost *cost, struct strategy *out, struct error *err) {
    struct strategy s;
    enum status st = strategy_init(&s, "ps", model, 0, err);
    if (st)
        return st;
    for (uint32_t v = 0; v < s.n_variables && !st; v++)
        st = baseline_serve(&s, v, 0, err);
    return baseline_finish(st, &s, model, cost->cluster, out, err);
}
