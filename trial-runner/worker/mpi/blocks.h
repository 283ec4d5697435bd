/* Block-scaled 8-bit integers on a processor (strategy/encoder.h, int8).
 *
 * A block of `block` elements is an f32 scale and a byte each: element x is the whole number nearest to x / scale, of
 * -127 to 127, where the scale is the block's largest size over 127. The last block may be shorter. A block with an
 * element that is not finite is not a number when it comes back. Blocks lie one after another, so that those of any run
 * of whole blocks are a run themselves. */
#ifndef TRIAL_RUNNER_WORKER_MPI_BLOCKS_H
#define TRIAL_RUNNER_WORKER_MPI_BLOCKS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { BLOCKS_LARGEST = 127, BLOCKS_LANES = 16 };

/* The scale of a block whose largest size has these bits. */
static inline float blocks_scale(int32_t largest_bits) {
    float largest;
    memcpy(&largest, &largest_bits, sizeof largest);
    return largest / BLOCKS_LARGEST;
}

static inline float blocks_inverse(float scale) {
    return scale > 0 ? 1 / scale : 0;
}

/* Adding 1.5 * 2^23 leaves no room for a fraction, so the sum is rounded to even; its low bits are the number. */
static inline int8_t blocks_code(float value, float inverse) {
    const float shifted = value * inverse + 12582912.0f;
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    return (int8_t)(bits & 0xff);
}

static inline float blocks_value(int8_t code, float scale) {
    return (float)code * scale;
}

/* The largest size among n values, by its bits, with which sizes rise. Compilers make a run of LANES a step. */
static inline __attribute__((always_inline)) int32_t blocks_largest(const float *from, size_t n) {
    int32_t lane[BLOCKS_LANES] = {0}, largest = 0;
    size_t i = 0;
    for (; i + BLOCKS_LANES <= n; i += BLOCKS_LANES)
        for (size_t k = 0; k < BLOCKS_LANES; k++) {
            int32_t bits;
            memcpy(&bits, &from[i + k], sizeof bits);
            bits &= INT32_MAX;
            lane[k] = bits > lane[k] ? bits : lane[k];
        }
    for (; i < n; i++) {
        int32_t bits;
        memcpy(&bits, &from[i], sizeof bits);
        bits &= INT32_MAX;
        largest = bits > largest ? bits : largest;
    }
    for (size_t k = 0; k < BLOCKS_LANES; k++)
        largest = lane[k] > largest ? lane[k] : largest;
    return largest;
}

static inline __attribute__((always_inline)) float blocks_encode_plainly(int8_t *restrict codes,
                                                                         const float *restrict from, size_t n) {
    const float scale = blocks_scale(blocks_largest(from, n)), inverse = blocks_inverse(scale);
    size_t i = 0;
    for (; i + BLOCKS_LANES <= n; i += BLOCKS_LANES)
        for (size_t k = 0; k < BLOCKS_LANES; k++)
            codes[i + k] = blocks_code(from[i + k], inverse);
    for (; i < n; i++)
        codes[i] = blocks_code(from[i], inverse);
    return scale;
}

#ifdef __x86_64__
/* The same with wider registers, which is four times as fast; no rounding differs. */
__attribute__((target("avx2"))) static inline float blocks_encode_widely(int8_t *codes, const float *from, size_t n) {
    return blocks_encode_plainly(codes, from, n);
}

static inline float blocks_encode_one(int8_t *codes, const float *from, size_t n) {
    return __builtin_cpu_supports("avx2") ? blocks_encode_widely(codes, from, n)
                                          : blocks_encode_plainly(codes, from, n);
}
#else
static inline float blocks_encode_one(int8_t *codes, const float *from, size_t n) {
    return blocks_encode_plainly(codes, from, n);
}
#endif

/* `to` has room for n bytes and a scale a block. */
static inline void blocks_encode(char *to, const float *from, size_t n, size_t block) {
    for (size_t at = 0; at < n; at += block, to += sizeof(float) + block) {
        const float scale = blocks_encode_one((int8_t *)to + sizeof scale, from + at, n - at < block ? n - at : block);
        memcpy(to, &scale, sizeof scale);
    }
}

static inline void blocks_decode_one(float *restrict to, const int8_t *restrict codes, size_t n, float scale) {
    size_t i = 0;
    for (; i + BLOCKS_LANES <= n; i += BLOCKS_LANES)
        for (size_t k = 0; k < BLOCKS_LANES; k++)
            to[i + k] = blocks_value(codes[i + k], scale);
    for (; i < n; i++)
        to[i] = blocks_value(codes[i], scale);
}

static inline void blocks_add_one(float *restrict to, const int8_t *restrict codes, size_t n, float scale) {
    size_t i = 0;
    for (; i + BLOCKS_LANES <= n; i += BLOCKS_LANES)
        for (size_t k = 0; k < BLOCKS_LANES; k++)
            to[i + k] += blocks_value(codes[i + k], scale);
    for (; i < n; i++)
        to[i] += blocks_value(codes[i], scale);
}

static inline void blocks_decode(float *to, const char *from, size_t n, size_t block) {
    for (size_t at = 0; at < n; at += block, from += sizeof(float) + block) {
        float scale;
        memcpy(&scale, from, sizeof scale);
        blocks_decode_one(to + at, (const int8_t *)from + sizeof scale, n - at < block ? n - at : block, scale);
    }
}

/* Decode and add to what is there. */
static inline void blocks_add(float *to, const char *from, size_t n, size_t block) {
    for (size_t at = 0; at < n; at += block, from += sizeof(float) + block) {
        float scale;
        memcpy(&scale, from, sizeof scale);
        blocks_add_one(to + at, (const int8_t *)from + sizeof scale, n - at < block ? n - at : block, scale);
    }
}

#endif
