/* Block-scaled 8-bit integers on a processor: runs of blocks (trial-runner/worker/block_codes.h). */
#ifndef TRIAL_RUNNER_WORKER_MPI_BLOCKS_H
#define TRIAL_RUNNER_WORKER_MPI_BLOCKS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "trial-runner/worker/block_codes.h"

enum { BLOCKS_LANES = 16 };

/* The largest size among n values, by its bits. Compilers make a run of LANES a step. */
static inline __attribute__((always_inline)) int32_t blocks_largest(const float *from, size_t n) {
    int32_t lane[BLOCKS_LANES] = {0}, largest = 0;
    size_t i = 0;
    for (; i + BLOCKS_LANES <= n; i += BLOCKS_LANES)
        for (size_t k = 0; k < BLOCKS_LANES; k++) {
            const int32_t bits = blocks_size(from[i + k]);
            lane[k] = bits > lane[k] ? bits : lane[k];
        }
    for (; i < n; i++) {
        const int32_t bits = blocks_size(from[i]);
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
