/* PyTorch's DistributedDataParallel with any size of buckets; the baseline has its defaults. */
#ifndef STRATEGY_BASELINES_PYTORCH_DDP_H
#define STRATEGY_BASELINES_PYTORCH_DDP_H

#include <stdint.h>

#include "base/error.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"

/* Its buckets with bucket_cap_mb = cap_bytes / 2^20, sealed under the name. Fails: ST_NO_MEMORY. */
enum status pytorch_ddp_build(const struct model *model, const struct cluster *cluster, uint64_t cap_bytes,
                              const char *name, struct strategy *out, struct error *err);

/* The same with its defaults. */
enum status pytorch_ddp_defaults(const struct model *model, const struct cluster *cluster, const char *name,
                                 struct strategy *out, struct error *err);

#endif
