/* BytePS for any partition size: the baseline uses BytePS's default, an exporter compares strategies with it. */
#ifndef STRATEGY_BASELINES_BYTEPS_H
#define STRATEGY_BASELINES_BYTEPS_H

#include <stdint.h>

#include "base/error.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"

enum { BYTEPS_PARTITION_BYTES = 4096000 };

/* BytePS's cut, placement and partitions of at most `partition_bytes` (1024 and more), sealed; fifo without credit.
 * Fails: ST_NO_MEMORY. */
enum status byteps_build(const struct model *model, const struct cluster *cluster, uint64_t partition_bytes,
                         struct strategy *out, struct error *err);

#endif
