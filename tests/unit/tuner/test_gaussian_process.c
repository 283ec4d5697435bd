/* A Gaussian process against the same posterior worked out another way: the covariance written down densely, its
 * explicit inverse and determinant by Gauss-Jordan elimination, no Cholesky factor anywhere. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/support/check.h"
#include "tuner/search/gaussian_process.h"
#include "tuner/search/gaussian_process_internal.h"

enum { INSTANCES = 40, MOST = 24, D = 3, POINTS = 150, PARAMETERS = GP_LENGTH + D };

struct instance {
    size_t n;
    double x[MOST * D], y[MOST], prior[MOST], noise[MOST];
    double theta[PARAMETERS];
};

static void draw(uint64_t stream, struct instance *t) {
    struct rng rng;
    rng_split(&rng, test_seed(), stream);
    t->n = 1 + rng_below(&rng, MOST);
    for (size_t i = 0; i < t->n; i++) {
        for (size_t k = 0; k < D; k++)
            t->x[i * D + k] = rng_uniform(&rng);
        t->prior[i] = rng_between(&rng, 90, 110);
        t->noise[i] = rng_below(&rng, 2) ? rng_between(&rng, 0, 5) : 0;
        t->y[i] = t->prior[i] + 7 * sin(4 * t->x[i * D]) + rng_normal(&rng);
    }
    t->theta[GP_SIGNAL] = rng_between(&rng, -1, 1);
    t->theta[GP_NOISE] = rng_between(&rng, -7, -1);
    for (size_t k = 0; k < D; k++)
        t->theta[GP_LENGTH + k] = rng_between(&rng, -2, 1);
}

static struct gp_data data_of(const struct instance *t) {
    return (struct gp_data){.n = t->n, .x = t->x, .y = t->y, .prior = t->prior, .noise = t->noise};
}

/* ---- the other way ---- */

static double matern(const double *theta, const double *a, const double *b) {
    double q = 0;
    for (size_t k = 0; k < D; k++)
        q += pow((a[k] - b[k]) * exp(-theta[GP_LENGTH + k]), 2);
    return exp(theta[GP_SIGNAL]) * (1 + sqrt(5 * q) + 5 * q / 3) * exp(-sqrt(5 * q));
}

struct dense {
    double centre, unit, log_likelihood;
    double y[MOST], inverse[MOST][MOST];
};

/* Gauss-Jordan with pivots on the diagonal, which a positive definite matrix allows. Returns the determinant's
 * logarithm. */
static double invert(size_t n, double a[MOST][MOST], double inverse[MOST][MOST]) {
    double log_determinant = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            inverse[i][j] = i == j;
    for (size_t p = 0; p < n; p++) {
        double pivot = a[p][p];
        log_determinant += log(pivot);
        for (size_t j = 0; j < n; j++) {
            a[p][j] /= pivot;
            inverse[p][j] /= pivot;
        }
        for (size_t i = 0; i < n; i++) {
            double factor = a[i][p];
            for (size_t j = 0; i != p && j < n; j++) {
                a[i][j] -= factor * a[p][j];
                inverse[i][j] -= factor * inverse[p][j];
            }
        }
    }
    return log_determinant;
}

static void work_out(const struct instance *t, struct dense *out) {
    double k[MOST][MOST], sum = 0, squares = 0, quadratic = 0, n = (double)t->n;
    for (size_t i = 0; i < t->n; i++)
        sum += t->y[i] - t->prior[i];
    out->centre = sum / n;
    for (size_t i = 0; i < t->n; i++)
        squares += pow(t->y[i] - t->prior[i] - out->centre, 2);
    out->unit = t->n > 1 ? sqrt(squares / n) : 1;
    for (size_t i = 0; i < t->n; i++) {
        out->y[i] = (t->y[i] - t->prior[i] - out->centre) / out->unit;
        for (size_t j = 0; j < t->n; j++)
            k[i][j] = 1 + matern(t->theta, t->x + i * D, t->x + j * D);
        k[i][i] += exp(t->theta[GP_NOISE]) + t->noise[i] / (out->unit * out->unit);
    }
    double log_determinant = invert(t->n, k, out->inverse);
    for (size_t i = 0; i < t->n; i++)
        for (size_t j = 0; j < t->n; j++)
            quadratic += out->y[i] * out->inverse[i][j] * out->y[j];
    out->log_likelihood = -(quadratic + log_determinant + n * log(2 * M_PI)) / 2;
}

static void posterior(const struct instance *t, const struct dense *d, const double *x, double *mean,
                      double *variance) {
    double k[MOST];
    *mean = 0;
    *variance = 1 + exp(t->theta[GP_SIGNAL]);
    for (size_t i = 0; i < t->n; i++)
        k[i] = 1 + matern(t->theta, x, t->x + i * D);
    for (size_t i = 0; i < t->n; i++)
        for (size_t j = 0; j < t->n; j++) {
            *mean += k[i] * d->inverse[i][j] * d->y[j];
            *variance -= k[i] * d->inverse[i][j] * k[j];
        }
    *mean = d->centre + d->unit * *mean;
    *variance *= d->unit * d->unit;
}

static struct gp *new_gp(size_t columns, const size_t *input_of) {
    struct error err;
    struct gp *gp;
    assert_ok(gp_new(columns, input_of, &gp, &err));
    return gp;
}

static void near_to(double a, double b, double error) {
    if (!(fabs(a - b) <= error))
        fail_msg("%.12g is not within %g of %.12g", a, error, b);
}

/* ---- tests ---- */

static void the_posterior_is_that_of_the_explicit_inverse(void **state) {
    (void)state;
    struct error err;
    struct instance t;
    struct dense dense;
    struct rng rng;
    double x[POINTS * D], prior[POINTS], mean[POINTS], variance[POINTS], observed[MOST];
    struct gp *gp = new_gp(D, NULL);
    for (uint64_t i = 0; i < INSTANCES; i++) {
        draw(i, &t);
        work_out(&t, &dense);
        rng_split(&rng, test_seed(), 1000 + i);
        for (size_t p = 0; p < (size_t)POINTS * D; p++)
            x[p] = rng_between(&rng, -0.5, 1.5);
        for (size_t p = 0; p < POINTS; p++)
            prior[p] = rng_between(&rng, 90, 110);
        assert_ok(gp_condition(gp, t.theta, &(struct gp_data){t.n, t.x, t.y, t.prior, t.noise, 0}, &err));
        gp_predict(gp, POINTS, x, prior, mean, variance);
        for (size_t p = 0; p < POINTS; p++) {
            double m, v;
            posterior(&t, &dense, x + p * D, &m, &v);
            near_to(mean[p], m + prior[p], 1e-7 * dense.unit);
            near_to(variance[p], v, 1e-8 * dense.unit * dense.unit);
        }
        gp_observed_means(gp, observed);
        for (size_t p = 0; p < t.n; p++) {
            double m, v;
            posterior(&t, &dense, t.x + p * D, &m, &v);
            near_to(observed[p], m + t.prior[p], 1e-7 * dense.unit);
        }
    }
    gp_free(gp);
}

static void the_likelihood_is_that_of_the_explicit_inverse(void **state) {
    (void)state;
    struct error err;
    struct instance t;
    struct dense dense;
    double value;
    struct gp *gp = new_gp(D, NULL);
    for (uint64_t i = 0; i < INSTANCES; i++) {
        draw(i, &t);
        work_out(&t, &dense);
        struct gp_data data = data_of(&t);
        assert_ok(gp_condition(gp, t.theta, &data, &err));
        assert_ok(gp_log_likelihood(gp, t.theta, gp->n, &value, NULL, &err));
        near_to(value, dense.log_likelihood, 1e-8 * (1 + fabs(dense.log_likelihood)));
    }
    gp_free(gp);
}

/* Central differences, for the likelihood and the priors alike. */
static void gradients_are_those_of_differences(void **state) {
    (void)state;
    const double step = 1e-5;
    struct error err;
    struct instance t;
    double value, up, down, gradient[PARAMETERS], prior[PARAMETERS];
    struct gp *gp = new_gp(D, NULL);
    for (uint64_t i = 0; i < INSTANCES; i++) {
        draw(i, &t);
        struct gp_data data = data_of(&t);
        assert_ok(gp_condition(gp, t.theta, &data, &err));
        assert_ok(gp_log_likelihood(gp, t.theta, gp->n, &value, gradient, &err));
        memset(prior, 0, sizeof prior);
        gp_log_prior(gp, t.theta, prior);
        for (size_t k = 0; k < PARAMETERS; k++) {
            double here = t.theta[k];
            t.theta[k] = here + step;
            assert_ok(gp_log_likelihood(gp, t.theta, gp->n, &up, NULL, &err));
            double prior_up = gp_log_prior(gp, t.theta, NULL);
            t.theta[k] = here - step;
            assert_ok(gp_log_likelihood(gp, t.theta, gp->n, &down, NULL, &err));
            double prior_down = gp_log_prior(gp, t.theta, NULL);
            t.theta[k] = here;
            near_to(gradient[k], (up - down) / (2 * step), 1e-5 * (1 + fabs(gradient[k])));
            near_to(prior[k], (prior_up - prior_down) / (2 * step), 1e-7 * (1 + fabs(prior[k])));
        }
    }
    gp_free(gp);
}

static void slopes_of_the_posterior_are_those_of_differences(void **state) {
    (void)state;
    const double step = 1e-6;
    struct error err;
    struct instance t;
    struct rng rng;
    struct gp *gp = new_gp(D, NULL);
    for (uint64_t i = 0; i < INSTANCES; i++) {
        double x[3][D], mean[2], variance[2], m, v, mean_slope[D], variance_slope[D];
        draw(i, &t);
        rng_split(&rng, test_seed(), 2000 + i);
        struct gp_data data = data_of(&t);
        assert_ok(gp_condition(gp, t.theta, &data, &err));
        for (size_t k = 0; k < D; k++)
            x[2][k] = rng_uniform(&rng);
        gp_predict_slope(gp, x[2], &m, &v, mean_slope, variance_slope);
        gp_predict(gp, 1, x[2], NULL, mean, variance);
        assert_close(m, mean[0], 1e-9);
        near_to(v, variance[0], 1e-9 * gp->unit * gp->unit);
        for (size_t k = 0; k < D; k++) {
            memcpy(x[0], x[2], sizeof x[0]);
            memcpy(x[1], x[2], sizeof x[1]);
            x[0][k] += step;
            x[1][k] -= step;
            gp_predict(gp, 2, x[0], NULL, mean, variance);
            near_to(mean_slope[k], (mean[0] - mean[1]) / (2 * step), 1e-4 * gp->unit * (1 + fabs(mean_slope[k])));
            near_to(variance_slope[k], (variance[0] - variance[1]) / (2 * step),
                    1e-4 * gp->unit * gp->unit * (1 + fabs(variance_slope[k])));
        }
    }
    gp_free(gp);
}

/* Means stay, variances shrink, and the first believed point's is what one noisy observation leaves of it. */
static void believing_is_observing_what_was_expected(void **state) {
    (void)state;
    struct error err;
    struct instance t;
    struct rng rng;
    struct gp *gp = new_gp(D, NULL);
    for (uint64_t i = 0; i < INSTANCES; i++) {
        double x[POINTS * D], mean[POINTS], variance[POINTS], m[POINTS], v[POINTS];
        draw(i, &t);
        rng_split(&rng, test_seed(), 3000 + i);
        for (size_t p = 0; p < (size_t)POINTS * D; p++)
            x[p] = rng_uniform(&rng);
        struct gp_data data = data_of(&t);
        data.room = 2;
        assert_ok(gp_condition(gp, t.theta, &data, &err));
        gp_predict(gp, POINTS, x, NULL, mean, variance);
        assert_ok(gp_believe(gp, x, &err));
        assert_ok(gp_believe(gp, x + D, &err));
        gp_predict(gp, POINTS, x, NULL, m, v);
        for (size_t p = 0; p < POINTS; p++) {
            assert_close(m[p], mean[p], 1e-9);
            assert_true(v[p] <= variance[p] * (1 + 1e-9) + 1e-12);
        }
        double noise = exp(t.theta[GP_NOISE]) * gp->unit * gp->unit;
        double once = variance[0] * noise / (variance[0] + noise);
        assert_true(v[0] <= once * (1 + 1e-9));
        assert_ok(gp_condition(gp, t.theta, &data, &err));
        assert_ok(gp_believe(gp, x, &err));
        gp_predict(gp, 1, x, NULL, m, v);
        near_to(v[0], once, 1e-7 * gp->unit * gp->unit);
    }
    gp_free(gp);
}

/* Values drawn from a process of known parameters: the fit's likelihood with the priors is no less than theirs, but for
 * a rare draw whose starts all end in a lower maximum, and length scales and noise come out about right. */
static void fitting_finds_the_parameters_that_made_the_data(void **state) {
    (void)state;
    enum { N = 120, DRAWS = 6 };
    static double k[N][N], x[N * D], y[N], z[N];
    const double theta[PARAMETERS] = {0, log(0.01), log(0.3), log(0.8), log(20)};
    struct error err;
    struct gp *gp = new_gp(D, NULL);
    double ratio[PARAMETERS] = {0};
    int missed = 0;
    for (uint64_t draw_number = 0; draw_number < DRAWS; draw_number++) {
        struct rng rng;
        rng_split(&rng, test_seed(), 4000 + draw_number);
        for (size_t i = 0; i < (size_t)N * D; i++)
            x[i] = rng_uniform(&rng);
        for (size_t i = 0; i < N; i++)
            z[i] = rng_normal(&rng);
        for (size_t i = 0; i < N; i++) { /* y = L z, L the Cholesky factor, row by row */
            y[i] = 0;
            for (size_t j = 0; j <= i; j++) {
                double sum = matern(theta, x + i * D, x + j * D) + (i == j ? exp(theta[GP_NOISE]) : 0);
                for (size_t c = 0; c < j; c++)
                    sum -= k[i][c] * k[j][c];
                k[i][j] = i == j ? sqrt(sum) : sum / k[j][j];
                y[i] += k[i][j] * z[j];
            }
        }
        gp_forget(gp);
        assert_ok(gp_fit(gp, &(struct gp_data){.n = N, .x = x, .y = y}, &err));
        double found[PARAMETERS], at_found, at_truth, unit = gp->unit, truth[PARAMETERS];
        memcpy(found, gp->theta, sizeof found);
        memcpy(truth, theta, sizeof truth);
        truth[GP_SIGNAL] -= 2 * log(unit);
        truth[GP_NOISE] -= 2 * log(unit);
        assert_ok(gp_log_likelihood(gp, found, gp->n, &at_found, NULL, &err));
        assert_ok(gp_log_likelihood(gp, truth, gp->n, &at_truth, NULL, &err));
        missed += at_found + gp_log_prior(gp, found, NULL) < at_truth + gp_log_prior(gp, truth, NULL) - 0.1;
        for (int p = 0; p < PARAMETERS; p++)
            ratio[p] += (found[p] - truth[p]) / DRAWS;
        assert_true(found[GP_LENGTH] < found[GP_LENGTH + 1]);
        assert_true(found[GP_LENGTH + 1] < found[GP_LENGTH + 2]);
    }
    assert_true(missed <= 1);
    near_to(ratio[GP_LENGTH], 0, 0.5);
    near_to(ratio[GP_LENGTH + 1], 0, 0.5);
    near_to(ratio[GP_NOISE], 0, 1);
    gp_free(gp);
}

static void predictions_follow_a_change_of_unit(void **state) {
    (void)state;
    struct error err;
    struct instance t;
    double x[D] = {0.3, 0.6, 0.9}, mean[2], variance[2];
    struct gp *gp = new_gp(D, NULL);
    for (uint64_t i = 0; i < 10; i++) {
        draw(5000 + i, &t);
        if (t.n < 5)
            continue;
        for (int scaled = 0; scaled < 2; scaled++) {
            gp_forget(gp);
            assert_ok(gp_fit(gp, &(struct gp_data){.n = t.n, .x = t.x, .y = t.y}, &err));
            gp_predict(gp, 1, x, NULL, &mean[scaled], &variance[scaled]);
            for (size_t k = 0; k < t.n; k++)
                t.y[k] = 1024 * t.y[k] + 4096;
        }
        assert_close(mean[1], 1024 * mean[0] + 4096, 1e-6);
        assert_close(variance[1], 1024.0 * 1024 * variance[0], 1e-4);
    }
    gp_free(gp);
}

/* Without noise the covariance of rows that repeat is singular. */
static void repeated_rows_without_noise_get_jitter_and_their_mean(void **state) {
    (void)state;
    struct error err;
    double x[6 * D] = {0}, y[6] = {1, 2, 3, 4, 8, 6}, mean, variance;
    double theta[PARAMETERS] = {0, -700, 0, 0, 0};
    for (size_t i = 4; i < 6; i++)
        x[i * D] = 0.5 * (double)(i - 3);
    struct gp *gp = new_gp(D, NULL);
    assert_ok(gp_condition(gp, theta, &(struct gp_data){.n = 6, .x = x, .y = y}, &err));
    assert_true(gp->jitter > 0);
    gp_predict(gp, 1, x, NULL, &mean, &variance);
    assert_close(mean, 2.5, 1e-4);
    assert_true(variance >= 0 && variance < 1e-3);
    gp_free(gp);
}

static void a_fit_of_repeated_rows_finds_noise(void **state) {
    (void)state;
    enum { N = 30 };
    struct error err;
    struct rng rng;
    double x[N * D], y[N], mean, variance;
    rng_split(&rng, test_seed(), 6000);
    for (size_t i = 0; i < N; i++) {
        for (size_t k = 0; k < D; k++)
            x[i * D + k] = i < 5 ? rng_uniform(&rng) : x[(i - 5) * D + k];
        y[i] = 100 + 3 * x[i * D] + 0.3 * rng_normal(&rng);
    }
    struct gp *gp = new_gp(D, NULL);
    assert_ok(gp_fit(gp, &(struct gp_data){.n = N, .x = x, .y = y}, &err));
    double sd = sqrt(exp(gp->theta[GP_NOISE])) * gp->unit;
    assert_true(sd > 0.15 && sd < 0.6);
    gp_predict(gp, 1, x, NULL, &mean, &variance);
    assert_true(fabs(mean - 100 - 3 * x[0]) < 4 * sqrt(variance) + 0.1);
    for (size_t i = 0; i < N; i++) /* the same without noise: the fit goes to the least noise and stays finite */
        y[i] = 100 + 3 * x[i * D];
    assert_ok(gp_fit(gp, &(struct gp_data){.n = N, .x = x, .y = y}, &err));
    gp_predict(gp, 1, x, NULL, &mean, &variance);
    near_to(mean, y[0], 0.02);
    gp_free(gp);
}

static void a_noisy_observation_counts_less(void **state) {
    (void)state;
    struct error err;
    double x[2 * D] = {0}, y[2] = {0, 10}, noise[2] = {0, 2500}, mean, variance;
    double theta[PARAMETERS] = {0, log(1e-4), 0, 0, 0};
    struct gp *gp = new_gp(D, NULL);
    assert_ok(gp_condition(gp, theta, &(struct gp_data){.n = 2, .x = x, .y = y, .noise = noise}, &err));
    gp_predict(gp, 1, x, NULL, &mean, &variance);
    assert_true(mean > 0 && mean < 0.1);
    gp_free(gp);
}

static void one_observation_and_equal_values_have_a_posterior(void **state) {
    (void)state;
    struct error err;
    double x[4 * D], y[4] = {5, 5, 5, 5}, far[D] = {9, 9, 9}, mean, variance;
    for (int i = 0; i < 4 * D; i++)
        x[i] = 0.07 * i;
    struct gp *gp = new_gp(D, NULL);
    for (size_t n = 1; n <= 4; n++) {
        gp_forget(gp);
        assert_ok(gp_fit(gp, &(struct gp_data){.n = n, .x = x, .y = y}, &err));
        assert_close(gp->unit, 1, 0);
        gp_predict(gp, 1, x, NULL, &mean, &variance);
        assert_close(mean, 5, 1e-9);
        double near = variance;
        gp_predict(gp, 1, far, NULL, &mean, &variance);
        assert_close(mean, 5, 1e-9);
        assert_true(variance > near);
    }
    gp_free(gp);
}

/* Two columns of one input share a length scale; their gradient is that of the sum. */
static void columns_of_one_input_share_a_length_scale(void **state) {
    (void)state;
    const size_t input_of[D] = {0, 1, 1};
    struct error err;
    struct instance t;
    double value, up, down, gradient[GP_LENGTH + 2];
    struct gp *gp = new_gp(D, input_of), *whole = new_gp(D, NULL);
    assert_int_equal(gp->inputs, 2);
    draw(7000, &t);
    t.theta[GP_LENGTH + 2] = t.theta[GP_LENGTH + 1];
    struct gp_data data = data_of(&t);
    assert_ok(gp_condition(gp, t.theta, &data, &err));
    assert_ok(gp_condition(whole, t.theta, &data, &err));
    assert_ok(gp_log_likelihood(whole, t.theta, whole->n, &up, NULL, &err));
    assert_ok(gp_log_likelihood(gp, t.theta, gp->n, &value, gradient, &err));
    assert_close(value, up, 1e-14);
    t.theta[GP_LENGTH + 1] += 1e-5;
    assert_ok(gp_log_likelihood(gp, t.theta, gp->n, &up, NULL, &err));
    t.theta[GP_LENGTH + 1] -= 2e-5;
    assert_ok(gp_log_likelihood(gp, t.theta, gp->n, &down, NULL, &err));
    near_to(gradient[GP_LENGTH + 1], (up - down) / 2e-5, 1e-5 * (1 + fabs(gradient[GP_LENGTH + 1])));
    gp_free(gp);
    gp_free(whole);
}

static void what_is_no_number_is_refused(void **state) {
    (void)state;
    const double bad[] = {NAN, INFINITY, -INFINITY};
    struct error err;
    struct instance t;
    struct gp *gp = new_gp(D, NULL);
    for (size_t i = 0; i < 3; i++) {
        double *places[] = {&t.x[0], &t.y[0], &t.prior[0], &t.noise[0]};
        const char *words[] = {"input 0", "value or prior", "value or prior", "noise variance"};
        for (size_t p = 0; p < 4; p++) {
            draw(8000, &t);
            *places[p] = bad[i];
            struct gp_data data = data_of(&t);
            assert_fails(gp_fit(gp, &data, &err), ST_INVALID, words[p]);
        }
        draw(8000, &t);
        t.theta[GP_LENGTH] = bad[i];
        struct gp_data data = data_of(&t);
        assert_fails(gp_condition(gp, t.theta, &data, &err), ST_INVALID, "parameter 2");
    }
    draw(8000, &t);
    t.noise[0] = -1;
    struct gp_data data = data_of(&t);
    assert_fails(gp_fit(gp, &data, &err), ST_INVALID, "noise variance");
    data.n = 0;
    assert_fails(gp_fit(gp, &data, &err), ST_INVALID, "needs an observation");
    data.n = GP_MOST + 1;
    assert_fails(gp_fit(gp, &data, &err), ST_TOO_LARGE, "more than");
    gp_free(gp);
}

static void a_covariance_out_of_range_is_a_numeric_failure(void **state) {
    (void)state;
    struct error err;
    struct instance t;
    struct gp *gp = new_gp(D, NULL);
    draw(9000, &t);
    struct gp_data data = data_of(&t);
    t.theta[GP_SIGNAL] = 800;
    assert_fails(gp_condition(gp, t.theta, &data, &err), ST_NUMERIC, "double precision");
    gp_free(gp);
}

static void inputs_out_of_order_are_refused(void **state) {
    (void)state;
    const size_t gap[2] = {0, 2};
    struct error err;
    struct gp *gp = NULL;
    assert_fails(gp_new(2, gap, &gp, &err), ST_INVALID, "column 1");
    assert_fails(gp_new(0, NULL, &gp, &err), ST_INVALID, "needs an input");
    assert_null(gp);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_posterior_is_that_of_the_explicit_inverse),
        cmocka_unit_test(the_likelihood_is_that_of_the_explicit_inverse),
        cmocka_unit_test(gradients_are_those_of_differences),
        cmocka_unit_test(slopes_of_the_posterior_are_those_of_differences),
        cmocka_unit_test(believing_is_observing_what_was_expected),
        cmocka_unit_test(fitting_finds_the_parameters_that_made_the_data),
        cmocka_unit_test(predictions_follow_a_change_of_unit),
        cmocka_unit_test(repeated_rows_without_noise_get_jitter_and_their_mean),
        cmocka_unit_test(a_fit_of_repeated_rows_finds_noise),
        cmocka_unit_test(a_noisy_observation_counts_less),
        cmocka_unit_test(one_observation_and_equal_values_have_a_posterior),
        cmocka_unit_test(columns_of_one_input_share_a_length_scale),
        cmocka_unit_test(what_is_no_number_is_refused),
        cmocka_unit_test(a_covariance_out_of_range_is_a_numeric_failure),
        cmocka_unit_test(inputs_out_of_order_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
