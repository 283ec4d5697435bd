/* Medians and their intervals against enumeration and coverage by simulation. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/statistics.h"
#include "tests/support/check.h"

static void median_of_an_odd_and_an_even_number_of_values(void **state) {
    (void)state;
    double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2};
    assert_close(median_of(3, odd), 3, 0);
    assert_close(median_of(4, even), 2.5, 0);
}

static void interval_below_six_values_is_the_whole_range(void **state) {
    (void)state;
    double x[] = {9, 2, 7, 4, 5};
    struct summary s = summary_of(5, x);
    assert_close(s.low_us, 2, 0);
    assert_close(s.high_us, 9, 0);
}

/* Tables of the sign test: n = 6 -> 1st and 6th; n = 10 -> 2nd and 9th; n = 20 -> 6th and 15th; n = 50 -> 18th and
 * 33rd. */
static void interval_ranks_are_those_of_the_sign_test(void **state) {
    (void)state;
    static const size_t table[][3] = {{6, 1, 6}, {8, 1, 8}, {9, 2, 8}, {10, 2, 9}, {20, 6, 15}, {50, 18, 33}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        double x[50];
        for (size_t k = 0; k < table[i][0]; k++)
            x[k] = (double)(table[i][0] - k);
        struct summary s = summary_of(table[i][0], x);
        assert_close(s.low_us, (double)table[i][1], 0);
        assert_close(s.high_us, (double)table[i][2], 0);
    }
}

static void interval_holds_the_true_median_at_least_95_times_in_100(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    int held = 0;
    enum { TIMES = 20000, N = 15 };
    for (int t = 0; t < TIMES; t++) {
        double x[N];
        for (int i = 0; i < N; i++)
            x[i] = exp(rng_normal(&rng)); /* log-normal: skewed as iteration times are; median 1 */
        struct summary s = summary_of(N, x);
        held += s.low_us <= 1 && 1 <= s.high_us;
    }
    assert_true(held >= TIMES * 95 / 100);
}

static void interval_of_rounds_spans_the_medians_of_the_rounds(void **state) {
    (void)state;
    double a[] = {10, 10, 10, 10, 10, 10, 10, 10}, b[] = {12, 12, 12, 12, 12, 12, 12, 12};
    const size_t counts[] = {8, 8};
    const double *const rounds[] = {a, b};
    struct summary s;
    struct error err = {0};
    assert_ok(summary_of_rounds(2, counts, rounds, &s, &err));
    assert_close(s.median_us, 11, 0);
    assert_close(s.low_us, 10, 0);
    assert_close(s.high_us, 12, 0);
    const size_t with_none[] = {0, 8};
    assert_ok(summary_of_rounds(2, with_none, rounds, &s, &err));
    assert_close(s.low_us, 12, 0);
    assert_ok(summary_of_rounds(0, counts, rounds, &s, &err));
    assert_int_equal(s.n, 0);
}

/* The pooled values alone have an interval of one point. The two short rounds widen this interval. */
static void a_round_counts_however_short_it_was(void **state) {
    (void)state;
    double slow[8], usual[40], fast[8];
    const size_t counts[] = {8, 40, 8};
    const double *const rounds[] = {slow, usual, fast};
    struct summary s, pooled;
    struct error err = {0};
    for (size_t i = 0; i < 40; i++)
        usual[i] = 12;
    for (size_t i = 0; i < 8; i++) {
        slow[i] = 14;
        fast[i] = 10;
    }
    assert_ok(summary_of_rounds(3, counts, rounds, &s, &err));
    assert_int_equal(s.n, 56);
    assert_close(s.median_us, 12, 0);
    assert_close(s.low_us, 10, 0);
    assert_close(s.high_us, 14, 0);
    assert_ok(summary_of_copy(40, usual, &pooled, &err));
    assert_close(pooled.low_us, 12, 0);
    assert_close(pooled.high_us, 12, 0);
    assert_ok(summary_of_copy(0, NULL, &pooled, &err));
    assert_int_equal(pooled.n, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(median_of_an_odd_and_an_even_number_of_values),
        cmocka_unit_test(interval_below_six_values_is_the_whole_range),
        cmocka_unit_test(interval_ranks_are_those_of_the_sign_test),
        cmocka_unit_test(interval_holds_the_true_median_at_least_95_times_in_100),
        cmocka_unit_test(interval_of_rounds_spans_the_medians_of_the_rounds),
        cmocka_unit_test(a_round_counts_however_short_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
