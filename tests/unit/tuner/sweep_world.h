/* A model and a cluster from texts, for tests of figures that change. */
#ifndef TESTS_UNIT_TUNER_SWEEP_WORLD_H
#define TESTS_UNIT_TUNER_SWEEP_WORLD_H

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "tests/support/check.h"

struct world {
    struct model model;
    struct cluster cluster;
};

/* `members` come after the cluster's schema and name. */
static inline struct world world_read(const char *model, const char *members) {
    struct world w;
    struct error err;
    cJSON *json;
    char text[2048];
    snprintf(text, sizeof text, "{\"schema\":\"syncopate.cluster/1\",\"name\":\"test\",%s}", members);
    assert_ok(json_parse(text, strlen(text), "cluster", &json, &err));
    assert_ok(cluster_read(json, "cluster", &w.cluster, &err));
    cJSON_Delete(json);
    assert_ok(json_parse(model, strlen(model), "model", &json, &err));
    assert_ok(model_read(json, "model", &w.model, &err));
    cJSON_Delete(json);
    return w;
}

static inline void world_release(struct world *w) {
    model_release(&w->model);
    cluster_release(&w->cluster);
}

#endif
