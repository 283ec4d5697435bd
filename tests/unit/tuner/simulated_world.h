/* A small model on a simulated cluster whose truth differs from its description: figures that are off, and noise. */
#ifndef TESTS_UNIT_TUNER_SIMULATED_WORLD_H
#define TESTS_UNIT_TUNER_SIMULATED_WORLD_H

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/rng.h"
#include "tests/support/check.h"
#include "tuner/predict/predictor.h"
#include "tuner/session/trials.h"

/* A test to which no strategy matters defines fewer before: simulations are most of its time. */
#ifndef WORLD_NODES
#define WORLD_NODES "4"
#endif

static const char MODEL[] =
    "{\"schema\":\"syncopate.model/1\",\"name\":\"toy\",\"batch_per_device\":8,\"variables\":["
    "{\"name\":\"a\",\"shape\":[64,64],\"dtype\":\"f32\"},{\"name\":\"b\",\"shape\":[256,256],\"dtype\":\"f32\"},"
    "{\"name\":\"c\",\"shape\":[1024,256],\"dtype\":\"f32\"},{\"name\":\"d\",\"shape\":[1024],\"dtype\":\"f32\"},"
    "{\"name\":\"e\",\"shape\":[512,1024],\"dtype\":\"f32\"}],\"layers\":["
    "{\"name\":\"l1\",\"forward_us\":2000,\"backward_us\":4000,\"variables\":[\"a\"]},"
    "{\"name\":\"l2\",\"forward_us\":3000,\"backward_us\":5000,\"variables\":[\"b\",\"d\"]},"
    "{\"name\":\"l3\",\"forward_us\":2000,\"backward_us\":6000,\"variables\":[\"c\"]},"
    "{\"name\":\"l4\",\"forward_us\":1000,\"backward_us\":3000,\"variables\":[\"e\"]}]}";

#define CLUSTER(nodes)                                                                                                 \
    "{\"schema\":\"syncopate.cluster/1\",\"name\":\"few\",\"nodes\":[{\"name\":\"n\",\"count\":" nodes                 \
    ",\"nic_gbit_per_s\":1,"                                                                                           \
    "\"nic_latency_us\":50}],\"runtime\":{\"message_us\":100,\"push_us\":200,\"coordination_us\":150}}"

struct world {
    struct model model;
    struct cluster cluster;
    struct predictor truth;
    struct rng rng;
    uint64_t runs, die_after; /* die_after runs, a run fails as if the process had been told to stop */
    double times[64];
    double noise;
    bool all_fail, gives_up; /* gives_up: ends early what is slower than asked for */
    unsigned trial_us;       /* how long a run takes */
    double began_us;         /* the session, in this process */
};

static inline enum status simulated_run(void *context, const struct tune_order *order, struct tune_outcome *out,
                                        struct error *err) {
    struct world *w = context;
    struct prediction prediction;
    if (w->die_after && w->runs == w->die_after)
        return error_set(err, ST_CANCELLED, "stopped by the test");
    w->runs++;
    usleep(w->trial_us);
    if (w->all_fail) {
        *out = (struct tune_outcome){.state = RECORD_FAILED, .reason = "the network is down"};
        return ST_OK;
    }
    enum status st = predictor_run(&w->truth, order->strategy, &prediction, err);
    if (st)
        return st;
    /* Noise depends on the strategy and not on the process, so that a resumed session measures the same. */
    struct rng rng;
    uint64_t seed;
    memcpy(&seed, order->strategy->id.hex, sizeof seed);
    rng_seed(&rng, seed);
    size_t n = order->iterations < 64 ? order->iterations : 64;
    for (size_t i = 0; i < n; i++)
        w->times[i] = prediction.iteration_us * exp(w->noise * rng_normal(&rng));
    bool early = w->gives_up && order->give_up_us > 0 && prediction.iteration_us > order->give_up_us;
    *out =
        (struct tune_outcome){.state = RECORD_COMPLETE, .early = early, .n = early ? 3 : n, .iterations_us = w->times};
    return ST_OK;
}

static void read_text(const char *text, cJSON **json) {
    struct error err;
    assert_ok(json_parse(text, strlen(text), "test", json, &err));
}

static int world_of(void **state, const char *cluster) {
    static struct world w;
    struct error err;
    cJSON *json;
    w = (struct world){.noise = 0.01};
    read_text(MODEL, &json);
    assert_ok(model_read(json, "model", &w.model, &err));
    cJSON_Delete(json);
    read_text(cluster, &json);
    assert_ok(cluster_read(json, "cluster", &w.cluster, &err));
    cJSON_Delete(json);
    assert_ok(predictor_init(&w.truth, &w.model, &w.cluster, &err));
    assert_ok(predictor_correct(&w.truth, (struct correction){1.8, 1.25}, &err));
    *state = &w;
    return 0;
}

static int world_set_up(void **state) {
    return world_of(state, CLUSTER(WORLD_NODES));
}

static int world_tear_down(void **state) {
    struct world *w = *state;
    predictor_release(&w->truth);
    model_release(&w->model);
    cluster_release(&w->cluster);
    return 0;
}

#endif
