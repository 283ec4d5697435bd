/* What threads tell each other that work in step. On a GPU lanes are the 32 threads of a warp, and some sums are those
 * of a block; on a processor one thread is alone, or there are as many as a test has, which then defines KERNEL_LANES
 * and these functions. */
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

/* The sum over all lanes, which all get. */
KERNEL_BODY float kernel_sum_lanes(float own) {
    for (uint32_t distance = 16; distance > 0; distance /= 2)
        own += __shfl_xor_sync(~0u, own, distance);
    return own;
}

/* The sum over the threads of a block of whole warps, which all get. All threads call it together. */
KERNEL_BODY double kernel_sum_threads(double own) {
    __shared__ double of_warp[32];
    double sum = 0;
    for (uint32_t distance = 16; distance > 0; distance /= 2)
        own += __shfl_xor_sync(~0u, own, distance);
    if (threadIdx.x % 32 == 0)
        of_warp[threadIdx.x / 32] = own;
    __syncthreads();
    for (uint32_t warp = 0; warp < blockDim.x / 32; warp++)
        sum += of_warp[warp];
    __syncthreads();
    return sum;
}

#elif !defined(KERNEL_LANES)

KERNEL_BODY uint32_t kernel_votes(int yes) {
    return yes != 0;
}

KERNEL_BODY uint32_t kernel_sum_before(uint32_t own, uint32_t lane) {
    (void)own, (void)lane;
    return 0;
}

KERNEL_BODY float kernel_sum_lanes(float own) {
    return own;
}

KERNEL_BODY double kernel_sum_threads(double own) {
    return own;
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
