/* Models, clusters and strategies come back from the dataset with the ids they went in with. */
#include "base/json.h"
#include "dataset/check.h"
#include "dataset/describe.h"
#include "tests/unit/dataset/fixture.h"

static const char model_text[] =
    "{\"schema\":\"syncopate.model/1\",\"name\":\"two\",\"batch_per_device\":8,\"variables\":["
    "{\"name\":\"a.w\",\"shape\":[4,3],\"dtype\":\"f32\"},{\"name\":\"b.w\",\"shape\":[7],\"dtype\":\"f16\"}],"
    "\"layers\":["
    "{\"name\":\"a\",\"forward_us\":10,\"backward_us\":20,\"variables\":[\"a.w\"]},"
    "{\"name\":\"b\",\"forward_us\":1.5,\"backward_us\":2,\"variables\":[\"b.w\"]}]}";
static const char cluster_text[] =
    "{\"schema\":\"syncopate.cluster/1\",\"name\":\"pair\",\"nodes\":[{\"name\":\"n\",\"count\":2,\"devices\":1,"
    "\"device\":\"cpu\",\"nic_gbit_per_s\":1.0,\"nic_latency_us\":50,\"device_link_gbyte_per_s\":12.0}]}";
static const char strategy_text[] =
    "{\"schema\":\"syncopate.strategy/1\",\"name\":\"mine\",\"schedule\":{\"policy\":\"fifo\"},"
    "\"groups\":[{\"id\":0,\"algorithm\":\"ring\"}],\"variables\":["
    "{\"name\":\"a.w\",\"sync\":{\"kind\":\"all_reduce\",\"group\":0}},"
    "{\"name\":\"b.w\",\"sync\":{\"kind\":\"parameter_server\",\"servers\":[\"n2\"]}}]}";

static struct model model;
static struct cluster cluster;
static struct strategy strategy;

static cJSON *must_parse(const char *text) {
    struct error err = {0};
    cJSON *json = NULL;
    assert_ok(json_parse(text, strlen(text), "text", &json, &err));
    return json;
}

static int set_up(void **state) {
    (void)state;
    struct error err = {0};
    cJSON *m = must_parse(model_text), *c = must_parse(cluster_text), *s = must_parse(strategy_text);
    assert_ok(model_read(m, "model", &model, &err));
    assert_ok(cluster_read(c, "cluster", &cluster, &err));
    assert_ok(strategy_read(s, "strategy", &model, &cluster, &strategy, &err));
    cJSON_Delete(m);
    cJSON_Delete(c);
    cJSON_Delete(s);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    strategy_release(&strategy);
    cluster_release(&cluster);
    model_release(&model);
    return 0;
}

static void what_was_put_comes_back_the_same(void **state) {
    (void)state;
    struct error err = {0};
    struct model m;
    struct cluster c;
    struct strategy s;
    struct check_report report;
    struct store *store = must_open(dataset_path("describe.db"), STORE_READ_WRITE);
    assert_ok(store_put_model(store, &model, &err));
    assert_ok(store_put_cluster(store, &cluster, &err));
    assert_ok(store_put_strategy(store, &strategy, &model, &cluster, &err));
    assert_ok(store_get_model(store, model.id.hex, &m, &err));
    assert_ok(store_get_cluster(store, cluster.id.hex, &c, &err));
    assert_ok(store_get_strategy(store, strategy.id.hex, &m, &c, &s, &err));
    assert_string_equal(m.id.hex, model.id.hex);
    assert_string_equal(c.id.hex, cluster.id.hex);
    assert_string_equal(s.id.hex, strategy.id.hex);
    assert_string_equal(s.name, "mine");
    assert_int_equal(s.variables[1].servers[0], 1);
    assert_ok(check_run(store, NULL, NULL, &report, &err));
    assert_int_equal(report.problems, 0);
    assert_int_equal(report.objects, 3);
    strategy_release(&s);
    cluster_release(&c);
    model_release(&m);
    store_close(store);
}

static void one_strategy_under_two_names_is_one_object(void **state) {
    (void)state;
    struct error err = {0};
    struct arena arena = {0};
    struct strategy twin, s;
    struct stored_object *objects;
    size_t n;
    struct store *store = must_open(dataset_path("twins.db"), STORE_READ_WRITE);
    assert_ok(strategy_copy(&strategy, "twin", &twin, &err));
    assert_ok(strategy_seal(&twin, &model, &cluster, &err));
    assert_ok(store_put_strategy(store, &strategy, &model, &cluster, &err));
    assert_ok(store_put_strategy(store, &twin, &model, &cluster, &err));
    assert_ok(store_list(store, STORE_STRATEGY, &arena, &n, &objects, &err));
    assert_int_equal(n, 1);
    assert_string_equal(objects[0].name, "mine");
    assert_fails(store_get_strategy(store, model.id.hex, &model, &cluster, &s, &err), ST_NOT_FOUND, "no strategy");
    strategy_release(&twin);
    store_close(store);
    arena_release(&arena);
}

static void a_strategy_changed_after_sealing_is_refused(void **state) {
    (void)state;
    struct error err = {0};
    struct strategy changed;
    struct store *store = must_open(dataset_path("changed.db"), STORE_READ_WRITE);
    assert_ok(strategy_copy(&strategy, "changed", &changed, &err));
    assert_ok(strategy_seal(&changed, &model, &cluster, &err));
    changed.cross_iteration = !changed.cross_iteration;
    assert_fails(store_put_strategy(store, &changed, &model, &cluster, &err), ST_INVALID, "changed after its id");
    strategy_release(&changed);
    store_close(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_put_comes_back_the_same),
        cmocka_unit_test(one_strategy_under_two_names_is_one_object),
        cmocka_unit_test(a_strategy_changed_after_sealing_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
