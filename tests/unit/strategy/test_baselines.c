/* Baselines against merge groups and placements worked out by hand, and on the example models against the rule that
 * each system states. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "strategy/baselines/baselines.h"
#include "strategy/plan.h"
#include "strategy/space/ready_order.h"
#include "tests/support/check.h"
#include "tests/support/strategy/random_instances.h"

static void read_model(const char *text, struct model *out) {
    struct error err = {0};
    cJSON *json;
    assert_ok(json_parse(text, strlen(text), "model", &json, &err));
    assert_ok(model_read(json, "model", out, &err));
    cJSON_Delete(json);
}

static void read_cluster(const char *text, struct cluster *out) {
    struct error err = {0};
    cJSON *json;
    assert_ok(json_parse(text, strlen(text), "cluster", &json, &err));
    assert_ok(cluster_read(json, "cluster", out, &err));
    cJSON_Delete(json);
}

static void build(const char *name, const struct model *model, const struct cluster *cluster, struct strategy *out) {
    struct error err = {0};
    const struct baseline *baseline = baselines_find(name);
    assert_non_null(baseline);
    assert_ok(baselines_build(baseline, model, cluster, out, &err));
    assert_string_equal(out->name, name);
}

/* Five variables that become ready as e, c, d, b, a: at 600, 1100, 1100, 2000 and 2300 µs. */
static const char five[] =
    "{\"schema\":\"syncopate.model/1\",\"name\":\"five\",\"batch_per_device\":1,\"variables\":["
    "{\"name\":\"a\",\"shape\":[1000]},{\"name\":\"b\",\"shape\":[6553600]},{\"name\":\"c\",\"shape\":[100]},"
    "{\"name\":\"d\",\"shape\":[262144]},{\"name\":\"e\",\"shape\":[10]}],\"layers\":["
    "{\"name\":\"1\",\"forward_us\":100,\"backward_us\":300,\"variables\":[\"a\"]},"
    "{\"name\":\"2\",\"forward_us\":100,\"backward_us\":900,\"variables\":[\"b\"]},"
    "{\"name\":\"3\",\"forward_us\":100,\"backward_us\":500,\"variables\":[\"c\",\"d\"]},"
    "{\"name\":\"4\",\"forward_us\":100,\"backward_us\":200,\"variables\":[\"e\"]}]}";

static const char three_nodes[] =
    "{\"schema\":\"syncopate.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"n\",\"count\":3,"
    "\"devices\":1,\"nic_gbit_per_s\":10}]}";
static const char one_slow_node[] =
    "{\"schema\":\"syncopate.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"n\",\"nic_gbit_per_s\":10},"
    "{\"name\":\"slow\",\"nic_gbit_per_s\":10,\"compute_scale\":4},"
    "{\"name\":\"server\",\"devices\":0,\"nic_gbit_per_s\":10,\"compute_scale\":9}]}";

/* Sealed groups are numbered by their first variable, so a string such as "01222" says who is with whom. */
static void check_groups(const char *name, const char *model_text, const char *cluster_text, const char *want) {
    struct model model;
    struct cluster cluster;
    struct strategy s;
    char got[16] = {0};
    read_model(model_text, &model);
    read_cluster(cluster_text, &cluster);
    build(name, &model, &cluster, &s);
    for (uint32_t v = 0; v < s.n_variables; v++) {
        assert_int_equal(s.variables[v].kind, SYNC_ALL_REDUCE);
        got[v] = (char)('0' + s.variables[v].group);
    }
    assert_string_equal(got, want);
    assert_int_equal(s.credit_bytes, 0);
    strategy_release(&s);
    cluster_release(&cluster);
    model_release(&model);
}

static void wfbp_gives_each_variable_its_own_group(void **state) {
    (void)state;
    check_groups("wfbp", five, three_nodes, "01234");
}

static void single_has_one_group(void **state) {
    (void)state;
    check_groups("single", five, three_nodes, "00000");
}

/* e + c + d reach 1 MiB, b alone is exactly 25 MiB and closes its bucket, a is left. */
static void ddp_closes_a_bucket_when_it_reaches_its_cap(void **state) {
    (void)state;
    check_groups("pytorch-ddp", five, three_nodes, "01222");
}

/* Cycles of 1 ms: e in the first, c and d in the second, b and a in the third. Four times slower, a misses b's. */
static void horovod_fuses_what_is_ready_in_one_cycle_on_the_slowest_node(void **state) {
    (void)state;
    check_groups("horovod", five, three_nodes, "00112");
    check_groups("horovod", five, one_slow_node, "01223");
}

#define ONE_LAYER(variables, names)                                                                                    \
    "{\"schema\":\"syncopate.model/1\",\"name\":\"m\",\"batch_per_device\":1,\"variables\":[" variables                \
    "],\"layers\":[{\"name\":\"l\",\"forward_us\":1,\"backward_us\":1,\"variables\":[" names "]}]}"

/* y does not fit beside x and is too large to look past, so z goes with y. */
static void horovod_starts_a_new_buffer_at_the_threshold(void **state) {
    (void)state;
    check_groups("horovod",
                 ONE_LAYER("{\"name\":\"x\",\"shape\":[26214400]},{\"name\":\"y\",\"shape\":[26214400]},"
                           "{\"name\":\"z\",\"shape\":[256]}",
                           "\"x\",\"y\",\"z\""),
                 three_nodes, "011");
}

/* 50 MiB each but z: past y and w together x's buffer may not look, so z, which would fit, stays behind. */
static void horovod_looks_only_as_far_ahead_as_the_threshold(void **state) {
    (void)state;
    check_groups("horovod",
                 ONE_LAYER("{\"name\":\"x\",\"shape\":[13107200]},"
                           "{\"name\":\"y\",\"shape\":[26214400],\"dtype\":\"f16\"},"
                           "{\"name\":\"w\",\"shape\":[26214400],\"dtype\":\"f16\"},"
                           "{\"name\":\"z\",\"shape\":[256]}",
                           "\"x\",\"y\",\"w\",\"z\""),
                 three_nodes, "0112");
}

static const char mixed[] = ONE_LAYER("{\"name\":\"x\",\"shape\":[4]},{\"name\":\"y\",\"shape\":[4],\"dtype\":\"f16\"},"
                                      "{\"name\":\"z\",\"shape\":[4]}",
                                      "\"x\",\"y\",\"z\"");

static void dtypes_get_groups_of_their_own(void **state) {
    (void)state;
    check_groups("horovod", mixed, three_nodes, "010"); /* looks past y */
    check_groups("pytorch-ddp", mixed, three_nodes, "010");
    check_groups("single", mixed, three_nodes, "010");
    check_groups("all-reduce", mixed, three_nodes, "010");
}

static void check_servers(const char *name, const char *want) {
    struct model model;
    struct cluster cluster;
    struct strategy s;
    read_model(five, &model);
    read_cluster(three_nodes, &cluster);
    build(name, &model, &cluster, &s);
    for (uint32_t v = 0; v < s.n_variables; v++) {
        assert_int_equal(s.variables[v].kind, SYNC_PARAMETER_SERVER);
        assert_int_equal(s.variables[v].n_servers, 1);
        assert_int_equal(s.variables[v].servers[0], want[v] - '0');
        assert_true(s.variables[v].local_reduction);
    }
    assert_true(s.credit_bytes == CREDIT_UNLIMITED);
    strategy_release(&s);
    cluster_release(&cluster);
    model_release(&model);
}

static void ps_puts_everything_on_the_first_node(void **state) {
    (void)state;
    check_servers("ps", "00000");
}

/* a 4000 B, b 25 MiB and c 400 B take a node each, d joins c, e joins a. */
static void load_balanced_ps_takes_the_server_with_the_fewest_bytes(void **state) {
    (void)state;
    check_servers("ps-load-balanced", "01220");
}

static void the_table_names_each_baseline_once_and_says_where_it_is_from(void **state) {
    (void)state;
    size_t n;
    const struct baseline *all = baselines_list(&n);
    assert_true(n >= 7);
    for (size_t i = 0; i < n; i++) {
        assert_ptr_equal(baselines_find(all[i].name), &all[i]);
        assert_true(strlen(all[i].summary) > 10 && strlen(all[i].summary) < 100 && strlen(all[i].source) > 5);
    }
    assert_null(baselines_find("no-such"));
}

/* ---- every baseline on random instances, and the merging rules on the example models ---- */

static void every_baseline_is_valid_everywhere_and_keeps_the_barrier(void **state) {
    (void)state;
    struct error err = {0};
    size_t n;
    const struct baseline *all = baselines_list(&n);
    for (uint64_t i = 0; i < 300; i++) {
        struct rng rng;
        struct model model;
        struct cluster cluster;
        rng_split(&rng, test_seed(), i);
        assert_ok(random_model(&rng, &model, &err));
        assert_ok(random_cluster(&rng, &cluster, &err));
        for (size_t k = 0; k < n; k++) {
            struct strategy s;
            struct plan plan;
            build(all[k].name, &model, &cluster, &s);
            assert_int_equal(s.policy, POLICY_fifo);
            assert_false(s.cross_iteration);
            assert_ok(plan_lower(&model, &cluster, &s, &plan, &err));
            plan_release(&plan);
            strategy_release(&s);
        }
        cluster_release(&cluster);
        model_release(&model);
    }
}

/* Each bucket but the last of a dtype holds its cap, and did not before its last gradient came. */
static void check_buckets(const struct model *model, const struct strategy *s, const uint32_t *ready) {
    uint64_t bytes[DTYPE_COUNT] = {0};
    uint32_t open[DTYPE_COUNT], buckets[DTYPE_COUNT] = {0}, seen = 0;
    for (uint32_t i = 0; i < s->n_variables; i++) {
        const struct variable *v = &model->variables[ready[i]];
        uint64_t cap = (buckets[v->dtype] > 1 ? UINT64_C(25) : UINT64_C(1)) << 20;
        bool full = !buckets[v->dtype] || bytes[v->dtype] >= cap;
        if (full) {
            open[v->dtype] = s->variables[ready[i]].group;
            bytes[v->dtype] = 0;
            buckets[v->dtype]++;
            seen++;
        }
        assert_int_equal(s->variables[ready[i]].group, open[v->dtype]);
        bytes[v->dtype] += v->bytes;
    }
    assert_int_equal(seen, s->n_groups);
}

static void check_fusion(const struct model *model, const struct strategy *s, const uint32_t *ready) {
    double *cycle = calloc(s->n_groups, sizeof *cycle), now_us = 0.0;
    uint64_t *bytes = calloc(s->n_groups, sizeof *bytes), *members = calloc(s->n_groups, sizeof *members);
    assert_true(cycle && bytes && members);
    for (uint32_t i = 0, next = 0; i < model->n_operators; i++) {
        now_us += model->operators[model->order[i]].time_us;
        for (; next < s->n_variables && model->variables[ready[next]].producer == model->order[i]; next++) {
            uint32_t group = s->variables[ready[next]].group;
            double mine = (double)(uint64_t)(now_us / 1000.0);
            assert_true(!members[group] || cycle[group] == mine);
            cycle[group] = mine;
            members[group]++;
            bytes[group] += model->variables[ready[next]].bytes;
        }
    }
    for (uint32_t g = 0; g < s->n_groups; g++)
        assert_true(members[g] == 1 || bytes[g] <= UINT64_C(128) << 20);
    free(cycle);
    free(bytes);
    free(members);
}

static void check_example(const char *path, const struct cluster *cluster) {
    struct error err = {0};
    struct model model;
    struct strategy ddp, horovod, chunks, wfbp;
    assert_ok(model_read_file(path, &model, &err));
    uint32_t *ready = calloc(model.n_variables, sizeof *ready);
    assert_non_null(ready);
    assert_ok(ready_order(&model, ready, &err));
    build("pytorch-ddp", &model, cluster, &ddp);
    build("horovod", &model, cluster, &horovod);
    build("all-reduce", &model, cluster, &chunks);
    build("wfbp", &model, cluster, &wfbp);
    check_buckets(&model, &ddp, ready);
    check_fusion(&model, &horovod, ready);
    for (uint32_t v = 0; v < model.n_variables; v++)
        if (chunks.n_groups == (model.n_variables + 127) / 128) /* one dtype */
            assert_int_equal(chunks.variables[v].group, v / 128);
    assert_int_equal(wfbp.n_groups, model.n_variables);
    strategy_release(&ddp);
    strategy_release(&horovod);
    strategy_release(&chunks);
    strategy_release(&wfbp);
    model_release(&model);
    free(ready);
}

static void merging_rules_hold_on_the_example_models(void **state) {
    (void)state;
    struct cluster cluster;
    glob_t models;
    if (glob("examples/models/*.json", 0, NULL, &models))
        skip();
    read_cluster(three_nodes, &cluster);
    for (size_t i = 0; i < models.gl_pathc; i++)
        check_example(models.gl_pathv[i], &cluster);
    cluster_release(&cluster);
    globfree(&models);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wfbp_gives_each_variable_its_own_group),
        cmocka_unit_test(single_has_one_group),
        cmocka_unit_test(ddp_closes_a_bucket_when_it_reaches_its_cap),
        cmocka_unit_test(horovod_fuses_what_is_ready_in_one_cycle_on_the_slowest_node),
        cmocka_unit_test(horovod_starts_a_new_buffer_at_the_threshold),
        cmocka_unit_test(horovod_looks_only_as_far_ahead_as_the_threshold),
        cmocka_unit_test(dtypes_get_groups_of_their_own),
        cmocka_unit_test(ps_puts_everything_on_the_first_node),
        cmocka_unit_test(load_balanced_ps_takes_the_server_with_the_fewest_bytes),
        cmocka_unit_test(the_table_names_each_baseline_once_and_says_where_it_is_from),
        cmocka_unit_test(every_baseline_is_valid_everywhere_and_keeps_the_barrier),
        cmocka_unit_test(merging_rules_hold_on_the_example_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
