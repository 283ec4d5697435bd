/* Megatron-LM's data parallelism with overlapped gradients, for any setting of its flags. */
#ifndef STRATEGY_BASELINES_MEGATRON_H
#define STRATEGY_BASELINES_MEGATRON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"

struct megatron_settings {
    bool distributed_optimizer; /* --use-distributed-optimizer */
    bool overlap_param_gather;  /* --overlap-param-gather: of the distributed optimizer alone */
    uint64_t bucket_size;       /* --ddp-bucket-size: elements */
};

/* What --ddp-bucket-size is where nobody gives it: 40 million elements, or a million a device where that is more. */
uint64_t megatron_bucket_size(const struct cluster *cluster);

/* With --overlap-grad-reduce; sealed under the name. Fails: ST_NO_MEMORY. */
enum status megatron_build(const struct model *model, const struct cluster *cluster,
                           const struct megatron_settings *settings, const char *name, struct strategy *out,
                           struct error *err);

#endif
