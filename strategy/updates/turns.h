/* Which update or sum may set out for its server next (MLfabric §5).
 *
 * What the scheduler has let go stands in the order in which it was scheduled, batch after batch. The first that is
 * ready sets out when the NICs of those on their way leave some of the server's free. What comes from the server's own
 * node needs none of it.
 *
 * So turns overtake each other: a sum waits for its updates while those behind it go, which leaves no NIC fallow
 * (§5.1.3), and a slow NIC's update is on its way for long. But deadlines (order.h) count on the order, also from one
 * batch to the next, of which the paper says nothing. So a turn does not set out where it could make one before it too
 * late: each has a last version of the model to which it may be added, and in the worst case all that is before it, and
 * all that has set out, is added first.
 *
 * Rates in bytes per microsecond. Threads: no state. */
#ifndef STRATEGY_UPDATES_TURNS_H
#define STRATEGY_UPDATES_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#define TURN_ANY_VERSION UINT64_MAX

struct turn {
    uint32_t node;       /* whose NIC its bytes leave */
    uint32_t n;          /* updates in it: 1, or those of a sum */
    uint64_t last;       /* the last version to which it may be added, or TURN_ANY_VERSION */
    bool ready;          /* always, of an update alone */
    bool goes;           /* has set out */
    uint32_t kind, what; /* the caller's own */
};

/* The first of turns[0 .. n) that may set out now, or n. The server's model has `version`, and rates are at 2 * node +
 * enum direction (strategy/cluster.h). O(n). */
uint32_t turns_next(uint32_t n, const struct turn *turns, uint32_t server, uint64_t version, const double *rates);

#endif
