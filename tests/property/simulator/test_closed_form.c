/* The closed form that a ranker reads as a feature is the one that `simulate --model autosync` prints: both are worked
 * out apart, the feature by server and the prediction by message. */
#include <math.h>

#include "featurize/features.h"
#include "simulator/closed_form.h"
#include "tests/support/check.h"
#include "tests/support/strategy/random_instances.h"
#include "tests/unit/strategy/any_strategy.h"

enum { INSTANCES = 300 };

static void compare(const struct strategy *strategy, const struct plan *plan, const struct cost *cost) {
    struct error err;
    struct prediction p;
    struct features f;
    assert_ok(closed_form_run(plan, cost, &p, &err));
    struct timeline_terms terms = {.iteration_us = p.iteration_us, .compute_us = p.compute_us};
    assert_ok(features_of(strategy, plan, cost, &terms, &f, &err));
    assert_close(1 + f.global[FEATURE_GLOBAL_log2_closed_form_us], 1 + log2(1 + p.iteration_us), 1e-9);
    assert_close(1 + f.global[FEATURE_GLOBAL_log2_closed_sync_us], 1 + log2(1 + p.comm_busy_us), 1e-9);
    assert_close(1 + f.global[FEATURE_GLOBAL_log2_timeline_over_closed], 1, 1e-9);
    features_release(&f);
}

static void the_feature_is_the_prediction(void **state) {
    (void)state;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct error err = {0};
        struct rng rng;
        struct model model;
        struct cluster cluster;
        struct cost cost;
        struct strategy strategy;
        struct plan plan;
        rng_split(&rng, test_seed(), i);
        assert_ok(random_updated_model(&rng, &model, &err));
        assert_ok(random_cluster(&rng, &cluster, &err));
        assert_ok(cost_init(&cost, &cluster, &err));
        assert_ok(any_strategy(&rng, &model, &cluster, &strategy, &err));
        assert_ok(plan_lower(&model, &cluster, &strategy, &plan, &err));
        compare(&strategy, &plan, &cost);
        plan_release(&plan);
        strategy_release(&strategy);
        cost_release(&cost);
        cluster_release(&cluster);
        model_release(&model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_feature_is_the_prediction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
