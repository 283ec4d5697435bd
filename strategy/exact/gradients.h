/* A model's gradients as every exact problem sees them: when each is there, how many bytes it has, and how much
 * computation waits behind it. */
#ifndef STRATEGY_EXACT_GRADIENTS_H
#define STRATEGY_EXACT_GRADIENTS_H

#include <stdint.h>

#include "base/error.h"
#include "strategy/model.h"

struct gradient {
    uint32_t variable;
    enum dtype dtype;
    uint64_t bytes;
    double ready_us; /* end of the operator that makes it, from the start of the backward pass */
    double tail_us;  /* computation from the start of the first forward operator that reads it to the end of the
                        forward pass; if no operator reads it: from the last operator that reads any variable.
                        With updates: each variable's comes before that operator, and counts too */
};

enum with_updates { WITHOUT_UPDATES, WITH_UPDATES };

/* Fill out[model->n_variables] in the order of readiness, on a device whose operators take `scale` times as long.
 * O(variables + operators). Fails: ST_NO_MEMORY. */
enum status gradients_list(const struct model *model, double scale, enum with_updates with, struct gradient *out,
                           struct error *err);

#endif
