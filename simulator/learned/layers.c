/* The matrix products are cblas_dgemm's; the products of a dense layer with W' are laid out so that no matrix is copied
 * or transposed in memory. */
#include "simulator/learned/layers.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

void weights_init(size_t n, double *weights, size_t in, size_t out, struct rng *rng) {
    double limit = sqrt(6 / (double)(in + out));
    for (size_t i = 0; i < n; i++)
        weights[i] = rng_between(rng, -limit, limit);
}

/* ---- dense ---- */

void dense_init(double *parameters, size_t in, size_t out, struct rng *rng) {
    weights_init(in * out, parameters, in, out, rng);
    memset(parameters + in * out, 0, out * sizeof *parameters);
}

void dense_forward(const double *parameters, size_t n, size_t in, size_t out, const double *x, double *y) {
    const int rows = (int)n, wide = (int)in, high = (int)out;
    for (size_t i = 0; i < n; i++)
        memcpy(y + i * out, parameters + in * out, out * sizeof *y);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, high, wide, 1, x, wide, parameters, wide, 1, y, high);
}

void dense_backward(const double *parameters, size_t n, size_t in, size_t out, const double *x, const double *dy,
                    double *gradient, double *dx) {
    const int rows = (int)n, wide = (int)in, high = (int)out;
    double *bias = gradient + in * out;
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, high, wide, rows, 1, dy, high, x, wide, 1, gradient, wide);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < out; k++)
            bias[k] += dy[i * out + k];
    if (dx)
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, wide, high, 1, dy, high, parameters, wide, 1, dx,
                    wide);
}

/* ---- tanh ---- */

double layer_tanh(double x) {
    return 1 - 2 / (1 + exp(2 * x));
}

double layer_logistic(double x) {
    return 1 / (1 + exp(-x));
}

void tanh_forward(size_t n, double *x) {
    for (size_t i = 0; i < n; i++)
        x[i] = layer_tanh(x[i]);
}

void tanh_backward(size_t n, const double *y, double *dy) {
    for (size_t i = 0; i < n; i++)
        dy[i] *= 1 - y[i] * y[i];
}

/* ---- pooling ---- */

enum { NO_ROW = UINT32_MAX };

static size_t place_of(const struct pooling *p, size_t row) {
    return p->place ? p->place[row] : 0;
}

/* A place's total weight is kept where its first mean will be. */
static void find_shares(const struct pooling *p, double *y) {
    const size_t stride = 2 * p->width;
    for (size_t i = 0; i < p->n; i++) {
        p->share[i] = p->weight ? p->weight[i] : 1;
        y[place_of(p, i) * stride] += p->share[i];
    }
    for (size_t i = 0; i < p->n; i++)
        p->share[i] /= y[place_of(p, i) * stride];
    for (size_t v = 0; v < p->n_places; v++)
        y[v * stride] = 0;
}

static void take_row(const struct pooling *p, size_t row, const double *x, double *y) {
    double *mean = y + place_of(p, row) * 2 * p->width, *most = mean + p->width;
    uint32_t *top = p->top + place_of(p, row) * p->width;
    for (size_t k = 0; k < p->width; k++) {
        mean[k] += p->share[row] * x[k];
        if (top[k] == NO_ROW || x[k] > most[k]) {
            most[k] = x[k];
            top[k] = (uint32_t)row;
        }
    }
}

void pooling_forward(const struct pooling *p, const double *x, double *y) {
    memset(y, 0, p->n_places * 2 * p->width * sizeof *y);
    for (size_t i = 0; i < p->n_places * p->width; i++)
        p->top[i] = NO_ROW;
    find_shares(p, y);
    for (size_t i = 0; i < p->n; i++)
        take_row(p, i, x + i * p->width, y);
}

void pooling_backward(const struct pooling *p, const double *dy, double *dx) {
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < p->width; k++)
            dx[i * p->width + k] += p->share[i] * dy[place_of(p, i) * 2 * p->width + k];
    for (size_t v = 0; v < p->n_places; v++)
        for (size_t k = 0; k < p->width; k++)
            if (p->top[v * p->width + k] != NO_ROW)
                dx[p->top[v * p->width + k] * p->width + k] += dy[v * 2 * p->width + p->width + k];
}
