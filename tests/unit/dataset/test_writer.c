/* Several threads write through one writer while others read with stores of their own: nothing acknowledged is missing,
 * a step that fails harms no other, and readers see whole transactions only. For ThreadSanitizer too. */
#include <pthread.h>
#include <sqlite3.h>

#include "dataset/check.h"
#include "dataset/events.h"
#include "dataset/store_internal.h"
#include "dataset/writer.h"
#include "tests/unit/dataset/fixture.h"

enum { WRITERS = 6, READERS = 2, STEPS = 40 };

static struct writer *writer;
static struct fixture f;
static char path[256];

/* A trial, and an event that tells of it. */
static enum status add_trial(void *context, struct store *store, struct error *err) {
    const int *step = context;
    const struct new_trial request = request_of(&f, NULL);
    int64_t trial;
    enum status status = store_trial_begin(store, &request, &trial, err);
    if (status == ST_OK)
        status = finish_trial(store, trial, 100, err);
    if (status == ST_OK)
        status = event_add(store, "s", "trial", "{}", NULL, err);
    return status == ST_OK && *step % 4 == 3 ? error_set(err, ST_CANCELLED, "step %d thinks better of it", *step)
                                             : status;
}

/* cmocka's assertions belong to the main thread, so threads count what went wrong. */
static void *write_steps(void *arg) {
    size_t *wrong = arg;
    for (int i = 0; i < STEPS; i++) {
        struct error err = {0};
        const enum status status = writer_run(writer, add_trial, &i, &err);
        *wrong += status != (i % 4 == 3 ? ST_CANCELLED : ST_OK);
        *wrong += i % 4 == 3 && !strstr(ERROR_TEXT(&err), "thinks better of it");
    }
    return NULL;
}

static void *read_pairs(void *arg) {
    size_t *wrong = arg;
    uint64_t trials = 0;
    while (trials < (uint64_t)WRITERS * STEPS * 3 / 4) {
        struct error err = {0};
        struct arena arena = {0};
        struct stored_event *events;
        struct store *store;
        size_t n;
        uint64_t before = trials, after;
        if (store_open(path, STORE_READ_ONLY, &store, &err) != ST_OK) {
            ++*wrong;
            return NULL;
        }
        *wrong += query_count(store, &(struct query){0}, &trials, &err) != ST_OK || trials < before;
        *wrong += event_list(store, "s", 0, 0, &arena, &n, &events, &err) != ST_OK || n < trials;
        *wrong += query_count(store, &(struct query){0}, &after, &err) != ST_OK || after < n;
        arena_release(&arena);
        store_close(store);
    }
    return NULL;
}

static int count_commit(void *count) {
    ++*(int *)count;
    return 0;
}

static void threads_write_and_read_at_once(void **state) {
    (void)state;
    struct error err = {0};
    pthread_t threads[WRITERS + READERS];
    size_t wrong[WRITERS + READERS] = {0};
    int transactions = 0;
    struct check_report report;
    snprintf(path, sizeof path, "%s", dataset_path("threads.db"));
    struct store *store = must_open(path, STORE_READ_WRITE);
    f = put_fixture(store);
    if (!test_database())
        sqlite3_commit_hook(store->db, count_commit, &transactions);
    assert_ok(writer_new(store, &writer, &err));
    for (size_t i = 0; i < WRITERS + READERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i < WRITERS ? write_steps : read_pairs, &wrong[i]), 0);
    for (size_t i = 0; i < WRITERS + READERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(wrong[i], 0);
    }
    print_message("# %d steps of %d threads in %d transactions\n", WRITERS * STEPS, WRITERS, transactions);
    if (!test_database())
        assert_in_range(transactions, 1, WRITERS * STEPS);
    writer_free(writer);
    assert_int_equal(count_trials(store), WRITERS * STEPS * 3 / 4);
    assert_ok(check_run(store, NULL, NULL, &report, &err));
    assert_int_equal(report.problems, 0);
    store_close(store);
}

static void one_thread_alone_may_use_it_too(void **state) {
    (void)state;
    struct error err = {0};
    int step = 0;
    struct store *store = must_open(dataset_path("alone.db"), STORE_READ_WRITE);
    f = put_fixture(store);
    assert_ok(writer_new(store, &writer, &err));
    assert_ok(writer_run(writer, add_trial, &step, &err));
    step = 3;
    assert_fails(writer_run(writer, add_trial, &step, &err), ST_CANCELLED, "step 3");
    assert_int_equal(count_trials(store), 1);
    writer_free(writer);
    writer_free(NULL);
    store_close(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_write_and_read_at_once),
        cmocka_unit_test(one_thread_alone_may_use_it_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
