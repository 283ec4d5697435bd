/* The arithmetic of block-scaled 8-bit integers (strategy/encoder.h, int8), and what it leaves of a message's samples.
 * The same text for nvcc and for a C compiler.
 *
 * A block of `block` elements is an f32 scale and a byte each: element x is the whole number nearest to x / scale, of
 * -127 to 127, where the scale is the block's largest size over 127. The last block may be shorter. A block with an
 * element that is not finite is not a number when it comes back. Blocks lie one after another, so that those of any run
 * of whole blocks are a run themselves.
 *
 * Every product and every sum is rounded by itself. So all programs get the same bits, and samples are checked for
 * equality. */
#ifndef TRIAL_RUNNER_WORKER_BLOCK_CODES_H
#define TRIAL_RUNNER_WORKER_BLOCK_CODES_H

#include <stdint.h>

#include "trial-runner/worker/elements.h"

enum { BLOCKS_LARGEST = 127 };

/* nvcc would make one operation of a product and a sum. */
KERNEL_BODY float blocks_times(float a, float b) {
#ifdef __CUDACC__
    return __fmul_rn(a, b);
#else
    return a * b;
#endif
}

/* The size of a value by its bits, with which sizes rise. */
KERNEL_BODY int32_t blocks_size(float value) {
    return (int32_t)(kernel_float_bits(value) & INT32_MAX);
}

/* The scale of a block whose largest size has these bits. */
KERNEL_BODY float blocks_scale(int32_t largest_bits) {
    return kernel_float((uint32_t)largest_bits) / BLOCKS_LARGEST;
}

KERNEL_BODY float blocks_inverse(float scale) {
    return scale > 0 ? 1 / scale : 0;
}

/* Adding 1.5 * 2^23 leaves no room for a fraction, so the sum is rounded to even; its low bits are the number. */
KERNEL_BODY int8_t blocks_code(float value, float inverse) {
    return (int8_t)(kernel_float_bits(blocks_times(value, inverse) + 12582912.0f) & 0xff);
}

KERNEL_BODY float blocks_value(int8_t code, float scale) {
    return blocks_times((float)code, scale);
}

/* ---- the proof: samples first .. end - 1 of a message lie in one block, whose other elements are zero ---- */

/* What is left of each of them; `values` has KERNEL_SAMPLES. */
KERNEL_BODY void blocks_encode_samples(float *values, uint32_t first, uint32_t end) {
    int32_t largest = 0;
    for (uint32_t k = first; k < end; k++)
        largest = blocks_size(values[k]) > largest ? blocks_size(values[k]) : largest;
    const float scale = blocks_scale(largest), inverse = blocks_inverse(scale);
    for (uint32_t k = first; k < end; k++)
        values[k] = blocks_value(blocks_code(values[k], inverse), scale);
}

/* Sample k after the exchange: each device encodes its values, they are added, and the sum is encoded again. `type` as
 * of kernel_value. O((end - first) * n_devices). */
KERNEL_BODY float blocks_sum_of_sample(uint32_t n_devices, uint32_t iteration, uint32_t message, uint32_t k,
                                       uint32_t first, uint32_t end, uint32_t type) {
    float sums[KERNEL_SAMPLES] = {0}, values[KERNEL_SAMPLES];
    for (uint32_t device = 0; device < n_devices; device++) {
        for (uint32_t j = first; j < end; j++)
            values[j] = (float)kernel_value(device, n_devices, iteration, message, j, type);
        blocks_encode_samples(values, first, end);
        for (uint32_t j = first; j < end; j++)
            sums[j] += values[j];
    }
    blocks_encode_samples(sums, first, end);
    return sums[k];
}

#endif
