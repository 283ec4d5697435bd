/* Lines against the costs that they stand for, and the two phases of a parameter server against sums by hand. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "strategy/cost/line.h"
#include "tests/support/check.h"
#include "tests/support/strategy/random_instances.h"
#include "tests/support/strategy/server_line.h"

enum { CLUSTERS = 500, SIZES = 40 };
static const uint64_t LARGEST = UINT64_C(1) << 30;

struct site {
    struct cluster cluster;
    struct cost cost;
};

static void site_open(struct site *site, const char *text) {
    struct error err;
    cJSON *json;
    assert_ok(json_parse(text, strlen(text), "cluster", &json, &err));
    assert_ok(cluster_read(json, "cluster", &site->cluster, &err));
    assert_ok(cost_init(&site->cost, &site->cluster, &err));
    cJSON_Delete(json);
}

static void site_close(struct site *site) {
    cost_release(&site->cost);
    cluster_release(&site->cluster);
}

static void collectives_are_their_own_line(void **state) {
    struct site site;
    struct cost_line lines[COST_MAX_LINES];
    double error = -1;
    (void)state;
    site_open(&site, "{\"schema\":\"syncopate.cluster/"
                     "1\",\"name\":\"c\",\"transport\":\"ideal\",\"nodes\":[{\"name\":\"n\",\"count\":4,"
                     "\"nic_gbit_per_s\":10}],\"collectives\":{\"all_reduce\":{\"startup_us\":972,"
                     "\"per_byte_ns\":1.97}},\"runtime\":{\"message_us\":28}}");
    struct cost_line line = cost_line_all_reduce(&site.cost, LARGEST, &error);
    assert_close(line.startup_us, 1000, 1e-12);
    assert_close(line.per_byte_us, 1.97e-3, 1e-12);
    assert_true(error == 0);
    assert_int_equal(cost_all_reduce_lines(&site.cost, lines), 1);
    assert_close(cost_all_reduce_us(&site.cost, 1000), 1001.97, 1e-12);
    site_close(&site);
}

/* Without curves the least of the lines is the cost. */
static void check_lines(struct rng *rng, const struct cost *cost, uint32_t n, const struct cost_line *lines) {
    for (int i = 0; i < SIZES; i++) {
        uint64_t bytes = (uint64_t)rng_log_between(rng, 1, 1e9);
        double least = INFINITY;
        for (uint32_t k = 0; k < n; k++)
            least = fmin(least, lines[k].startup_us + lines[k].per_byte_us * (double)bytes);
        assert_close(least, cost_all_reduce_us(cost, bytes), 1e-12);
    }
}

static void check_fit(const struct cost *cost, struct rng *rng, bool curves, int *exact, double *worst) {
    double error = -1;
    uint64_t most = (uint64_t)rng_log_between(rng, 1e4, 1e9);
    struct cost_line line = cost_line_all_reduce(cost, most, &error);
    assert_true(line.startup_us >= 0 && line.per_byte_us >= 0 && error >= 0 && isfinite(error));
    *exact += error == 0;
    *worst = fmax(*worst, error);
    double time = cost_all_reduce_us(cost, most), off = fabs(line.startup_us + line.per_byte_us * (double)most - time);
    assert_true(off <= (error + 1e-9) * time);
    for (int i = 0; i < SIZES && error == 0 && !curves; i++) {
        uint64_t bytes = 1 + rng_below(rng, most);
        assert_close(line.startup_us + line.per_byte_us * (double)bytes, cost_all_reduce_us(cost, bytes), 1e-12);
    }
}

static void lines_are_the_cost_and_a_fit_is_as_good_as_it_says(void **state) {
    struct rng rng;
    struct error err;
    int exact = 0;
    double worst = 0;
    (void)state;
    rng_seed(&rng, test_seed());
    for (int i = 0; i < CLUSTERS; i++) {
        struct site site;
        struct cost_line lines[COST_MAX_LINES];
        assert_ok(random_cluster(&rng, &site.cluster, &err));
        assert_ok(cost_init(&site.cost, &site.cluster, &err));
        uint32_t n = cost_all_reduce_lines(&site.cost, lines);
        assert_int_equal(n == 0, site.cost.all_reduce.any_curve || site.cost.all_reduce.small_bytes > 0);
        if (n)
            check_lines(&rng, &site.cost, n, lines);
        check_fit(&site.cost, &rng, n == 0, &exact, &worst);
        site_close(&site);
    }
    printf("one line is exact on %d of %d random clusters; at worst the fit is off by %.0f%%\n", exact, CLUSTERS,
           100 * worst);
    assert_true(exact > 0 && exact < CLUSTERS);
}

/* 10 Gbit/s are 1250 bytes a µs. Three remote pushes share the server's NIC; the fourth stays on its node. */
static void push_and_pull_share_the_nic_of_the_server(void **state) {
    struct site site;
    (void)state;
    site_open(&site, "{\"schema\":\"syncopate.cluster/"
                     "1\",\"name\":\"c\",\"transport\":\"ideal\",\"nodes\":[{\"name\":\"n\",\"count\":4,"
                     "\"devices\":2,\"nic_gbit_per_s\":10,\"nic_latency_us\":30,\"device_link_gbyte_per_s\":10}],"
                     "\"runtime\":{\"message_us\":5,\"push_us\":40,\"sum_gbyte_per_s\":20}}");
    struct cost_line push = cost_line_push(&site.cost, 0), pull = cost_line_pull(&site.cost, 0);
    struct cost_line both = cost_line_push_pull(&site.cost, 0);
    assert_close(push.startup_us, 5 + 40, 1e-12);
    assert_close(push.per_byte_us, 3 / 1250.0 + (1 / 10000.0 + 1 / 20000.0) + 3 / 20000.0, 1e-12);
    assert_close(pull.startup_us, 40, 1e-12);
    assert_close(pull.per_byte_us, 3 / 1250.0 + 1 / 10000.0, 1e-12);
    assert_close(both.startup_us, 85, 1e-12);
    assert_close(both.per_byte_us, push.per_byte_us + pull.per_byte_us, 1e-12);
    site_close(&site);
}

static void slow_worker_or_link_holds_its_phase_up(void **state) {
    struct site site;
    (void)state;
    site_open(&site, "{\"schema\":\"syncopate.cluster/1\",\"name\":\"c\",\"transport\":\"ideal\",\"nodes\":["
                     "{\"name\":\"a\",\"nic_gbit_per_s\":1},{\"name\":\"b\",\"nic_gbit_per_s\":10},"
                     "{\"name\":\"s\",\"devices\":0,\"nic_gbit_per_s\":10}],"
                     "\"links\":[{\"from\":\"s\",\"to\":\"b\",\"gbit_per_s\":0.1}]}");
    assert_close(cost_line_push(&site.cost, 2).per_byte_us, 1 / 125.0, 1e-12);
    assert_close(cost_line_pull(&site.cost, 2).per_byte_us, 1 / 12.5, 1e-12);
    site_close(&site);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collectives_are_their_own_line),
        cmocka_unit_test(lines_are_the_cost_and_a_fit_is_as_good_as_it_says),
        cmocka_unit_test(push_and_pull_share_the_nic_of_the_server),
        cmocka_unit_test(slow_worker_or_link_holds_its_phase_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
