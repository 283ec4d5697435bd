/* DeepSpeed's ZeRO, stages 1 to 3. All sizes count elements.
 *
 * Stage 1 without overlap_comm, its default: all gradients are summed behind the backward pass, reduce_bucket_size of
 * them at a time: one group a dtype, cut.
 * Stage 1 with overlap_comm, and stage 2: gradients enter a bucket in the order of readiness, which is summed before
 * the next one would take it past reduce_bucket_size: a group. In both the updated variables are gathered behind the
 * optimizer's step, and the next iteration waits for all.
 *
 * Stage 3: variables of at most stage3_param_persistence_threshold are not sharded; their gradients are, and they are
 * gathered once after the step: one group a dtype. The others are gathered in the order of their use, so many at a time
 * that they reach stage3_prefetch_bucket_size: a group. Gathering runs ahead until stage3_max_live_parameters are
 * there. A variable stays from the forward to the backward pass if fewer than stage3_max_reuse_distance elements are
 * used between: a group does if the elements behind its last variable, twice, are fewer.
 * zero_hpz_partition_size (ZeRO++): after the forward pass so many devices keep what is freed, in parts.
 * mics_shard_size (MiCS, which 0.19.8 has no longer): so many devices share the shards, and replicas of these
 * all-reduce. A strategy with replicas has no other parts than those of parameters. So what persists is gathered before
 * the forward pass there, one group a dtype, and kept.
 *
 * What cannot be said, and is not imitated:
 *   - Without overlap_comm (the default of stages 1 and 2) the backward pass of stage 2 waits while a bucket is summed.
 *   - use_multi_rank_bucket_allreduce (default) sums by all-reduces where a reduce-scatter would do.
 *   - Stage 3 fills other buckets in the backward pass, from the last variable on, and sums in buckets of
 *     reduce_bucket_size. Here a group is gathered and summed as one, in both passes.
 *   - allgather_bucket_size counts only where torch has no all_gather_into_tensor. sub_group_size is how many the
 *     optimizer updates at a time, which changes nothing here: all elements take the same time.
 * One message at a time.
 * Source: DeepSpeed 0.19.8, documentation of "zero_optimization"; runtime/zero/stage_1_and_2.py, stage3.py,
 * partitioned_param_coordinator.py (fetch_sub_module, __params_to_release). Rajbhandari et al., SC 2020; Wang et al.,
 * ZeRO++, 2023; Zhang et al., MiCS, VLDB 2022.
 * O(variables + operators). */
#include "strategy/baselines/zero.h"

#include "strategy/baselines/baselines.h"
#include "strategy/baselines/buckets.h"
#include "strategy/baselines/builder.h"
#include "strategy/space/ready_order.h"

struct zero_settings zero_defaults(uint32_t stage) {
    return (struct zero_settings){.stage = stage,
                                  .overlap_comm = stage == 3,
                                  .reduce_bucket_size = 500000000,
                                  .prefetch_bucket_size = 50000000,
                                  .persistence_threshold = 100000,
                                  .max_live_parameters = 1000000000,
                                  .max_reuse_distance = 1000000000};
}

static struct bucket_item item_of(const struct variable *v) {
    return (struct bucket_item){.kind = v->dtype, .size = v->elements};
}

/* Stage 1 behind the backward pass. */
static void sum_at_the_end(const struct model *model, uint64_t elements, struct strategy *s) {
    for (uint32_t v = 0; v < s->n_variables; v++) {
        const enum dtype dtype = model->variables[v].dtype;
        const uint64_t most = STRATEGY_MAX_BYTES / 8, bytes = (elements < most ? elements : most) * dtype_bytes(dtype);
        s->variables[v].group = dtype;
        s->groups[dtype].partition_bytes = bytes < STRATEGY_MIN_PARTITION_BYTES ? STRATEGY_MIN_PARTITION_BYTES : bytes;
    }
}

/* Stages 1 and 2 during the backward pass. */
static void sum_in_buckets(const struct model *model, const uint32_t *ready, uint64_t elements,
                           struct bucket_item *items, struct strategy *s) {
    for (uint32_t i = 0; i < s->n_variables; i++)
        items[i] = item_of(&model->variables[ready[i]]);
    buckets_fill(BUCKET_BEFORE, s->n_variables, items, 1, &elements);
    for (uint32_t i = 0; i < s->n_variables; i++)
        s->variables[ready[i]].group = items[i].label;
}

/* Stage 3. Groups of persistent variables come behind the others. */
static void gather_in_buckets(const struct model *model, const uint32_t *read, const struct zero_settings *settings,
                              struct bucket_item *items, struct strategy *s) {
    const uint64_t cap = settings->prefetch_bucket_size ? settings->prefetch_bucket_size : 1;
    uint32_t n_items = 0, n_groups;
    for (uint32_t i = 0; i < s->n_variables; i++)
        if (model->variables[read[i]].elements > settings->persistence_threshold)
            items[n_items++] = item_of(&model->variables[read[i]]);
    n_groups = buckets_fill(BUCKET_REACHED, n_items, items, 1, &cap);
    for (uint32_t i = 0, item = 0; i < s->n_variables; i++) {
        const struct variable *v = &model->variables[read[i]];
        const bool persistent = v->elements <= settings->persistence_threshold;
        s->variables[read[i]].group = persistent ? n_groups + v->dtype : items[item++].label;
    }
    for (uint32_t g = n_groups; g < n_groups + DTYPE_COUNT; g++) {
        s->groups[g].sharded = settings->shard_ranks ? SHARDED_parameters : SHARDED_gradients;
        s->groups[g].keeps_gathered = settings->shard_ranks > 0;
    }
    uint64_t later = 0; /* elements that are used behind the item */
    for (uint32_t i = n_items; i-- > 0;) {
        struct group *group = &s->groups[items[i].label];
        group->keeps_gathered = group->sharded ? group->keeps_gathered : 2 * later < settings->max_reuse_distance;
        group->sharded = SHARDED_parameters;
        group->reshard_ranks = group->keeps_gathered ? 0 : settings->kept_ranks;
        later += items[i].size;
    }
    s->shard_ranks = settings->shard_ranks;
}

static uint32_t depth_of(const struct zero_settings *settings, uint32_t n_groups) {
    const uint64_t depth =
        settings->prefetch_bucket_size ? settings->max_live_parameters / settings->prefetch_bucket_size : 0;
    return depth < n_groups ? (uint32_t)depth : n_groups;
}

static enum status fill(const struct model *model, const struct zero_settings *settings, struct strategy *s,
                        struct error *err) {
    uint32_t *order = arena_alloc(&s->arena, s->n_variables, sizeof *order);
    struct bucket_item *items = arena_alloc(&s->arena, s->n_variables, sizeof *items);
    if (!order || !items)
        return error_no_memory(err);
    enum status st = settings->stage == 3 ? read_order(model, order, err) : ready_order(model, order, err);
    if (st)
        return st;
    if (settings->stage == 3) {
        gather_in_buckets(model, order, settings, items, s);
        s->forward_prefetch = s->backward_prefetch = depth_of(settings, strategy_sharded_parameters(s));
        return ST_OK;
    }
    if (settings->stage == 1 && !settings->overlap_comm)
        sum_at_the_end(model, settings->reduce_bucket_size, s);
    else
        sum_in_buckets(model, order, settings->reduce_bucket_size, items, s);
    for (uint32_t g = 0; g < s->n_groups; g++)
        s->groups[g].sharded = settings->stage == 1 ? SHARDED_optimizer : SHARDED_gradients;
    return ST_OK;
}

enum status zero_build(const struct model *model, const struct cluster *cluster, const struct zero_settings *settings,
                       const char *name, struct strategy *out, struct error *err) {
    struct strategy s;
    enum status st = strategy_init(&s, name, model, model->n_variables + DTYPE_COUNT, err);
    if (st)
        return st;
    s.credit_bytes = 0;
    return baseline_finish(fill(model, settings, &s, err), &s, model, cluster, out, err);
}

static enum status build_defaults(uint32_t stage, const char *name, const struct model *model, const struct cost *cost,
                                  struct strategy *out, struct error *err) {
    const struct zero_settings settings = zero_defaults(stage);
    return zero_build(model, cost->cluster, &settings, name, out, err);
}

enum status baseline_zero_1(const struct model *model, const struct cost *cost, struct strategy *out,
                            struct error *err) {
    return build_defaults(1, "zero-1", model, cost, out, err);
}

enum status baseline_zero_2(const struct model *model, const struct cost *cost, struct strategy *out,
                            struct error *err) {
    return build_defaults(2, "zero-2", model, cost, out, err);
}

enum status baseline_zero_3(const struct model *model, const struct cost *cost, struct strategy *out,
                            struct error *err) {
    return build_defaults(3, "zero-3", model, cost, out, err);
}
