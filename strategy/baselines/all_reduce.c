/* AutoDist's AllReduce: 128 variables after each other in the order of the model make one merge group, split by dtype.
 * Model order is forward order, so a group waits for its first variable, whose gradient comes last: it overlaps less
 * than groups in the order of readiness do. Collectives of one communicator run one at a time: credit 0; the optimizer
 * waits for all. Sparse gradients are all-reduced dense: AutoDist's code that gathers them refuses several nodes
 * (all_reduce_synchronizer.py). Source: AutoDist, strategy AllReduce, chunk_size 128. */
#include "strategy/baselines/baselines.h"
#include "strategy/baselines/builder.h"

enum { CHUNK = 128 };

enum status baseline_all_reduce(const struct model *model, const struct cost *cost, struct strategy *out,
                                struct error *err) {
    struct strategy s;
    uint32_t n_chunks = (model->n_variables + CHUNK - 1) / CHUNK;
    enum status st = strategy_init(&s, "all-reduce", model, n_chunks * DTYPE_COUNT, err);
    if (st)
        return st;
    s.credit_bytes = 0;
    for (uint32_t v = 0; v < s.n_variables; v++)
        s.variables[v].group = v / CHUNK * DTYPE_COUNT + model->variables[v].dtype;
    return baseline_finish(ST_OK, &s, model, cost->cluster, out, err);
}
