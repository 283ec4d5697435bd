/* What a message with an encoder costs (strategy/encoder.h). Units: bytes, microseconds.
 *
 * int8. An all-to-all and an all-gather of the encoded bytes, one n-th of them from each device to each other. The
 * all-gather costs what strategy/cost/all_reduce.h says. The all-to-all has as many bytes through each NIC where nodes
 * have one device. Where a node has d of n devices, each of them sends n - d parts out of the node; no ring carries
 * those parts. The same holds for the all-gather outside of NCCL, since every device sends to all others at once.
 * Between both a device decodes n parts, adds them, and encodes one. */
#ifndef STRATEGY_COST_ENCODED_H
#define STRATEGY_COST_ENCODED_H

#include "strategy/cost/cost.h"

/* The message has an encoder. */
struct all_reduce_cost cost_encoded(const struct cost *cost, const struct message *message);

/* cost->direct_per_byte_us, from the rates of its NICs. O(nodes). */
double cost_direct_per_byte_us(const struct cost *cost);

#endif
