/* Parameter servers on every node: each variable, in the order of the model, goes whole to the server that holds the
 * fewest bytes so far, the first one on ties. Bandwidth does not count. Otherwise as "ps".
 * Source: AutoDist, strategy PSLoadBalancing, its default. O(variables · log nodes). */
#include "strategy/baselines/baselines.h"
#include "strategy/baselines/builder.h"

enum status baseline_ps_load_balanced(const struct model *model, const struct cost *cost, struct strategy *out,
                                      struct error *err) {
    struct strategy s;
    struct balance balance;
    enum status st = strategy_init(&s, "ps-load-balanced", model, 0, err);
    if (st)
        return st;
    st = balance_init(&balance, &s.arena, cost->cluster->n_nodes, err);
    for (uint32_t v = 0; v < s.n_variables && !st; v++)
        st = baseline_balance(&s, v, 1, (double)model->variables[v].bytes, &balance, err);
    return baseline_finish(st, &s, model, cost->cluster, out, err);
}
