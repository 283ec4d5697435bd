/* Which passes of a measured point count. */
#include <math.h>

#include "base/rng.h"
#include "strategy/cost/points.h"
#include "tests/support/check.h"

/* A point of passes with these medians; the repeats of each lie within 2% of it. */
static struct point of(int n, const double *medians) {
    struct point p = {.operation = OPERATION_all_reduce, .algorithm = ALGORITHM_ring, .bytes = 1024};
    for (int i = 0; i < n; i++) {
        const double us[] = {medians[i] * 1.02, medians[i], medians[i] * 0.98};
        point_add(&p, 3, us);
    }
    return p;
}

static void one_pass_is_all_there_is(void **state) {
    (void)state;
    const double medians[] = {100};
    struct point p = of(1, medians);
    struct summary s = point_summary(&p);
    assert_int_equal(s.n, 3);
    assert_close(s.median_us, 100, 1e-12);
    assert_close(s.low_us, 98, 1e-12);
    assert_close(s.high_us, 102, 1e-12);
    assert_false(point_settled(&p));
    assert_close(point_difference(&p), 1, 0);
}

static void no_pass_is_nothing(void **state) {
    (void)state;
    struct point p = of(0, NULL);
    assert_int_equal(point_summary(&p).n, 0);
    assert_false(point_settled(&p));
}

static void passes_that_agree_are_pooled(void **state) {
    (void)state;
    const double medians[] = {100, 114};
    struct point p = of(2, medians);
    assert_true(point_settled(&p));
    assert_int_equal(point_summary(&p).n, 6);
    assert_close(point_difference(&p), 1.14, 1e-12);
}

static void a_pass_that_others_contradict_does_not_count(void **state) {
    (void)state;
    const double slow_first[] = {300, 100, 105}, fast_first[] = {20, 105, 100};
    struct point p = of(3, slow_first);
    assert_true(point_settled(&p));
    assert_int_equal(point_summary(&p).n, 6);
    assert_true(point_summary(&p).high_us < 110);
    p = of(3, fast_first);
    assert_int_equal(point_summary(&p).n, 6);
    assert_true(point_summary(&p).low_us > 90);
}

static void of_passes_that_all_differ_the_fastest_counts(void **state) {
    (void)state;
    const double medians[] = {300, 100, 200};
    struct point p = of(3, medians);
    assert_false(point_settled(&p));
    assert_close(point_summary(&p).median_us, 100, 1e-12);
    assert_close(point_difference(&p), 3, 1e-12);
}

static void of_two_sets_the_faster_counts(void **state) {
    (void)state;
    const double medians[] = {200, 100, 201, 101};
    struct point p = of(4, medians);
    assert_true(point_summary(&p).high_us < 110);
}

static void a_full_point_takes_no_more(void **state) {
    (void)state;
    const double medians[] = {100, 100, 100, 100, 100, 1};
    struct point p = of(6, medians);
    assert_int_equal(p.n_passes, POINT_PASSES);
    assert_close(point_difference(&p), 1, 0);
}

static void a_curve_that_falls_is_seen(void **state) {
    (void)state;
    const double low[] = {100, 101}, bit_higher[] = {110, 110}, high[] = {130, 131};
    struct point a = of(2, low), b = of(2, bit_higher), c = of(2, high);
    assert_true(point_falls(&c, &a));
    assert_false(point_falls(&b, &a));
    assert_false(point_falls(&a, &c));
}

static struct point timed(uint64_t bytes, double us) {
    struct point p = of(1, &us);
    p.bytes = bytes;
    return p;
}

/* Two lines that meet between b and c: how far the straight line misses where they meet is known. */
static void a_bend_is_as_deep_as_where_two_lines_meet(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int i = 0; i < 1000; i++) {
        const uint64_t at = 4096 + rng_below(&rng, 12288);
        const double flat = rng_between(&rng, 0.01, 1), steep = rng_between(&rng, 0.01, 1), meet_us = 20000;
        const uint64_t sizes[] = {1024, 4096, 16384, 65536};
        struct point p[4];
        for (int k = 0; k < 4; k++) {
            const double from = (double)sizes[k] - (double)at;
            p[k] = timed(sizes[k], meet_us + from * (from < 0 ? flat : steep));
        }
        const double share = (double)(at - 4096) / 12288;
        const double straight_us = p[1].passes[0].median_us * (1 - share) + p[2].passes[0].median_us * share;
        assert_close(point_bend(&p[0], &p[1], &p[2], &p[3]), fabs(straight_us - meet_us) / straight_us, 1e-9);
    }
}

static void a_line_has_no_bend_and_a_step_has_one(void **state) {
    (void)state;
    const struct point line[] = {timed(1000, 10), timed(2000, 20), timed(4000, 40), timed(8000, 80)};
    assert_close(point_bend(&line[0], &line[1], &line[2], &line[3]), 0, 1e-12);
    const struct point step[] = {timed(1000, 10), timed(2000, 10), timed(4000, 30), timed(8000, 30)};
    assert_close(point_bend(&step[0], &step[1], &step[2], &step[3]), 0.5, 1e-12); /* 10 or 30, where 20 is said */
}

/* A point that two passes settle, or that they do not. */
static struct point passed(uint64_t bytes, double us, double again_us) {
    const double medians[] = {us, again_us};
    struct point p = of(2, medians);
    p.bytes = bytes;
    return p;
}

static void the_middle_of_a_bent_line_is_found(void **state) {
    (void)state;
    struct point p[] = {passed(65536, 700, 700), passed(1024, 100, 100), passed(4096, 100, 100),
                        passed(262144, 2800, 2800), passed(16384, 101, 101)};
    const size_t n = sizeof p / sizeof *p;
    assert_int_equal(point_middle(n, p, &p[4], 0.05, 1024), 32768); /* flat before, in proportion after */
    assert_int_equal(point_middle(n, p, &p[4], 0.9, 1024), 0);      /* straight enough */
    assert_int_equal(point_middle(n, p, &p[1], 0.05, 1024), 0);     /* nothing smaller */
    assert_int_equal(point_middle(n, p, &p[0], 0.05, 1024), 0);     /* nothing beyond the next */
    assert_int_equal(point_middle(n, p, &p[4], 0.05, 65536), 0);    /* 0 or 65536, which do not lie between */
    p[0] = passed(65536, 700, 1000);
    assert_int_equal(point_middle(n, p, &p[4], 0.05, 1024), 0); /* not settled */
    p[0] = passed(65536, 700, 700);
    for (size_t i = 0; i < n; i++)
        p[i].algorithm = i == 3 ? ALGORITHM_tree : ALGORITHM_ring;
    assert_int_equal(point_middle(n, p, &p[4], 0.05, 1024), 0); /* the last is another curve's */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_pass_is_all_there_is),
        cmocka_unit_test(no_pass_is_nothing),
        cmocka_unit_test(passes_that_agree_are_pooled),
        cmocka_unit_test(a_pass_that_others_contradict_does_not_count),
        cmocka_unit_test(of_passes_that_all_differ_the_fastest_counts),
        cmocka_unit_test(of_two_sets_the_faster_counts),
        cmocka_unit_test(a_full_point_takes_no_more),
        cmocka_unit_test(a_curve_that_falls_is_seen),
        cmocka_unit_test(a_bend_is_as_deep_as_where_two_lines_meet),
        cmocka_unit_test(a_line_has_no_bend_and_a_step_has_one),
        cmocka_unit_test(the_middle_of_a_bent_line_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
