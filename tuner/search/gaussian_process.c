/* See gaussian_process.h. Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006: algorithm 2.1 for the
 * posterior, equation 5.9 for the gradient. With a = sqrt(5) r and r^2 = sum over columns ((x - x') / length)^2,
 *
 *   k(x, x') = signal (1 + a + a^2 / 3) exp(-a),   dk / d log length_k = w ((x - x') / length)_k^2,
 *   w = signal 5/3 (1 + a) exp(-a),
 *
 * so that one array of w serves every length scale. The constant c has variance 1 and is a part of the covariance: so
 * one observation is enough for a posterior, and the variance at far points includes that of c.
 *
 * A belief at x has the value that was expected there, so its weight in alpha is 0: believing appends a row to the
 * Cholesky factor and changes no mean (Ginsbourger, Le Riche and Carraro 2010, "Kriging believer").
 */
#include "tuner/search/gaussian_process.h"

#include <assert.h>
#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tuner/search/gaussian_process_internal.h"

#define LEAST_JITTER 1e-10 /* of the diagonal */
#define MOST_JITTER  1e-4

enum status gp_new(size_t columns, const size_t *input_of, struct gp **out, struct error *err) {
    size_t inputs = 0;
    for (size_t k = 0; k < columns; k++) {
        size_t input = input_of ? input_of[k] : k;
        if (input > inputs)
            return error_set(err, ST_INVALID, "column %zu belongs to input %zu before any to input %zu", k, input,
                             inputs);
        inputs += input == inputs;
    }
    if (!columns)
        return error_set(err, ST_INVALID, "a Gaussian process needs an input");
    struct gp *gp = calloc(1, sizeof *gp);
    if (!gp)
        return error_no_memory(err);
    gp->columns = columns;
    gp->inputs = inputs;
    gp->input_of = calloc(columns, sizeof *gp->input_of);
    gp->theta = calloc(2 * (GP_LENGTH + inputs) + inputs, sizeof *gp->theta);
    if (!gp->input_of || !gp->theta) {
        gp_free(gp);
        return error_no_memory(err);
    }
    gp->optimum = gp->theta + GP_LENGTH + inputs;
    gp->length = gp->optimum + GP_LENGTH + inputs;
    for (size_t k = 0; k < columns; k++)
        gp->input_of[k] = input_of ? input_of[k] : k;
    openblas_set_num_threads(1);
    *out = gp;
    return ST_OK;
}

void gp_free(struct gp *gp) {
    if (!gp)
        return;
    free(gp->input_of);
    free(gp->theta);
    free(gp->memory);
    free(gp);
}

void gp_forget(struct gp *gp) {
    gp->fitted = false;
}

size_t gp_columns(const struct gp *gp) {
    return gp->columns;
}

double gp_noise(const struct gp *gp) {
    return gp->unit * exp(gp->theta[GP_NOISE] / 2);
}

/* ---- data ---- */

static enum status reserve(struct gp *gp, size_t capacity, struct error *err) {
    if (capacity <= gp->capacity)
        return ST_OK;
    size_t per_row = 2 * gp->columns + 4 + 2 * capacity + GP_BLOCK;
    double *memory = calloc(capacity * per_row + gp->columns, sizeof *memory), *at = memory;
    if (!memory)
        return error_no_memory(err);
    free(gp->memory);
    gp->memory = memory;
    gp->capacity = capacity;
    gp->n = gp->beliefs = 0;
    struct {
        double **array;
        size_t n;
    } parts[] = {{&gp->x, capacity * gp->columns},
                 {&gp->scaled, capacity * gp->columns},
                 {&gp->y, capacity},
                 {&gp->prior, capacity},
                 {&gp->noise, capacity},
                 {&gp->alpha, capacity},
                 {&gp->factor, capacity * capacity},
                 {&gp->w, capacity * capacity},
                 {&gp->cross, capacity * GP_BLOCK},
                 {&gp->point, gp->columns}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        *parts[i].array = at;
        at += parts[i].n;
    }
    return ST_OK;
}

static enum status check_data(const struct gp *gp, const struct gp_data *data, struct error *err) {
    if (!data->n)
        return error_set(err, ST_INVALID, "a Gaussian process needs an observation");
    if (data->n > GP_MOST || data->room > GP_MOST - data->n)
        return error_set(err, ST_TOO_LARGE, "%zu observations and %zu beliefs are more than %d", data->n, data->room,
                         GP_MOST);
    for (size_t i = 0; i < data->n; i++) {
        for (size_t k = 0; k < gp->columns; k++)
            if (!isfinite(data->x[i * gp->columns + k]))
                return error_set(err, ST_INVALID, "observation %zu, input %zu: %g is no number", i, gp->input_of[k],
                                 data->x[i * gp->columns + k]);
        if (!isfinite(data->y[i]) || (data->prior && !isfinite(data->prior[i])))
            return error_set(err, ST_INVALID, "observation %zu: its value or prior is no finite number", i);
        if (data->noise && !(data->noise[i] >= 0 && isfinite(data->noise[i])))
            return error_set(err, ST_INVALID, "observation %zu: noise variance %g is not at least 0", i,
                             data->noise[i]);
    }
    return ST_OK;
}

/* Mean and standard deviation of y - prior, which gp->y holds. */
static void standardise(struct gp *gp, size_t n) {
    double sum = 0, squares = 0, most = 0;
    for (size_t i = 0; i < n; i++)
        sum += gp->y[i] / (double)n;
    for (size_t i = 0; i < n; i++) {
        squares += (gp->y[i] - sum) * (gp->y[i] - sum) / (double)n;
        most = fmax(most, fabs(gp->y[i]) + fabs(gp->prior[i]));
    }
    gp->centre = sum;
    gp->unit = sqrt(squares) > 1e-12 * most ? sqrt(squares) : 1;
    for (size_t i = 0; i < n; i++) {
        gp->y[i] = (gp->y[i] - gp->centre) / gp->unit;
        gp->noise[i] /= gp->unit * gp->unit;
    }
}

enum status gp_load(struct gp *gp, const struct gp_data *data, struct error *err) {
    enum status st;
    if ((st = check_data(gp, data, err)) || (st = reserve(gp, data->n + data->room, err)))
        return st;
    gp->n = data->n;
    gp->beliefs = 0;
    for (size_t i = 0; i < data->n; i++) {
        for (size_t k = 0; k < gp->columns; k++)
            gp->x[k * gp->capacity + i] = data->x[i * gp->columns + k];
        gp->prior[i] = data->prior ? data->prior[i] : 0;
        gp->noise[i] = data->noise ? data->noise[i] : 0;
        gp->y[i] = data->y[i] - gp->prior[i];
    }
    standardise(gp, data->n);
    if (!isfinite(gp->unit))
        return error_set(err, ST_INVALID, "the observations' values are too far apart for double precision");
    return ST_OK;
}

/* ---- covariance ---- */

/* The first n rows divided by the length scales of theta. */
static void scale_rows(struct gp *gp, const double *theta, size_t n) {
    for (size_t i = 0; i < gp->inputs; i++)
        gp->length[i] = exp(theta[GP_LENGTH + i]);
    for (size_t k = 0; k < gp->columns; k++)
        for (size_t i = 0; i < n; i++)
            gp->scaled[k * gp->capacity + i] = gp->x[k * gp->capacity + i] / gp->length[gp->input_of[k]];
}

/* Covariances of the scaled point with rows [from, n) into k[from..n); w likewise unless NULL. */
static void covariances(const struct gp *gp, double signal, const double *point, size_t from, size_t n, double *k,
                        double *w) {
    memset(k + from, 0, (n - from) * sizeof *k);
    for (size_t c = 0; c < gp->columns; c++) {
        const double *row = gp->scaled + c * gp->capacity, here = point[c];
        for (size_t i = from; i < n; i++)
            k[i] += (row[i] - here) * (row[i] - here);
    }
    for (size_t i = from; i < n; i++) {
        double a = sqrt(5 * k[i]), e = signal * exp(-a);
        k[i] = GP_CONSTANT + (1 + a + a * a / 3) * e;
        if (w)
            w[i] = 5.0 / 3 * (1 + a) * e;
    }
}

static void take_scaled(const struct gp *gp, size_t i, double *point) {
    for (size_t c = 0; c < gp->columns; c++)
        point[c] = gp->scaled[c * gp->capacity + i];
}

/* Build the lower triangle of K for the first n rows in factor, and w unless it is not wanted. */
static void build(struct gp *gp, const double *theta, size_t n, double jitter, bool want_w) {
    double signal = exp(theta[GP_SIGNAL]), noise = exp(theta[GP_NOISE]);
    for (size_t j = 0; j < n; j++) {
        size_t at = j * gp->capacity;
        take_scaled(gp, j, gp->point);
        covariances(gp, signal, gp->point, j, n, gp->factor + at, want_w ? gp->w + at : NULL);
        gp->factor[at + j] = GP_CONSTANT + signal + noise + gp->noise[j] + jitter;
    }
}

/* Raise the jitter tenfold, or to LEAST_JITTER at first; false when that would be too much. */
static bool more_jitter(double *jitter, double diagonal) {
    *jitter = *jitter > 0 ? 10 * *jitter : LEAST_JITTER * diagonal;
    return *jitter <= MOST_JITTER * diagonal;
}

enum status gp_factorise(struct gp *gp, const double *theta, size_t n, bool want_w, struct error *err) {
    double diagonal = GP_CONSTANT + exp(theta[GP_SIGNAL]);
    lapack_int info = 0;
    if (!isfinite(diagonal + exp(theta[GP_NOISE])))
        return error_set(err, ST_NUMERIC,
                         "the covariance of a Gaussian process of variance %g is not finite in double precision",
                         exp(theta[GP_SIGNAL]));
    scale_rows(gp, theta, n);
    gp->jitter = 0;
    do {
        build(gp, theta, n, gp->jitter, want_w);
        info = LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', (lapack_int)n, gp->factor, (lapack_int)gp->capacity);
    } while (info > 0 && more_jitter(&gp->jitter, diagonal));
    if (info)
        return error_set(err, ST_NUMERIC,
                         "dpotrf: info %d, the covariance of %zu observations is not positive definite", (int)info, n);
    memcpy(gp->alpha, gp->y, n * sizeof *gp->alpha);
    info = LAPACKE_dpotrs_work(LAPACK_COL_MAJOR, 'L', (lapack_int)n, 1, gp->factor, (lapack_int)gp->capacity, gp->alpha,
                               (lapack_int)gp->capacity);
    return info ? error_set(err, ST_NUMERIC, "dpotrs: info %d", (int)info) : ST_OK;
}

/* ---- posterior ---- */

enum status gp_condition(struct gp *gp, const double *theta, const struct gp_data *data, struct error *err) {
    enum status st;
    for (size_t i = 0; i < GP_LENGTH + gp->inputs; i++)
        if (!isfinite(theta[i]))
            return error_set(err, ST_INVALID, "parameter %zu of a Gaussian process is no finite number", i);
    if ((st = gp_load(gp, data, err)))
        return st;
    if (theta != gp->theta)
        memcpy(gp->theta, theta, (GP_LENGTH + gp->inputs) * sizeof *theta);
    return gp_factorise(gp, theta, gp->n, false, err);
}

static void scale_point(const struct gp *gp, const double *x, double *point) {
    for (size_t k = 0; k < gp->columns; k++)
        point[k] = x[k] / gp->length[gp->input_of[k]];
}

/* The posterior variance, in the caller's unit: the prior variance less what the data explains. */
static double variance_left(const struct gp *gp, double explained) {
    double v = GP_CONSTANT + exp(gp->theta[GP_SIGNAL]) - explained;
    return fmax(v, 0) * gp->unit * gp->unit;
}

static void predict_block(struct gp *gp, size_t m, const double *x, double *mean, double *variance) {
    size_t n = gp->n + gp->beliefs;
    int ld = (int)gp->capacity;
    double signal = exp(gp->theta[GP_SIGNAL]);
    for (size_t b = 0; b < m; b++) {
        double *k = gp->cross + b * gp->capacity;
        scale_point(gp, x + b * gp->columns, gp->point);
        covariances(gp, signal, gp->point, 0, n, k, NULL);
        mean[b] = gp->centre + gp->unit * cblas_ddot((int)gp->n, k, 1, gp->alpha, 1);
    }
    cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, (int)n, (int)m, 1, gp->factor, ld,
                gp->cross, ld);
    for (size_t b = 0; b < m; b++) {
        const double *v = gp->cross + b * gp->capacity;
        variance[b] = variance_left(gp, cblas_ddot((int)n, v, 1, v, 1));
    }
}

void gp_predict(struct gp *gp, size_t m, const double *x, const double *prior, double *mean, double *variance) {
    for (size_t from = 0; from < m; from += GP_BLOCK)
        predict_block(gp, m - from < GP_BLOCK ? m - from : GP_BLOCK, x + from * gp->columns, mean + from,
                      variance + from);
    for (size_t i = 0; prior && i < m; i++)
        mean[i] += prior[i];
}

void gp_predict_slope(struct gp *gp, const double *x, double *mean, double *variance, double *mean_slope,
                      double *variance_slope) {
    size_t n = gp->n + gp->beliefs;
    int ld = (int)gp->capacity;
    double *k = gp->cross, *w = k + gp->capacity, *u = w + gp->capacity;
    scale_point(gp, x, gp->point);
    covariances(gp, exp(gp->theta[GP_SIGNAL]), gp->point, 0, n, k, w);
    *mean = gp->centre + gp->unit * cblas_ddot((int)gp->n, k, 1, gp->alpha, 1);
    memcpy(u, k, n * sizeof *u);
    cblas_dtrsv(CblasColMajor, CblasLower, CblasNoTrans, CblasNonUnit, (int)n, gp->factor, ld, u, 1);
    *variance = variance_left(gp, cblas_ddot((int)n, u, 1, u, 1));
    cblas_dtrsv(CblasColMajor, CblasLower, CblasTrans, CblasNonUnit, (int)n, gp->factor, ld, u, 1);
    for (size_t c = 0; c < gp->columns; c++) {
        const double *row = gp->scaled + c * gp->capacity, here = gp->point[c];
        double by_alpha = 0, by_u = 0, unit = gp->unit / gp->length[gp->input_of[c]];
        for (size_t i = 0; i < n; i++) {
            double slope = w[i] * (row[i] - here); /* of k[i] by the scaled point */
            by_alpha += gp->alpha[i] * slope;
            by_u += u[i] * slope;
        }
        mean_slope[c] = unit * by_alpha;
        variance_slope[c] = -2 * unit * gp->unit * by_u;
    }
}

enum status gp_believe(struct gp *gp, const double *x, struct error *err) {
    size_t n = gp->n + gp->beliefs;
    int ld = (int)gp->capacity;
    double *k = gp->cross, diagonal = GP_CONSTANT + exp(gp->theta[GP_SIGNAL]) + exp(gp->theta[GP_NOISE]) + gp->jitter;
    assert(n < gp->capacity);
    scale_point(gp, x, gp->point);
    covariances(gp, exp(gp->theta[GP_SIGNAL]), gp->point, 0, n, k, NULL);
    cblas_dtrsv(CblasColMajor, CblasLower, CblasNoTrans, CblasNonUnit, (int)n, gp->factor, ld, k, 1);
    double left = diagonal - cblas_ddot((int)n, k, 1, k, 1);
    if (isnan(left))
        return error_set(err, ST_NUMERIC, "the believed point %zu is no finite number", gp->beliefs);
    cblas_dcopy((int)n, k, 1, gp->factor + n, ld);
    gp->factor[n * gp->capacity + n] = sqrt(fmax(left, LEAST_JITTER * diagonal));
    for (size_t c = 0; c < gp->columns; c++) {
        gp->x[c * gp->capacity + n] = x[c];
        gp->scaled[c * gp->capacity + n] = gp->point[c];
    }
    gp->alpha[n] = 0;
    gp->beliefs++;
    return ST_OK;
}

/* K alpha = y and K = C + noise, where C is the covariance of what is asked for: C alpha = y - noise alpha. */
void gp_observed_means(const struct gp *gp, double *mean) {
    double noise = exp(gp->theta[GP_NOISE]) + gp->jitter;
    for (size_t i = 0; i < gp->n; i++)
        mean[i] = gp->prior[i] + gp->centre + gp->unit * (gp->y[i] - (noise + gp->noise[i]) * gp->alpha[i]);
}
