/* Baselines against merge groups and placements worked out by hand, and on the example models against the rule that
 * each system states. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "strategy/baselines/baselines.h"
#include "strategy/baselines/pytorch_ddp.h"
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
static void check_groups_and_credit(const char *name, const char *model_text, const char *cluster_text,
                                    const char *want, uint64_t credit_bytes) {
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
    assert_int_equal(s.credit_bytes, credit_bytes);
    strategy_release(&s);
    cluster_release(&cluster);
    model_release(&model);
}

static void check_groups(const char *name, const char *model_text, const char *cluster_text, const char *want) {
    check_groups_and_credit(name, model_text, cluster_text, want, 0);
}

static void wfbp_gives_each_variable_its_own_group(void **state) {
    (void)state;
    check_groups("wfbp", five, three_nodes, "01234");
}

static void single_has_one_group(void **state) {
    (void)state;
    check_groups("single", five, three_nodes, "00000");
    check_groups("tree-reduce", five, three_nodes, "00000");
}

/* e + c + d + b are the first to hold 25 MiB, a is left; 40 million elements hold all. */
static void halves_are_buckets_that_the_next_forward_pass_waits_for(void **state) {
    (void)state;
    static const char *const names[] = {"dear", "megatron-distributed-optimizer"};
    struct model model;
    struct cluster cluster;
    check_groups(names[0], five, three_nodes, "01111");
    check_groups(names[1], five, three_nodes, "00000");
    read_model(five, &model);
    read_cluster(three_nodes, &cluster);
    for (int i = 0; i < 2; i++) {
        struct strategy s;
        build(names[i], &model, &cluster, &s);
        assert_true(s.cross_iteration);
        assert_int_equal(s.policy, POLICY_fifo);
        for (uint32_t g = 0; g < s.n_groups; g++)
            assert_int_equal(s.groups[g].sharded, SHARDED_optimizer);
        strategy_release(&s);
    }
    cluster_release(&cluster);
    model_release(&model);
}

/* e + c + d reach 1 MiB, b alone is exactly 25 MiB and closes its bucket, a is left. */
static void ddp_closes_a_bucket_when_it_reaches_its_cap(void **state) {
    (void)state;
    check_groups("pytorch-ddp", five, three_nodes, "01222");
}

/* Sizes in the order of readiness: 40, 400, 1048576, 26214400 and 4000 bytes. */
static void ddp_with_a_cap_of_the_users_has_it_for_every_bucket(void **state) {
    (void)state;
    static const struct {
        uint64_t cap_bytes;
        const char *want; /* a, b, c, d, e */
    } cases[] = {{40, "01234"},      {41, "01232"},      {440, "01232"},       {441, "01222"},
                 {1049016, "01222"}, {1049017, "01111"}, {UINT64_MAX, "00000"}};
    struct error err = {0};
    struct model model;
    struct cluster cluster;
    read_model(five, &model);
    read_cluster(three_nodes, &cluster);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct strategy s;
        char got[16] = {0};
        assert_ok(pytorch_ddp_build(&model, &cluster, cases[i].cap_bytes, "mine", &s, &err));
        for (uint32_t v = 0; v < s.n_variables; v++)
            got[v] = (char)('0' + s.variables[v].group);
        printf("cap %llu: %s\n", (unsigned long long)cases[i].cap_bytes, got);
        assert_string_equal(got, cases[i].want);
        assert_string_equal(s.name, "mine");
        strategy_release(&s);
    }
    cluster_release(&cluster);
    model_release(&model);
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

/* 3 devices have 3 * 10 * (64 + 8) bytes of s and of t, so they fit. u has 3 * 700,000 * 72, more than 128 MiB. */
static void horovod_gathers_sparse_gradients(void **state) {
    (void)state;
    static const char text[] = ONE_LAYER("{\"name\":\"s\",\"shape\":[1000000,16],\"sparse_rows\":10},"
                                         "{\"name\":\"d\",\"shape\":[4]},"
                                         "{\"name\":\"t\",\"shape\":[1000000,16],\"sparse_rows\":10},"
                                         "{\"name\":\"u\",\"shape\":[1000000,16],\"sparse_rows\":700000}",
                                         "\"s\",\"d\",\"t\",\"u\"");
    struct model model;
    struct cluster cluster;
    struct strategy s;
    read_model(text, &model);
    read_cluster(three_nodes, &cluster);
    build("horovod", &model, &cluster, &s);
    check_groups("horovod", text, three_nodes, "0102");
    for (uint32_t v = 0; v < 4; v++)
        assert_int_equal(s.groups[s.variables[v].group].algorithm, v == 1 ? ALGORITHM_auto : ALGORITHM_all_gather);
    strategy_release(&s);
    cluster_release(&cluster);
    model_release(&model);
}

/* With gloo a bucket each; NCCL, which is what a cluster has where it does not say, cannot send them. */
static void ddp_on_gloo_gathers_sparse_gradients(void **state) {
    (void)state;
    static const char text[] = ONE_LAYER("{\"name\":\"s\",\"shape\":[1000,16],\"sparse_rows\":10},"
                                         "{\"name\":\"d\",\"shape\":[4]},"
                                         "{\"name\":\"t\",\"shape\":[1000,16],\"sparse_rows\":10},"
                                         "{\"name\":\"e\",\"shape\":[4]}",
                                         "\"s\",\"d\",\"t\",\"e\"");
    static const char on_gloo[] = "{\"schema\":\"syncopate.cluster/1\",\"name\":\"c\",\"transport\":\"gloo\","
                                  "\"nodes\":[{\"name\":\"n\",\"count\":3,\"devices\":1,\"nic_gbit_per_s\":10}]}";
    struct model model;
    struct cluster cluster;
    struct strategy s;
    check_groups("pytorch-ddp", text, three_nodes, "0000");
    check_groups("pytorch-ddp", text, on_gloo, "0121");
    read_model(text, &model);
    read_cluster(on_gloo, &cluster);
    build("pytorch-ddp", &model, &cluster, &s);
    for (uint32_t v = 0; v < 4; v++)
        assert_int_equal(s.groups[s.variables[v].group].algorithm, v % 2 ? ALGORITHM_auto : ALGORITHM_all_gather);
    strategy_release(&s);
    cluster_release(&cluster);
    model_release(&model);
}

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
    assert_true(n >= 20);
    for (size_t i = 0; i < n; i++) {
        assert_ptr_equal(baselines_find(all[i].name), &all[i]);
        assert_true(strlen(all[i].summary) > 10 && strlen(all[i].summary) < 100 && strlen(all[i].source) > 5);
    }
    assert_null(baselines_find("no-such"));
}

/* ---- cutting and placing ---- */

struct want {
    uint32_t shards;
    const char *servers; /* a digit each; NULL: all-reduced */
};

static void check_placement(const char *name, const char *model_text, const char *cluster_text,
                            const struct want *want) {
    struct model model;
    struct cluster cluster;
    struct strategy s;
    read_model(model_text, &model);
    read_cluster(cluster_text, &cluster);
    build(name, &model, &cluster, &s);
    for (uint32_t v = 0; v < s.n_variables; v++) {
        const struct variable_sync *sync = &s.variables[v];
        char servers[16] = {0};
        for (uint32_t i = 0; i < sync->n_servers; i++)
            servers[i] = (char)('0' + sync->servers[i]);
        assert_int_equal(sync->shards, want[v].shards);
        assert_int_equal(sync->axis, 0);
        assert_int_equal(sync->kind, want[v].servers ? SYNC_PARAMETER_SERVER : SYNC_ALL_REDUCE);
        assert_string_equal(servers, want[v].servers ? want[v].servers : "");
    }
    strategy_release(&s);
    cluster_release(&cluster);
    model_release(&model);
}

/* Long rows, a scalar, another dtype, a sparse table; 5,100,001 elements in 16,400,004 bytes. */
static const char four[] = ONE_LAYER("{\"name\":\"w\",\"shape\":[10,300000]},{\"name\":\"b\",\"shape\":[]},"
                                     "{\"name\":\"h\",\"shape\":[2000000],\"dtype\":\"f16\"},"
                                     "{\"name\":\"e\",\"shape\":[1000,100],\"sparse_rows\":10}",
                                     "\"w\",\"b\",\"h\",\"e\"");
static const char two_and_two_servers[] =
    "{\"schema\":\"syncopate.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"n\",\"count\":2,"
    "\"devices\":1,\"nic_gbit_per_s\":10},{\"name\":\"s\",\"count\":2,\"devices\":0,\"nic_gbit_per_s\":10}]}";
static const char one_node[] = "{\"schema\":\"syncopate.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"n\","
                               "\"devices\":4,\"nic_gbit_per_s\":10,\"device_link_gbyte_per_s\":10}]}";

/* The schedule as a line, and how many messages of how many bytes at most the plan has. */
static void check_schedule(const char *name, const char *model_text, const char *cluster_text, const char *want) {
    struct error err = {0};
    struct model model;
    struct cluster cluster;
    struct strategy s;
    struct plan plan;
    char got[160];
    read_model(model_text, &model);
    read_cluster(cluster_text, &cluster);
    build(name, &model, &cluster, &s);
    assert_ok(plan_lower(&model, &cluster, &s, &plan, &err));
    snprintf(got, sizeof got, "%s %s %lld: %u to %lu", policy_name(s.policy), s.cross_iteration ? "on" : "barrier",
             s.credit_bytes == CREDIT_UNLIMITED ? -1 : (long long)s.credit_bytes, plan.n_messages,
             (unsigned long)plan.max_bytes);
    assert_string_equal(got, want);
    plan_release(&plan);
    strategy_release(&s);
    cluster_release(&cluster);
    model_release(&model);
}

/* w 3, b 1, h 2 (of 2 MB, being f16), e 1; an element of the model has 3.2157 bytes. */
static void bytescheduler_all_reduce_cuts_each_tensor_into_a_million_elements(void **state) {
    (void)state;
    check_groups_and_credit("bytescheduler-all-reduce", four, three_nodes, "0123", 12862746);
    check_schedule("bytescheduler-all-reduce", four, three_nodes, "priority on 12862746: 7 to 4000000");
    check_schedule("bytescheduler-all-reduce", five, three_nodes, "priority on 16000000: 11 to 4000000");
}

static void bytescheduler_ps_gives_each_partition_the_next_server(void **state) {
    (void)state;
    check_placement("bytescheduler-ps", four, three_nodes, (struct want[]){{3, "012"}, {1, "0"}, {2, "12"}, {1, "0"}});
    check_placement("bytescheduler-ps", four, two_and_two_servers,
                    (struct want[]){{3, "23"}, {1, "3"}, {2, "23"}, {1, "2"}});
    check_placement("bytescheduler-ps", four, one_node, (struct want[]){{3, "0"}, {1, "0"}, {2, "0"}, {1, "0"}});
    check_schedule("bytescheduler-ps", four, three_nodes, "priority on 12862746: 7 to 4800000");
}

/* A row of w is 1.2 MB: 8 pushes to one server. h is 50 slices of 80 KB; 10 touched rows of e in 3 slices. */
static void p3_slices_by_160_kilobytes(void **state) {
    (void)state;
    check_placement("p3", four, three_nodes, (struct want[]){{10, "012"}, {1, "1"}, {50, "201"}, {3, "120"}});
    check_placement("p3", four, two_and_two_servers, (struct want[]){{10, "23"}, {1, "2"}, {50, "32"}, {3, "32"}});
    check_schedule("p3", four, three_nodes, "priority on 0: 134 to 160000");
}

static void tictac_orders_whole_gradients(void **state) {
    (void)state;
    check_groups("tictac", five, three_nodes, "01234");
    check_schedule("tictac", five, three_nodes, "priority on 0: 5 to 26214400");
}

/* The keys 0, 65536, 131072 and 196608 hash to servers 0, 0, 2, 2 of three and to 1, 0, 1, 1 of two. */
static void byteps_hashes_keys_and_holds_nothing_back(void **state) {
    (void)state;
    check_placement("byteps", four, three_nodes, (struct want[]){{4, "012"}, {1, "0"}, {1, "2"}, {1, "2"}});
    check_placement("byteps", four, two_and_two_servers, (struct want[]){{4, "32"}, {1, "2"}, {1, "3"}, {1, "3"}});
    check_schedule("byteps", four, three_nodes, "fifo barrier -1: 7 to 4000000");
}

/* Rows 6, 7, 2, 1, none, 12, of 120, 84, 8, 36, 4 and 48 bytes. */
static const char rows[] = ONE_LAYER("{\"name\":\"p\",\"shape\":[6,5]},{\"name\":\"q\",\"shape\":[7,3]},"
                                     "{\"name\":\"r\",\"shape\":[2]},{\"name\":\"s\",\"shape\":[1,9]},"
                                     "{\"name\":\"t\",\"shape\":[]},{\"name\":\"u\",\"shape\":[12]}",
                                     "\"p\",\"q\",\"r\",\"s\",\"t\",\"u\"");

/* Loads after each: 60 60 0, 84 84 36, 88 84 40, 88 84 76, 88 84 80, then the two least are 2 and 1. */
static void ps_partitioned_cuts_by_the_smallest_divisor(void **state) {
    (void)state;
    check_placement("ps-partitioned", rows, three_nodes,
                    (struct want[]){{2, "01"}, {7, "201"}, {2, "20"}, {1, "2"}, {1, "2"}, {2, "21"}});
    check_placement("ps-partitioned", five, three_nodes,
                    (struct want[]){{2, "01"}, {2, "20"}, {2, "12"}, {2, "12"}, {2, "10"}});
    check_schedule("ps-partitioned", rows, three_nodes, "fifo barrier -1: 15 to 60");
}

/* Loads after each: 60 30 30, 60 72 72, 64 76 72, 100 76 72, 100 76 76, then all three. */
static void ps_uneven_cuts_by_the_smallest_non_divisor(void **state) {
    (void)state;
    check_placement("ps-uneven", rows, three_nodes,
                    (struct want[]){{4, "012"}, {2, "12"}, {2, "01"}, {1, "0"}, {1, "2"}, {5, "120"}});
    check_placement("ps-uneven", rows, one_node,
                    (struct want[]){{4, "0"}, {2, "0"}, {2, "0"}, {1, "0"}, {1, "0"}, {5, "0"}});
    check_schedule("ps-uneven", rows, three_nodes, "fifo barrier -1: 15 to 48");
}

/* A part of one variable and the first of the next share a message: 15 parts, 9 cuts inside variables. */
static void partitioned_all_reduce_cuts_and_merges(void **state) {
    (void)state;
    check_placement("partitioned-all-reduce", rows, three_nodes,
                    (struct want[]){{2, NULL}, {7, NULL}, {2, NULL}, {1, NULL}, {1, NULL}, {2, NULL}});
    check_groups("partitioned-all-reduce", rows, three_nodes, "000000");
    check_schedule("partitioned-all-reduce", rows, three_nodes, "fifo barrier 0: 10 to 72");
}

/* 127 parts, then 128 and 129: the second variable begins in the first chunk, the third in the second. */
static void partitioned_all_reduce_counts_parts_to_128(void **state) {
    (void)state;
    check_groups("partitioned-all-reduce",
                 ONE_LAYER("{\"name\":\"x\",\"shape\":[127]},{\"name\":\"y\",\"shape\":[2]},"
                           "{\"name\":\"z\",\"shape\":[2]}",
                           "\"x\",\"y\",\"z\""),
                 three_nodes, "001");
    check_groups("partitioned-all-reduce", mixed, three_nodes, "010");
}

/* Axis 0 of d is 1 long and never drawn, e is sparse; 64 models by their names. */
static void random_axis_is_drawn_among_those_longer_than_1(void **state) {
    (void)state;
    uint32_t seen[3] = {0};
    struct cluster cluster;
    read_cluster(three_nodes, &cluster);
    for (int i = 0; i < 64; i++) {
        char text[400];
        struct model model;
        struct strategy s, again;
        snprintf(text, sizeof text,
                 "{\"schema\":\"syncopate.model/1\",\"name\":\"m%d\",\"batch_per_device\":1,\"variables\":["
                 "{\"name\":\"d\",\"shape\":[1,6,35]},{\"name\":\"e\",\"shape\":[9,4],\"sparse_rows\":2}],\"layers\":["
                 "{\"name\":\"l\",\"forward_us\":1,\"backward_us\":1,\"variables\":[\"d\",\"e\"]}]}",
                 i);
        read_model(text, &model);
        build("random-axis-partition-all-reduce", &model, &cluster, &s);
        build("random-axis-partition-all-reduce", &model, &cluster, &again);
        assert_string_equal(s.id.hex, again.id.hex);
        seen[s.variables[0].axis]++;
        assert_int_equal(s.variables[0].shards, s.variables[0].axis == 1 ? 2 : 5);
        assert_int_equal(s.variables[1].axis, 0);
        assert_int_equal(s.variables[1].shards, 3);
        strategy_release(&s);
        strategy_release(&again);
        model_release(&model);
    }
    assert_int_equal(seen[0], 0);
    assert_true(seen[1] >= 16 && seen[2] >= 16);
    cluster_release(&cluster);
}

/* Two sparse tables on two nodes, the larger first; the rest is all-reduced, a group a dtype. */
static void parallax_serves_what_is_sparse(void **state) {
    (void)state;
    static const char model[] = ONE_LAYER("{\"name\":\"a\",\"shape\":[8]},"
                                          "{\"name\":\"e\",\"shape\":[100,8],\"sparse_rows\":5},"
                                          "{\"name\":\"g\",\"shape\":[50,8],\"sparse_rows\":5},"
                                          "{\"name\":\"i\",\"shape\":[10,8],\"sparse_rows\":5},"
                                          "{\"name\":\"h\",\"shape\":[8],\"dtype\":\"f16\"},"
                                          "{\"name\":\"z\",\"shape\":[8]}",
                                          "\"a\",\"e\",\"g\",\"i\",\"h\",\"z\"");
    check_placement("parallax", model, two_and_two_servers,
                    (struct want[]){{1, NULL}, {1, "0"}, {1, "1"}, {1, "2"}, {1, NULL}, {1, NULL}});
    check_placement("parallax", model, one_node,
                    (struct want[]){{1, NULL}, {1, "0"}, {1, "0"}, {1, "0"}, {1, NULL}, {1, NULL}});
    check_schedule("parallax", model, two_and_two_servers, "fifo barrier -1: 5 to 200");
}

static void parallax_without_sparse_variables_is_all_reduce(void **state) {
    (void)state;
    struct model model;
    struct cluster cluster;
    struct strategy parallax, all_reduce;
    read_model(mixed, &model);
    read_cluster(three_nodes, &cluster);
    build("parallax", &model, &cluster, &parallax);
    build("all-reduce", &model, &cluster, &all_reduce);
    assert_string_equal(parallax.id.hex, all_reduce.id.hex);
    strategy_release(&parallax);
    strategy_release(&all_reduce);
    cluster_release(&cluster);
    model_release(&model);
}

/* 100,003 is a prime number of rows; a strategy has at most 65,536 shards. */
static void a_prime_number_of_rows_is_cut_as_far_as_a_strategy_can_say(void **state) {
    (void)state;
    static const char model[] = ONE_LAYER("{\"name\":\"x\",\"shape\":[100003]}", "\"x\"");
    check_placement("ps-partitioned", model, three_nodes, (struct want[]){{65536, "012"}});
    check_placement("partitioned-all-reduce", model, three_nodes, (struct want[]){{65536, NULL}});
}

/* ---- every baseline on random instances, and the merging rules on the example models ---- */

/* The systems that schedule communication into the next forward pass; all others wait for everything. */
static bool crosses_iterations(const char *name) {
    static const char *const names[] = {"pace", "pace-makespan", "bytescheduler-all-reduce", "bytescheduler-ps",
                                        "p3",   "tictac"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

static bool is_one_of_servers(const char *name) {
    return !strcmp(name, "bytescheduler-ps") || !strcmp(name, "p3") || !strcmp(name, "byteps");
}

/* Only spare nodes serve where there are any. */
static void check_spare_servers(const struct strategy *s, const struct cluster *cluster) {
    bool spare = false;
    for (uint32_t i = 0; i < cluster->n_nodes; i++)
        spare |= !cluster->nodes[i].devices;
    for (uint32_t v = 0; v < s->n_variables; v++)
        for (uint32_t i = 0; i < s->variables[v].n_servers; i++)
            assert_true(!spare || !cluster->nodes[s->variables[v].servers[i]].devices);
}

/* Partitions that take servers in turn: no server has two more than another. */
static void check_turns(const struct strategy *s, const struct cluster *cluster) {
    uint64_t held[64] = {0}, least = UINT64_MAX, most = 0;
    bool serves[64] = {false};
    for (uint32_t v = 0; v < s->n_variables; v++)
        for (uint32_t k = 0; k < s->variables[v].shards; k++) {
            uint32_t server = s->variables[v].servers[k % s->variables[v].n_servers];
            serves[server] = true;
            held[server]++;
        }
    for (uint32_t i = 0; i < cluster->n_nodes; i++) {
        if (!serves[i])
            continue;
        least = held[i] < least ? held[i] : least;
        most = held[i] > most ? held[i] : most;
    }
    assert_true(most - least <= 1);
}

/* Every setting can be lowered and keeps the barrier; setting 0 is the system with its defaults. */
static void check_grid(const struct baseline *row, const struct model *model, const struct cluster *cluster) {
    struct error err = {0};
    struct strategy s, untuned;
    struct plan plan;
    char name[32];
    snprintf(name, sizeof name, "%.*s", (int)(strchr(row->name, '-') - row->name), row->name);
    build(name, model, cluster, &untuned);
    for (size_t i = 0; i < row->grid->n; i++) {
        assert_ok(row->grid->build(model, cluster, i, &s, &err));
        assert_false(s.cross_iteration);
        if (i == 0)
            assert_string_equal(s.id.hex, untuned.id.hex);
        if (is_one_of_servers(name))
            check_spare_servers(&s, cluster);
        assert_ok(plan_lower(model, cluster, &s, &plan, &err));
        plan_release(&plan);
        strategy_release(&s);
    }
    strategy_release(&untuned);
}

static void check_baseline(const struct baseline *row, const struct model *model, const struct cluster *cluster) {
    struct error err = {0};
    struct strategy s;
    struct plan plan;
    assert_int_equal(row->kind == BASELINE_TUNED, !row->build);
    if (row->grid) {
        check_grid(row, model, cluster);
        return;
    }
    build(row->name, model, cluster, &s);
    assert_int_equal(s.policy != POLICY_fifo, crosses_iterations(row->name));
    assert_int_equal(s.cross_iteration, crosses_iterations(row->name));
    if (is_one_of_servers(row->name))
        check_spare_servers(&s, cluster);
    if (!strcmp(row->name, "p3") || !strcmp(row->name, "bytescheduler-ps"))
        check_turns(&s, cluster);
    assert_ok(plan_lower(model, cluster, &s, &plan, &err));
    plan_release(&plan);
    strategy_release(&s);
}

static void every_baseline_is_valid_everywhere_and_waits_as_its_system_does(void **state) {
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
        for (size_t k = 0; k < n; k++)
            if (!all[k].grid || i % 10 == 0)
                check_baseline(&all[k], &model, &cluster);
        cluster_release(&cluster);
        model_release(&model);
    }
}

/* ---- tuned systems ---- */

static size_t count_groups(const struct baseline_grid *grid, const struct model *model, const struct cluster *cluster,
                           size_t setting, enum algorithm algorithm) {
    struct error err;
    struct strategy s;
    size_t n = 0;
    assert_ok(grid->build(model, cluster, setting, &s, &err));
    for (uint32_t g = 0; g < s.n_groups; g++)
        n += s.groups[g].algorithm == algorithm;
    strategy_release(&s);
    return n;
}

/* Nine thresholds: 128 MiB, none, 1, 2, ...; five cycles: 1, 2, 5, 10, 25 ms; then all again by nodes. */
static void horovods_grid_has_thresholds_then_cycles_then_the_hierarchy(void **state) {
    (void)state;
    const struct baseline_grid *grid = baselines_find("horovod-tuned")->grid;
    static const char two_of_two[] =
        "{\"schema\":\"syncopate.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"n\","
        "\"count\":2,\"devices\":2,\"device_link_gbyte_per_s\":10,\"nic_gbit_per_s\":10}]}";
    struct model model;
    struct cluster single, paired;
    read_model(five, &model);
    read_cluster(three_nodes, &single);
    read_cluster(two_of_two, &paired);
    assert_int_equal(grid->n, 90);
    /* Ready at 0.6, 1.1, 1.1, 2.0 and 2.3 ms: cycles of 1 ms are e, cd, ba; of 2 ms ecd, ba; of 5 ms all. */
    assert_int_equal(count_groups(grid, &model, &single, 0, ALGORITHM_auto), 3);
    assert_int_equal(count_groups(grid, &model, &single, 1, ALGORITHM_auto), 5);
    assert_int_equal(count_groups(grid, &model, &single, 9, ALGORITHM_auto), 2);
    assert_int_equal(count_groups(grid, &model, &single, 18, ALGORITHM_auto), 1);
    assert_int_equal(count_groups(grid, &model, &single, 19, ALGORITHM_auto), 5);
    assert_int_equal(count_groups(grid, &model, &single, 45, ALGORITHM_hierarchical), 0);
    assert_int_equal(count_groups(grid, &model, &paired, 18, ALGORITHM_auto), 1);
    assert_int_equal(count_groups(grid, &model, &paired, 45 + 18, ALGORITHM_hierarchical), 1);
    cluster_release(&single);
    cluster_release(&paired);
    model_release(&model);
}

static void byteps_grid_has_partitions_then_credit_then_servers(void **state) {
    (void)state;
    const struct baseline_grid *grid = baselines_find("byteps-tuned")->grid;
    struct model model;
    struct cluster cluster;
    read_model(five, &model);
    read_cluster(three_nodes, &cluster);
    assert_int_equal(grid->n, 12);
    for (size_t i = 0; i < grid->n; i++) {
        struct error err;
        struct strategy s;
        const uint64_t partition = ((const uint64_t[]){4096000, 1024000, 16384000})[i % 3];
        assert_ok(grid->build(&model, &cluster, i, &s, &err));
        assert_int_equal(s.variables[1].partition_bytes, partition);
        assert_int_equal(s.variables[1].shards, (4 * 6553600 + partition - 1) / partition);
        assert_int_equal(s.policy, i / 3 % 2 ? POLICY_priority : POLICY_fifo);
        assert_true(s.credit_bytes == (i / 3 % 2 ? 4 * partition : CREDIT_UNLIMITED));
        assert_int_equal(s.variables[1].n_servers, i / 6 || partition > 10000000 ? 2 : 3);
        strategy_release(&s);
    }
    cluster_release(&cluster);
    model_release(&model);
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

static void check_fusion(const struct model *model, const struct cluster *cluster, const struct strategy *s,
                         const uint32_t *ready) {
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
            bytes[group] += plan_gradient_bytes(s, &model->variables[ready[next]], &s->variables[ready[next]]) *
                            (s->groups[group].algorithm == ALGORITHM_all_gather ? cluster->n_devices : 1);
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
    check_fusion(&model, cluster, &horovod, ready);
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
        cmocka_unit_test(halves_are_buckets_that_the_next_forward_pass_waits_for),
        cmocka_unit_test(ddp_closes_a_bucket_when_it_reaches_its_cap),
        cmocka_unit_test(ddp_with_a_cap_of_the_users_has_it_for_every_bucket),
        cmocka_unit_test(horovod_fuses_what_is_ready_in_one_cycle_on_the_slowest_node),
        cmocka_unit_test(horovod_starts_a_new_buffer_at_the_threshold),
        cmocka_unit_test(horovod_gathers_sparse_gradients),
        cmocka_unit_test(horovod_looks_only_as_far_ahead_as_the_threshold),
        cmocka_unit_test(ddp_on_gloo_gathers_sparse_gradients),
        cmocka_unit_test(dtypes_get_groups_of_their_own),
        cmocka_unit_test(ps_puts_everything_on_the_first_node),
        cmocka_unit_test(load_balanced_ps_takes_the_server_with_the_fewest_bytes),
        cmocka_unit_test(bytescheduler_all_reduce_cuts_each_tensor_into_a_million_elements),
        cmocka_unit_test(bytescheduler_ps_gives_each_partition_the_next_server),
        cmocka_unit_test(p3_slices_by_160_kilobytes),
        cmocka_unit_test(tictac_orders_whole_gradients),
        cmocka_unit_test(byteps_hashes_keys_and_holds_nothing_back),
        cmocka_unit_test(ps_partitioned_cuts_by_the_smallest_divisor),
        cmocka_unit_test(ps_uneven_cuts_by_the_smallest_non_divisor),
        cmocka_unit_test(partitioned_all_reduce_cuts_and_merges),
        cmocka_unit_test(partitioned_all_reduce_counts_parts_to_128),
        cmocka_unit_test(random_axis_is_drawn_among_those_longer_than_1),
        cmocka_unit_test(parallax_serves_what_is_sparse),
        cmocka_unit_test(parallax_without_sparse_variables_is_all_reduce),
        cmocka_unit_test(a_prime_number_of_rows_is_cut_as_far_as_a_strategy_can_say),
        cmocka_unit_test(the_table_names_each_baseline_once_and_says_where_it_is_from),
        cmocka_unit_test(every_baseline_is_valid_everywhere_and_waits_as_its_system_does),
        cmocka_unit_test(horovods_grid_has_thresholds_then_cycles_then_the_hierarchy),
        cmocka_unit_test(byteps_grid_has_partitions_then_credit_then_servers),
        cmocka_unit_test(merging_rules_hold_on_the_example_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
