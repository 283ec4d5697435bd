/* ByteScheduler on parameter servers (its MXNet plugin), with its published defaults: partitions of 1,000,000 elements
 * and a credit of 4,000,000 (4 MB and 16 MB in f32), before any tuning; see
 * strategy/baselines/bytescheduler_all_reduce.c for what the credit means.
 *
 * A tensor of more than a partition's elements is cut along the rows of axis 0 into as few equal parts as that takes,
 * though never finer than a row. Each part is a key of its own, so its pull starts when its push is complete, and push
 * and pull use the two directions of the link at once. Pushes go by priority within the credit, which comes back when a
 * push has arrived, and so do pulls within a credit of their own (theorem 1). The next forward pass waits layer by
 * layer. The released program makes one task of a part's push and pull: the pull follows at once, and the credit comes
 * back with it.
 *
 * Servers are the nodes without devices where there are any, else all. MXNet hashes keys to servers by (key * 9973) mod
 * servers; here parts take servers in turn through the whole model, which spreads them as evenly.
 * Source: Peng et al., SOSP 2019, §2.2 and §4; ByteScheduler, mxnet/kvstore_task.py. O(parts). */
#include "strategy/baselines/baselines.h"
#include "strategy/baselines/builder.h"
#include "strategy/baselines/bytescheduler.h"

static uint32_t parts_of(const struct variable *v, uint64_t partition) {
    uint64_t parts = (v->elements + partition - 1) / partition;
    uint64_t rows = v->rank ? v->shape[0] : 1;
    return baseline_shards(parts < rows ? parts : rows);
}

enum status bytescheduler_ps_build(const struct model *model, const struct cluster *cluster, uint64_t partition,
                                   uint64_t credit, struct strategy *out, struct error *err) {
    struct strategy s;
    struct servers servers;
    uint64_t next = 0;
    enum status st = strategy_init(&s, "bytescheduler-ps", model, 0, err);
    if (st)
        return st;
    s.policy = POLICY_priority;
    s.credit_bytes = baseline_bytes_of(model, (double)credit);
    s.cross_iteration = s.pulls_by_priority = true;
    st = baseline_servers(&s.arena, cluster, &servers, err);
    for (uint32_t v = 0; v < s.n_variables && !st; v++) {
        uint32_t parts = parts_of(&model->variables[v], partition);
        st = baseline_spread(&s, v, parts, &servers, next, err);
        next += parts;
    }
    return baseline_finish(st, &s, model, cluster, out, err);
}

enum status baseline_bytescheduler_ps(const struct model *model, const struct cost *cost, struct strategy *out,
                                      struct error *err) {
    return bytescheduler_ps_build(model, cost->cluster, BYTESCHEDULER_PARTITION, BYTESCHEDULER_CREDIT, out, err);
}
