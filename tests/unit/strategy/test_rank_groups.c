/* What messages within groups of devices cost: against figures by hand, and on random uneven clusters against each
 * group read as a ring of its own. */
#include <math.h>

#include "base/rng.h"
#include "strategy/cost/cost.h"
#include "strategy/cost/transport.h"
#include "strategy/plan.h"
#include "tests/support/check.h"
#include "tests/support/strategy/handmade_cluster.h"

#define EXACT 1e-9
enum { MBYTE = 1000000 };

static void open_cost(struct handmade *h, struct cost *cost) {
    struct error err;
    handmade_number_devices(h);
    assert_ok(cost_init(cost, &h->cluster, &err));
}

static struct message within(uint32_t ranks, enum half half) {
    return (struct message){
        .bytes = MBYTE, .half = half, .other = NO_MESSAGE, .algorithm = ALGORITHM_ring, .ranks = ranks, .stride = 1};
}

/* Of shard groups of `shards` devices. */
static struct message among_replicas(uint32_t n_devices, uint32_t shards) {
    struct message m = within(n_devices / shards, HALF_replicas);
    m.stride = shards;
    return m;
}

static void expect(const struct cost *cost, struct message m, double startup_us, double transfer_us, bool stays) {
    const struct all_reduce_cost c = cost_all_reduce(cost, &m);
    assert_close(c.startup_us, startup_us, EXACT);
    assert_close(c.transfer_us, transfer_us, EXACT);
    assert_close(c.hold_us, transfer_us, EXACT);
    assert_int_equal(cost_stays_in_nodes(cost, &m), stays);
}

/* 4 nodes of 2 devices; 1000 bytes a microsecond through a NIC with 10 us of latency, 5000 between the devices. */
static void four_of_two(struct handmade *h) {
    handmade_cluster(h, 4);
    for (int i = 0; i < 4; i++) {
        h->nodes[i].devices = 2;
        h->nodes[i].nic_latency_us = 10;
        h->nodes[i].device_link_gbyte_per_s = 5;
    }
}

/* Half a ring of r devices takes r - 1 steps of 1 / r of the bytes. Two replicas' rings cross each NIC at once. */
static void groups_pay_for_the_hops_that_they_make(void **state) {
    (void)state;
    struct handmade h;
    struct cost cost;
    four_of_two(&h);
    open_cost(&h, &cost);
    for (int half = HALF_scatter; half <= HALF_gather; half++) {
        expect(&cost, within(2, (enum half)half), 0, 100, true);
        expect(&cost, within(4, (enum half)half), 3 * 10, 750, false);
    }
    expect(&cost, among_replicas(8, 2), 6 * 10, 2 * 2 * 3.0 / 4 * 500, false);
    expect(&cost, among_replicas(8, 4), 2 * 10, 2 * 2 * 1.0 / 2 * 250, false);
    cost_release(&cost);
}

/* Two layers of shards within a node: all replicas of a part are in other nodes, and four cross each NIC. */
static void as_many_replicas_cross_a_nic_as_the_node_has_devices(void **state) {
    (void)state;
    struct handmade h;
    struct cost cost;
    handmade_cluster(&h, 2);
    h.nodes[0].devices = h.nodes[1].devices = 4;
    open_cost(&h, &cost);
    expect(&cost, within(4, HALF_scatter), 0, 0, true); /* the device link is not described */
    expect(&cost, among_replicas(8, 4), 0, 4 * 250, false);
    expect(&cost, among_replicas(8, 2), 0, 2 * 2 * 3.0 / 4 * 500, false);
    cost_release(&cost);
}

/* Nodes of 4, 2 and 2 devices: of the groups of four one is within a node, and the other on two. */
static void the_slowest_group_counts(void **state) {
    (void)state;
    struct handmade h;
    struct cost cost;
    handmade_cluster(&h, 3);
    h.nodes[0].devices = 4;
    h.nodes[1].devices = h.nodes[2].devices = 2;
    open_cost(&h, &cost);
    expect(&cost, within(4, HALF_gather), 0, 750, false);
    expect(&cost, within(2, HALF_gather), 0, 0, true);
    cost_release(&cost);
}

/* "collectives" 600 + 2 us a KB on 8 devices: a step of the ring takes 600 / 14 us, and 1 / 7 us a KB of what it moves.
 */
static void steps_are_those_of_the_ring_that_was_measured(void **state) {
    (void)state;
    struct handmade h;
    struct cost cost;
    handmade_cluster(&h, 8);
    handmade_fix(&h, 600, 0.002);
    open_cost(&h, &cost);
    const double step_us = 600.0 / 14, byte_us = 0.002 * 8 / 14;
    expect(&cost, within(2, HALF_scatter), step_us, byte_us * 5e5, false);
    expect(&cost, within(4, HALF_gather), 3 * step_us, 3 * byte_us * 2.5e5, false);
    expect(&cost, among_replicas(8, 2), 6 * step_us, 6 * byte_us * 1.25e5, false);
    cost_release(&cost);
    four_of_two(&h);
    for (int i = 0; i < 4; i++)
        h.nodes[i].nic_latency_us = 1;
    handmade_fix(&h, 600, 0.002);
    open_cost(&h, &cost);
    expect(&cost, within(2, HALF_scatter), step_us - 1, 100, true); /* within a node the NIC's latency is not paid */
    expect(&cost, among_replicas(8, 2), 6 * step_us, 2 * 6 * byte_us * 1.25e5, false);
    cost_release(&cost);
}

/* A reduce-scatter, what replicas add and an all-gather move through one device's NIC what a ring all-reduce does. */
static void all_together_move_what_a_ring_does(void **state) {
    (void)state;
    for (uint32_t n = 4; n <= HANDMADE_NODES; n++)
        for (uint32_t shards = 2; shards < n; shards++) {
            struct handmade h;
            struct cost cost;
            if (n % shards > 0)
                continue;
            handmade_cluster(&h, n);
            open_cost(&h, &cost);
            const struct message half = within(shards, HALF_scatter), replicas = among_replicas(n, shards);
            const double moved = 2 * cost_all_reduce(&cost, &half).hold_us + cost_all_reduce(&cost, &replicas).hold_us;
            assert_close(moved, all_reduce_cost(&cost.all_reduce, ALGORITHM_ring, MBYTE).hold_us, 1e-5);
            cost_release(&cost);
        }
}

/* ---- any cluster ---- */

static uint32_t node_of(const struct cluster *c, uint32_t device) {
    uint32_t node = 0;
    while (device >= c->nodes[node].devices)
        device -= c->nodes[node++].devices;
    return node;
}

/* How many groups have a device on the node, and one elsewhere. */
static uint32_t crossing(const struct cluster *c, uint32_t node, uint32_t ranks, uint32_t stride) {
    uint32_t n = 0;
    for (uint32_t group = 0; group < c->n_devices / ranks; group++) {
        bool here = false, elsewhere = false;
        for (uint32_t i = 0; i < ranks; i++) {
            const uint32_t device = stride == 1 ? group * ranks + i : group + i * stride;
            *(node_of(c, device) == node ? &here : &elsewhere) = true;
        }
        n += here && elsewhere;
    }
    return n;
}

/* Half a ring of one group: r - 1 steps, each as long as its slowest hop. */
static double half_by_hand(const struct cluster *c, uint32_t ranks, uint32_t stride, uint32_t group, double bytes) {
    double hop_us = 0, latency_us = 0, most = 1, narrowest = INFINITY;
    bool crosses = false;
    for (uint32_t i = 0; i < ranks; i++) {
        const uint32_t device = stride == 1 ? group * ranks + i : group + i * stride,
                       next = stride == 1 ? group * ranks + (i + 1) % ranks : group + (i + 1) % ranks * stride,
                       node = node_of(c, device);
        if (node == node_of(c, next)) {
            hop_us = fmax(hop_us, 1 / transport_device_link_bytes_per_us(c, node));
            continue;
        }
        crosses = true;
    }
    for (uint32_t i = 0; i < ranks && crosses; i++) {
        const uint32_t node = node_of(c, stride == 1 ? group * ranks + i : group + i * stride);
        latency_us = fmax(latency_us, c->nodes[node].nic_latency_us);
        narrowest = fmin(narrowest, transport_nic_bytes_per_us(c, node));
        most = fmax(most, crossing(c, node, ranks, stride));
    }
    if (crosses)
        hop_us = fmax(hop_us, most / narrowest);
    return (ranks - 1) * (latency_us + hop_us * bytes / ranks);
}

static void random_uneven(struct rng *rng, struct handmade *h) {
    handmade_cluster(h, 1 + (uint32_t)rng_below(rng, 6));
    for (uint32_t i = 0; i < h->cluster.n_nodes; i++) {
        h->nodes[i].devices = 1 + (uint32_t)rng_below(rng, 4);
        h->nodes[i].nic_gbit_per_s = rng_below(rng, 2) ? 8 : rng_between(rng, 1, 16);
        h->nodes[i].nic_latency_us = rng_below(rng, 2) ? 0 : rng_between(rng, 0, 50);
        h->nodes[i].device_link_gbyte_per_s = rng_between(rng, 0.2, 5);
    }
}

static void uneven_groups_take_as_long_as_the_slowest_ring(void **state) {
    (void)state;
    struct rng rng;
    int compared = 0;
    rng_seed(&rng, test_seed());
    for (int i = 0; i < 500; i++) {
        struct handmade h;
        struct cost cost;
        random_uneven(&rng, &h);
        open_cost(&h, &cost);
        const uint32_t n = h.cluster.n_devices;
        for (uint32_t ranks = 2; ranks < n; ranks++) {
            double half_us = 0, replicas_us = 0;
            if (n % ranks > 0)
                continue;
            const struct message half = within(ranks, HALF_gather), replicas = among_replicas(n, n / ranks);
            for (uint32_t group = 0; group < n / ranks; group++) {
                half_us = fmax(half_us, half_by_hand(&h.cluster, ranks, 1, group, MBYTE));
                replicas_us = fmax(replicas_us, 2 * half_by_hand(&h.cluster, ranks, n / ranks, group,
                                                                 ceil((double)MBYTE * ranks / n)));
            }
            const struct all_reduce_cost a = cost_all_reduce(&cost, &half), b = cost_all_reduce(&cost, &replicas);
            assert_close(a.startup_us + a.transfer_us, half_us, EXACT);
            assert_close(b.startup_us + b.transfer_us, replicas_us, EXACT);
            compared++;
        }
        cost_release(&cost);
    }
    assert_true(compared > 300);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_pay_for_the_hops_that_they_make),
        cmocka_unit_test(as_many_replicas_cross_a_nic_as_the_node_has_devices),
        cmocka_unit_test(the_slowest_group_counts),
        cmocka_unit_test(steps_are_those_of_the_ring_that_was_measured),
        cmocka_unit_test(all_together_move_what_a_ring_does),
        cmocka_unit_test(uneven_groups_take_as_long_as_the_slowest_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
