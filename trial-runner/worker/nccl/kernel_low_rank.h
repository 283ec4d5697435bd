/* Matrices as products of thin ones on a GPU (strategy/encoder.h, powersgd), for one thread of many. The same text for
 * nvcc and for a C compiler.
 *
 * M has rows of `columns`, P has as many rows of `rank`, and Q is kept as `rank` rows of `columns`. So all passes over
 * M run along its rows. A warp has a row of M, or a column of M^T P for a part of the rows. Sums go in one order, so
 * that devices which restore a matrix from the same P and Q all have the same matrix. */
#ifndef TRIAL_RUNNER_WORKER_NCCL_KERNEL_LOW_RANK_H
#define TRIAL_RUNNER_WORKER_NCCL_KERNEL_LOW_RANK_H

#include <math.h>
#include <stdint.h>

#include "trial-runner/worker/low_rank_rules.h"
#include "trial-runner/worker/nccl/kernel_lanes.h"

enum { KERNEL_RANKS = 4 }; /* ranks that a pass over M serves at once */

/* A variable of a message (trial-runner/worker/thin.h); of 0 columns: a vector of so many rows. */
struct kernel_matrix {
    uint64_t rows, columns;
    uint64_t at, first, second;
    uint32_t variable;
};

/* A message. Pointers are to device memory. */
struct kernel_thin {
    const struct kernel_matrix *matrices; /* [n] */
    uint32_t n, rank;
    uint64_t most_rows, most_columns; /* of a matrix or vector */
    float *run;                       /* the gradients; afterwards the sum of what is sent */
    float *left, *kept_q;             /* M, what is to be sent; and Q of the last iteration */
    float *p, *q;                     /* what the all-reduces add */
    float part;                       /* of the sum that is taken off what is left */
};

/* ---- row k of Q as the iteration begins ---- */

/* Whether it is zero, as far as this thread looks. */
KERNEL_BODY int kernel_is_zero(const struct kernel_thin *t, const struct kernel_matrix *a, uint32_t k, uint32_t thread,
                               uint32_t threads) {
    const float *row = t->kept_q + a->second + k * a->columns;
    int zero = 1;
    for (uint64_t j = thread; j < a->columns; j += threads)
        zero &= row[j] == 0;
    return zero;
}

/* The one before, or drawn anew. */
KERNEL_BODY void kernel_begin_row(const struct kernel_thin *t, const struct kernel_matrix *a, uint32_t k, int drawn,
                                  uint32_t thread, uint32_t threads) {
    const uint64_t row = a->second + k * a->columns;
    for (uint64_t j = thread; j < a->columns; j += threads)
        t->q[row + j] = drawn ? low_rank_drawn(a->variable, k, j) : t->kept_q[row + j];
}

/* ---- products ---- */

/* Row i of P = M Q, once the gradient is added to M. All lanes come here together. */
KERNEL_BODY void kernel_multiply_row(const struct kernel_thin *t, const struct kernel_matrix *a, uint64_t i,
                                     uint32_t lane, uint32_t lanes) {
    float *left = t->left + a->at + i * a->columns, *p = t->p + a->first + i * t->rank;
    const float *gradient = t->run + a->at + i * a->columns, *q = t->q + a->second;
    for (uint64_t j = lane; j < a->columns; j += lanes)
        left[j] += gradient[j];
    for (uint32_t k = 0; k < t->rank; k += KERNEL_RANKS) {
        float sums[KERNEL_RANKS] = {0};
        for (uint64_t j = lane; j < a->columns; j += lanes)
            for (uint32_t l = 0; l < KERNEL_RANKS && k + l < t->rank; l++)
                sums[l] += left[j] * q[(k + l) * a->columns + j];
        for (uint32_t l = 0; l < KERNEL_RANKS && k + l < t->rank; l++) {
            const float sum = kernel_sum_lanes(sums[l]);
            if (lane == 0)
                p[k + l] = sum;
        }
    }
}

/* Column j of rows k .. k + KERNEL_RANKS - 1 of Q = M^T P, as far as rows `first`, `first` + `step`, ... of M and P add
 * to it. */
KERNEL_BODY void kernel_multiply_back(const struct kernel_thin *t, const struct kernel_matrix *a, uint32_t k,
                                      uint64_t j, uint64_t first, uint64_t step, float sums[KERNEL_RANKS]) {
    const float *left = t->left + a->at, *p = t->p + a->first;
    for (uint64_t i = first; i < a->rows; i += step)
        for (uint32_t l = 0; l < KERNEL_RANKS && k + l < t->rank; l++)
            sums[l] += left[i * a->columns + j] * p[i * t->rank + k + l];
}

/* Row i of P Q^T, of which a part is taken off M. */
KERNEL_BODY void kernel_restore_row(const struct kernel_thin *t, const struct kernel_matrix *a, uint64_t i,
                                    uint32_t lane, uint32_t lanes) {
    const uint64_t row = a->at + i * a->columns;
    const float *p = t->p + a->first + i * t->rank, *q = t->q + a->second;
    for (uint64_t j = lane; j < a->columns; j += lanes) {
        float sum = 0;
        for (uint32_t k = 0; k < t->rank; k++)
            sum += p[k] * q[k * a->columns + j];
        t->run[row + j] = sum;
        t->left[row + j] -= t->part * sum;
    }
}

/* ---- orthogonal columns ---- */

/* Inner product of columns j and k of P. All threads come here together, and all get it. */
KERNEL_BODY double kernel_inner(const float *p, uint64_t rows, uint32_t rank, uint32_t j, uint32_t k, uint32_t thread,
                                uint32_t threads) {
    double sum = 0;
    for (uint64_t i = thread; i < rows; i += threads)
        sum += (double)p[i * rank + j] * (double)p[i * rank + k];
    return kernel_sum_threads(sum);
}

/* Make the columns of P orthogonal and of length 1, by Gram and Schmidt, twice since rounding spoils the first turn. A
 * column that depends on those before it becomes zero. Each thread has rows of its own. All threads come here together.
 */
KERNEL_BODY void kernel_orthogonalise(const struct kernel_thin *t, const struct kernel_matrix *a, uint32_t thread,
                                      uint32_t threads) {
    const uint32_t rank = t->rank;
    float *p = t->p + a->first;
    for (uint32_t k = 0; k < rank; k++) {
        const double before = sqrt(kernel_inner(p, a->rows, rank, k, k, thread, threads));
        for (uint32_t i = 0; i < 2 * k; i++) {
            const uint32_t j = i % k;
            const float common = (float)kernel_inner(p, a->rows, rank, j, k, thread, threads);
            for (uint64_t row = thread; row < a->rows; row += threads)
                p[row * rank + k] -= common * p[row * rank + j];
        }
        const double after = sqrt(kernel_inner(p, a->rows, rank, k, k, thread, threads));
        const float scale = after > LOW_RANK_LEAST * before ? (float)(1 / after) : 0;
        for (uint64_t row = thread; row < a->rows; row += threads)
            p[row * rank + k] *= scale;
    }
}

#endif
