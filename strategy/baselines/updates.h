/* Beside the baselines of updates.c: the strategies with a "consistency" that a session may try, on the same server. */
#ifndef STRATEGY_BASELINES_UPDATES_H
#define STRATEGY_BASELINES_UPDATES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"

/* The family of strategies whose models may be stale by `most`, 1 to CONSISTENCY_MAX_STALENESS. For k = most and every
 * power of two below it: stale-synchronous with staleness k, asynchronous with delay bound k, and MLfabric's scheduler
 * with that bound: batches of 100 or 10 ms, updates added up on their way or not. */
size_t updates_family_size(uint32_t most);

/* Strategy `i` of the family, sealed and named after what it is. Where gradients are sparse nothing adds them up, and
 * two of the strategies have one id. Fails: ST_INVALID (the cluster has no device), ST_NO_MEMORY. */
enum status updates_family_build(const struct model *model, const struct cluster *cluster, uint32_t most, size_t i,
                                 struct strategy *out, struct error *err);

/* Synchronous training as updates: an iteration's are added up by the server. It computes what every synchronous
 * strategy without encoding computes, and workers can learn with it. Fails: as updates_family_build. */
enum status updates_build_synchronous(const struct model *model, const struct cluster *cluster, struct strategy *out,
                                      struct error *err);

#endif
