/* Horovod with the knobs searched that its autotuner searches (HOROVOD_AUTOTUNE=1):
 *   - HOROVOD_FUSION_THRESHOLD: 128 MiB (the default), and 0, 1, 2, 4, ..., 64 MiB of the autotuner's range of 0 to 64;
 *   - HOROVOD_CYCLE_TIME: 1 ms (the default), 2, 5, 10 and 25 ms of its range of 1 to 100;
 *   - HOROVOD_HIERARCHICAL_ALLREDUCE, where all nodes have the same number of devices, at least two.
 * The autotuner finds its way there by Bayesian optimization of what it measures. Here all 45 or 90 settings are tried.
 * A fused message does not wait for the end of its cycle here (strategy/baselines/horovod.c), which flatters long
 * cycles; longer ones than 25 ms are left out for that. The hierarchical all-gather and the response cache change no
 * strategy.
 * Source: horovod/common/parameter_manager.cc; Horovod documentation, "Autotune". */
#include "strategy/baselines/baselines.h"
#include "strategy/baselines/builder.h"
#include "strategy/baselines/horovod.h"

enum { THRESHOLDS = 9 };

/* Whether all nodes that work have as many devices, two or more. */
static bool has_like_nodes(const struct cluster *cluster) {
    uint32_t devices = 0;
    for (uint32_t i = 0; i < cluster->n_nodes; i++) {
        const uint32_t here = cluster->nodes[i].devices;
        if (here && devices && here != devices)
            return false;
        devices = here ? here : devices;
    }
    return devices > 1;
}

static enum status build(const struct model *model, const struct cluster *cluster, size_t setting, struct strategy *out,
                         struct error *err) {
    static const uint64_t mib[THRESHOLDS] = {HOROVOD_FUSION_BYTES >> 20, 0, 1, 2, 4, 8, 16, 32, 64};
    const uint64_t fusion_bytes = mib[setting % THRESHOLDS] << 20;
    const double cycle_us = horovod_cycles_us[setting / THRESHOLDS % HOROVOD_CYCLES];
    struct strategy s;
    enum status st = horovod_build(model, cluster, fusion_bytes, cycle_us, &s, err);
    if (st)
        return st;
    if (setting >= THRESHOLDS * HOROVOD_CYCLES && has_like_nodes(cluster))
        for (uint32_t g = 0; g < s.n_groups; g++)
            if (s.groups[g].algorithm == ALGORITHM_auto)
                s.groups[g].algorithm = ALGORITHM_hierarchical;
    return baseline_finish(ST_OK, &s, model, cluster, out, err);
}

const struct baseline_grid baseline_horovod_grid = {2 * THRESHOLDS * HOROVOD_CYCLES, build};
