/* The largest elements against sorting, and error feedback: what was sent and what is left add up to all gradients. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/support/check.h"
#include "trial-runner/worker/mpi/largest.h"

enum { MOST = 2000 };

/* Numbers of many sizes, or few different ones, so that some are equal; or such that differ in low bits alone. */
static float draw(struct rng *rng, int kind) {
    if (kind == 0)
        return (float)(rng_normal(rng) * rng_log_between(rng, 1e-20, 1e20));
    if (kind == 1)
        return (float)rng_below(rng, 7) - 3;
    return (rng_below(rng, 2) ? 1 : -1) * (1 + (float)rng_below(rng, 500) * 0x1p-23f);
}

static const float *sorted_values;

/* By falling size, the first of equal ones first. */
static int by_size(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const float p = fabsf(sorted_values[x]), q = fabsf(sorted_values[y]);
    return p != q ? (p < q) - (p > q) : (x > y) - (x < y);
}

static int by_place(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void the_elements_that_are_taken_are_those_that_sorting_finds(void **state) {
    (void)state;
    struct rng rng;
    static float values[MOST], left[MOST];
    static uint32_t order[MOST];
    static struct largest taken[MOST];
    rng_split(&rng, test_seed(), 1);
    for (int i = 0; i < 3000; i++) {
        const size_t n = 1 + rng_below(&rng, i % 10 ? 60 : MOST), k = 1 + rng_below(&rng, n);
        for (size_t j = 0; j < n; j++) {
            left[j] = values[j] = draw(&rng, i % 3);
            order[j] = (uint32_t)j;
        }
        sorted_values = values;
        qsort(order, n, sizeof *order, by_size);
        qsort(order, k, sizeof *order, by_place);
        largest_take(taken, left, n, k);
        for (size_t j = 0; j < k; j++) {
            assert_int_equal(taken[j].at, order[j]);
            assert_memory_equal(&taken[j].value, &values[order[j]], sizeof(float));
            assert_true(left[order[j]] == 0);
            left[order[j]] = values[order[j]];
        }
        assert_memory_equal(left, values, n * sizeof *left); /* the others stay */
    }
}

static void what_is_not_finite_goes_first(void **state) {
    (void)state;
    float values[] = {1, -INFINITY, 3e38f, NAN};
    struct largest taken[2];
    largest_take(taken, values, 4, 2);
    assert_int_equal(taken[0].at, 1);
    assert_int_equal(taken[1].at, 3);
    assert_true(values[1] == 0 && values[3] == 0 && values[0] == 1);
}

/* Whole numbers, so that sums are exact. */
static void what_was_sent_and_what_is_left_are_all_gradients(void **state) {
    (void)state;
    struct rng rng;
    enum { N = 300, K = 9, ITERATIONS = 200 };
    static float residual[N], sent[N], all[N];
    struct largest taken[K];
    rng_split(&rng, test_seed(), 2);
    for (int t = 0; t < ITERATIONS; t++) {
        for (size_t i = 0; i < N; i++) {
            const float gradient = (float)rng_below(&rng, 21) - 10;
            residual[i] += gradient;
            all[i] += gradient;
        }
        largest_take(taken, residual, N, K);
        largest_add(sent, taken, K);
        for (size_t i = 0; i < N; i++)
            assert_true(sent[i] + residual[i] == all[i]);
    }
}

/* With a mean that stays, what is sent in all approaches what was to be sent: ten times the iterations, a tenth of the
 * relative error or so, since what is left does not grow. */
static void what_was_sent_approaches_the_sum_of_gradients(void **state) {
    (void)state;
    struct rng rng;
    enum { N = 1000, K = 20, ITERATIONS = 5000 };
    static float residual[N];
    static double sent[N], all[N], mean[N];
    struct largest taken[K];
    double error[2];
    rng_split(&rng, test_seed(), 3);
    for (size_t i = 0; i < N; i++)
        mean[i] = rng_normal(&rng);
    for (int t = 1; t <= ITERATIONS; t++) {
        for (size_t i = 0; i < N; i++) {
            const double gradient = mean[i] + 0.3 * rng_normal(&rng);
            residual[i] += (float)gradient;
            all[i] += gradient;
        }
        largest_take(taken, residual, N, K);
        for (size_t i = 0; i < K; i++)
            sent[taken[i].at] += (double)taken[i].value;
        if (t != ITERATIONS && t != ITERATIONS / 10)
            continue;
        double lost = 0, size = 0;
        for (size_t i = 0; i < N; i++) {
            lost += pow(all[i] - sent[i], 2);
            size += pow(all[i], 2);
        }
        error[t == ITERATIONS] = sqrt(lost / size);
    }
    assert_true(error[1] < 0.02);
    assert_true(error[1] < error[0] / 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_elements_that_are_taken_are_those_that_sorting_finds),
        cmocka_unit_test(what_is_not_finite_goes_first),
        cmocka_unit_test(what_was_sent_and_what_is_left_are_all_gradients),
        cmocka_unit_test(what_was_sent_approaches_the_sum_of_gradients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
