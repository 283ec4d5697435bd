/* Every allocation of a crossover, and of a step from a strategy, fails once. */
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

static enum status step(void *arg, struct error *err) {
    const struct scene *s = arg;
    struct rng rng;
    struct strategy next;
    rng_seed(&rng, 8);
    enum status st = space_neighbour(&s->space, &s->a, &rng, &next, err);
    if (!st)
        strategy_release(&next);
    return st;
}

/* All-reduces of which parameters are sharded, so that settling has something to do. */
static void shard(struct scene *s) {
    struct error err;
    s->a.policy = POLICY_fifo;
    s->a.cross_iteration = false;
    for (uint32_t g = 0; g < s->a.n_groups; g++) {
        s->a.groups[g].algorithm = ALGORITHM_auto;
        s->a.groups[g].sharded = SHARDED_parameters;
    }
    assert_ok(strategy_seal(&s->a, s->space.model, s->space.cluster, &err));
    assert_true(strategy_sharded_parameters(&s->a) > 0);
}

static void a_crossover_survives_every_failed_allocation(void **state) {
    (void)state;
    struct error err;
    struct rng rng;
    struct scene s;
    struct model model;
    struct cluster cluster;
    struct space_options options = space_default_options();
    options.algorithms = 1u << ALGORITHM_auto;
    rng_seed(&rng, 5);
    assert_ok(random_model(&rng, &model, &err));
    assert_ok(random_cluster(&rng, &cluster, &err));
    assert_ok(space_init(&s.space, &model, &cluster, &options, &err));
    assert_ok(space_sample_uniform(&s.space, &rng, &s.a, &err));
    assert_ok(space_sample_uniform(&s.space, &rng, &s.b, &err));
    assert_true(torture(cross, &s) >= 6);
    shard(&s);
    assert_true(torture(cross, &s) >= 7);
    assert_true(torture(step, &s) >= 6);
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
