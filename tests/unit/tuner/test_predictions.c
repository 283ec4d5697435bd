/* What fits remember: found again whatever else is kept, and without a trace in the result. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "strategy/space/space.h"
#include "tests/support/check.h"
#include "tuner/predict/predictions.h"
#include "tuner/predict/predictor.h"

enum { KEPT = 5000, STRATEGIES = 12 };

/* Number i's key: many strategies, few points, so that keys share either half. */
static void key_of(uint64_t i, struct id *id, double factors[2]) {
    snprintf(id->hex, sizeof id->hex, "%064lx", (unsigned long)(i / 10));
    factors[0] = 0.35 * (double)(i % 5);
    factors[1] = i % 10 < 5 ? -0.35 : 0.35;
}

static void every_prediction_that_was_kept_is_found_and_no_other(void **state) {
    (void)state;
    struct predictions p = {0};
    struct id id;
    double factors[2], us = -1;
    for (uint64_t i = 0; i < KEPT; i++) {
        key_of(i, &id, factors);
        assert_false(predictions_find(&p, &id, factors, &us));
        predictions_keep(&p, &id, factors, (double)i);
    }
    assert_int_equal(p.n, KEPT);
    assert_close(us, -1, 0);
    for (uint64_t i = 0; i < KEPT; i++) {
        key_of(i, &id, factors);
        assert_true(predictions_find(&p, &id, factors, &us));
        assert_close(us, (double)i, 0);
        factors[0] += 1e-9;
        assert_false(predictions_find(&p, &id, factors, &us));
    }
    predictions_release(&p);
}

static void a_strategy_without_an_id_is_not_kept(void **state) {
    (void)state;
    struct predictions p = {0};
    double us;
    predictions_keep(&p, &(struct id){""}, (double[]){0, 0}, 1);
    assert_false(predictions_find(&p, &(struct id){""}, (double[]){0, 0}, &us));
    predictions_release(&p);
}

static const char MODEL[] =
    "{\"schema\":\"syncopate.model/1\",\"name\":\"toy\",\"batch_per_device\":8,\"variables\":["
    "{\"name\":\"a\",\"shape\":[64,64],\"dtype\":\"f32\"},{\"name\":\"b\",\"shape\":[256,1024],\"dtype\":\"f32\"}],"
    "\"layers\":[{\"name\":\"l1\",\"forward_us\":2000,\"backward_us\":4000,\"variables\":[\"a\"]},"
    "{\"name\":\"l2\",\"forward_us\":3000,\"backward_us\":5000,\"variables\":[\"b\"]}]}";
static const char CLUSTER[] =
    "{\"schema\":\"syncopate.cluster/1\",\"name\":\"three\",\"nodes\":[{\"name\":\"n\",\"count\":3,"
    "\"nic_gbit_per_s\":1,\"nic_latency_us\":50}],\"runtime\":{\"message_us\":100,\"push_us\":200}}";

static cJSON *parse(const char *text) {
    struct error err;
    cJSON *json;
    assert_ok(json_parse(text, strlen(text), "test", &json, &err));
    return json;
}

struct problem {
    struct model model;
    struct cluster cluster;
    struct strategy strategies[STRATEGIES];
    struct measured measured[STRATEGIES];
};

/* Random strategies with times of a cluster that is 1.5 and 1.3 times as slow, and noise. */
static void problem_open(struct problem *b, uint64_t stream) {
    struct error err;
    struct rng rng;
    struct space space;
    struct predictor truth;
    const struct space_options options = space_default_options();
    cJSON *model = parse(MODEL), *cluster = parse(CLUSTER);
    assert_ok(model_read(model, "model", &b->model, &err));
    assert_ok(cluster_read(cluster, "cluster", &b->cluster, &err));
    assert_ok(space_init(&space, &b->model, &b->cluster, &options, &err));
    assert_ok(predictor_init(&truth, &b->model, &b->cluster, &err));
    assert_ok(predictor_correct(&truth, (struct correction){1.5, 1.3}, &err));
    rng_split(&rng, test_seed(), stream);
    for (size_t i = 0; i < STRATEGIES; i++) {
        struct prediction prediction;
        assert_ok(space_sample_guided(&space, &rng, &b->strategies[i], &err));
        assert_ok(predictor_run(&truth, &b->strategies[i], &prediction, &err));
        b->measured[i] = (struct measured){.strategy = &b->strategies[i],
                                           .us = prediction.iteration_us * exp(0.03 * rng_normal(&rng))};
    }
    predictor_release(&truth);
    space_release(&space);
    cJSON_Delete(model);
    cJSON_Delete(cluster);
}

static void problem_close(struct problem *b) {
    for (size_t i = 0; i < STRATEGIES; i++)
        strategy_release(&b->strategies[i]);
    model_release(&b->model);
    cluster_release(&b->cluster);
}

/* Fitted after every trial or once at the end: the same factors, to the last bit. */
static void a_fit_does_not_depend_on_the_fits_before_it(void **state) {
    (void)state;
    for (uint64_t stream = 0; stream < 10; stream++) {
        struct problem b;
        struct predictor often, once;
        struct error err;
        problem_open(&b, stream);
        assert_ok(predictor_init(&often, &b.model, &b.cluster, &err));
        assert_ok(predictor_init(&once, &b.model, &b.cluster, &err));
        for (size_t n = 1; n <= STRATEGIES; n++)
            assert_ok(predictor_fit(&often, n, b.measured, &err));
        assert_ok(predictor_fit(&once, STRATEGIES, b.measured, &err));
        assert_close(often.correction.startup, once.correction.startup, 0);
        assert_close(often.correction.transfer, once.correction.transfer, 0);
        predictor_release(&often);
        predictor_release(&once);
        problem_close(&b);
    }
}

static void fitting_again_predicts_nothing_again(void **state) {
    (void)state;
    struct problem b;
    struct predictor p;
    struct error err;
    problem_open(&b, 77);
    assert_ok(predictor_init(&p, &b.model, &b.cluster, &err));
    assert_ok(predictor_fit(&p, STRATEGIES, b.measured, &err));
    const size_t known = p.known.n;
    assert_true(known >= 5 * STRATEGIES / 2);
    assert_ok(predictor_fit(&p, STRATEGIES, b.measured, &err));
    assert_int_equal(p.known.n, known);
    predictor_release(&p);
    problem_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_prediction_that_was_kept_is_found_and_no_other),
        cmocka_unit_test(a_strategy_without_an_id_is_not_kept),
        cmocka_unit_test(a_fit_does_not_depend_on_the_fits_before_it),
        cmocka_unit_test(fitting_again_predicts_nothing_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
