/* All gradients in one message after the backward pass: one start-up, and nothing overlaps. A model with several dtypes
 * has one message a dtype.
 *
 *   single       SyncEASGD. Source: You et al., SC 2017; MG-WFBP §2.4
 *   tree-reduce  along a binary tree, whatever the library would choose. Source: MLfabric §7, Tr-Sync */
#include "strategy/baselines/baselines.h"
#include "strategy/baselines/builder.h"

static enum status build(const char *name, enum algorithm algorithm, const struct model *model, const struct cost *cost,
                         struct strategy *out, struct error *err) {
    struct strategy s;
    enum status st = strategy_init(&s, name, model, DTYPE_COUNT, err);
    if (st)
        return st;
    s.credit_bytes = 0;
    for (uint32_t g = 0; g < s.n_groups; g++)
        s.groups[g].algorithm = algorithm;
    for (uint32_t v = 0; v < s.n_variables; v++)
        s.variables[v].group = model->variables[v].dtype;
    return baseline_finish(ST_OK, &s, model, cost->cluster, out, err);
}

enum status baseline_single(const struct model *model, const struct cost *cost, struct strategy *out,
                            struct error *err) {
    return build("single", ALGORITHM_auto, model, cost, out, err);
}

enum status baseline_tree_reduce(const struct model *model, const struct cost *cost, struct strategy *out,
                                 struct error *err) {
    return build("tree-reduce", ALGORITHM_tree, model, cost, out, err);
}
