/* A merge adds what is missing, once; what contradicts is refused whole. */

#include "dataset/check.h"
#include "dataset/merge.h"
#include "tests/unit/dataset/fixture.h"

static struct store *make(const char *path, struct fixture *f) {
    struct store *store = must_open(path, STORE_READ_WRITE);
    *f = put_fixture(store);
    return store;
}

static void assert_report(const struct merge_report *r, uint64_t objects, uint64_t sessions, uint64_t trials,
                          uint64_t updated) {
    assert_int_equal(r->objects, objects);
    assert_int_equal(r->sessions, sessions);
    assert_int_equal(r->trials, trials);
    assert_int_equal(r->updated, updated);
}

static void assert_sound(struct store *store) {
    struct error err = {0};
    struct check_report report;
    assert_ok(check_run(store, NULL, NULL, &report, &err));
    assert_int_equal(report.problems, 0);
}

static void merging_adds_what_is_missing_and_again_nothing(void **state) {
    (void)state;
    struct error err = {0};
    struct arena arena = {0};
    struct merge_report report;
    struct fixture f;
    struct record *records;
    size_t n;
    const char *from = dataset_path("from.db");
    struct store *source = make(from, &f);
    must_begin_session(source, &f, "theirs", 7);
    must_run_trial(source, &f, "theirs", 50);
    must_run_trial(source, &f, NULL, 60);
    const struct new_trial request = request_of(&f, "theirs");
    const int64_t failed = must_begin_trial(source, &request);
    assert_ok(store_trial_fail(source, failed, RECORD_FAILED, "hung", &err));
    must_begin_trial(source, &request); /* still running: not merged */
    must_put(source, STORE_RANKER, "r", "[1]");

    struct store *store = make(dataset_path("into.db"), &f);
    must_run_trial(store, &f, NULL, 10);
    assert_ok(merge_run(store, from, &report, &err)); /* while its own writer has it open */
    assert_report(&report, 1, 1, 3, 0);
    assert_ok(merge_run(store, from, &report, &err));
    assert_report(&report, 0, 0, 0, 0);

    assert_ok(query_collect(store, &(struct query){.iterations = true}, &arena, &n, &records, &err));
    assert_int_equal(n, 4);
    assert_true(records[1].median_us == 50 && records[1].n_iterations == 3 && records[1].iterations_us[1] == 49);
    assert_string_equal(records[1].session, "theirs");
    assert_int_equal(records[3].state, RECORD_FAILED);
    assert_string_equal(records[3].reason, "hung");
    assert_sound(store);

    assert_ok(store_trial_fail(source, 4, RECORD_CANCELLED, "stopped", &err));
    assert_ok(store_session_update(source, "theirs", STORED_SESSION_DONE, NULL, &err));
    assert_ok(merge_run(store, from, &report, &err));
    assert_report(&report, 0, 0, 1, 1);
    assert_sound(store);
    store_close(source);
    store_close(store);
    arena_release(&arena);
}

/* Rows of objects are a file's own: what is row 1 there is another row here. */
static void a_merged_trial_is_about_the_same_as_in_its_file(void **state) {
    (void)state;
    struct error err = {0};
    struct arena arena = {0};
    struct merge_report report;
    struct record *records;
    size_t n;
    const char *from = dataset_path("rows-from.db");
    struct store *source = must_open(from, STORE_READ_WRITE),
                 *store = must_open(dataset_path("rows.db"), STORE_READ_WRITE);
    for (int i = 0; i < 4; i++) {
        for (enum store_kind kind = STORE_MODEL; kind <= STORE_STRATEGY; kind++) {
            must_put_variant(source, kind, i);
            must_put_variant(store, kind, 5 - i); /* only 2 and 3 are in both */
        }
    }
    const struct fixture f = {.model = must_put_variant(source, STORE_MODEL, 0),
                              .cluster = must_put_variant(source, STORE_CLUSTER, 3),
                              .strategy = must_put_variant(source, STORE_STRATEGY, 2)};
    must_run_trial(source, &f, NULL, 50);
    for (int again = 0; again < 2; again++) { /* and the second time nothing contradicts */
        assert_ok(merge_run(store, from, &report, &err));
        assert_int_equal(report.trials, !again);
    }
    assert_ok(query_collect(store, &(struct query){0}, &arena, &n, &records, &err));
    assert_int_equal(n, 1);
    assert_string_equal(records[0].model, f.model.hex);
    assert_string_equal(records[0].cluster, f.cluster.hex);
    assert_string_equal(records[0].strategy, f.strategy.hex);
    assert_non_null(records[0].environment_json);
    assert_sound(store);
    store_close(source);
    store_close(store);
    arena_release(&arena);
}

static void merging_both_ways_makes_both_the_same(void **state) {
    (void)state;
    struct error err = {0};
    struct merge_report report;
    struct fixture f;
    const char *a_path = dataset_path("a.db"), *b_path = dataset_path("b.db");
    struct store *a = make(a_path, &f), *b = make(b_path, &f);
    must_run_trial(a, &f, NULL, 4);
    must_run_trial(b, &f, NULL, 2);
    must_run_trial(b, &f, NULL, 3);
    assert_ok(merge_run(a, b_path, &report, &err));
    assert_ok(merge_run(b, a_path, &report, &err));
    assert_report(&report, 0, 0, 1, 0);
    assert_int_equal(count_trials(a), 3);
    assert_int_equal(count_trials(b), 3);
    store_close(a);
    store_close(b);
}

static void contradictions_are_refused_whole(void **state) {
    (void)state;
    struct error err = {0};
    struct merge_report report;
    struct fixture f;
    const char *from = dataset_path("clash.db");
    struct store *source = make(from, &f), *store = make(dataset_path("mine.db"), &f);
    must_begin_session(source, &f, "s", 1);
    must_begin_session(store, &f, "s", 1);
    must_run_trial(source, &f, "s", 5);
    must_run_trial(source, &f, NULL, 5);
    must_run_trial(store, &f, "s", 6);
    assert_fails(merge_run(store, from, &report, &err), ST_CONFLICT, "disagree about session s trial 1");
    assert_int_equal(count_trials(store), 1);
    must_begin_session(source, &f, "t", 1);
    must_begin_session(store, &f, "t", 2);
    assert_fails(merge_run(store, from, &report, &err), ST_CONFLICT, "disagree about session t");
    must_run_trial(store, &f, NULL, 6); /* and the store goes on */
    store_close(source);
    store_close(store);
}

/* ---- a session that moves to another cluster before its first trial ---- */

/* The same in every dataset: the one on which the session began, and the one that a bench made of it. */
struct clusters {
    struct fixture before, after;
};

static struct store *make_two(const char *path, struct clusters *c) {
    struct store *store = make(path, &c->before);
    c->after = c->before;
    c->after.cluster = must_put_variant(store, STORE_CLUSTER, 6);
    return store;
}

/* A session of a team, which the team "blue" sees too. */
static void begin_shared(struct store *store, const struct fixture *f, const char *id) {
    struct error err = {0};
    const struct stored_session session = {
        .id = id, .model = f->model.hex, .cluster = f->cluster.hex, .seed = 3, .team = "red", .shared = "|blue|"};
    assert_ok(store_session_begin(store, &session, &err));
}

static void assert_about(struct store *store, const char *id, const struct fixture *f, uint64_t trials) {
    struct error err = {0};
    struct arena arena = {0};
    struct stored_session session;
    assert_ok(store_session_get(store, id, &arena, &session, &err));
    assert_string_equal(session.cluster, f->cluster.hex);
    assert_string_equal(session.team, "red");
    assert_string_equal(session.shared, "|blue|");
    assert_int_equal(session.trials, trials);
    arena_release(&arena);
    assert_sound(store); /* also who may see which cluster */
}

/* The copy has no trials, so it follows: where the session was opened here, only once there are trials. */
static void a_session_that_moved_is_followed(void **state) {
    (void)state;
    for (int trials = 0; trials < 3; trials++) { /* 2: the copy thinks that the session was opened in it */
        struct error err = {0};
        struct merge_report report;
        struct clusters c;
        char name[32];
        snprintf(name, sizeof name, "moved-%d.db", trials);
        const char *from = dataset_path("%s", name), *into = dataset_path("copy-of-%s", name);
        struct store *source = make_two(from, &c), *store = make(into, &c.before);
        begin_shared(source, &c.before, "s");
        begin_shared(source, &c.before, "stays");
        if (trials == 2)
            begin_shared(store, &c.before, "s");
        assert_ok(merge_run(store, from, &report, &err));
        assert_about(store, "s", &c.before, 0);
        assert_ok(store_session_move(source, "s", c.after.cluster.hex, &err));
        for (int i = 0; i < trials; i++)
            must_run_trial(source, &c.after, "s", 50);
        for (int again = 0; again < 2; again++) {
            uint64_t conflicts = 9;
            assert_ok(merge_conflicts(store, from, NULL, NULL, &conflicts, &err));
            assert_int_equal(conflicts, 0);
            assert_ok(merge_run(store, from, &report, &err));
            assert_int_equal(report.trials, again ? 0 : trials);
            assert_about(store, "s", &c.after, (uint64_t)trials);
            assert_about(store, "stays", &c.before, 0);
        }
        store_close(source);
        store_close(store);
    }
}

/* An older copy changes nothing, whether or not there are trials yet. */
static void a_session_that_moved_stays_where_it_is(void **state) {
    (void)state;
    for (int trials = 0; trials < 2; trials++) {
        struct error err = {0};
        struct merge_report report;
        struct clusters c;
        const char *path = dataset_path("mover-%d.db", trials), *older = dataset_path("older-%d.db", trials);
        struct store *store = make_two(path, &c), *copy = make(older, &c.before);
        begin_shared(store, &c.before, "s");
        assert_ok(merge_run(copy, path, &report, &err));
        assert_ok(store_session_move(store, "s", c.after.cluster.hex, &err));
        for (int i = 0; i < trials; i++)
            must_run_trial(store, &c.after, "s", 50);
        must_run_trial(copy, &c.before, NULL, 60);
        assert_ok(merge_run(store, older, &report, &err));
        assert_int_equal(report.trials, 1);
        assert_about(store, "s", &c.after, (uint64_t)trials);
        store_close(store);
        store_close(copy);
    }
}

static void trials_about_two_clusters_are_a_contradiction(void **state) {
    (void)state;
    struct error err = {0};
    struct merge_report report;
    struct clusters c;
    const char *from = dataset_path("went.db");
    struct store *source = make_two(from, &c), *store = make_two(dataset_path("stayed.db"), &c);
    begin_shared(source, &c.after, "s");
    begin_shared(store, &c.before, "s");
    must_run_trial(source, &c.after, "s", 50);
    const struct new_trial request = request_of(&c.before, "s");
    must_begin_trial(store, &request); /* it runs, about this cluster */
    assert_fails(merge_run(store, from, &report, &err), ST_CONFLICT, "disagree about session s: here model ");
    assert_about(store, "s", &c.before, 1);
    store_close(source);
    store_close(store);
}

static void note(void *context, const struct merge_conflict *conflict) {
    char *text = context;
    strcat(strcat(strcat(strcat(strcat(strcat(text, conflict->what), ": "), conflict->ours), " / "), conflict->theirs),
           "\n");
}

static void copy_dataset(struct store *source, const char *from, const char *copy) {
    struct error err = {0};
    struct merge_report report;
    if (!test_database()) {
        assert_ok(store_backup(source, copy, &err));
        return;
    }
    struct store *store = must_open(copy, STORE_READ_WRITE);
    assert_ok(merge_run(store, from, &report, &err));
    store_close(store);
}

static void every_contradiction_is_listed_with_both_sides(void **state) {
    (void)state;
    struct error err = {0};
    struct merge_report report;
    struct fixture f;
    struct arena arena = {0};
    struct record *ours, *theirs;
    size_t n;
    uint64_t conflicts = 99;
    char text[4096] = "", line[256];
    const char *from = dataset_path("many.db"), *copy = dataset_path("copy.db");
    struct store *source = make(from, &f);
    must_begin_session(source, &f, "a", 1);
    must_run_trial(source, &f, NULL, 40);
    copy_dataset(source, from, copy); /* from here on the two go their own ways */
    struct store *store = must_open(copy, STORE_READ_WRITE);
    assert_ok(merge_conflicts(store, from, note, text, &conflicts, &err));
    assert_int_equal(conflicts, 0);
    for (int i = 0; i < 3; i++) {
        must_run_trial(source, &f, "a", 5);
        must_run_trial(store, &f, "a", 6);
    }
    must_begin_session(source, &f, "b", 1);
    must_begin_session(store, &f, "b", 2);
    assert_ok(merge_conflicts(store, from, note, text, &conflicts, &err));
    assert_int_equal(conflicts, 4);
    assert_contains(text, "session b: model ");
    assert_contains(text, "seed 2 / model ");
    assert_ok(store_trials(store, "a", &arena, &n, &ours, &err));
    assert_ok(store_trials(source, "a", &arena, &n, &theirs, &err));
    for (size_t i = 0; i < 3; i++) {
        snprintf(line, sizeof line, "session a trial %zu: uid %s / uid %s\n", i + 1, ours[i].uid, theirs[i].uid);
        assert_contains(text, line);
    }
    assert_fails(merge_run(store, from, &report, &err), ST_CONFLICT, "(4 conflicts)");
    store_close(source);
    store_close(store);
    arena_release(&arena);
}

static void one_uid_with_two_results_is_a_contradiction(void **state) {
    (void)state;
    SKIP_IN_POSTGRESQL(); /* a merge leaves out the trial that runs */
    struct error err = {0};
    struct merge_report report;
    struct fixture f;
    const char *from = dataset_path("uid1.db"), *copy = dataset_path("uid2.db");
    struct store *source = make(from, &f);
    const struct new_trial request = request_of(&f, NULL);
    must_begin_trial(source, &request);
    copy_dataset(source, from, copy);
    struct store *store = must_open(copy, STORE_READ_WRITE);
    assert_ok(finish_trial(source, 1, 40, &err));
    assert_ok(merge_run(store, from, &report, &err)); /* here it still runs: no result, no contradiction */
    assert_int_equal(report.trials, 0);
    assert_ok(finish_trial(store, 1, 41, &err));
    assert_fails(merge_run(store, from, &report, &err), ST_CONFLICT, "trial 1 (complete, median 41");
    store_close(source);
    store_close(store);
}

static void teams_and_attempts_are_merged_too(void **state) {
    (void)state;
    struct error err = {0};
    struct arena arena = {0};
    struct merge_report report;
    struct fixture f;
    struct record *r;
    size_t n;
    const char *from = dataset_path("team.db");
    struct store *source = make(from, &f), *store = make(dataset_path("teams.db"), &f);
    struct new_trial request = request_of(&f, NULL);
    request.team = "red";
    request.shared = "|blue|";
    must_begin_trial(source, &request);
    assert_ok(finish_trial(source, 1, 40, &err));
    assert_ok(merge_run(store, from, &report, &err));
    assert_ok(query_collect(store, &(struct query){0}, &arena, &n, &r, &err));
    assert_string_equal(r[0].team, "red");
    assert_string_equal(r[0].shared, "|blue|");
    assert_int_equal(r[0].attempt, 1);
    assert_sound(store);
    store_close(source);
    store_close(store);
    arena_release(&arena);
}

static void a_source_that_fails_its_check_is_refused(void **state) {
    (void)state;
    struct error err = {0};
    struct merge_report report;
    struct fixture f;
    const char *from = dataset_path("forged.db");
    struct store *store = make(dataset_path("clean.db"), &f);
    store_close(make(from, &f));
    change_dataset(from, "UPDATE models SET content = '{}'");
    assert_fails(merge_run(store, from, &report, &err), ST_INVALID, "its content was changed");
    assert_fails(merge_run(store, dataset_path("clean.db"), &report, &err), ST_INVALID, "into itself");
    assert_fails(merge_run(store, dataset_path("none.db"), &report, &err), ST_NOT_FOUND, "no such dataset");
    assert_fails(merge_run(store, test_file("x.txt", "text text text text\n"), &report, &err), ST_INVALID, "x.txt");
    store_close(store);
}

/* A name refuses the whole file, a reason is made clean, and what is merged is foreign, whatever the file says. */
static void what_comes_of_others_is_foreign_and_clean(void **state) {
    (void)state;
    struct error err = {0};
    struct arena arena = {0};
    struct merge_report report;
    struct fixture f;
    struct stored_session session;
    struct record *records;
    size_t n;
    const char *from = dataset_path("hostile.db");
    struct store *source = make(from, &f);
    must_begin_session(source, &f, "theirs", 7);
    const struct new_trial request = request_of(&f, "theirs");
    assert_ok(store_trial_fail(source, must_begin_trial(source, &request), RECORD_FAILED, "hung", &err));
    store_close(source);
    change_dataset(from, "UPDATE trials SET reason = 'a\n\033\342\200\256b'; UPDATE sessions SET origin = NULL");
    struct store *store = make(dataset_path("clean-of-others.db"), &f);
    assert_ok(merge_run(store, from, &report, &err));
    assert_ok(store_session_get(store, "theirs", &arena, &session, &err));
    assert_string_equal(session.origin, "merge");
    assert_ok(query_collect(store, &(struct query){0}, &arena, &n, &records, &err));
    assert_string_equal(records[n - 1].reason, "a ????b");
    assert_sound(store);
    assert_ok(merge_run(store, from, &report, &err)); /* again: nothing, and no contradiction */
    assert_int_equal(report.trials, 0);
    change_dataset(from, "UPDATE trials SET proposer = 'a\302\233'");
    assert_fails(merge_run(store, from, &report, &err), ST_INVALID,
                 "fails its check (1 problems; the first: trial 1: "
                 "proposer: ");
    store_close(store);
    arena_release(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merging_adds_what_is_missing_and_again_nothing),
        cmocka_unit_test(a_merged_trial_is_about_the_same_as_in_its_file),
        cmocka_unit_test(merging_both_ways_makes_both_the_same),
        cmocka_unit_test(contradictions_are_refused_whole),
        cmocka_unit_test(a_session_that_moved_is_followed),
        cmocka_unit_test(a_session_that_moved_stays_where_it_is),
        cmocka_unit_test(trials_about_two_clusters_are_a_contradiction),
        cmocka_unit_test(every_contradiction_is_listed_with_both_sides),
        cmocka_unit_test(one_uid_with_two_results_is_a_contradiction),
        cmocka_unit_test(teams_and_attempts_are_merged_too),
        cmocka_unit_test(a_source_that_fails_its_check_is_refused),
        cmocka_unit_test(what_comes_of_others_is_foreign_and_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
