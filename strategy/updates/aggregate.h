/* Which updates are added up on their way to the server (MLfabric §5.2, algorithm 3).
 *
 * Updates keep their order. The first n go to the server themselves. The next ones go to the first aggregator as long
 * as it has them all before the server is through with what came before, then to the second, and so on; each aggregator
 * sends one sum. All n are tried, and the one whose last transfer to the server ends first is taken, the least n of
 * equals. The last aggregator takes all that is left, as the paper has k + 1 groups. A sum is applied when it has come
 * and what is before it in the order has been applied.
 *
 * The paper works out all |U| + 1 cases. Here a case is left as soon as it cannot win: its direct transfers and one sum
 * have an end, and so has what all aggregators' ports let through together. Cases are tried from where these two bounds
 * cross.
 *
 * With all directions reversed the same is how a model goes out (§10.3). Units: bytes, microseconds. */
#ifndef STRATEGY_UPDATES_AGGREGATE_H
#define STRATEGY_UPDATES_AGGREGATE_H

#include <stdint.h>

#include "base/error.h"
#include "strategy/updates/calendar.h"
#include "strategy/updates/order.h"

/* Where an update goes first: straight to the server, or to aggregator g of the list. */
enum { TO_SERVER = UINT32_MAX };

struct aggregation {
    uint32_t direct;    /* how many go straight to the server */
    uint32_t *group;    /* the caller's: of order[i], TO_SERVER or a position in aggregators */
    double *arrival_us; /* the caller's: of order[i] at its next hop */
    double *sum_us;     /* the caller's: of aggregator g, when its sum is at the server; 0 where it has none */
    double *applied_us; /* the caller's: of order[i], when it is part of the model; never falling */
    double end_us;      /* of the last; now where there is nothing */
};

/* Aggregate order[0 .. n) on their way to `server` and reserve all transfers. Sums are as large as the largest update
 * in them. Fails: ST_NO_MEMORY. */
enum status aggregate_updates(struct calendar *calendar, uint32_t server, uint32_t n, const uint32_t *order,
                              const struct update *updates, uint32_t n_aggregators, const uint32_t *aggregators,
                              struct aggregation *out, struct error *err);

/* Put nodes in the order in which they should be used: the fastest first, by the narrower of a node's two ports; of
 * equals in their order (the paper draws them, §5.2). rates are at 2 * node + enum direction (strategy/cluster.h). */
void nodes_fastest_first(uint32_t n, uint32_t *nodes, const double *rates);

#endif
