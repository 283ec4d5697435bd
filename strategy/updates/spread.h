/* How a model goes out to many nodes (MLfabric §10.3): an aggregation with all directions reversed.
 *
 * Some nodes get the model from the server and pass it on to a group of the others. Which ones is what algorithm 3 says
 * of updates that would come from these nodes. The last group is served first, and last come the nodes that get the
 * model from the server alone. Units: bytes, microseconds. */
#ifndef STRATEGY_UPDATES_SPREAD_H
#define STRATEGY_UPDATES_SPREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "strategy/updates/calendar.h"

/* Order nodes[0 .. n), all different, as the model should reach them: the server sends it where first[i], and that node
 * passes it on to those behind it up to the next first. At most `distributors` pass it on, the fastest first.
 * `reversed` has every port's two directions swapped, and what is on its way; rates are as for nodes_fastest_first
 * (strategy/updates/aggregate.h). Fails: ST_NO_MEMORY. */
enum status spread_model(struct calendar *reversed, uint32_t server, double bytes, uint32_t n, uint32_t *nodes,
                         bool *first, uint32_t distributors, const double *rates, struct error *err);

#endif
