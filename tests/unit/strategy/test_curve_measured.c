/* How well a curve tells a size that it was not given, on public tables of NCCL: each size left out in turn. The tables
 * are not part of the project; without them these tests are skipped. `make curves` prints what is held here. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "strategy/cost/cost.h"
#include "tests/support/check.h"
#include "tests/support/strategy/handmade_cluster.h"
#include "tests/support/strategy/measured_tables.h"

enum { MOST = MEASURED_TABLES * MEASURED_POINTS };

static void skip_without_tables(void) {
    if (measured_tables_exist())
        return;
    print_message("no measured tables in %s\n", measured_folder);
    skip();
}

/* Errors of all tables of a file; ends: those of the first and the last points alone. */
static struct error_summary errors_of(struct measured_file *file, bool with_family, bool ends, double limit) {
    static double off[MOST], inner[MEASURED_POINTS];
    const struct measured_table *family[MEASURED_TABLES];
    uint32_t n = 0;
    for (uint32_t t = 0; t < file->n; t++) {
        const struct measured_table *table = &file->tables[t];
        uint32_t n_family = with_family ? measured_family(file, table, family) : 0;
        leave_each_out(table, n_family, family, &guess_curve, ends, off + n);
        if (ends)
            leave_each_out(table, n_family, family, &guess_curve, false, inner);
        for (uint32_t i = 0; i < table->n && ends; i++)
            off[n + i] = isnan(inner[i]) ? off[n + i] : NAN;
        n += table->n;
    }
    struct error_summary all = summarize_errors(n, off, limit);
    printf("%u points: median %.1f%%, mean %.1f%%, worst %.1f%%, %u above %.0f%%\n", all.n, 100 * all.median,
           100 * all.mean, 100 * all.worst, all.above, 100 * limit);
    return all;
}

static void on_a100_and_h100_the_family_tells_each_size_within_15_percent_half_of_them_within_2(void **state) {
    static const char *const gpus[] = {"a100_sxm", "h100_sxm"};
    (void)state;
    skip_without_tables();
    for (int g = 0; g < 2; g++) {
        struct measured_file *file = measured_nccl(gpus[g]);
        struct error_summary all = errors_of(file, true, false, 0.15);
        assert_int_equal(all.n, 6 * 18);
        assert_true(all.median < 0.02 && all.worst < 0.15 && all.above == 0);
        assert_true(errors_of(file, true, true, 0.05).worst < 0.03);
        free(file);
    }
}

/* What is above 15% alone: the sizes beside the step that two GPUs show below 2 MiB, in each type, and one size whose
 * two runs differ by a quarter. */
static void a_table_alone_tells_all_but_its_steps_within_15_percent(void **state) {
    static const struct {
        const char *gpu;
        uint32_t above;
        double worst;
    } cases[] = {{"a100_sxm", 4, 0.31}, {"h100_sxm", 3, 0.26}};
    (void)state;
    skip_without_tables();
    for (int g = 0; g < 2; g++) {
        struct measured_file *file = measured_nccl(cases[g].gpu);
        struct error_summary all = errors_of(file, false, false, 0.15);
        assert_true(all.median < 0.04 && all.mean < 0.05 && all.worst < cases[g].worst);
        assert_int_equal(all.above, cases[g].above);
        free(file);
    }
}

static void a_thousand_sizes_are_told_within_a_percent_at_the_median(void **state) {
    (void)state;
    skip_without_tables();
    struct measured_file *file = measured_vidur("h100");
    struct error_summary all = errors_of(file, false, false, 0.15);
    assert_int_equal(all.n, 3 * 991);
    assert_true(all.median < 0.01 && all.mean < 0.05);
    free(file);
}

/* A cluster of 8 GPUs whose file has one type as the ring's curve, without a size, and the other as the tree's. */
static void a_cluster_file_with_two_tables_of_a_family_costs_what_was_left_out(void **state) {
    struct measurement points[2 * 21];
    const struct measured_table *family[MEASURED_TABLES];
    struct error err;
    (void)state;
    skip_without_tables();
    struct measured_file *file = measured_nccl("a100_sxm");
    const struct measured_table *own = &file->tables[file->n - 1];
    assert_int_equal(own->ranks, 8);
    assert_int_equal(measured_family(file, own, family), 1);
    double off[MEASURED_POINTS];
    leave_each_out(own, 1, family, &guess_curve, false, off);
    for (uint32_t left = 0; left < own->n; left++) {
        struct handmade f;
        struct cost cost;
        uint32_t n = 0;
        for (uint32_t i = 0; i < own->n; i++)
            if (i != left)
                points[n++] = (struct measurement){OPERATION_all_reduce,
                                                   ALGORITHM_ring,
                                                   8,
                                                   (uint64_t)own->points[i].bytes,
                                                   own->points[i].time_us,
                                                   0,
                                                   0};
        for (uint32_t i = 0; i < family[0]->n; i++)
            points[n++] = (struct measurement){OPERATION_all_reduce,
                                               ALGORITHM_tree,
                                               8,
                                               (uint64_t)family[0]->points[i].bytes,
                                               family[0]->points[i].time_us,
                                               0,
                                               0};
        handmade_cluster(&f, 1);
        f.nodes[0].devices = 8;
        handmade_number_devices(&f);
        f.cluster.measurements = points;
        f.cluster.n_measurements = n;
        assert_ok(cost_init(&cost, &f.cluster, &err));
        struct all_reduce_cost c = all_reduce_cost(&cost.all_reduce, ALGORITHM_ring, (uint64_t)own->points[left].bytes);
        if (!isnan(off[left]))
            assert_close(c.startup_us + c.transfer_us, (1 + off[left]) * own->points[left].time_us, 1e-9);
        cost_release(&cost);
    }
    free(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_a100_and_h100_the_family_tells_each_size_within_15_percent_half_of_them_within_2),
        cmocka_unit_test(a_table_alone_tells_all_but_its_steps_within_15_percent),
        cmocka_unit_test(a_thousand_sizes_are_told_within_a_percent_at_the_median),
        cmocka_unit_test(a_cluster_file_with_two_tables_of_a_family_costs_what_was_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
