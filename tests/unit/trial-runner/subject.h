/* Shared by the tests of this folder: what a trial is of. */
#ifndef TESTS_UNIT_TRIAL_RUNNER_SUBJECT_H
#define TESTS_UNIT_TRIAL_RUNNER_SUBJECT_H

#include <cjson/cJSON.h>
#include <string.h>

#include "base/json.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"
#include "tests/support/check.h"

struct subject {
    struct model model;
    struct cluster cluster;
    struct strategy strategy;
};

static inline cJSON *parsed(const char *text, const char *name) {
    struct error err = {0};
    cJSON *json;
    assert_ok(json_parse(text, strlen(text), name, &json, &err));
    return json;
}

/* From descriptions. */
static inline void subject_init_of(struct subject *s, const char *model, const char *cluster, const char *strategy) {
    struct error err = {0};
    cJSON *json = parsed(model, "model");
    assert_ok(model_read(json, "model", &s->model, &err));
    cJSON_Delete(json);
    json = parsed(cluster, "cluster");
    assert_ok(cluster_read(json, "cluster", &s->cluster, &err));
    cJSON_Delete(json);
    json = parsed(strategy, "strategy");
    assert_ok(strategy_read(json, "strategy", &s->model, &s->cluster, &s->strategy, &err));
    cJSON_Delete(json);
}

static inline void subject_release(struct subject *s) {
    strategy_release(&s->strategy);
    cluster_release(&s->cluster);
    model_release(&s->model);
}

#endif
