/* A replica that follows a server within a bound (MLfabric §3.3 and §5.3).
 *
 * Server and replica apply the same updates in the same order, the replica later. When the server is m updates ahead,
 * equation 2 applied m times says how far apart the two models are (equations 7 and 10):
 *     w_s - w_r = (g + ... + g^m) h + sum over the m updates of (1 + g + ... + g^(m - i)) u_i
 * with momentum g and h the last step of the replica. Of the norms alone follows an upper bound, by the triangle
 * inequality; it is the root of equation 11 with all its products. The norm of h is bounded the same way, step by step.
 *
 * The scheduler sends the replica what it can get by the time the server is through with the batch, added up on the way
 * as for the server. It sends more where the bound asks for more, and leaves the rest for the next batch, where more
 * can be added up. when_due sends nothing until the bound asks for it, and then all: fewer bytes, and a replica that is
 * farther behind. Units: norms, microseconds. */
#ifndef STRATEGY_UPDATES_REPLICATE_H
#define STRATEGY_UPDATES_REPLICATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "strategy/updates/aggregate.h"
#include "strategy/updates/calendar.h"
#include "strategy/updates/order.h"

/* How far apart the models may be when the server is ahead by updates of these norms, the oldest first, and the
 * replica's last step has at most the norm `step`. O(n). */
double replica_divergence(uint32_t n, const double *norms, double step, double momentum);

/* A bound on the replica's last step after it has applied another update. */
double replica_step(double step, double norm, double momentum);

struct replication {
    uint32_t sent;                  /* of the n updates the first so many go to the replica now */
    struct aggregation aggregation; /* of all n, where something is sent; the caller's arrays, as in aggregate.h */
};

/* The updates order[0 .. n) that the server applies, or has applied, and the replica lacks; the server is through with
 * them at last_us. `calendar` has the server's transfers. Those to the replica that are sent, and those that are not,
 * are reserved after them. Fails: ST_NO_MEMORY. */
enum status replicate_updates(struct calendar *calendar, uint32_t replica, uint32_t n, const uint32_t *order,
                              const struct update *updates, const double *norms, double step, double momentum,
                              double bound, bool when_due, double last_us, uint32_t n_aggregators,
                              const uint32_t *aggregators, struct replication *out, struct error *err);

#endif
