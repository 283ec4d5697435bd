/* ByteScheduler's published defaults, in elements: BYTESCHEDULER_PARTITION and BYTESCHEDULER_CREDIT. In f32 they are
 * 4 MB and 16 MB. And its strategies for any partition and credit: exporters compare strategies with them. */
#ifndef STRATEGY_BASELINES_BYTESCHEDULER_H
#define STRATEGY_BASELINES_BYTESCHEDULER_H

#include <stdint.h>

#include "base/error.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"

enum { BYTESCHEDULER_PARTITION = 1000000, BYTESCHEDULER_CREDIT = 4000000 };

/* Sealed strategies of at most `partition` (1024 and more) elements a message and `credit` elements in flight. Fails:
 * ST_NO_MEMORY. */
enum status bytescheduler_all_reduce_build(const struct model *model, const struct cluster *cluster, uint64_t partition,
                                           uint64_t credit, struct strategy *out, struct error *err);
enum status bytescheduler_ps_build(const struct model *model, const struct cluster *cluster, uint64_t partition,
                                   uint64_t credit, struct strategy *out, struct error *err);

#endif
