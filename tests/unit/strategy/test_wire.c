/* What all-reduces move through NICs, against counts by hand: 1000 bytes a microsecond, so 1 is M bytes of a message.
 */
#include "strategy/cost/wire.h"
#include "tests/support/check.h"
#include "tests/support/strategy/handmade_cluster.h"

#define EXACT 1e-12

static void count(struct handmade *h, double wire[ALGORITHM_COUNT], double *back) {
    struct error err;
    handmade_number_devices(h);
    assert_ok(wire_per_byte_us(&h->cluster, wire, back, &err));
}

static void expect(struct handmade *h, enum algorithm algorithm, double messages) {
    double wire[ALGORITHM_COUNT], back;
    count(h, wire, &back);
    assert_close(wire[algorithm] * 1000, messages, EXACT);
}

static void expect_back(struct handmade *h, double messages) {
    double wire[ALGORITHM_COUNT], back;
    count(h, wire, &back);
    assert_close(back * 1000, messages, EXACT);
}

static void every_algorithm_is_counted_hop_by_hop(void **state) {
    (void)state;
    static const struct {
        uint32_t nodes;
        double ring, tree, doubling, halving;
    } rows[] = {{1, 0, 0, 0, 0},         {2, 1, 1, 1, 1},          {4, 1.5, 2, 2, 1.5},
                {5, 1.6, 3, 1 + 2, 2.5}, {7, 12.0 / 7, 3, 3, 2.5}, {8, 1.75, 3, 3, 1.75}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct handmade h;
        handmade_cluster(&h, rows[i].nodes);
        expect(&h, ALGORITHM_ring, rows[i].ring);
        expect(&h, ALGORITHM_hierarchical, rows[i].ring);
        expect(&h, ALGORITHM_tree, rows[i].tree);
        expect_back(&h, rows[i].tree);
        expect(&h, ALGORITHM_recursive_doubling, rows[i].doubling);
        expect(&h, ALGORITHM_halving_doubling, rows[i].halving);
        expect(&h, ALGORITHM_double_tree, rows[i].nodes > 1);
        expect(&h, ALGORITHM_auto, rows[i].nodes > 1);
    }
}

/* 2 nodes of 4: in the ring and the tree one hop crosses, in the recursive ones all four devices at distance 4. */
static void hops_within_a_node_are_free(void **state) {
    (void)state;
    struct handmade h;
    handmade_cluster(&h, 2);
    h.nodes[0].devices = h.nodes[1].devices = 4;
    expect(&h, ALGORITHM_ring, 2 * 7.0 / 8);
    expect(&h, ALGORITHM_tree, 1);
    expect(&h, ALGORITHM_recursive_doubling, 4);
    expect(&h, ALGORITHM_halving_doubling, 4 * 0.25);
    expect(&h, ALGORITHM_hierarchical, 1);
}

/* 4 nodes of 2. To the first node, from devices 2 and 4. Back from it: 0 to 2 and 4, 1 to 3 and 5. */
static void a_tree_goes_back_another_way(void **state) {
    (void)state;
    struct handmade h;
    handmade_cluster(&h, 4);
    for (int i = 0; i < 4; i++)
        h.nodes[i].devices = 2;
    expect(&h, ALGORITHM_tree, 2);
    expect_back(&h, 4);
}

/* The third of four has half the rate. Of the tree the root takes in 2 M at the full one, the third M at half of it. */
static void the_nic_that_takes_longest_counts(void **state) {
    (void)state;
    struct handmade h;
    handmade_cluster(&h, 4);
    h.nodes[2].nic_gbit_per_s = 4;
    expect(&h, ALGORITHM_ring, 1.5 * 2);
    expect(&h, ALGORITHM_tree, 2);
    h.nodes[2].nic_gbit_per_s = 2;
    expect(&h, ALGORITHM_tree, 4);
    h.cluster.runtime.goodput = 0.5;
    expect(&h, ALGORITHM_tree, 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_is_counted_hop_by_hop),
        cmocka_unit_test(hops_within_a_node_are_free),
        cmocka_unit_test(a_tree_goes_back_another_way),
        cmocka_unit_test(the_nic_that_takes_longest_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
