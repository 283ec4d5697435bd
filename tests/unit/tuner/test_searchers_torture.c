/* Every allocation of knobs, breeding, selection and the reference searches fails once. */
#include <math.h>
#include <stdlib.h>

#include "tests/support/check.h"
#include "tests/support/strategy/random_instances.h"
#include "tests/support/torture.h"
#include "tests/support/tuner/reference.h"
#include "tests/support/tuner/selection.h"
#include "tuner/search/advisor.h"
#include "tuner/search/genetic.h"
#include "tuner/search/knobs.h"
#include "tuner/search/propose_bayes.h"

enum { PARENTS = 4, CHILDREN = 3 };

struct scene {
    struct model model;
    struct cluster cluster;
    struct space space;
    struct strategy strategies[PARENTS];
};

static void open_scene(struct scene *s) {
    struct error err;
    struct rng rng;
    const struct space_options o = space_default_options();
    rng_seed(&rng, 5);
    assert_ok(random_model(&rng, &s->model, &err));
    assert_ok(random_cluster(&rng, &s->cluster, &err));
    assert_ok(space_init(&s->space, &s->model, &s->cluster, &o, &err));
    for (size_t i = 0; i < PARENTS; i++)
        assert_ok(space_sample_guided(&s->space, &rng, &s->strategies[i], &err));
}

static void close_scene(struct scene *s) {
    for (size_t i = 0; i < PARENTS; i++)
        strategy_release(&s->strategies[i]);
    space_release(&s->space);
    cluster_release(&s->cluster);
    model_release(&s->model);
}

static enum status set_knobs(void *arg, struct error *err) {
    const struct scene *s = arg;
    struct strategy out;
    const struct knobs knobs = {.architecture = KNOB_ARCHITECTURE_large_served,
                                .served_bytes = s->model.bytes / s->model.n_variables,
                                .partition_bytes = 65536,
                                .credit_bytes = CREDIT_UNLIMITED,
                                .n_servers = 1};
    enum status st = knobs_strategy(&s->space, &knobs, &out, err);
    if (!st)
        strategy_release(&out);
    return st;
}

static enum status breed(void *arg, struct error *err) {
    const struct scene *s = arg;
    struct rng rng;
    struct genetic_parent population[PARENTS];
    struct strategy children[CHILDREN];
    size_t made;
    const struct genetic_options options = genetic_default_options();
    rng_seed(&rng, 3);
    for (size_t i = 0; i < PARENTS; i++)
        population[i] = (struct genetic_parent){&s->strategies[i], (double)i};
    enum status st = genetic_propose(&s->space, &options, PARENTS, population, &rng, CHILDREN, children, &made, err);
    for (size_t i = 0; !st && i < made; i++)
        strategy_release(&children[i]);
    return st;
}

static enum status select_some(void *arg, struct error *err) {
    const struct scene *s = arg;
    const double scores[PARENTS - 1] = {3, 1, 2};
    double ranks[PARENTS - 1];
    size_t chosen[2], count;
    const struct strategy *const items[PARENTS] = {&s->strategies[0], &s->strategies[1], &s->strategies[2],
                                                   &s->strategies[3]};
    const struct selection_strategies context = {&s->space, items};
    const struct selection selection = {.n = PARENTS - 1,
                                        .n_tried = 1,
                                        .scores = ranks,
                                        .weight = 1,
                                        .similarity = selection_similarity_of_strategies,
                                        .context = &context};
    enum status st = selection_ranks(PARENTS - 1, scores, ranks, err);
    return st ? st : selection_choose(&selection, 2, chosen, &count, err);
}

static enum status open_references(void *arg, struct error *err) {
    (void)arg;
    size_t n;
    const struct reference *list = reference_list(&n);
    enum status st = ST_OK;
    for (size_t i = 0; i < n && !st; i++) {
        struct searcher searcher;
        st = list[i].open(3, 1, &searcher, err);
        if (!st)
            searcher.close(searcher.state);
    }
    return st;
}

/* One trial, two predicted points. */
static enum status propose_by_bayes(void *arg, struct error *err) {
    const struct scene *s = arg;
    struct rng rng;
    struct predictor predictor;
    const struct starts starts = {0};
    const struct tried tried = {.strategy = &s->strategies[0], .us = 1000};
    const struct search_context context = {.space = &s->space, .predictor = &predictor, .starts = &starts};
    struct pool pool = {.context = &context,
                        .space = &s->space,
                        .predictor = &predictor,
                        .most_work = INFINITY,
                        .n_tried = 1,
                        .tried = &tried,
                        .proposer = PROPOSER_bayes};
    struct list *list = &pool.lists[PROPOSER_bayes];
    rng_seed(&rng, 3);
    enum status st = predictor_init(&predictor, &s->model, &s->cluster, err);
    if (st)
        return st;
    st = propose_bayes(&pool, PROPOSER_CANDIDATES + 2, &rng, err);
    while (list->n)
        strategy_release(&list->items[--list->n].strategy);
    predictor_release(&predictor);
    return st;
}

/* With too few trials for the process, and with enough. */
static enum status advise(void *arg, struct error *err) {
    enum { N = 8 };
    const size_t *tried = arg;
    struct features features[N] = {0};
    const struct features *pointers[N];
    struct advisor_observation observed[N];
    size_t order[2];
    const struct advisor_options o = advisor_default_options();
    for (size_t i = 0; i < N; i++) {
        features[i].global[FEATURE_GLOBAL_log2_message_bytes] = (double)i;
        features[i].timeline_us = 1000 + 10 * (double)i;
        pointers[i] = &features[i];
        observed[i] = (struct advisor_observation){&features[i], 1100 + 10 * (double)i};
    }
    return advisor_rank(&o, *tried, observed, N, pointers, 2, order, NULL, NULL, err);
}

static void advice_survives_every_failed_allocation(void **state) {
    (void)state;
    size_t few = ADVISOR_LEAST - 1, enough = ADVISOR_LEAST;
    assert_int_equal(torture(advise, &few), 2);
    assert_true(torture(advise, &enough) > 3);
}

static void knobs_survive_every_failed_allocation(void **state) {
    (void)state;
    struct scene s;
    open_scene(&s);
    assert_true(torture(set_knobs, &s) >= 6);
    close_scene(&s);
}

static void breeding_survives_every_failed_allocation(void **state) {
    (void)state;
    struct scene s;
    open_scene(&s);
    assert_true(torture(breed, &s) >= 20);
    close_scene(&s);
}

static void bayesian_optimization_survives_every_failed_allocation(void **state) {
    (void)state;
    struct scene s;
    open_scene(&s);
    assert_true(torture(propose_by_bayes, &s) >= 100);
    close_scene(&s);
}

static void a_selection_survives_every_failed_allocation(void **state) {
    (void)state;
    struct scene s;
    open_scene(&s);
    assert_true(torture(select_some, &s) >= 6);
    close_scene(&s);
}

static void the_reference_searches_survive_every_failed_allocation(void **state) {
    (void)state;
    assert_int_equal(torture(open_references, NULL), 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(advice_survives_every_failed_allocation),
        cmocka_unit_test(knobs_survive_every_failed_allocation),
        cmocka_unit_test(breeding_survives_every_failed_allocation),
        cmocka_unit_test(bayesian_optimization_survives_every_failed_allocation),
        cmocka_unit_test(a_selection_survives_every_failed_allocation),
        cmocka_unit_test(the_reference_searches_survive_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
