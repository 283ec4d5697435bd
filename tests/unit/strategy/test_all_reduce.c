/* All-reduce costs against MG-WFBP's table 2 and against curves worked out by hand. */
#include <math.h>

#include "strategy/cost/cost.h"
#include "tests/support/check.h"
#include "tests/support/strategy/handmade_cluster.h"

#define EXACT 1e-12

static struct all_reduce_cost cost_on(const struct handmade *f, enum algorithm algorithm, uint64_t bytes) {
    struct error err;
    struct cost cost;
    assert_ok(cost_init(&cost, &f->cluster, &err));
    struct all_reduce_cost c = all_reduce_cost(&cost.all_reduce, algorithm, bytes);
    cost_release(&cost);
    return c;
}

static void expect(const struct handmade *f, enum algorithm algorithm, double a, double b) {
    struct all_reduce_cost c = cost_on(f, algorithm, 1000000);
    assert_close(c.startup_us, a, EXACT);
    assert_close(c.transfer_us, b * 1e6, EXACT);
}

/* 8 nodes, alpha = 50, beta = 1/1000, gamma = 1/4000. */
static void eight_nodes(struct handmade *f) {
    handmade_cluster(f, 8);
    for (int i = 0; i < 8; i++)
        f->nodes[i].nic_latency_us = i == 3 ? 50 : 20;
    f->cluster.runtime.sum_gbyte_per_s = 4;
    handmade_number_devices(f);
}

static void formulas_are_those_of_table_2(void **state) {
    (void)state;
    struct handmade f;
    const double alpha = 50, beta = 1e-3, gamma = 0.25e-3, n = 8;
    eight_nodes(&f);
    expect(&f, ALGORITHM_ring, 2 * (n - 1) * alpha, 2 * (n - 1) / n * beta + (n - 1) / n * gamma);
    expect(&f, ALGORITHM_tree, 2 * alpha * 3, (2 * beta + gamma) * 3);
    expect(&f, ALGORITHM_double_tree, 2 * alpha * 3, beta + gamma);
    expect(&f, ALGORITHM_recursive_doubling, alpha * 3, (beta + gamma) * 3);
    expect(&f, ALGORITHM_halving_doubling, 2 * alpha * 3, 2 * beta - (2 * beta + gamma) / n + gamma);
    expect(&f, ALGORITHM_hierarchical, 2 * (n - 1) * alpha, 2 * (n - 1) / n * beta + (n - 1) / n * gamma);
}

/* 7 steps of the bytes of one device, then 8 slices are added. */
static void a_gather_has_half_the_steps_of_a_ring_and_whole_slices(void **state) {
    (void)state;
    struct handmade f;
    eight_nodes(&f);
    const double added_us = 8 * 1e6 / 4000;
    expect(&f, ALGORITHM_all_gather, 7 * 50 + added_us, 7 * 1e-3);
    f.cluster.runtime.sum_gbyte_per_s = 0;
    expect(&f, ALGORITHM_all_gather, 7 * 50, 7 * 1e-3);
    const struct all_reduce_cost ring = cost_on(&f, ALGORITHM_ring, 8000000);
    expect(&f, ALGORITHM_all_gather, ring.startup_us / 2, ring.transfer_us / 2 / 1e6);
}

static void goodput_and_the_narrowest_nic_or_link_set_the_rate(void **state) {
    (void)state;
    struct handmade f;
    handmade_cluster(&f, 2);
    f.cluster.runtime.goodput = 0.5;
    handmade_number_devices(&f);
    expect(&f, ALGORITHM_ring, 0, 1e-3 / 0.5);
    f.nodes[1].nic_gbit_per_s = 4;
    expect(&f, ALGORITHM_ring, 0, 2e-3 / 0.5);
    f.links[0] = (struct link){0, 1, 1};
    f.cluster.n_links = 1;
    expect(&f, ALGORITHM_ring, 0, 8e-3 / 0.5);
}

static void one_device_needs_no_all_reduce(void **state) {
    (void)state;
    struct handmade f;
    handmade_cluster(&f, 1);
    handmade_fix(&f, 100, 1);
    handmade_number_devices(&f);
    for (int a = 0; a < ALGORITHM_COUNT; a++)
        expect(&f, (enum algorithm)a, 0, 0);
}

/* 4 devices on each of 2 nodes; device link 500 bytes a microsecond, slower than the NIC's 1000. */
static void devices_of_a_node_share_its_nic_and_use_its_link(void **state) {
    (void)state;
    struct handmade f;
    handmade_cluster(&f, 2);
    for (int i = 0; i < 2; i++) {
        f.nodes[i].devices = 4;
        f.nodes[i].nic_latency_us = 50;
        f.nodes[i].device_link_gbyte_per_s = 0.5;
    }
    f.cluster.runtime.sum_gbyte_per_s = 4;
    handmade_number_devices(&f);
    const double gamma = 0.25e-3;
    expect(&f, ALGORITHM_ring, 2 * 7 * 50, 7.0 / 8 * (2 * 2e-3 + gamma));
    expect(&f, ALGORITHM_tree, 2 * 50, (2 * 2e-3 + gamma) * 3);
    expect(&f, ALGORITHM_recursive_doubling, 50, (4 * 1e-3 + gamma) + 2 * (2e-3 + gamma));
    expect(&f, ALGORITHM_hierarchical, 2 * 50, 3 * (2 * 2e-3 + gamma) + 0.5 * (2 * 1e-3 + gamma));
}

static void one_node_of_several_devices_needs_no_nic(void **state) {
    (void)state;
    struct handmade f;
    handmade_cluster(&f, 1);
    f.nodes[0].devices = 4;
    f.nodes[0].nic_latency_us = 50;
    f.nodes[0].device_link_gbyte_per_s = 2;
    handmade_number_devices(&f);
    expect(&f, ALGORITHM_ring, 0, 2 * 3.0 / 4 * 0.5e-3);
}

static void recursive_algorithms_fold_in_what_exceeds_a_power_of_two(void **state) {
    (void)state;
    struct handmade f;
    handmade_cluster(&f, 6);
    for (int i = 0; i < 6; i++)
        f.nodes[i].nic_latency_us = 50;
    handmade_number_devices(&f);
    expect(&f, ALGORITHM_recursive_doubling, 50 * 4, 4 * 1e-3);
    expect(&f, ALGORITHM_halving_doubling, 50 * 6, 2e-3 * 3 / 4 + 2e-3);
    expect(&f, ALGORITHM_tree, 2 * 50 * 3, 2e-3 * 3);
}

static void a_fixed_line_overrides_everything(void **state) {
    (void)state;
    const struct measurement points[] = {{OPERATION_all_reduce, ALGORITHM_ring, 8, 1000, 5, 0, 0}};
    struct handmade f;
    eight_nodes(&f);
    handmade_fix(&f, 972, 1.97e-3);
    f.cluster.measurements = points;
    f.cluster.n_measurements = 1;
    for (int a = 0; a < ALL_REDUCE_COUNT; a++)
        expect(&f, (enum algorithm)a, 972, 1.97e-3);
}

/* Half of 972 + 8 * 10 ns a byte; half of 8 * 1.97 ns would be more than the NIC passes: 7 bytes at 1 GB/s. */
static void a_gather_takes_half_of_a_fixed_line_but_no_less_than_its_bytes(void **state) {
    (void)state;
    struct handmade f;
    eight_nodes(&f);
    f.cluster.runtime.sum_gbyte_per_s = 0;
    handmade_fix(&f, 972, 10e-3);
    expect(&f, ALGORITHM_all_gather, 486, 40e-3);
    handmade_fix(&f, 972, 1.5e-3);
    expect(&f, ALGORITHM_all_gather, 486, 7e-3);
}

static struct all_reduce_cost half_on(const struct handmade *f, enum half half, uint64_t bytes) {
    struct error err;
    struct cost cost;
    assert_ok(cost_init(&cost, &f->cluster, &err));
    const struct all_reduce_cost c = all_reduce_half_cost(&cost.all_reduce, half, bytes);
    cost_release(&cost);
    return c;
}

/* Two halves take as long as a ring: by formula and by NCCL's lines, each at its cheapest, and where all-reduces are
 * fixed, however fast. */
static void two_halves_take_as_long_as_a_ring(void **state) {
    (void)state;
    static const enum transport transports[] = {TRANSPORT_ideal, TRANSPORT_nccl, TRANSPORT_gloo};
    struct handmade f;
    for (int i = 0; i < 4; i++)
        for (uint64_t bytes = 1000; bytes <= 100000000; bytes *= 10) {
            eight_nodes(&f);
            if (i < 3)
                f.cluster.transport = transports[i];
            else
                handmade_fix(&f, 972, 0.1e-3);
            const struct all_reduce_cost ring = cost_on(&f, ALGORITHM_ring, bytes),
                                         half = half_on(&f, HALF_gather, bytes);
            assert_close(2 * half.startup_us, ring.startup_us, EXACT);
            assert_close(2 * half.transfer_us, ring.transfer_us, EXACT);
            assert_close(2 * half.hold_us, ring.hold_us, EXACT);
        }
}

static const struct measurement RING[] = {
    {OPERATION_all_reduce, ALGORITHM_ring, 4, 1, 1, 0, 0},
    {OPERATION_all_reduce, ALGORITHM_ring, 8, 1000, 100, 0, 0},
    {OPERATION_all_reduce, ALGORITHM_ring, 8, 100000, 400, 0, 0},
    {OPERATION_all_reduce, ALGORITHM_ring, 8, 1000000, 1300, 0, 0},
};

/* Four nodes of two devices with 1000 bytes a microsecond of NIC: a ring has one flow through each NIC, and so have its
 * halves, whatever MPI's own all-gather does. */
static void halves_share_a_nic_with_no_other_device_of_the_node(void **state) {
    (void)state;
    static const enum transport transports[] = {TRANSPORT_ideal, TRANSPORT_mpi, TRANSPORT_gloo};
    const struct measurement fast[] = {{OPERATION_all_reduce, ALGORITHM_ring, 8, 1000, 1, 0, 0},
                                       {OPERATION_all_reduce, ALGORITHM_ring, 8, 1000000, 2, 0, 0}};
    for (int i = 0; i < 3; i++) {
        struct handmade f;
        handmade_cluster(&f, 4);
        for (int n = 0; n < 4; n++) {
            f.nodes[n].devices = 2;
            f.nodes[n].device_link_gbyte_per_s = 100;
        }
        handmade_number_devices(&f);
        f.cluster.runtime.sum_gbyte_per_s = 4;
        f.cluster.transport = transports[i];
        const double nic = 1 / all_reduce_narrowest_bytes_per_us(&f.cluster);
        for (enum half half = HALF_scatter; half <= HALF_gather; half++) {
            f.cluster.n_measurements = 0;
            assert_close(half_on(&f, half, 1000000).transfer_us, 1e6 * 7 / 8 * (nic + 0.25e-3 / 2), EXACT);
            f.cluster.measurements = fast;
            f.cluster.n_measurements = 2;
            assert_close(half_on(&f, half, 1000000).transfer_us, 1e6 * 7 / 8 * nic, EXACT);
        }
    }
}

static const struct measurement SCATTER_AND_GATHER[] = {
    {OPERATION_reduce_scatter, ALGORITHM_auto, 4, 1000, 1, 0, 0},
    {OPERATION_reduce_scatter, ALGORITHM_auto, 8, 1000, 60, 0, 0},
    {OPERATION_reduce_scatter, ALGORITHM_auto, 8, 100000, 260, 0, 0},
    {OPERATION_reduce_scatter, ALGORITHM_auto, 8, 1000000, 900, 0, 0},
    {OPERATION_all_gather, ALGORITHM_auto, 8, 1000, 50, 0, 0},
    {OPERATION_all_gather, ALGORITHM_auto, 8, 100000, 240, 0, 0},
};

static double half_us(const struct handmade *f, enum half half, uint64_t bytes) {
    const struct all_reduce_cost c = half_on(f, half, bytes);
    return c.startup_us + c.transfer_us;
}

static void a_measured_half_is_met_at_its_points_whatever_all_reduces_take(void **state) {
    (void)state;
    struct measurement both[10];
    struct handmade f;
    for (uint32_t rings = 0; rings <= 4; rings += 4) {
        eight_nodes(&f);
        for (uint32_t i = 0; i < 10; i++)
            both[i] = i < rings ? RING[i] : SCATTER_AND_GATHER[i < rings + 6 ? i - rings : 0];
        f.cluster.measurements = both;
        f.cluster.n_measurements = rings + 6;
        for (uint32_t i = 1; i < 6; i++) {
            const struct measurement *m = &SCATTER_AND_GATHER[i];
            const enum half half = m->operation == OPERATION_all_gather ? HALF_gather : HALF_scatter;
            assert_close(half_us(&f, half, m->bytes), m->time_us, EXACT);
        }
        assert_close(half_us(&f, HALF_scatter, 50500), (60.0 + 260) / 2, EXACT);
        assert_close(half_us(&f, HALF_scatter, 10), 60, EXACT);
        assert_true(half_on(&f, HALF_gather, 100000).startup_us <= 50);
        const double ring_us = cost_on(&f, ALGORITHM_ring, 100000).startup_us;
        f.cluster.n_measurements = rings + 4; /* without all-gathers */
        assert_close(half_us(&f, HALF_scatter, 100000), 260, EXACT);
        assert_close(half_on(&f, HALF_gather, 100000).startup_us, ring_us / 2, EXACT);
    }
    handmade_fix(&f, 972, 10e-3);
    assert_close(half_us(&f, HALF_scatter, 1000), (972 + 10) / 2.0, EXACT);
}

/* A reduce-scatter and an all-gather are what one all-reduce is, so both together count. */
static void the_least_of_all_reduces_is_below_that_of_two_halves(void **state) {
    (void)state;
    struct error err;
    struct cost cost;
    struct handmade f;
    eight_nodes(&f);
    f.cluster.measurements = SCATTER_AND_GATHER;
    f.cluster.n_measurements = 6;
    assert_ok(cost_init(&cost, &f.cluster, &err));
    const double least = all_reduce_least_per_byte_us(&cost.all_reduce);
    const double least_startup_us = all_reduce_least_startup_us(&cost.all_reduce);
    assert_true(least > 0 && least_startup_us > 0);
    for (uint64_t bytes = 1; bytes < 1000000000; bytes *= 7) {
        const struct all_reduce_cost scatter = all_reduce_half_cost(&cost.all_reduce, HALF_scatter, bytes);
        const struct all_reduce_cost gather = all_reduce_half_cost(&cost.all_reduce, HALF_gather, bytes);
        assert_true(scatter.hold_us + gather.hold_us >= least * (double)bytes * (1 - EXACT));
        assert_true(fmin(scatter.startup_us, gather.startup_us) >= least_startup_us * (1 - 1e-9));
    }
    cost_release(&cost);
}

static double total(struct all_reduce_cost c) {
    return c.startup_us + c.transfer_us;
}

static void with_ring_curve(struct handmade *f) {
    eight_nodes(f);
    f->cluster.measurements = RING;
    f->cluster.n_measurements = 4;
}

/* A gather of M takes half of a ring of 8 M; the curve's last slope of 1 ns a byte leaves 4 ns, but 7 must pass. */
static void a_gather_takes_half_of_a_measured_ring(void **state) {
    (void)state;
    struct handmade f;
    with_ring_curve(&f);
    f.cluster.runtime.sum_gbyte_per_s = 0;
    for (int i = 0; i < 8; i++)
        f.nodes[i].nic_gbit_per_s = 80;
    const struct all_reduce_cost ring = cost_on(&f, ALGORITHM_ring, 8 * 20000);
    const struct all_reduce_cost gather = cost_on(&f, ALGORITHM_all_gather, 20000);
    assert_close(gather.startup_us, ring.startup_us / 2, EXACT);
    assert_close(gather.transfer_us, ring.transfer_us / 2, EXACT);
    for (int i = 0; i < 8; i++)
        f.nodes[i].nic_gbit_per_s = 8;
    assert_close(cost_on(&f, ALGORITHM_all_gather, 1000000).transfer_us, 7000, EXACT);
}

static void a_curve_is_met_at_its_points_and_straight_in_bytes_between(void **state) {
    (void)state;
    struct handmade f;
    with_ring_curve(&f);
    for (int i = 1; i < 4; i++)
        assert_close(total(cost_on(&f, ALGORITHM_ring, RING[i].bytes)), RING[i].time_us, EXACT);
    assert_close(total(cost_on(&f, ALGORITHM_ring, 50500)), (100.0 + 400) / 2, EXACT);
    assert_close(total(cost_on(&f, ALGORITHM_ring, 10000)), 100 + 300 * 9.0 / 99, EXACT);
    /* Constant below, the last segment's slope of 1 ns a byte above. */
    assert_close(total(cost_on(&f, ALGORITHM_ring, 10)), 100, EXACT);
    assert_close(total(cost_on(&f, ALGORITHM_ring, 3000000)), 1300 + 2000, EXACT);
}

static void a_curves_transfer_grows_and_never_beats_its_best_rate(void **state) {
    (void)state;
    struct handmade f;
    with_ring_curve(&f);
    double before = 0;
    for (uint64_t bytes = 1; bytes < 100000000; bytes += bytes / 3 + 1) {
        struct all_reduce_cost c = cost_on(&f, ALGORITHM_ring, bytes);
        assert_true(c.startup_us >= 0 && c.startup_us <= 100);
        assert_true(c.transfer_us >= before && c.transfer_us >= 1e-3 * (double)bytes * (1 - EXACT));
        before = c.transfer_us;
    }
}

static void noise_does_not_make_larger_messages_cheaper(void **state) {
    (void)state;
    const struct measurement noisy[] = {{OPERATION_all_reduce, ALGORITHM_auto, 8, 1000, 100, 0, 0},
                                        {OPERATION_all_reduce, ALGORITHM_auto, 8, 2000, 90, 0, 0},
                                        {OPERATION_all_reduce, ALGORITHM_auto, 8, 4000, 80, 0, 0}};
    struct handmade f;
    eight_nodes(&f);
    f.cluster.measurements = noisy;
    f.cluster.n_measurements = 3;
    double before = 0;
    for (uint64_t bytes = 500; bytes < 100000; bytes += 500) {
        double now = total(cost_on(&f, ALGORITHM_auto, bytes));
        assert_true(now >= before * (1 - EXACT));
        before = now;
    }
    /* A flat end says nothing about growth: proportional then. */
    assert_close(total(cost_on(&f, ALGORITHM_auto, 8000)), 2 * cbrt(100.0 * 80 * 90), EXACT);
}

/* The tree takes half the ring's time for 1000 bytes and a fifth for 100000; at 10000 bytes the ring takes 400. */
static void a_size_that_only_another_algorithm_has_fills_a_gap(void **state) {
    const struct measurement points[] = {
        {OPERATION_all_reduce, ALGORITHM_ring, 4, 3000, 1, 0, 0},
        {OPERATION_all_reduce, ALGORITHM_ring, 8, 1000, 100, 0, 0},
        {OPERATION_all_reduce, ALGORITHM_ring, 8, 10000, 400, 0, 0},
        {OPERATION_all_reduce, ALGORITHM_ring, 8, 100000, 1000, 0, 0},
        {OPERATION_all_reduce, ALGORITHM_tree, 8, 1000, 50, 0, 0},
        {OPERATION_all_reduce, ALGORITHM_tree, 8, 100000, 200, 0, 0},
    };
    (void)state;
    struct handmade f;
    eight_nodes(&f);
    f.cluster.measurements = points;
    f.cluster.n_measurements = sizeof points / sizeof *points;
    assert_close(total(cost_on(&f, ALGORITHM_ring, 3000)), 100 + 300 * 2.0 / 9, EXACT);
    assert_close(total(cost_on(&f, ALGORITHM_tree, 10000)), 400 * sqrt(1.0 / 2 / 5), EXACT);
}

static void unmeasured_algorithms_keep_their_formula(void **state) {
    (void)state;
    struct handmade f;
    with_ring_curve(&f);
    expect(&f, ALGORITHM_tree, 2 * 50 * 3, (2e-3 + 0.25e-3) * 3);
}

static void auto_takes_the_cheapest_for_the_size(void **state) {
    (void)state;
    struct handmade f;
    eight_nodes(&f);
    for (uint64_t bytes = 1; bytes < 100000000; bytes *= 10) {
        double best = INFINITY;
        for (int a = ALGORITHM_auto + 1; a < ALGORITHM_COUNT; a++)
            best = fmin(best, total(cost_on(&f, (enum algorithm)a, bytes)));
        assert_close(total(cost_on(&f, ALGORITHM_auto, bytes)), best, EXACT);
    }
    with_ring_curve(&f);
    assert_close(total(cost_on(&f, ALGORITHM_auto, 1000)), 100, EXACT);
}

static void the_least_per_byte_is_below_every_cost(void **state) {
    (void)state;
    struct error err;
    for (int measured = 0; measured < 2; measured++) {
        struct handmade f;
        struct cost cost;
        eight_nodes(&f);
        if (measured)
            with_ring_curve(&f);
        assert_ok(cost_init(&cost, &f.cluster, &err));
        double least = all_reduce_least_per_byte_us(&cost.all_reduce);
        assert_true(least > 0);
        for (int a = 0; a < ALGORITHM_COUNT; a++)
            for (uint64_t bytes = 1; bytes < 1000000000; bytes *= 7)
                assert_true(all_reduce_cost(&cost.all_reduce, (enum algorithm)a, bytes).hold_us >=
                            least * (double)bytes * (1 - EXACT));
        cost_release(&cost);
    }
}

/* ---- bursts ---- */

enum { SIZES = 11 };

/* A curve as bench would see it where each part holds the network for `per_byte` and a NIC sends a burst in burst_us.
 */
static void measure_with_bursts(struct measurement *points, enum algorithm algorithm, uint32_t devices, double latency,
                                double per_byte, double parts, double burst_us) {
    for (int i = 0; i < SIZES; i++) {
        double bytes = 4 * pow(4, i), hold = per_byte * bytes;
        double time = fmax(fmax(latency, hold), latency + parts * (hold - burst_us));
        points[i] = (struct measurement){OPERATION_all_reduce, algorithm, devices, (uint64_t)bytes, time, 0, 0};
    }
}

static double bytes_of(int i) {
    return 4 * pow(4, i);
}

/* Four nodes: a ring moves 1.5 M through each NIC, a tree 2 M into the root and out of it again. */
static void a_curve_seen_through_bursts_gives_back_what_it_was_made_of(void **state) {
    (void)state;
    static const double wire[] = {1.5e-3, 2e-3};
    for (double latency = 50; latency < 2000; latency *= 3) {
        for (double burst = 4000; burst < 1e6; burst *= 2) {
            struct measurement points[3 * SIZES];
            struct handmade f;
            handmade_cluster(&f, 4);
            handmade_number_devices(&f);
            measure_with_bursts(points, ALGORITHM_ring, 4, latency, wire[0], 1, burst * 1e-3);
            measure_with_bursts(points + SIZES, ALGORITHM_tree, 4, latency, wire[1], 2, burst * 1e-3);
            measure_with_bursts(points + 2 * SIZES, ALGORITHM_auto, 4, latency, wire[0] / 2, 1, burst * 1e-3);
            for (int i = 2 * SIZES; i < 3 * SIZES; i++)
                points[i].operation = OPERATION_reduce_scatter;
            f.cluster.measurements = points;
            f.cluster.n_measurements = 3 * SIZES;
            for (int i = 2 * SIZES; i < 3 * SIZES; i++) {
                struct all_reduce_cost c = half_on(&f, HALF_scatter, points[i].bytes);
                assert_close(c.hold_us, wire[0] / 2 * bytes_of(i % SIZES), 1e-3);
                assert_close(c.startup_us, points[2 * SIZES].time_us, EXACT);
                assert_close(total(c), points[i].time_us, EXACT);
            }
            for (int i = 0; i < 2 * SIZES; i++) {
                struct all_reduce_cost c = cost_on(&f, points[i].algorithm, points[i].bytes);
                assert_close(c.back_us, i < SIZES ? 0 : c.hold_us, EXACT);
                if (c.back_us > 2 * burst * 1e-3)
                    assert_true(c.rest_us <= 1e-3 * c.transfer_us);
                assert_close(c.hold_us, wire[i >= SIZES] * bytes_of(i % SIZES), 1e-3);
                assert_close(c.startup_us, points[i < SIZES ? 0 : SIZES].time_us, EXACT);
                assert_close(total(c), points[i].time_us, EXACT);
            }
        }
    }
}

/* Eight nodes: the root takes in 3 M and sends 3 M; devices 3, 5, 6 and 7 get the sum another 3 M later. */
static void a_tree_waits_for_its_last_devices_and_holds_nothing(void **state) {
    (void)state;
    struct measurement points[2 * SIZES];
    struct handmade f;
    handmade_cluster(&f, 8);
    handmade_number_devices(&f);
    measure_with_bursts(points, ALGORITHM_tree, 8, 50, 4.5e-3, 2, 100);
    measure_with_bursts(points + SIZES, ALGORITHM_ring, 8, 50, 1.75e-3, 1, 100);
    f.cluster.measurements = points;
    f.cluster.n_measurements = 2 * SIZES;
    for (int i = 8; i < SIZES; i++) {
        struct all_reduce_cost c = cost_on(&f, ALGORITHM_tree, points[i].bytes);
        assert_close(c.hold_us, 3e-3 * bytes_of(i), EXACT);
        assert_close(c.back_us, 3e-3 * bytes_of(i), EXACT);
        assert_close(c.rest_us, 3e-3 * bytes_of(i), 0.15); /* the burst as the curves show it */
        assert_close(total(c), points[i].time_us, EXACT);
    }
}

/* A ring of four moves 1.5e-3 us a byte. 100 KB more than the smallest message hold a NIC for 150 us and took 50 us
 * longer: the burst is worth 100 us. 300 KB more hold it for 450 us and took 350 us longer: the same. So the largest
 * holds NICs for 450 us.
 */
static void the_burst_is_what_messages_are_ahead_of_the_smallest(void **state) {
    (void)state;
    struct measurement points[] = {{OPERATION_all_reduce, ALGORITHM_ring, 4, 1000, 100, 0, 0},
                                   {OPERATION_all_reduce, ALGORITHM_ring, 4, 101000, 150, 0, 0},
                                   {OPERATION_all_reduce, ALGORITHM_ring, 4, 301000, 450, 0, 0}};
    struct handmade f;
    struct cost cost;
    struct error err;
    handmade_cluster(&f, 4);
    handmade_number_devices(&f);
    f.cluster.measurements = points;
    f.cluster.n_measurements = 3;
    assert_ok(cost_init(&cost, &f.cluster, &err));
    assert_close(cost.all_reduce.burst_us, 100, EXACT);
    assert_close(all_reduce_cost(&cost.all_reduce, ALGORITHM_ring, 301000).hold_us, 450, EXACT);
    cost_release(&cost);
}

/* The NICs pass 50 us of bytes at once. The middle point took 400 us longer than the smallest and so held them for 450,
 * though its bytes need 151.5 only; the largest 550. The smallest is sent within the latency, in 1.5 us. */
static void a_point_slower_than_its_bytes_holds_the_network_for_what_it_shows(void **state) {
    (void)state;
    struct measurement points[] = {{OPERATION_all_reduce, ALGORITHM_ring, 4, 1000, 100, 0, 0},
                                   {OPERATION_all_reduce, ALGORITHM_ring, 4, 101000, 500, 0, 0},
                                   {OPERATION_all_reduce, ALGORITHM_ring, 4, 201000, 600, 0, 0}};
    static const double hold_us[] = {1.5, 450, 550};
    struct arena arena = {0};
    struct all_reduce_table table;
    struct handmade f;
    struct error err;
    handmade_cluster(&f, 4);
    handmade_number_devices(&f);
    f.cluster.measurements = points;
    f.cluster.n_measurements = 3;
    assert_ok(all_reduce_init(&table, &f.cluster, 50, &arena, &err));
    for (int i = 0; i < 3; i++)
        assert_close(all_reduce_cost(&table, ALGORITHM_ring, points[i].bytes).hold_us, hold_us[i], EXACT);
    arena_release(&arena);
}

/* The library's choice is a tree up to 16 KB and a ring from there. */
static void auto_has_the_parts_of_the_algorithm_it_is_like(void **state) {
    (void)state;
    struct measurement points[3 * SIZES];
    struct handmade f;
    handmade_cluster(&f, 4);
    handmade_number_devices(&f);
    measure_with_bursts(points + SIZES, ALGORITHM_ring, 4, 200, 1.5e-3, 1, 50);
    measure_with_bursts(points + 2 * SIZES, ALGORITHM_tree, 4, 100, 2e-3, 2, 50);
    for (int i = 0; i < SIZES; i++) {
        points[i] = points[(i < 7 ? 2 : 1) * SIZES + i];
        points[i].algorithm = ALGORITHM_auto;
        points[i].time_us *= 1.01;
    }
    f.cluster.measurements = points;
    f.cluster.n_measurements = 3 * SIZES;
    assert_true(cost_on(&f, ALGORITHM_auto, 16384).back_us > 0);
    assert_true(cost_on(&f, ALGORITHM_auto, 65536).back_us == 0);
    assert_true(cost_on(&f, ALGORITHM_auto, 1 << 30).back_us == 0);
    assert_true(cost_on(&f, ALGORITHM_auto, 1).back_us > 0);
}

/* The ring of the curve cannot have moved more than its largest message shows, whatever the NIC is said to do. */
static void a_curve_faster_than_its_nics_is_believed(void **state) {
    (void)state;
    struct measurement points[SIZES];
    struct handmade f;
    handmade_cluster(&f, 4);
    handmade_number_devices(&f);
    measure_with_bursts(points, ALGORITHM_ring, 4, 20, 0.3e-3, 1, 50);
    f.cluster.measurements = points;
    f.cluster.n_measurements = SIZES;
    assert_close(cost_on(&f, ALGORITHM_ring, 1 << 20).hold_us, 0.3e-3 * (1 << 20), 1e-3);
}

static void without_bursts_a_message_holds_the_network_for_its_transfer(void **state) {
    (void)state;
    struct handmade f;
    with_ring_curve(&f);
    for (uint64_t bytes = 1; bytes < 100000000; bytes *= 7) {
        struct all_reduce_cost c = cost_on(&f, ALGORITHM_ring, bytes);
        assert_true(c.back_us == 0 && c.rest_us == 0 && c.hold_us == c.transfer_us);
    }
}

static void latencies_of_pushes_come_from_the_wire_or_from_measurements(void **state) {
    (void)state;
    const struct measurement points[] = {{OPERATION_push, ALGORITHM_auto, 2, 1000, 90, 0, 0},
                                         {OPERATION_push, ALGORITHM_auto, 2, 100000, 300, 0, 0}};
    struct error err;
    struct cost cost;
    struct handmade f;
    eight_nodes(&f);
    f.cluster.runtime.push_us = 30;
    assert_ok(cost_init(&cost, &f.cluster, &err));
    assert_close(cost_push_latency_us(&cost, 0, 1), 30, EXACT);
    assert_close(cost_push_latency_us(&cost, 0, 3), 50, EXACT);
    assert_close(cost_pull_latency_us(&cost, 2, 2), 30, EXACT);
    cost_release(&cost);
    f.cluster.measurements = points;
    f.cluster.n_measurements = 2;
    assert_ok(cost_init(&cost, &f.cluster, &err));
    assert_close(cost_push_latency_us(&cost, 0, 1), 90 - 1, EXACT);
    assert_close(cost_pull_latency_us(&cost, 0, 1), 30, EXACT);
    cost_release(&cost);
}

/* 62.5 bytes a microsecond: 1 KB and 16 KB take a latency, 64 KB what its bytes need, and the last is no longer asked,
 * though it seems to come at once. Who measures pushes is syncopate-worker-mpi. */
static void a_measured_push_curve_shows_bursts_and_whose_transport_it_was(void **state) {
    (void)state;
    const struct measurement points[] = {{OPERATION_push, ALGORITHM_auto, 2, 1024, 87, 0, 0},
                                         {OPERATION_push, ALGORITHM_auto, 2, 16384, 89, 0, 0},
                                         {OPERATION_push, ALGORITHM_auto, 2, 65536, 989, 0, 0},
                                         {OPERATION_push, ALGORITHM_auto, 2, 262144, 990, 0, 0}};
    struct error err;
    struct cost cost;
    struct handmade f;
    handmade_cluster(&f, 2);
    f.nodes[0].nic_gbit_per_s = 0.5;
    handmade_number_devices(&f);
    assert_ok(cost_init(&cost, &f.cluster, &err));
    assert_close(cost.burst_bytes, 0, 0);
    assert_true(isinf(cost.eager_bytes));
    cost_release(&cost);
    f.cluster.measurements = points;
    for (f.cluster.n_measurements = 1; f.cluster.n_measurements <= 4; f.cluster.n_measurements++) {
        assert_ok(cost_init(&cost, &f.cluster, &err));
        assert_close(cost.burst_bytes, f.cluster.n_measurements == 1 ? 0 : 16384 - 2 * 62.5, EXACT);
        assert_close(cost.eager_bytes, 65480, 0);
        cost_release(&cost);
    }
    f.nodes[0].nic_gbit_per_s = 8; /* pushes went between the first and the last: the slow one is not on the way */
    f.nodes[1].nic_gbit_per_s = 0.5;
    f.cluster.n_nodes = 3;
    f.nodes[2] = f.nodes[0];
    handmade_number_devices(&f);
    f.cluster.n_measurements = 2;
    assert_ok(cost_init(&cost, &f.cluster, &err));
    assert_close(cost.burst_bytes, 16384 - 2 * 1000, EXACT);
    cost_release(&cost);
    f.cluster.n_measurements = 0;
    f.cluster.runtime.eager_bytes = 4096;
    assert_ok(cost_init(&cost, &f.cluster, &err));
    assert_close(cost.eager_bytes, 4096, 0);
    assert_true(cost.connected && !cost.workers_serve);
    cost_release(&cost);
    f.cluster.transport = TRANSPORT_gloo; /* the hook's receivers ask beforehand */
    assert_ok(cost_init(&cost, &f.cluster, &err));
    assert_true(cost.connected && cost.workers_serve && isinf(cost.eager_bytes));
    cost_release(&cost);
}

static void a_cluster_without_devices_is_refused(void **state) {
    (void)state;
    struct error err;
    struct cost cost;
    struct handmade f;
    handmade_cluster(&f, 2);
    f.nodes[0].devices = f.nodes[1].devices = 0;
    handmade_number_devices(&f);
    assert_fails(cost_init(&cost, &f.cluster, &err), ST_INVALID, "no device");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas_are_those_of_table_2),
        cmocka_unit_test(a_gather_has_half_the_steps_of_a_ring_and_whole_slices),
        cmocka_unit_test(a_gather_takes_half_of_a_fixed_line_but_no_less_than_its_bytes),
        cmocka_unit_test(two_halves_take_as_long_as_a_ring),
        cmocka_unit_test(a_gather_takes_half_of_a_measured_ring),
        cmocka_unit_test(halves_share_a_nic_with_no_other_device_of_the_node),
        cmocka_unit_test(a_measured_half_is_met_at_its_points_whatever_all_reduces_take),
        cmocka_unit_test(the_least_of_all_reduces_is_below_that_of_two_halves),
        cmocka_unit_test(goodput_and_the_narrowest_nic_or_link_set_the_rate),
        cmocka_unit_test(one_device_needs_no_all_reduce),
        cmocka_unit_test(devices_of_a_node_share_its_nic_and_use_its_link),
        cmocka_unit_test(one_node_of_several_devices_needs_no_nic),
        cmocka_unit_test(recursive_algorithms_fold_in_what_exceeds_a_power_of_two),
        cmocka_unit_test(a_fixed_line_overrides_everything),
        cmocka_unit_test(a_curve_is_met_at_its_points_and_straight_in_bytes_between),
        cmocka_unit_test(a_curves_transfer_grows_and_never_beats_its_best_rate),
        cmocka_unit_test(noise_does_not_make_larger_messages_cheaper),
        cmocka_unit_test(a_size_that_only_another_algorithm_has_fills_a_gap),
        cmocka_unit_test(unmeasured_algorithms_keep_their_formula),
        cmocka_unit_test(auto_takes_the_cheapest_for_the_size),
        cmocka_unit_test(the_least_per_byte_is_below_every_cost),
        cmocka_unit_test(a_curve_seen_through_bursts_gives_back_what_it_was_made_of),
        cmocka_unit_test(a_tree_waits_for_its_last_devices_and_holds_nothing),
        cmocka_unit_test(the_burst_is_what_messages_are_ahead_of_the_smallest),
        cmocka_unit_test(a_point_slower_than_its_bytes_holds_the_network_for_what_it_shows),
        cmocka_unit_test(auto_has_the_parts_of_the_algorithm_it_is_like),
        cmocka_unit_test(a_curve_faster_than_its_nics_is_believed),
        cmocka_unit_test(without_bursts_a_message_holds_the_network_for_its_transfer),
        cmocka_unit_test(latencies_of_pushes_come_from_the_wire_or_from_measurements),
        cmocka_unit_test(a_measured_push_curve_shows_bursts_and_whose_transport_it_was),
        cmocka_unit_test(a_cluster_without_devices_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
