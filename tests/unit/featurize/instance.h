/* One strategy for one model and one cluster, from descriptions in the test to its features. */
#ifndef TESTS_UNIT_FEATURIZE_INSTANCE_H
#define TESTS_UNIT_FEATURIZE_INSTANCE_H

#include <math.h>

#include "featurize/features.h"
#include "tests/unit/strategy/descriptions.h"

struct instance {
    struct model model;
    struct cluster cluster;
    struct cost cost;
    struct strategy strategy;
    struct plan plan;
    struct features features;
};

static const struct timeline_terms INSTANCE_TERMS = {
    .iteration_us = 400, .compute_us = 210, .exposed_us = 190, .busy_us = 300, .queue_us = 80};

static inline void instance_open(struct instance *in, const char *model, const char *cluster, const char *strategy) {
    struct error err;
    *in = (struct instance){.features.n_shards = 0};
    assert_ok(quoted_model(model, &in->model, &err));
    assert_ok(quoted_cluster(cluster, &in->cluster, &err));
    assert_ok(cost_init(&in->cost, &in->cluster, &err));
    assert_ok(quoted_strategy(strategy, &in->model, &in->cluster, &in->strategy, &err));
    assert_ok(plan_lower(&in->model, &in->cluster, &in->strategy, &in->plan, &err));
    assert_ok(features_of(&in->strategy, &in->plan, &in->cost, &INSTANCE_TERMS, &in->features, &err));
}

static inline void instance_close(struct instance *in) {
    features_release(&in->features);
    plan_release(&in->plan);
    strategy_release(&in->strategy);
    cost_release(&in->cost);
    cluster_release(&in->cluster);
    model_release(&in->model);
}

/* NaN where there is no such row: NaN is close to nothing. */
static inline double instance_shard(const struct instance *in, size_t row, enum feature_shard column) {
    const struct features *f = &in->features;
    return f->shards && row < f->n_shards ? f->shards[row * FEATURE_SHARD_COUNT + column] : NAN;
}

static inline double instance_weight(const struct instance *in, size_t row) {
    const struct features *f = &in->features;
    return f->weight && row < f->n_shards ? f->weight[row] : NAN;
}

/* A feature as it is, and x where the feature is log2(1 + x). */
#define GLOBAL_IS(in, name, want)      assert_close((in)->features.global[FEATURE_GLOBAL_##name], want, 1e-9)
#define GLOBAL_COUNTS(in, name, x)     GLOBAL_IS(in, name, log2(1.0 + (x)))
#define SHARD_IS(in, row, name, want)  assert_close(instance_shard(in, row, FEATURE_SHARD_##name), want, 1e-9)
#define SHARD_COUNTS(in, row, name, x) SHARD_IS(in, row, name, log2(1.0 + (x)))

#endif
