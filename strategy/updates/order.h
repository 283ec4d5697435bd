/* In which order updates go to their server, under deadlines (MLfabric §5.1, algorithms 1 and 2).
 *
 * A place in the order is also a version of the model. So an update with a deadline d, a bound on its delay, must have
 * one of the first d places (equation 9). Reserving in an order, each update the whole free rate of its way, gives
 * every update its end.
 *
 * The rule mlfabric is algorithm 2: the update whose deadline is this place goes, else the one that would end first. An
 * update that the next one would overtake is dropped. The paper's places also count what was dropped, which is on the
 * safe side. It does not say what to do when two updates share a deadline, so one of them must break it; here an update
 * whose deadline has passed is dropped. Where the next one is dropped in its turn, one that comes after both may still
 * end sooner: it then waits at the server, so that no deadline is broken.
 *
 * The rule slots drops as few as the deadlines allow: of the first updates by deadline that are too many for their
 * places, the one that would end last alone. Then the one that would end first goes, of all, or of those that fill all
 * the places that they have left. Nobody is overtaken: an update is applied when the one before it is.
 *
 * Ends that differ by less than a billionth count as equal, and the first of equals goes.
 *
 * With one server a reservation makes no other end earlier. So an end that was worked out stays a lower bound, and so
 * does what the server's port alone allows. An end is worked out only where both bounds leave it a chance: O(n^2)
 * comparisons, and few ends (the paper works out O(n^2) ends; §7.4).
 *
 * The model may lie on several servers (§10.2): an update then has a part for each, is reserved with all its parts, and
 * ends with the last. Units: bytes, microseconds. */
#ifndef STRATEGY_UPDATES_ORDER_H
#define STRATEGY_UPDATES_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "strategy/consistency.h"
#include "strategy/updates/calendar.h"

/* No deadline. */
#define UPDATE_ANY_PLACE UINT32_MAX

struct update {
    uint32_t node; /* of the worker that sends it */
    double bytes;  /* of the whole; server s gets bytes * share[s] */
    double available_us;
    uint32_t deadline; /* the last place that it may have, from 1; 0: none is early enough */
};

/* Equation 9: the last place that keeps the delay of an update computed from version `from` at `bound` (0: there is
 * none) or below, in a batch whose first update is applied to version `next`. The update at place p is applied to the
 * version after p - 1 others, so this is 1 more than in the paper. */
uint32_t update_deadline(uint64_t from, uint32_t bound, uint64_t next);

struct update_servers {
    uint32_t n;
    const uint32_t *nodes;
    const double *share; /* of an update's bytes, adding up to 1 */
};

struct update_order {
    uint32_t n;      /* updates that go, in order[0 .. n) */
    uint32_t *order; /* the caller's: room for all */
    double *end_us;  /* the caller's: of order[i], never falling with i */
    bool *dropped;   /* the caller's: by update */
};

/* Order updates[0 .. n) and reserve them in the calendar. Fails: ST_NO_MEMORY. */
enum status order_updates(struct calendar *calendar, const struct update_servers *servers, uint32_t n,
                          const struct update *updates, enum update_order_rule rule, struct update_order *out,
                          struct error *err);

#endif
