/* A session that hands out several trials at once. */
#define WORLD_NODES "2"
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/dataset/place.h"
#include "tests/unit/tuner/simulated_world.h"
#include "tuner/session/session.h"

static struct tune_options options_of(uint64_t trials) {
    struct tune_options o = tune_default_options();
    o.trials = trials;
    o.kept.trial_us = 1e6;
    o.evaluations = 40;
    o.kept.launch.runner = "simulated";
    return o;
}

static struct session *begin(struct world *w, const struct tune_options *options, const char *name,
                             struct store **store) {
    struct error err;
    struct session *s;
    char file[4096];
    snprintf(file, sizeof file, "%s", dataset_path("%s.db", name));
    assert_ok(store_open(file, STORE_READ_WRITE, store, &err));
    assert_ok(session_prepare(&w->model, &w->cluster, options, &s, &err));
    assert_ok(session_begin(s, *store, &err));
    return s;
}

static void record(struct world *w, const struct session *s, struct store *store, const struct suggestion *trial,
                   const struct tune_outcome *outcome) {
    struct error err;
    int64_t row;
    const struct trial_start start = {.model = &w->model,
                                      .cluster = &w->cluster,
                                      .strategy = trial->order.strategy,
                                      .session = session_id(s),
                                      .proposer = trial->proposer,
                                      .runner = "simulated",
                                      .round = trial->round,
                                      .predicted_us = trial->predicted_us};
    assert_ok(trial_record_start(store, &start, &row, &err));
    assert_ok(trial_record_end(store, row, outcome, &err));
}

static void report(struct world *w, struct session *s, struct store *store, const struct suggestion *trial) {
    struct error err;
    struct tune_outcome outcome;
    assert_ok(simulated_run(w, &trial->order, &outcome, &err));
    record(w, s, store, trial, &outcome);
    assert_ok(session_report(s, trial, &outcome, &err));
}

/* Hold `most` at a time and end them in a random order; what the session handed out in all. */
static size_t play(struct world *w, struct session *s, struct store *store, size_t most, struct rng *rng,
                   struct suggestion *given) {
    struct suggestion held[8];
    size_t n_held = 0, n = 0;
    enum session_step step = SESSION_TRIAL;
    while (step != SESSION_OVER) {
        struct error err;
        assert_ok(session_suggest(s, &step, &held[n_held], &err));
        if (step == SESSION_TRIAL)
            given[n++] = held[n_held++];
        if (step == SESSION_WAIT)
            assert_true(n_held > 0);
        if (step == SESSION_OVER)
            assert_int_equal(n_held, 0);
        if (n_held && (n_held == most || step == SESSION_WAIT)) {
            size_t k = rng_below(rng, n_held);
            report(w, s, store, &held[k]);
            held[k] = held[--n_held];
        }
    }
    return n;
}

static void several_at_a_time_are_all_different_and_keep_to_the_budget(void **state) {
    struct world *w = *state;
    for (size_t most = 1; most <= 4; most++) {
        struct error err;
        struct rng rng;
        struct store *store;
        struct outcome t;
        struct suggestion given[64];
        struct tune_options o = options_of(24);
        char name[32];
        snprintf(name, sizeof name, "several%zu", most);
        struct session *s = begin(w, &o, name, &store);
        rng_split(&rng, test_seed(), most);
        size_t n = play(w, s, store, most, &rng, given);
        assert_int_equal(n, 24);
        size_t searched = 0;
        for (size_t i = 0; i < n; i++) {
            if (given[i].round)
                continue;
            assert_int_equal(searched, i); /* no trial of the search after one of the final */
            searched++;
            for (size_t k = 0; k < i; k++)
                assert_string_not_equal(given[i].order.strategy->id.hex, given[k].order.strategy->id.hex);
        }
        assert_ok(session_answer(s, store, &t, &err));
        assert_int_equal(t.ended, 24);
        assert_true(t.rows[t.best].final);
        assert_true(t.speedup >= 1);
        outcome_release(&t);
        session_close(s);
        store_close(store);
    }
}

static void imported_second_trial_of_a_strategy_does_not_end_the_search(void **state) {
    struct world *w = *state;
    struct error err;
    struct store *store;
    struct suggestion first, trial;
    struct outcome t;
    struct tune_options o = options_of(24);
    enum session_step step;
    const double times[] = {1, 1, 1};
    struct session *s = begin(w, &o, "imported", &store);
    assert_ok(session_suggest(s, &step, &first, &err));
    report(w, s, store, &first);
    const struct record again = {.strategy = first.order.strategy->id.hex,
                                 .state = RECORD_COMPLETE,
                                 .proposer = "user",
                                 .n_iterations = 3,
                                 .iterations_us = times};
    assert_ok(session_import(s, store, &again, &err));
    record(w, s, store, &first, &(struct tune_outcome){.state = RECORD_COMPLETE, .n = 3, .iterations_us = times});
    assert_ok(session_suggest(s, &step, &trial, &err));
    assert_int_equal(step, SESSION_TRIAL);
    assert_int_equal(trial.round, 0);
    assert_string_not_equal(trial.order.strategy->id.hex, first.order.strategy->id.hex);
    report(w, s, store, &trial);
    assert_ok(session_answer(s, store, &t, &err));
    for (size_t i = 0; i < t.n_rows; i++)
        assert_false(t.rows[i].final);
    outcome_release(&t);
    session_close(s);
    store_close(store);
}

static void lost_trial_costs_no_budget_and_is_not_suggested_again(void **state) {
    struct world *w = *state;
    struct error err;
    struct store *store;
    struct suggestion trial;
    struct tune_options o = options_of(12);
    const struct tune_outcome lost = {.state = RECORD_CANCELLED, .reason = TRIAL_LOST "nobody came back"};
    struct session *s = begin(w, &o, "lost", &store);
    enum session_step step;
    struct id gone;
    assert_ok(session_suggest(s, &step, &trial, &err));
    gone = trial.order.strategy->id;
    assert_ok(session_report(s, &trial, &lost, &err));
    uint64_t ended = 0;
    for (assert_ok(session_suggest(s, &step, &trial, &err)); step == SESSION_TRIAL;
         assert_ok(session_suggest(s, &step, &trial, &err))) {
        assert_string_not_equal(trial.order.strategy->id.hex, gone.hex);
        report(w, s, store, &trial);
        ended++;
    }
    assert_int_equal(step, SESSION_OVER);
    assert_int_equal(ended, 12);
    session_close(s);
    store_close(store);
}

/* What ran when the process died is taken up again from its records, and the session ends with its budget spent. */
static void running_trials_are_taken_up_by_a_resumed_session(void **state) {
    struct world *w = *state;
    struct error err;
    struct store *store;
    struct arena arena = {0};
    struct suggestion trial, left[3];
    struct tune_options o = options_of(15);
    struct session *s = begin(w, &o, "left", &store);
    enum session_step step;
    char id[64];
    struct record *records;
    size_t n, n_left = 0;
    for (int i = 0; i < 6; i++) {
        int64_t row;
        struct tune_outcome outcome;
        assert_ok(session_suggest(s, &step, &trial, &err));
        assert_int_equal(step, SESSION_TRIAL);
        const struct trial_start start = {.model = &w->model,
                                          .cluster = &w->cluster,
                                          .strategy = trial.order.strategy,
                                          .session = session_id(s),
                                          .proposer = trial.proposer,
                                          .runner = "simulated",
                                          .predicted_us = trial.predicted_us};
        assert_ok(trial_record_start(store, &start, &row, &err));
        if (i % 2)
            continue;
        assert_ok(simulated_run(w, &trial.order, &outcome, &err));
        assert_ok(trial_record_end(store, row, &outcome, &err));
        assert_ok(session_report(s, &trial, &outcome, &err));
    }
    snprintf(id, sizeof id, "%s", session_id(s));
    session_close(s);

    assert_ok(session_prepare(&w->model, &w->cluster, &o, &s, &err));
    assert_ok(session_resume(s, store, id, &err));
    assert_ok(store_trials(store, id, &arena, &n, &records, &err));
    assert_int_equal(n, 6);
    for (size_t i = 0; i < n; i++)
        if (records[i].state == RECORD_RUNNING)
            assert_ok(session_take_up(s, store, &records[i], &left[n_left++], &err));
    assert_int_equal(n_left, 3);
    for (size_t i = 0; i < n_left; i++)
        report(w, s, store, &left[i]);
    uint64_t more = 0;
    for (assert_ok(session_suggest(s, &step, &trial, &err)); step == SESSION_TRIAL;
         assert_ok(session_suggest(s, &step, &trial, &err)), more++)
        report(w, s, store, &trial);
    assert_int_equal(more, 15 - 6);
    session_close(s);
    arena_release(&arena);
    store_close(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(several_at_a_time_are_all_different_and_keep_to_the_budget, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(imported_second_trial_of_a_strategy_does_not_end_the_search, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(lost_trial_costs_no_budget_and_is_not_suggested_again, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(running_trials_are_taken_up_by_a_resumed_session, world_set_up,
                                        world_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
