/* Boosted trees, grown by XGBoost from the slopes of the ranking loss.
 *
 * Threads: training uses the calling thread alone; XGBoost's random numbers are of that thread. */
#ifndef SIMULATOR_LEARNED_TREES_H
#define SIMULATOR_LEARNED_TREES_H

#include "base/error.h"
#include "featurize/features.h"
#include "simulator/learned/forest.h"
#include "simulator/learned/training.h"

/* The global features as trees read them. */
void trees_row(const struct features *features, float out[FEATURE_GLOBAL_COUNT]);

/* Grow trees behind those that *forest has, whose part of the score is in fold.base already. A score is fold.base plus
 * loss.temperature times the sum of the new trees. Fails: ST_NUMERIC, ST_CANCELLED, ST_NO_MEMORY; *forest is then as
 * it was. */
enum status trees_fit(struct training *training, struct forest *forest, struct error *err);

#endif
