/* The orders in which one iteration comes to the model's variables: backward, as every merging rule needs it, and
 * forward, as what is gathered needs it. */
#ifndef STRATEGY_SPACE_READY_ORDER_H
#define STRATEGY_SPACE_READY_ORDER_H

#include <stdint.h>

#include "base/error.h"
#include "strategy/model.h"

/* Fill order[n_variables] with the variables by readiness: by the place of the producer in model->order, ties by
 * position. O(variables + operators). Fails: ST_NO_MEMORY. */
enum status ready_order(const struct model *model, uint32_t *order, struct error *err);

/* The same by first use: by the place of the first forward operator that reads the variable; those that none reads come
 * last. O(variables + operators). Fails: ST_NO_MEMORY. */
enum status read_order(const struct model *model, uint32_t *order, struct error *err);

#endif
