/* Sums of 16-bit floats on a processor: to[i] += from[i].
 *
 * f16 goes by eight with the processor's own conversions where it has them (F16C), rounded to even; the rest one by
 * one, rounded towards zero. bf16 goes by shifts, which compilers turn into vectors, rounded to even. */
#ifndef TRIAL_RUNNER_WORKER_MPI_HALF_H
#define TRIAL_RUNNER_WORKER_MPI_HALF_H

#include <stddef.h>
#include <stdint.h>

#include "trial-runner/worker/elements.h"

#ifdef __x86_64__
#include <immintrin.h>

/* Returns how many were added: a multiple of 8. */
__attribute__((target("avx,f16c"))) static inline size_t half_add_f16_by_eight(uint16_t *to, const uint16_t *from,
                                                                               size_t n) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 a = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(to + i)));
        __m256 b = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + i)));
        _mm_storeu_si128((__m128i *)(void *)(to + i), _mm256_cvtps_ph(_mm256_add_ps(a, b), _MM_FROUND_TO_NEAREST_INT));
    }
    return i;
}

static inline size_t half_add_f16_fast(uint16_t *to, const uint16_t *from, size_t n) {
    return __builtin_cpu_supports("avx2") ? half_add_f16_by_eight(to, from, n) : 0;
}
#else
static inline size_t half_add_f16_fast(uint16_t *to, const uint16_t *from, size_t n) {
    (void)to, (void)from, (void)n;
    return 0;
}
#endif

static inline void half_add_f16(uint16_t *to, const uint16_t *from, size_t n) {
    for (size_t i = half_add_f16_fast(to, from, n); i < n; i++)
        to[i] = kernel_add_f16(to[i], from[i]);
}

static inline void half_add_bf16(uint16_t *to, const uint16_t *from, size_t n) {
    for (size_t i = 0; i < n; i++)
        to[i] = kernel_add_bf16(to[i], from[i]);
}

#endif
