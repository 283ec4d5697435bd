/* What is put comes back after the file was closed, and every rule of sessions and trials holds. */
#include "dataset/leases.h"
#include "dataset/store.h"
#include "tests/unit/dataset/fixture.h"

static void objects_come_back_under_the_hash_of_their_text(void **state) {
    (void)state;
    struct error err = {0};
    struct arena arena = {0};
    struct stored_object object;
    const char *path = dataset_path("objects.db");
    struct store *store = must_open(path, STORE_READ_WRITE);
    const struct id id = must_put(store, STORE_MODEL, "m", "{}");
    /* sha256sum of the two characters */
    assert_string_equal(id.hex, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
    must_put(store, STORE_MODEL, "another name", "{}");
    store_close(store);

    store = must_open(path, STORE_READ_ONLY);
    assert_ok(store_get(store, STORE_MODEL, id.hex, &arena, &object, &err));
    assert_string_equal(object.name, "m");
    assert_string_equal(object.content, "{}");
    assert_fails(store_get(store, STORE_CLUSTER, id.hex, &arena, &object, &err), ST_NOT_FOUND,
                 "no cluster 44136fa355b3");
    store_close(store);
    arena_release(&arena);
}

static void objects_are_found_by_name_and_by_prefix(void **state) {
    (void)state;
    struct error err = {0};
    struct id found;
    struct store *store = must_open(dataset_path("find.db"), STORE_READ_WRITE);
    must_put(store, STORE_CLUSTER, "lab", "{\"v\":1}");
    const struct id id = must_put(store, STORE_CLUSTER, "lab", "{\"v\":2}");
    assert_ok(store_find(store, STORE_CLUSTER, "lab", &found, &err));
    assert_string_equal(found.hex, id.hex);
    char prefix[ID_SHORT + 1];
    snprintf(prefix, sizeof prefix, "%.*s", ID_SHORT, id.hex);
    assert_ok(store_find(store, STORE_CLUSTER, prefix, &found, &err));
    assert_string_equal(found.hex, id.hex);
    assert_ok(store_find(store, STORE_CLUSTER, id.hex, &found, &err));
    for (size_t digits = ID_SHORT; digits >= 4; digits -= 2) { /* named as the other begins */
        char content[16];
        prefix[digits] = '\0';
        snprintf(content, sizeof content, "{\"w\":%zu}", digits);
        must_put(store, STORE_CLUSTER, prefix, content);
        assert_ok(store_find(store, STORE_CLUSTER, prefix, &found, &err));
        assert_string_equal(found.hex, id.hex);
    }
    prefix[3] = '\0'; /* fewer digits begin no id */
    const struct id named = must_put(store, STORE_CLUSTER, prefix, "{\"w\":3}");
    assert_ok(store_find(store, STORE_CLUSTER, prefix, &found, &err));
    assert_string_equal(found.hex, named.hex);
    assert_fails(store_find(store, STORE_CLUSTER, "ffffffffff", &found, &err), ST_NOT_FOUND, "ffffffffff");
    assert_fails(store_find(store, STORE_CLUSTER, "%", &found, &err), ST_NOT_FOUND, "%");
    store_close(store);
}

static void a_prefix_of_several_ids_is_refused(void **state) {
    (void)state;
    struct error err = {0};
    struct store *store = must_open(dataset_path("several.db"), STORE_READ_WRITE);
    /* By the birthday bound, 2000 ids share some 4 digits with all but certainty. */
    struct id ids[2000], found;
    char content[32], prefix[5] = "";
    for (int i = 0; i < 2000 && !*prefix; i++) {
        snprintf(content, sizeof content, "{\"v\":%d}", i);
        ids[i] = must_put(store, STORE_RANKER, "r", content);
        for (int j = 0; j < i && !*prefix; j++)
            if (!strncmp(ids[i].hex, ids[j].hex, 4))
                memcpy(prefix, ids[i].hex, 4);
    }
    assert_true(*prefix);
    assert_fails(store_find(store, STORE_RANKER, prefix, &found, &err), ST_USAGE, "give more digits");
    store_close(store);
}

static void lists_are_in_the_order_of_putting(void **state) {
    (void)state;
    struct error err = {0};
    struct arena arena = {0};
    size_t n;
    struct stored_object *objects;
    struct store *store = must_open(dataset_path("list.db"), STORE_READ_WRITE);
    must_put(store, STORE_RANKER, "b", "{\"b\":1}");
    must_put(store, STORE_RANKER, "a", "{\"a\":1}");
    assert_ok(store_list(store, STORE_RANKER, &arena, &n, &objects, &err));
    assert_int_equal(n, 2);
    assert_string_equal(objects[0].name, "b");
    assert_string_equal(objects[1].name, "a");
    assert_ok(store_list(store, STORE_MODEL, &arena, &n, &objects, &err));
    assert_int_equal(n, 0);
    store_close(store);
    arena_release(&arena);
}

static void text_that_is_no_json_is_refused(void **state) {
    (void)state;
    struct error err = {0};
    struct store *store = must_open(dataset_path("json.db"), STORE_READ_WRITE);
    assert_fails(put_object(store, STORE_MODEL, "m", "{", NULL, &err), ST_INVALID, "line 1");
    store_close(store);
}

static void a_session_comes_back_as_it_was_begun(void **state) {
    (void)state;
    struct error err = {0};
    struct arena arena = {0};
    struct stored_session s;
    const char *path = dataset_path("session.db");
    struct store *store = must_open(path, STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    must_begin_session(store, &f, "s1", UINT64_MAX - 1);
    must_run_trial(store, &f, "s1", 1000);
    store_close(store);

    store = must_open(path, STORE_READ_WRITE);
    assert_ok(store_session_get(store, "s1", &arena, &s, &err));
    assert_true(s.seed == UINT64_MAX - 1);
    assert_string_equal(s.model, f.model.hex);
    assert_string_equal(s.budget, "{\"trials\":9}");
    assert_string_equal(s.options, "{}");
    assert_int_equal(s.state, STORED_SESSION_RUNNING);
    assert_null(s.ended);
    assert_int_equal(s.trials, 1);
    assert_int_equal(s.complete, 1);
    assert_ok(store_session_update(store, "s1", STORED_SESSION_DONE, "budget", &err));
    assert_ok(store_session_get(store, "s1", &arena, &s, &err));
    assert_int_equal(s.state, STORED_SESSION_DONE);
    assert_string_equal(s.reason, "budget");
    assert_non_null(s.ended);
    assert_fails(store_session_update(store, "s2", STORED_SESSION_DONE, NULL, &err), ST_NOT_FOUND, "s2");
    store_close(store);
    arena_release(&arena);
}

static void a_session_needs_its_objects_and_its_own_id(void **state) {
    (void)state;
    struct error err = {0};
    struct store *store = must_open(dataset_path("refuse.db"), STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    must_begin_session(store, &f, "s1", 1);
    struct stored_session s = {.id = "s1", .model = f.model.hex, .cluster = f.cluster.hex};
    assert_fails(store_session_begin(store, &s, &err), ST_CONFLICT, "there already");
    s.id = "s2";
    s.model = f.cluster.hex;
    assert_fails(store_session_begin(store, &s, &err), ST_NOT_FOUND, "refers to");
    s.model = f.model.hex;
    s.options = "not json";
    assert_fails(store_session_begin(store, &s, &err), ST_INVALID, "line 1");
    store_close(store);
}

static void a_budget_is_replaced_and_nothing_else(void **state) {
    (void)state;
    struct error err = {0};
    struct arena arena = {0};
    struct stored_session before, after, other;
    struct store *store = must_open(dataset_path("budget.db"), STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    must_begin_session(store, &f, "s", 7);
    must_begin_session(store, &f, "other", 7);
    assert_ok(store_session_get(store, "s", &arena, &before, &err));
    assert_ok(store_session_budget(store, "s", "{\"trials\":9,\"used_us\":12}", &err));
    assert_fails(store_session_budget(store, "s", "{", &err), ST_INVALID, "budget");
    assert_fails(store_session_budget(store, "nobody", "{}", &err), ST_NOT_FOUND, "nobody");
    assert_ok(store_session_get(store, "s", &arena, &after, &err));
    assert_ok(store_session_get(store, "other", &arena, &other, &err));
    assert_string_equal(after.budget, "{\"trials\":9,\"used_us\":12}");
    assert_string_equal(other.budget, before.budget);
    assert_string_equal(after.started, before.started);
    assert_int_equal(after.state, before.state);
    store_close(store);
    arena_release(&arena);
}

static void sessions_are_listed_newest_first_in_pages(void **state) {
    (void)state;
    struct error err = {0};
    struct arena arena = {0};
    size_t n;
    struct stored_session *sessions;
    struct store *store = must_open(dataset_path("pages.db"), STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    must_begin_session(store, &f, "s1", 1);
    must_begin_session(store, &f, "s2", 1);
    must_begin_session(store, &f, "s3", 1);
    assert_ok(store_session_list(store, 1, 5, &arena, &n, &sessions, &err));
    assert_int_equal(n, 2);
    assert_string_equal(sessions[0].id, "s2");
    assert_string_equal(sessions[1].id, "s1");
    store_close(store);
    arena_release(&arena);
}

static void trials_are_numbered_within_their_session(void **state) {
    (void)state;
    struct error err = {0};
    struct arena arena = {0};
    size_t n;
    struct record *records;
    struct store *store = must_open(dataset_path("numbers.db"), STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    must_begin_session(store, &f, "a", 1);
    must_begin_session(store, &f, "b", 1);
    struct new_trial request = request_of(&f, "a");
    must_begin_trial(store, &request);
    request.number = 7;
    request.round = 2;
    must_begin_trial(store, &request);
    int64_t trial;
    assert_fails(store_trial_begin(store, &request, &trial, &err), ST_CONFLICT, "number");
    request.number = 0;
    must_begin_trial(store, &request);
    request.session = "b";
    must_begin_trial(store, &request);
    request.session = "nowhere";
    assert_fails(store_trial_begin(store, &request, &trial, &err), ST_NOT_FOUND, "refers to");
    assert_ok(store_trials(store, "a", &arena, &n, &records, &err));
    assert_int_equal(n, 3);
    assert_int_equal(records[0].number, 1);
    assert_int_equal(records[1].number, 7);
    assert_int_equal(records[1].round, 2);
    assert_int_equal(records[2].number, 8);
    store_close(store);
    arena_release(&arena);
}

static void a_trial_passes_through_its_states_only_forward(void **state) {
    (void)state;
    struct error err = {0};
    struct store *store = must_open(dataset_path("states.db"), STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    struct new_trial request = request_of(&f, NULL);
    request.waiting = true;
    const int64_t trial = must_begin_trial(store, &request);
    assert_fails(finish_trial(store, trial, 10, &err), ST_CONFLICT, "is waiting, not running");
    assert_ok(lease_take(store, trial, "a", 1e6, NULL, &err));
    assert_fails(lease_take(store, trial, "b", 1e6, NULL, &err), ST_CONFLICT, "is running, not waiting");
    assert_ok(finish_trial(store, trial, 10, &err));
    assert_fails(finish_trial(store, trial, 10, &err), ST_CONFLICT, "is complete");
    assert_fails(store_trial_fail(store, trial, RECORD_FAILED, "late", &err), ST_CONFLICT, "is complete");
    assert_fails(store_trial_fail(store, 999, RECORD_FAILED, "x", &err), ST_NOT_FOUND, "no trial 999");
    const int64_t other = must_begin_trial(store, &request);
    assert_fails(store_trial_fail(store, other, RECORD_COMPLETE, "x", &err), ST_CONFLICT, "complete");
    assert_ok(store_trial_fail(store, other, RECORD_INFEASIBLE, "no GPU here", &err));
    store_close(store);
}

static void a_result_without_sound_times_is_refused_whole(void **state) {
    (void)state;
    struct error err = {0};
    struct arena arena = {0};
    size_t n;
    struct record *records;
    struct store *store = must_open(dataset_path("unsound.db"), STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    const struct new_trial request = request_of(&f, NULL);
    const int64_t trial = must_begin_trial(store, &request);
    double times[] = {5, 0};
    struct finished_trial result = {.mean_us = 5, .median_us = 5, .low_us = 5, .high_us = 5, .environment = "{}"};
    assert_fails(store_trial_finish(store, trial, &result, &err), ST_INVALID, "at least one iteration");
    result.n_iterations = 2;
    result.iterations_us = times;
    assert_fails(store_trial_finish(store, trial, &result, &err), ST_INVALID, "iteration 1");
    times[1] = 5;
    result.low_us = 6;
    assert_fails(store_trial_finish(store, trial, &result, &err), ST_INVALID, "low_us");
    assert_ok(query_collect(store, &(struct query){.iterations = true}, &arena, &n, &records, &err));
    assert_int_equal(records[0].state, RECORD_RUNNING);
    assert_int_equal(records[0].n_iterations, 0);
    store_close(store);
    arena_release(&arena);
}

static void reconciling_cancels_what_a_dead_process_left_running(void **state) {
    (void)state;
    struct error err = {0};
    struct arena arena = {0};
    size_t n;
    uint64_t cancelled = 99;
    struct record *records;
    struct store *store = must_open(dataset_path("orphans.db"), STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    must_begin_session(store, &f, "s", 1);
    must_begin_session(store, &f, "other", 1);
    must_run_trial(store, &f, "s", 10);
    struct new_trial request = request_of(&f, "s");
    must_begin_trial(store, &request);
    request.waiting = true;
    must_begin_trial(store, &request);
    const struct new_trial elsewhere = request_of(&f, "other");
    must_begin_trial(store, &elsewhere);
    assert_ok(store_session_update(store, "s", STORED_SESSION_STOPPED, NULL, &err));
    assert_ok(store_session_reconcile(store, "s", &cancelled, &err));
    assert_int_equal(cancelled, 1);
    assert_ok(store_trials(store, "s", &arena, &n, &records, &err));
    assert_int_equal(records[0].state, RECORD_COMPLETE);
    assert_int_equal(records[1].state, RECORD_CANCELLED);
    assert_non_null(records[1].reason);
    assert_int_equal(records[2].state, RECORD_WAITING);
    assert_ok(store_trials(store, "other", &arena, &n, &records, &err));
    assert_int_equal(records[0].state, RECORD_RUNNING);
    assert_ok(store_session_reconcile(store, "s", &cancelled, &err));
    assert_int_equal(cancelled, 0);
    assert_fails(store_session_reconcile(store, "t", &cancelled, &err), ST_NOT_FOUND, "no session t");
    store_close(store);
    arena_release(&arena);
}

static void a_read_only_store_refuses_every_write(void **state) {
    (void)state;
    struct error err = {0};
    int64_t trial;
    const char *path = dataset_path("reader.db");
    struct store *store = must_open(path, STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    must_begin_session(store, &f, "s", 1);
    store_close(store);
    store = must_open(path, STORE_READ_ONLY);
    const struct new_trial request = request_of(&f, "s");
    assert_fails(store_trial_begin(store, &request, &trial, &err), ST_CONFLICT, "reading only");
    assert_fails(put_object(store, STORE_MODEL, "m", "{}", NULL, &err), ST_CONFLICT, "reading only");
    assert_fails(store_session_update(store, "s", STORED_SESSION_DONE, NULL, &err), ST_CONFLICT, "reading only");
    store_close(store);
}

static void readers_see_what_the_writer_commits(void **state) {
    (void)state;
    const char *path = dataset_path("both.db");
    struct store *writer = must_open(path, STORE_READ_WRITE);
    const struct fixture f = put_fixture(writer);
    struct store *reader = must_open(path, STORE_READ_ONLY);
    for (uint64_t i = 1; i <= 5; i++) {
        must_run_trial(writer, &f, NULL, 100);
        assert_int_equal(count_trials(reader), i);
    }
    store_close(reader);
    store_close(writer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_come_back_under_the_hash_of_their_text),
        cmocka_unit_test(objects_are_found_by_name_and_by_prefix),
        cmocka_unit_test(a_prefix_of_several_ids_is_refused),
        cmocka_unit_test(lists_are_in_the_order_of_putting),
        cmocka_unit_test(text_that_is_no_json_is_refused),
        cmocka_unit_test(a_session_comes_back_as_it_was_begun),
        cmocka_unit_test(a_session_needs_its_objects_and_its_own_id),
        cmocka_unit_test(a_budget_is_replaced_and_nothing_else),
        cmocka_unit_test(sessions_are_listed_newest_first_in_pages),
        cmocka_unit_test(trials_are_numbered_within_their_session),
        cmocka_unit_test(a_trial_passes_through_its_states_only_forward),
        cmocka_unit_test(a_result_without_sound_times_is_refused_whole),
        cmocka_unit_test(reconciling_cancels_what_a_dead_process_left_running),
        cmocka_unit_test(a_read_only_store_refuses_every_write),
        cmocka_unit_test(readers_see_what_the_writer_commits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
