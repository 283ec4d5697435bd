/* Hybrid sharding: parameters are sharded within a node, whose devices have fast links, and each node is a replica.
 * fully_shard with a mesh of two dimensions, (nodes, devices of a node), wrapped as fsdp-per-block. All-gathers and
 * reduce-scatters stay in nodes; NICs carry one all-reduce of a part for each device.
 *
 * Where nodes differ the shard group is the largest that divides the devices of all of them. Where that is one device
 * there is nothing to shard within a node, and where all devices are on one node there is no replica: then it is
 * fsdp-per-block.
 *
 * Source: torch 2.13, distributed/fsdp/_fully_shard (HSDPMeshInfo, foreach_reduce). O(variables + operators + nodes).
 */
#include "strategy/baselines/baselines.h"
#include "strategy/baselines/fsdp.h"

enum status baseline_hsdp(const struct model *model, const struct cost *cost, struct strategy *out, struct error *err) {
    const uint32_t ranks = cluster_ranks_in_nodes(cost->cluster, cost->cluster->n_devices);
    return fsdp_build_replicas(model, cost->cluster, FSDP_WRAP_blocks, FSDP_KEEP_last, ranks, "hsdp", out, err);
}
