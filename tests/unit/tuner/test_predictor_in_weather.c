/* Predictions in weather: what they are made of, that they compare strategies in pairs, and that factors are fitted in
 * the very weather that a trial met. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "strategy/space/space.h"
#include "tests/support/check.h"
#include "tuner/predict/comparison.h"
#include "tuner/predict/predictor.h"

enum { STRATEGIES = 24, SEED = 7 };

static const char MODEL[] =
    "{\"schema\":\"syncopate.model/1\",\"name\":\"toy\",\"batch_per_device\":8,\"variables\":["
    "{\"name\":\"a\",\"shape\":[64,64],\"dtype\":\"f32\"},{\"name\":\"b\",\"shape\":[256,1024],\"dtype\":\"f32\"},"
    "{\"name\":\"c\",\"shape\":[512,512],\"dtype\":\"f32\"}],"
    "\"layers\":[{\"name\":\"l1\",\"forward_us\":2000,\"backward_us\":4000,\"variables\":[\"a\"]},"
    "{\"name\":\"l2\",\"forward_us\":3000,\"backward_us\":5000,\"variables\":[\"b\"]},"
    "{\"name\":\"l3\",\"forward_us\":1000,\"backward_us\":3000,\"variables\":[\"c\"]}]}";

/* %s: the cluster's member "variability", or nothing. */
static const char CLUSTER[] =
    "{\"schema\":\"syncopate.cluster/1\",\"name\":\"three\",\"nodes\":[{\"name\":\"n\",\"count\":3,"
    "\"nic_gbit_per_s\":1,\"nic_latency_us\":50}],\"runtime\":{\"message_us\":100,\"push_us\":200}%s}";
static const char WEATHER[] =
    ",\"variability\":{\"network\":{\"every_us\":2000000,\"rates\":[{\"gbit_per_s\":0.25,\"share\":0.3},"
    "{\"gbit_per_s\":1,\"share\":0.7}]},\"compute\":{\"share\":0.1,\"factor\":3}}";
static const char TRACE[] = ",\"variability\":{\"network\":{\"until_us\":4000000,\"changes\":["
                            "{\"at_us\":0,\"node\":\"n1\",\"direction\":\"out\",\"gbit_per_s\":1},"
                            "{\"at_us\":1000000,\"node\":\"n1\",\"direction\":\"out\",\"gbit_per_s\":0.2},"
                            "{\"at_us\":2000000,\"node\":\"n2\",\"direction\":\"in\",\"gbit_per_s\":0.5},"
                            "{\"at_us\":3000000,\"node\":\"n1\",\"direction\":\"out\",\"gbit_per_s\":1}]}}";
static const char FLOWS[] = ",\"variability\":{\"background\":{\"flows_per_s\":1,\"mbytes\":150,\"gbit_per_s\":0.8}}";
static const char RECORDED_FLOWS[] =
    ",\"variability\":{\"background\":{\"until_us\":4000000,\"flows\":["
    "{\"at_us\":0,\"from\":\"n1\",\"to\":\"n2\",\"mbytes\":200,\"gbit_per_s\":1},"
    "{\"at_us\":1000000,\"from\":\"n2\",\"to\":\"n1\",\"mbytes\":200,\"gbit_per_s\":0.8},"
    "{\"at_us\":1500000,\"from\":\"n3\",\"to\":\"n1\",\"mbytes\":200,\"gbit_per_s\":0.9}]}}";

struct site {
    struct model model;
    struct cluster cluster;
    struct space space;
    struct predictor predictor;
    struct strategy strategies[STRATEGIES];
};

static void read_inputs(struct site *s, const char *variability) {
    struct error err;
    cJSON *json;
    char text[2048];
    assert_ok(json_parse(MODEL, strlen(MODEL), "test", &json, &err));
    assert_ok(model_read(json, "model", &s->model, &err));
    cJSON_Delete(json);
    snprintf(text, sizeof text, CLUSTER, variability);
    assert_ok(json_parse(text, strlen(text), "test", &json, &err));
    assert_ok(cluster_read(json, "cluster", &s->cluster, &err));
    cJSON_Delete(json);
}

static void set_up(struct site *s, const char *variability) {
    struct error err;
    struct rng rng;
    struct space_options options = space_default_options();
    options.share_pushes = false; /* shared ones are too few to show what a start costs */
    read_inputs(s, variability);
    assert_ok(space_init(&s->space, &s->model, &s->cluster, &options, &err));
    assert_ok(predictor_init_in_weather(&s->predictor, &s->model, &s->cluster, SEED, &err));
    rng_seed(&rng, 11);
    for (size_t i = 0; i < STRATEGIES; i++)
        assert_ok(space_sample_guided(&s->space, &rng, &s->strategies[i], &err));
}

static void tear_down(struct site *s) {
    for (size_t i = 0; i < STRATEGIES; i++)
        strategy_release(&s->strategies[i]);
    predictor_release(&s->predictor);
    space_release(&s->space);
    model_release(&s->model);
    cluster_release(&s->cluster);
}

static double predict(struct site *s, size_t i) {
    struct error err;
    struct prediction prediction;
    assert_ok(predictor_run(&s->predictor, &s->strategies[i], &prediction, &err));
    return prediction.iteration_us;
}

static void weather_is_asked_for_where_there_is_some_and_only_there(void **state) {
    (void)state;
    struct site s = {0};
    struct error err;
    read_inputs(&s, WEATHER);
    assert_fails(predictor_init(&s.predictor, &s.model, &s.cluster, &err), ST_INVALID, "has \"variability\"");
    cluster_release(&s.cluster);
    model_release(&s.model);
    read_inputs(&s, "");
    assert_fails(predictor_init_in_weather(&s.predictor, &s.model, &s.cluster, 1, &err), ST_INVALID,
                 "no \"variability\"");
    cluster_release(&s.cluster);
    model_release(&s.model);
}

static void a_prediction_in_weather_is_the_mean_that_is_expected(void **state) {
    (void)state;
    static struct site s;
    struct error err;
    struct outlook outlook;
    set_up(&s, WEATHER);
    for (size_t i = 0; i < 4; i++) {
        assert_ok(predictor_outlook(&s.predictor, &s.strategies[i], &outlook, &err));
        assert_close(predict(&s, i), outlook.expected.mean_us, 0);
        assert_true(outlook.expected.mean_us > outlook.quiet.iteration_us);
        assert_true(outlook.expected.p95_us > outlook.expected.mean_us);
    }
    tear_down(&s);
}

/* The order of strategies is that of the seeds alone: whoever is predicted first, alone or twice, nothing changes. */
static void the_order_of_evaluation_changes_no_prediction(void **state) {
    (void)state;
    static const struct { bool brief, glance; } efforts[] = {{true, true}, {true, false}, {false, false}};
    static struct site s;
    struct rng rng;
    double first[STRATEGIES];
    set_up(&s, WEATHER);
    rng_seed(&rng, test_seed());
    for (size_t e = 0; e < sizeof efforts / sizeof *efforts; e++) {
        s.predictor.brief = efforts[e].brief;
        s.predictor.glance = efforts[e].glance;
        const size_t n = efforts[e].brief ? STRATEGIES : 6;
        for (size_t i = 0; i < n; i++)
            first[i] = predict(&s, i);
        for (size_t k = 0; k < 2 * n; k++) {
            size_t i = rng_below(&rng, n);
            assert_close(predict(&s, i), first[i], 0);
        }
    }
    tear_down(&s);
}

/* Of n strategies, the share of pairs that a and b put in the same order; pairs closer than 1% in a do not count. */
static double agreement(size_t n, const double *a, const double *b) {
    size_t pairs = 0, same = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++) {
            if (fabs(a[i] / a[k] - 1) < 0.01)
                continue;
            pairs++;
            same += (a[i] < a[k]) == (b[i] < b[k]);
        }
    return (double)same / (double)pairs;
}

/* Release builds alone compare all; those under sanitizers or without optimization fewer. */
#ifdef NDEBUG
enum { COMPARED = STRATEGIES };
#else
enum { COMPARED = 10 };
#endif

static void a_glance_orders_strategies_almost_as_eight_seeds_do(void **state) {
    (void)state;
    static const char *const weathers[] = {WEATHER, TRACE, FLOWS, RECORDED_FLOWS};
    for (size_t w = 0; w < 4; w++) {
        static struct site s;
        double quiet[COMPARED], glance[COMPARED], brief[COMPARED], full[COMPARED];
        struct outlook outlook;
        struct error err;
        set_up(&s, weathers[w]);
        for (size_t i = 0; i < COMPARED; i++) {
            assert_ok(predictor_outlook(&s.predictor, &s.strategies[i], &outlook, &err));
            full[i] = outlook.expected.mean_us;
            quiet[i] = outlook.quiet.iteration_us;
            s.predictor.brief = true;
            brief[i] = predict(&s, i);
            s.predictor.glance = true;
            glance[i] = predict(&s, i);
            s.predictor.brief = s.predictor.glance = false;
        }
        print_message("agreement: quiet %.3f, glance %.3f, brief %.3f\n", agreement(COMPARED, full, quiet),
                      agreement(COMPARED, full, glance), agreement(COMPARED, full, brief));
        assert_true(agreement(COMPARED, full, glance) > 0.85);
        assert_true(agreement(COMPARED, full, brief) > 0.85);
        tear_down(&s);
    }
}

static void a_run_that_is_too_slow_ends_early_with_a_time_above_the_limit(void **state) {
    (void)state;
    static struct site s;
    struct error err;
    struct prediction prediction;
    set_up(&s, WEATHER);
    s.predictor.brief = true;
    for (size_t i = 0; i < STRATEGIES; i++) {
        double us = predict(&s, i);
        s.predictor.enough_us = 0.8 * us;
        assert_ok(predictor_run(&s.predictor, &s.strategies[i], &prediction, &err));
        assert_true(prediction.iteration_us > 0.8 * us && prediction.iteration_us <= us * (1 + 1e-9));
        s.predictor.enough_us = 1.5 * us;
        assert_close(predict(&s, i), us, 0);
        s.predictor.enough_us = 0;
    }
    tear_down(&s);
}

/* Trials of a true cluster that is slower than described, in the weather of the first seed: the factors are found,
 * though that weather is not the mean one. */
static void factors_are_fitted_in_the_weather_of_the_trials(void **state) {
    (void)state;
    static struct site s, truth;
    struct error err;
    struct measured measured[12];
    struct timeline *timeline = timeline_new();
    set_up(&s, WEATHER);
    set_up(&truth, WEATHER);
    assert_ok(predictor_correct(&truth.predictor, (struct correction){1.6, 1.3}, &err));
    for (size_t i = 0; i < 12; i++) {
        const struct expectation_options options = {.first_seed = SEED, .seeds = 1, .iterations = 30 + (uint32_t)i};
        struct expectation expected;
        assert_ok(plan_relower(&truth.predictor.plan, &s.model, &truth.predictor.corrected, &s.strategies[i], &err));
        assert_ok(
            expectation_run(timeline, &truth.predictor.plan, &truth.predictor.cost, 0, &options, &expected, &err));
        measured[i] =
            (struct measured){.strategy = &s.strategies[i], .us = expected.mean_us, .iterations = 30 + (uint32_t)i};
    }
    assert_ok(predictor_fit(&s.predictor, 12, measured, &err));
    print_message("factors %g %g\n", s.predictor.correction.startup, s.predictor.correction.transfer);
    assert_close(s.predictor.correction.transfer, 1.3, 0.06);
    timeline_free(timeline);
    tear_down(&s);
    tear_down(&truth);
}

static void a_comparison_in_weather_has_both_times(void **state) {
    (void)state;
    static struct site s;
    struct error err;
    struct comparison in_weather;
    read_inputs(&s, WEATHER);
    assert_ok(comparison_run(&s.model, &s.cluster, 0, NULL, 0, &in_weather, &err));
    assert_true(in_weather.in_weather);
    for (size_t i = 0; i < in_weather.n; i++) {
        if (isnan(in_weather.rows[i].iteration_us))
            continue;
        assert_true(in_weather.rows[i].expected.mean_us > in_weather.rows[i].iteration_us);
        assert_true(comparison_us(&in_weather, i) >= comparison_us(&in_weather, in_weather.fastest));
    }
    comparison_release(&in_weather);
    cluster_release(&s.cluster);
    model_release(&s.model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weather_is_asked_for_where_there_is_some_and_only_there),
        cmocka_unit_test(a_prediction_in_weather_is_the_mean_that_is_expected),
        cmocka_unit_test(the_order_of_evaluation_changes_no_prediction),
        cmocka_unit_test(a_glance_orders_strategies_almost_as_eight_seeds_do),
        cmocka_unit_test(a_run_that_is_too_slow_ends_early_with_a_time_above_the_limit),
        cmocka_unit_test(factors_are_fitted_in_the_weather_of_the_trials),
        cmocka_unit_test(a_comparison_in_weather_has_both_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
