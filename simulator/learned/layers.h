/* The layers that every network is made of, each forward and backward: dense, tanh, and pooling of rows.
 *
 * Matrices are row-major, an example a row. A layer's parameters and their gradient are one flat array, its length a
 * constant expression, so that a network lays out its own with an enum. Backward functions add to the gradient and to
 * dx, which the caller zeroes first: what is used twice receives both. Nothing is allocated and nothing kept: what
 * backward needs is in arrays of the caller, whose lengths stand in the comments. Counts of rows fit an int.
 * Threads: no state; cblas runs in the caller's thread when OpenBLAS is held to one thread. */
#ifndef SIMULATOR_LEARNED_LAYERS_H
#define SIMULATOR_LEARNED_LAYERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"

/* Uniform in +-sqrt(6 / (in + out)) (Glorot and Bengio 2010), which keeps the variance of what flows through. */
void weights_init(size_t n, double *weights, size_t in, size_t out, struct rng *rng);

/* ---- dense: y = x W' + b. Parameters: W, out x in, then b, out. O(n in out) ---- */
#define DENSE_PARAMETERS(in, out) ((out) * ((in) + 1))
void dense_init(double *parameters, size_t in, size_t out, struct rng *rng);
void dense_forward(const double *parameters, size_t n, size_t in, size_t out, const double *x, double *y);
/* dy: n x out. dx: n x in; NULL: not wanted. */
void dense_backward(const double *parameters, size_t n, size_t in, size_t out, const double *x, const double *dy,
                    double *gradient, double *dx);

/* ---- tanh and the logistic function, in place. O(n) ---- */

/* Computed by one exponential: the absolute error is about 1e-16, the time half that of the C library's tanh. */
double layer_tanh(double x);
double layer_logistic(double x);
void tanh_forward(size_t n, double *x);
/* y: what forward left; dy becomes dx. */
void tanh_backward(size_t n, const double *y, double *dy);

/* ---- pooling: for each place the weighted mean of its rows, then their maximum. O(n width) ----
 * A row of weight 2 is the same as two rows of weight 1. A place without rows gives zeros. */
struct pooling {
    size_t n, width, n_places;
    const uint32_t *place; /* [n] below n_places; NULL: all rows at one place */
    const double *weight;  /* [n] above 0; NULL: all 1 */
    double *share;         /* [n] scratch: the row's weight over that of its place */
    uint32_t *top;         /* [n_places x width] scratch: the row that has the maximum, the first of equals */
};
/* y: n_places x 2 width, the mean in the first half of a row. */
void pooling_forward(const struct pooling *pooling, const double *x, double *y);
void pooling_backward(const struct pooling *pooling, const double *dy, double *dx);

#endif
