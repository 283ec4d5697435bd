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
#include "strategy/baselines/builder.h"
#include "strategy/cost/transport.h"
#include "strategy/space/ready_order.h"

static const uint64_t FIRST_BUCKET_BYTES = UINT64_C(1) << 20, BUCKET_BYTES = UINT64_C(25) << 20;

struct bucket {
    uint32_t group;
    uint64_t bytes, cap;
    bool open;
};

struct caps {
    uint64_t first, rest;
};

static void fill_buckets(const struct model *model, const uint32_t *ready, struct caps caps, bool gathers,
                         struct strategy *s) {
    struct bucket buckets[DTYPE_COUNT] = {0};
    uint32_t n_groups = 0;
    for (uint32_t i = 0; i < s->n_variables; i++) {
        const struct variable *v = &model->variables[ready[i]];
        struct bucket *bucket = &buckets[v->dtype];
        if (gathers && v->sparse_rows) {
            s->groups[n_groups].algorithm = ALGORITHM_all_gather;
            s->variables[ready[i]].group = n_groups++;
            continue;
        }
        if (!bucket->open) {
            bucket->cap = bucket->cap ? caps.rest : caps.first;
            bucket->open = true;
            bucket->bytes = 0;
            bucket->group = n_groups++;
        }
        s->variables[ready[i]].group = bucket->group;
        bucket->bytes += v->bytes;
        bucket->open = bucket->bytes < bucket->cap;
    }
}

static enum status build(const struct model *model, const struct cluster *cluster, const char *name, struct caps caps,
                         struct strategy *out, struct error *err) {
    struct strategy s;
    enum status st = strategy_init(&s, name, model, model->n_variables, err);
    if (st)
        return st;
    uint32_t *ready = arena_alloc(&s.arena, s.n_variables, sizeof *ready);
    st = ready ? ready_order(model, ready, err) : error_no_memory(err);
    s.credit_bytes = 0;
    if (!st)
        fill_buckets(model, ready, caps, transport_of(cluster) == TRANSPORT_gloo, &s);
    return baseline_finish(st, &s, model, cluster, out, err);
}

enum status pytorch_ddp_build(const struct model *model, const struct cluster *cluster, uint64_t cap_bytes,
                              const char *name, struct strategy *out, struct error *err) {
    return build(model, cluster, name, (struct caps){cap_bytes, cap_bytes}, out, err);
}

enum status baseline_pytorch_ddp(const struct model *model, const struct cost *cost, struct strategy *out,
                                 struct error *err) {
    return build(model, cost->cluster, "pytorch-ddp", (struct caps){FIRST_BUCKET_BYTES, BUCKET_BYTES}, out, err);
}
