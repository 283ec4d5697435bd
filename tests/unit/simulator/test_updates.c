/* Whole updates in virtual time: closed forms, what must hold in any weather, and transfers in turn against the
 * scheduler's calendar. */
#include <math.h>
#include <stdio.h>

#include "base/rng.h"
#include "simulator/updates.h"
#include "simulator/wire.h"
#include "strategy/updates/calendar.h"
#include "tests/support/check.h"
#include "tests/unit/simulator/fixture.h"

static const double EXACT = 1e-9;

/* n workers of 1000 bytes a microsecond and, last, a server without devices; an update of 100 kB after 30 us. */
static void workers(struct fixture *f, uint32_t n, struct consistency consistency) {
    fixture_cluster(f, n + 1);
    f->site.nodes[n].devices = 0;
    fixture_steps(f, 1, 2, (double[]){20, 10});
    struct message *message = fixture_message(f, 100000, 1, 0);
    message->kind = SYNC_PARAMETER_SERVER;
    message->server = n;
    fixture_finish(f, POLICY_fifo, CREDIT_UNLIMITED);
    f->plan.cross_iteration = false;
    f->plan.consistency = consistency;
}

static enum status run(const struct fixture *f, const struct updates_options *options, struct updates_prediction *out,
                       struct error *err) {
    struct cost cost;
    assert_true(cost_init(&cost, &f->site.cluster, err) == ST_OK);
    enum status st = updates_run(&f->plan, &cost, options, out, err);
    cost_release(&cost);
    return st;
}

static struct updates_prediction predict(const struct fixture *f) {
    struct error err;
    struct updates_prediction p;
    assert_ok(run(f, &(struct updates_options){.seed = 1, .weather = f->site.cluster.variability.given}, &p, &err));
    return p;
}

static void one_worker_computes_pushes_and_pulls(void **state) {
    (void)state;
    struct fixture f;
    workers(&f, 1, (struct consistency){.kind = CONSISTENCY_asynchronous});
    struct updates_prediction p = predict(&f);
    assert_close(updates_round_us(&p), 30 + 100 + 100, EXACT);
    assert_close(p.iteration_sum_us / (double)p.iterations, 230, EXACT);
    assert_close(updates_delay_mean(&p), 0, EXACT);
    assert_int_equal(p.delay_most, 0);
}

/* Equal workers stay side by side: four pushes share the server's NIC, then four pulls do. Each update is computed from
 * the model that the worker before it left, three versions ago. */
static void equal_workers_that_do_not_wait_go_side_by_side(void **state) {
    (void)state;
    struct fixture f;
    workers(&f, 4, (struct consistency){.kind = CONSISTENCY_asynchronous});
    struct updates_prediction p = predict(&f);
    assert_close(updates_round_us(&p), 30 + 400 + 400, EXACT);
    assert_close(updates_delay_mean(&p), 3, EXACT);
    assert_close(updates_delay_variance(&p), 0, 1e-6);
    assert_close(p.in_bytes / p.applied, 1e5, EXACT);
}

/* With staleness 0 all begin with one version: delays are 0 to 3. */
static void staleness_of_none_is_a_barrier(void **state) {
    (void)state;
    struct fixture f;
    workers(&f, 4, (struct consistency){.kind = CONSISTENCY_stale_synchronous});
    struct updates_prediction p = predict(&f);
    assert_close(updates_round_us(&p), 30 + 400 + 400, EXACT);
    assert_close(updates_delay_mean(&p), 1.5, EXACT);
    assert_int_equal(p.delay_most, 3);
}

/* A worker 1000 times slower than its three peers: with K = 1 they do as many iterations as it does, without a bound
 * many more. */
static void who_is_far_ahead_waits_for_the_slowest(void **state) {
    (void)state;
    struct fixture f;
    workers(&f, 4, (struct consistency){.kind = CONSISTENCY_stale_synchronous, .staleness = 1});
    f.site.nodes[0].compute_scale = 1000;
    struct updates_prediction p = predict(&f);
    assert_close(updates_round_us(&p), 30000 + 100 + 100, 0.01);
    f.plan.consistency.kind = CONSISTENCY_asynchronous;
    p = predict(&f);
    assert_true(updates_round_us(&p) < 1200);
}

/* In turn, one after another, and all at once when nobody computes: the end of a batch is not waited for. */
static void synchronous_updates_in_turn_take_as_long_as_their_bytes(void **state) {
    (void)state;
    struct fixture f;
    workers(&f, 4, (struct consistency){.kind = CONSISTENCY_synchronous, .scheduled = true, .batch_us = 1e6});
    struct updates_prediction p = predict(&f);
    assert_close(updates_round_us(&p), 30 + 400 + 400, EXACT);
    assert_int_equal(p.delay_most, 0);
}

/* One of four updates goes straight. Two are added to the third's on its node until 200; the sum is there at 300. */
static void sums_on_the_way_spare_the_server(void **state) {
    (void)state;
    struct fixture f;
    const uint32_t node = 3;
    workers(&f, 4, (struct consistency){.kind = CONSISTENCY_synchronous, .scheduled = true, .batch_us = 1e6});
    f.plan.consistency.aggregators = (struct node_list){1, &node};
    struct updates_prediction p = predict(&f);
    assert_close(updates_round_us(&p), 30 + 300 + 400, EXACT);
    assert_close(p.in_bytes / p.applied, 0.5e5, EXACT);
    /* Two pull from the server, one through another worker. */
    f.plan.consistency.distributors = 1;
    p = predict(&f);
    assert_close(updates_round_us(&p), 30 + 300 + 300, EXACT);
}

/* Of three workers elsewhere two pull from the server and one through another, which takes as long as two pulls. The
 * one beside the server has the model at once. */
static void a_model_is_not_passed_on_by_the_servers_own_node(void **state) {
    (void)state;
    struct fixture f;
    workers(
        &f, 4,
        (struct consistency){.kind = CONSISTENCY_synchronous, .scheduled = true, .batch_us = 1e6, .distributors = 2});
    f.messages[0].server = 0;
    struct updates_prediction p = predict(&f);
    assert_close(updates_round_us(&p), 30 + 300 + 200, EXACT);
    assert_close(p.out_bytes / p.applied, 0.5e5, EXACT);
}

/* The server's NIC takes 1000 us for an update of worker 1. Worker 0 is on the server's node: its updates need no NIC,
 * and go in front of the one that is on its way until that one has the delay of the bound. Then they wait. */
static void updates_of_the_servers_node_overtake_others_within_their_bound(void **state) {
    (void)state;
    struct fixture f;
    const uint32_t bound = 8;
    const struct rate_change slow = {.node = 0, .direction = DIRECTION_IN, .gbit_per_s = 0.8};
    workers(&f, 2,
            (struct consistency){
                .kind = CONSISTENCY_asynchronous, .delay_bound = bound, .scheduled = true, .batch_us = 50});
    f.messages[0].server = 0;
    f.site.cluster.variability =
        (struct variability){.given = true, .slow_factor = 1, .trace_us = 1e12, .n_changes = 1, .changes = &slow};
    struct updates_prediction p = predict(&f);
    const double of_worker_1 = p.us / (1000 + 100 + 30);
    assert_close(p.late + p.dropped, 0, EXACT);
    assert_int_equal(p.delay_most, bound);
    assert_true(p.delays[bound] <= of_worker_1 + 1 && p.delays[bound] > 0.9 * of_worker_1 - 1);
    assert_true(p.applied > bound * p.delays[bound]);
}

static void random_consistency(struct rng *rng, uint32_t n, struct fixture *f, uint32_t *aggregators) {
    struct consistency c = {.kind = CONSISTENCY_asynchronous, .scheduled = rng_below(rng, 4) > 0, .batch_us = 300};
    c.order = (enum update_order_rule)rng_below(rng, 2);
    c.delay_bound = 1 + (uint32_t)rng_below(rng, 2 * n);
    if (c.scheduled) {
        for (uint32_t i = 0; i < n; i++)
            aggregators[i] = i;
        c.aggregators = (struct node_list){(uint32_t)rng_below(rng, n + 1), aggregators};
        c.distributors = (uint32_t)rng_below(rng, 4);
    }
    if (c.scheduled && rng_below(rng, 2)) {
        c.replicated = true;
        c.replica = n; /* the server's own node: any node that adds nothing up */
        c.momentum = rng_uniform(rng) * 0.9;
        c.divergence = rng_log_between(rng, 1, 40) / (1 - c.momentum);
        c.copies_when_due = rng_below(rng, 2);
        c.replica_aggregators = (struct node_list){(uint32_t)rng_below(rng, n + 1), aggregators};
    }
    workers(f, n, c);
}

/* In random weather: no delay above the bound, every update is applied, dropped or late, as many iterations as updates,
 * the same seed gives the same run. */
static void bounds_hold_in_any_weather(void **state) {
    static const struct weather_rate rates[] = {{1, 0.2}, {4, 0.3}, {8, 0.5}};
    struct rng rng;
    (void)state;
    rng_split(&rng, test_seed(), 1);
    double late = 0, dropped = 0;
    for (int i = 0; i < 300; i++) {
        struct fixture f;
        uint32_t aggregators[HANDMADE_NODES], n = 1 + (uint32_t)rng_below(&rng, 12);
        random_consistency(&rng, n, &f, aggregators);
        f.site.cluster.variability = (struct variability){.given = true,
                                                          .slow_share = 0.1,
                                                          .slow_factor = 4,
                                                          .every_us = 2000,
                                                          .n_rates = 3,
                                                          .rates = rates,
                                                          .monitor_lag_us = (double)rng_below(&rng, 2) * 500};
        struct updates_prediction p = predict(&f), again = predict(&f);
        assert_memory_equal(&p, &again, sizeof p);
        assert_true(p.delay_most <= f.plan.consistency.delay_bound);
        double ended = p.applied + p.dropped + p.late, sum = 0;
        for (int d = 0; d < UPDATES_DELAYS; d++)
            sum += p.delays[d];
        assert_close(sum, p.applied, EXACT);
        assert_true(fabs(ended - (double)p.iterations) <= 2.0 * n);
        assert_true(f.plan.consistency.scheduled ? p.late == 0 : p.dropped == 0);
        assert_true(p.divergence_most <= f.plan.consistency.divergence * (1 + EXACT));
        late += p.late / ended;
        dropped += p.dropped / ended;
    }
    printf("dropped %.1f%%, late %.1f%%\n", dropped / 3, late / 3);
    assert_true(dropped > 3 && late > 0.3);
}

/* ---- workers that share a node ---- */

enum { RECORDED = 4096 };

struct recorded {
    struct updates_event list[RECORDED];
    uint32_t n;
};

static void take(void *context, const struct updates_event *event) {
    struct recorded *r = context;
    if (event->kind != UPDATES_RATE && r->n < RECORDED)
        r->list[r->n++] = *event;
}

/* Of the models that come from the server to a node just when a worker there begins, the one that left it last. */
static double left_server_us(const struct recorded *r, const struct updates_event *computing, uint32_t server) {
    double us = -1;
    for (uint32_t i = 0; i < r->n; i++) {
        const struct updates_event *e = &r->list[i];
        if (e->kind == UPDATES_TRANSFER && e->from == server && e->to == computing->from &&
            fabs(e->end_us - computing->start_us) < 1e-6)
            us = fmax(us, e->start_us);
    }
    return us;
}

/* Two workers on each of four nodes, models passed on: the model with which a worker begins left the server after the
 * worker's update was ready. One that is on its way to its neighbour at that time is too old. */
static void workers_of_one_node_do_not_share_a_model_that_came_too_early(void **state) {
    static struct recorded r;
    struct fixture f;
    struct updates_prediction p;
    struct error err;
    struct cost cost;
    const uint32_t aggregators[] = {0, 1, 2, 3};
    (void)state;
    fixture_cluster(&f, 5);
    for (int i = 0; i < 4; i++) {
        f.site.nodes[i].devices = 2;
        f.site.nodes[i].compute_scale = 1 + 0.37 * i;
        f.site.nodes[i].device_link_gbyte_per_s = 10;
    }
    f.site.nodes[4].devices = 0;
    fixture_steps(&f, 1, 2, (double[]){200, 100});
    struct message *message = fixture_message(&f, 100000, 1, 0);
    message->kind = SYNC_PARAMETER_SERVER;
    message->server = 4;
    fixture_finish(&f, POLICY_fifo, CREDIT_UNLIMITED);
    f.plan.cross_iteration = false;
    f.plan.consistency = (struct consistency){.kind = CONSISTENCY_asynchronous,
                                              .delay_bound = 8,
                                              .scheduled = true,
                                              .batch_us = 100,
                                              .aggregators = {4, aggregators},
                                              .distributors = 3};
    r.n = 0;
    assert_ok(cost_init(&cost, &f.site.cluster, &err));
    assert_ok(updates_run(&f.plan, &cost, &(struct updates_options){.record = take, .context = &r}, &p, &err));
    cost_release(&cost);
    assert_true(p.delay_most <= 8 && r.n < RECORDED);
    double ready_us[8] = {0};
    int seen = 0;
    for (uint32_t k = 0; k < r.n; k++) {
        const struct updates_event *e = &r.list[k];
        if (e->kind != UPDATES_COMPUTE)
            continue;
        double left_us = left_server_us(&r, e, 4);
        assert_true(left_us < 0 || left_us >= ready_us[e->worker]);
        seen += left_us >= 0;
        ready_us[e->worker] = e->end_us;
    }
    assert_true(seen > 200);
}

static void plans_without_updates_are_refused(void **state) {
    (void)state;
    struct fixture f;
    struct error err;
    struct updates_prediction p;
    workers(&f, 2, (struct consistency){0});
    assert_fails(run(&f, &(struct updates_options){0}, &p, &err), ST_INVALID, "has iterations, and no updates");
}

/* What is known at one time and begins at once: turns on the wire are reservations in the calendar. */
static void transfers_in_turn_end_as_the_calendar_reserves_them(void **state) {
    struct rng rng;
    (void)state;
    rng_split(&rng, test_seed(), 2);
    for (int i = 0; i < 500; i++) {
        enum { NODES = 6, MOST = 30 };
        double rates[2 * NODES], local[NODES], want[MOST];
        struct wire wire;
        struct calendar calendar;
        struct wire_transfer t;
        struct error err;
        for (int p = 0; p < 2 * NODES; p++)
            rates[p] = rng_log_between(&rng, 1, 100);
        for (int p = 0; p < NODES; p++)
            local[p] = INFINITY;
        assert_ok(wire_init(&wire, NODES, false, 1, rates, local, &err));
        assert_ok(calendar_init(&calendar, NODES, rates, 0, &err));
        uint32_t n = 1 + (uint32_t)rng_below(&rng, MOST);
        for (uint32_t k = 0; k < n; k++) {
            t = (struct wire_transfer){.turn = k,
                                       .from = (uint32_t)rng_below(&rng, NODES),
                                       .to = (uint32_t)rng_below(&rng, NODES),
                                       .left = rng_log_between(&rng, 10, 1e5),
                                       .what = k};
            want[k] = calendar_reserve(&calendar, t.from, t.to, t.left, 0);
            assert_ok(wire_add(&wire, t, &err));
        }
        for (uint32_t k = 0; k < n;) {
            wire_go_on(&wire, wire_next_us(&wire));
            for (; wire_pop(&wire, &t); k++)
                assert_close(wire.now_us, want[t.what], 1e-6);
        }
        assert_true(isinf(wire_next_us(&wire)));
        wire_release(&wire);
        calendar_release(&calendar);
    }
}

/* What a service answers is what a client reads: all that tables and pictures show. */
static void a_prediction_is_read_as_it_was_written(void **state) {
    (void)state;
    struct fixture f;
    struct error err;
    struct updates_prediction read;
    workers(&f, 4, (struct consistency){.kind = CONSISTENCY_asynchronous, .delay_bound = 2});
    f.site.nodes[0].compute_scale = 3;
    const struct updates_prediction p = predict(&f);
    cJSON *json = cJSON_CreateObject();
    assert_true(updates_prediction_write(&p, json));
    const struct json_at at = json_root(cJSON_GetObjectItem(json, "updates"), "updates");
    assert_ok(updates_prediction_read(&at, &read, &err));
    assert_true(p.late > 0 && p.delay_most > 0);
    assert_true(read.us == p.us && read.applied == p.applied && read.dropped == p.dropped && read.late == p.late);
    assert_memory_equal(read.delays, p.delays, sizeof p.delays);
    assert_close(updates_delay_mean(&read), updates_delay_mean(&p), EXACT);
    assert_close(updates_delay_variance(&read), updates_delay_variance(&p), 1e-6);
    assert_int_equal(read.delay_most, p.delay_most);
    assert_close(read.iteration_sum_us, p.iteration_sum_us / (double)p.iterations, EXACT);
    assert_true(read.in_bytes == p.in_bytes && read.out_bytes == p.out_bytes && read.between_bytes == p.between_bytes);
    cJSON_ReplaceItemInObject((cJSON *)at.node, "late", cJSON_CreateString("many"));
    assert_fails(updates_prediction_read(&at, &read, &err), ST_INVALID, "/late");
    cJSON_ReplaceItemInObject((cJSON *)at.node, "delays", cJSON_Parse("[1,-1]"));
    assert_fails(updates_prediction_read(&at, &read, &err), ST_INVALID, "/delays/1");
    cJSON_Delete(json);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_worker_computes_pushes_and_pulls),
        cmocka_unit_test(equal_workers_that_do_not_wait_go_side_by_side),
        cmocka_unit_test(staleness_of_none_is_a_barrier),
        cmocka_unit_test(who_is_far_ahead_waits_for_the_slowest),
        cmocka_unit_test(synchronous_updates_in_turn_take_as_long_as_their_bytes),
        cmocka_unit_test(sums_on_the_way_spare_the_server),
        cmocka_unit_test(a_model_is_not_passed_on_by_the_servers_own_node),
        cmocka_unit_test(updates_of_the_servers_node_overtake_others_within_their_bound),
        cmocka_unit_test(bounds_hold_in_any_weather),
        cmocka_unit_test(workers_of_one_node_do_not_share_a_model_that_came_too_early),
        cmocka_unit_test(plans_without_updates_are_refused),
        cmocka_unit_test(a_prediction_is_read_as_it_was_written),
        cmocka_unit_test(transfers_in_turn_end_as_the_calendar_reserves_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
