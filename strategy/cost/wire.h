/* What an all-reduce moves through NICs, by algorithm: the time for which it holds the busiest of them.
 *
 * A measured curve tells how long a message takes, not how long the message keeps others off the network: part of the
 * time is latency, bursts make short messages look faster than the NIC, and an algorithm of several stages leaves NICs
 * idle in each stage. Here the bytes through each NIC are counted hop by hop. Overridden links are left out.
 * Units: microseconds a byte of the message. */
#ifndef STRATEGY_COST_WIRE_H
#define STRATEGY_COST_WIRE_H

#include "base/arena.h"
#include "base/error.h"
#include "strategy/cluster.h"

/* by_algorithm[a]: of the NIC that takes longest, the bytes in its busier direction over its rate. For a tree only the
 * way to the root counts; the way back, which takes other hops, is *tree_back. `auto` is the least of the others;
 * all_gather is 0, since it has no curve. One node: 0. O(devices log devices). Fails: ST_NO_MEMORY. */
enum status wire_per_byte_us(const struct cluster *cluster, double by_algorithm[ALGORITHM_COUNT], double *tree_back,
                             struct error *err);

#endif
