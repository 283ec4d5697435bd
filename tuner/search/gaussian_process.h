/* A Gaussian process over measurements: what is expected at points not yet tried, and how sure that is.
 *
 *   y_i = prior_i + centre + unit * (c + f(x_i) + e_i)
 *
 * `prior` is the caller's guess at each point (the simulator's prediction); `centre` and `unit` are the mean and
 * standard deviation of y - prior; when all of these are equal, unit is 1. In that unit, c ~ N(0, 1) is a constant, f
 * has a Matern 5/2 covariance with one length scale per input, and e_i ~ N(0, noise + extra_i).
 *
 * The parameters, theta, are natural logarithms: theta[GP_SIGNAL] of f's variance, theta[GP_NOISE] of the noise
 * variance, theta[GP_LENGTH + k] of the length scale of input k. gp_fit chooses them; gp_condition takes them.
 *
 * Inputs lie in [0, 1] or about. An input may have several columns (a category, one-hot): they share a length scale.
 * Threads: a struct gp belongs to one thread at a time, also for predictions. The first gp_new sets OpenBLAS to one
 * thread for the process: its idle threads spin, which would disturb a measurement on the same machine. */
#ifndef TUNER_SEARCH_GAUSSIAN_PROCESS_H
#define TUNER_SEARCH_GAUSSIAN_PROCESS_H

#include <stddef.h>

#include "base/error.h"

struct gp; /* opaque */

enum { GP_SIGNAL, GP_NOISE, GP_LENGTH };
enum { GP_MOST = 4000 }; /* observations and beliefs */

struct gp_data {
    size_t n;            /* >= 1; the same x may occur several times */
    const double *x;     /* row-major n x columns */
    const double *y;     /* n */
    const double *prior; /* n, in the unit of y; NULL: 0 */
    const double *noise; /* n, variance of y_i beyond the fitted noise, in y's unit squared, >= 0; NULL: 0 */
    size_t room;         /* for how many gp_believe */
};

/* input_of[column] is the input to which a column belongs, 0 .. inputs - 1, all of which occur; NULL: every column is
 * an input. Fails: ST_INVALID, ST_NO_MEMORY. */
enum status gp_new(size_t columns, const size_t *input_of, struct gp **out, struct error *err);
void gp_free(struct gp *gp); /* NULL is allowed */

/* Choose theta and condition on the data. Maximises the log marginal likelihood plus weak log-normal priors on every
 * parameter by L-BFGS with analytic gradients from several starts, of which one is the last optimum of this gp, and
 * forgets what was believed. With many observations the starts compete on the first 48 of them, and the best goes on
 * with all, by quasi_newton.h, which begins with the curvature that those few show. [O(n^3) an evaluation, seldom more
 * than 8 with all observations.] The data is copied. A covariance that is not positive definite gets jitter on its
 * diagonal, and theta is chosen again with at least that much noise. Fails: ST_INVALID (no or not finite values),
 * ST_TOO_LARGE, ST_NUMERIC, ST_NO_MEMORY; then fit or condition again before anything else. */
enum status gp_fit(struct gp *gp, const struct gp_data *data, struct error *err);

/* Forget the last optimum, so that the next fit depends on its data alone. */
void gp_forget(struct gp *gp);

/* Condition on the data with this theta [2 + inputs]. Fails like gp_fit. */
enum status gp_condition(struct gp *gp, const double *theta, const struct gp_data *data, struct error *err);

/* Posterior of prior + centre + unit * (c + f), without noise, at m points x [row-major m x columns] with their prior
 * [m; NULL: 0] into mean[m] and variance[m] [O(m n^2), in blocks]. Inputs must be finite. */
void gp_predict(struct gp *gp, size_t m, const double *x, const double *prior, double *mean, double *variance);

/* The same at one point, prior left out, with the derivatives by each column [O(n^2)]. */
void gp_predict_slope(struct gp *gp, const double *x, double *mean, double *variance, double *mean_slope,
                      double *variance_slope);

/* Assume that x will be measured at its posterior mean: variances shrink, means stay [O(n^2)]. At most `room` times.
 * Fails: ST_NUMERIC. */
enum status gp_believe(struct gp *gp, const double *x, struct error *err);

/* Posterior means at the n observations [O(n)]. */
void gp_observed_means(const struct gp *gp, double *mean);

size_t gp_columns(const struct gp *gp);
double gp_noise(const struct gp *gp); /* standard deviation of one observation, unit of y */

#endif
