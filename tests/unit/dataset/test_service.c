/* What a service keeps beside the trials: leases, events, answers, operations, the audit; and transactions around
 * several of these. */

#include "base/rng.h"
#include "dataset/check.h"
#include "dataset/events.h"
#include "dataset/leases.h"
#include "dataset/operations.h"
#include "dataset/requests.h"
#include "tests/unit/dataset/fixture.h"

static struct store *store;
static struct fixture f;

static int set_up(void **state) {
    (void)state;
    store = must_open(dataset_path("service.db"), STORE_READ_WRITE);
    f = put_fixture(store);
    must_begin_session(store, &f, "s", 1);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    struct error err = {0};
    struct check_report report;
    assert_ok(check_run(store, NULL, NULL, &report, &err));
    assert_int_equal(report.problems, 0);
    store_close(store);
    return 0;
}

static int64_t offer_in(const char *session) {
    struct new_trial request = request_of(&f, session);
    request.waiting = true;
    return must_begin_trial(store, &request);
}

static int64_t offer(void) {
    return offer_in("s");
}

static struct record get_trial(int64_t trial, struct arena *arena) {
    struct error err = {0};
    struct record *records;
    size_t n;
    assert_ok(query_collect(store, &(struct query){0}, arena, &n, &records, &err));
    for (size_t i = 0; i < n; i++)
        if (records[i].trial == trial)
            return records[i];
    fail_msg("no trial %lld", (long long)trial);
    return (struct record){0};
}

static void only_the_holder_of_the_attempt_may_report(void **state) {
    (void)state;
    struct error err = {0};
    struct arena arena = {0};
    uint64_t attempt = 0;
    const int64_t trial = offer();
    assert_fails(lease_check(store, trial, "a", 1, &err), ST_CONFLICT, "is waiting");
    assert_ok(lease_take(store, trial, "a", 30e6, &attempt, &err));
    assert_int_equal(attempt, 1);
    assert_fails(lease_take(store, trial, "b", 30e6, &attempt, &err), ST_CONFLICT, "is running, not waiting");
    assert_ok(lease_check(store, trial, "a", 1, &err));
    assert_fails(lease_check(store, trial, "b", 1, &err), ST_CONFLICT, "client a has it, not b");
    assert_fails(lease_check(store, trial, "a", 2, &err), ST_CONFLICT, "attempt 2 was lost; attempt 1 runs");
    assert_fails(lease_check(store, 12345, "a", 1, &err), ST_NOT_FOUND, "no trial 12345");
    struct record r = get_trial(trial, &arena);
    assert_string_equal(r.client, "a");
    assert_non_null(r.lease_until);
    assert_true(strcmp(r.started, r.lease_until) < 0);
    assert_ok(lease_renew(store, trial, "a", 1, 3600e6, &err));
    const struct record later = get_trial(trial, &arena);
    assert_true(strcmp(r.lease_until, later.lease_until) < 0);
    assert_ok(finish_trial(store, trial, 10, &err));
    assert_fails(lease_renew(store, trial, "a", 1, 30e6, &err), ST_CONFLICT, "is complete");
    r = get_trial(trial, &arena);
    assert_null(r.lease_until);
    assert_string_equal(r.client, "a");
    assert_fails(lease_take(store, offer(), "", 30e6, &attempt, &err), ST_INVALID, "1 to 255");
    assert_fails(lease_take(store, offer(), "a", -1, &attempt, &err), ST_INVALID, "positive");
    arena_release(&arena);
}

static void a_trial_that_is_lost_is_offered_again_up_to_a_limit(void **state) {
    (void)state;
    struct error err = {0};
    struct arena arena = {0};
    enum record_state now;
    const int64_t trial = offer();
    for (uint64_t attempt = 1; attempt <= 3; attempt++) {
        uint64_t taken;
        assert_ok(lease_take(store, trial, "a", 1e6, &taken, &err));
        assert_int_equal(taken, attempt);
        assert_fails(lease_expire(store, trial, attempt + 1, 3, &now, &err), ST_CONFLICT, "was lost");
        assert_ok(lease_expire(store, trial, attempt, 3, &now, &err));
        assert_int_equal(now, attempt < 3 ? RECORD_WAITING : RECORD_CANCELLED);
        assert_fails(lease_check(store, trial, "a", attempt, &err), ST_CONFLICT, "no longer runs");
    }
    const struct record r = get_trial(trial, &arena);
    assert_string_equal(r.reason, "lost: no word from its client in 3 attempts");
    assert_int_equal(r.attempt, 3);
    const int64_t other = offer();
    assert_ok(lease_take(store, other, "a", 1e6, NULL, &err));
    assert_ok(lease_release(store, other, "a", 1, &err));
    const struct record released = get_trial(other, &arena);
    assert_int_equal(released.state, RECORD_WAITING);
    assert_int_equal(released.attempt, 2);
    assert_null(released.started);
    assert_null(released.client);
    arena_release(&arena);
}

static void leases_outlive_the_process(void **state) {
    (void)state;
    struct error err = {0};
    struct arena arena = {0};
    struct lease *leases;
    size_t n;
    uint64_t refreshed, cancelled;
    must_begin_session(store, &f, "l", 1);
    const int64_t trial = offer_in("l");
    assert_ok(lease_take(store, trial, "node 7", 1e3, NULL, &err));
    const struct new_trial own = request_of(&f, "l");
    const int64_t without = must_begin_trial(store, &own);
    const struct record before = get_trial(trial, &arena);
    store_close(store);
    store = must_open(dataset_path("service.db"), STORE_READ_WRITE);
    assert_ok(leases_list(store, "l", &arena, &n, &leases, &err));
    assert_int_equal(n, 1);
    assert_true(leases[0].trial == trial && leases[0].attempt == 1 && leases[0].length_us == 1e3);
    assert_string_equal(leases[0].client, "node 7");
    assert_ok(leases_list(store, "t", &arena, &n, &leases, &err));
    assert_int_equal(n, 0);
    assert_ok(leases_refresh(store, &refreshed, &err));
    assert_true(refreshed >= 1); /* and those of other tests */
    assert_true(strcmp(before.lease_until, get_trial(trial, &arena).lease_until) < 0);
    /* What runs without a lease was this process's own. */
    assert_ok(store_session_reconcile(store, "l", &cancelled, &err));
    assert_int_equal(cancelled, 1);
    assert_int_equal(get_trial(without, &arena).state, RECORD_CANCELLED);
    assert_int_equal(get_trial(trial, &arena).state, RECORD_RUNNING);
    assert_ok(lease_check(store, trial, "node 7", 1, &err));
    arena_release(&arena);
}

static void an_effect_its_event_and_its_answer_stand_or_fall_together(void **state) {
    (void)state;
    struct error err = {0};
    struct arena arena = {0};
    struct stored_response answer = {.status = 200, .content_type = "application/json", .body = "{}", .length = 2};
    enum response_match match;
    int64_t before, after;
    const int64_t trial = offer();
    assert_ok(event_last(store, NULL, &before, &err));
    for (int round = 0; round < 2; round++) {
        assert_ok(store_begin(store, &err));
        assert_ok(lease_take(store, trial, "a", 1e6, NULL, &err));
        assert_ok(event_add(store, "s", "trial", "{}", NULL, &err));
        assert_ok(response_put(store, "t1", "key", "f", &answer, &err));
        /* A step inside that fails undoes itself alone. */
        assert_fails(response_put(store, "t1", "key", "f", &answer, &err), ST_CONFLICT, "there already");
        assert_fails(lease_take(store, trial, "b", 1e6, NULL, &err), ST_CONFLICT, "is running");
        const enum status end = round ? ST_OK : ST_CANCELLED;
        assert_int_equal(store_end(store, end, &err), end);
        assert_ok(event_last(store, NULL, &after, &err));
        assert_true(round ? after > before : after == before);
        assert_ok(response_find(store, "t1", "key", "f", &arena, &match, &answer, &err));
        assert_int_equal(match, round ? RESPONSE_SAME : RESPONSE_NEW);
        assert_int_equal(get_trial(trial, &arena).state, round ? RECORD_RUNNING : RECORD_WAITING);
    }
    arena_release(&arena);
}

static void transactions_nest(void **state) {
    (void)state;
    struct error err = {0};
    const int64_t trial = offer();
    assert_ok(store_begin(store, &err));
    assert_ok(lease_take(store, trial, "a", 1e6, NULL, &err));
    assert_ok(store_begin(store, &err));
    assert_ok(store_trial_fail(store, trial, RECORD_FAILED, "undone", &err));
    assert_int_equal(store_end(store, ST_CANCELLED, &err), ST_CANCELLED);
    assert_ok(store_begin(store, &err));
    assert_ok(finish_trial(store, trial, 5, &err));
    assert_ok(store_end(store, ST_OK, &err));
    assert_ok(store_end(store, ST_OK, &err));
    struct arena arena = {0};
    assert_int_equal(get_trial(trial, &arena).state, RECORD_COMPLETE);
    arena_release(&arena);
}

enum { MOST_WRITES = 400, MOST_DEPTH = 5 };

/* What should be there, write by write. */
struct writes {
    int n;
    bool kept[MOST_WRITES];
    struct id ids[MOST_WRITES];
};

static void write_one(struct writes *w) {
    static int number;
    struct error err = {0};
    char content[64];
    snprintf(content, sizeof content, "{\"write\":%d}", number++);
    assert_ok(put_object(store, STORE_RANKER, "m", content, &w->ids[w->n], &err));
    w->kept[w->n++] = true;
}

/* Writes, failed writes and steps, in any order; then it ends well or not. */
static void random_step(struct rng *rng, int depth, struct writes *w) {
    struct error err = {0};
    bool before[MOST_WRITES];
    memcpy(before, w->kept, sizeof before);
    assert_ok(store_begin(store, &err));
    for (uint64_t n = rng_below(rng, 4); n-- > 0 && w->n < MOST_WRITES;) {
        const uint64_t what = rng_below(rng, 8);
        if (what < 3)
            write_one(w);
        else if (what == 3)
            assert_fails(put_object(store, STORE_RANKER, "m", "no JSON", NULL, &err), ST_INVALID, "");
        else if (depth < MOST_DEPTH)
            random_step(rng, depth + 1, w);
    }
    const enum status end = rng_below(rng, 3) ? ST_OK : ST_CANCELLED;
    assert_int_equal(store_end(store, end, &err), end);
    if (end != ST_OK)
        memcpy(w->kept, before, sizeof before);
}

static void steps_within_steps_leave_what_those_wrote_that_ended_well(void **state) {
    (void)state;
    struct rng rng;
    int left = 0, gone = 0;
    rng_seed(&rng, test_seed());
    for (int round = 0; round < 300; round++) {
        struct error err = {0};
        struct writes w = {0};
        random_step(&rng, 1, &w);
        for (int i = 0; i < w.n; i++) {
            assert_int_equal(store_has(store, STORE_RANKER, w.ids[i].hex, &err), w.kept[i] ? ST_OK : ST_NOT_FOUND);
            left += w.kept[i];
            gone += !w.kept[i];
        }
    }
    assert_true(left > 50 && gone > 50);
}

static void events_are_replayed_from_where_one_stopped(void **state) {
    (void)state;
    struct error err = {0};
    struct arena arena = {0};
    struct stored_event *events;
    size_t n;
    int64_t ids[6], last;
    uint64_t pruned;
    for (int i = 0; i < 6; i++)
        assert_ok(event_add(store, i % 2 ? "odd" : "even", "number", i % 2 ? "{\"odd\":1}" : "[]", &ids[i], &err));
    assert_ok(event_list(store, "odd", ids[1], 0, &arena, &n, &events, &err));
    assert_int_equal(n, 2);
    assert_true(events[0].id == ids[3] && events[1].id == ids[5]);
    assert_string_equal(events[0].content, "{\"odd\":1}");
    assert_ok(event_list(store, NULL, ids[0], 2, &arena, &n, &events, &err));
    assert_true(n == 2 && events[0].id == ids[1] && events[1].id == ids[2]);
    assert_fails(event_add(store, NULL, "x", "{", NULL, &err), ST_INVALID, "line 1");
    assert_ok(event_prune(store, "9999", &pruned, &err));
    assert_true(pruned >= 6);
    assert_ok(event_last(store, "odd", &last, &err));
    assert_int_equal(last, 0);
    assert_ok(event_add(store, "odd", "number", "{}", &last, &err));
    assert_true(last > ids[5]); /* never an id twice */
    arena_release(&arena);
}

static void an_answer_belongs_to_a_token_a_key_and_a_request(void **state) {
    (void)state;
    struct error err = {0};
    struct arena arena = {0};
    struct stored_response found = {0};
    enum response_match match;
    uint64_t n;
    const struct stored_response answer = {
        .status = 201, .content_type = "application/octet-stream", .body = "a\0b", .length = 3};
    const struct stored_response empty = {.status = 204, .content_type = ""};
    assert_ok(response_put(store, "t1", "k1", "f1", &answer, &err));
    assert_ok(response_put(store, "t2", "k1", "f2", &empty, &err));
    assert_ok(response_find(store, "t1", "k1", "f1", &arena, &match, &found, &err));
    assert_true(match == RESPONSE_SAME && found.status == 201 && found.length == 3);
    assert_memory_equal(found.body, "a\0b", 4);
    assert_ok(response_find(store, "t2", "k1", "f2", &arena, &match, &found, &err));
    assert_true(match == RESPONSE_SAME && found.length == 0 && !*found.body);
    assert_ok(response_find(store, "t1", "k1", "other", &arena, &match, &found, &err));
    assert_int_equal(match, RESPONSE_OTHER);
    assert_ok(response_find(store, "t1", "k2", "f1", &arena, &match, &found, &err));
    assert_int_equal(match, RESPONSE_NEW);
    assert_ok(response_prune(store, "2020", &n, &err));
    assert_int_equal(n, 0);
    assert_ok(response_prune(store, "9999", &n, &err));
    assert_true(n >= 2);
    arena_release(&arena);
}

static void operations_end_once(void **state) {
    (void)state;
    struct error err = {0};
    struct arena arena = {0};
    struct stored_operation operation, *list;
    size_t n;
    uint64_t failed;
    char a[OPERATION_ID_ROOM], b[OPERATION_ID_ROOM];
    const enum operation_state running = OPERATION_RUNNING;
    assert_ok(operation_begin(store, "train-ranker", "red", "{\"x\":1}", a, &err));
    assert_ok(operation_begin(store, "train-ranker", NULL, "{}", b, &err));
    assert_ok(operation_end(store, a, OPERATION_DONE, "{\"ranker\":\"r\"}", &err));
    assert_fails(operation_end(store, a, OPERATION_FAILED, "{}", &err), ST_CONFLICT, "is done already");
    assert_fails(operation_end(store, "nix", OPERATION_FAILED, "{}", &err), ST_NOT_FOUND, "no operation nix");
    assert_ok(operation_list(store, &(struct operation_query){.state = &running}, 0, &arena, &n, &list, &err));
    assert_true(n == 1 && !strcmp(list[0].id, b) && !list[0].result);
    assert_ok(operation_reconcile(store, "{\"detail\":\"restarted\"}", &failed, &err));
    assert_int_equal(failed, 1);
    assert_ok(operation_get(store, b, &arena, &operation, &err));
    assert_int_equal(operation.state, OPERATION_FAILED);
    assert_string_equal(operation.result, "{\"detail\":\"restarted\"}");
    assert_ok(operation_get(store, a, &arena, &operation, &err));
    assert_string_equal(operation.team, "red");
    assert_string_equal(operation.request, "{\"x\":1}");
    assert_ok(operation_list(store, &(struct operation_query){0}, 1, &arena, &n, &list, &err));
    assert_true(n == 1 && !strcmp(list[0].id, b)); /* the newest */
    assert_ok(operation_list(store, &(struct operation_query){.before = b}, 0, &arena, &n, &list, &err));
    assert_true(n == 1 && !strcmp(list[0].id, a));
    assert_ok(operation_list(store, &(struct operation_query){.before = a}, 0, &arena, &n, &list, &err));
    assert_int_equal(n, 0);
    assert_ok(operation_list(store, &(struct operation_query){.team = "red"}, 0, &arena, &n, &list, &err));
    assert_true(n == 1 && !strcmp(list[0].id, a));
    arena_release(&arena);
}

static void the_audit_says_who_changed_what(void **state) {
    (void)state;
    struct error err = {0};
    uint64_t pruned;
    char kept[200] = "";
    for (int i = 0; i < 3; i++) {
        const struct audit_entry entry = {
            .token = i ? "ab12" : NULL, .team = "red", .method = "POST", .path = "/api/v1/models", .status = 200 + i};
        assert_ok(audit_add(store, &entry, &err));
    }
    struct sql_statement *stmt;
    bool row = true;
    assert_ok(sql_prepare(store,
                          "SELECT coalesce(token, 'nobody') || ' ' || team || ' ' || method || ' ' || path || ' '"
                          " || status FROM audit ORDER BY id",
                          &stmt, &err));
    for (size_t n = 0; row; n = strlen(kept)) {
        assert_ok(sql_next(store, stmt, &row, &err));
        if (row)
            snprintf(kept + n, sizeof kept - n, "%s%s", n ? "," : "", sql_column_text(stmt, 0));
    }
    sql_finalize(stmt);
    assert_string_equal(kept, "nobody red POST /api/v1/models 200,ab12 red POST /api/v1/models 201,"
                              "ab12 red POST /api/v1/models 202");
    assert_ok(audit_prune(store, "9999", &pruned, &err));
    assert_int_equal(pruned, 3);
}

static void sessions_are_shared_anew_with_their_trials(void **state) {
    (void)state;
    struct error err = {0};
    struct arena arena = {0};
    struct stored_session session = {.id = "shared",
                                     .model = f.model.hex,
                                     .cluster = f.cluster.hex,
                                     .team = "red",
                                     .shared = "",
                                     .mode = STORED_SESSION_ASK};
    struct record *records;
    size_t n;
    assert_ok(store_session_begin(store, &session, &err));
    must_run_trial(store, &f, "shared", 5);
    assert_ok(store_trials(store, "shared", &arena, &n, &records, &err));
    assert_string_equal(records[0].team, "red");
    assert_string_equal(records[0].shared, "");
    assert_ok(store_session_share(store, "shared", "|blue|green|", &err));
    assert_ok(store_trials(store, "shared", &arena, &n, &records, &err));
    assert_string_equal(records[0].shared, "|blue|green|");
    assert_ok(store_session_update(store, "shared", STORED_SESSION_PAUSED, "asked to", &err));
    assert_ok(store_session_get(store, "shared", &arena, &session, &err));
    assert_true(session.state == STORED_SESSION_PAUSED && !session.ended && session.mode == STORED_SESSION_ASK);
    assert_string_equal(session.shared, "|blue|green|");
    assert_ok(store_session_update(store, "shared", STORED_SESSION_CANCELLED, NULL, &err));
    assert_fails(store_session_share(store, "shared", "blue", &err), ST_INVALID, "neither all");
    assert_fails(store_session_share(store, "nix", "*", &err), ST_NOT_FOUND, "no session nix");
    assert_ok(store_trial_share(store, records[0].uid, "|blue|", &err));
    assert_ok(store_trials(store, "shared", &arena, &n, &records, &err));
    assert_string_equal(records[0].shared, "|blue|");
    assert_ok(store_session_get(store, "shared", &arena, &session, &err));
    assert_string_equal(session.shared, "|blue|green|");
    assert_fails(store_trial_share(store, records[0].uid, "blue", &err), ST_INVALID, "neither all");
    assert_fails(store_trial_share(store, "nix", "*", &err), ST_NOT_FOUND, "no trial nix");
    uint64_t counts[STORED_SESSION_STATE_COUNT], again[STORED_SESSION_STATE_COUNT];
    assert_ok(store_session_counts(store, counts, &err));
    assert_true(counts[STORED_SESSION_CANCELLED] >= 1);
    assert_ok(store_session_update(store, "shared", STORED_SESSION_DONE, NULL, &err));
    assert_ok(store_session_counts(store, again, &err));
    assert_int_equal(again[STORED_SESSION_CANCELLED], counts[STORED_SESSION_CANCELLED] - 1);
    assert_int_equal(again[STORED_SESSION_DONE], counts[STORED_SESSION_DONE] + 1);
    static const char *const bad[] = {"|", "||", "|a", "a|", "|a||b|", "|a b|", "**"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(shared_is_valid(bad[i]));
    assert_true(shared_is_valid("*") && shared_is_valid("") && shared_is_valid("|a|") && shared_is_valid("|a.b|c_d|"));
    arena_release(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_holder_of_the_attempt_may_report),
        cmocka_unit_test(a_trial_that_is_lost_is_offered_again_up_to_a_limit),
        cmocka_unit_test(an_effect_its_event_and_its_answer_stand_or_fall_together),
        cmocka_unit_test(transactions_nest),
        cmocka_unit_test(steps_within_steps_leave_what_those_wrote_that_ended_well),
        cmocka_unit_test(leases_outlive_the_process),
        cmocka_unit_test(events_are_replayed_from_where_one_stopped),
        cmocka_unit_test(an_answer_belongs_to_a_token_a_key_and_a_request),
        cmocka_unit_test(operations_end_once),
        cmocka_unit_test(the_audit_says_who_changed_what),
        cmocka_unit_test(sessions_are_shared_anew_with_their_trials),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
