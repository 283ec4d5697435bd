/* Every allocation of training, scoring, writing and reading fails once. XGBoost's and OpenBLAS's own are not ours. */
#include <stdlib.h>

#include "tests/support/torture.h"
#include "tests/unit/simulator/ranker_fixture.h"

struct life {
    const struct made *made;
    struct ranker_options options;
};

static enum status use(const struct ranker *ranker, const struct made *made, struct error *err) {
    double score;
    struct ranker *again;
    enum status status = ranker_score(ranker, &made->features[0], &score, err);
    if (status != ST_OK)
        return status;
    char *text = ranker_write(ranker);
    status = text ? ranker_read(text, &again, err) : error_no_memory(err);
    free(text);
    if (status == ST_OK)
        ranker_free(again);
    return status;
}

static enum status live(void *arg, struct error *err) {
    const struct life *life = arg;
    struct ranker *ranker, *tuned;
    enum status status = ranker_train(&life->options, life->made->n, life->made->examples, &ranker, NULL, err);
    if (status != ST_OK)
        return status;
    status = use(ranker, life->made, err);
    if (status == ST_OK)
        status = ranker_fine_tune(ranker, &life->options, life->made->n, life->made->examples, &tuned, NULL, err);
    if (status == ST_OK)
        ranker_free(tuned);
    ranker_free(ranker);
    return status;
}

static void torture_kind(enum ranker_kind kind) {
    struct made made = make_examples(6, 1, test_seed());
    struct life life = {&made, ranker_default_options(kind)};
    plant_correction(&made);
    life.options.epochs = 1;
    assert_true(torture(live, &life) > 30);
    free_examples(&made);
}

static void a_linear_ranker_survives_every_failed_allocation(void **state) {
    (void)state;
    torture_kind(RANKER_linear);
}

static void trees_survive_every_failed_allocation(void **state) {
    (void)state;
    torture_kind(RANKER_trees);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_linear_ranker_survives_every_failed_allocation),
        cmocka_unit_test(trees_survive_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
