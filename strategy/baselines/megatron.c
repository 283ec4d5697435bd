/* Megatron-LM: gradients of a dtype lie in one buffer, in the order of readiness, which is cut into buckets: a bucket
 * is closed once it holds bucket_size elements or more. The distributed optimizer (ZeRO-1) sums a bucket by a
 * reduce-scatter, updates its part and gathers the rest, with --overlap-param-gather as the next forward pass needs it.
 * Without the distributed optimizer a bucket is all-reduced.
 *
 * megatron-distributed-optimizer has both overlaps and the default size of buckets. Left out: Megatron takes the
 * reverse of the order of declaration for that of readiness; an embedding that pipeline stages share has a bucket of
 * its own; padding. One message at a time. Source: Megatron-LM, core/distributed/param_and_grad_buffer.py and
 * distributed_data_parallel_config.py. O(variables). */
#include "strategy/baselines/megatron.h"

#include "strategy/baselines/baselines.h"
#include "strategy/baselines/buckets.h"
#include "strategy/baselines/builder.h"
#include "strategy/space/ready_order.h"

uint64_t megatron_bucket_size(const struct cluster *cluster) {
    const uint64_t least = 40000000, a_device = UINT64_C(1000000) * cluster->n_devices;
    return a_device > least ? a_device : least;
}

static enum status fill(const struct model *model, uint64_t elements, struct strategy *s, struct error *err) {
    uint32_t *ready = arena_alloc(&s->arena, s->n_variables, sizeof *ready);
    struct bucket_item *items = arena_alloc(&s->arena, s->n_variables, sizeof *items);
    enum status st = ready && items ? ready_order(model, ready, err) : error_no_memory(err);
    if (st)
        return st;
    for (uint32_t i = 0; i < s->n_variables; i++)
        items[i] =
            (struct bucket_item){.kind = model->variables[ready[i]].dtype, .size = model->variables[ready[i]].elements};
    buckets_fill(BUCKET_REACHED, s->n_variables, items, 1, &elements);
    for (uint32_t i = 0; i < s->n_variables; i++)
        s->variables[ready[i]].group = items[i].label;
    return ST_OK;
}

enum status megatron_build(const struct model *model, const struct cluster *cluster,
                           const struct megatron_settings *settings, const char *name, struct strategy *out,
                           struct error *err) {
    struct strategy s;
    enum status st = strategy_init(&s, name, model, model->n_variables, err);
    if (st)
        return st;
    for (uint32_t g = 0; g < s.n_groups && settings->distributed_optimizer; g++)
        s.groups[g].sharded = SHARDED_optimizer;
    s.credit_bytes = 0;
    s.cross_iteration = settings->distributed_optimizer && settings->overlap_param_gather;
    return baseline_finish(fill(model, settings->bucket_size, &s, err), &s, model, cluster, out, err);
}

enum status baseline_megatron(const struct model *model, const struct cost *cost, struct strategy *out,
                              struct error *err) {
    const struct megatron_settings settings = {true, true, megatron_bucket_size(cost->cluster)};
    return megatron_build(model, cost->cluster, &settings, "megatron-distributed-optimizer", out, err);
}
