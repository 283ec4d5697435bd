/* What an all-reduce moves through NICs, by algorithm: the time for which it holds the busiest of them.
 *
 * A measured curve tells how long a message takes, not how long it keeps others off the network: latency passes
 * meanwhile, bursts make short messages look faster than the NIC, and an algorithm of several stages leaves NICs idle
 * in each. This is the least that any of them must hold a NIC, counted hop by hop. Overridden links are left out.
 * Units: microseconds a byte of the message. */
#ifndef STRATEGY_COST_WIRE_H
#define STRATEGY_COST_WIRE_H

#include "base/arena.h"
#include "base/error.h"
#include "strategy/cluster.h"

/* by_algorithm[a]: bytes that cross the NIC which takes longest for them, in the direction with more, over its rate; of
 * a tree on the way to the root (and as much again on the way back), of `auto` the least of the others. 0 for one node.
 * O(devices log devices). Fails: ST_NO_MEMORY. */
enum status wire_per_byte_us(const struct cluster *cluster, double by_algorithm[ALGORITHM_COUNT], struct error *err);

#endif
