/* Curves against what their tables were made of: lines, proportional tables, and numbers worked out by hand. */
#include <math.h>

#include "strategy/cost/curve.h"
#include "tests/support/check.h"

#define EXACT 1e-12

static struct arena arena;

static struct curve curve_among(uint32_t n_tables, const struct curve_table *tables, uint32_t which) {
    struct error err;
    struct curve curve;
    assert_ok(curve_init(&curve, n_tables, tables, which, &arena, &err));
    return curve;
}

static struct curve curve_alone(uint32_t n, const double *bytes, const double *time_us) {
    return curve_among(1, &(struct curve_table){n, bytes, time_us}, 0);
}

static int forget(void **state) {
    (void)state;
    arena_release(&arena);
    return 0;
}

static void a_table_of_a_line_gives_the_line_between_and_beyond(void **state) {
    const double bytes[] = {1000, 3000, 10000, 12000, 500000}, a = 40, b = 2e-3;
    double time_us[5];
    (void)state;
    for (int i = 0; i < 5; i++)
        time_us[i] = a + b * bytes[i];
    struct curve curve = curve_alone(5, bytes, time_us);
    for (double m = 1000; m < 1e9; m *= 1.3)
        assert_close(curve_us(&curve, m), a + b * m, EXACT);
    assert_close(curve_us(&curve, 10), a + b * 1000, EXACT);
    assert_close(curve.tail_per_byte_us, b, EXACT);
    assert_close(curve.least_per_byte_us, b, EXACT);
}

static void one_point_is_a_latency_up_to_it_and_a_rate_above(void **state) {
    (void)state;
    struct curve curve = curve_alone(1, (const double[]){2000}, (const double[]){50});
    assert_close(curve_us(&curve, 0), 50, EXACT);
    assert_close(curve_us(&curve, 2000), 50, EXACT);
    assert_close(curve_us(&curve, 6000), 150, EXACT);
}

static void the_last_doubling_sets_the_slope_beyond_it(void **state) {
    const double bytes[] = {1000, 4000, 7800, 8000}, time_us[] = {10, 20, 39.9, 40}, flat[] = {10, 40, 40, 40};
    (void)state;
    struct curve curve = curve_alone(4, bytes, time_us);
    assert_close(curve_us(&curve, 16000), 40 + 8000 * (20.0 / 4000), EXACT);
    curve = curve_alone(4, bytes, flat);
    assert_close(curve_us(&curve, 16000), 80, EXACT);
}

/* 100 and 80 pool, and 85 is below what they come to; 300 and 200 come to less than 250, which stays apart. */
static void points_that_fall_take_their_geometric_mean(void **state) {
    const double bytes[] = {1, 2, 4, 8, 16, 32, 64}, time_us[] = {50, 100, 80, 85, 300, 200, 250};
    (void)state;
    struct curve curve = curve_alone(7, bytes, time_us);
    const double low = cbrt(100.0 * 80 * 85), high = sqrt(300.0 * 200), want[] = {50, low, low, low, high, high, 250};
    assert_int_equal(curve.n, 7);
    for (int i = 0; i < 7; i++)
        assert_close(curve_us(&curve, bytes[i]), want[i], EXACT);
    assert_true(curve.time_us[0] == 50 && curve.time_us[6] == 250);
}

static void an_unmeasured_table_has_no_curve(void **state) {
    const double bytes[] = {10, 20}, time_us[] = {1, 2};
    (void)state;
    const struct curve_table tables[] = {{0, NULL, NULL}, {2, bytes, time_us}};
    assert_int_equal(curve_among(2, tables, 0).n, 0);
    assert_int_equal(curve_among(2, tables, 1).n, 2);
}

/* ---- families ---- */

static const double SIZES[] = {100, 200, 400, 800, 1600, 3200};
static const double STEPS[] = {10, 11, 13, 40, 44, 60};

/* Without the points i with dropped[i]; each time is factor * bytes^power of STEPS. */
static struct curve_table scaled_without(const bool *dropped, double factor, double power, double room[12]) {
    uint32_t n = 0;
    for (int i = 0; i < 6; i++) {
        if (dropped[i])
            continue;
        room[n] = SIZES[i];
        room[6 + n++] = factor * pow(SIZES[i], power) * STEPS[i];
    }
    return (struct curve_table){n, room, room + 6};
}

static void a_gap_has_the_shape_of_the_family_across_it(void **state) {
    const bool all[6] = {false}, some[6] = {false, false, true, true, false, false};
    double room[2][12];
    (void)state;
    const struct curve_table tables[] = {scaled_without(some, 2, 0.1, room[0]), scaled_without(all, 1, 0, room[1])};
    struct curve curve = curve_among(2, tables, 0);
    assert_int_equal(curve.n, 6);
    for (int i = 0; i < 6; i++)
        assert_close(curve_us(&curve, SIZES[i]), 2 * pow(SIZES[i], 0.1) * STEPS[i], EXACT);
    assert_int_equal(curve_among(2, tables, 1).n, 6);
}

static void several_of_a_family_have_one_vote_each(void **state) {
    const double bytes[] = {100, 300, 900}, own_bytes[] = {100, 900}, own[] = {10, 10 * 16};
    const double early[] = {1, 16, 16}, late[] = {7, 7, 7 * 16};
    (void)state;
    const struct curve_table tables[] = {{3, bytes, early}, {2, own_bytes, own}, {0, NULL, NULL}, {3, bytes, late}};
    struct curve curve = curve_among(4, tables, 1);
    assert_int_equal(curve.n, 3);
    assert_close(curve_us(&curve, 300), 10 * sqrt(16.0 * 1), EXACT);
}

/* Between 10 and 12 us the other table's peak cannot lift the curve above 12. */
static void a_gap_stays_between_its_ends(void **state) {
    const double bytes[] = {100, 300, 900}, peak[] = {10, 100, 12}, own_bytes[] = {100, 900}, own[] = {10, 12};
    (void)state;
    const struct curve_table tables[] = {{2, own_bytes, own}, {3, bytes, peak}};
    struct curve curve = curve_among(2, tables, 0);
    assert_close(curve_us(&curve, 300), 12, EXACT);
}

static void who_does_not_span_a_gap_says_nothing_about_it(void **state) {
    const double bytes[] = {100, 900}, time_us[] = {10, 90}, short_bytes[] = {300, 900}, short_us[] = {1, 100};
    const double wide_bytes[] = {50, 1000}, wide_us[] = {1, 1000};
    (void)state;
    const struct curve_table tables[] = {{2, bytes, time_us}, {2, short_bytes, short_us}, {2, wide_bytes, wide_us}};
    struct curve curve = curve_among(3, tables, 0);
    assert_int_equal(curve.n, 2);
    assert_close(curve_us(&curve, 300), 30, EXACT);
}

static void the_point_below_is_found(void **state) {
    const double bytes[] = {10, 20, 40}, time_us[] = {1, 2, 3};
    (void)state;
    struct curve curve = curve_alone(3, bytes, time_us);
    const struct {
        double bytes;
        uint32_t at;
    } cases[] = {{0, 0}, {10, 0}, {19, 0}, {20, 1}, {39, 1}, {40, 2}, {1e9, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(curve_point_below(&curve, cases[i].bytes), cases[i].at);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_table_of_a_line_gives_the_line_between_and_beyond, forget),
        cmocka_unit_test_teardown(one_point_is_a_latency_up_to_it_and_a_rate_above, forget),
        cmocka_unit_test_teardown(the_last_doubling_sets_the_slope_beyond_it, forget),
        cmocka_unit_test_teardown(points_that_fall_take_their_geometric_mean, forget),
        cmocka_unit_test_teardown(an_unmeasured_table_has_no_curve, forget),
        cmocka_unit_test_teardown(a_gap_has_the_shape_of_the_family_across_it, forget),
        cmocka_unit_test_teardown(several_of_a_family_have_one_vote_each, forget),
        cmocka_unit_test_teardown(a_gap_stays_between_its_ends, forget),
        cmocka_unit_test_teardown(who_does_not_span_a_gap_says_nothing_about_it, forget),
        cmocka_unit_test_teardown(the_point_below_is_found, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
