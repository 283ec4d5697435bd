/* Properties of crossover on random models, clusters, options and parents: the child is made of its parents and of
 * nothing else. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "strategy/plan.h"
#include "strategy/space/space.h"
#include "tests/support/check.h"
#include "tests/support/strategy/random_instances.h"
#include "tests/unit/strategy/any_strategy.h"
#include "tests/unit/strategy/plan_invariants.h"

/* Release builds alone run all; those under sanitizers or without optimization fewer. */
#ifdef NDEBUG
enum { INSTANCES = 2000 };
#else
enum { INSTANCES = 600 };
#endif

struct family {
    struct model model;
    struct cluster cluster;
    struct space space;
    struct strategy a, b;
};

static struct space_options random_options(struct rng *rng) {
    struct space_options o = space_default_options();
    uint64_t architecture = rng_below(rng, 5);
    o.all_reduce = architecture != 0;
    o.parameter_server = architecture != 1;
    o.cross_iteration = rng_below(rng, 3) != 0;
    o.algorithms = 1 + (uint32_t)rng_below(rng, (1u << ALL_REDUCE_COUNT) - 1);
    o.algorithms |= (uint32_t)rng_below(rng, 2) << ALGORITHM_all_gather;
    o.policies = 1 + (uint32_t)rng_below(rng, 3);
    if (rng_below(rng, 3) == 0)
        o.encodings |= (uint32_t)rng_below(rng, 1u << ENCODING_COUNT);
    o.sharded |= (uint32_t)rng_below(rng, 1u << SHARDED_COUNT);
    o.max_shards = 1 + (uint32_t)rng_below(rng, 16);
    o.share_pushes = rng_below(rng, 4) != 0;
    o.each_shard = rng_below(rng, 4) != 0;
    o.order_pulls = rng_below(rng, 4) != 0;
    return o;
}

static enum status sample(const struct space *space, struct rng *rng, struct strategy *out, struct error *err) {
    return rng_below(rng, 2) ? space_sample_uniform(space, rng, out, err) : space_sample_guided(space, rng, out, err);
}

static void family_open_without_parents(struct family *f, struct rng *rng) {
    struct error err;
    struct space_options options = random_options(rng);
    assert_ok(random_updated_model(rng, &f->model, &err));
    assert_ok(random_cluster(rng, &f->cluster, &err));
    assert_ok(space_init(&f->space, &f->model, &f->cluster, &options, &err));
}

static void family_open(struct family *f, uint64_t number, struct rng *rng) {
    struct error err;
    rng_split(rng, test_seed(), number);
    family_open_without_parents(f, rng);
    assert_ok(sample(&f->space, rng, &f->a, &err));
    assert_ok(sample(&f->space, rng, &f->b, &err));
}

static void family_close(struct family *f) {
    strategy_release(&f->a);
    strategy_release(&f->b);
    space_release(&f->space);
    cluster_release(&f->cluster);
    model_release(&f->model);
}

static bool is_part_like(const struct strategy *x, const struct variable_sync *s, const struct strategy *y,
                         const struct variable_sync *t) {
    if (s->kind != t->kind || s->axis != t->axis || s->shards != t->shards || s->encoding != t->encoding)
        return false;
    if (s->kind == SYNC_ALL_REDUCE) {
        const struct group *g = &x->groups[s->group], *h = &y->groups[t->group];
        return g->algorithm == h->algorithm && g->partition_bytes == h->partition_bytes && g->sharded == h->sharded &&
               g->keeps_gathered == h->keeps_gathered;
    }
    return s->n_servers == t->n_servers && !memcmp(s->servers, t->servers, s->n_servers * sizeof *s->servers) &&
           s->local_reduction == t->local_reduction && s->partition_bytes == t->partition_bytes;
}

/* Variable v is synchronized in x as it is in y, whoever shares its group or push. */
static bool is_like(const struct strategy *x, const struct strategy *y, uint32_t v) {
    const struct variable_sync *s = &x->variables[v], *t = &y->variables[v];
    bool like = sync_parts(s) == sync_parts(t);
    for (uint32_t k = 0; k < sync_parts(s) && like; k++)
        like = is_part_like(x, sync_part(s, k), y, sync_part(t, k));
    return like;
}

static bool share(const struct variable_sync *x, const struct variable_sync *y) {
    if (x->kind != y->kind)
        return false;
    return x->kind == SYNC_ALL_REDUCE ? x->group == y->group : x->push && x->push == y->push;
}

/* Some part of one and some part of the other. */
static bool is_together(const struct strategy *s, uint32_t u, uint32_t v) {
    const struct variable_sync *x = &s->variables[u], *y = &s->variables[v];
    for (uint32_t k = 0; k < sync_parts(x); k++)
        for (uint32_t i = 0; i < sync_parts(y); i++)
            if (share(sync_part(x, k), sync_part(y, i)))
                return true;
    return false;
}

static bool is_prefetch_of(uint32_t child, uint32_t parent, const struct strategy *s) {
    return child == parent || (child < parent && child == strategy_deepest_prefetch(s));
}

/* But for what sharded parameters need: their order and barrier, and no more prefetch than there are groups. */
static bool is_schedule_of(const struct strategy *child, const struct strategy *parent) {
    const bool gathers = strategy_sharded_parameters(child) > 0;
    return child->policy == (gathers ? POLICY_fifo : parent->policy) && child->credit_bytes == parent->credit_bytes &&
           child->cross_iteration == (!gathers && parent->cross_iteration) &&
           (!gathers || (is_prefetch_of(child->forward_prefetch, parent->forward_prefetch, child) &&
                         is_prefetch_of(child->backward_prefetch, parent->backward_prefetch, child))) &&
           child->pulls_by_priority == (parent->pulls_by_priority && strategy_orders_pulls(child));
}

/* Together in the child: from one parent that has them together, or together in both. */
static void check_groups(const struct family *f, const struct strategy *child) {
    for (uint32_t u = 0; u < child->n_variables; u++)
        for (uint32_t v = 0; v < u; v++) {
            if (!is_together(child, u, v))
                continue;
            bool in_a = is_together(&f->a, u, v), in_b = is_together(&f->b, u, v);
            bool from_a = in_a && is_like(child, &f->a, u) && is_like(child, &f->a, v);
            bool from_b = in_b && is_like(child, &f->b, u) && is_like(child, &f->b, v);
            assert_true(from_a || from_b || (in_a && in_b));
        }
}

static void check_child(const struct family *f, const struct strategy *child) {
    struct error err;
    struct plan plan;
    assert_ok(strategy_check(child, &f->model, &f->cluster, &err));
    assert_true(space_contains(&f->space, child));
    assert_true(is_schedule_of(child, &f->a) || is_schedule_of(child, &f->b));
    for (uint32_t v = 0; v < child->n_variables; v++)
        assert_true(is_like(child, &f->a, v) || is_like(child, &f->b, v));
    check_groups(f, child);
    assert_ok(plan_lower(&f->model, &f->cluster, child, &plan, &err));
    plan_release(&plan);
}

static void a_child_is_valid_and_made_of_its_parents(void **state) {
    (void)state;
    struct error err;
    uint32_t mixed = 0;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct rng rng;
        struct family f;
        struct strategy child;
        family_open(&f, i, &rng);
        assert_ok(space_crossover(&f.space, &f.a, &f.b, &rng, &child, &err));
        check_child(&f, &child);
        bool of_a = true, of_b = true;
        for (uint32_t v = 0; v < child.n_variables; v++) {
            of_a = of_a && is_like(&child, &f.a, v);
            of_b = of_b && is_like(&child, &f.b, v);
        }
        mixed += !of_a && !of_b;
        strategy_release(&child);
        family_close(&f);
    }
    assert_true(mixed > INSTANCES / 2);
}

static void a_strategy_with_itself_gives_itself(void **state) {
    (void)state;
    struct error err;
    for (uint64_t i = 0; i < INSTANCES / 2; i++) {
        struct rng rng;
        struct family f;
        struct strategy child;
        family_open(&f, INSTANCES + i, &rng);
        assert_ok(space_crossover(&f.space, &f.a, &f.a, &rng, &child, &err));
        assert_string_equal(child.id.hex, f.a.id.hex);
        strategy_release(&child);
        family_close(&f);
    }
}

/* Only a's: it cannot have come from b. */
static bool is_from_a(const struct family *f, const struct strategy *child, uint32_t v) {
    return is_like(child, &f->a, v) && !is_like(child, &f->b, v);
}

static void gradients_of_one_run_stay_merged(void **state) {
    (void)state;
    struct error err;
    uint64_t together = 0;
    for (uint64_t i = 0; i < INSTANCES / 2; i++) {
        struct rng rng;
        struct family f;
        struct strategy child;
        family_open(&f, 2 * (uint64_t)INSTANCES + i, &rng);
        assert_ok(space_crossover(&f.space, &f.a, &f.b, &rng, &child, &err));
        for (uint32_t k = 1; k < child.n_variables; k++) {
            uint32_t u = f.space.ready[k - 1], v = f.space.ready[k];
            if (!is_from_a(&f, &child, u) || !is_from_a(&f, &child, v) || !is_together(&f.a, u, v))
                continue;
            assert_true(is_together(&child, u, v));
            together++;
        }
        strategy_release(&child);
        family_close(&f);
    }
    assert_true(together > INSTANCES / 10);
}

static void one_parent_in_the_space_is_enough_for_the_child_to_be_in_it(void **state) {
    (void)state;
    struct error err;
    uint32_t outside = 0;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct rng rng;
        struct family f;
        struct strategy child;
        const struct space_options any = space_default_options();
        family_open(&f, 3 * (uint64_t)INSTANCES + i, &rng);
        strategy_release(&f.b);
        struct space wide = f.space;
        wide.options = any;
        if (i % 4)
            assert_ok(sample(&wide, &rng, &f.b, &err));
        else
            assert_ok(random_preemptive(&rng, &f.model, &f.cluster, &f.b, &err));
        outside += !space_contains(&f.space, &f.b);
        if (i % 2)
            assert_ok(space_crossover(&f.space, &f.a, &f.b, &rng, &child, &err));
        else
            assert_ok(space_crossover(&f.space, &f.b, &f.a, &rng, &child, &err));
        check_child(&f, &child);
        strategy_release(&child);
        family_close(&f);
    }
    assert_true(outside > INSTANCES / 2);
}

static void two_preemptive_parents_have_a_child_without_slices(void **state) {
    (void)state;
    struct error err;
    for (uint64_t i = 0; i < INSTANCES / 10; i++) {
        struct rng rng;
        struct family f;
        struct strategy child;
        rng_split(&rng, test_seed(), 5 * (uint64_t)INSTANCES + i);
        family_open_without_parents(&f, &rng);
        assert_ok(random_preemptive(&rng, &f.model, &f.cluster, &f.a, &err));
        assert_ok(random_preemptive(&rng, &f.model, &f.cluster, &f.b, &err));
        assert_ok(space_crossover(&f.space, &f.a, &f.b, &rng, &child, &err));
        assert_int_equal(child.n_slices, 0);
        assert_true(f.space.options.policies >> child.policy & 1);
        assert_ok(strategy_check(&child, &f.model, &f.cluster, &err));
        strategy_release(&child);
        family_close(&f);
    }
}

/* Sharded in any way too. A group that both have, sharded alike, is not split. */
static void any_two_strategies_have_a_valid_child(void **state) {
    (void)state;
    struct error err;
    int sharded = 0;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct rng rng;
        struct family f;
        struct strategy child, again;
        struct plan plan;
        rng_split(&rng, test_seed(), 6 * (uint64_t)INSTANCES + i);
        family_open_without_parents(&f, &rng);
        assert_ok(any_strategy(&rng, &f.model, &f.cluster, &f.a, &err));
        assert_ok(strategy_seal(&f.a, &f.model, &f.cluster, &err));
        if (i % 2)
            assert_ok(sample(&f.space, &rng, &f.b, &err));
        else
            assert_ok(any_strategy(&rng, &f.model, &f.cluster, &f.b, &err));
        assert_ok(strategy_seal(&f.b, &f.model, &f.cluster, &err));
        assert_ok(space_crossover(&f.space, &f.a, &f.b, &rng, &child, &err));
        assert_ok(plan_lower(&f.model, &f.cluster, &child, &plan, &err));
        const char *broken = plan_broken(&plan, &child);
        if (broken)
            fail_msg("%s", broken);
        if (i % 2 || space_contains(&f.space, &f.a))
            assert_true(space_contains(&f.space, &child));
        sharded += plan.ends_in_update;
        if (strategy_sharded_parameters(&f.a) && f.space.options.policies >> POLICY_fifo & 1) {
            assert_ok(space_crossover(&f.space, &f.a, &f.a, &rng, &again, &err));
            assert_string_equal(again.id.hex, f.a.id.hex);
            strategy_release(&again);
        }
        plan_release(&plan);
        strategy_release(&child);
        family_close(&f);
    }
    printf("%d children have sharded parameters\n", sharded);
    assert_true(sharded > INSTANCES / 100);
}

static void the_same_seed_gives_the_same_child(void **state) {
    (void)state;
    struct error err;
    for (uint64_t i = 0; i < INSTANCES / 10; i++) {
        char hex[2][ID_LENGTH + 1];
        for (int run = 0; run < 2; run++) {
            struct rng rng;
            struct family f;
            struct strategy child;
            family_open(&f, 4 * (uint64_t)INSTANCES + i, &rng);
            assert_ok(space_crossover(&f.space, &f.a, &f.b, &rng, &child, &err));
            strcpy(hex[run], child.id.hex);
            strategy_release(&child);
            family_close(&f);
        }
        assert_string_equal(hex[0], hex[1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_is_valid_and_made_of_its_parents),
        cmocka_unit_test(a_strategy_with_itself_gives_itself),
        cmocka_unit_test(gradients_of_one_run_stay_merged),
        cmocka_unit_test(one_parent_in_the_space_is_enough_for_the_child_to_be_in_it),
        cmocka_unit_test(two_preemptive_parents_have_a_child_without_slices),
        cmocka_unit_test(any_two_strategies_have_a_valid_child),
        cmocka_unit_test(the_same_seed_gives_the_same_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
