/* Minimising in a box: the conditions that hold at a least value, and how few evaluations a good Hessian takes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "tests/support/check.h"
#include "tuner/search/quasi_newton.h"

enum { MOST = 8, INSTANCES = 200 };

/* (x - centre)' A (x - centre) / 2 + quartic sum (x - centre)^4, A positive definite. */
struct bowl {
    size_t n;
    double a[MOST * MOST], centre[MOST], low[MOST], high[MOST], quartic;
    int evaluations;
};

static double bowl_value(unsigned n, const double *x, double *gradient, void *context) {
    struct bowl *b = context;
    double value = 0;
    b->evaluations++;
    for (unsigned i = 0; i < n; i++) {
        double slope = 0, d = x[i] - b->centre[i];
        assert_true(x[i] >= b->low[i] && x[i] <= b->high[i]);
        for (unsigned j = 0; j < n; j++)
            slope += b->a[j * n + i] * (x[j] - b->centre[j]);
        value += slope * d / 2 + b->quartic * d * d * d * d;
        gradient[i] = slope + 4 * b->quartic * d * d * d;
    }
    return value;
}

/* Bounds cut some of the centres off. */
static void draw_bowl(struct rng *rng, double quartic, struct bowl *b) {
    double root[MOST * MOST];
    *b = (struct bowl){.n = 1 + rng_below(rng, MOST), .quartic = quartic};
    for (size_t i = 0; i < b->n * b->n; i++)
        root[i] = rng_normal(rng);
    for (size_t i = 0; i < b->n; i++) {
        b->centre[i] = rng_between(rng, -1, 1);
        b->low[i] = rng_between(rng, -2, 0.5);
        b->high[i] = b->low[i] + rng_between(rng, 0.5, 3);
        for (size_t j = 0; j < b->n; j++) {
            b->a[j * b->n + i] = i == j ? 0.1 : 0;
            for (size_t k = 0; k < b->n; k++)
                b->a[j * b->n + i] += root[i * b->n + k] * root[j * b->n + k];
        }
    }
}

static double minimise(struct bowl *b, const double *hessian, double *x) {
    double copy[MOST * MOST], scratch[QUASI_NEWTON_SCRATCH(MOST)];
    const struct quasi_newton problem = {.n = b->n,
                                         .value = bowl_value,
                                         .context = b,
                                         .low = b->low,
                                         .high = b->high,
                                         .tolerance = 1e-12,
                                         .evaluations = 500};
    memcpy(copy, hessian, sizeof copy);
    for (size_t i = 0; i < b->n; i++)
        x[i] = (b->low[i] + b->high[i]) / 2;
    return quasi_newton_minimise(&problem, x, copy, scratch);
}

/* Karush, Kuhn and Tucker: no slope inside, outward slopes at bounds. */
static void assert_least(struct bowl *b, const double *x) {
    double gradient[MOST];
    bowl_value((unsigned)b->n, x, gradient, b);
    for (size_t i = 0; i < b->n; i++) {
        if (x[i] > b->low[i])
            assert_true(gradient[i] < 1e-4);
        if (x[i] < b->high[i])
            assert_true(gradient[i] > -1e-4);
    }
}

static void nothing_lower_is_left_in_the_box(void **state) {
    (void)state;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct rng rng;
        struct bowl b;
        double x[MOST], gradient[MOST], hessian[MOST * MOST] = {0};
        rng_split(&rng, test_seed(), i);
        draw_bowl(&rng, i % 2 ? 1 : 0, &b);
        for (size_t k = 0; k < b.n; k++)
            hessian[k * b.n + k] = 1;
        double value = minimise(&b, hessian, x);
        assert_least(&b, x);
        assert_close(value, bowl_value((unsigned)b.n, x, gradient, &b), 0);
    }
}

static void the_true_hessian_needs_a_few_evaluations(void **state) {
    (void)state;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct rng rng;
        struct bowl b;
        double x[MOST];
        rng_split(&rng, test_seed(), INSTANCES + i);
        draw_bowl(&rng, 0, &b);
        for (size_t k = 0; k < b.n; k++) {
            b.low[k] = -3;
            b.high[k] = 3;
        }
        minimise(&b, b.a, x);
        assert_true(b.evaluations <= 4);
        for (size_t k = 0; k < b.n; k++)
            assert_close(x[k], b.centre[k], 1e-6);
    }
}

static void a_hessian_that_points_uphill_is_mended(void **state) {
    (void)state;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct rng rng;
        struct bowl b;
        double x[MOST], hessian[MOST * MOST];
        rng_split(&rng, test_seed(), 2 * INSTANCES + i);
        draw_bowl(&rng, 0.1, &b);
        for (size_t k = 0; k < b.n * b.n; k++)
            hessian[k] = -b.a[k];
        minimise(&b, hessian, x);
        assert_least(&b, x);
    }
}

/* Rosenbrock's valley is curved, and its walls are no quadratic's. */
static double valley(unsigned n, const double *x, double *gradient, void *context) {
    double a = 1 - x[0], b = x[1] - x[0] * x[0];
    assert_int_equal(n, 2);
    ++*(int *)context;
    if (x[0] < -1.4)
        return HUGE_VAL;
    gradient[0] = -2 * a - 400 * x[0] * b;
    gradient[1] = 200 * b;
    return a * a + 100 * b * b;
}

static void a_curved_valley_is_followed_to_its_end(void **state) {
    (void)state;
    int evaluations = 0;
    const double low[2] = {-2, -2}, high[2] = {2, 2};
    double x[2] = {-1.2, 1}, hessian[4] = {1, 0, 0, 1}, scratch[QUASI_NEWTON_SCRATCH(2)];
    struct quasi_newton problem = {.n = 2,
                                   .value = valley,
                                   .context = &evaluations,
                                   .low = low,
                                   .high = high,
                                   .tolerance = 1e-14,
                                   .evaluations = 200};
    assert_true(quasi_newton_minimise(&problem, x, hessian, scratch) < 1e-10);
    assert_close(x[0], 1, 1e-4);
    assert_close(x[1], 1, 1e-4);
    problem.evaluations = 5;
    evaluations = 0;
    x[0] = -1.2;
    x[1] = 1;
    quasi_newton_minimise(&problem, x, hessian, scratch);
    assert_true(evaluations <= 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_lower_is_left_in_the_box),
        cmocka_unit_test(the_true_hessian_needs_a_few_evaluations),
        cmocka_unit_test(a_hessian_that_points_uphill_is_mended),
        cmocka_unit_test(a_curved_valley_is_followed_to_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
