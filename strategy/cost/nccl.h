/* What an all-reduce takes by NCCL, and so what NCCL chooses, by NCCL's own model of itself.
 *
 * NCCL has an algorithm (ring, or the pair of trees that we call double_tree) and a protocol. Simple moves data at full
 * rate and pays a fence a step; LL sends a flag with each four bytes of data, so a step is fast and a quarter of the
 * rate is left; LL128, used on NVLink alone, has one flag in 128 bytes. For each combination NCCL adds
 *
 *   base + (steps inside nodes) * (step inside) + (steps between nodes) * (step between + NIC latency) + bytes / rate
 *
 * and takes the least sum. Here that sum is also the time that the all-reduce takes.
 *
 * Left out: CollNet and NVLS, which need switches that sum; corrections of a rate by size.
 * An all-gather is a ring with half the steps; it has no tree.
 * Source: NCCL 2.21, src/graph/tuning.cc, ncclTopoTuneModel. */
#ifndef STRATEGY_COST_NCCL_H
#define STRATEGY_COST_NCCL_H

#include <stdbool.h>

#include "strategy/cluster.h"
#include "strategy/cost/all_reduce_line.h"

/* What NCCL looks at. Rates are what is left for data, after what the transport takes (strategy/cost/transport.h). */
struct nccl_shape {
    double ranks, nodes;
    double nic_latency_us;
    double narrowest_bytes_per_us; /* of every hop */
    bool nvlink;                   /* between all devices of every node */
};

/* One line for each protocol; none for algorithms other than ring, double_tree and all_gather. */
struct all_reduce_lines nccl_lines(const struct nccl_shape *shape, enum algorithm algorithm);

#endif
