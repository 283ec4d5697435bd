/* Max-min fair rates of flows that share capacities (Bertsekas and Gallager, Data Networks, 6.5.2).
 *
 * Flows that use the same resources are one class; `weight` counts them (a weight of 3 is three equal flows). Rates are
 * fair when no flow can go faster without slowing one that is not faster than it: every flow then has a saturated
 * resource on which no other flow is faster. Units: any, the same for capacities and rates. */
#ifndef SIMULATOR_FLOWS_H
#define SIMULATOR_FLOWS_H

#include <stdint.h>

struct flows {
    uint32_t n_classes, n_resources;
    const double *capacity; /* n_resources, each > 0 */
    const uint32_t *first;  /* n_classes + 1: class c uses uses[first[c] .. first[c + 1]), at least one */
    const uint32_t *uses;
};

/* Fair rate of one flow in each of the `n_active` classes listed in active[] (weight > 0): rate[c] is written for those
 * only. scratch holds 2 * n_resources doubles; active[] is permuted. Cost O(bottlenecks * (resources + uses)). */
void flows_fill(const struct flows *flows, const double *weight, uint32_t n_active, uint32_t *active, double *rate,
                double *scratch);

#endif
