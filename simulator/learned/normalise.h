/* Features brought to mean 0 and deviation 1, by the training examples alone.
 *
 * A feature that is the same in all of them says nothing and becomes 0. Values are held within NORMALISE_MOST
 * deviations: an unseen domain may lie far outside what was trained on, and a linear term would run away with it.
 * Threads: a const struct normalisation may be shared. */
#ifndef SIMULATOR_LEARNED_NORMALISE_H
#define SIMULATOR_LEARNED_NORMALISE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "featurize/features.h"
#include "simulator/learned/network.h"

#define NORMALISE_MOST 5.0

struct normalisation {
    double global_mean[FEATURE_GLOBAL_COUNT], global_scale[FEATURE_GLOBAL_COUNT]; /* 1 / deviation, or 0 */
    double shard_mean[FEATURE_SHARD_COUNT], shard_scale[FEATURE_SHARD_COUNT];
};

/* n at least 1. A shard's row counts `weight` times. O(n shards features). */
void normalisation_fit(size_t n, const struct features *const features[], struct normalisation *out);

/* `features` as a network sees them, in memory of `arena`; shards and edges only when `whole`. `out` borrows the rest
 * from `features`. Fails: ST_NO_MEMORY. */
enum status normalise(const struct normalisation *normalisation, const struct features *features, bool whole,
                      struct arena *arena, struct network_input *out, struct error *err);

#endif
