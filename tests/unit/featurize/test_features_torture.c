/* Every allocation of features_of fails once; nothing may leak, crash or be half written. */
#include <string.h>

#include "base/rng.h"
#include "featurize/features.h"
#include "strategy/space/space.h"
#include "tests/support/check.h"
#include "tests/support/strategy/random_instances.h"
#include "tests/support/torture.h"

struct given {
    struct model model;
    struct cluster cluster;
    struct cost cost;
    struct space space;
    struct strategy strategy;
    struct plan plan;
};

static void make(struct given *g) {
    struct error err;
    struct rng rng;
    struct space_options options = space_default_options();
    rng_seed(&rng, 7);
    assert_ok(random_model(&rng, &g->model, &err));
    assert_ok(random_cluster(&rng, &g->cluster, &err));
    assert_ok(cost_init(&g->cost, &g->cluster, &err));
    assert_ok(space_init(&g->space, &g->model, &g->cluster, &options, &err));
    assert_ok(space_sample_uniform(&g->space, &rng, &g->strategy, &err));
    assert_ok(plan_lower(&g->model, &g->cluster, &g->strategy, &g->plan, &err));
}

static void drop(struct given *g) {
    plan_release(&g->plan);
    strategy_release(&g->strategy);
    space_release(&g->space);
    cost_release(&g->cost);
    cluster_release(&g->cluster);
    model_release(&g->model);
}

static enum status describe(void *arg, struct error *err) {
    const struct given *g = arg;
    const struct timeline_terms terms = {.iteration_us = 100, .compute_us = 60, .exposed_us = 40, .busy_us = 80};
    struct features features, untouched;
    memset(&features, 0x5a, sizeof features);
    untouched = features;
    enum status status = features_of(&g->strategy, &g->plan, &g->cost, &terms, &features, err);
    if (status)
        assert_memory_equal(&features, &untouched, sizeof features);
    else
        features_release(&features);
    return status;
}

static void features_survive_every_failed_allocation(void **state) {
    (void)state;
    struct given given;
    make(&given);
    assert_true(torture(describe, &given) >= 4);
    drop(&given);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features_survive_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
