/* Measure a cluster: what its collectives, pushes and pulls cost, with the event loop that real runs use, and how
 * computing and messages slow each other.
 *
 * On device 0's standard output: {"event":"point","operation","algorithm","devices","bytes","time_us"} whenever a size
 * has been measured, for sizes from 1 KiB, four times larger each; only an all_reduce has the member "algorithm". At
 * the end, for each size, {"event":"measurement"} with the same members and the interval "low_us" to "high_us" around
 * the median of the passes that agree;
 * {"event":"agreement", "points","redone","unsettled","difference"}, the last being by which part the passes differ,
 * the median over points; {"event":"interference",...} (interference.h); and {"event":"runtime",...} with
 * strategy/cluster.h's runtime costs. Times of points are the slowest rank's. */
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
