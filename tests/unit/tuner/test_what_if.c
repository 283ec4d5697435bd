/* Other figures of a model and a cluster: each has exactly the figure that was asked for, and what was not asked for
 * stays. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "tests/support/check.h"
#include "tests/unit/tuner/sweep_world.h"
#include "tuner/predict/what_if.h"

#define MODEL                                                                                                          \
    "{\"schema\":\"syncopate.model/1\",\"name\":\"m\",\"batch_per_device\":8,\"variables\":["                          \
    "{\"name\":\"a\",\"shape\":[64,64],\"dtype\":\"f32\"}],\"layers\":[{\"name\":\"l\",\"forward_us\":2000,"           \
    "\"backward_us\":4000,\"variables\":[\"a\"]}]}"

static struct error err;

static struct world world_of(const char *members) {
    return world_read(MODEL, members);
}

#define UNLIKE                                                                                                         \
    "\"nodes\":[{\"name\":\"a\",\"count\":2,\"devices\":2,\"device_link_gbyte_per_s\":10,\"nic_gbit_per_s\":10},"      \
    "{\"name\":\"b\",\"devices\":1,\"nic_gbit_per_s\":1},{\"name\":\"s\",\"devices\":0,\"nic_gbit_per_s\":4}]"

static void figures_as_they_are_change_nothing(void **state) {
    (void)state;
    struct world w = world_of("\"nodes\":[{\"name\":\"n\",\"count\":3,\"nic_gbit_per_s\":10}]");
    const struct what_if now = what_if_of(&w.model, &w.cluster), none = {0};
    struct sweep_point p;
    assert_close(now.gbit_per_s, 10, 0);
    assert_int_equal(now.nodes, 3);
    assert_close(now.batch, 8, 0);
    assert_false(what_if_changes(&now, &w.model, &w.cluster));
    assert_false(what_if_changes(&none, &w.model, &w.cluster));
    assert_ok(what_if_apply(&now, &w.model, &w.cluster, &p, &err));
    assert_string_equal(p.cluster.id.hex, w.cluster.id.hex);
    assert_string_equal(p.model.id.hex, w.model.id.hex);
    sweep_point_release(&p);
    world_release(&w);
    w = world_of(UNLIKE); /* its slowest NIC has 1, so all at 1 is a change */
    assert_true(what_if_changes(&(struct what_if){.gbit_per_s = 1}, &w.model, &w.cluster));
    world_release(&w);
}

/* Figures that are asked for are met exactly; those that are not stay. */
static void random_figures_are_met(void **state) {
    (void)state;
    static const uint32_t devices[] = {2, 2, 1}; /* of UNLIKE's nodes, in turn */
    static const double rates[] = {10, 10, 1};
    struct rng rng;
    rng_seed(&rng, test_seed());
    struct world w = world_of(UNLIKE);
    for (int i = 0; i < 300; i++) {
        const struct what_if asked = {.gbit_per_s = rng_below(&rng, 2) ? 0.5 + (double)rng_below(&rng, 100) : 0,
                                      .nodes = rng_below(&rng, 2) ? 1 + rng_below(&rng, 40) : 0,
                                      .batch = rng_below(&rng, 2) ? 1 + (double)rng_below(&rng, 64) : 0};
        struct sweep_point p;
        assert_ok(what_if_apply(&asked, &w.model, &w.cluster, &p, &err));
        const uint64_t nodes = asked.nodes ? asked.nodes : 3;
        uint64_t working = 0;
        for (uint32_t k = 0; k < p.cluster.n_nodes; k++) {
            const struct node *node = &p.cluster.nodes[k];
            if (node->devices > 0) {
                assert_int_equal(node->devices, devices[working % 3]);
                assert_close(node->nic_gbit_per_s, asked.gbit_per_s > 0 ? asked.gbit_per_s : rates[working % 3], 1e-12);
                working++;
            } else {
                assert_close(node->nic_gbit_per_s, asked.gbit_per_s > 0 ? asked.gbit_per_s : 4, 1e-12);
            }
        }
        assert_int_equal(working, nodes);
        const double batch = asked.batch > 0 ? asked.batch : 8;
        assert_close(p.model.batch_per_device, batch, 1e-12);
        for (uint32_t k = 0; k < p.model.n_operators; k++)
            assert_close(p.model.operators[k].time_us, w.model.operators[k].time_us * batch / 8, 1e-9);
        sweep_point_release(&p);
    }
    world_release(&w);
}

static void figures_out_of_range_are_refused(void **state) {
    (void)state;
    static const struct {
        struct what_if asked;
        const char *says;
    } cases[] = {{{.gbit_per_s = 1e-9}, "gbit_per_s"}, {{.gbit_per_s = 1e9}, "gbit_per_s"},
                 {{.gbit_per_s = NAN}, "gbit_per_s"},  {{.nodes = WHAT_IF_MOST_NODES + 1}, "nodes"},
                 {{.batch = 1e-9}, "batch"},           {{.batch = INFINITY}, "batch"}};
    struct world w = world_of(UNLIKE);
    struct sweep_point p;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(what_if_apply(&cases[i].asked, &w.model, &w.cluster, &p, &err), ST_USAGE);
        assert_non_null(strstr(err.message, cases[i].says));
    }
    world_release(&w);
}

/* A curve of all-reduce holds for one number of nodes and one network, whatever the batch. */
static void measured_curves_are_dropped_where_they_no_longer_hold(void **state) {
    (void)state;
    struct world w = world_of("\"nodes\":[{\"name\":\"n\",\"count\":2,\"nic_gbit_per_s\":10}],\"measurements\":[{"
                              "\"operation\":\"all_reduce\",\"algorithm\":\"ring\",\"devices\":2,\"bytes\":1024,"
                              "\"time_us\":400}]");
    const struct what_if kept = {.batch = 16}, nodes = {.nodes = 4}, rate = {.gbit_per_s = 5};
    struct sweep_point p;
    assert_int_equal(w.cluster.n_measurements, 1);
    assert_false(what_if_drops_measurements(&kept, &w.model, &w.cluster));
    assert_true(what_if_drops_measurements(&nodes, &w.model, &w.cluster));
    assert_true(what_if_drops_measurements(&rate, &w.model, &w.cluster));
    assert_ok(what_if_apply(&kept, &w.model, &w.cluster, &p, &err));
    assert_int_equal(p.cluster.n_measurements, 1);
    sweep_point_release(&p);
    assert_ok(what_if_apply(&rate, &w.model, &w.cluster, &p, &err));
    assert_int_equal(p.cluster.n_measurements, 0);
    sweep_point_release(&p);
    world_release(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_as_they_are_change_nothing),
        cmocka_unit_test(random_figures_are_met),
        cmocka_unit_test(figures_out_of_range_are_refused),
        cmocka_unit_test(measured_curves_are_dropped_where_they_no_longer_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
