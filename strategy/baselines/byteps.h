/* BytePS for any setting of its knobs: the baseline uses BytePS's defaults, an exporter compares strategies with it. */
#ifndef STRATEGY_BASELINES_BYTEPS_H
#define STRATEGY_BASELINES_BYTEPS_H

#include <stdint.h>

#include "base/error.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"

enum { BYTEPS_PARTITION_BYTES = 4096000 };

/* BYTEPS_PARTITION_BYTES (1024 and more), BYTEPS_SCHEDULING_CREDIT in partitions (0: no scheduling) and
 * DMLC_NUM_SERVER (at least 1; more than there are: all). */
struct byteps_knobs {
    uint64_t partition_bytes, credit;
    uint32_t n_servers;
};

/* How many servers there are: the nodes without devices where there are any, else all. */
uint32_t byteps_servers(const struct cluster *cluster);

/* BytePS's cut, placement, partitions and order, sealed. Fails: ST_NO_MEMORY. */
enum status byteps_build(const struct model *model, const struct cluster *cluster, const struct byteps_knobs *knobs,
                         struct strategy *out, struct error *err);

#endif
