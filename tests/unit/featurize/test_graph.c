/* The variable graph of models whose paths are plain to see. */
#include "tests/unit/featurize/instance.h"

enum { MOST = 12 };

/* Every variable all-reduced with the others on two alike nodes. */
static void open_graph(struct instance *in, const char *model) {
    struct error err;
    *in = (struct instance){.features.n_shards = 0};
    assert_ok(quoted_model(model, &in->model, &err));
    assert_ok(quoted_cluster("{'schema':'syncopate.cluster/1','name':'c','nodes':[{'name':'n','count':2,'devices':1,"
                             "'device':'cpu','nic_gbit_per_s':8,'nic_latency_us':0}]}",
                             &in->cluster, &err));
    assert_ok(cost_init(&in->cost, &in->cluster, &err));
    assert_ok(strategy_init(&in->strategy, "s", &in->model, 1, &err));
    assert_ok(strategy_seal(&in->strategy, &in->model, &in->cluster, &err));
    assert_ok(plan_lower(&in->model, &in->cluster, &in->strategy, &in->plan, &err));
    assert_ok(features_of(&in->strategy, &in->plan, &in->cost, &INSTANCE_TERMS, &in->features, &err));
}

static void expect_edges(const struct instance *in, size_t n, const struct feature_edge *want) {
    assert_non_null(in->features.edges);
    assert_int_equal(in->features.n_edges, n);
    for (size_t i = 0; in->features.edges && i < n; i++) {
        assert_int_equal(in->features.edges[i].from, want[i].from);
        assert_int_equal(in->features.edges[i].to, want[i].to);
    }
}

#define MODEL(variables, operators)                                                                                    \
    "{'schema':'syncopate.model/1','name':'m','batch_per_device':8,'variables':[" variables "],'operators':["          \
    "{'name':'f','phase':'forward','time_us':1,'after':[]}," operators "]}"
#define VARIABLE(name) "{'name':'" name "','shape':[8],'dtype':'f32'}"
#define BACKWARD(name, after, produces)                                                                                \
    "{'name':'" name "','phase':'backward','time_us':1,'after':[" after "],'produces':[" produces "]}"

static void a_chain_links_each_variable_to_the_next(void **state) {
    (void)state;
    struct instance in;
    open_graph(&in, MODEL(VARIABLE("u") "," VARIABLE("v") "," VARIABLE("w"),
                          BACKWARD("x", "'f'", "'w'") "," BACKWARD("relu", "'x'", "") "," BACKWARD(
                              "y", "'relu'", "'v'") "," BACKWARD("z", "'y'", "'u'")));
    expect_edges(&in, 2, (struct feature_edge[]){{0, 1}, {1, 2}});
    instance_close(&in);
}

/* x -> y -> z and x -> skip -> z: only the second path from x to z passes no producer. */
static void a_skip_connection_adds_its_edge(void **state) {
    (void)state;
    struct instance in;
    open_graph(&in, MODEL(VARIABLE("u") "," VARIABLE("v") "," VARIABLE("w"),
                          BACKWARD("x", "'f'", "'w'") "," BACKWARD("skip", "'x'", "") "," BACKWARD(
                              "y", "'x'", "'v'") "," BACKWARD("z", "'y','skip'", "'u'")));
    expect_edges(&in, 3, (struct feature_edge[]){{0, 1}, {0, 2}, {1, 2}});
    instance_close(&in);
}

static void variables_of_one_operator_are_a_chain_between_its_neighbours(void **state) {
    (void)state;
    struct instance in;
    open_graph(&in,
               MODEL(VARIABLE("u") "," VARIABLE("v") "," VARIABLE("w") "," VARIABLE("t"),
                     BACKWARD("x", "'f'", "'w'") "," BACKWARD("y", "'x'", "'u','v'") "," BACKWARD("z", "'y'", "'t'")));
    expect_edges(&in, 3, (struct feature_edge[]){{0, 1}, {1, 2}, {2, 3}});
    instance_close(&in);
}

static void branches_that_do_not_meet_share_no_edge(void **state) {
    (void)state;
    struct instance in;
    open_graph(&in,
               MODEL(VARIABLE("u") "," VARIABLE("v"), BACKWARD("x", "'f'", "'u'") "," BACKWARD("y", "'f'", "'v'")));
    expect_edges(&in, 0, NULL);
    instance_close(&in);
}

/* Twelve gradients that nothing orders, and one that waits for all of them. */
static void of_many_that_lead_to_a_variable_the_latest_are_kept(void **state) {
    (void)state;
    struct instance in;
    struct feature_edge want[FEATURE_FAN_IN];
    char variables[2048] = "", operators[4096] = "", after[512] = "", model[8192];
    for (int i = 0; i < MOST; i++) {
        snprintf(variables + strlen(variables), 64, "{'name':'v%d','shape':[8],'dtype':'f32'},", i);
        snprintf(operators + strlen(operators), 128, BACKWARD("o%d", "'f'", "'v%d'") ",", i, i);
        snprintf(after + strlen(after), 16, "%s'o%d'", i ? "," : "", i);
    }
    snprintf(model, sizeof model, MODEL("%s" VARIABLE("last"), "%s" BACKWARD("z", "%s", "'last'")), variables,
             operators, after);
    open_graph(&in, model);
    for (uint32_t i = 0; i < FEATURE_FAN_IN; i++)
        want[i] = (struct feature_edge){MOST - FEATURE_FAN_IN + i, MOST};
    expect_edges(&in, FEATURE_FAN_IN, want);
    instance_close(&in);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_links_each_variable_to_the_next),
        cmocka_unit_test(a_skip_connection_adds_its_edge),
        cmocka_unit_test(variables_of_one_operator_are_a_chain_between_its_neighbours),
        cmocka_unit_test(branches_that_do_not_meet_share_no_edge),
        cmocka_unit_test(of_many_that_lead_to_a_variable_the_latest_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
