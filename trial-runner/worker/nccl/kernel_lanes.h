/* Lanes: threads that work in step and tell each other numbers. On a GPU the 32 of a warp; on a processor one thread
 * alone, or as many as a test has, which then defines KERNEL_LANES and these functions. */
#ifndef TRIAL_RUNNER_WORKER_NCCL_KERNEL_LANES_H
#define TRIAL_RUNNER_WORKER_NCCL_KERNEL_LANES_H

#include <stdint.h>

#include "trial-runner/worker/elements.h"

#ifdef __CUDACC__

/* A bit for each lane: whether its `yes` holds. All lanes call each of these together. */
KERNEL_BODY uint32_t kernel_votes(int yes) {
    return __ballot_sync(~0u, yes);
}

/* The sum of a number over the lanes before this one. */
KERNEL_BODY uint32_t kernel_sum_before(uint32_t own, uint32_t lane) {
    uint32_t sum = own;
    for (uint32_t distance = 1; distance < 32; distance *= 2) {
        const uint32_t other = __shfl_up_sync(~0u, sum, distance);
        sum += lane >= distance ? other : 0;
    }
    return sum - own;
}

#elif !defined(KERNEL_LANES)

KERNEL_BODY uint32_t kernel_votes(int yes) {
    return yes != 0;
}

KERNEL_BODY uint32_t kernel_sum_before(uint32_t own, uint32_t lane) {
    (void)own, (void)lane;
    return 0;
}

#endif

KERNEL_BODY uint32_t kernel_ones(uint32_t votes) {
#ifdef __CUDACC__
    return (uint32_t)__popc(votes);
#else
    return (uint32_t)__builtin_popcount(votes);
#endif
}

#endif
