/* PyTorch's fully_shard (FSDP2): the parameters of a wrapped module are one group, sharded over all ranks, gathered
 * before its forward and its backward pass and summed by one reduce-scatter behind it.
 *
 * fsdp-per-block: fully_shard(block) for each block, then fully_shard(model), which takes what is in no block. The root
 * keeps what it gathers, which is the default of fully_shard: it would need it again at once.
 *
 * fsdp-whole: fully_shard(model) alone.
 *
 * torchtitan: its policy "default" without pipeline parallelism. The embedding and each TransformerBlock are wrapped
 * and reshard; the last norm and the output layer are wrapped together and do not. An embedding that is tied to the
 * output layer is wrapped with it.
 *
 * On a GPU an all-gather waits for the copy-out of the one before the last in the forward pass, of the last in the
 * backward pass: so two groups are gathered ahead, and one. With gloo a pass waits for each collective, so nothing is
 * gathered ahead; that it waits for the reduce-scatters too cannot be said. One message at a time: all-gathers and
 * reduce-scatters have streams of their own, but share NCCL's channels and the network.
 *
 * fully_shard wants one dtype a group; here each dtype of a module has its own group. Left out: mixed precision.
 *
 * Source: torch 2.13, distributed/fsdp/_fully_shard (_fsdp_param_group.py, wait_for_unshard and post_backward);
 * torchtitan, models/llama3/infra/parallelize.py, apply_fsdp. O(variables + operators). */
#include "strategy/baselines/fsdp.h"

#include "strategy/baselines/baselines.h"
#include "strategy/baselines/blocks.h"
#include "strategy/baselines/builder.h"
#include "strategy/space/ready_order.h"

enum { ROOT = 0 };

/* Whether a forward operator that also reads a variable of a block, or one behind it, reads a variable of `module`. */
static bool is_read_late(const struct model *model, const uint32_t *of, uint32_t module) {
    bool late = false;
    for (uint32_t i = 0; i < model->n_forward; i++) {
        const struct operator* op = & model->operators[model->order[i]];
        for (uint32_t r = 0; r < op->n_reads; r++)
            late |= of[op->reads[r]] != ROOT && of[op->reads[r]] != module;
        for (uint32_t r = 0; r < op->n_reads; r++)
            if (late && of[op->reads[r]] == module)
                return true;
    }
    return false;
}

/* Give the embedding, which is what is read before any block and no more behind, a module of its own. */
static void split_root(const struct model *model, const uint32_t *read, uint32_t embedding, uint32_t *module) {
    uint32_t before = 0;
    while (before < model->n_variables && module[read[before]] == ROOT)
        before++;
    if (before == model->n_variables)
        return;
    for (uint32_t i = 0; i < before; i++)
        module[read[i]] = embedding;
    const bool tied = is_read_late(model, module, embedding);
    for (uint32_t i = 0; i < before && tied; i++)
        module[read[i]] = ROOT;
}

static void assign(const struct model *model, const uint32_t *module, enum fsdp_keep keep, struct strategy *s) {
    for (uint32_t v = 0; v < s->n_variables; v++) {
        const uint32_t g = module[v] * DTYPE_COUNT + model->variables[v].dtype;
        s->variables[v].group = g;
        s->groups[g].sharded = SHARDED_parameters;
        s->groups[g].keeps_gathered = keep == FSDP_KEEP_all || (keep == FSDP_KEEP_last && module[v] == ROOT);
    }
}

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static void set_schedule(const struct cluster *cluster, struct strategy *s) {
    const uint32_t n = strategy_sharded_parameters(s);
    const bool waits = cluster_transport(cluster) == TRANSPORT_gloo;
    s->credit_bytes = 0;
    s->forward_prefetch = waits ? 0 : least(2, n);
    s->backward_prefetch = waits ? 0 : 1;
}

enum status fsdp_build(const struct model *model, const struct cluster *cluster, enum fsdp_wrap wrap,
                       enum fsdp_keep keep, const char *name, struct strategy *out, struct error *err) {
    return fsdp_build_replicas(model, cluster, wrap, keep, 0, name, out, err);
}

enum status fsdp_build_replicas(const struct model *model, const struct cluster *cluster, enum fsdp_wrap wrap,
                                enum fsdp_keep keep, uint32_t shard_ranks, const char *name, struct strategy *out,
                                struct error *err) {
    struct arena scratch = {0};
    struct strategy s;
    uint32_t *module = arena_alloc(&scratch, model->n_variables, sizeof *module),
             *read = arena_alloc(&scratch, model->n_variables, sizeof *read), n_blocks = 0;
    enum status st = module && read ? read_order(model, read, err) : error_no_memory(err);
    if (!st && wrap != FSDP_WRAP_whole)
        n_blocks = blocks_find(model, module);
    if (!st && wrap == FSDP_WRAP_titan)
        split_root(model, read, n_blocks + 1, module);
    if (!st)
        st = strategy_init(&s, name, model, (n_blocks + 2) * DTYPE_COUNT, err);
    if (!st) {
        assign(model, module, keep, &s);
        set_schedule(cluster, &s);
        s.shard_ranks = shard_ranks;
        st = baseline_finish(ST_OK, &s, model, cluster, out, err);
    }
    arena_release(&scratch);
    return st;
}

enum status baseline_fsdp_per_block(const struct model *model, const struct cost *cost, struct strategy *out,
                                    struct error *err) {
    return fsdp_build(model, cost->cluster, FSDP_WRAP_blocks, FSDP_KEEP_last, "fsdp-per-block", out, err);
}

enum status baseline_fsdp_whole(const struct model *model, const struct cost *cost, struct strategy *out,
                                struct error *err) {
    return fsdp_build(model, cost->cluster, FSDP_WRAP_whole, FSDP_KEEP_last, "fsdp-whole", out, err);
}

enum status baseline_torchtitan(const struct model *model, const struct cost *cost, struct strategy *out,
                                struct error *err) {
    return fsdp_build(model, cost->cluster, FSDP_WRAP_titan, FSDP_KEEP_last, "torchtitan", out, err);
}
