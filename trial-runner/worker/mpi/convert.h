/* Between the element types of gradients and those that they travel in, on a processor.
 *
 * f32 and f16 go by eight with the processor's own conversions where it has them (F16C); all else goes one by one.
 * Rounding is to even, as in the processor. f64 is first rounded to f32. */
#ifndef TRIAL_RUNNER_WORKER_MPI_CONVERT_H
#define TRIAL_RUNNER_WORKER_MPI_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "strategy/model.h"
#include "trial-runner/worker/elements.h"

#ifdef __x86_64__
#include <immintrin.h>

/* Both return how many were converted: a multiple of 8. */
__attribute__((target("avx,f16c"))) static inline size_t convert_to_f16_by_eight(uint16_t *to, const float *from,
                                                                                 size_t n) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(to + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    return i;
}

__attribute__((target("avx,f16c"))) static inline size_t convert_from_f16_by_eight(float *to, const uint16_t *from,
                                                                                   size_t n) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + i))));
    return i;
}

static inline size_t convert_to_f16_fast(uint16_t *to, const float *from, size_t n) {
    return __builtin_cpu_supports("avx2") ? convert_to_f16_by_eight(to, from, n) : 0;
}

static inline size_t convert_from_f16_fast(float *to, const uint16_t *from, size_t n) {
    return __builtin_cpu_supports("avx2") ? convert_from_f16_by_eight(to, from, n) : 0;
}
#else
static inline size_t convert_to_f16_fast(uint16_t *to, const float *from, size_t n) {
    (void)to, (void)from, (void)n;
    return 0;
}

static inline size_t convert_from_f16_fast(float *to, const uint16_t *from, size_t n) {
    (void)to, (void)from, (void)n;
    return 0;
}
#endif

static inline void convert_narrow(float *to, const double *from, size_t n) {
    for (size_t i = 0; i < n; i++)
        to[i] = (float)from[i];
}

static inline void convert_widen(double *to, const float *from, size_t n) {
    for (size_t i = 0; i < n; i++)
        to[i] = (double)from[i];
}

/* Encode n elements of f32 or f64 as f16 or bf16. */
static inline void convert_encode(uint16_t *to, enum dtype to_type, const void *from, enum dtype from_type, size_t n) {
    const float *f32 = from;
    const double *f64 = from;
    size_t i = 0;
    if (to_type == DTYPE_f16 && from_type == DTYPE_f32)
        for (i = convert_to_f16_fast(to, f32, n); i < n; i++)
            to[i] = kernel_f16_of(f32[i]);
    else if (to_type == DTYPE_f16)
        for (; i < n; i++)
            to[i] = kernel_f16_of((float)f64[i]);
    else if (from_type == DTYPE_f32)
        for (; i < n; i++)
            to[i] = kernel_bf16_of(f32[i]);
    else
        for (; i < n; i++)
            to[i] = kernel_bf16_of((float)f64[i]);
}

/* And back. */
static inline void convert_decode(void *to, enum dtype to_type, const uint16_t *from, enum dtype from_type, size_t n) {
    float *f32 = to;
    double *f64 = to;
    size_t i = 0;
    if (from_type == DTYPE_f16 && to_type == DTYPE_f32)
        for (i = convert_from_f16_fast(f32, from, n); i < n; i++)
            f32[i] = kernel_value_of_f16(from[i]);
    else if (from_type == DTYPE_f16)
        for (; i < n; i++)
            f64[i] = (double)kernel_value_of_f16(from[i]);
    else if (to_type == DTYPE_f32)
        for (; i < n; i++)
            f32[i] = kernel_value_of_bf16(from[i]);
    else
        for (; i < n; i++)
            f64[i] = (double)kernel_value_of_bf16(from[i]);
}

/* n elements of one type of 16 bits to the other. */
static inline void convert_between_halves(uint16_t *to, enum dtype to_type, const uint16_t *from, size_t n) {
    for (size_t i = 0; i < n; i++)
        to[i] = to_type == DTYPE_f16 ? kernel_f16_of(kernel_value_of_bf16(from[i]))
                                     : kernel_bf16_of(kernel_value_of_f16(from[i]));
}

/* n elements of any type of floats to any other, or of any type to itself. The ranges do not overlap. */
static inline void convert_elements(void *to, enum dtype to_type, const void *from, enum dtype from_type, size_t n) {
    const bool narrow = to_type == DTYPE_f16 || to_type == DTYPE_bf16,
               from_narrow = from_type == DTYPE_f16 || from_type == DTYPE_bf16;
    if (to_type == from_type)
        memcpy(to, from, n * dtype_bytes(to_type));
    else if (narrow && from_narrow)
        convert_between_halves(to, to_type, from, n);
    else if (narrow)
        convert_encode(to, to_type, from, from_type, n);
    else if (from_narrow)
        convert_decode(to, to_type, from, from_type, n);
    else if (to_type == DTYPE_f32)
        convert_narrow(to, from, n);
    else
        convert_widen(to, from, n);
}

#endif
