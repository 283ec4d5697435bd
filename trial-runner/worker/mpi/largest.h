/* The elements of largest size, on a processor (trial-runner/worker/largest_search.h). */
#ifndef TRIAL_RUNNER_WORKER_MPI_LARGEST_H
#define TRIAL_RUNNER_WORKER_MPI_LARGEST_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "trial-runner/worker/largest_search.h"

static inline void largest_count(const float *values, size_t n, uint32_t prefix, uint32_t pass,
                                 size_t bins[LARGEST_BINS]) {
    const uint32_t high = largest_cut(pass), low = largest_cut(pass + 1);
    memset(bins, 0, LARGEST_BINS * sizeof *bins);
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = largest_bits(values[i]);
        if (largest_counts(bits, prefix, high))
            bins[largest_bin(bits, high, low)]++;
    }
}

/* Before any pass k elements are sought, 1 <= k <= n. */
static inline struct largest_search largest_find(const float *values, size_t n, size_t k) {
    size_t bins[LARGEST_BINS];
    struct largest_search search = {0, (uint32_t)k};
    for (uint32_t pass = 0; pass < LARGEST_PASSES; pass++) {
        uint32_t bin = LARGEST_BINS - 1;
        size_t above = 0;
        largest_count(values, n, search.prefix, pass, bins);
        for (; above + bins[bin] < search.left; bin--)
            above += bins[bin];
        search = largest_narrow(search, pass, bin, (uint32_t)above);
    }
    return search;
}

/* Take the k largest out of the values: zero is left in their place. They are written in the order of their places. */
static inline void largest_take(struct largest *to, float *values, size_t n, size_t k) {
    const struct largest_search found = largest_find(values, n, k);
    uint32_t equal = found.left;
    size_t taken = 0;
    for (size_t i = 0; i < n && taken < k; i++) {
        const uint32_t bits = largest_bits(values[i]);
        if (bits < found.prefix || (bits == found.prefix && !equal))
            continue;
        equal -= bits == found.prefix;
        to[taken++] = (struct largest){(uint32_t)i, values[i]};
        values[i] = 0;
    }
}

static inline void largest_add(float *sum, const struct largest *from, size_t k) {
    for (size_t i = 0; i < k; i++)
        sum[from[i].at] += from[i].value;
}

#endif
