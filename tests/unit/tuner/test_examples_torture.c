/* Every allocation fails once while examples are loaded, a ranker is fitted to them, kept, found and read back. */
#include "tests/support/torture.h"
#include "tests/unit/tuner/measured_domains.h"
#include "tuner/learn/ranker_fit.h"
#include "tuner/learn/rankers.h"

struct life {
    struct measured_domain domain;
    struct store *store;
};

static enum status load_fit_and_keep(void *arg, struct error *err) {
    struct life *life = arg;
    struct examples e = {.n = 0};
    struct ranker_fit fit = {.ranker = NULL};
    struct ranker_fit_options options = {.training = ranker_default_options(RANKER_linear), .held_out = 0.3};
    options.training.epochs = 1;
    enum status st = examples_load(life->store, &(struct query){0}, &e, NULL, err);
    if (!st)
        st = ranker_fit_run(&e, &options, &fit, err);
    if (!st)
        st = rankers_put(life->store, "tortured", fit.ranker, &fit.origin, NULL, err);
    ranker_fit_release(&fit);
    examples_release(&e);
    return st;
}

static enum status find_nearest(void *arg, struct error *err) {
    struct life *life = arg;
    struct stored_ranker found = {.ranker = NULL};
    const struct domain here = {.model = life->domain.model, .cluster = life->domain.cluster};
    enum status st = rankers_nearest(life->store, NULL, &here, &found, NULL, err);
    stored_ranker_release(&found);
    return st;
}

static void examples_and_rankers_survive_every_failed_allocation(void **state) {
    (void)state;
    struct life life;
    struct rng rng;
    make_domain(&life.domain, "small", 64, "two", 2, 1);
    life.store = open_dataset("torture.db");
    rng_seed(&rng, test_seed());
    record_random(life.store, &life.domain, 3, &rng);
    assert_true(torture(load_fit_and_keep, &life) > 100);
    assert_true(torture(find_nearest, &life) > 100);
    store_close(life.store);
    free_domain(&life.domain);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(examples_and_rankers_survive_every_failed_allocation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
