/* The genetic search: what its children are, and that it finds what sampling does not. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/check.h"
#include "tests/support/strategy/random_instances.h"
#include "tests/support/strategy/similarity.h"
#include "tuner/search/genetic.h"

enum { INSTANCES = 60, PARENTS = 8, CHILDREN = 12 };

struct scene {
    struct model model;
    struct cluster cluster;
    struct space space;
    struct strategy strategies[PARENTS];
    struct genetic_parent population[PARENTS];
};

static void open_space(struct scene *s, uint64_t number, const struct space_options *options, struct rng *rng) {
    struct error err;
    rng_split(rng, test_seed(), number);
    do {
        assert_ok(random_model(rng, &s->model, &err));
        if (s->model.n_variables >= 4)
            break;
        model_release(&s->model);
    } while (true);
    assert_ok(random_cluster(rng, &s->cluster, &err));
    assert_ok(space_init(&s->space, &s->model, &s->cluster, options, &err));
}

static void close_space(struct scene *s) {
    space_release(&s->space);
    cluster_release(&s->cluster);
    model_release(&s->model);
}

static void open_scene(struct scene *s, uint64_t number, struct rng *rng) {
    struct error err;
    const struct space_options o = space_default_options();
    open_space(s, number, &o, rng);
    for (size_t i = 0; i < PARENTS; i++) {
        assert_ok(space_sample_uniform(&s->space, rng, &s->strategies[i], &err));
        s->population[i] = (struct genetic_parent){&s->strategies[i], 100 + (double)i};
    }
}

static void close_scene(struct scene *s) {
    for (size_t i = 0; i < PARENTS; i++)
        strategy_release(&s->strategies[i]);
    close_space(s);
}

static void release(size_t n, struct strategy *strategies) {
    for (size_t i = 0; i < n; i++)
        strategy_release(&strategies[i]);
}

static void children_are_new_different_valid_and_in_the_space(void **state) {
    (void)state;
    struct error err;
    const struct genetic_options options = genetic_default_options();
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct rng rng;
        struct scene s;
        struct strategy children[CHILDREN];
        size_t made;
        open_scene(&s, i, &rng);
        s.population[rng_below(&rng, PARENTS)].us = INFINITY;
        assert_ok(genetic_propose(&s.space, &options, PARENTS, s.population, &rng, CHILDREN, children, &made, &err));
        assert_int_equal(made, CHILDREN);
        for (size_t c = 0; c < made; c++) {
            assert_ok(strategy_check(&children[c], &s.model, &s.cluster, &err));
            assert_true(space_contains(&s.space, &children[c]));
            for (size_t p = 0; p < PARENTS; p++)
                assert_string_not_equal(children[c].id.hex, s.strategies[p].id.hex);
            for (size_t o = 0; o < c; o++)
                assert_string_not_equal(children[c].id.hex, children[o].id.hex);
        }
        release(made, children);
        close_scene(&s);
    }
}

static void the_same_seed_gives_the_same_children(void **state) {
    (void)state;
    struct error err;
    const struct genetic_options options = genetic_default_options();
    for (uint64_t i = 0; i < INSTANCES / 4; i++) {
        char hex[2][CHILDREN][ID_LENGTH + 1];
        for (int run = 0; run < 2; run++) {
            struct rng rng;
            struct scene s;
            struct strategy children[CHILDREN];
            size_t made;
            open_scene(&s, i, &rng);
            assert_ok(
                genetic_propose(&s.space, &options, PARENTS, s.population, &rng, CHILDREN, children, &made, &err));
            for (size_t c = 0; c < made; c++)
                strcpy(hex[run][c], children[c].id.hex);
            release(made, children);
            close_scene(&s);
        }
        assert_memory_equal(hex[0], hex[1], sizeof hex[0]);
    }
}

/* Mean likeness of one-parent children to each of the population. */
static void mean_likeness(const struct scene *s, size_t n, const struct strategy *children, double *likeness) {
    struct error err;
    for (size_t p = 0; p < PARENTS; p++)
        likeness[p] = 0;
    for (size_t c = 0; c < n; c++)
        for (size_t p = 0; p < PARENTS; p++) {
            double x;
            assert_ok(space_similarity(&s->space, &children[c], &s->strategies[p], &x, &err));
            likeness[p] += x / (double)n;
        }
}

static void a_hard_tournament_breeds_from_the_fastest_and_never_from_the_failed(void **state) {
    (void)state;
    struct error err;
    const struct genetic_options options = {.tournament = 200, .crossover = 0, .mutation = 0.5};
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct rng rng;
        struct scene s;
        struct strategy children[CHILDREN];
        double likeness[PARENTS];
        size_t made, fastest = i % PARENTS;
        open_scene(&s, i, &rng);
        s.population[fastest].us = 50;
        s.population[(fastest + 1) % PARENTS].us = NAN;
        s.population[(fastest + 2) % PARENTS].us = -INFINITY;
        assert_ok(genetic_propose(&s.space, &options, PARENTS, s.population, &rng, CHILDREN, children, &made, &err));
        mean_likeness(&s, made, children, likeness);
        for (size_t p = 0; p < PARENTS; p++)
            assert_true(p == fastest || likeness[fastest] > likeness[p]);
        release(made, children);
        close_scene(&s);
    }
}

/* Distance from a hidden strategy, as if it were a time. */
static double distance(const struct scene *s, const struct strategy *target, const struct strategy *x) {
    struct error err;
    double likeness;
    assert_ok(space_similarity(&s->space, target, x, &likeness, &err));
    return 2 - likeness;
}

enum { GENERATIONS = 12, KEPT = 20, BROOD = 20 };

/* Keeps the best of parents and children; the best after the last generation. */
static double evolve(const struct scene *s, const struct strategy *target, struct rng *rng) {
    struct error err;
    struct strategy all[KEPT + BROOD];
    struct genetic_parent population[KEPT + BROOD];
    const struct genetic_options options = genetic_default_options();
    for (size_t i = 0; i < KEPT; i++)
        assert_ok(space_sample_uniform(&s->space, rng, &all[i], &err));
    for (int g = 0; g < GENERATIONS; g++) {
        size_t made;
        for (size_t i = 0; i < KEPT; i++)
            population[i] = (struct genetic_parent){&all[i], distance(s, target, &all[i])};
        assert_ok(genetic_propose(&s->space, &options, KEPT, population, rng, BROOD, all + KEPT, &made, &err));
        for (size_t n = KEPT + made; n > KEPT; n--) { /* drop the farthest */
            size_t worst = 0;
            for (size_t i = 1; i < n; i++)
                if (distance(s, target, &all[i]) > distance(s, target, &all[worst]))
                    worst = i;
            strategy_release(&all[worst]);
            all[worst] = all[n - 1];
        }
    }
    double best = INFINITY;
    for (size_t i = 0; i < KEPT; i++)
        best = fmin(best, distance(s, target, &all[i]));
    release(KEPT, all);
    return best;
}

static double best_of_samples(const struct scene *s, const struct strategy *target, size_t n, struct rng *rng) {
    struct error err;
    double best = INFINITY;
    for (size_t i = 0; i < n; i++) {
        struct strategy x;
        assert_ok(space_sample_uniform(&s->space, rng, &x, &err));
        best = fmin(best, distance(s, target, &x));
        strategy_release(&x);
    }
    return best;
}

static void generations_come_nearer_to_a_hidden_strategy_than_as_many_samples(void **state) {
    (void)state;
    struct error err;
    enum { SPACES = 12 };
    uint32_t wins = 0;
    for (uint64_t i = 0; i < SPACES; i++) {
        struct rng rng;
        struct scene s;
        struct strategy target;
        const struct space_options o = space_default_options();
        open_space(&s, 1000 + i, &o, &rng);
        assert_ok(space_sample_uniform(&s.space, &rng, &target, &err));
        double bred = evolve(&s, &target, &rng);
        wins += bred < best_of_samples(&s, &target, KEPT + GENERATIONS * BROOD, &rng);
        strategy_release(&target);
        close_space(&s);
    }
    assert_true(wins >= SPACES - 2);
}

static void without_a_parent_that_ran_there_are_no_children(void **state) {
    (void)state;
    struct error err;
    struct rng rng;
    struct scene s;
    struct strategy children[1];
    size_t made;
    const struct genetic_options options = genetic_default_options();
    open_scene(&s, 1, &rng);
    for (size_t i = 0; i < PARENTS; i++)
        s.population[i].us = INFINITY;
    assert_fails(genetic_propose(&s.space, &options, PARENTS, s.population, &rng, 1, children, &made, &err),
                 ST_NOT_FOUND, "no parent");
    assert_fails(genetic_propose(&s.space, &options, 0, NULL, &rng, 1, children, &made, &err), ST_NOT_FOUND,
                 "no parent");
    close_scene(&s);
}

/* One variable, all-reduced by one algorithm under one policy with one size: six strategies, all of which are bred
 * before the search says that there are no more. */
static void a_small_space_is_bred_until_nothing_new_is_left(void **state) {
    (void)state;
    enum { ROOM = 400 };
    struct error err;
    struct rng rng;
    struct scene s;
    static struct strategy all[ROOM];
    static struct genetic_parent population[ROOM];
    const struct genetic_options options = genetic_default_options();
    struct space_options o = space_default_options();
    size_t n = 1, made;
    o.parameter_server = o.cross_iteration = false;
    o.algorithms = 1u << ALGORITHM_ring;
    o.policies = 1u << POLICY_fifo;
    o.max_shards = 1;
    o.min_partition_bytes = o.max_partition_bytes = o.min_credit_bytes = o.max_credit_bytes = SPACE_MIN_BYTES;
    rng_split(&rng, test_seed(), 2000);
    do {
        assert_ok(random_model(&rng, &s.model, &err));
        if (s.model.n_variables == 1)
            break;
        model_release(&s.model);
    } while (true);
    assert_ok(random_cluster(&rng, &s.cluster, &err));
    assert_ok(space_init(&s.space, &s.model, &s.cluster, &o, &err));
    assert_ok(space_sample_uniform(&s.space, &rng, &all[0], &err));
    population[0] = (struct genetic_parent){&all[0], 1};
    enum status st = ST_OK;
    while (!(st = genetic_propose(&s.space, &options, n, population, &rng, ROOM - n, all + n, &made, &err))) {
        for (size_t i = n; i < n + made; i++)
            population[i] = (struct genetic_parent){&all[i], 1};
        n += made;
    }
    assert_int_equal(st, ST_NOT_FOUND);
    assert_int_equal(n, 6); /* a partition or none; credit 0, 4 KiB or no limit */
    release(n, all);
    close_space(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_are_new_different_valid_and_in_the_space),
        cmocka_unit_test(the_same_seed_gives_the_same_children),
        cmocka_unit_test(a_hard_tournament_breeds_from_the_fastest_and_never_from_the_failed),
        cmocka_unit_test(generations_come_nearer_to_a_hidden_strategy_than_as_many_samples),
        cmocka_unit_test(without_a_parent_that_ran_there_are_no_children),
        cmocka_unit_test(a_small_space_is_bred_until_nothing_new_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
