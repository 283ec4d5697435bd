/* PyTorch DistributedDataParallel with its defaults: bucket_cap_mb 25, first bucket 1 MiB.
 *
 * After the first iteration buckets are rebuilt in the order in which gradients became ready. Each dtype fills buckets
 * of its own: a gradient joins the open one, which is closed once it holds its cap or more; the first bucket of a dtype
 * has the small cap, so that communication starts early. With a bucket_cap_mb of the user's, that is the cap of all,
 * the first bucket included (pull request 121640, 2024; before, the first keeps the small cap). Embeddings are dense
 * unless asked otherwise: NCCL cannot send sparse gradients. gloo gathers them, a bucket each (pull request 19443).
 * Buckets go in order on one NCCL stream, so one at a time: credit 0; the optimizer waits for all.
 * Source: Li et al., VLDB 2020, §3.2.3 and §4.2; torch.nn.parallel.DistributedDataParallel documentation.
 * O(variables). */
#include "strategy/baselines/pytorch_ddp.h"

#include "strategy/baselines/baselines.h"
#include "strategy/baselines/buckets.h"
#include "strategy/baselines/builder.h"
#include "strategy/space/ready_order.h"

static const uint64_t FIRST_BUCKET_BYTES = UINT64_C(1) << 20, BUCKET_BYTES = UINT64_C(25) << 20;

/* Gathered gradients are no items of buckets: each has a group of its own, behind those of the buckets. */
static void fill_buckets(const struct model *model, const uint32_t *ready, const uint64_t caps[2], bool gathers,
                         struct bucket_item *items, struct strategy *s) {
    uint32_t n_items = 0, n_groups;
    for (uint32_t i = 0; i < s->n_variables; i++) {
        const struct variable *v = &model->variables[ready[i]];
        if (!gathers || !v->sparse_rows)
            items[n_items++] = (struct bucket_item){.kind = v->dtype, .size = v->bytes};
    }
    n_groups = buckets_fill(BUCKET_REACHED, n_items, items, 2, caps);
    for (uint32_t i = 0, item = 0; i < s->n_variables; i++) {
        const struct variable *v = &model->variables[ready[i]];
        const bool gathered = gathers && v->sparse_rows;
        s->variables[ready[i]].group = gathered ? n_groups : items[item++].label;
        if (gathered)
            s->groups[n_groups++].algorithm = ALGORITHM_all_gather;
    }
}

static enum status build(const struct model *model, const struct cluster *cluster, const char *name,
                         const uint64_t caps[2], struct strategy *out, struct error *err) {
    struct strategy s;
    enum status st = strategy_init(&s, name, model, model->n_variables, err);
    if (st)
        return st;
    uint32_t *ready = arena_alloc(&s.arena, s.n_variables, sizeof *ready);
    struct bucket_item *items = arena_alloc(&s.arena, s.n_variables, sizeof *items);
    st = ready && items ? ready_order(model, ready, err) : error_no_memory(err);
    s.credit_bytes = 0;
    if (!st)
        fill_buckets(model, ready, caps, cluster_transport(cluster) == TRANSPORT_gloo, items, &s);
    return baseline_finish(st, &s, model, cluster, out, err);
}

enum status pytorch_ddp_build(const struct model *model, const struct cluster *cluster, uint64_t cap_bytes,
                              const char *name, struct strategy *out, struct error *err) {
    return build(model, cluster, name, (const uint64_t[]){cap_bytes, cap_bytes}, out, err);
}

enum status pytorch_ddp_defaults(const struct model *model, const struct cluster *cluster, const char *name,
                                 struct strategy *out, struct error *err) {
    return build(model, cluster, name, (const uint64_t[]){FIRST_BUCKET_BYTES, BUCKET_BYTES}, out, err);
}

enum status baseline_pytorch_ddp(const struct model *model, const struct cost *cost, struct strategy *out,
                                 struct error *err) {
    return pytorch_ddp_defaults(model, cost->cluster, "pytorch-ddp", out, err);
}
