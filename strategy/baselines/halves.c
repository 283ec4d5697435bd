/* All-reduces in halves: a reduce-scatter during the backward pass, an all-gather that the next forward pass waits for.
 *
 * dear: buckets of 25 MiB in the order of readiness. The all-gathers follow all reduce-scatters, in the order in which
 * the forward pass needs them. The system searches the size of its buckets by measurements; here the size is the one
 * that the search begins with. Source: Zhang et al., "DeAR" (ICDCS 2023).
 *
 * megatron-distributed-optimizer: buckets of 40 million elements, or of a million a device where that is more. Source:
 * Megatron-LM's distributed optimizer with --overlap-grad-reduce and --overlap-param-gather.
 *
 * Left out: how long the optimizer takes, here as everywhere. Both send one message at a time, on one stream of NCCL.
 */
#include "strategy/baselines/baselines.h"
#include "strategy/baselines/builder.h"
#include "strategy/baselines/pytorch_ddp.h"

static enum status build(const char *name, uint64_t bucket_bytes, const struct model *model, const struct cost *cost,
                         struct strategy *out, struct error *err) {
    struct strategy s;
    enum status st = pytorch_ddp_build(model, cost->cluster, bucket_bytes, name, &s, err);
    if (st)
        return st;
    for (uint32_t g = 0; g < s.n_groups; g++)
        s.groups[g].sharded = s.groups[g].algorithm == ALGORITHM_auto ? SHARDED_optimizer : SHARDED_none;
    s.cross_iteration = true;
    return baseline_finish(ST_OK, &s, model, cost->cluster, out, err);
}

enum status baseline_dear(const struct model *model, const struct cost *cost, struct strategy *out, struct error *err) {
    return build("dear", UINT64_C(25) << 20, model, cost, out, err);
}

enum status baseline_megatron(const struct model *model, const struct cost *cost, struct strategy *out,
                              struct error *err) {
    const double least = 40e6, a_device = 1e6 * cost->cluster->n_devices;
    return build("megatron-distributed-optimizer", baseline_bytes_of(model, a_device > least ? a_device : least), model,
                 cost, out, err);
}
