/* The table of baselines. */
#include "strategy/baselines/baselines.h"

#include <assert.h>
#include <string.h>

static const struct baseline baselines[] = {
    {"wfbp", "every gradient in an all-reduce of its own, as soon as it is ready", "Poseidon (ATC 2017); MG-WFBP §2.3",
     BASELINE_PUBLISHED, baseline_wfbp, NULL},
    {"single", "one all-reduce of everything after the backward pass", "SyncEASGD (SC 2017); MG-WFBP §2.4",
     BASELINE_PUBLISHED, baseline_single, NULL},
    {"mg-wfbp", "adjacent gradients merged by the greedy rule", "MG-WFBP (IEEE TPDS 2021), algorithm 1",
     BASELINE_PUBLISHED, baseline_mg_wfbp, NULL},
    {"merge-optimal", "adjacent gradients merged so that the iteration is shortest", "exact, for MG-WFBP's problem",
     BASELINE_EXACT, baseline_merge_optimal, NULL},
    {"pace", "fused into runs of balanced size, sent as the exact preemptive schedule says",
     "PACE (INFOCOM 2020), algorithm 1 and §IV", BASELINE_PUBLISHED, baseline_pace, NULL},
    {"pace-makespan", "fused so that the preemptive schedule is the shortest", "exact, for PACE's problem",
     BASELINE_EXACT, baseline_pace_makespan, NULL},
    {"pytorch-ddp", "buckets of 25 MiB, the first of 1 MiB, in the order of readiness",
     "PyTorch DistributedDataParallel defaults (VLDB 2020)", BASELINE_DEFAULT, baseline_pytorch_ddp, NULL},
    {"horovod", "what becomes ready within 1 ms is fused, up to 128 MiB; sparse gradients are gathered",
     "Horovod defaults (arXiv 1802.05799)", BASELINE_DEFAULT, baseline_horovod, NULL},
    {"horovod-tuned", "horovod with the fusion threshold, cycle and hierarchy that are predicted fastest",
     "Horovod's autotuner, by grid and simulation; AutoSync §4", BASELINE_TUNED, NULL, &baseline_horovod_grid},
    {"bytescheduler-all-reduce", "partitions of 4 MB by priority, 16 MB in flight, no barrier",
     "ByteScheduler (SOSP 2019), algorithm 1 and its defaults", BASELINE_PUBLISHED, baseline_bytescheduler_all_reduce,
     NULL},
    {"bytescheduler-ps", "the same over parameter servers, push and pull at once",
     "ByteScheduler (SOSP 2019), MXNet plugin and its defaults", BASELINE_PUBLISHED, baseline_bytescheduler_ps, NULL},
    {"p3", "slices of 160 KB over parameter servers by priority, one at a time", "P3 (MLSys 2019); MXNet dist_p3",
     BASELINE_PUBLISHED, baseline_p3, NULL},
    {"tictac", "whole gradients by priority, one at a time, no barrier", "TicTac (MLSys 2019); PACE §VI",
     BASELINE_PUBLISHED, baseline_tictac, NULL},
    {"ps", "one parameter server on the first node", "AutoDist PS builder; Li et al. (OSDI 2014)", BASELINE_PUBLISHED,
     baseline_ps, NULL},
    {"ps-load-balanced", "whole variables, each on the server with the fewest bytes so far",
     "AutoDist PSLoadBalancing builder", BASELINE_PUBLISHED, baseline_ps_load_balanced, NULL},
    {"ps-partitioned", "axis 0 cut by its smallest divisor, shards on the servers with the fewest bytes",
     "AutoDist PartitionedPS builder", BASELINE_PUBLISHED, baseline_ps_partitioned, NULL},
    {"ps-uneven", "axis 0 cut by the smallest number that does not divide it", "AutoDist UnevenPartitionedPS builder",
     BASELINE_PUBLISHED, baseline_ps_uneven, NULL},
    {"all-reduce", "chunks of 128 variables in the order of the model", "AutoDist AllReduce builder",
     BASELINE_PUBLISHED, baseline_all_reduce, NULL},
    {"partitioned-all-reduce", "axis 0 cut by its smallest divisor, chunks of 128 parts",
     "AutoDist PartitionedAR builder", BASELINE_PUBLISHED, baseline_partitioned_all_reduce, NULL},
    {"random-axis-partition-all-reduce", "an axis drawn at random cut by its smallest divisor, chunks of 128 parts",
     "AutoDist RandomAxisPartitionAR builder", BASELINE_PUBLISHED, baseline_random_axis_partition_all_reduce, NULL},
    {"parallax", "sparse gradients to parameter servers, dense ones to all-reduce",
     "Parallax (EuroSys 2019); AutoDist Parallax builder", BASELINE_PUBLISHED, baseline_parallax, NULL},
    {"byteps", "partitions of 4 MB over parameter servers as they are ready", "BytePS defaults (OSDI 2020)",
     BASELINE_DEFAULT, baseline_byteps, NULL},
    {"byteps-tuned", "byteps with the partition, credit and number of servers that are predicted fastest",
     "BytePS's knobs, by grid and simulation; AutoSync §4", BASELINE_TUNED, NULL, &baseline_byteps_grid},
};

static const struct baseline by_name[] = {
    {"async-ps", "whole updates to one server; nobody waits for anybody", "asynchronous SGD; MLfabric §2, Async",
     BASELINE_PUBLISHED, baseline_async_ps, NULL},
    {"ssp", "the same, and nobody is more than two iterations ahead of the slowest",
     "Ho et al. (NIPS 2013); MLfabric §6", BASELINE_PUBLISHED, baseline_ssp, NULL},
    {"mlfabric-a", "updates ordered under a delay bound, added up on the way, dropped where they are too late",
     "MLfabric (Viswanathan and Akella 2019), algorithms 2 and 3", BASELINE_PUBLISHED, baseline_mlfabric_a, NULL},
    {"tree-reduce", "one all-reduce of everything along a binary tree after the backward pass", "MLfabric §7, Tr-Sync",
     BASELINE_PUBLISHED, baseline_tree_reduce, NULL},
    {"mlfabric-s", "updates of an iteration added up on the way as the network allows", "MLfabric §6",
     BASELINE_PUBLISHED, baseline_mlfabric_s, NULL},
    {"dear", "buckets of 25 MiB, reduce-scatters at once, all-gathers as the next forward pass needs them",
     "DeAR (ICDCS 2023)", BASELINE_PUBLISHED, baseline_dear, NULL},
    {"megatron-distributed-optimizer", "the same with buckets of 40 million elements or a million a device",
     "Megatron-LM's distributed optimizer, both overlaps", BASELINE_PUBLISHED, baseline_megatron, NULL},
    {"fsdp-per-block", "parameters sharded and gathered block by block; the rest, the root, stays gathered",
     "PyTorch fully_shard (FSDP2) on each block and the model", BASELINE_DEFAULT, baseline_fsdp_per_block, NULL},
    {"fsdp-whole", "parameters sharded and gathered all together, once an iteration",
     "PyTorch fully_shard (FSDP2) on the model alone", BASELINE_DEFAULT, baseline_fsdp_whole, NULL},
    {"torchtitan", "embedding and blocks gathered one by one, twice; the last norm and the head once",
     "torchtitan's apply_fsdp, policy default", BASELINE_DEFAULT, baseline_torchtitan, NULL},
    {"zero-1", "the optimizer sharded; gradients summed behind the backward pass, 500 million at a time",
     "DeepSpeed ZeRO 1 defaults (SC 2020)", BASELINE_DEFAULT, baseline_zero_1, NULL},
    {"zero-2", "gradients sharded too, summed in buckets of 500 million as they are ready",
     "DeepSpeed ZeRO 2 defaults (SC 2020)", BASELINE_DEFAULT, baseline_zero_2, NULL},
    {"zero-3", "parameters sharded too, gathered 50 million at a time, as long as 1 billion are there",
     "DeepSpeed ZeRO 3 defaults (SC 2020)", BASELINE_DEFAULT, baseline_zero_3, NULL},
    {"hsdp", "as fsdp-per-block within each node; the parts of all nodes are all-reduced",
     "PyTorch fully_shard (FSDP2) on a mesh of nodes and their devices", BASELINE_DEFAULT, baseline_hsdp, NULL},
    {"fsdp-optimal", "parameters sharded, and layers gathered together so that the iteration is shortest",
     "exact, for FSDP's wrapping", BASELINE_EXACT, baseline_fsdp_optimal, NULL},
};

const struct baseline *baselines_by_name(size_t *n) {
    *n = sizeof by_name / sizeof by_name[0];
    return by_name;
}

const struct baseline *baselines_list(size_t *n) {
    *n = sizeof baselines / sizeof baselines[0];
    return baselines;
}

static const struct baseline *find_in(size_t n, const struct baseline *rows, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (!strcmp(rows[i].name, name))
            return &rows[i];
    return NULL;
}

const struct baseline *baselines_find(const char *name) {
    const struct baseline *found = find_in(sizeof baselines / sizeof baselines[0], baselines, name);
    return found ? found : find_in(sizeof by_name / sizeof by_name[0], by_name, name);
}

enum status baselines_build(const struct baseline *row, const struct model *model, const struct cluster *cluster,
                            struct strategy *out, struct error *err) {
    struct cost cost;
    assert(row->build);
    enum status st = cost_init(&cost, cluster, err);
    if (st)
        return st;
    st = row->build(model, &cost, out, err);
    cost_release(&cost);
    return st;
}
