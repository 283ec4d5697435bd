/* AutoDist's RandomAxisPartitionAR: as "partitioned-all-reduce", but each dense variable is cut along an axis drawn
 * evenly from those longer than 1 (a sparse one along axis 0). The draw is seeded by the model's id, so that one model
 * always gets one strategy. Source: AutoDist, strategy RandomAxisPartitionAR, chunk_size 128. O(variables ·
 * sqrt(rows)). */
#include <stdlib.h>

#include "base/rng.h"
#include "strategy/baselines/baselines.h"
#include "strategy/baselines/builder.h"

static void seed_by(struct rng *rng, const struct model *model) {
    char digits[17] = {0};
    for (int i = 0; i < 16; i++)
        digits[i] = model->id.hex[i];
    rng_seed(rng, strtoull(digits, NULL, 16));
}

static uint32_t draw_axis(struct rng *rng, const struct variable *variable) {
    uint32_t axes[MODEL_MAX_RANK], n = 0;
    for (uint32_t i = 0; i < variable->rank; i++)
        if (variable->shape[i] > 1)
            axes[n++] = i;
    return n && !variable->sparse_rows ? axes[rng_below(rng, n)] : 0;
}

enum status baseline_random_axis_partition_all_reduce(const struct model *model, const struct cost *cost,
                                                      struct strategy *out, struct error *err) {
    struct strategy s;
    struct rng rng;
    struct chunker chunker = {0};
    enum status st = strategy_init(&s, "random-axis-partition-all-reduce", model, model->n_variables, err);
    if (st)
        return st;
    s.credit_bytes = 0;
    seed_by(&rng, model);
    for (uint32_t v = 0; v < s.n_variables; v++) {
        const struct variable *variable = &model->variables[v];
        struct variable_sync *sync = &s.variables[v];
        sync->axis = draw_axis(&rng, variable);
        sync->shards = variable->rank ? baseline_shards(baseline_least_divisor(variable->shape[sync->axis])) : 1;
        sync->group = chunker_next(&chunker, variable->dtype, sync->shards);
    }
    return baseline_finish(ST_OK, &s, model, cost->cluster, out, err);
}
