/* A model as a chain of layers that cannot be cut: what the exact wrapping of sharded parameters chooses from.
 *
 * A layer is the variables that one forward operator is the first to read. Layers whose gradients come in another order
 * than the reverse of that are one layer, for their backward passes cannot be told apart. */
#ifndef STRATEGY_BASELINES_LAYERS_H
#define STRATEGY_BASELINES_LAYERS_H

#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "strategy/cost/cost.h"
#include "strategy/exact/wrapping.h"
#include "strategy/model.h"

struct layers {
    struct wrapping_chain chain; /* without a budget, and nothing kept */
    uint32_t n_variables;
    uint32_t *layer_of; /* by variable */
};

/* As on the slowest node; in `arena`. O(variables log variables + operators). Fails: ST_NO_MEMORY. */
enum status layers_list(const struct model *model, const struct cost *cost, struct arena *arena, struct layers *out,
                        struct error *err);

/* Join neighbours until each layer has its share of the bytes, of which there are `most`. Large ones stay alone, so
 * fewer than twice `most` are left. `arena` is that of layers_list. Fails: ST_NO_MEMORY. */
enum status layers_coarsen(struct layers *layers, uint32_t most, struct arena *arena, struct error *err);

/* What messages of sharded parameters cost on this cluster, one at a time. The context is `cost`, which must live as
 * long. */
struct wrapping_cost layers_cost(const struct cost *cost);

#endif
