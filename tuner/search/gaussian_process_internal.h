/* Inside a Gaussian process: what gaussian_process.c (data, posterior) and gaussian_process_fit.c (likelihood, choice
 * of theta) share. Matrices are column-major with leading dimension `capacity`, lower triangles. */
#ifndef TUNER_SEARCH_GAUSSIAN_PROCESS_INTERNAL_H
#define TUNER_SEARCH_GAUSSIAN_PROCESS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct gp_data; /* tuner/search/gaussian_process.h */

enum { GP_BLOCK = 128 }; /* points predicted at a time */
#define GP_CONSTANT 1.0  /* variance of c */

struct gp {
    size_t columns, inputs, capacity;
    size_t n, beliefs; /* observations, then beliefs, in every array */
    size_t *input_of;
    double centre, unit, jitter;
    double *theta, *optimum, *length; /* of each input */
    bool fitted;                      /* optimum is one */
    double *memory;                   /* holds what follows */
    double *x;                        /* column-major, capacity x columns */
    double *scaled;                   /* x / length, the same shape */
    double *y, *prior, *noise;        /* standardised; in the caller's unit; standardised */
    double *alpha;                    /* K^-1 y; 0 for beliefs */
    double *factor;                   /* of K; gp_log_likelihood puts K^-1 here */
    double *w;                        /* see gaussian_process.c */
    double *cross;                    /* capacity x GP_BLOCK */
    double *point;                    /* a point / length */
};

/* Check and copy the data, standardised; what was believed is gone. */
enum status gp_load(struct gp *gp, const struct gp_data *data, struct error *err);

/* Factor K of the first n observations at theta, with as little jitter on its diagonal as it takes, and solve for
 * alpha; w too when it is wanted. Fails: ST_NUMERIC. */
enum status gp_factorise(struct gp *gp, const double *theta, size_t n, bool want_w, struct error *err);

/* Log marginal likelihood of the first n observations, standardised, at `theta`, and its gradient [2 + inputs] (NULL:
 * not wanted). Invalidates predictions until the next fit or condition. Fails: ST_NUMERIC. */
enum status gp_log_likelihood(struct gp *gp, const double *theta, size_t n, double *value, double *gradient,
                              struct error *err);

/* Logarithm of the priors on theta, up to a constant, and its gradient added to gradient (NULL: not wanted). */
double gp_log_prior(const struct gp *gp, const double *theta, double *gradient);

#endif
