/* Wait-free backpropagation: each gradient is all-reduced on its own as soon as the backward pass has made it.
 * Source: Zhang et al., Poseidon, ATC 2017; MG-WFBP §2.3. One all-reduce runs at a time, in the order of readiness
 * (MG-WFBP equation 7), hence stop-and-wait: credit 0; the next iteration waits for all. */
#include "strategy/baselines/baselines.h"
#include "strategy/baselines/builder.h"

enum status baseline_wfbp(const struct model *model, const struct cost *cost, struct strategy *out, struct error *err) {
    struct strategy s;
    enum status st = strategy_init(&s, "wfbp", model, model->n_variables, err);
    if (st)
        return st;
    s.credit_bytes = 0;
    for (uint32_t v = 0; v < s.n_variables; v++)
        s.variables[v].group = v;
    return baseline_finish(ST_OK, &s, model, cost->cluster, out, err);
}
