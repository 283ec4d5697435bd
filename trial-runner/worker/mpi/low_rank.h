/* A matrix as the product of two thin ones, on a processor (strategy/encoder.h, powersgd).
 *
 * M has m rows of n, P has m rows of r, and Q is kept as r rows of n: so all passes over M run along its rows, and read
 * it once. No rounding depends on the processor, so devices that restore a matrix from the same P and Q all have the
 * same matrix. */
#ifndef TRIAL_RUNNER_WORKER_MPI_LOW_RANK_H
#define TRIAL_RUNNER_WORKER_MPI_LOW_RANK_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "trial-runner/worker/low_rank_rules.h"

enum { LOW_RANK_LANES = 16, LOW_RANK_AT_ONCE = 4 };

#define LOW_RANK_INLINE static inline __attribute__((always_inline))

struct low_rank {
    size_t m, n, r;
    float *left; /* M: what is to be sent */
    float *p, *q;
};

enum low_rank_pass { LOW_RANK_multiply, LOW_RANK_multiply_back, LOW_RANK_restore };

/* Inner products of a row with `at_once` rows of Q. */
LOW_RANK_INLINE void low_rank_dots(const float *restrict row, float *restrict p, const float *restrict q, size_t n,
                                   size_t at_once) {
    float lane[LOW_RANK_AT_ONCE][LOW_RANK_LANES] = {{0}};
    size_t j = 0;
    for (; j + LOW_RANK_LANES <= n; j += LOW_RANK_LANES)
        for (size_t k = 0; k < at_once; k++)
            for (size_t l = 0; l < LOW_RANK_LANES; l++)
                lane[k][l] += row[j + l] * q[k * n + j + l];
    for (; j < n; j++)
        for (size_t k = 0; k < at_once; k++)
            lane[k][0] += row[j] * q[k * n + j];
    for (size_t k = 0; k < at_once; k++) {
        p[k] = 0;
        for (size_t l = 0; l < LOW_RANK_LANES; l++)
            p[k] += lane[k][l];
    }
}

/* Add the row to `at_once` rows of Q, times an element of P each. */
LOW_RANK_INLINE void low_rank_spread(const float *restrict row, const float *restrict p, float *restrict q, size_t n,
                                     size_t at_once) {
    size_t j = 0;
    for (; j + LOW_RANK_LANES <= n; j += LOW_RANK_LANES)
        for (size_t k = 0; k < at_once; k++)
            for (size_t l = 0; l < LOW_RANK_LANES; l++)
                q[k * n + j + l] += p[k] * row[j + l];
    for (; j < n; j++)
        for (size_t k = 0; k < at_once; k++)
            q[k * n + j] += p[k] * row[j];
}

/* Add `at_once` rows of Q to the row, times an element of P each. */
LOW_RANK_INLINE void low_rank_gather(float *restrict row, const float *restrict p, const float *restrict q, size_t n,
                                     size_t at_once) {
    size_t j = 0;
    for (; j + LOW_RANK_LANES <= n; j += LOW_RANK_LANES)
        for (size_t k = 0; k < at_once; k++)
            for (size_t l = 0; l < LOW_RANK_LANES; l++)
                row[j + l] += p[k] * q[k * n + j + l];
    for (; j < n; j++)
        for (size_t k = 0; k < at_once; k++)
            row[j] += p[k] * q[k * n + j];
}

LOW_RANK_INLINE void low_rank_some(enum low_rank_pass pass, float *row, float *p, float *q, size_t n, size_t at_once) {
    if (pass == LOW_RANK_multiply)
        low_rank_dots(row, p, q, n, at_once);
    else if (pass == LOW_RANK_multiply_back)
        low_rank_spread(row, p, q, n, at_once);
    else
        low_rank_gather(row, p, q, n, at_once);
}

/* One row of M, or of what is restored, with all of Q. */
LOW_RANK_INLINE void low_rank_row(enum low_rank_pass pass, float *row, float *p, float *q, size_t n, size_t r) {
    size_t k = 0;
    for (; k + LOW_RANK_AT_ONCE <= r; k += LOW_RANK_AT_ONCE)
        low_rank_some(pass, row, p + k, q + k * n, n, LOW_RANK_AT_ONCE);
    if (r - k == 3)
        low_rank_some(pass, row, p + k, q + k * n, n, 3);
    else if (r - k == 2)
        low_rank_some(pass, row, p + k, q + k * n, n, 2);
    else if (r - k == 1)
        low_rank_some(pass, row, p + k, q + k * n, n, 1);
}

LOW_RANK_INLINE void low_rank_add(float *restrict to, const float *restrict from, size_t n, float times) {
    size_t j = 0;
    for (; j + LOW_RANK_LANES <= n; j += LOW_RANK_LANES)
        for (size_t l = 0; l < LOW_RANK_LANES; l++)
            to[j + l] += times * from[j + l];
    for (; j < n; j++)
        to[j] += times * from[j];
}

/* multiply: P = M Q, once `gradient`, m rows of n, is added to M. multiply_back: Q = M^T P. restore: `out` = P Q^T, of
 * which a part is taken off M. */
LOW_RANK_INLINE void low_rank_pass_plainly(enum low_rank_pass pass, const struct low_rank *a, const float *gradient,
                                           float *out, float part) {
    if (pass == LOW_RANK_multiply_back)
        memset(a->q, 0, a->n * a->r * sizeof *a->q);
    if (pass == LOW_RANK_restore)
        memset(out, 0, a->m * a->n * sizeof *out);
    for (size_t i = 0; i < a->m; i++) {
        float *left = a->left + i * a->n, *row = pass == LOW_RANK_restore ? out + i * a->n : left;
        if (pass == LOW_RANK_multiply)
            low_rank_add(left, gradient + i * a->n, a->n, 1);
        low_rank_row(pass, row, a->p + i * a->r, a->q, a->n, a->r);
        if (pass == LOW_RANK_restore)
            low_rank_add(left, row, a->n, -part);
    }
}

#ifdef __x86_64__
/* The same with wider registers; no rounding differs. */
__attribute__((target("avx2"))) static inline void
low_rank_pass_widely(enum low_rank_pass pass, const struct low_rank *a, const float *gradient, float *out, float part) {
    low_rank_pass_plainly(pass, a, gradient, out, part);
}

static inline void low_rank_run(enum low_rank_pass pass, const struct low_rank *a, const float *gradient, float *out,
                                float part) {
    if (__builtin_cpu_supports("avx2"))
        low_rank_pass_widely(pass, a, gradient, out, part);
    else
        low_rank_pass_plainly(pass, a, gradient, out, part);
}
#else
static inline void low_rank_run(enum low_rank_pass pass, const struct low_rank *a, const float *gradient, float *out,
                                float part) {
    low_rank_pass_plainly(pass, a, gradient, out, part);
}
#endif

static inline double low_rank_inner(const struct low_rank *a, size_t j, size_t k) {
    double sum = 0;
    for (size_t i = 0; i < a->m; i++)
        sum += (double)a->p[i * a->r + j] * (double)a->p[i * a->r + k];
    return sum;
}

/* Make the columns of P orthogonal and of length 1, by Gram and Schmidt, twice since rounding spoils the first turn. A
 * column that depends on those before it becomes zero. O(m r^2). */
static inline void low_rank_orthogonalise(const struct low_rank *a) {
    for (size_t k = 0; k < a->r; k++) {
        const double before = sqrt(low_rank_inner(a, k, k));
        for (size_t turn = 0; turn < 2; turn++)
            for (size_t j = 0; j < k; j++) {
                const float common = (float)low_rank_inner(a, j, k);
                for (size_t i = 0; i < a->m; i++)
                    a->p[i * a->r + k] -= common * a->p[i * a->r + j];
            }
        const double after = sqrt(low_rank_inner(a, k, k));
        const float scale = after > LOW_RANK_LEAST * before ? (float)(1 / after) : 0;
        for (size_t i = 0; i < a->m; i++)
            a->p[i * a->r + k] *= scale;
    }
}

/* Draw the rows of Q that are zero: all of them at first, and later those of columns of P that depended on others. */
static inline void low_rank_draw(const struct low_rank *a, uint32_t variable) {
    for (size_t k = 0; k < a->r; k++) {
        float *row = a->q + k * a->n;
        size_t j = 0;
        while (j < a->n && row[j] == 0)
            j++;
        for (j = j < a->n ? a->n : 0; j < a->n; j++)
            row[j] = low_rank_drawn(variable, k, j);
    }
}

#endif
