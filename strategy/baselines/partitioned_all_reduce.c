/* AutoDist's PartitionedAR: axis 0 of every variable is cut into its smallest divisor from 2 up, and 128 parts after
 * each other in the order of the model make one merge group, split by dtype. Otherwise as "all-reduce".
 *
 * A plan never puts two parts of one variable into one message (that would undo the cut), so messages run from the last
 * part of one variable to the first of the next, where AutoDist's scoped allocator may merge a whole group. A variable
 * whose parts straddle two groups is in the first one's. Source: AutoDist, strategy PartitionedAR, chunk_size 128.
 * O(variables · sqrt(rows)). */
#include "strategy/baselines/baselines.h"
#include "strategy/baselines/builder.h"

enum status baseline_partitioned_all_reduce(const struct model *model, const struct cost *cost, struct strategy *out,
                                            struct error *err) {
    struct strategy s;
    struct chunker chunker = {0};
    enum status st = strategy_init(&s, "partitioned-all-reduce", model, model->n_variables, err);
    if (st)
        return st;
    s.credit_bytes = 0;
    for (uint32_t v = 0; v < s.n_variables; v++) {
        const struct variable *variable = &model->variables[v];
        struct variable_sync *sync = &s.variables[v];
        sync->shards = variable->rank ? baseline_shards(baseline_least_divisor(variable->shape[0])) : 1;
        sync->group = chunker_next(&chunker, variable->dtype, sync->shards);
    }
    return baseline_finish(ST_OK, &s, model, cost->cluster, out, err);
}
