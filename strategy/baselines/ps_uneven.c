/* AutoDist's UnevenPartitionedPS: as "ps-partitioned", but axis 0 is cut into the smallest number from 2 up that does
 * not divide it, so that the shards differ by a row. One or two rows are cut into single rows, since no smaller number
 * will do. Source: AutoDist, strategy UnevenPartitionedPS. O(variables · log nodes). */
#include "strategy/baselines/baselines.h"
#include "strategy/baselines/builder.h"

static uint64_t least_non_divisor(uint64_t rows) {
    for (uint64_t i = 2; i < rows; i++)
        if (rows % i)
            return i;
    return rows;
}

enum status baseline_ps_uneven(const struct model *model, const struct cost *cost, struct strategy *out,
                               struct error *err) {
    struct strategy s;
    struct balance balance;
    enum status st = strategy_init(&s, "ps-uneven", model, 0, err);
    if (st)
        return st;
    st = balance_init(&balance, &s.arena, cost->cluster->n_nodes, err);
    for (uint32_t v = 0; v < s.n_variables && !st; v++) {
        const struct variable *variable = &model->variables[v];
        uint32_t shards = variable->rank ? baseline_shards(least_non_divisor(variable->shape[0])) : 1;
        st = baseline_balance(&s, v, shards, (double)variable->bytes, &balance, err);
    }
    return baseline_finish(st, &s, model, cost->cluster, out, err);
}
