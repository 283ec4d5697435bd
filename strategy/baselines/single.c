/* SyncEASGD: all gradients in one message after the backward pass. It pays one start-up and overlaps nothing.
 * Source: You et al., SC 2017; MG-WFBP §2.4. A model with several dtypes has one message a dtype. */
#include "strategy/baselines/baselines.h"
#include "strategy/baselines/builder.h"

enum status baseline_single(const struct model *model, const struct cost *cost, struct strategy *out,
                            struct error *err) {
    struct strategy s;
    enum status st = strategy_init(&s, "single", model, DTYPE_COUNT, err);
    if (st)
        return st;
    s.credit_bytes = 0;
    for (uint32_t v = 0; v < s.n_variables; v++)
        s.variables[v].group = model->variables[v].dtype;
    return baseline_finish(ST_OK, &s, model, cost->cluster, out, err);
}
