/* ByteScheduler on all-reduce, with its published defaults: partitions of 1,000,000 elements and a credit of 4,000,000
 * (4 MB and 16 MB in f32), before any tuning.
 *
 * Every tensor is cut on its own, with no fusion; partitions wait in a priority queue, the layer nearest the input
 * first, and go while the credit holds them (algorithm 1); the next forward pass waits layer by layer. One worker
 * decides the order and the others follow it, which is what policy priority means here.
 *
 * How many partitions of 4 MB a window of 16 MB holds:
 *   - the paper: three, since line 16 of algorithm 1 starts a partition only if credit > size;
 *   - the released program: four. It starts one while any credit is left, so the last may overdraw;
 *   - here: four, what fits. A message larger than the whole credit goes alone; line 16 would wait for ever.
 * Left out: the program cuts along the rows of axis 0 into equal parts, and by default goes on to tune the credit by
 * Bayesian optimization.
 * Source: Peng et al., SOSP 2019, §4.2 and algorithm 1; ByteScheduler, common/bytecore.py. O(variables). */
#include "strategy/baselines/baselines.h"
#include "strategy/baselines/builder.h"
#include "strategy/baselines/bytescheduler.h"

enum status bytescheduler_all_reduce_build(const struct model *model, const struct cluster *cluster, uint64_t partition,
                                           uint64_t credit, struct strategy *out, struct error *err) {
    struct strategy s;
    enum status st = strategy_init(&s, "bytescheduler-all-reduce", model, model->n_variables, err);
    if (st)
        return st;
    s.policy = POLICY_priority;
    s.credit_bytes = baseline_bytes_of(model, (double)credit);
    s.cross_iteration = true;
    for (uint32_t v = 0; v < s.n_variables; v++) {
        s.variables[v].group = v;
        s.groups[v].partition_bytes = partition * dtype_bytes(model->variables[v].dtype);
    }
    return baseline_finish(ST_OK, &s, model, cluster, out, err);
}

enum status baseline_bytescheduler_all_reduce(const struct model *model, const struct cost *cost, struct strategy *out,
                                              struct error *err) {
    return bytescheduler_all_reduce_build(model, cost->cluster, BYTESCHEDULER_PARTITION, BYTESCHEDULER_CREDIT, out,
                                          err);
}
