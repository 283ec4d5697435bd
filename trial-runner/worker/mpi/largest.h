/* The elements of largest size, on a processor (strategy/encoder.h, topk).
 *
 * The threshold is found by its bits, eleven and then ten at a time: a histogram says which elements it is among, so
 * three passes find it exactly, without a copy (radix select). Sizes rise with their bits; what is not a number is
 * larger than all numbers. Of elements of equal size the first ones are taken. */
#ifndef TRIAL_RUNNER_WORKER_MPI_LARGEST_H
#define TRIAL_RUNNER_WORKER_MPI_LARGEST_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* An element that travels. */
struct largest {
    uint32_t at;
    float value;
};

enum { LARGEST_BINS = 2048 };

static inline uint32_t largest_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & 0x7fffffff;
}

/* Among elements whose bits from `high` on are those of `prefix`, count by the bits from `low` on up to these. */
static inline void largest_count(const float *values, size_t n, uint32_t prefix, unsigned high, unsigned low,
                                 size_t bins[LARGEST_BINS]) {
    memset(bins, 0, LARGEST_BINS * sizeof *bins);
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = largest_bits(values[i]);
        if (bits >> high == prefix)
            bins[(bits >> low) & ((1u << (high - low)) - 1)]++;
    }
}

/* The bits of the k-th largest size, 1 <= k <= n; *equal is how many elements of that size are among the k largest. */
static inline uint32_t largest_threshold(const float *values, size_t n, size_t k, size_t *equal) {
    static const unsigned cuts[] = {31, 20, 10, 0};
    size_t bins[LARGEST_BINS];
    uint32_t prefix = 0;
    for (int cut = 0; cut < 3; cut++) {
        uint32_t bin = (1u << (cuts[cut] - cuts[cut + 1])) - 1;
        largest_count(values, n, prefix, cuts[cut], cuts[cut + 1], bins);
        for (; bins[bin] < k; bin--)
            k -= bins[bin];
        prefix = prefix << (cuts[cut] - cuts[cut + 1]) | bin;
    }
    *equal = k;
    return prefix;
}

/* Take the k largest out of the values: zero is left in their place. They are written in the order of their places. */
static inline void largest_take(struct largest *to, float *values, size_t n, size_t k) {
    size_t equal, taken = 0;
    const uint32_t threshold = largest_threshold(values, n, k, &equal);
    for (size_t i = 0; i < n && taken < k; i++) {
        const uint32_t bits = largest_bits(values[i]);
        if (bits < threshold || (bits == threshold && !equal))
            continue;
        equal -= bits == threshold;
        to[taken++] = (struct largest){(uint32_t)i, values[i]};
        values[i] = 0;
    }
}

static inline void largest_add(float *sum, const struct largest *from, size_t k) {
    for (size_t i = 0; i < k; i++)
        sum[from[i].at] += from[i].value;
}

#endif
