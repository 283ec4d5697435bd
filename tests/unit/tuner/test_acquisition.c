/* The logarithm of expected improvement against its integral, worked out in long double: with t = -z
 *
 *   h(z) = phi(t) * integral over s > 0 of s exp(-s^2 / 2 - s t),
 *
 * every term of which is positive, so that nothing is lost to cancellation or underflow. */
#include <math.h>

#include "base/rng.h"
#include "tests/support/check.h"
#include "tuner/search/acquisition.h"

static const long double log_sqrt_2pi = 0.918938533204672741780329736405617640L;

/* With s = peak exp(u) the integrand falls off exponentially on both sides of u = 0, so that the trapezoidal rule
 * converges faster than any power of its step. */
static long double log_h_by_quadrature(double z) {
    const long double step = 0.02L;
    long double t = -(long double)z, peak = (-t + sqrtl(t * t + 8)) / 2, sum = 0;
    long double top = 2 * logl(peak) - peak * peak / 2 - peak * t; /* of the integrand's logarithm */
    for (int i = -2000; i <= 300; i++) {
        long double u = i * step, s = peak * expl(u);
        sum += expl(2 * logl(s) - s * s / 2 - s * t - top);
    }
    return -t * t / 2 - log_sqrt_2pi + top + logl(sum * step);
}

static void the_logarithm_is_that_of_the_integral(void **state) {
    (void)state;
    for (int i = -1280; i <= 256; i++) {
        double z = i / 32.0, want = (double)log_h_by_quadrature(z);
        assert_true(fabs(acquisition_log_h(z) - want) <= 1e-11 * fmax(1, fabs(want)));
    }
}

/* Values with 30 digits' arithmetic behind them. */
static void the_logarithm_meets_known_values(void **state) {
    (void)state;
    assert_close(acquisition_log_h(0), -0.91893853320467274178, 1e-14);
    assert_close(exp(acquisition_log_h(1)), 1.0833154705876864, 1e-14);
    assert_close(exp(acquisition_log_h(-1)), 0.083315470587686447, 1e-13);
}

static void branches_meet_without_a_step(void **state) {
    (void)state;
    double above = nextafter(-3, 0);
    assert_close(acquisition_log_h(-3), acquisition_log_h(above), 1e-13);
    assert_close(acquisition_log_h_slope(-3), acquisition_log_h_slope(above), 1e-12);
}

static void the_slope_is_that_of_the_logarithm(void **state) {
    (void)state;
    for (int i = -107; i <= 21; i++) {
        double z = 0.37 * i, step = 1e-5, rise = acquisition_log_h(z + step) - acquisition_log_h(z - step);
        assert_close(acquisition_log_h_slope(z), rise / (2 * step), 1e-6);
    }
}

/* h(z) = phi(z) / z^2 (1 + O(z^-2)) far out, where the direct form is 0. */
static void the_tail_orders_points_whose_improvement_underflows(void **state) {
    (void)state;
    for (int i = 7; i < 17; i++) {
        double z = -pow(3, i);
        assert_close(acquisition_log_h(z), -z * z / 2 - 0.918938533204672741 - 2 * log(-z), 1e-12);
        assert_true(acquisition_log_h(z) < acquisition_log_h(z / 3));
        assert_close(acquisition_log_h_slope(z), -z, 1e-5);
    }
    assert_true(isinf(acquisition_log_h(-INFINITY)) && acquisition_log_h(-INFINITY) < 0);
    assert_close(acquisition_log_h(INFINITY), INFINITY, 0);
}

static void improvement_is_the_mean_of_what_draws_win(void **state) {
    (void)state;
    enum { DRAWS = 400000 };
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int k = 0; k < 3; k++) {
        double best = rng_between(&rng, -2, 2), mean = rng_between(&rng, -2, 2), sd = rng_between(&rng, 0.5, 2);
        double sum = 0, squares = 0;
        for (int i = 0; i < DRAWS; i++) {
            double gain = fmax(0, best - mean - sd * rng_normal(&rng));
            sum += gain;
            squares += gain * gain;
        }
        double average = sum / DRAWS, error = sqrt(squares) / DRAWS;
        assert_true(fabs(exp(acquisition_log_ei(best, mean, sd)) - average) < 5 * error);
    }
}

static void a_certain_value_wins_its_distance_or_nothing(void **state) {
    (void)state;
    assert_close(acquisition_log_ei(3, 1, 0), log(2), 1e-15);
    assert_true(isinf(acquisition_log_ei(1, 1, 0)) && acquisition_log_ei(1, 1, 0) < 0);
    assert_true(isinf(acquisition_log_ei(1, 3, 0)) && acquisition_log_ei(1, 3, 0) < 0);
    assert_close(acquisition_log_ei(3, 1, 1e-12), log(2), 1e-12);
}

static void a_trial_teaches_what_its_noise_lets_it(void **state) {
    (void)state;
    struct rng rng;
    rng_split(&rng, test_seed(), 1);
    for (int i = 0; i < 1000; i++) {
        double sd = exp(rng_between(&rng, -8, 4)), noise = exp(rng_between(&rng, -8, 4)), step = 1e-5 * sd;
        double slope =
            (acquisition_log_taught(sd + step, noise) - acquisition_log_taught(sd - step, noise)) / (2 * step);
        if (sd > 1e-2 * noise) /* else the difference cancels */
            assert_close(exp(acquisition_log_taught(sd, noise)), 1 - noise / sqrt(sd * sd + noise * noise), 1e-9);
        assert_close(acquisition_log_taught_slope(sd, noise) * sd, slope * sd, 1e-5);
        assert_true(acquisition_log_taught(sd, noise) < 0);
        assert_true(acquisition_log_taught(sd, 2 * noise) < acquisition_log_taught(sd, noise));
    }
    assert_close(acquisition_log_taught(1, 0), 0, 0);
    assert_close(acquisition_log_taught(0, 0), 0, 0);
    assert_close(acquisition_log_taught_slope(1, 0), 0, 0);
    assert_true(isinf(acquisition_log_taught(0, 1)));
    assert_close(acquisition_log_taught(1e-200, 1), -400 * log(10) - log(2), 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_logarithm_is_that_of_the_integral),
        cmocka_unit_test(the_logarithm_meets_known_values),
        cmocka_unit_test(branches_meet_without_a_step),
        cmocka_unit_test(the_slope_is_that_of_the_logarithm),
        cmocka_unit_test(the_tail_orders_points_whose_improvement_underflows),
        cmocka_unit_test(improvement_is_the_mean_of_what_draws_win),
        cmocka_unit_test(a_certain_value_wins_its_distance_or_nothing),
        cmocka_unit_test(a_trial_teaches_what_its_noise_lets_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
