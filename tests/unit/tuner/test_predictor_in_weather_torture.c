/* Every allocation fails once while a predictor looks at a strategy in weather, whose rates are drawn or recorded. */
#include "strategy/baselines/baselines.h"
#include "tests/support/torture.h"
#include "tests/unit/tuner/measured_domains.h"

struct life {
    struct measured_domain domain;
    struct cluster varies;
    struct strategy strategy;
};

static enum status look(void *arg, struct error *err) {
    struct life *life = arg;
    struct predictor p;
    struct prediction brief;
    struct outlook outlook;
    enum status st = predictor_init_in_weather(&p, &life->domain.model, &life->varies, 3, err);
    if (st)
        return st;
    p.brief = true;
    st = predictor_run(&p, &life->strategy, &brief, err);
    p.brief = false;
    if (!st)
        st = predictor_outlook(&p, &life->strategy, &outlook, err);
    predictor_release(&p);
    return st;
}

static void a_predictor_in_weather_survives_every_failed_allocation(void **state) {
    (void)state;
    static const char *const networks[] = {
        "{\"network\":{\"every_us\":9000,\"rates\":[{\"gbit_per_s\":0.5,\"share\":1}]}}",
        "{\"network\":{\"until_us\":9000,\"changes\":[{\"at_us\":10,\"node\":\"n1\",\"direction\":\"in\","
        "\"gbit_per_s\":0.5}]}}"};
    struct error err = {0};
    struct life life;
    make_domain(&life.domain, "small", 64, "two", 2, 1);
    for (size_t i = 0; i < 2; i++) {
        cJSON *json = cluster_write(&life.domain.cluster);
        cJSON_AddItemToObject(json, "variability", parse_text(networks[i]));
        assert_ok(cluster_read(json, "varies", &life.varies, &err));
        cJSON_Delete(json);
        assert_ok(baselines_build(baselines_find("ps"), &life.domain.model, &life.varies, &life.strategy, &err));
        assert_true(torture(look, &life) > 5);
        strategy_release(&life.strategy);
        cluster_release(&life.varies);
    }
    free_domain(&life.domain);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_predictor_in_weather_survives_every_failed_allocation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
