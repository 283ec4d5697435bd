/* Transports: which figures are taken where, and what NCCL's model gives, worked out by hand from its tables. */
#include <math.h>
#include <string.h>

#include "strategy/cost/cost.h"
#include "strategy/cost/nccl.h"
#include "strategy/cost/transport.h"
#include "tests/support/check.h"
#include "tests/support/strategy/handmade_cluster.h"

#define EXACT 1e-12

static void nodes_of(struct handmade *f, uint32_t n, uint32_t devices, const char *device, enum transport transport) {
    handmade_cluster(f, n);
    for (uint32_t i = 0; i < n; i++) {
        f->nodes[i].devices = devices;
        f->nodes[i].device = device;
        f->nodes[i].device_link_gbyte_per_s = 12;
    }
    f->cluster.transport = transport;
    handmade_number_devices(f);
}

static struct all_reduce_cost cost_on(const struct handmade *f, enum algorithm algorithm, uint64_t bytes) {
    struct error err;
    struct cost cost;
    assert_ok(cost_init(&cost, &f->cluster, &err));
    struct all_reduce_cost c = all_reduce_cost(&cost.all_reduce, algorithm, bytes);
    cost_release(&cost);
    return c;
}

static double time_on(const struct handmade *f, enum algorithm algorithm, uint64_t bytes) {
    struct all_reduce_cost c = cost_on(f, algorithm, bytes);
    return c.startup_us + c.transfer_us;
}

static void devices_say_the_transport_that_nobody_names(void **state) {
    (void)state;
    struct handmade f;
    nodes_of(&f, 3, 1, "cpu", TRANSPORT_by_device);
    assert_int_equal(cluster_transport(&f.cluster), TRANSPORT_mpi);
    f.nodes[1].device = "v100";
    assert_int_equal(cluster_transport(&f.cluster), TRANSPORT_nccl);
    f.nodes[1].devices = 0; /* a server's processors do not count */
    assert_int_equal(cluster_transport(&f.cluster), TRANSPORT_mpi);
    f.cluster.transport = TRANSPORT_gloo;
    assert_int_equal(cluster_transport(&f.cluster), TRANSPORT_gloo);
}

static void what_was_measured_comes_before_what_is_typical(void **state) {
    (void)state;
    struct handmade f;
    nodes_of(&f, 2, 1, "v100", TRANSPORT_nccl);
    const struct runtime typical = transport_runtime(&f.cluster);
    assert_true(typical.message_us > 0 && typical.coordination_us > 0 && typical.push_us > 0);
    assert_true(typical.copy_gbyte_per_s > 0 && typical.sum_gbyte_per_s > 0 && typical.encode_gbyte_per_s > 0);
    f.cluster.runtime.message_us = 7;
    f.cluster.runtime.sum_gbyte_per_s = 3;
    const struct runtime now = transport_runtime(&f.cluster);
    assert_close(now.message_us, 7, 0);
    assert_close(now.way_us, 7, 0); /* nobody measured it */
    f.cluster.runtime.way_us = 9;
    assert_close(transport_runtime(&f.cluster).way_us, 9, 0);
    assert_close(now.sum_gbyte_per_s, 3, 0);
    assert_close(now.encode_gbyte_per_s, typical.encode_gbyte_per_s, 0);
    f.cluster.runtime.encode_gbyte_per_s = 9;
    assert_close(transport_runtime(&f.cluster).encode_gbyte_per_s, 9, 0);
    assert_close(now.coordination_us, typical.coordination_us, 0);
    f.cluster.runtime.message_us = 0;
    handmade_fix(&f, 972, 1e-3); /* a measured all-reduce includes its launch */
    assert_close(transport_runtime(&f.cluster).message_us, 0, 0);
}

static void ideal_and_one_device_alone_cost_nothing_that_was_not_measured(void **state) {
    (void)state;
    struct handmade f;
    nodes_of(&f, 2, 1, "v100", TRANSPORT_ideal);
    assert_close(transport_runtime(&f.cluster).message_us, 0, 0);
    assert_close(transport_nic_bytes_per_us(&f.cluster, 0), 1000, 0);
    assert_close(transport_nic_latency_us(&f.cluster, 0), 0, 0);
    nodes_of(&f, 1, 1, "v100", TRANSPORT_nccl);
    assert_close(transport_runtime(&f.cluster).message_us, 0, 0);
}

/* Bytes per us that a NIC of so many Gbit/s and so much latency leaves. */
static double rate(double gbit_per_s, double latency_us) {
    struct handmade f;
    nodes_of(&f, 2, 1, "v100", TRANSPORT_nccl);
    f.nodes[0].nic_gbit_per_s = gbit_per_s;
    f.nodes[0].nic_latency_us = latency_us;
    return transport_nic_bytes_per_us(&f.cluster, 0);
}

static void a_nic_is_tcp_or_rdma_by_its_latency(void **state) {
    (void)state;
    assert_close(rate(10, 30), 1250 * 1448.0 / 1538, EXACT);
    assert_close(rate(100, 25), 2500, EXACT);  /* TCP, whatever it runs over */
    assert_close(rate(400, 25), 10000, EXACT); /* four NICs */
    assert_close(rate(100, 5), 12000, EXACT);
    assert_close(rate(100, 0), 12000, EXACT);
    assert_close(rate(25, 0), 2500, EXACT);
    assert_close(rate(25, 10), 3000, EXACT);
    struct handmade f;
    nodes_of(&f, 2, 1, "v100", TRANSPORT_nccl);
    assert_close(transport_nic_latency_us(&f.cluster, 0), 30, 0);
    f.nodes[0].nic_gbit_per_s = 100;
    assert_close(transport_nic_latency_us(&f.cluster, 0), 5, 0);
    f.nodes[0].nic_latency_us = 25;
    f.cluster.runtime.goodput = 0.5; /* measured: no limit of ours */
    assert_close(transport_nic_bytes_per_us(&f.cluster, 0), 6250, EXACT);
}

static void a_link_is_tcp_if_either_end_is(void **state) {
    (void)state;
    struct handmade f;
    const struct link link = {0, 1, 50};
    nodes_of(&f, 2, 1, "v100", TRANSPORT_nccl);
    f.nodes[0].nic_latency_us = f.nodes[1].nic_latency_us = 5;
    assert_close(transport_link_bytes_per_us(&f.cluster, &link), 6000, EXACT);
    f.nodes[1].nic_latency_us = 50;
    assert_close(transport_link_bytes_per_us(&f.cluster, &link), 2500, EXACT);
}

static void corrections_scale_costs_and_rates(void **state) {
    (void)state;
    struct handmade f;
    nodes_of(&f, 2, 4, "v100", TRANSPORT_nccl);
    f.nodes[0].nic_latency_us = f.nodes[1].nic_latency_us = 5;
    const double message_us = transport_runtime(&f.cluster).message_us;
    const struct all_reduce_cost before = cost_on(&f, ALGORITHM_ring, 1 << 20);
    f.cluster.startup = 3; /* and 15 us of latency are still RDMA */
    f.cluster.transfer = 2;
    assert_close(transport_runtime(&f.cluster).message_us, 3 * message_us, EXACT);
    assert_close(transport_nic_latency_us(&f.cluster, 0), 15, EXACT);
    assert_close(transport_nic_bytes_per_us(&f.cluster, 0), 1000 * 0.96 / 2, EXACT);
    const struct all_reduce_cost after = cost_on(&f, ALGORITHM_ring, 1 << 20);
    assert_close(after.startup_us, 3 * before.startup_us, EXACT);
    assert_close(after.transfer_us, 2 * before.transfer_us, EXACT);
}

static void nccl_adds_steps_as_its_tables_say(void **state) {
    (void)state;
    const struct nccl_shape shape = {8, 2, 30, 1000, false};
    const struct all_reduce_lines ring = nccl_lines(&shape, ALGORITHM_ring),
                                  tree = nccl_lines(&shape, ALGORITHM_double_tree);
    assert_int_equal(ring.n, 2); /* LL128 is for NVLink */
    assert_int_equal(tree.n, 2);
    assert_int_equal(nccl_lines(&shape, ALGORITHM_halving_doubling).n, 0);
    assert_close(ring.line[0].startup_us, 6.6 + 10 * 1 + 4 * (2.7 + 30), EXACT);
    assert_close(ring.line[0].per_byte_us, 14.0 / 8 / 250, EXACT);
    assert_close(ring.line[1].startup_us, 8.4 + 10 * 5.7 + 4 * (14 + 60), EXACT);
    assert_close(ring.line[1].per_byte_us, 14.0 / 8 / 1000, EXACT);
    assert_close(tree.line[0].startup_us, 6.8 + 2 * (3 * 1 + 5 + 30), EXACT);
    assert_close(tree.line[0].per_byte_us, 2 / (1000 * 0.92 / 3.8), EXACT);
    assert_close(tree.line[1].startup_us, 2 * (3 * 28 + 28 + 60), EXACT);
    assert_close(tree.line[1].per_byte_us, 2 / 920.0, EXACT);
}

static void nccl_has_a_third_protocol_on_nvlink(void **state) {
    (void)state;
    const struct nccl_shape shape = {8, 1, 5, 240000, true};
    const struct all_reduce_lines ring = nccl_lines(&shape, ALGORITHM_ring),
                                  tree = nccl_lines(&shape, ALGORITHM_double_tree);
    assert_int_equal(ring.n, 3);
    assert_close(ring.line[0].startup_us, 6.6 + 14 * 0.6, EXACT);
    assert_close(ring.line[0].per_byte_us, 14.0 / 8 / 39000, EXACT); /* LL has a limit of its own */
    assert_close(ring.line[1].startup_us, 14 + 14 * 1.9, EXACT);
    assert_close(ring.line[1].per_byte_us, 14.0 / 8 / (0.92 * 240000), EXACT);
    assert_close(tree.line[1].startup_us, 14 + 2 * 7 * 1.25, EXACT);
    assert_close(tree.line[1].per_byte_us, 2 / (0.92 * 7 / 9 * 240000), EXACT);
}

static void nccl_takes_trees_for_small_messages_and_the_ring_for_large_ones(void **state) {
    (void)state;
    struct handmade f;
    nodes_of(&f, 8, 4, "v100", TRANSPORT_nccl);
    for (uint64_t bytes = 256; bytes <= 1 << 28; bytes *= 4) {
        double ring = time_on(&f, ALGORITHM_ring, bytes), tree = time_on(&f, ALGORITHM_double_tree, bytes);
        assert_close(time_on(&f, ALGORITHM_auto, bytes), fmin(ring, tree), EXACT);
        if (bytes == 256)
            assert_true(tree < ring);
        if (bytes == 1 << 28)
            assert_true(ring < tree);
    }
}

static void libnbc_takes_a_tree_below_64_kib_and_on_few_ranks(void **state) {
    (void)state;
    struct handmade f;
    nodes_of(&f, 4, 1, "cpu", TRANSPORT_mpi);
    assert_close(time_on(&f, ALGORITHM_auto, 65535), time_on(&f, ALGORITHM_tree, 65535), 0);
    assert_close(time_on(&f, ALGORITHM_auto, 65536), time_on(&f, ALGORITHM_ring, 65536), 0);
    nodes_of(&f, 3, 1, "cpu", TRANSPORT_mpi);
    assert_close(time_on(&f, ALGORITHM_auto, 1 << 26), time_on(&f, ALGORITHM_tree, 1 << 26), 0);
}

static void gloo_and_ps_lite_take_the_ring(void **state) {
    (void)state;
    const enum transport transports[] = {TRANSPORT_gloo, TRANSPORT_ps_lite};
    for (int i = 0; i < 2; i++) {
        struct handmade f;
        nodes_of(&f, 4, 1, "cpu", transports[i]);
        for (uint64_t bytes = 256; bytes <= 1 << 28; bytes *= 16)
            assert_close(time_on(&f, ALGORITHM_auto, bytes), time_on(&f, ALGORITHM_ring, bytes), 0);
    }
}

/* A step of a ring waits for the one that sends to it, not for the slowest pair: the longest way for a piece leaves
 * each node at most twice. */
static void a_ring_pays_the_latency_of_a_nic_twice_a_node(void **state) {
    (void)state;
    struct handmade f;
    nodes_of(&f, 3, 4, "cpu", TRANSPORT_mpi);
    assert_close(cost_on(&f, ALGORITHM_ring, 1 << 20).startup_us, 2 * 3 * 30, EXACT);
    nodes_of(&f, 3, 1, "cpu", TRANSPORT_mpi);
    assert_close(cost_on(&f, ALGORITHM_ring, 1 << 20).startup_us, 2 * 2 * 30, EXACT);
}

static void a_gather_goes_as_each_library_does_it(void **state) {
    (void)state;
    struct handmade f;
    const struct nccl_shape shape = {8, 2, 30, 1000, false};
    const struct all_reduce_lines lines = nccl_lines(&shape, ALGORITHM_all_gather);
    assert_int_equal(lines.n, 2);
    assert_close(lines.line[1].startup_us, 8.4 + 6 * 5.7 + 1 * (14 + 60), EXACT);
    assert_close(lines.line[1].per_byte_us, 7 / 1000.0, EXACT);
    nodes_of(&f, 3, 4, "cpu", TRANSPORT_gloo);
    double rate = transport_nic_bytes_per_us(&f.cluster, 0), sum = 12 * (1 << 20) / 6500.0;
    assert_close(cost_on(&f, ALGORITHM_all_gather, 1 << 20).startup_us, 3 * 30 + sum, EXACT);
    assert_close(cost_on(&f, ALGORITHM_all_gather, 1 << 20).hold_us, 11 * (1 << 20) / rate, EXACT);
    nodes_of(&f, 3, 4, "cpu", TRANSPORT_mpi); /* every device takes 8 slices from outside */
    rate = transport_nic_bytes_per_us(&f.cluster, 0);
    assert_close(cost_on(&f, ALGORITHM_all_gather, 1 << 20).startup_us, 30 + sum, EXACT);
    assert_close(cost_on(&f, ALGORITHM_all_gather, 1 << 20).hold_us, 4 * 8 * (1 << 20) / rate, EXACT);
}

static void the_bound_rests_on_what_is_described(void **state) {
    (void)state;
    struct handmade f;
    struct error err;
    struct cost ideal, typical;
    nodes_of(&f, 4, 2, "v100", TRANSPORT_ideal);
    assert_ok(cost_init(&ideal, &f.cluster, &err));
    f.cluster.transport = TRANSPORT_nccl;
    assert_ok(cost_init(&typical, &f.cluster, &err));
    assert_close(typical.limit_nic_bytes_per_us[0], ideal.nic_bytes_per_us[0], 0);
    assert_close(typical.limit_push_us + typical.limit_message_us, 0, 0);
    assert_close(ideal.limit_all_reduce_wire, 1, EXACT);
    assert_close(typical.limit_all_reduce_wire, 1.5 + 2 / 12.0,
                 EXACT); /* NCCL's trees move 2; hierarchical ones this */
    assert_true(typical.nic_bytes_per_us[0] < ideal.nic_bytes_per_us[0]);
    cost_release(&typical);
    cost_release(&ideal);
}

static void people_are_told_which_figures_are_typical(void **state) {
    (void)state;
    struct handmade f;
    char text[TRANSPORT_FIGURES_TEXT];
    nodes_of(&f, 2, 1, "v100", TRANSPORT_nccl);
    assert_string_equal(transport_typical_figures(&f.cluster, text),
                        "all-reduce, launch, coordination, push and pull, copy, sum, goodput");
    assert_non_null(transport_known_error(&f.cluster).runs);
    f.cluster.runtime = (struct runtime){.message_us = 1, .push_us = 1, .copy_gbyte_per_s = 1, .goodput = 0.9};
    assert_string_equal(transport_typical_figures(&f.cluster, text), "all-reduce, coordination, sum");
    f.cluster.transport = TRANSPORT_ideal;
    assert_string_equal(transport_typical_figures(&f.cluster, text), "");
    f.cluster.transport = TRANSPORT_gloo;
    assert_null(transport_known_error(&f.cluster).runs);
}

static void encoders_are_proposed_where_a_worker_has_them(void **state) {
    (void)state;
    static const struct {
        enum transport transport;
        enum encoding last;
        enum lossiness most;
    } known[] = {{TRANSPORT_ideal, ENCODING_powersgd, LOSSY_any},
                 {TRANSPORT_mpi, ENCODING_powersgd, LOSSY_any},
                 {TRANSPORT_nccl, ENCODING_powersgd, LOSSY_any},
                 {TRANSPORT_gloo, ENCODING_bf16, LOSSY_half},
                 {TRANSPORT_ps_lite, ENCODING_bf16, LOSSY_half}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct handmade f;
        nodes_of(&f, 2, 1, "v100", known[i].transport);
        assert_int_equal(transport_encodings(&f.cluster), (2u << known[i].last) - 1);
        assert_int_equal(transport_lossiness(&f.cluster), known[i].most);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_say_the_transport_that_nobody_names),
        cmocka_unit_test(what_was_measured_comes_before_what_is_typical),
        cmocka_unit_test(ideal_and_one_device_alone_cost_nothing_that_was_not_measured),
        cmocka_unit_test(a_nic_is_tcp_or_rdma_by_its_latency),
        cmocka_unit_test(a_link_is_tcp_if_either_end_is),
        cmocka_unit_test(corrections_scale_costs_and_rates),
        cmocka_unit_test(nccl_adds_steps_as_its_tables_say),
        cmocka_unit_test(nccl_has_a_third_protocol_on_nvlink),
        cmocka_unit_test(nccl_takes_trees_for_small_messages_and_the_ring_for_large_ones),
        cmocka_unit_test(libnbc_takes_a_tree_below_64_kib_and_on_few_ranks),
        cmocka_unit_test(gloo_and_ps_lite_take_the_ring),
        cmocka_unit_test(a_ring_pays_the_latency_of_a_nic_twice_a_node),
        cmocka_unit_test(a_gather_goes_as_each_library_does_it),
        cmocka_unit_test(the_bound_rests_on_what_is_described),
        cmocka_unit_test(encoders_are_proposed_where_a_worker_has_them),
        cmocka_unit_test(people_are_told_which_figures_are_typical),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
