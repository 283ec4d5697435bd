/* The table of baselines. */
#include "strategy/baselines/baselines.h"

#include <string.h>

static const struct baseline baselines[] = {
    {"wfbp", "every gradient in an all-reduce of its own, as soon as it is ready", "Poseidon (ATC 2017); MG-WFBP §2.3",
     BASELINE_PUBLISHED, baseline_wfbp},
    {"single", "one all-reduce of everything after the backward pass", "SyncEASGD (SC 2017); MG-WFBP §2.4",
     BASELINE_PUBLISHED, baseline_single},
    {"mg-wfbp", "adjacent gradients merged by the greedy rule", "MG-WFBP (IEEE TPDS 2021), algorithm 1",
     BASELINE_PUBLISHED, baseline_mg_wfbp},
    {"merge-optimal", "adjacent gradients merged so that the iteration is shortest", "exact, for MG-WFBP's problem",
     BASELINE_EXACT, baseline_merge_optimal},
    {"pace", "fused into runs of balanced size, sent as the exact preemptive schedule says",
     "PACE (INFOCOM 2020), algorithm 1 and §IV", BASELINE_PUBLISHED, baseline_pace},
    {"pace-makespan", "fused so that the preemptive schedule is the shortest", "exact, for PACE's problem",
     BASELINE_EXACT, baseline_pace_makespan},
    {"pytorch-ddp", "buckets of 25 MiB, the first of 1 MiB, in the order of readiness",
     "PyTorch DistributedDataParallel defaults (VLDB 2020)", BASELINE_DEFAULT, baseline_pytorch_ddp},
    {"horovod", "what becomes ready within 1 ms is fused, up to 128 MiB", "Horovod defaults (arXiv 1802.05799)",
     BASELINE_DEFAULT, baseline_horovod},
    {"bytescheduler-all-reduce", "partitions of 4 MB by priority, 16 MB in flight, no barrier",
     "ByteScheduler (SOSP 2019), algorithm 1 and its defaults", BASELINE_PUBLISHED, baseline_bytescheduler_all_reduce},
    {"bytescheduler-ps", "the same over parameter servers, push and pull at once",
     "ByteScheduler (SOSP 2019), MXNet plugin and its defaults", BASELINE_PUBLISHED, baseline_bytescheduler_ps},
    {"p3", "slices of 160 KB over parameter servers by priority, one at a time", "P3 (MLSys 2019); MXNet dist_p3",
     BASELINE_PUBLISHED, baseline_p3},
    {"tictac", "whole gradients by priority, one at a time, no barrier", "TicTac (MLSys 2019); PACE §VI",
     BASELINE_PUBLISHED, baseline_tictac},
    {"ps", "one parameter server on the first node", "AutoDist PS builder; Li et al. (OSDI 2014)", BASELINE_PUBLISHED,
     baseline_ps},
    {"ps-load-balanced", "whole variables, each on the server with the fewest bytes so far",
     "AutoDist PSLoadBalancing builder", BASELINE_PUBLISHED, baseline_ps_load_balanced},
    {"ps-partitioned", "axis 0 cut by its smallest divisor, shards on the servers with the fewest bytes",
     "AutoDist PartitionedPS builder", BASELINE_PUBLISHED, baseline_ps_partitioned},
    {"ps-uneven", "axis 0 cut by the smallest number that does not divide it", "AutoDist UnevenPartitionedPS builder",
     BASELINE_PUBLISHED, baseline_ps_uneven},
    {"all-reduce", "chunks of 128 variables in the order of the model", "AutoDist AllReduce builder",
     BASELINE_PUBLISHED, baseline_all_reduce},
    {"partitioned-all-reduce", "axis 0 cut by its smallest divisor, chunks of 128 parts",
     "AutoDist PartitionedAR builder", BASELINE_PUBLISHED, baseline_partitioned_all_reduce},
    {"random-axis-partition-all-reduce", "an axis drawn at random cut by its smallest divisor, chunks of 128 parts",
     "AutoDist RandomAxisPartitionAR builder", BASELINE_PUBLISHED, baseline_random_axis_partition_all_reduce},
    {"parallax", "sparse gradients to parameter servers, dense ones to all-reduce",
     "Parallax (EuroSys 2019); AutoDist Parallax builder", BASELINE_PUBLISHED, baseline_parallax},
    {"byteps", "partitions of 4 MB over parameter servers as they are ready", "BytePS defaults (OSDI 2020)",
     BASELINE_DEFAULT, baseline_byteps},
};

const struct baseline *baselines_list(size_t *n) {
    *n = sizeof baselines / sizeof baselines[0];
    return baselines;
}

const struct baseline *baselines_find(const char *name) {
    for (size_t i = 0; i < sizeof baselines / sizeof baselines[0]; i++)
        if (!strcmp(baselines[i].name, name))
            return &baselines[i];
    return NULL;
}

enum status baselines_build(const struct baseline *row, const struct model *model, const struct cluster *cluster,
                            struct strategy *out, struct error *err) {
    struct cost cost;
    enum status st = cost_init(&cost, cluster, err);
    if (st)
        return st;
    st = row->build(model, &cost, out, err);
    cost_release(&cost);
    return st;
}
