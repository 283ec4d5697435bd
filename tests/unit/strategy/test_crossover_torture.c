/* Every allocation of a crossover fails once. */
#include "strategy/space/space.h"
#include "tests/support/check.h"
#include "tests/support/strategy/random_instances.h"
#include "tests/support/torture.h"

struct scene {
    struct space space;
    struct strategy a, b;
};

static enum status cross(void *arg, struct error *err) {
    const struct scene *s = arg;
    struct rng rng;
    struct strategy child;
    rng_seed(&rng, 7);
    enum status st = space_crossover(&s->space, &s->a, &s->b, &rng, &child, err);
    if (!st)
        strategy_release(&child);
    return st;
}

static void a_crossover_survives_every_failed_allocation(void **state) {
    (void)state;
    struct error err;
    struct rng rng;
    struct scene s;
    struct model model;
    struct cluster cluster;
    const struct space_options options = space_default_options();
    rng_seed(&rng, 5);
    assert_ok(random_model(&rng, &model, &err));
    assert_ok(random_cluster(&rng, &cluster, &err));
    assert_ok(space_init(&s.space, &model, &cluster, &options, &err));
    assert_ok(space_sample_uniform(&s.space, &rng, &s.a, &err));
    assert_ok(space_sample_uniform(&s.space, &rng, &s.b, &err));
    assert_true(torture(cross, &s) >= 6);
    strategy_release(&s.a);
    strategy_release(&s.b);
    space_release(&s.space);
    cluster_release(&cluster);
    model_release(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_crossover_survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
