/* DeepSpeed's ZeRO with any of its settings; the baselines have its defaults, and the exporter works the settings out
 * of a strategy. */
#ifndef STRATEGY_BASELINES_ZERO_H
#define STRATEGY_BASELINES_ZERO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"

/* "zero_optimization" of its configuration. Sizes are elements. */
struct zero_settings {
    uint32_t stage;                 /* 1 to 3 */
    bool overlap_comm;              /* stage 1: gradients are summed during the backward pass, not behind it */
    uint64_t reduce_bucket_size;    /* stages 1 and 2 */
    uint64_t prefetch_bucket_size;  /* stage 3, as all below */
    uint64_t persistence_threshold; /* variables of at most so many elements are not sharded */
    uint64_t max_live_parameters;
    uint64_t max_reuse_distance; /* elements between two uses, below which a variable is not freed */
    uint32_t shard_ranks;        /* MiCS: so many consecutive devices share the shards; 0: all */
    uint32_t kept_ranks;         /* hpZ: so many keep a variable between the passes; 0: all that share the shards */
};

/* What DeepSpeed does in this stage where nobody says anything. */
struct zero_settings zero_defaults(uint32_t stage);

/* Sealed under the name. Fails: ST_INVALID (shard_ranks or kept_ranks do not divide the devices), ST_NO_MEMORY. */
enum status zero_build(const struct model *model, const struct cluster *cluster, const struct zero_settings *settings,
                       const char *name, struct strategy *out, struct error *err);

#endif
