/* The chain of gradients that merging rules cut, and a cut of it as a strategy. */
#ifndef STRATEGY_BASELINES_CHAIN_H
#define STRATEGY_BASELINES_CHAIN_H

#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "strategy/exact/gradients.h"
#include "strategy/exact/merge.h"
#include "strategy/strategy.h"

/* The model's gradients in the order of readiness, as ready on the slowest node: a message needs all nodes.
 * model->n_variables of them, in `arena`. Fails: ST_NO_MEMORY. */
enum status chain_list(const struct model *model, const struct cost *cost, struct arena *arena,
                       struct gradient **gradients, struct error *err);

/* Put each group of the cut into a merge group of its own; the strategy has at least n_groups. */
void chain_assign(const struct gradient *gradients, const struct merge *merge, struct strategy *strategy);

#endif
