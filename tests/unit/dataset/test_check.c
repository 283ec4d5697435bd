/* Every kind of wrong record that another program could leave in the file is found, and named. */
#include "dataset/check.h"
#include "tests/unit/dataset/fixture.h"

static char problems[2048];

static void note(void *context, const char *problem) {
    (void)context;
    strncat(problems, problem, sizeof problems - strlen(problems) - 2);
    strcat(problems, "\n");
}

/* A sound dataset of two trials in a session, after `sql` has been at it; the number of problems found. */
static uint64_t problems_after(const char *sql) {
    static int turn;
    struct error err = {0};
    struct check_report report;
    char name[32];
    snprintf(name, sizeof name, "check%d.db", turn++);
    const char *path = dataset_path("%s", name);
    struct store *store = must_open(path, STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    must_begin_session(store, &f, "s", 1);
    must_run_trial(store, &f, "s", 10);
    must_run_trial(store, &f, "s", 20);
    store_close(store);
    change_dataset(path, sql);
    problems[0] = '\0';
    store = must_open(path, STORE_READ_ONLY);
    assert_ok(check_run(store, note, NULL, &report, &err));
    assert_true(report.objects >= 4);
    store_close(store);
    return report.problems;
}

static void a_sound_file_has_no_problem(void **state) {
    (void)state;
    assert_int_equal(problems_after("SELECT 1"), 0);
}

static void a_changed_object_is_found_by_its_hash(void **state) {
    (void)state;
    assert_int_equal(problems_after("UPDATE models SET content = '{\"name\":\"tinny\"}'"), 1);
    assert_contains(problems, "model ");
    assert_contains(problems, "its content was changed");
}

/* Each is told, and read on. */
static void names_that_terminals_obey_are_found(void **state) {
    (void)state;
#define EVIL "x\033\007\r\n\302\233\342\200\256y"
    static const char *const changes[][2] = {
        {"UPDATE models SET name = '" EVIL "'", "model "},
        {"UPDATE trials SET proposer = '" EVIL "' WHERE id = 1", "trial 1: proposer: "},
        {"UPDATE trials SET runner = '" EVIL "' WHERE id = 1", "trial 1: runner: "},
        {"UPDATE trials SET client = '" EVIL "' WHERE id = 1", "trial 1: client: "},
        {"UPDATE trials SET uid = '" EVIL "' WHERE id = 1", "trial 1: uid: "},
        {"UPDATE trials SET queued = '" EVIL "' WHERE id = 1", "trial 1: its time is no time"},
        {"UPDATE sessions SET origin = '" EVIL "'", "origin: "},
        {"UPDATE sessions SET started = '" EVIL "'", "session s: its time is no time"},
        {"UPDATE sessions SET id = '../s'; UPDATE trials SET session = '../s'", "session ../s: id: "}};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        assert_true(problems_after(changes[i][0]) >= 1);
        assert_contains(problems, changes[i][1]);
    }
    assert_int_equal(problems_after("UPDATE trials SET reason = '" EVIL "' WHERE reason IS NOT NULL"), 0);
#undef EVIL
}

static void a_median_that_the_iterations_do_not_have_is_found(void **state) {
    (void)state;
    assert_int_equal(problems_after("UPDATE trials SET median_us = 10.5 WHERE id = 1"), 1);
    assert_contains(problems, "trial 1: states a median of 10.5");
    assert_int_equal(problems_after("UPDATE iterations SET time_us = 21.0 WHERE trial = 2 AND number = 2"), 1);
    assert_contains(problems, "trial 2");
}

static void missing_iterations_are_found(void **state) {
    (void)state;
    assert_int_equal(problems_after("DELETE FROM iterations WHERE trial = 1"), 1);
    assert_contains(problems, "trial 1: complete, but has no iterations");
    /* The median of the two left is another one, and the gap shows. */
    assert_int_equal(problems_after("DELETE FROM iterations WHERE trial = 2 AND number = 1"), 2);
    assert_contains(problems, "trial 2: iterations are missing");
}

static void iterations_of_a_trial_without_a_result_are_found(void **state) {
    (void)state;
    assert_int_equal(
        problems_after("UPDATE trials SET state = 'failed', reason = 'x', median_us = NULL, mean_us = NULL, "
                       "environment = NULL WHERE id = 1"),
        1);
    assert_contains(problems, "trial 1: failed, but has 3 iterations");
}

static void a_reference_to_nothing_is_found(void **state) {
    (void)state;
    assert_int_equal(problems_after("INSERT INTO iterations VALUES (77, 0, 1.0)"), 1);
    assert_contains(problems, "missing row of trials");
}

static void a_broken_rule_is_found(void **state) {
    (void)state;
    static const struct {
        const char *sql, *words;
    } cases[] = {
        {"UPDATE trials SET low_us = 50.0 WHERE id = 1", "trial 1: its interval does not hold its median"},
        {"UPDATE trials SET high_us = 19.0 WHERE id = 2", "trial 2: its interval does not hold its median"},
        {"UPDATE trials SET state = 'waiting' WHERE id = 1", "trial 1: its state is waiting"},
        {"UPDATE trials SET state = 'won' WHERE id = 1", "trial 1: its state is won"},
        {"UPDATE trials SET reason = 'why not' WHERE id = 1", "trial 1: its state is complete"},
        {"UPDATE trials SET predicted_us = -1.0 WHERE id = 1", "trial 1: a time that is not positive"},
        {"UPDATE iterations SET time_us = -1.0 WHERE trial = 1 AND number = 1", "an iteration whose time"},
        {"UPDATE trials SET number = NULL WHERE id = 1", "trial 1: a session and a number belong together"},
        {"UPDATE trials SET round = -1 WHERE id = 2", "trial 2: a session and a number belong together"},
        {"UPDATE sessions SET ended = 'now'", "session s: its state is running"},
        {"UPDATE sessions SET budget = '{'", "session s: budget: line 1"},
        {"INSERT INTO events VALUES (1, 's', 'x', '{', '2026')", "event 1: line 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(problems_after(cases[i].sql) >= 1);
        assert_contains(problems, cases[i].words);
    }
}

static void a_trial_of_another_model_than_its_session_is_found(void **state) {
    (void)state;
    assert_int_equal(problems_after("INSERT INTO models SELECT 9, id, name, content, created FROM clusters;"
                                    "UPDATE trials SET model = 9 WHERE id = 2"),
                     2); /* and a model that is a cluster */
    assert_contains(problems, "of another model or cluster than its session s");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_file_has_no_problem),
        cmocka_unit_test(a_changed_object_is_found_by_its_hash),
        cmocka_unit_test(names_that_terminals_obey_are_found),
        cmocka_unit_test(a_median_that_the_iterations_do_not_have_is_found),
        cmocka_unit_test(missing_iterations_are_found),
        cmocka_unit_test(iterations_of_a_trial_without_a_result_are_found),
        cmocka_unit_test(a_reference_to_nothing_is_found),
        cmocka_unit_test(a_broken_rule_is_found),
        cmocka_unit_test(a_trial_of_another_model_than_its_session_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
