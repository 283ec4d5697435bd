/* A measured line on other numbers of devices, against table 2 of MG-WFBP written out again, and against
 * all_reduce_line() on clusters that the same alpha and beta describe. */
#include <math.h>

#include "strategy/cost/scaled_line.h"
#include "tests/support/check.h"
#include "tests/support/strategy/handmade_cluster.h"

#define EXACT 1e-12

static struct error err;

static const enum algorithm rows[] = {ALGORITHM_ring, ALGORITHM_tree, ALGORITHM_double_tree,
                                      ALGORITHM_recursive_doubling, ALGORITHM_halving_doubling};

static void ring_terms_scale_as_the_paper_says(void **state) {
    (void)state;
    const struct all_reduce_line measured = {972, 1.97e-3};
    struct all_reduce_line line;
    for (uint32_t n = 2; n <= 2048; n *= 2) {
        assert_ok(scaled_line(measured, 16, n, ALGORITHM_ring, &line, &err));
        assert_close(line.startup_us, 972.0 * (n - 1) / 15, EXACT);
        assert_close(line.per_byte_us, 1.97e-3 * ((n - 1.0) / n) / (15.0 / 16), EXACT);
    }
}

static void the_measured_size_keeps_its_line(void **state) {
    (void)state;
    struct all_reduce_line line;
    for (uint32_t n = 2; n < 40; n++) {
        assert_ok(scaled_line((struct all_reduce_line){500, 0.01}, n, n, ALGORITHM_ring, &line, &err));
        assert_close(line.startup_us, 500, EXACT);
        assert_close(line.per_byte_us, 0.01, EXACT);
    }
}

static void double_trees_take_alpha_and_beta_from_the_ring(void **state) {
    (void)state;
    struct all_reduce_line line;
    const double alpha = 972.0 / 30, beta = 1.97e-3 * 16 / 30;
    assert_ok(scaled_line((struct all_reduce_line){972, 1.97e-3}, 16, 2048, ALGORITHM_double_tree, &line, &err));
    assert_close(line.startup_us, 2 * alpha * 11, EXACT);
    assert_close(line.per_byte_us, beta, EXACT);
}

/* alpha = 50, beta = 1/1000, gamma = 0: what a cluster of n such nodes derives for itself. */
static struct all_reduce_line derived(uint32_t n, enum algorithm algorithm) {
    struct handmade f;
    handmade_cluster(&f, n);
    for (uint32_t i = 0; i < n; i++)
        f.nodes[i].nic_latency_us = 50;
    handmade_number_devices(&f);
    return all_reduce_line(&f.cluster, algorithm);
}

static void every_row_agrees_with_the_formula_of_a_cluster(void **state) {
    (void)state;
    struct all_reduce_line line;
    for (uint32_t from = 2; from <= 8; from++)
        for (uint32_t to = 2; to <= 8; to *= 2)
            for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
                struct all_reduce_line want = derived(to, rows[r]);
                assert_ok(scaled_line(derived(from, ALGORITHM_ring), from, to, rows[r], &line, &err));
                assert_close(line.startup_us, want.startup_us, EXACT);
                assert_close(line.per_byte_us, want.per_byte_us, EXACT);
            }
}

static void one_device_needs_no_all_reduce_and_tells_nothing_about_several(void **state) {
    (void)state;
    struct all_reduce_line line = {1, 1};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        assert_ok(scaled_line((struct all_reduce_line){9, 9}, 4, 1, rows[r], &line, &err));
        assert_close(line.startup_us + line.per_byte_us, 0, 0);
    }
    line.startup_us = 7;
    assert_fails(scaled_line((struct all_reduce_line){9, 9}, 1, 4, ALGORITHM_ring, &line, &err), ST_INFEASIBLE,
                 "one device");
    assert_fails(scaled_line((struct all_reduce_line){9, 9}, 4, 8, ALGORITHM_hierarchical, &line, &err), ST_INFEASIBLE,
                 "hierarchical");
    assert_close(line.startup_us, 7, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ring_terms_scale_as_the_paper_says),
        cmocka_unit_test(the_measured_size_keeps_its_line),
        cmocka_unit_test(double_trees_take_alpha_and_beta_from_the_ring),
        cmocka_unit_test(every_row_agrees_with_the_formula_of_a_cluster),
        cmocka_unit_test(one_device_needs_no_all_reduce_and_tells_nothing_about_several),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
