/* Examples from datasets whose trials the test has put there itself. */
#include "tests/support/dataset/put.h"
#include "tests/unit/tuner/measured_domains.h"
#include "tuner/learn/examples.h"

struct world {
    struct measured_domain small, large;
    struct rng rng;
};

static int set_up(void **state) {
    static struct world w;
    memset(&w, 0, sizeof w);
    make_domain(&w.small, "small", 64, "four", 4, 1);
    make_domain(&w.large, "large", 4096, "eight", 8, 10);
    rng_seed(&w.rng, test_seed());
    *state = &w;
    return 0;
}

static int tear_down(void **state) {
    struct world *w = *state;
    free_domain(&w->small);
    free_domain(&w->large);
    return 0;
}

static void load(struct store *store, const struct query *query, struct examples *out, size_t *skipped) {
    struct error err = {0};
    assert_ok(examples_load(store, query, out, skipped, &err));
}

static void trials_of_one_strategy_become_one_example_with_the_median_of_their_medians(void **state) {
    struct world *w = *state;
    struct store *store = open_dataset("repeated.db");
    struct strategy a, b;
    struct examples e;
    size_t skipped = 7;
    draw_strategy(&w->small, &w->rng, &a);
    draw_strategy(&w->small, &w->rng, &b);
    record_trial(store, &w->small, &a, "first", "simulated", 30000);
    record_trial(store, &w->small, &b, "other", "simulated", 50000);
    record_trial(store, &w->small, &a, "second", "simulated", 90000);
    record_trial(store, &w->small, &a, "third", "simulated", 40000);
    load(store, &(struct query){0}, &e, &skipped);
    assert_int_equal(skipped, 0);
    assert_int_equal(e.n, 2);
    assert_int_equal(e.n_domains, 1);
    assert_string_equal(e.strategies[0].id.hex, a.id.hex);
    assert_close(e.examples[0].us, 40000, 0);
    assert_int_equal(e.trials[0].n, 3);
    assert_string_equal(e.proposers[0], "first");
    assert_string_equal(e.strategies[1].id.hex, b.id.hex);
    assert_close(e.examples[1].us, 50000, 0);
    assert_int_equal(e.trials[1].n, 1);
    assert_string_not_equal(e.trials[0].uids[0], e.trials[0].uids[1]);
    examples_release(&e);
    strategy_release(&a);
    strategy_release(&b);
    store_close(store);
}

static void trials_in_weather_are_no_examples(void **state) {
    struct world *w = *state;
    struct error err = {0};
    struct store *store = open_dataset("weather.db");
    struct strategy a;
    struct examples e;
    size_t skipped;
    struct measured_domain varies = w->small;
    cJSON *json = cluster_write(&w->small.cluster);
    cJSON_AddItemToObject(json, "variability", parse_text("{\"compute\":{\"share\":0.1,\"factor\":2}}"));
    assert_ok(cluster_read(json, "varies", &varies.cluster, &err));
    cJSON_Delete(json);
    draw_strategy(&w->small, &w->rng, &a);
    record_trial(store, &varies, &a, "p", "simulated", 5000);
    assert_fails(examples_load(store, &(struct query){0}, &e, NULL, &err), ST_NOT_FOUND, "rankers know no weather");
    record_trial(store, &w->small, &a, "p", "simulated", 1000);
    load(store, &(struct query){0}, &e, &skipped);
    assert_int_equal(e.n, 1);
    assert_int_equal(skipped, 1);
    assert_close(e.examples[0].us, 1000, 0);
    examples_release(&e);
    strategy_release(&a);
    cluster_release(&varies.cluster);
    store_close(store);
}

static void trials_that_did_not_complete_are_no_examples(void **state) {
    struct world *w = *state;
    struct error err = {0};
    struct store *store = open_dataset("failed.db");
    struct strategy a, b;
    struct examples e;
    static const enum record_state failed = RECORD_FAILED;
    draw_strategy(&w->small, &w->rng, &a);
    draw_strategy(&w->small, &w->rng, &b);
    assert_fails(examples_load(store, &(struct query){0}, &e, NULL, &err), ST_NOT_FOUND, "no complete trials");
    record_trial(store, &w->small, &a, "p", "simulated", NAN);
    assert_fails(examples_load(store, &(struct query){0}, &e, NULL, &err), ST_NOT_FOUND, "no complete trials");
    record_trial(store, &w->small, &b, "p", "simulated", 1000);
    load(store, &(struct query){.state = &failed}, &e, NULL);
    assert_int_equal(e.n, 1);
    assert_string_equal(e.strategies[0].id.hex, b.id.hex);
    examples_release(&e);
    assert_fails(examples_load(store, &(struct query){.model = "absent"}, &e, NULL, &err), ST_NOT_FOUND, "that model");
    strategy_release(&a);
    strategy_release(&b);
    store_close(store);
}

/* Interleaved on purpose: the order of the dataset is not that of the domains. */
static void examples_of_a_domain_lie_together_and_runners_are_domains_of_their_own(void **state) {
    struct world *w = *state;
    struct store *store = open_dataset("domains.db");
    struct examples e;
    struct strategy a;
    draw_strategy(&w->small, &w->rng, &a);
    record_random(store, &w->large, 3, &w->rng);
    record_trial(store, &w->small, &a, "p", "lab", 1000);
    record_random(store, &w->large, 4, &w->rng);
    record_trial(store, &w->small, &a, "p", "local", 2000);
    record_random(store, &w->small, 2, &w->rng);
    load(store, &(struct query){0}, &e, NULL);
    assert_int_equal(e.n_domains, 4);
    const char *const runners[] = {"simulated", "lab", "local", "simulated"};
    const char *const models[] = {"large", "small", "small", "small"};
    size_t first = 0;
    for (size_t d = 0; d < 4; d++) {
        assert_string_equal(e.domains[d].runner, runners[d]);
        assert_string_equal(e.domains[d].model.name, models[d]);
        assert_int_equal(e.domains[d].first, first);
        for (size_t i = first; i < first + e.domains[d].n; i++)
            assert_int_equal(e.examples[i].domain, d);
        first += e.domains[d].n;
    }
    assert_int_equal(first, e.n);
    assert_close(e.examples[e.domains[1].first].us, 1000, 0);
    assert_close(e.examples[e.domains[2].first].us, 2000, 0);
    examples_release(&e);
    load(store, &(struct query){.runner = "lab"}, &e, NULL);
    assert_int_equal(e.n, 1);
    examples_release(&e);
    strategy_release(&a);
    store_close(store);
}

static void a_featurizer_gives_the_features_of_the_examples(void **state) {
    struct world *w = *state;
    struct error err = {0};
    struct store *store = open_dataset("features.db");
    struct examples e;
    struct featurizer *f;
    record_random(store, &w->large, 12, &w->rng);
    load(store, &(struct query){0}, &e, NULL);
    assert_ok(featurizer_new(&w->large.model, &w->large.cluster, &f, &err));
    for (size_t i = 0; i < e.n; i++) {
        struct features again;
        assert_ok(featurizer_run(f, &e.strategies[i], &again, &err));
        assert_memory_equal(again.global, e.examples[i].features->global, sizeof again.global);
        assert_int_equal(again.n_shards, e.features[i].n_shards);
        assert_close(again.timeline_us, e.features[i].timeline_us, 0);
        features_release(&again);
    }
    featurizer_free(f);
    examples_release(&e);
    store_close(store);
}

/* The dataset says so of itself when it is checked; here the rest must still be of use. */
static void a_strategy_that_breaks_the_rules_of_today_is_left_out(void **state) {
    struct world *w = *state;
    struct error err = {0};
    struct store *store = open_dataset("old.db");
    struct id bad;
    int64_t trial;
    struct examples e;
    size_t skipped;
    const double us = 5;
    record_random(store, &w->small, 1, &w->rng);
    assert_ok(put_object(store, STORE_STRATEGY, "old", "{\"schema\":\"syncopate.strategy/0\"}", &bad, &err));
    const struct new_trial request = {.model = w->small.model.id.hex,
                                      .cluster = w->small.cluster.id.hex,
                                      .strategy = bad.hex,
                                      .proposer = "p",
                                      .runner = "simulated",
                                      .predicted_us = 1};
    const struct finished_trial result = {.mean_us = us,
                                          .median_us = us,
                                          .low_us = us,
                                          .high_us = us,
                                          .n_iterations = 1,
                                          .iterations_us = &us,
                                          .environment = "{}"};
    assert_ok(store_trial_begin(store, &request, &trial, &err));
    assert_ok(store_trial_finish(store, trial, &result, &err));
    load(store, &(struct query){0}, &e, &skipped);
    assert_int_equal(e.n, 1);
    assert_int_equal(skipped, 1);
    examples_release(&e);
    assert_fails(examples_load(store, &(struct query){.strategy = "old"}, &e, NULL, &err), ST_NOT_FOUND,
                 "none of 1 trials");
    store_close(store);
}

/* ---- domain_distance ---- */

static double distance(const struct measured_domain *a, const struct measured_domain *b) {
    const struct domain x = {.model = a->model, .cluster = a->cluster}, y = {.model = b->model, .cluster = b->cluster};
    return domain_distance(&x, &y);
}

static void distance_is_zero_to_itself_symmetric_and_grows_with_each_difference(void **state) {
    (void)state;
    struct measured_domain base, wider, faster, more, both;
    make_domain(&base, "base", 512, "c", 4, 1);
    make_domain(&wider, "wider", 4096, "c", 4, 1);
    make_domain(&faster, "base", 512, "faster", 4, 10);
    make_domain(&more, "base", 512, "more", 16, 1);
    make_domain(&both, "wider", 4096, "both", 16, 10);
    const struct measured_domain *const all[] = {&base, &wider, &faster, &more, &both};
    for (size_t i = 0; i < 5; i++)
        for (size_t j = 0; j < 5; j++) {
            const double d = distance(all[i], all[j]);
            assert_true(isfinite(d));
            assert_true(i == j ? d == 0 : d > 0);
            assert_close(d, distance(all[j], all[i]), 0);
        }
    assert_true(distance(&base, &both) > distance(&base, &more));
    struct measured_domain much_wider;
    make_domain(&much_wider, "wider", 65536, "c", 4, 1);
    assert_true(distance(&base, &much_wider) > distance(&base, &wider));
    free_domain(&much_wider);
    for (size_t i = 0; i < 5; i++)
        free_domain((struct measured_domain *)all[i]);
}

static void names_and_runners_do_not_count_in_a_distance(void **state) {
    (void)state;
    struct measured_domain a, b;
    make_domain(&a, "one", 512, "here", 4, 1);
    make_domain(&b, "two", 512, "there", 4, 1);
    assert_close(distance(&a, &b), 0, 0);
    free_domain(&a);
    free_domain(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trials_of_one_strategy_become_one_example_with_the_median_of_their_medians),
        cmocka_unit_test(trials_in_weather_are_no_examples),
        cmocka_unit_test(trials_that_did_not_complete_are_no_examples),
        cmocka_unit_test(examples_of_a_domain_lie_together_and_runners_are_domains_of_their_own),
        cmocka_unit_test(a_featurizer_gives_the_features_of_the_examples),
        cmocka_unit_test(a_strategy_that_breaks_the_rules_of_today_is_left_out),
        cmocka_unit_test(distance_is_zero_to_itself_symmetric_and_grows_with_each_difference),
        cmocka_unit_test(names_and_runners_do_not_count_in_a_distance),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
