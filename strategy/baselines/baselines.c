/* The table of baselines. */
#include "strategy/baselines/baselines.h"

#include <string.h>

static const struct baseline baselines[] = {
    {"wfbp", "every gradient in an all-reduce of its own, as soon as it is ready", "Poseidon (ATC 2017); MG-WFBP §2.3",
     BASELINE_PUBLISHED, baseline_wfbp},
    {"single", "one all-reduce of everything after the backward pass", "SyncEASGD (SC 2017); MG-WFBP §2.4",
     BASELINE_PUBLISHED, baseline_single},
    {"pytorch-ddp", "buckets of 25 MiB, the first of 1 MiB, in the order of readiness",
     "PyTorch DistributedDataParallel defaults (VLDB 2020)", BASELINE_DEFAULT, baseline_pytorch_ddp},
    {"horovod", "what becomes ready within 1 ms is fused, up to 128 MiB", "Horovod defaults (arXiv 1802.05799)",
     BASELINE_DEFAULT, baseline_horovod},
    {"ps", "one parameter server on the first node", "AutoDist PS builder; Li et al. (OSDI 2014)", BASELINE_PUBLISHED,
     baseline_ps},
    {"ps-load-balanced", "whole variables, each on the server with the fewest bytes so far",
     "AutoDist PSLoadBalancing builder", BASELINE_PUBLISHED, baseline_ps_load_balanced},
    {"all-reduce", "chunks of 128 variables in the order of the model", "AutoDist AllReduce builder",
     BASELINE_PUBLISHED, baseline_all_reduce},
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
