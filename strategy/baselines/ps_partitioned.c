/* AutoDist's PartitionedPS: axis 0 of every variable is cut into as many shards as its smallest divisor from 2 up (so a
 * prime number of rows becomes as many shards). The servers are sorted by the bytes that they hold so far, fewest
 * first, and take one shard each in turn; with more shards than servers the round starts again. Every node serves. With
 * a single node AutoDist means to leave variables whole, but its code cuts them; we do as its code does. Otherwise as
 * "ps". Left out: AutoDist does not cut variables that control flow reads, and it may cut a variable into more than
 * 65,536 shards.
 * Source: AutoDist, strategy PartitionedPS. O(variables · shards · log nodes). */
#include "strategy/baselines/baselines.h"
#include "strategy/baselines/builder.h"

enum status baseline_ps_partitioned(const struct model *model, const struct cost *cost, struct strategy *out,
                                    struct error *err) {
    struct strategy s;
    struct balance balance;
    enum status st = strategy_init(&s, "ps-partitioned", model, 0, err);
    if (st)
        return st;
    st = balance_init(&balance, &s.arena, cost->cluster->n_nodes, err);
    for (uint32_t v = 0; v < s.n_variables && !st; v++) {
        const struct variable *variable = &model->variables[v];
        uint32_t shards = variable->rank ? baseline_shards(baseline_least_divisor(variable->shape[0])) : 1;
        st = baseline_balance(&s, v, shards, (double)variable->bytes, &balance, err);
    }
    return baseline_finish(st, &s, model, cost->cluster, out, err);
}
