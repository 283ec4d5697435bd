/* Rankers fitted on made-up measurements, kept, and read back. */
#include <stdlib.h>

#include "base/version.h"
#include "tests/support/dataset/put.h"
#include "tests/unit/tuner/measured_domains.h"
#include "tuner/learn/ranker_fit.h"
#include "tuner/learn/rankers.h"

struct world {
    struct measured_domain small, large;
    struct store *store;
    struct examples examples;
};

enum { TRIALS = 30 };

static int set_up(void **state) {
    static struct world w;
    struct error err = {0};
    struct rng rng;
    memset(&w, 0, sizeof w);
    rng_seed(&rng, test_seed());
    make_domain(&w.small, "small", 64, "four", 4, 1);
    make_domain(&w.large, "large", 4096, "eight", 8, 10);
    w.store = open_dataset("rankers.db");
    record_random(w.store, &w.small, TRIALS, &rng);
    record_random(w.store, &w.large, TRIALS, &rng);
    assert_ok(examples_load(w.store, &(struct query){0}, &w.examples, NULL, &err));
    *state = &w;
    return 0;
}

static int tear_down(void **state) {
    struct world *w = *state;
    examples_release(&w->examples);
    store_close(w->store);
    free_domain(&w->small);
    free_domain(&w->large);
    return 0;
}

static struct ranker_fit_options options_of(enum ranker_kind kind, double held_out) {
    struct ranker_fit_options o = {.training = ranker_default_options(kind), .held_out = held_out};
    o.training.epochs = 20;
    return o;
}

static struct ranker_fit must_fit(const struct examples *examples, const struct ranker_fit_options *options) {
    struct error err = {0};
    struct ranker_fit fit;
    assert_ok(ranker_fit_run(examples, options, &fit, &err));
    return fit;
}

static void assert_same_ranker(const struct ranker *a, const struct ranker *b) {
    char *x = ranker_write(a), *y = ranker_write(b);
    assert_non_null(x);
    assert_non_null(y);
    assert_string_equal(x, y);
    free(x);
    free(y);
}

static void a_ranker_of_each_kind_comes_back_bit_for_bit(void **state) {
    struct world *w = *state;
    struct error err = {0};
    for (int kind = 0; kind < RANKER_KIND_COUNT; kind++) {
        const struct ranker_fit_options options = options_of((enum ranker_kind)kind, 0.25);
        struct ranker_fit fit = must_fit(&w->examples, &options);
        struct stored_ranker stored;
        struct id id;
        assert_ok(rankers_put(w->store, ranker_kind_name((enum ranker_kind)kind), fit.ranker, &fit.origin, &id, &err));
        assert_ok(rankers_get(w->store, NULL, id.hex, &stored, &err));
        assert_same_ranker(fit.ranker, stored.ranker);
        for (size_t i = 0; i < w->examples.n; i++) {
            double a, b;
            assert_ok(ranker_score(fit.ranker, &w->examples.features[i], &a, &err));
            assert_ok(ranker_score(stored.ranker, &w->examples.features[i], &b, &err));
            assert_memory_equal(&a, &b, sizeof a);
        }
        stored_ranker_release(&stored);
        ranker_fit_release(&fit);
    }
}

static void the_origin_comes_back_with_all_it_says(void **state) {
    struct world *w = *state;
    struct error err = {0};
    const struct ranker_fit_options options = options_of(RANKER_linear, 0.2);
    struct ranker_fit fit = must_fit(&w->examples, &options);
    struct stored_ranker stored;
    assert_ok(rankers_put(w->store, "origin", fit.ranker, &fit.origin, NULL, &err));
    assert_ok(rankers_get(w->store, NULL, "origin", &stored, &err));
    const struct ranker_origin *a = &fit.origin, *b = &stored.origin;
    assert_string_equal(stored.name, "origin");
    assert_string_equal(b->version, SYNCOPATE_VERSION);
    assert_null(b->from);
    assert_int_equal(b->n_domains, 2);
    assert_int_equal(b->n_trials, a->n_trials);
    assert_string_equal(b->trials.hex, a->trials.hex);
    assert_int_equal(b->n_held_out, a->n_held_out);
    assert_close(b->held_out_accuracy, a->held_out_accuracy, 0);
    assert_close(b->timeline_accuracy, a->timeline_accuracy, 0);
    for (size_t d = 0; d < 2; d++) {
        assert_string_equal(b->domains[d].model, w->examples.domains[d].model.id.hex);
        assert_string_equal(b->domains[d].cluster_name, w->examples.domains[d].cluster.name);
        assert_string_equal(b->domains[d].runner, "simulated");
        assert_int_equal(b->domains[d].strategies, fit.domains[d].trained);
        assert_int_equal(b->domains[d].trials, a->domains[d].trials);
    }
    stored_ranker_release(&stored);
    ranker_fit_release(&fit);
}

static void the_same_fit_is_the_same_object_under_its_first_name(void **state) {
    struct world *w = *state;
    struct error err = {0};
    const struct ranker_fit_options options = options_of(RANKER_trees, 0);
    struct ranker_fit a = must_fit(&w->examples, &options), b = must_fit(&w->examples, &options);
    struct stored_ranker stored;
    struct id first, second;
    assert_ok(rankers_put(w->store, "first name", a.ranker, &a.origin, &first, &err));
    assert_ok(rankers_put(w->store, "second name", b.ranker, &b.origin, &second, &err));
    assert_string_equal(first.hex, second.hex);
    assert_ok(rankers_get(w->store, NULL, second.hex, &stored, &err));
    assert_string_equal(stored.name, "first name");
    assert_fails(rankers_get(w->store, NULL, "second name", &stored, &err), ST_NOT_FOUND, "second name");
    stored_ranker_release(&stored);
    ranker_fit_release(&a);
    ranker_fit_release(&b);
}

static void trials_are_hashed_whatever_the_order_of_their_examples(void **state) {
    struct world *w = *state;
    struct error err = {0};
    struct arena arena = {0};
    struct ranker_origin forward, backward, fewer;
    const size_t n = w->examples.n;
    uint32_t *up = arena_alloc(&arena, n, sizeof *up), *down = arena_alloc(&arena, n, sizeof *down);
    for (size_t i = 0; i < n; i++) {
        up[i] = (uint32_t)i;
        down[n - 1 - i] = (uint32_t)i;
    }
    assert_ok(ranker_origin_of(&w->examples, n, up, &arena, &forward, &err));
    assert_ok(ranker_origin_of(&w->examples, n, down, &arena, &backward, &err));
    assert_ok(ranker_origin_of(&w->examples, n - 1, up, &arena, &fewer, &err));
    assert_int_equal(forward.n_trials, 2 * TRIALS);
    assert_string_equal(forward.trials.hex, backward.trials.hex);
    assert_string_not_equal(forward.trials.hex, fewer.trials.hex);
    arena_release(&arena);
}

/* Is the ranker the same when example i took `factor` times as long? */
static bool same_without(struct examples *e, const struct ranker_fit_options *options, const struct ranker *before,
                         size_t i, double factor) {
    const double us = e->examples[i].us;
    e->examples[i].us = us * factor;
    struct ranker_fit after = must_fit(e, options);
    e->examples[i].us = us;
    char *a = ranker_write(before), *b = ranker_write(after.ranker);
    const bool same = a && b && !strcmp(a, b);
    free(a);
    free(b);
    ranker_fit_release(&after);
    return same;
}

/* The ranker depends on every example but those: one that becomes the slowest or the fastest changes it. */
static void held_out_examples_do_not_train(void **state) {
    struct world *w = *state;
    struct ranker_fit_options options = options_of(RANKER_linear, 0.3);
    options.training.validation = 0;
    struct ranker_fit before = must_fit(&w->examples, &options);
    size_t without = 0;
    for (size_t i = 0; i < w->examples.n; i++)
        without += same_without(&w->examples, &options, before.ranker, i, 20) &&
                   same_without(&w->examples, &options, before.ranker, i, 0.05);
    assert_in_range(before.all.held_out, TRIALS / 2, TRIALS);
    assert_int_equal(before.all.trained, w->examples.n - before.all.held_out);
    assert_int_equal(without, before.all.held_out);
    ranker_fit_release(&before);
}

static void what_is_held_out_is_ranked_better_than_by_chance(void **state) {
    struct world *w = *state;
    const struct ranker_fit_options options = {.training = ranker_default_options(RANKER_linear), .held_out = 0.3};
    struct ranker_fit fit = must_fit(&w->examples, &options);
    assert_true(fit.all.ranker_accuracy > 0.75);
    for (size_t d = 0; d < w->examples.n_domains; d++)
        assert_true(fit.domains[d].ranker_accuracy > 0.5);
    ranker_fit_release(&fit);
}

static void too_few_strategies_say_what_to_do(void **state) {
    struct world *w = *state;
    struct error err = {0};
    struct store *store = open_dataset("few.db");
    struct rng rng;
    struct examples e;
    struct ranker_fit fit;
    struct ranker_fit_options options = options_of(RANKER_linear, 0);
    rng_seed(&rng, test_seed());
    record_random(store, &w->small, 1, &rng);
    record_random(store, &w->large, 1, &rng);
    assert_ok(examples_load(store, &(struct query){0}, &e, NULL, &err));
    assert_fails(ranker_fit_run(&e, &options, &fit, &err), ST_INVALID, "measure more");
    examples_release(&e);
    record_random(store, &w->small, 1, &rng);
    assert_ok(examples_load(store, &(struct query){0}, &e, NULL, &err));
    options.held_out = 0.5;
    assert_fails(ranker_fit_run(&e, &options, &fit, &err), ST_INVALID, "hold out");
    examples_release(&e);
    store_close(store);
}

static void the_nearest_ranker_is_that_of_the_same_domain_and_the_newest_of_several(void **state) {
    struct world *w = *state;
    struct error err = {0};
    struct store *store = open_dataset("nearest.db");
    struct rng rng;
    struct stored_ranker found;
    double distance;
    const struct domain small = {.model = w->small.model, .cluster = w->small.cluster};
    const struct domain large = {.model = w->large.model, .cluster = w->large.cluster};
    rng_seed(&rng, test_seed());
    record_random(store, &w->small, 12, &rng);
    record_random(store, &w->large, 12, &rng);
    assert_fails(rankers_nearest(store, NULL, &small, &found, NULL, &err), ST_NOT_FOUND, "no ranker");
    const char *const models[] = {"small", "large", "small"}, *const names[] = {"older", "other", "newer"};
    for (size_t i = 0; i < 3; i++) {
        struct examples e;
        struct ranker_fit_options options = options_of(RANKER_linear, 0);
        options.training.seed = i;
        assert_ok(examples_load(store, &(struct query){.model = models[i]}, &e, NULL, &err));
        struct ranker_fit fit = must_fit(&e, &options);
        assert_ok(rankers_put(store, names[i], fit.ranker, &fit.origin, NULL, &err));
        ranker_fit_release(&fit);
        examples_release(&e);
    }
    assert_ok(rankers_nearest(store, NULL, &small, &found, &distance, &err));
    assert_string_equal(found.name, "newer");
    assert_close(distance, 0, 0);
    stored_ranker_release(&found);
    assert_ok(rankers_nearest(store, NULL, &large, &found, NULL, &err));
    assert_string_equal(found.name, "other");
    stored_ranker_release(&found);
    store_close(store);
}

static void rankers_of_another_version_are_listed_and_not_used(void **state) {
    (void)state;
    struct error err = {0};
    struct store *store = open_dataset("versions.db");
    struct stored_rankers list;
    struct stored_ranker found;
    struct measured_domain d;
    make_domain(&d, "small", 64, "four", 4, 1);
    const struct domain here = {.model = d.model, .cluster = d.cluster};
    assert_ok(put_object(store, STORE_RANKER, "future", "{\"schema\":\"syncopate.stored-ranker/9\"}", NULL, &err));
    assert_ok(rankers_list(store, NULL, &list, &err));
    assert_int_equal(list.n, 1);
    assert_string_equal(list.items[0].name, "future");
    assert_null(list.items[0].ranker);
    stored_rankers_release(&list);
    assert_fails(rankers_get(store, NULL, "future", &found, &err), ST_INVALID, "stored-ranker/9");
    assert_fails(rankers_nearest(store, NULL, &here, &found, NULL, &err), ST_NOT_FOUND, "this version");
    free_domain(&d);
    store_close(store);
}

static void a_stored_ranker_of_each_kind_is_trained_on_and_named_as_the_origin(void **state) {
    struct world *w = *state;
    struct error err = {0};
    for (int kind = 0; kind < RANKER_KIND_COUNT; kind++) {
        struct ranker_fit_options options = options_of((enum ranker_kind)kind, 0);
        options.training.epochs = 5;
        struct ranker_fit base = must_fit(&w->examples, &options);
        struct stored_ranker from, tuned;
        struct id id;
        assert_ok(rankers_put(w->store, "base", base.ranker, &base.origin, &id, &err));
        assert_ok(rankers_get(w->store, NULL, id.hex, &from, &err));
        options.from = &from;
        struct ranker_fit fit = must_fit(&w->examples, &options);
        assert_ok(rankers_put(w->store, "tuned", fit.ranker, &fit.origin, &id, &err));
        assert_ok(rankers_get(w->store, NULL, id.hex, &tuned, &err));
        assert_string_equal(tuned.origin.from, from.id.hex);
        assert_string_not_equal(tuned.id.hex, from.id.hex);
        assert_int_equal(ranker_kind_of(tuned.ranker), kind);
        stored_ranker_release(&tuned);
        ranker_fit_release(&fit);
        stored_ranker_release(&from);
        ranker_fit_release(&base);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ranker_of_each_kind_comes_back_bit_for_bit),
        cmocka_unit_test(the_origin_comes_back_with_all_it_says),
        cmocka_unit_test(the_same_fit_is_the_same_object_under_its_first_name),
        cmocka_unit_test(trials_are_hashed_whatever_the_order_of_their_examples),
        cmocka_unit_test(held_out_examples_do_not_train),
        cmocka_unit_test(what_is_held_out_is_ranked_better_than_by_chance),
        cmocka_unit_test(too_few_strategies_say_what_to_do),
        cmocka_unit_test(the_nearest_ranker_is_that_of_the_same_domain_and_the_newest_of_several),
        cmocka_unit_test(rankers_of_another_version_are_listed_and_not_used),
        cmocka_unit_test(a_stored_ranker_of_each_kind_is_trained_on_and_named_as_the_origin),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
