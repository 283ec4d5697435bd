/* How the elements of largest size are found (strategy/encoder.h, topk). The same text for nvcc and for a C compiler.
 *
 * The threshold is found by its bits, eleven and then ten at a time: a histogram says which elements it is among, so
 * three passes find it exactly, without a copy (radix select). Sizes rise with their bits; what is not a number is
 * larger than all numbers. Of elements of equal size the first ones are taken, so that every program takes the same. */
#ifndef TRIAL_RUNNER_WORKER_LARGEST_SEARCH_H
#define TRIAL_RUNNER_WORKER_LARGEST_SEARCH_H

#include <stdint.h>

#include "trial-runner/worker/elements.h"

/* An element that travels. */
struct largest {
    uint32_t at;
    float value;
};

enum { LARGEST_PASSES = 3, LARGEST_BINS = 2048 };

/* Pass i goes by the bits from largest_cut(i + 1) on up to largest_cut(i). */
KERNEL_BODY uint32_t largest_cut(uint32_t i) {
    return i == 0 ? 31 : i == 1 ? 20 : i == 2 ? 10 : 0;
}

KERNEL_BODY uint32_t largest_bits(float value) {
    return kernel_float_bits(value) & 0x7fffffff;
}

/* What is known before a pass: the threshold's higher bits, and how many elements that have them are among the largest.
 * After the last one: the threshold, and how many elements of its size are taken. */
struct largest_search {
    uint32_t prefix, left;
};

/* Whether an element counts in a pass by the bits from `low` on up to `high`, and its bin. */
KERNEL_BODY int largest_counts(uint32_t bits, uint32_t prefix, uint32_t high) {
    return bits >> high == prefix;
}
KERNEL_BODY uint32_t largest_bin(uint32_t bits, uint32_t high, uint32_t low) {
    return bits >> low & ((1u << (high - low)) - 1);
}

/* Go on with the bin in which the last of the largest elements is, when `above` of them are in higher ones. */
KERNEL_BODY struct largest_search largest_narrow(struct largest_search search, uint32_t pass, uint32_t bin,
                                                 uint32_t above) {
    const struct largest_search next = {search.prefix << (largest_cut(pass) - largest_cut(pass + 1)) | bin,
                                        search.left - above};
    return next;
}

#endif
