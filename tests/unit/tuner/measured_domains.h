/* Datasets of made-up measurements: random strategies on small domains, whose times are the timeline's on a cluster
 * that is not quite as described, times noise. Everything is static inline, because unit tests link no sources of each
 * other. */
#ifndef TESTS_UNIT_TUNER_MEASURED_DOMAINS_H
#define TESTS_UNIT_TUNER_MEASURED_DOMAINS_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "dataset/store.h"
#include "strategy/space/space.h"
#include "tests/support/check.h"
#include "tests/support/dataset/place.h"
#include "tuner/predict/predictor.h"
#include "tuner/session/trials.h"

struct measured_domain {
    struct model model;
    struct cluster cluster;
    struct space space;
    struct predictor truth;
};

static inline cJSON *parse_text(const char *text) {
    struct error err = {0};
    cJSON *json = NULL;
    assert_ok(json_parse(text, strlen(text), "test", &json, &err));
    return json;
}

/* A chain of four layers, the last `wide` numbers wide; `nodes` nodes at `gbit`. */
static inline void make_domain(struct measured_domain *out, const char *model, unsigned wide, const char *cluster,
                               unsigned nodes, double gbit) {
    char text[2048];
    struct error err = {0};
    snprintf(
        text, sizeof text,
        "{\"schema\":\"syncopate.model/1\",\"name\":\"%s\",\"batch_per_device\":8,\"variables\":["
        "{\"name\":\"a\",\"shape\":[64,64],\"dtype\":\"f32\"},{\"name\":\"b\",\"shape\":[256,256],\"dtype\":\"f32\"},"
        "{\"name\":\"c\",\"shape\":[1024,256],\"dtype\":\"f32\"},{\"name\":\"d\",\"shape\":[512,%u],\"dtype\":\"f32\"}]"
        ","
        "\"layers\":[{\"name\":\"l1\",\"forward_us\":2000,\"backward_us\":4000,\"variables\":[\"a\"]},"
        "{\"name\":\"l2\",\"forward_us\":3000,\"backward_us\":5000,\"variables\":[\"b\"]},"
        "{\"name\":\"l3\",\"forward_us\":2000,\"backward_us\":6000,\"variables\":[\"c\"]},"
        "{\"name\":\"l4\",\"forward_us\":1000,\"backward_us\":3000,\"variables\":[\"d\"]}]}",
        model, wide);
    cJSON *json = parse_text(text);
    assert_ok(model_read(json, "model", &out->model, &err));
    cJSON_Delete(json);
    snprintf(text, sizeof text,
             "{\"schema\":\"syncopate.cluster/1\",\"name\":\"%s\",\"nodes\":[{\"name\":\"n\",\"count\":%u,"
             "\"nic_gbit_per_s\":%g,\"nic_latency_us\":50}],"
             "\"runtime\":{\"message_us\":100,\"push_us\":200,\"coordination_us\":150}}",
             cluster, nodes, gbit);
    json = parse_text(text);
    assert_ok(cluster_read(json, "cluster", &out->cluster, &err));
    cJSON_Delete(json);
    const struct space_options options = space_default_options();
    assert_ok(space_init(&out->space, &out->model, &out->cluster, &options, &err));
    assert_ok(predictor_init(&out->truth, &out->model, &out->cluster, &err));
    assert_ok(predictor_correct(&out->truth, (struct correction){1.7, 1.2}, &err));
}

static inline void free_domain(struct measured_domain *domain) {
    predictor_release(&domain->truth);
    space_release(&domain->space);
    cluster_release(&domain->cluster);
    model_release(&domain->model);
}

static inline struct store *open_dataset(const char *name) {
    char path[4096];
    struct error err = {0};
    struct store *store = NULL;
    snprintf(path, sizeof path, "%s", dataset_path("%s", name));
    assert_ok(store_open(path, STORE_READ_WRITE, &store, &err));
    return store;
}

/* A trial of three iterations around `us`; of RECORD_FAILED when us is NaN. */
static inline void record_trial(struct store *store, const struct measured_domain *domain,
                                const struct strategy *strategy, const char *proposer, const char *runner, double us) {
    struct error err = {0};
    int64_t trial;
    const double times[] = {us * 1.01, us * 0.99, us};
    const struct trial_start start = {.model = &domain->model,
                                      .cluster = &domain->cluster,
                                      .strategy = strategy,
                                      .proposer = proposer,
                                      .runner = runner,
                                      .predicted_us = 1};
    const struct tune_outcome outcome = {.state = isnan(us) ? RECORD_FAILED : RECORD_COMPLETE,
                                         .n = isnan(us) ? 0 : 3,
                                         .iterations_us = times,
                                         .reason = isnan(us) ? "a worker died" : NULL};
    assert_ok(trial_record_start(store, &start, &trial, &err));
    assert_ok(trial_record_end(store, trial, &outcome, &err));
}

static inline double true_us(struct measured_domain *domain, const struct strategy *strategy) {
    struct error err = {0};
    struct prediction prediction;
    assert_ok(predictor_run(&domain->truth, strategy, &prediction, &err));
    return prediction.iteration_us;
}

static inline void draw_strategy(const struct measured_domain *domain, struct rng *rng, struct strategy *out) {
    struct error err = {0};
    assert_ok(space_sample_guided(&domain->space, rng, out, &err));
}

/* n trials of random strategies, 1% noise. */
static inline void record_random(struct store *store, struct measured_domain *domain, size_t n, struct rng *rng) {
    for (size_t i = 0; i < n; i++) {
        struct strategy strategy;
        draw_strategy(domain, rng, &strategy);
        record_trial(store, domain, &strategy, "collect-guided", "simulated",
                     true_us(domain, &strategy) * exp(0.01 * rng_normal(rng)));
        strategy_release(&strategy);
    }
}

#endif
