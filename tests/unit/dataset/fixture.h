/* A small dataset for the tests of this folder: objects with made-up contents, and trials on them. */
#ifndef TESTS_UNIT_DATASET_FIXTURE_H
#define TESTS_UNIT_DATASET_FIXTURE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dataset/query.h"
#include "dataset/store.h"
#include "tests/support/check.h"
#include "tests/support/dataset/place.h"
#include "tests/support/dataset/put.h"

/* The shortest that their readers take. */
#define TINY_MODEL                                                                                                     \
    "{\"batch_per_device\":1,\"layers\":[{\"backward_us\":1,\"forward_us\":1,\"name\":\"l\",\"variables\":[\"w\"]}],"  \
    "\"name\":\"tiny\",\"schema\":\"syncopate.model/"                                                                  \
    "1\",\"variables\":[{\"dtype\":\"f32\",\"name\":\"w\",\"shape\":[4]}]}"
#define PAIR_CLUSTER                                                                                                   \
    "{\"name\":\"pair\",\"nodes\":[{\"count\":2,\"name\":\"n\",\"nic_gbit_per_s\":1,\"nic_latency_us\":5}],"           \
    "\"schema\":\"syncopate.cluster/1\"}"
#define EMPTY_STRATEGY "{\"groups\":[],\"schema\":\"syncopate.strategy/1\"}"

struct fixture {
    struct id model, cluster, strategy;
};

static inline struct store *must_open(const char *path, enum store_mode mode) {
    struct error err = {0};
    struct store *store = NULL;
    assert_ok(store_open(path, mode, &store, &err));
    return store;
}

static inline struct id must_put(struct store *store, enum store_kind kind, const char *name, const char *content) {
    struct error err = {0};
    struct id id = {0};
    assert_ok(put_object(store, kind, name, content, &id, &err));
    return id;
}

/* The i-th of its kind, called "x". */
static inline struct id must_put_variant(struct store *store, enum store_kind kind, int i) {
    char content[512];
    if (kind == STORE_MODEL)
        snprintf(
            content, sizeof content,
            "{\"batch_per_device\":%d,\"layers\":[{\"backward_us\":1,\"forward_us\":1,\"name\":\"l\",\"variables\":"
            "[\"w\"]}],\"name\":\"x\",\"schema\":\"syncopate.model/1\",\"variables\":[{\"dtype\":\"f32\",\"name\":"
            "\"w\",\"shape\":[4]}]}",
            i + 1);
    else if (kind == STORE_CLUSTER)
        snprintf(content, sizeof content,
                 "{\"name\":\"x\",\"nodes\":[{\"count\":%d,\"name\":\"n\",\"nic_gbit_per_s\":1,\"nic_latency_us\":5}],"
                 "\"schema\":\"syncopate.cluster/1\"}",
                 i + 1);
    else
        snprintf(content, sizeof content, "{\"groups\":[%d],\"schema\":\"syncopate.strategy/1\"}", i);
    return must_put(store, kind, "x", content);
}

static inline struct fixture put_fixture(struct store *store) {
    return (struct fixture){.model = must_put(store, STORE_MODEL, "tiny", TINY_MODEL),
                            .cluster = must_put(store, STORE_CLUSTER, "pair", PAIR_CLUSTER),
                            .strategy = must_put(store, STORE_STRATEGY, "wfbp", EMPTY_STRATEGY)};
}

static inline void must_begin_session(struct store *store, const struct fixture *f, const char *id, uint64_t seed) {
    struct error err = {0};
    const struct stored_session session = {
        .id = id, .model = f->model.hex, .cluster = f->cluster.hex, .seed = seed, .budget = "{\"trials\":9}"};
    assert_ok(store_session_begin(store, &session, &err));
}

static inline struct new_trial request_of(const struct fixture *f, const char *session) {
    return (struct new_trial){.session = session,
                              .model = f->model.hex,
                              .cluster = f->cluster.hex,
                              .strategy = f->strategy.hex,
                              .proposer = "sampler",
                              .runner = "lab",
                              .predicted_us = 900.5,
                              .seed = UINT64_MAX};
}

static inline int64_t must_begin_trial(struct store *store, const struct new_trial *request) {
    struct error err = {0};
    int64_t trial = 0;
    assert_ok(store_trial_begin(store, request, &trial, &err));
    return trial;
}

/* Three iterations around `median_us`. */
static inline enum status finish_trial(struct store *store, int64_t trial, double median_us, struct error *err) {
    const double times[] = {median_us + 2, median_us - 1, median_us};
    const struct finished_trial result = {.mean_us = median_us + 1.0 / 3,
                                          .median_us = median_us,
                                          .low_us = median_us - 1,
                                          .high_us = median_us + 2,
                                          .n_iterations = 3,
                                          .iterations_us = times,
                                          .environment = "{\"host\":\"here\"}"};
    return store_trial_finish(store, trial, &result, err);
}

static inline int64_t must_run_trial(struct store *store, const struct fixture *f, const char *session,
                                     double median_us) {
    struct error err = {0};
    const struct new_trial request = request_of(f, session);
    const int64_t trial = must_begin_trial(store, &request);
    assert_ok(finish_trial(store, trial, median_us, &err));
    return trial;
}

static inline uint64_t count_trials(struct store *store) {
    struct error err = {0};
    uint64_t n = 0;
    assert_ok(query_count(store, &(struct query){0}, &n, &err));
    return n;
}

#endif
