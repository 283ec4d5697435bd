/* The text of a sweep, and what it makes of clusters and models. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "tests/support/check.h"
#include "tests/unit/tuner/sweep_world.h"
#include "tuner/predict/sweep.h"

static struct error err;

static struct sweep parsed(const char *text) {
    struct sweep sweep;
    assert_ok(sweep_parse(text, &sweep, &err));
    return sweep;
}

static void expect_values(const char *text, enum sweep_axis axis, bool geometric, size_t n, const double *values) {
    struct sweep sweep = parsed(text);
    assert_int_equal(sweep.axis, axis);
    assert_int_equal(sweep.geometric, geometric);
    assert_int_equal(sweep.n, n);
    for (size_t i = 0; i < n; i++)
        assert_close(sweep.values[i], values[i], 1e-12);
}

static void ranges_and_lists_are_what_they_say(void **state) {
    (void)state;
    expect_values("workers=4..64x2", SWEEP_WORKERS, true, 5, (double[]){4, 8, 16, 32, 64});
    expect_values("workers=4..70x2", SWEEP_WORKERS, true, 5, (double[]){4, 8, 16, 32, 64});
    expect_values("workers=2..10+4", SWEEP_WORKERS, false, 3, (double[]){2, 6, 10});
    expect_values("bandwidth=0.5..1+0.1", SWEEP_BANDWIDTH, false, 6, (double[]){.5, .6, .7, .8, .9, 1});
    expect_values("bandwidth=1..8x1.5", SWEEP_BANDWIDTH, true, 6, (double[]){1, 1.5, 2.25, 3.375, 5.0625, 7.59375});
    expect_values("batch=8,16,40", SWEEP_BATCH, false, 3, (double[]){8, 16, 40});
    expect_values("batch=32", SWEEP_BATCH, false, 1, (double[]){32});
    assert_int_equal(parsed("workers=4..2048x2").n, 10);
    expect_values("bandwidth=0.1..0.3+0.1", SWEEP_BANDWIDTH, false, 3,
                  (double[]){.1, .2, .3});                               /* 0.1 + 2 * 0.1 > 0.3 */
    assert_close(parsed("bandwidth=0.1..100x10").values[3], 100, 1e-12); /* 0.1 * 10^3 is not quite 100 */
}

static void what_makes_no_sense_is_refused_with_a_reason(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"", "not AXIS="},
        {"workers", "not AXIS="},
        {"workers=", "not AXIS="},
        {"=4", "not AXIS="},
        {"worker=4", "not AXIS="},
        {"workers=4..8", "not AXIS="},
        {"workers=4..8x", "not AXIS="},
        {"workers=4..8x2,16", "not AXIS="},
        {"workers=4,", "not AXIS="},
        {"workers=4 ,8", "not AXIS="},
        {"workers=-4", "not AXIS="},
        {"workers=1x10", "not AXIS="},
        {"workers=1e3", "not AXIS="},
        {"batch=nan", "not AXIS="},
        {"batch=11111111111111111111111111111111111111111", "not AXIS="},
        {"workers=8..4x2", "smaller value first"},
        {"workers=4..8x1", "never arrives"},
        {"workers=4..8x0.5", "never arrives"},
        {"workers=4..8+0", "never arrives"},
        {"workers=8,4", "rising"},
        {"workers=8,8", "rising"},
        {"workers=4..32x1.5", "whole"},
        {"workers=2.5", "whole"},
        {"workers=0", "outside"},
        {"bandwidth=0", "outside"},
        {"workers=1048577", "outside"},
        {"workers=1..1000+1", "more than 256"},
        {"bandwidth=1..2x1.00000000001", "more than 256"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sweep sweep = {.n = 77};
        assert_fails(sweep_parse(cases[i][0], &sweep, &err), ST_USAGE, cases[i][1]);
        assert_int_equal(sweep.n, 77);
    }
}

/* ---- clusters ---- */

static const char MODEL[] =
    "{\"schema\":\"syncopate.model/1\",\"name\":\"toy\",\"batch_per_device\":8,\"variables\":["
    "{\"name\":\"a\",\"shape\":[64,64]},{\"name\":\"e\",\"shape\":[100,4],\"sparse_rows\":30}],\"layers\":["
    "{\"name\":\"l\",\"forward_us\":100,\"backward_us\":200,\"variables\":[\"a\",\"e\"]}]}";

/* A cluster from the members that come after its name. */
static struct world world_of(const char *members) {
    char text[2048];
    snprintf(text, sizeof text, "\"transport\":\"ideal\",%s", members);
    return world_read(MODEL, text);
}

static struct sweep_point applied(const struct world *w, const char *text, enum algorithm all_reduce) {
    struct sweep sweep = parsed(text);
    struct sweep_point point;
    assert_ok(sweep_apply(&sweep, sweep.values[0], all_reduce, &w->model, &w->cluster, &point, &err));
    return point;
}

static void expect_refused(const struct world *w, const char *text, enum algorithm all_reduce, enum status status,
                           const char *part) {
    struct sweep sweep = parsed(text);
    struct sweep_point point;
    assert_fails(sweep_apply(&sweep, sweep.values[0], all_reduce, &w->model, &w->cluster, &point, &err), status, part);
}

static const char K80[] = "\"nodes\":[{\"name\":\"n\",\"count\":8,\"devices\":2,\"nic_gbit_per_s\":10,"
                          "\"device_link_gbyte_per_s\":12}],"
                          "\"collectives\":{\"all_reduce\":{\"startup_us\":972,\"per_byte_ns\":1.97}}";

static void the_described_value_gives_the_described_cluster_and_model(void **state) {
    (void)state;
    struct world w = world_of(K80);
    static const char *const same[] = {"workers=16", "bandwidth=10", "batch=8"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        struct sweep_point p = applied(&w, same[i], ALGORITHM_auto);
        assert_string_equal(p.cluster.id.hex, w.cluster.id.hex);
        assert_string_equal(p.model.id.hex, w.model.id.hex);
        sweep_point_release(&p);
    }
    world_release(&w);
}

static void workers_repeat_whole_nodes_and_carry_the_line_over(void **state) {
    (void)state;
    struct world w = world_of(K80);
    struct sweep_point p = applied(&w, "workers=64", ALGORITHM_auto);
    assert_int_equal(p.cluster.n_devices, 64);
    assert_int_equal(p.cluster.n_nodes, 32);
    assert_close(p.cluster.all_reduce_startup_us, 972.0 * 63 / 15, 1e-9);
    assert_close(p.cluster.all_reduce_per_byte_ns, 1.97 * (63.0 / 64) / (15.0 / 16), 1e-9);
    sweep_point_release(&p);
    p = applied(&w, "workers=64", ALGORITHM_double_tree);
    assert_close(p.cluster.all_reduce_startup_us, 2 * 972.0 / 30 * 6, 1e-9);
    assert_close(p.cluster.all_reduce_per_byte_ns, 1.97 * 16 / 30, 1e-9);
    sweep_point_release(&p);
    p = applied(&w, "workers=1", ALGORITHM_auto);
    assert_int_equal(p.cluster.n_nodes, 1);
    assert_int_equal(p.cluster.nodes[0].devices, 1);
    sweep_point_release(&p);
    expect_refused(&w, "workers=7", ALGORITHM_auto, ST_INFEASIBLE, "6 or 8 devices");
    expect_refused(&w, "workers=64", ALGORITHM_hierarchical, ST_INFEASIBLE, "hierarchical");
    expect_refused(&w, "workers=32770", ALGORITHM_auto, ST_TOO_LARGE, "nodes");
    world_release(&w);
}

static void unlike_nodes_are_repeated_in_turn_and_servers_in_proportion(void **state) {
    (void)state;
    struct world w = world_of("\"nodes\":[{\"name\":\"s\",\"count\":2,\"devices\":0,\"nic_gbit_per_s\":40},"
                              "{\"name\":\"a\",\"count\":2,\"nic_gbit_per_s\":10},"
                              "{\"name\":\"b\",\"nic_gbit_per_s\":5,\"compute_scale\":2}]");
    struct sweep_point p = applied(&w, "workers=7", ALGORITHM_auto);
    static const double rates[] = {10, 10, 5, 10, 10, 5, 10};
    assert_int_equal(p.cluster.n_devices, 7);
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(p.cluster.nodes[i].devices, 1);
        assert_close(p.cluster.nodes[i].nic_gbit_per_s, rates[i], 0);
    }
    assert_int_equal(p.cluster.n_nodes, 7 + 5); /* 2 servers for 3 workers: 4.67 for 7, rounded up */
    for (size_t i = 7; i < 12; i++)
        assert_int_equal(p.cluster.nodes[i].devices, 0);
    sweep_point_release(&p);
    world_release(&w);
}

static void links_stay_with_bandwidth_and_refuse_workers(void **state) {
    (void)state;
    struct world w =
        world_of("\"nodes\":[{\"name\":\"a\",\"nic_gbit_per_s\":10},{\"name\":\"b\",\"nic_gbit_per_s\":5}],"
                 "\"links\":[{\"from\":\"a\",\"to\":\"b\",\"gbit_per_s\":2}],"
                 "\"collectives\":{\"all_reduce\":{\"startup_us\":9,\"per_byte_ns\":3}}");
    struct sweep_point p = applied(&w, "bandwidth=20", ALGORITHM_auto);
    assert_close(p.cluster.nodes[0].nic_gbit_per_s, 20, 0);
    assert_close(p.cluster.nodes[1].nic_gbit_per_s, 20, 0);
    assert_close(p.cluster.links[0].gbit_per_s, 2, 0);
    assert_close(p.cluster.all_reduce_startup_us, 9, 1e-12);
    assert_close(p.cluster.all_reduce_per_byte_ns, 3 * 5.0 / 20, 1e-12);
    sweep_point_release(&p);
    expect_refused(&w, "workers=4", ALGORITHM_auto, ST_INFEASIBLE, "links");
    world_release(&w);
}

static void measured_curves_stay_only_where_they_still_hold(void **state) {
    (void)state;
    struct world w =
        world_of("\"nodes\":[{\"name\":\"n\",\"count\":4,\"nic_gbit_per_s\":1}],\"measurements\":["
                 "{\"operation\":\"all_reduce\",\"algorithm\":\"ring\",\"devices\":4,\"bytes\":1024,\"time_us\":400},"
                 "{\"operation\":\"all_gather\",\"devices\":4,\"bytes\":1024,\"time_us\":200},"
                 "{\"operation\":\"push\",\"bytes\":1024,\"time_us\":90}]");
    static const struct {
        const char *text;
        enum algorithm all_reduce;
        uint32_t kept;
    } cases[] = {{"workers=8", ALGORITHM_auto, 1},
                 {"bandwidth=8", ALGORITHM_auto, 0},
                 {"batch=4", ALGORITHM_auto, 3},
                 {"batch=4", ALGORITHM_ring, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sweep sweep = parsed(cases[i].text);
        struct sweep_point p = applied(&w, cases[i].text, cases[i].all_reduce);
        assert_int_equal(p.cluster.n_measurements, cases[i].kept);
        assert_int_equal(sweep_drops_measurements(&sweep, cases[i].all_reduce, &w.cluster), cases[i].kept < 3);
        sweep_point_release(&p);
    }
    world_release(&w);
}

static void without_a_measured_line_the_chosen_algorithm_goes_by_its_formula(void **state) {
    (void)state;
    struct world w = world_of("\"nodes\":[{\"name\":\"n\",\"count\":4,\"nic_gbit_per_s\":8,\"nic_latency_us\":50}]");
    struct sweep_point p = applied(&w, "workers=8", ALGORITHM_auto);
    assert_false(p.cluster.fixed_all_reduce);
    sweep_point_release(&p);
    p = applied(&w, "workers=8", ALGORITHM_ring);
    assert_true(p.cluster.fixed_all_reduce);
    assert_close(p.cluster.all_reduce_startup_us, 2 * 7 * 50, 1e-12);
    assert_close(p.cluster.all_reduce_per_byte_ns, 2 * 7.0 / 8, 1e-12); /* 8 Gbit/s: 1 ns a byte */
    sweep_point_release(&p);
    world_release(&w);
}

static void times_and_touched_rows_go_with_the_batch(void **state) {
    (void)state;
    struct world w = world_of("\"nodes\":[{\"name\":\"n\",\"count\":2,\"nic_gbit_per_s\":1}]");
    struct sweep_point p = applied(&w, "batch=16", ALGORITHM_auto);
    assert_close(p.model.forward_us, 200, 1e-12);
    assert_close(p.model.backward_us, 400, 1e-12);
    assert_close(p.model.batch_per_device, 16, 0);
    assert_int_equal(p.model.variables[1].sparse_rows, 60);
    sweep_point_release(&p);
    p = applied(&w, "batch=800", ALGORITHM_auto);
    assert_int_equal(p.model.variables[1].sparse_rows, 100); /* there are no more */
    sweep_point_release(&p);
    p = applied(&w, "batch=0.001", ALGORITHM_auto);
    assert_int_equal(p.model.variables[1].sparse_rows, 1);
    sweep_point_release(&p);
    world_release(&w);
}

/* Of random clusters and numbers of devices: exactly that many in nodes like the described ones, or refused, and then
 * no run of nodes from the first on has that many. */
/* Rates are a share of the NIC's, flows come from every node; a recording is of its own nodes. */
static void weather_goes_with_the_nics_and_the_nodes(void **state) {
    (void)state;
    static const char nodes[] = "\"nodes\":[{\"name\":\"n\",\"count\":4,\"nic_gbit_per_s\":10}],\"variability\":{";
    char text[1024];
    snprintf(text, sizeof text,
             "%s\"network\":{\"every_us\":5,\"rates\":[{\"gbit_per_s\":2.5,\"share\":0.1},{\"gbit_per_s\":10,\"share\":"
             "0.9}]},"
             "\"background\":{\"flows_per_s\":2,\"mbytes\":100,\"gbit_per_s\":5}}",
             nodes);
    struct world w = world_of(text);
    struct sweep_point p = applied(&w, "bandwidth=40", ALGORITHM_auto);
    assert_close(p.cluster.variability.rates[0].gbit_per_s, 10, 1e-12);
    assert_close(p.cluster.variability.rates[1].gbit_per_s, 40, 1e-12);
    assert_close(p.cluster.variability.background.gbit_per_s, 5, 0);
    sweep_point_release(&p);
    p = applied(&w, "workers=12", ALGORITHM_auto);
    assert_close(p.cluster.variability.background.flows_per_s, 6, 1e-12);
    sweep_point_release(&p);
    p = applied(&w, "workers=1", ALGORITHM_auto);
    assert_true(p.cluster.variability.given && p.cluster.variability.background.flows_per_s <= 0);
    sweep_point_release(&p);
    expect_refused(&w, "bandwidth=4", ALGORITHM_auto, ST_INVALID, "5 Gbit/s, but the NIC of \"n1\" has 4");
    world_release(&w);
    snprintf(
        text, sizeof text,
        "%s\"network\":{\"until_us\":9,\"changes\":[{\"at_us\":1,\"node\":\"n2\",\"direction\":\"in\",\"gbit_per_s\":"
        "5}]}}",
        nodes);
    w = world_of(text);
    p = applied(&w, "bandwidth=1", ALGORITHM_auto);
    assert_close(p.cluster.variability.changes[0].gbit_per_s, 0.5, 1e-12);
    sweep_point_release(&p);
    expect_refused(&w, "workers=8", ALGORITHM_auto, ST_INFEASIBLE, "recorded on its own nodes");
    world_release(&w);
}

/* Each NIC has its own rate, what was drawn or recorded of it stays its share, and no flow is faster than a NIC. */
static void relative_rates_are_those_of_each_nic(void **state) {
    (void)state;
    static const struct sweep half = {.axis = SWEEP_BANDWIDTH, .relative = true, .n = 1, .values = {0.5}};
    struct world w = world_of(
        "\"nodes\":[{\"name\":\"a\",\"nic_gbit_per_s\":10},{\"name\":\"b\",\"nic_gbit_per_s\":4}],"
        "\"collectives\":{\"all_reduce\":{\"startup_us\":9,\"per_byte_ns\":3}},\"variability\":{"
        "\"network\":{\"every_us\":5,\"rates\":[{\"gbit_per_s\":2,\"share\":0.1},{\"gbit_per_s\":4,\"share\":0.9}]},"
        "\"background\":{\"flows_per_s\":2,\"mbytes\":100,\"gbit_per_s\":3}}");
    struct sweep_point p;
    assert_ok(sweep_apply(&half, 0.5, ALGORITHM_auto, &w.model, &w.cluster, &p, &err));
    assert_close(p.cluster.nodes[0].nic_gbit_per_s, 5, 0);
    assert_close(p.cluster.nodes[1].nic_gbit_per_s, 2, 0);
    assert_close(p.cluster.all_reduce_per_byte_ns, 6, 1e-12);
    assert_close(p.cluster.variability.rates[0].gbit_per_s, 1, 1e-12);
    assert_close(p.cluster.variability.rates[1].gbit_per_s, 2, 1e-12);
    assert_close(p.cluster.variability.background.gbit_per_s, 2, 1e-12);
    assert_close(p.cluster.variability.background.mbytes, 100 * 2.0 / 3, 1e-9);
    sweep_point_release(&p);
    world_release(&w);
    w = world_of("\"nodes\":[{\"name\":\"a\",\"nic_gbit_per_s\":10},{\"name\":\"b\",\"nic_gbit_per_s\":4}],"
                 "\"variability\":{\"network\":{\"until_us\":9,\"changes\":[{\"at_us\":1,\"node\":\"b\","
                 "\"direction\":\"in\",\"gbit_per_s\":1}]},\"background\":{\"until_us\":1e6,\"flows\":[{\"at_us\":1,"
                 "\"from\":\"a\",\"to\":\"b\",\"mbytes\":300,\"gbit_per_s\":3}]}}");
    assert_ok(sweep_apply(&half, 0.5, ALGORITHM_auto, &w.model, &w.cluster, &p, &err));
    assert_close(p.cluster.variability.changes[0].gbit_per_s, 0.5, 1e-12);
    assert_close(p.cluster.variability.background.flows[0].gbit_per_s, 2, 1e-12);
    assert_close(p.cluster.variability.background.flows[0].mbytes, 200, 1e-9);
    sweep_point_release(&p);
    world_release(&w);
}

static void random_clusters_grow_to_exactly_the_asked_size_or_say_why_not(void **state) {
    (void)state;
    struct rng rng;
    int refused = 0;
    rng_seed(&rng, test_seed());
    for (int t = 0; t < 300; t++) {
        char members[1024] = "\"nodes\":[";
        uint32_t devices[4], kinds = 1 + (uint32_t)rng_below(&rng, 4), want = 1 + (uint32_t)rng_below(&rng, 60);
        for (uint32_t i = 0; i < kinds; i++) {
            devices[i] = 1 + (uint32_t)rng_below(&rng, 5);
            snprintf(members + strlen(members), 200,
                     "%s{\"name\":\"k%u\",\"devices\":%u,\"nic_gbit_per_s\":1,\"device_link_gbyte_per_s\":9}",
                     i ? "," : "", i, devices[i]);
        }
        strcat(members, "]");
        uint32_t had = 0, n = 0;
        while (had < want)
            had += devices[n++ % kinds];
        struct world w = world_of(members);
        char text[32];
        snprintf(text, sizeof text, "workers=%u", want);
        if (had == want || n == 1) {
            struct sweep_point p = applied(&w, text, ALGORITHM_auto);
            assert_int_equal(p.cluster.n_devices, want);
            assert_int_equal(p.cluster.n_nodes, n);
            for (uint32_t i = 0; i < n && n > 1; i++)
                assert_int_equal(p.cluster.nodes[i].devices, devices[i % kinds]);
            sweep_point_release(&p);
        } else {
            expect_refused(&w, text, ALGORITHM_auto, ST_INFEASIBLE, "whole nodes");
            refused++;
        }
        world_release(&w);
    }
    assert_true(refused > 20 && refused < 280);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_and_lists_are_what_they_say),
        cmocka_unit_test(what_makes_no_sense_is_refused_with_a_reason),
        cmocka_unit_test(the_described_value_gives_the_described_cluster_and_model),
        cmocka_unit_test(workers_repeat_whole_nodes_and_carry_the_line_over),
        cmocka_unit_test(unlike_nodes_are_repeated_in_turn_and_servers_in_proportion),
        cmocka_unit_test(links_stay_with_bandwidth_and_refuse_workers),
        cmocka_unit_test(measured_curves_stay_only_where_they_still_hold),
        cmocka_unit_test(without_a_measured_line_the_chosen_algorithm_goes_by_its_formula),
        cmocka_unit_test(times_and_touched_rows_go_with_the_batch),
        cmocka_unit_test(weather_goes_with_the_nics_and_the_nodes),
        cmocka_unit_test(relative_rates_are_those_of_each_nic),
        cmocka_unit_test(random_clusters_grow_to_exactly_the_asked_size_or_say_why_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
