/* Measure a cluster: what its collectives, pushes and pulls cost, with the event loop that real runs use.
 *
 * On device 0's standard output: {"event":"measurement","operation","algorithm","devices","bytes","time_us"} for sizes
 * from 1 KiB, four times larger each, and {"event":"runtime",...} with strategy/cluster.h's runtime costs. Every figure
 * is the median of several repeats, each the slowest rank's time. */
#ifndef TRIAL_RUNNER_WORKER_MEASURE_H
#define TRIAL_RUNNER_WORKER_MEASURE_H

#include <stdint.h>

#include "base/error.h"
#include "strategy/cluster.h"
#include "trial-runner/worker/world.h"

struct measure_options {
    uint64_t max_bytes;
    double time_limit_s; /* measurements that would end later are left out, the largest first */
};

/* Collective over one rank a device. `ready` is called on device 0 before the first measurement. Fails: as world_init,
 * backend_join, ST_NO_MEMORY. */
enum status measure_cluster(const struct cluster *cluster, const struct measure_options *options,
                            void (*ready)(const struct world *world), struct error *err);

#endif
