/* How a GPU takes the elements of largest size (trial-runner/worker/largest_search.h), for one thread of many. The same
 * text for nvcc and for a C compiler.
 *
 * Elements are counted by all threads, in three passes. Then they are cut into chunks in order. A warp counts in each
 * chunk what is taken, one warp finds what is taken before each, and a warp writes what is taken of each. So elements
 * are written in the order of their places, whatever runs first, and no thread waits for another. */
#ifndef TRIAL_RUNNER_WORKER_NCCL_KERNEL_LARGEST_H
#define TRIAL_RUNNER_WORKER_NCCL_KERNEL_LARGEST_H

#include <stddef.h>
#include <stdint.h>

#include "trial-runner/worker/largest_search.h"
#include "trial-runner/worker/nccl/kernel_lanes.h"

enum { KERNEL_CHUNKS = 4096, KERNEL_LEAST_CHUNK = 1024 };

/* In device memory, zeroed before: counts of a pass, the search, and of each chunk how many elements are above the
 * threshold and at it; then how many are in all chunks before. */
struct kernel_largest {
    uint32_t bins[LARGEST_BINS];
    struct largest_search search;
    uint32_t above[KERNEL_CHUNKS], equal[KERNEL_CHUNKS];
};

KERNEL_BODY void kernel_count_one(uint32_t *count) {
#ifdef __CUDACC__
    atomicAdd(count, 1u);
#else
    ++*count;
#endif
}

/* Add `more` to the values, unless it is NULL, and count them in bins. */
KERNEL_BODY void kernel_count_sizes(uint32_t *bins, float *values, const float *more, uint64_t n, uint32_t prefix,
                                    uint32_t pass, uint64_t thread, uint64_t threads) {
    const uint32_t high = largest_cut(pass), low = largest_cut(pass + 1);
    for (uint64_t i = thread; i < n; i += threads) {
        float value = values[i];
        if (more)
            values[i] = value += more[i];
        const uint32_t bits = largest_bits(value);
        if (largest_counts(bits, prefix, high))
            kernel_count_one(&bins[largest_bin(bits, high, low)]);
    }
}

/* The bins hold a pass; the search before it is `before`, of which all lanes have read their own. Lanes have runs of
 * bins, from the highest bin down. All lanes come here together. */
KERNEL_BODY void kernel_narrow(struct kernel_largest *work, struct largest_search before, uint32_t pass, uint32_t lane,
                               uint32_t lanes) {
    const uint32_t each = LARGEST_BINS / lanes, highest = LARGEST_BINS - 1 - lane * each;
    uint32_t own = 0, bin = highest;
    for (uint32_t i = 0; i < each; i++)
        own += work->bins[highest - i];
    uint32_t above = kernel_sum_before(own, lane);
    if (above >= before.left || above + own < before.left)
        return;
    for (; above + work->bins[bin] < before.left; bin--)
        above += work->bins[bin];
    work->search = largest_narrow(before, pass, bin, above);
}

/* Elements of a chunk, so many that there are KERNEL_CHUNKS at most. A multiple of the lanes. */
KERNEL_BOTH uint64_t kernel_chunk_length(uint64_t n) {
    const uint64_t each = (n + KERNEL_CHUNKS - 1) / KERNEL_CHUNKS, whole = (each + 31) / 32 * 32;
    return whole > KERNEL_LEAST_CHUNK ? whole : KERNEL_LEAST_CHUNK;
}

KERNEL_BOTH uint32_t kernel_chunk_count(uint64_t n) {
    return (uint32_t)((n + kernel_chunk_length(n) - 1) / kernel_chunk_length(n));
}

/* All lanes of `c` go through the chunk in step. */
KERNEL_BODY void kernel_count_chunk(struct kernel_largest *work, const float *values, uint64_t n, uint32_t c,
                                    uint32_t lane, uint32_t lanes) {
    const uint64_t length = kernel_chunk_length(n), begin = c * length;
    const uint32_t threshold = work->search.prefix;
    uint32_t above = 0, equal = 0;
    for (uint64_t i = begin + lane; i < begin + length; i += lanes) {
        const uint32_t bits = i < n ? largest_bits(values[i]) : 0;
        above += kernel_ones(kernel_votes(i < n && bits > threshold));
        equal += kernel_ones(kernel_votes(i < n && bits == threshold));
    }
    if (lane == 0) {
        work->above[c] = above;
        work->equal[c] = equal;
    }
}

/* Counts become those of all chunks before. Lanes have runs of chunks. All lanes come here together. */
KERNEL_BODY void kernel_add_up(uint32_t *counts, uint32_t n, uint32_t lane, uint32_t lanes) {
    const uint32_t each = (n + lanes - 1) / lanes, begin = lane * each, end = begin + each < n ? begin + each : n;
    uint32_t own = 0;
    for (uint32_t c = begin; c < end; c++)
        own += counts[c];
    uint32_t before = kernel_sum_before(own, lane);
    for (uint32_t c = begin; c < end; c++) {
        const uint32_t count = counts[c];
        counts[c] = before;
        before += count;
    }
}

/* Take what is largest out of the chunk: zero is left in its place. All lanes of `c` go through the chunk in step. */
KERNEL_BODY void kernel_take_chunk(struct largest *to, const struct kernel_largest *work, float *values, uint64_t n,
                                   uint32_t c, uint32_t lane, uint32_t lanes) {
    const uint64_t length = kernel_chunk_length(n), begin = c * length;
    const struct largest_search found = work->search;
    const uint32_t before = (1u << lane) - 1;
    uint32_t above = work->above[c], equal = work->equal[c];
    for (uint64_t i = begin + lane; i < begin + length; i += lanes) {
        const uint32_t bits = i < n ? largest_bits(values[i]) : 0;
        const int is_above = i < n && bits > found.prefix, is_equal = i < n && bits == found.prefix;
        const uint32_t all_above = kernel_votes(is_above), all_equal = kernel_votes(is_equal);
        const uint32_t equals = equal + kernel_ones(all_equal & before);
        if (is_above || (is_equal && equals < found.left)) {
            const struct largest taken = {(uint32_t)i, values[i]};
            to[above + kernel_ones(all_above & before) + (equals < found.left ? equals : found.left)] = taken;
            values[i] = 0;
        }
        above += kernel_ones(all_above);
        equal += kernel_ones(all_equal);
    }
}

/* What does not lie in the sum is no element of it. Places differ, so threads do not meet. */
KERNEL_BODY void kernel_add_largest(float *sum, const struct largest *from, uint64_t k, uint64_t n, uint64_t thread,
                                    uint64_t threads) {
    for (uint64_t i = thread; i < k; i += threads)
        if (from[i].at < n)
            sum[from[i].at] += from[i].value;
}

#endif
