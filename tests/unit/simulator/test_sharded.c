/* Sharded parameters against formulas worked out by hand. Half an all-reduce of a layer takes GATHER_US, one message
 * goes at a time, and what is ready together goes in the plan's order: sums, then what is gathered, by gate. */
#include <stdio.h>

#include "tests/unit/simulator/fixture.h"
#include "tests/unit/strategy/descriptions.h"

#define EXACT 1e-12
enum { LAYERS = 5, LAYER_ELEMENTS = 2500 };
#define GATHER_US 60.0 /* half of 20 + 0.01 a byte */

static void cluster_of_halves(struct fixture *f) {
    fixture_cluster(f, 2);
    handmade_fix(&f->site, 20, 0.01);
}

/* Nothing overlaps: gather, 100, gather, 200, scatter. Two variables of 1000 bytes a microsecond are packed before the
 * scatter and unpacked after each gather, 10 us each. */
static void messages_of_one_group_stand_between_its_steps(void **state) {
    (void)state;
    struct fixture f;
    for (int kept = 0; kept < 2; kept++)
        for (int packed = 0; packed < 2; packed++) {
            const int halves = kept ? 2 : 3;
            cluster_of_halves(&f);
            fixture_steps(&f, 1, 2, (double[]){100, 200});
            const uint32_t update = fixture_update(&f);
            fixture_half(&f, HALF_gather, 10000, update, 0);
            if (!kept)
                fixture_half(&f, HALF_gather, 10000, 0, 1);
            fixture_half(&f, HALF_scatter, 10000, 1, update);
            f.site.cluster.runtime.copy_gbyte_per_s = packed;
            for (uint32_t m = 0; m < f.plan.n_messages; m++)
                f.messages[m].n_pieces = 1 + (uint32_t)packed;
            fixture_finish(&f, POLICY_fifo, CREDIT_UNLIMITED);
            const struct prediction p = fixture_predict(&f, NULL);
            assert_close(p.iteration_us, 300 + halves * (GATHER_US + 10 * packed), EXACT);
            assert_close(p.compute_us, 300, EXACT);
            assert_close(p.comm_busy_us, halves * GATHER_US + 10 * packed, EXACT); /* packing is part of a launch */
            assert_true(p.converged && p.messages == (uint32_t)halves);
        }
}

/* A sum waits for no other message: beside it the next step runs, and the one after that waits for it. */
static void the_step_after_the_next_waits_for_a_sum(void **state) {
    (void)state;
    static const double next_us[] = {10, 60, 100};
    struct fixture f;
    for (int i = 0; i < 3; i++) {
        cluster_of_halves(&f);
        fixture_steps(&f, 1, 4, (double[]){10, 20, next_us[i], 40});
        fixture_update(&f);
        fixture_half(&f, HALF_scatter, 10000, 1, 3);
        fixture_finish(&f, POLICY_fifo, 0);
        assert_close(fixture_iteration_us(&f), 30 + (next_us[i] > GATHER_US ? next_us[i] : GATHER_US) + 40, EXACT);
    }
}

static bool refuses(uint32_t ready, uint32_t gate) {
    struct fixture f;
    struct error err;
    struct prediction p;
    cluster_of_halves(&f);
    fixture_steps(&f, 1, 3, (double[]){10, 20, 30});
    fixture_update(&f);
    fixture_half(&f, HALF_gather, 1000, ready, gate);
    fixture_finish(&f, POLICY_fifo, 0);
    const enum status status = fixture_run(&f, NULL, &p, &err);
    assert_true(status == ST_OK || (status == ST_INVALID && strstr(err.message, "before the update, waits for it")));
    return status != ST_OK;
}

static void nothing_may_be_in_flight_when_the_update_begins(void **state) {
    (void)state;
    for (uint32_t gate = 0; gate < 4; gate++) {
        assert_false(refuses(3, gate)); /* ready after the update */
        for (uint32_t ready = 0; ready < 3; ready++)
            assert_true(refuses(ready, gate) == (gate <= ready));
    }
}

/* ---- FSDP: equal layers, each a group of its own ---- */

static void read_layers(double forward_us, double backward_us, struct model *out) {
    struct error err;
    char text[2048];
    int at = snprintf(text, sizeof text, "{'schema':'syncopate.model/1','name':'m','variables':[");
    for (int i = 0; i < LAYERS; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s{'name':'v%d','shape':[%d]}", i ? "," : "", i,
                       LAYER_ELEMENTS);
    at += snprintf(text + at, sizeof text - (size_t)at, "],'layers':[");
    for (int i = 0; i < LAYERS; i++)
        at += snprintf(text + at, sizeof text - (size_t)at,
                       "%s{'name':'l%d','forward_us':%g,'backward_us':%g,'variables':['v%d']}", i ? "," : "", i,
                       forward_us, backward_us, i);
    snprintf(text + at, sizeof text - (size_t)at, "]}");
    assert_ok(quoted_model(text, out, &err));
}

struct way {
    uint32_t prefetch;
    bool kept;
    uint32_t shard_ranks, micro_batches;
    enum synchronize synchronize;
};

static double sharded_us(struct fixture *f, double forward_us, double backward_us, struct way way) {
    struct error err;
    struct model model;
    struct strategy strategy;
    struct plan plan;
    handmade_number_devices(&f->site);
    read_layers(forward_us, backward_us, &model);
    assert_ok(strategy_init(&strategy, "fsdp", &model, LAYERS, &err));
    strategy.credit_bytes = 0;
    strategy.forward_prefetch = strategy.backward_prefetch = way.prefetch;
    strategy.shard_ranks = way.shard_ranks;
    strategy.micro_batches = way.micro_batches;
    strategy.synchronize = way.synchronize;
    for (uint32_t g = 0; g < LAYERS; g++) {
        strategy.variables[g].group = g;
        strategy.groups[g].sharded = SHARDED_parameters;
        strategy.groups[g].keeps_gathered = way.kept;
        strategy.groups[g].algorithm = ALGORITHM_ring;
    }
    assert_ok(strategy_seal(&strategy, &model, &f->site.cluster, &err));
    assert_ok(plan_lower(&model, &f->site.cluster, &strategy, &plan, &err));
    f->plan = plan;
    const double us = fixture_iteration_us(f);
    plan_release(&plan);
    strategy_release(&strategy);
    model_release(&model);
    return us;
}

static double fsdp_us(double forward_us, double backward_us, uint32_t prefetch, bool kept) {
    struct fixture f;
    cluster_of_halves(&f);
    return sharded_us(&f, forward_us, backward_us, (struct way){prefetch, kept, 0, 1, SYNCHRONIZE_last});
}

static double accumulated_us(double forward_us, double backward_us, uint32_t prefetch, bool kept,
                             uint32_t micro_batches, enum synchronize synchronize) {
    struct fixture f;
    cluster_of_halves(&f);
    return sharded_us(&f, forward_us, backward_us, (struct way){prefetch, kept, 0, micro_batches, synchronize});
}

/* Of L layers, with g a gather or a sum. Every layer waits for its gather and, in the backward pass, for the sum before
 * that. */
static void without_prefetch_everything_is_exposed(void **state) {
    (void)state;
    static const double us[][2] = {{100, 200}, {20, 30}, {100, 80}};
    for (int i = 0; i < 3; i++) {
        const double compute = LAYERS * (us[i][0] + us[i][1]);
        assert_close(fsdp_us(us[i][0], us[i][1], 0, false), compute + 3 * LAYERS * GATHER_US, EXACT);
    }
    assert_close(fsdp_us(100, 200, 0, true), LAYERS * 300 + (LAYERS + 1) * GATHER_US, EXACT);
}

/* g <= f, and 2 g <= b: the gathers of the passes' first layers and the sum of the last stand alone. */
static void long_layers_hide_all_but_the_ends(void **state) {
    (void)state;
    for (uint32_t prefetch = 1; prefetch <= 2; prefetch++) {
        assert_close(fsdp_us(100, 200, prefetch, false), LAYERS * 300 + 3 * GATHER_US, EXACT);
        assert_close(fsdp_us(60, 120, prefetch, false), LAYERS * 180 + 3 * GATHER_US, EXACT);
        assert_close(fsdp_us(100, 200, prefetch, true), LAYERS * 300 + 2 * GATHER_US, EXACT);
    }
}

/* Micro-batches are as one after another, but for the sums that do not go. */
static void micro_batches_gather_each_and_sum_as_they_are_told(void **state) {
    (void)state;
    for (uint32_t n = 1; n <= 4; n++) {
        const double g = GATHER_US, compute = n * LAYERS * 300;
        assert_close(accumulated_us(100, 200, 1, false, n, SYNCHRONIZE_each), compute + n * 3 * g, EXACT);
        assert_close(accumulated_us(100, 200, 1, false, n, SYNCHRONIZE_last), compute + n * 2 * g + g, EXACT);
        assert_close(accumulated_us(100, 200, 1, true, n, SYNCHRONIZE_each), compute + n * 2 * g, EXACT);
        assert_close(accumulated_us(100, 200, 1, true, n, SYNCHRONIZE_last), compute + n * g + g, EXACT);
        assert_close(accumulated_us(100, 200, 0, false, n, SYNCHRONIZE_each), compute + n * 3 * LAYERS * g, EXACT);
        assert_close(accumulated_us(100, 200, 0, false, n, SYNCHRONIZE_last), compute + n * 2 * LAYERS * g + LAYERS * g,
                     EXACT);
    }
}

/* f, b <= g: messages follow one another without a gap, but for the last layer of the forward pass. Where parameters
 * are kept the first sum waits for the first backward step. */
static void short_layers_leave_the_network_no_gap(void **state) {
    (void)state;
    for (uint32_t prefetch = 1; prefetch <= 2; prefetch++) {
        assert_close(fsdp_us(20, 30, prefetch, false), 20 + 3 * LAYERS * GATHER_US, EXACT);
        assert_close(fsdp_us(20, 30, prefetch, true), 20 + 30 + 2 * LAYERS * GATHER_US, EXACT);
    }
}

/* g <= f, and g < b < 3/2 g. One ahead, the gather of the next layer but one waits for a step to end and for its sum:
 * layer k from 0 begins its backward step at (2 k - 1) g + b, from the second on. Two ahead it is on its way before,
 * and the step begins when the sum of layer k - 2 has ended, at 2 k g. */
static void two_ahead_overlaps_a_sum_that_one_ahead_waits_for(void **state) {
    (void)state;
    const double g = GATHER_US, f = 100, b = 80, forward = g + LAYERS * f;
    assert_close(fsdp_us(f, b, 1, false), forward + (2 * LAYERS - 2) * g + 2 * b, EXACT);
    assert_close(fsdp_us(f, b, 2, false), forward + (2 * LAYERS - 1) * g + b, EXACT);
}

/* Two nodes of two devices, 5000 bytes a microsecond between these and 1000 through a NIC. A gather or a sum of 10000
 * bytes within a node takes 1 us; the rings of the two parts, which share the NICs, 10 us. */
static double hsdp_us(double forward_us, double backward_us, uint32_t prefetch, uint32_t micro_batches,
                      enum synchronize synchronize) {
    struct fixture f;
    fixture_cluster(&f, 2);
    for (int i = 0; i < 2; i++) {
        f.site.nodes[i].devices = 2;
        f.site.nodes[i].device_link_gbyte_per_s = 5;
    }
    return sharded_us(&f, forward_us, backward_us, (struct way){prefetch, false, 2, micro_batches, synchronize});
}

/* Long layers hide all but the first gathers, and the last sum with what its replicas add. Where nothing is gathered
 * ahead a layer waits for its gathers and for the sum before, but not for replicas. Of short layers the NICs add what
 * all replicas have, without a gap, once the first sum has ended. In micro-batches before the
 * last they add nothing. */
static void only_the_update_waits_for_replicas(void **state) {
    (void)state;
    const double g = 1, r = 10;
    for (uint32_t n = 1; n <= 3; n++) {
        const enum synchronize last = SYNCHRONIZE_last, each = SYNCHRONIZE_each_all_reduce_last;
        assert_close(hsdp_us(100, 200, 1, n, last), LAYERS * n * 300 + (2 * n + 1) * g + r, EXACT);
        assert_close(hsdp_us(100, 200, 0, n, last), LAYERS * (n * 300 + (2 * n + 1) * g) + r, EXACT);
        assert_close(hsdp_us(100, 200, 1, n, each), n * (LAYERS * 300 + 3 * g) + r, EXACT);
        assert_close(hsdp_us(100, 200, 0, n, each), n * LAYERS * (300 + 3 * g) + r, EXACT);
    }
    assert_close(hsdp_us(5, 1, 0, 1, SYNCHRONIZE_last), LAYERS * (5 + g) + (g + 1 + g) + LAYERS * r, EXACT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_of_one_group_stand_between_its_steps),
        cmocka_unit_test(the_step_after_the_next_waits_for_a_sum),
        cmocka_unit_test(nothing_may_be_in_flight_when_the_update_begins),
        cmocka_unit_test(without_prefetch_everything_is_exposed),
        cmocka_unit_test(long_layers_hide_all_but_the_ends),
        cmocka_unit_test(micro_batches_gather_each_and_sum_as_they_are_told),
        cmocka_unit_test(short_layers_leave_the_network_no_gap),
        cmocka_unit_test(two_ahead_overlaps_a_sum_that_one_ahead_waits_for),
        cmocka_unit_test(only_the_update_waits_for_replicas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
