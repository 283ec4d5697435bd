/* Bayesian optimization in a session: its trials are credited to it, and a resumed session goes on with it as it would
 * have. */
#define WORLD_NODES "2"
#include <stdio.h>
#include <string.h>

#include "tests/support/dataset/place.h"
#include "tests/unit/tuner/simulated_world.h"
#include "tuner/session/tune.h"

enum { TRIALS = 32 };

static enum status tune(struct world *w, const char *file, const char *resume, char id[64], struct outcome *out,
                        struct error *err) {
    struct store *store;
    struct arena arena = {0};
    struct stored_session *sessions;
    size_t n;
    const struct tune_runner runner = {"simulated", w, simulated_run};
    struct tune_options o = tune_default_options();
    o.trials = TRIALS;
    o.kept.trial_us = 1e6;
    o.evaluations = 40;
    o.seed = 2; /* with this one some trials are of its making */
    enum status st = store_open(file, STORE_READ_WRITE, &store, err);
    if (st)
        return st;
    st = tune_run(store, &w->model, &w->cluster, &runner, &o, resume, out, err);
    assert_int_equal(store_session_list(store, 0, 0, &arena, &n, &sessions, NULL), ST_OK);
    assert_int_equal(n, 1);
    snprintf(id, 64, "%s", sessions[0].id);
    arena_release(&arena);
    store_close(store);
    return st;
}

/* Strategies of the search are named after who proposed them. */
static size_t rows_by_bayes(const struct outcome *t) {
    size_t n = 0;
    for (size_t i = 0; i < t->n_rows; i++)
        n += !strncmp(t->rows[i].name, "bayes-", 6);
    return n;
}

static void trials_that_it_proposed_are_credited_to_it(void **state) {
    struct world *w = *state;
    struct error err;
    struct outcome t;
    char file[4096], id[64];
    snprintf(file, sizeof file, "%s", dataset_path("credited.db"));
    assert_ok(tune(w, file, NULL, id, &t, &err));
    assert_true(t.proposers[PROPOSER_bayes].tried > 0);
    assert_int_equal(t.proposers[PROPOSER_bayes].tried, rows_by_bayes(&t));
    assert_true(t.proposers[PROPOSER_bayes].share >= PROPOSER_LEAST);
    outcome_release(&t);
}

static void resumed_session_goes_on_with_it_as_it_would_have(void **state) {
    struct world *w = *state;
    struct error err;
    struct outcome whole, resumed;
    char file[4096], id[64];
    snprintf(file, sizeof file, "%s", dataset_path("whole.db"));
    assert_ok(tune(w, file, NULL, id, &whole, &err));
    assert_true(rows_by_bayes(&whole) > 0);
    for (uint64_t stop = 10; stop < TRIALS; stop += 10) {
        snprintf(file, sizeof file, "%s", dataset_path("stop%lu.db", (unsigned long)stop));
        w->runs = 0;
        w->die_after = stop;
        assert_fails(tune(w, file, NULL, id, &resumed, &err), ST_CANCELLED, "--resume");
        w->die_after = 0;
        assert_ok(tune(w, file, id, id, &resumed, &err));
        assert_int_equal(resumed.n_rows, whole.n_rows);
        for (size_t i = 0; i < whole.n_rows; i++)
            assert_string_equal(resumed.rows[i].strategy, whole.rows[i].strategy);
        assert_int_equal(rows_by_bayes(&resumed), rows_by_bayes(&whole));
        assert_int_equal(resumed.proposers[PROPOSER_bayes].wins, whole.proposers[PROPOSER_bayes].wins);
        outcome_release(&resumed);
    }
    outcome_release(&whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(trials_that_it_proposed_are_credited_to_it, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(resumed_session_goes_on_with_it_as_it_would_have, world_set_up,
                                        world_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
