/* The rows of the table of baselines, those with searched knobs among them. A system that is tuned is what its users
 * compare with, so it is built here, where a setting can be simulated.
 * Threads: any, each call on its own. */
#ifndef SIMULATOR_TUNED_H
#define SIMULATOR_TUNED_H

#include <stdint.h>

#include "base/error.h"
#include "strategy/baselines/baselines.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"

/* Build a row of the table for this model and cluster, sealed and named after it. A tuned one is the setting of its
 * grid with the shortest predicted iteration, the first of equals. Settings that are too large to predict do not count.
 * O(settings) simulations. Fails: as baselines_build, plan_lower and timeline_run; ST_TOO_LARGE only when every setting
 * is. */
enum status tuned_build(const struct baseline *row, const struct model *model, const struct cluster *cluster,
                        struct strategy *out, struct error *err);

/* The same for devices that may hold memory_bytes (strategy/memory.h; 0: not said): "fsdp-optimal" is the best wrapping
 * that fits, or where none does the one that needs the least. No other row depends on it. */
enum status tuned_build_for(const struct baseline *row, const struct model *model, const struct cluster *cluster,
                            uint64_t memory_bytes, struct strategy *out, struct error *err);

#endif
