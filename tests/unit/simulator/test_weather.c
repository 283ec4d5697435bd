/* The timeline in weather: hand-computed times where rates change in the middle of a transfer and where workers are
 * slow, and that weather which changes nothing changes nothing. */
#include <math.h>

#include "base/json.h"
#include "simulator/expectation.h"
#include "tests/support/check.h"
#include "tests/unit/simulator/fixture.h"

static const double EXACT = 1e-9;

/* n alike nodes at 8 Gbit/s, which is 1000 bytes a microsecond; node 0 serves one message of 100 kB, ready after a
 * backward step of 10 us and needed after a forward step of 20. */
static void served(struct fixture *f, uint32_t n) {
    fixture_cluster(f, n);
    for (uint32_t i = 0; i < n; i++)
        f->site.nodes[i].nic_gbit_per_s = 8;
    fixture_steps(f, 1, 2, (double[]){20, 10});
    struct message *message = fixture_message(f, 100000, 1, 0);
    message->kind = SYNC_PARAMETER_SERVER;
    message->local_reduction = true;
    fixture_finish(f, POLICY_fifo, CREDIT_UNLIMITED);
    f->site.cluster.variability = (struct variability){.given = true, .slow_factor = 1};
}

static void change(struct fixture *f, double trace_us, uint32_t n, const struct rate_change *changes) {
    f->site.cluster.variability.trace_us = trace_us;
    f->site.cluster.variability.n_changes = n;
    f->site.cluster.variability.changes = changes;
}

static struct prediction in_weather(const struct fixture *f, double until_us) {
    return fixture_predict(f, &(struct timeline_options){.weather = true, .seed = 1, .until_us = until_us});
}

/* Node 1 pushes from 30 to 130 and pulls until 230 where nothing changes. */
static void a_rate_that_changes_during_a_push_stretches_the_rest_of_it(void **state) {
    (void)state;
    struct fixture f;
    served(&f, 2);
    assert_close(fixture_iteration_us(&f), 230, EXACT);
    assert_close(in_weather(&f, 200).iteration_us, 230, EXACT);
    /* 50 kB until 80, the rest at a quarter until 280; the pull until 380. */
    const struct rate_change slower[] = {{80, 1, DIRECTION_OUT, 2}};
    change(&f, 1e9, 1, slower);
    assert_close(in_weather(&f, 200).iteration_us, 380, EXACT);
    /* 50 kB until 80, 25 kB until 180, the last 25 kB until 205. */
    const struct rate_change for_a_while[] = {{80, 1, DIRECTION_OUT, 2}, {180, 1, DIRECTION_OUT, 8}};
    change(&f, 1e9, 2, for_a_while);
    assert_close(in_weather(&f, 200).iteration_us, 305, EXACT);
    /* The same rate on the server's way in. */
    const struct rate_change at_the_server[] = {{80, 0, DIRECTION_IN, 2}, {180, 0, DIRECTION_IN, 8}};
    change(&f, 1e9, 2, at_the_server);
    assert_close(in_weather(&f, 200).iteration_us, 305, EXACT);
    /* What nobody uses then slows nobody. */
    const struct rate_change elsewhere[] = {{80, 1, DIRECTION_IN, 2}, {120, 1, DIRECTION_IN, 8}};
    change(&f, 1e9, 2, elsewhere);
    assert_close(in_weather(&f, 200).iteration_us, 230, EXACT);
}

/* The second iteration meets other weather than the first, and the mean is of both. */
static void iterations_differ_and_the_mean_is_of_all(void **state) {
    (void)state;
    struct fixture f;
    served(&f, 2);
    const struct rate_change later[] = {{230, 1, DIRECTION_OUT, 2}};
    change(&f, 1e9, 1, later);
    struct prediction p = in_weather(&f, 231);
    assert_int_equal(p.passes, 2);
    assert_close(p.iteration_us, (230 + 530) / 2.0, EXACT);
}

/* An all-reduce goes as fast as the slowest NIC lets it: 60 kB that hold every NIC of 1000 bytes/us for 60 us. */
static void an_all_reduce_waits_for_the_slowest_nic(void **state) {
    (void)state;
    struct fixture f;
    fixture_cluster(&f, 3);
    for (uint32_t i = 0; i < 3; i++)
        f.site.nodes[i].nic_gbit_per_s = 8;
    handmade_fix(&f.site, 5, 0.001);
    fixture_steps(&f, 1, 2, (double[]){20, 10});
    fixture_message(&f, 60000, 1, 0);
    fixture_finish(&f, POLICY_fifo, CREDIT_UNLIMITED);
    f.site.cluster.variability = (struct variability){.given = true, .slow_factor = 1};
    assert_close(in_weather(&f, 90).iteration_us, 95, EXACT);
    /* Moves from 35 on; 15 us at full rate, 90 us at half. */
    const struct rate_change slower[] = {{50, 2, DIRECTION_IN, 4}};
    change(&f, 1e9, 1, slower);
    assert_close(in_weather(&f, 90).iteration_us, 140, EXACT);
}

/* With probability p each of n nodes takes f times as long: an iteration takes 1 + (f - 1) (1 - (1 - p)^n) in the mean.
 */
static void the_slowest_worker_of_an_iteration_holds_all(void **state) {
    (void)state;
    struct fixture f;
    fixture_cluster(&f, 4);
    handmade_fix(&f.site, 0, 0);
    fixture_steps(&f, 1, 2, (double[]){0, 100});
    fixture_message(&f, 1000, 1, 0);
    fixture_finish(&f, POLICY_fifo, CREDIT_UNLIMITED);
    f.site.cluster.variability = (struct variability){.given = true, .slow_share = 0.1, .slow_factor = 4};
    double expected = 100 * (1 + 3 * (1 - pow(0.9, 4)));
    assert_true(fabs(in_weather(&f, 2e6).iteration_us / expected - 1) < 0.03);
}

static void what_sends_nothing_meets_slow_workers_too(void **state) {
    (void)state;
    struct fixture f;
    fixture_cluster(&f, 1);
    fixture_steps(&f, 1, 2, (double[]){40, 60});
    fixture_finish(&f, POLICY_fifo, CREDIT_UNLIMITED);
    f.site.cluster.variability = (struct variability){.given = true, .slow_share = 0.5, .slow_factor = 3};
    assert_true(fabs(in_weather(&f, 1e6).iteration_us / 200 - 1) < 0.03);
}

static enum status expect(const struct fixture *f, const struct expectation_options *options, struct expectation *out,
                          struct error *err) {
    struct cost cost;
    struct timeline *tl = timeline_new();
    assert_true(cost_init(&cost, &f->site.cluster, err) == ST_OK);
    enum status status = expectation_run(tl, &f->plan, &cost, 230, options, out, err);
    cost_release(&cost);
    timeline_free(tl);
    return status;
}

/* The interval of the mean holds the mean of many more seeds, about 19 times in 20. */
static void an_expectation_has_an_interval_that_holds_the_mean(void **state) {
    (void)state;
    static const struct weather_rate rates[] = {{2, 0.3}, {8, 0.7}};
    struct fixture f;
    struct error err;
    struct expectation many, few;
    served(&f, 3);
    f.site.cluster.variability.every_us = 1000;
    f.site.cluster.variability.n_rates = 2;
    f.site.cluster.variability.rates = rates;
    assert_ok(
        expect(&f, &(struct expectation_options){.first_seed = 1000, .seeds = 400, .until_us = 50000}, &many, &err));
    assert_true(many.low_us < many.mean_us && many.mean_us < many.high_us && many.p95_us > many.mean_us);
    int holds = 0;
    for (uint64_t i = 0; i < 40; i++) {
        assert_ok(expect(&f, &(struct expectation_options){.first_seed = 8 * i, .until_us = 50000}, &few, &err));
        assert_int_equal(few.seeds, EXPECTATION_SEEDS);
        holds += few.low_us <= many.mean_us && many.mean_us <= few.high_us;
    }
    assert_true(holds >= 33);
}

/* Nothing says how seeds differ; and what is written without an interval is read as it was. */
static void one_seed_has_no_interval(void **state) {
    (void)state;
    static const struct weather_rate rates[] = {{2, 0.3}, {8, 0.7}};
    struct fixture f;
    struct error err;
    struct expectation e, read;
    served(&f, 3);
    f.site.cluster.variability.every_us = 1000;
    f.site.cluster.variability.n_rates = 2;
    f.site.cluster.variability.rates = rates;
    for (uint32_t seeds = 1; seeds <= 2; seeds++) {
        assert_ok(expect(&f, &(struct expectation_options){.seeds = seeds, .until_us = 50000}, &e, &err));
        assert_int_equal(expectation_has_interval(&e), seeds > 1);
        cJSON *json = cJSON_CreateObject();
        assert_true(expectation_write(&e, json));
        const cJSON *in_weather = cJSON_GetObjectItemCaseSensitive(json, "in_weather");
        const struct json_at at = json_root(in_weather, "in_weather");
        assert_int_equal(cJSON_HasObjectItem(in_weather, "low_us"), seeds > 1);
        assert_true(seeds > 1 || !cJSON_HasObjectItem(in_weather, "high_us"));
        assert_ok(expectation_read(&at, &read, &err));
        assert_close(read.low_us, e.low_us, 0);
        assert_true(read.high_us >= e.high_us && read.high_us <= e.high_us);
        cJSON_Delete(json);
    }
}

static void an_expectation_of_so_many_iterations_has_so_many(void **state) {
    (void)state;
    struct fixture f;
    struct error err;
    struct expectation e;
    served(&f, 2);
    assert_ok(expect(&f, &(struct expectation_options){.seeds = 3, .iterations = 7}, &e, &err));
    assert_int_equal(e.iterations, 21);
    assert_close(e.mean_us, 230, EXACT);
    assert_close(e.p95_us, 230, EXACT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rate_that_changes_during_a_push_stretches_the_rest_of_it),
        cmocka_unit_test(iterations_differ_and_the_mean_is_of_all),
        cmocka_unit_test(an_all_reduce_waits_for_the_slowest_nic),
        cmocka_unit_test(the_slowest_worker_of_an_iteration_holds_all),
        cmocka_unit_test(what_sends_nothing_meets_slow_workers_too),
        cmocka_unit_test(an_expectation_has_an_interval_that_holds_the_mean),
        cmocka_unit_test(one_seed_has_no_interval),
        cmocka_unit_test(an_expectation_of_so_many_iterations_has_so_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
