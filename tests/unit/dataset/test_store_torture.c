/* Every allocation fails once, ours and then SQLite's: the answer is ST_NO_MEMORY, or ST_OK where SQLite can do
 * without, nothing leaks, and the file stays sound. */
#include <fcntl.h>
#include <malloc.h>
#include <sqlite3.h>
#include <unistd.h>

#include "dataset/check.h"
#include "dataset/events.h"
#include "dataset/export.h"
#include "dataset/import.h"
#include "dataset/leases.h"
#include "dataset/merge.h"
#include "dataset/requests.h"
#include "tests/support/torture.h"
#include "tests/unit/dataset/fixture.h"

/* SQLite's allocator: libc's, until the countdown ends. */
static struct {
    bool armed, failed;
    long until_failure;
} sqlite;

static bool fails_now(void) {
    if (!sqlite.armed || sqlite.failed || sqlite.until_failure-- > 0)
        return false;
    return sqlite.failed = true;
}

/* sqlite3_realloc is not sqlite3_malloc's pair here: what SQLite takes must not count as ours. */
void *__real_malloc(size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *memory);

static void *take(int n) {
    return fails_now() ? NULL : __real_malloc((size_t)n);
}
static void *resize(void *old, int n) {
    return fails_now() ? NULL : __real_realloc(old, (size_t)n);
}
static int size_of(void *memory) {
    return (int)malloc_usable_size(memory);
}
static int round_up(int n) {
    return (n + 7) & ~7;
}
static int begin(void *data) {
    (void)data;
    return SQLITE_OK;
}
static void end(void *data) {
    (void)data;
}

static char path[256];  /* a small dataset, which every life begins anew from `other` */
static char other[256]; /* to be merged in */

/* By plain system calls, which allocate nothing. A log that a close without memory left behind goes too. */
static void begin_anew(void) {
    static const char *const tails[] = {"-wal", "-shm"};
    char bytes[4096], side[300];
    for (size_t i = 0; i < 2; i++) {
        snprintf(side, sizeof side, "%s%s", path, tails[i]);
        unlink(side);
    }
    ssize_t n;
    const int from = open(other, O_RDONLY), to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_true(from >= 0 && to >= 0);
    while ((n = read(from, bytes, sizeof bytes)) > 0)
        assert_int_equal(write(to, bytes, (size_t)n), n);
    close(from);
    close(to);
}

static void keep_first(void *context, const char *problem) {
    struct error *err = context;
    if (err->status == ST_OK)
        error_set(err, ST_INVALID, "%s", problem);
}

static enum status read_back(struct store *store, struct error *err) {
    struct arena arena = {0};
    struct record *records;
    struct stored_session session;
    struct check_report report;
    struct error problem = {0};
    size_t n;
    enum status status = store_trials(store, "s", &arena, &n, &records, err);
    if (status == ST_OK)
        status = store_session_get(store, "s", &arena, &session, err);
    if (status == ST_OK)
        status = check_run(store, keep_first, &problem, &report, err);
    if (status == ST_OK && report.problems > 0)
        status = error_set(err, problem.status, "%s", problem.message);
    arena_release(&arena);
    return status;
}

/* The file's own export changes nothing. */
static enum status export_and_import(struct store *store, struct import_counts *counts, struct error *err) {
    static char text[65536];
    const struct query query = {.iterations = true};
    FILE *file = fmemopen(text, sizeof text, "w+");
    enum status status = file ? export_references(store, &query, file, err) : error_no_memory(err);
    if (status == ST_OK)
        status = export_run(store, &query, EXPORT_JSON_LINES, file, NULL, err);
    if (status == ST_OK) {
        rewind(file);
        status = import_run(store, file, "text", NULL, counts, err);
    }
    if (file)
        fclose(file);
    return status;
}

static enum status write_once(struct store *store, struct error *err) {
    struct fixture f;
    int64_t trial;
    enum status status = put_object(store, STORE_MODEL, "tiny", TINY_MODEL, &f.model, err);
    if (status == ST_OK)
        status = put_object(store, STORE_CLUSTER, "pair", PAIR_CLUSTER, &f.cluster, err);
    if (status == ST_OK)
        status = store_find(store, STORE_STRATEGY, "wfbp", &f.strategy, err);
    if (status != ST_OK)
        return status;
    const struct new_trial request = request_of(&f, "s");
    status = store_trial_begin(store, &request, &trial, err);
    return status == ST_OK ? finish_trial(store, trial, 12, err) : status;
}

/* A lease, an event, an answer and a batch in one transaction, then a page by a filter, an export and its import. */
static enum status serve(struct store *store, struct error *err) {
    struct arena arena = {0};
    struct fixture f;
    struct new_trial request;
    struct record *page;
    struct import_report report;
    struct import_counts counts;
    struct stored_response answer = {.status = 200, .content_type = "", .body = "{}", .length = 2};
    enum response_match match;
    int64_t trial;
    size_t n;
    char next[QUERY_CURSOR_ROOM];
    enum status status = store_find(store, STORE_MODEL, "tiny", &f.model, err);
    if (status == ST_OK)
        status = store_find(store, STORE_CLUSTER, "pair", &f.cluster, err);
    if (status == ST_OK)
        status = store_find(store, STORE_STRATEGY, "wfbp", &f.strategy, err);
    if (status == ST_OK)
        status = store_begin(store, err);
    if (status != ST_OK)
        return status;
    request = request_of(&f, "s");
    request.waiting = true;
    status = store_trial_begin(store, &request, &trial, err);
    if (status == ST_OK)
        status = lease_take(store, trial, "client", 1e6, NULL, err);
    if (status == ST_OK)
        status = event_add(store, "s", "trial", "{}", NULL, err);
    if (status == ST_OK)
        status = response_put(store, "t", "k", "f", &answer, err);
    const struct record record = {.model = f.model.hex,
                                  .cluster = f.cluster.hex,
                                  .strategy = f.strategy.hex,
                                  .proposer = "p",
                                  .runner = "r",
                                  .predicted_us = (double)NAN,
                                  .mean_us = (double)NAN,
                                  .median_us = (double)NAN,
                                  .low_us = (double)NAN,
                                  .high_us = (double)NAN,
                                  .n_iterations = 1,
                                  .iterations_us = (const double[]){7},
                                  .state = RECORD_COMPLETE};
    if (status == ST_OK)
        status = store_trials_import(store, 1, &record, NULL, &report, err);
    status = store_end(store, status, err);
    const struct query query = {.filter = "model = tiny and (state=complete or session ~ 's')", .limit = 1};
    if (status == ST_OK)
        status = query_page(store, &query, &arena, &n, &page, next, err);
    if (status == ST_OK)
        status = response_find(store, "t", "k", "f", &arena, &match, &answer, err);
    if (status == ST_OK)
        status = export_and_import(store, &counts, err);
    arena_release(&arena);
    return status;
}

/* What is done between opening and closing. */
enum { WRITE = 1, MERGE = 2, SERVE = 4 };

static enum status one_life(void *arg, struct error *err) {
    const unsigned *parts = arg;
    struct store *store = NULL;
    struct merge_report merged;
    begin_anew();
    enum status status = store_open(path, STORE_READ_WRITE, &store, err);
    if (status == ST_OK && *parts & WRITE)
        status = write_once(store, err);
    if (status == ST_OK && *parts & WRITE)
        status = read_back(store, err);
    if (status == ST_OK && *parts & MERGE)
        status = merge_run(store, other, &merged, err);
    if (status == ST_OK && *parts & SERVE)
        status = serve(store, err);
    store_close(store);
    return status;
}

static void make_files(const char *name, const char *second) {
    struct error err = {0};
    snprintf(path, sizeof path, "%s", dataset_path("%s", name));
    snprintf(other, sizeof other, "%s", dataset_path("%s", second));
    struct store *store = must_open(path, STORE_READ_WRITE);
    const struct fixture f = put_fixture(store);
    must_begin_session(store, &f, "s", 1);
    must_run_trial(store, &f, "s", 5);
    must_run_trial(store, &f, "s", 12);
    assert_ok(store_backup(store, other, &err));
    store_close(store);
}

/* Each part in a life of its own, so that what fails late need not do what comes before. */
static void our_allocations_may_fail(void **state) {
    (void)state;
    make_files("ours.db", "ours2.db");
    for (unsigned part = WRITE; part <= SERVE; part *= 2) {
        const size_t n = torture(one_life, &part);
        print_message("# %zu of our allocations failed in turn\n", n);
        assert_true(n > 10);
    }
}

static void allocations_of_sqlite_may_fail(void **state) {
    (void)state;
    struct error err = {0};
    unsigned parts = WRITE | MERGE | SERVE;
    make_files("theirs.db", "theirs2.db");
    assert_ok(one_life(&parts, &err));
    const int64_t before = sqlite3_memory_used();
    long n = 0;
    /* Past the first hundred, some: a life has thousands. */
    for (;; n += n < 100 ? 1 : 83) {
        sqlite.until_failure = n;
        sqlite.failed = false;
        sqlite.armed = true;
        const enum status status = one_life(&parts, &err);
        sqlite.armed = false;
        if (status != ST_OK && status != ST_NO_MEMORY)
            fail_msg("allocation %ld: %s: %s", n, status_word(status), ERROR_TEXT(&err));
        if (sqlite3_memory_used() != before)
            fail_msg("allocation %ld: %lld bytes leaked", n, (long long)(sqlite3_memory_used() - before));
        if (!sqlite.failed)
            break;
    }
    print_message("# of %ld allocations of SQLite\n", n);
    struct store *store = must_open(path, STORE_READ_ONLY);
    assert_ok(read_back(store, &err));
    store_close(store);
}

int main(void) {
    static const sqlite3_mem_methods methods = {take, __real_free, resize, size_of, round_up, begin, end, NULL};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(our_allocations_may_fail),
        cmocka_unit_test(allocations_of_sqlite_may_fail),
    };
    if (sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) != SQLITE_OK || sqlite3_initialize() != SQLITE_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
