/* Pages: put together they are the whole list, in its order, whatever was recorded meanwhile; a cursor serves only its
 * own list; a viewer sees what is shared with its team; and the documented queries neither scan nor sort. */
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/ingest.h"
#include "dataset/pages.h"
#include "dataset/query.h"
#include "tests/unit/dataset/fixture.h"

enum { TRIALS = 120 };

static struct store *store;
static struct fixture f;

/* Medians and predictions with ties; a third has no result, a quarter no prediction. */
static int set_up(void **state) {
    (void)state;
    struct error err = {0};
    store = must_open(dataset_path("pages.db"), STORE_READ_WRITE);
    f = put_fixture(store);
    must_begin_session(store, &f, "s", 1);
    assert_ok(store_begin(store, &err));
    for (int k = 0; k < TRIALS; k++) {
        struct new_trial request = request_of(&f, k % 2 ? "s" : NULL);
        request.predicted_us = k % 4 ? 100 + k * 7 % 10 : (double)NAN;
        request.team = k % 5 < 2 ? "red" : k % 5 == 2 ? "blue" : NULL;
        request.shared = k % 3 == 0 ? "" : k % 3 == 1 ? "*" : "|green|blue|";
        const int64_t trial = must_begin_trial(store, &request);
        if (k % 3)
            assert_ok(finish_trial(store, trial, 50 + k * 13 % 20, &err));
    }
    assert_ok(store_end(store, ST_OK, &err));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    store_close(store);
    return 0;
}

/* Row numbers of the whole list, and of its pages one after the other. */
static void compare_pages(struct query query, size_t size) {
    struct error err = {0};
    struct arena arena = {0};
    struct record *all, *page;
    size_t n, m, seen = 0;
    char next[QUERY_CURSOR_ROOM], after[QUERY_CURSOR_ROOM];
    query.limit = 0;
    assert_ok(query_collect(store, &query, &arena, &n, &all, &err));
    query.limit = size;
    do {
        assert_ok(query_page(store, &query, &arena, &m, &page, next, &err));
        assert_true(m == size || !*next);
        for (size_t i = 0; i < m; i++)
            assert_int_equal(page[i].trial, all[seen++].trial);
        memcpy(after, next, sizeof after);
        query.after = after;
    } while (*next);
    assert_int_equal(seen, n);
    arena_release(&arena);
}

static void pages_together_are_the_list_in_every_order(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 7, 40, TRIALS - 1, TRIALS, TRIALS + 1};
    for (enum query_order order = 0; order < QUERY_ORDER_COUNT; order++)
        for (int descending = 0; descending < 2; descending++)
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                const struct query query = {.order = order, .descending = descending};
                compare_pages(query, sizes[i]);
                struct query narrow = query;
                narrow.filter = "predicted_us > 101 OR proposer = nobody";
                narrow.viewer = "blue";
                compare_pages(narrow, sizes[i]);
                narrow = query;
                narrow.filter = "state = complete and session = s";
                compare_pages(narrow, sizes[i]);
                narrow.filter = "state = running";
                compare_pages(narrow, sizes[i]);
            }
}

static void a_page_of_large_records_ends_early(void **state) {
    (void)state;
    enum { LARGE = 7, BYTES = 6 << 20 };
    struct error err = {0};
    struct arena arena = {0};
    struct import_report report;
    struct record *page;
    size_t n, seen = 0, pages = 0;
    char next[QUERY_CURSOR_ROOM] = "", after[QUERY_CURSOR_ROOM];
    struct store *large = must_open(dataset_path("large.db"), STORE_READ_WRITE);
    const struct fixture of = put_fixture(large);
    char *environment = malloc(BYTES + 32);
    assert_non_null(environment);
    const int begun = sprintf(environment, "{\"a\":\"");
    memset(environment + begun, 'x', BYTES);
    strcpy(environment + begun + BYTES, "\"}");
    for (int i = 0; i < LARGE; i++) {
        const struct record r = {.model = of.model.hex,
                                 .cluster = of.cluster.hex,
                                 .strategy = of.strategy.hex,
                                 .state = RECORD_COMPLETE,
                                 .proposer = "wfbp",
                                 .runner = "lab",
                                 .predicted_us = (double)NAN,
                                 .mean_us = 5,
                                 .median_us = 5,
                                 .low_us = (double)NAN,
                                 .high_us = (double)NAN,
                                 .environment_json = environment};
        assert_ok(store_trials_import(large, 1, &r, NULL, &report, &err));
    }
    struct query query = {.limit = 5};
    do {
        assert_ok(query_page(large, &query, &arena, &n, &page, next, &err));
        assert_true(n == 2 || (!*next && n == 1)); /* 2 of 6 MiB are no more than 16 */
        for (size_t i = 0; i < n; i++)
            assert_int_equal(page[i].trial, ++seen);
        memcpy(after, next, sizeof after);
        query.after = after;
        pages++;
    } while (*next);
    assert_int_equal(seen, LARGE);
    assert_int_equal(pages, 4);
    free(environment);
    arena_release(&arena);
    store_close(large);
}

static void a_cursor_of_another_list_is_refused(void **state) {
    (void)state;
    struct error err = {0};
    struct arena arena = {0};
    struct record *page;
    size_t n;
    char next[QUERY_CURSOR_ROOM];
    struct query query = {.order = QUERY_BY_measured, .limit = 5};
    assert_ok(query_page(store, &query, &arena, &n, &page, next, &err));
    query.after = next;
    assert_ok(query_page(store, &query, &arena, &n, &page, (char[QUERY_CURSOR_ROOM]){0}, &err));
    query.limit = 3; /* another size of page is the same list */
    assert_ok(query_page(store, &query, &arena, &n, &page, (char[QUERY_CURSOR_ROOM]){0}, &err));
    struct query other = query;
    other.descending = true;
    assert_fails(query_page(store, &other, &arena, &n, &page, next, &err), ST_INVALID, "another filter or order");
    other = query;
    other.filter = "number > 1";
    assert_fails(query_page(store, &other, &arena, &n, &page, next, &err), ST_INVALID, "another filter or order");
    other = query;
    other.viewer = "blue";
    assert_fails(query_page(store, &other, &arena, &n, &page, next, &err), ST_INVALID, "another filter or order");
    static const char *const words[] = {"", "1", "x", "2222222222222222222222222222222222222222222222222x"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        other.after = words[i];
        assert_fails(query_page(store, &other, &arena, &n, &page, next, &err), ST_INVALID, "no page token");
    }
    other.limit = 0;
    assert_fails(query_page(store, &other, &arena, &n, &page, next, &err), ST_USAGE, "1 to 10000");
    arena_release(&arena);
}

static uint64_t count(const char *filter, const char *viewer) {
    struct error err = {0};
    uint64_t n;
    assert_ok(query_count(store, &(struct query){.filter = filter, .viewer = viewer}, &n, &err));
    return n;
}

static void a_viewer_sees_what_is_shared_with_its_team(void **state) {
    (void)state;
    assert_int_equal(count(NULL, NULL), TRIALS);
    assert_int_equal(count("team = red", NULL), 48);
    /* k % 3 == 1 is shared with all, k % 3 == 2 with green and blue, the rest with its own team alone. */
    assert_int_equal(count(NULL, "stranger"), 40);
    assert_int_equal(count(NULL, "green"), 80);
    assert_int_equal(count(NULL, "blue"), 88); /* and its own: every fifth of 40 */
    assert_int_equal(count(NULL, "red"), 72);  /* two of five of 80 more */
    assert_int_equal(count(NULL, "gree"), 40); /* the beginning of a name is not the name */
    assert_int_equal(count(NULL, "*"), 40);
    assert_int_equal(count("team = red", "stranger"), 16);
}

static void objects_come_in_pages(void **state) {
    (void)state;
    struct error err = {0};
    struct arena arena = {0};
    struct stored_object *objects;
    size_t n, seen = 0;
    char next[PAGE_CURSOR_ROOM], content[16];
    for (int i = 0; i < 10; i++) {
        snprintf(content, sizeof content, "[%d]", i);
        must_put(store, STORE_RANKER, i % 2 ? "odd" : "even", content);
    }
    const struct object_list odd = {.kind = STORE_RANKER, .name = "odd", .descending = true},
                             all = {.kind = STORE_RANKER};
    assert_ok(page_objects(store, &odd, NULL, 3, &arena, &n, &objects, next, &err));
    assert_int_equal(n, 3);
    assert_fails(page_objects(store, &all, next, 3, &arena, &n, &objects, next, &err), ST_INVALID, "another list");
    assert_ok(page_objects(store, &odd, next, 3, &arena, &n, &objects, next, &err));
    assert_int_equal(n, 2);
    assert_string_equal(next, "");
    for (const char *after = NULL; !after || *after; after = next) {
        assert_ok(page_objects(store, &all, after, 4, &arena, &n, &objects, next, &err));
        for (size_t i = 0; i < n; i++)
            assert_string_equal(objects[i].name, seen++ % 2 ? "odd" : "even");
    }
    assert_int_equal(seen, 10);
    arena_release(&arena);
}

static void sessions_come_in_pages_to_those_who_may_see_them(void **state) {
    (void)state;
    struct error err = {0};
    struct arena arena = {0};
    struct stored_session *sessions;
    size_t n, seen = 0;
    char next[PAGE_CURSOR_ROOM], id[16];
    const enum stored_session_mode ask = STORED_SESSION_ASK;
    for (int i = 0; i < 9; i++) {
        snprintf(id, sizeof id, "p%d", i);
        const struct stored_session session = {.id = id,
                                               .model = f.model.hex,
                                               .cluster = f.cluster.hex,
                                               .team = "red",
                                               .shared = i % 3 ? "*" : "",
                                               .mode = STORED_SESSION_ASK};
        assert_ok(store_session_begin(store, &session, &err));
    }
    struct session_list list = {.mode = &ask, .viewer = "red"};
    for (const char *after = NULL; !after || *after; after = next) {
        assert_ok(page_sessions(store, &list, after, 2, &arena, &n, &sessions, next, &err));
        for (size_t i = 0; i < n; i++, seen++) {
            snprintf(id, sizeof id, "p%zu", 8 - seen);
            assert_string_equal(sessions[i].id, id);
            assert_string_equal(sessions[i].team, "red");
        }
    }
    assert_int_equal(seen, 9);
    list.viewer = "blue";
    assert_ok(page_sessions(store, &list, NULL, 100, &arena, &n, &sessions, next, &err));
    assert_int_equal(n, 6);
    arena_release(&arena);
}

/* The statements that connections run, and how SQLite means to run them. */
static char plan[8192];

static int note_plan(unsigned type, void *context, void *statement, void *text) {
    (void)type;
    (void)text;
    sqlite3 *db = context;
    sqlite3_stmt *explain;
    char *sql = sqlite3_expanded_sql(statement), *whole = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sql);
    if ((strstr(sql, "FROM trials t CROSS JOIN") || strstr(sql, "SELECT id, median_us")) &&
        strncmp(sql, "EXPLAIN", 7) != 0 && sqlite3_prepare_v2(db, whole, -1, &explain, NULL) == SQLITE_OK) {
        while (sqlite3_step(explain) == SQLITE_ROW)
            snprintf(plan + strlen(plan), sizeof plan - strlen(plan), "%s\n",
                     (const char *)sqlite3_column_text(explain, 3));
        sqlite3_finalize(explain);
    }
    sqlite3_free(whole);
    sqlite3_free(sql);
    return 0;
}

static int trace(sqlite3 *db, char **message, const struct sqlite3_api_routines *api) {
    (void)message;
    (void)api;
    return sqlite3_trace_v2(db, SQLITE_TRACE_STMT, note_plan, db);
}

/* The plan of a page in the middle of the list, which must use `index`. */
static void assert_plan(struct store *reader, struct query query, const char *index) {
    struct error err = {0};
    struct arena arena = {0};
    struct record *records;
    size_t n;
    char next[QUERY_CURSOR_ROOM];
    query.limit = 2;
    for (int page = 0; page < 2; page++) {
        plan[0] = '\0';
        assert_ok(query_page(reader, &query, &arena, &n, &records, next, &err));
        if (strstr(plan, "TEMP B-TREE") || strstr(plan, "SCAN t\n") || !strstr(plan, index))
            fail_msg("page %d by %s, %s: expected %s without a scan or a sort:\n%s", page,
                     query_order_name(query.order), query.filter ? query.filter : "", index, plan);
        query.after = next;
        if (!*next)
            break;
    }
    arena_release(&arena);
}

static void documented_queries_neither_scan_nor_sort(void **state) {
    (void)state;
    SKIP_IN_POSTGRESQL(); /* whose planner goes by the rows that are there */
    static const char *const model = "model = tiny", *const both = "model = tiny AND cluster = pair";
    sqlite3_auto_extension((void (*)(void))trace);
    struct store *reader = must_open(dataset_path("pages.db"), STORE_READ_ONLY);
    for (int d = 0; d < 2; d++) {
        const struct query recorded = {.descending = d}, measured = {.order = QUERY_BY_measured, .descending = d},
                           number = {.order = QUERY_BY_number, .descending = d};
        struct query q = recorded;
        q.filter = model;
        assert_plan(reader, q, "trials_model (model=?");
        q.filter = both;
        assert_plan(reader, q, "trials_pair (model=? AND cluster=?");
        q.filter = "model = tiny AND state = complete AND runner = lab";
        assert_plan(reader, q, "trials_model (model=?");
        q.filter = "cluster = pair";
        assert_plan(reader, q, "trials_cluster (cluster=?");
        q.filter = "state = complete";
        assert_plan(reader, q, "trials_state (state=?");
        q.filter = "team = red";
        assert_plan(reader, q, "trials_team (team=?");
        q = measured;
        assert_plan(reader, q, "COVERING INDEX trials_problem (model=? AND cluster=?");
        q.filter = "measured_us < 1000 AND state = complete";
        assert_plan(reader, q, "COVERING INDEX trials_problem (model=? AND cluster=?");
        q.filter = model;
        assert_plan(reader, q, "COVERING INDEX trials_problem (model=? AND cluster=?");
        q.filter = both;
        assert_plan(reader, q, "trials_problem (model=? AND cluster=?");
        q.filter = "strategy = wfbp";
        assert_plan(reader, q, "trials_strategy (strategy=?");
        q.filter = "session = s AND state = complete";
        assert_plan(reader, q, "trials_session (session=? AND state=?");
        q = number;
        q.filter = "session = s";
        assert_plan(reader, q, "sqlite_autoindex_trials_2 (session=?");
    }
    store_close(reader);
    sqlite3_reset_auto_extension();
}

/* In the order of rows, a scan that begins at a row is a search. */
static void the_newest_begin_at_the_cursor(void **state) {
    (void)state;
    SKIP_IN_POSTGRESQL(); /* whose planner goes by the rows that are there */
    struct error err = {0};
    struct arena arena = {0};
    struct record *records;
    size_t n;
    char next[QUERY_CURSOR_ROOM];
    sqlite3_auto_extension((void (*)(void))trace);
    struct store *reader = must_open(dataset_path("pages.db"), STORE_READ_ONLY);
    struct query query = {.descending = true, .limit = 3};
    assert_ok(query_page(reader, &query, &arena, &n, &records, next, &err));
    query.after = next;
    plan[0] = '\0';
    assert_ok(query_page(reader, &query, &arena, &n, &records, next, &err));
    assert_contains(plan, "SEARCH t USING INTEGER PRIMARY KEY (rowid<?)");
    assert_null(strstr(plan, "TEMP B-TREE"));
    store_close(reader);
    sqlite3_reset_auto_extension();
    arena_release(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_together_are_the_list_in_every_order),
        cmocka_unit_test(a_page_of_large_records_ends_early),
        cmocka_unit_test(a_cursor_of_another_list_is_refused),
        cmocka_unit_test(a_viewer_sees_what_is_shared_with_its_team),
        cmocka_unit_test(objects_come_in_pages),
        cmocka_unit_test(sessions_come_in_pages_to_those_who_may_see_them),
        cmocka_unit_test(documented_queries_neither_scan_nor_sort),
        cmocka_unit_test(the_newest_begin_at_the_cursor),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
