/* The pieces under the server that need no connection: the worker pool, matching of paths, texts and problems. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/text.h"
#include "service/http/routes.h"
#include "service/http/transport/events.h"
#include "service/http/transport/memory.h"
#include "service/http/transport/problem.h"
#include "service/http/transport/thread_pool.h"
#include "tests/support/check.h"

/* The pool. */

static atomic_int begun, done;
static atomic_bool hold;

static void count_one(void *context) {
    (void)context;
    atomic_fetch_add(&begun, 1);
    while (atomic_load(&hold))
        clock_sleep_us(500);
    atomic_fetch_add(&done, 1);
}

static void every_job_runs_once_even_those_that_wait_at_the_end(void **state) {
    (void)state;
    static struct thread_pool_job jobs[1000];
    atomic_store(&done, 0);
    struct thread_pool *pool = thread_pool_new(&(struct thread_pool_options){.threads = 3, .queue = 1000});
    for (int i = 0; i < 1000; i++) {
        jobs[i] = (struct thread_pool_job){.run = count_one};
        while (thread_pool_submit(pool, i % 2 ? "a" : "b", &jobs[i]) != POOL_TAKEN)
            clock_sleep_us(100);
    }
    thread_pool_free(pool);
    assert_int_equal(atomic_load(&done), 1000);
}

static void a_full_queue_refuses(void **state) {
    (void)state;
    static struct thread_pool_job jobs[100], late = {.run = count_one};
    atomic_store(&done, 0);
    atomic_store(&hold, true);
    struct thread_pool *pool = thread_pool_new(&(struct thread_pool_options){.threads = 1, .queue = 3});
    int taken = 0;
    for (int i = 0; i < 100; i++) {
        jobs[i] = (struct thread_pool_job){.run = count_one};
        taken += thread_pool_submit(pool, "a", &jobs[i]) == POOL_TAKEN;
        clock_sleep_us(100);
    }
    assert_in_range(taken, 3, 4);                        /* three wait, and one may run */
    assert_true(thread_pool_resubmit(pool, "a", &late)); /* what was taken before always finds room */
    atomic_store(&hold, false);
    thread_pool_close(pool);
    assert_int_equal(thread_pool_submit(pool, "a", &jobs[0]), POOL_FULL);
    assert_false(thread_pool_resubmit(pool, "a", &jobs[0]));
    thread_pool_free(pool);
    assert_int_equal(atomic_load(&done), taken + 1);
}

static void no_owner_has_more_than_its_share_of_threads_or_queue(void **state) {
    (void)state;
    static struct thread_pool_job greedy[40], other = {.run = count_one};
    atomic_store(&begun, 0);
    atomic_store(&done, 0);
    atomic_store(&hold, true);
    struct thread_pool *pool =
        thread_pool_new(&(struct thread_pool_options){.threads = 3, .share = 2, .queue = 30, .queue_share = 10});
    int taken = 0;
    for (int i = 0; i < 40; i++) {
        greedy[i] = (struct thread_pool_job){.run = count_one};
        const enum thread_pool_answer answer = thread_pool_submit(pool, "greedy", &greedy[i]);
        taken += answer == POOL_TAKEN;
        assert_true(answer == POOL_TAKEN || answer == POOL_OWNER_FULL);
        clock_sleep_us(300);
    }
    assert_in_range(taken, 11, 12);
    assert_int_equal(taken - atomic_load(&begun), 10); /* one thread is idle, and not for this owner */
    const int before = atomic_load(&begun);
    assert_int_equal(thread_pool_submit(pool, "other", &other), POOL_TAKEN);
    for (int i = 0; i < 5000 && atomic_load(&begun) == before; i++)
        clock_sleep_us(1000);
    assert_int_equal(atomic_load(&begun), before + 1); /* the other's job runs */
    atomic_store(&hold, false);
    thread_pool_free(pool);
    assert_int_equal(atomic_load(&done), taken + 1);
}

static char order[16];
static atomic_int n_order;

static void note(void *context) {
    order[atomic_fetch_add(&n_order, 1)] = *(const char *)context;
}

static void owners_take_turns(void **state) {
    (void)state;
    static struct thread_pool_job first = {.run = count_one}, jobs[6];
    atomic_store(&hold, true);
    struct thread_pool *pool = thread_pool_new(&(struct thread_pool_options){.threads = 1, .queue = 30});
    assert_int_equal(thread_pool_submit(pool, "x", &first), POOL_TAKEN);
    for (int i = 0; i < 6; i++) {
        char *owner = i < 4 ? "a" : "b";
        jobs[i] = (struct thread_pool_job){.run = note, .context = owner};
        assert_int_equal(thread_pool_submit(pool, owner, &jobs[i]), POOL_TAKEN);
    }
    atomic_store(&hold, false);
    thread_pool_free(pool);
    assert_string_equal(order, "ababaa");
}

struct parts {
    struct thread_pool *pool;
    struct thread_pool_job job;
    atomic_int times[500];
};

static void mark(void *context, size_t i) {
    struct parts *parts = context;
    atomic_fetch_add(&parts->times[i], 1);
}

static void spread_from_a_job(void *context) {
    struct parts *parts = context;
    thread_pool_each(parts->pool, "a", 500, mark, parts);
    atomic_fetch_add(&done, 1);
}

static void every_part_is_done_once_even_when_all_workers_spread(void **state) {
    (void)state;
    enum { JOBS = 20 };
    static struct parts parts[JOBS];
    atomic_store(&done, 0);
    struct thread_pool *pool = thread_pool_new(&(struct thread_pool_options){.threads = 2, .queue = 30});
    memset(parts, 0, sizeof parts);
    for (int i = 0; i < JOBS; i++) {
        parts[i].pool = pool;
        parts[i].job = (struct thread_pool_job){.run = spread_from_a_job, .context = &parts[i]};
        assert_int_equal(thread_pool_submit(pool, "a", &parts[i].job), POOL_TAKEN);
    }
    thread_pool_free(pool);
    assert_int_equal(atomic_load(&done), JOBS);
    for (int i = 0; i < JOBS; i++)
        for (int k = 0; k < 500; k++)
            assert_int_equal(atomic_load(&parts[i].times[k]), 1);
}

/* Memory of requests. */

static void no_owner_holds_more_than_half_and_all_not_more_than_all(void **state) {
    (void)state;
    struct memory *m = memory_new(1000);
    assert_int_equal(memory_share(m), 500);
    assert_false(memory_take(m, "a", 501));
    assert_true(memory_take(m, "a", 400));
    assert_false(memory_take(m, "a", 101));
    assert_true(memory_take(m, "b", 500));
    assert_true(memory_take(m, "a", 100));
    assert_false(memory_take(m, "c", 1));
    memory_give(m, "b", 500);
    assert_true(memory_take(m, "c", 500));
    memory_give(m, "a", 500);
    memory_give(m, "c", 500);
    assert_int_equal(memory_held(m), 0);
    memory_free(m);
}

/* Paths. */

static enum status nothing(struct request *rq, struct response *rs, struct error *err) {
    (void)rq, (void)rs, (void)err;
    return ST_OK;
}

#define ROW(method, pattern)                                                                                           \
    { method, pattern, ROLE_NONE, 0, "", NULL, NULL, "x", "200", "", "", nothing, "x" }
static const struct route rows[] = {
    ROW("GET", "/a"),
    ROW("POST", "/a"),
    ROW("GET", "/a/{id}"),
    ROW("POST", "/a/{id}:go"),
    ROW("POST", "/a/{id}:stop"),
    ROW("GET", "/a/{id}/b/{n}"),
    ROW("POST", "/a:batch"),
    ROW("GET", "/"),
};

static enum route_match match(const char *method, const char *path, size_t *row, struct request *request) {
    static char allow[128];
    const struct route *found = NULL;
    request_release(request);
    *request = (struct request){0};
    enum route_match result =
        route_match(rows, sizeof rows / sizeof *rows, method, path, request, &found, allow, sizeof allow);
    *row = found ? (size_t)(found - rows) : SIZE_MAX;
    return result;
}

static void paths_find_their_rows(void **state) {
    (void)state;
    struct request rq = {0};
    size_t row;
    static const struct {
        const char *method, *path;
        enum route_match match;
        size_t row;
    } cases[] = {
        {"GET", "/a", ROUTE_FOUND, 0},
        {"HEAD", "/a", ROUTE_FOUND, 0},
        {"POST", "/a", ROUTE_FOUND, 1},
        {"GET", "/a/x", ROUTE_FOUND, 2},
        {"POST", "/a/x:go", ROUTE_FOUND, 3},
        {"POST", "/a/x:stop", ROUTE_FOUND, 4},
        {"GET", "/a/x/b/7", ROUTE_FOUND, 5},
        {"POST", "/a:batch", ROUTE_FOUND, 6},
        {"GET", "/", ROUTE_FOUND, 7},
        {"PUT", "/a", ROUTE_NO_METHOD, SIZE_MAX},
        {"GET", "/a/x:go", ROUTE_NO_METHOD, SIZE_MAX},
        {"POST", "/a/x:fly", ROUTE_NO_PATH, SIZE_MAX},
        {"GET", "/a/", ROUTE_NO_PATH, SIZE_MAX},
        {"GET", "/a//b/7", ROUTE_NO_PATH, SIZE_MAX},
        {"GET", "a", ROUTE_NO_PATH, SIZE_MAX},
        {"GET", "", ROUTE_NO_PATH, SIZE_MAX},
        {"GET", "/a/x/b", ROUTE_NO_PATH, SIZE_MAX},
        {"GET", "/A", ROUTE_NO_PATH, SIZE_MAX},
        {"GET", "/a/%", ROUTE_BAD_PATH, SIZE_MAX},
        {"GET", "/a/%0g", ROUTE_BAD_PATH, SIZE_MAX},
        {"GET", "/a/%00", ROUTE_BAD_PATH, SIZE_MAX},
        {"GET", "/a/%ff", ROUTE_BAD_PATH, SIZE_MAX},
        {"POST", "/a/:go", ROUTE_NO_PATH, SIZE_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum route_match got = match(cases[i].method, cases[i].path, &row, &rq);
        if (got != cases[i].match || row != cases[i].row)
            fail_msg("%s %s: match %d, row %zu", cases[i].method, cases[i].path, got, row);
    }
    assert_int_equal(match("GET", "/a/x%3Ago%2f%C3%A9/b/7", &row, &rq), ROUTE_FOUND);
    assert_string_equal(request_parameter(&rq, "id"), "x:go/\xc3\xa9");
    assert_string_equal(request_parameter(&rq, "n"), "7");
    assert_null(request_parameter(&rq, "m"));
    request_release(&rq);
}

static void random_paths_never_hurt(void **state) {
    (void)state;
    static const char pieces[] = "/a%:{}b0f\xc3\xa9.";
    struct request rq = {0};
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int round = 0; round < 20000; round++) {
        char path[24];
        size_t row, n = (size_t)rng_below(&rng, sizeof path - 1);
        for (size_t i = 0; i < n; i++)
            path[i] = pieces[rng_below(&rng, sizeof pieces - 1)];
        path[n] = '\0';
        if (match("GET", path, &row, &rq) == ROUTE_FOUND)
            for (size_t i = 0; i < rq.n_parameters; i++)
                assert_true(text_is_clean(rq.parameters[i].value, strlen(rq.parameters[i].value)));
    }
    request_release(&rq);
}

static void words_are_found_whole(void **state) {
    (void)state;
    assert_true(route_has_word("a bc d", "bc") && route_has_word("a bc d", "a") && route_has_word("a bc d", "d"));
    assert_false(route_has_word("a bc d", "b"));
    assert_false(route_has_word("a bc d", "c"));
    assert_false(route_has_word("", "a"));
    assert_true(route_has_word("page_size size", "size"));
    assert_false(route_has_word("page_size", "size"));
}

static void an_error_about_the_body_has_a_pointer_beside_its_words(void **state) {
    (void)state;
    char detail[ERROR_TEXT_ROOM];
    struct error err;
    error_at(&err, ST_INVALID, "body", "is wrong: all of it");
    assert_string_equal(problem_pointer(&err), "");
    assert_string_equal(problem_detail(&err, detail), "is wrong: all of it");
    error_inside(&err, ST_INVALID, "/variables/3");
    error_inside(&err, ST_INVALID, "/model");
    assert_string_equal(problem_pointer(&err), "/model/variables/3");
    assert_string_equal(problem_detail(&err, detail), "is wrong: all of it");
    error_at(&err, ST_INVALID, "file.json", "is\twrong");
    error_inside(&err, ST_INVALID, "/a");
    assert_null(problem_pointer(&err));
    assert_string_equal(problem_detail(&err, detail), "file.json: /a: is wrong");
}

static void a_refusal_has_its_own_code_and_any_other_failure_that_of_its_status(void **state) {
    (void)state;
    struct error err;
    for (enum problem p = PROBLEM_BAD_REQUEST; p < PROBLEM_COUNT; p++) {
        assert_fails(problem_fail(&err, p, "no %d", 7), ST_UNREACHABLE, "no 7");
        assert_int_equal(problem_of(&err), p);
        assert_string_equal(err.code, problem_code(p));
    }
    error_set(&err, ST_CONFLICT, "no");
    assert_int_equal(problem_of(&err), PROBLEM_CONFLICT);
}

static void every_status_has_a_problem_of_a_fitting_code(void **state) {
    (void)state;
    static const unsigned codes[] = {
        [ST_USAGE] = 400,     [ST_INVALID] = 422,     [ST_NOT_FOUND] = 404, [ST_TOO_LARGE] = 413, [ST_INFEASIBLE] = 422,
        [ST_CONFLICT] = 409,  [ST_ENVIRONMENT] = 500, [ST_TRIAL] = 500,     [ST_TIMEOUT] = 504,   [ST_NUMERIC] = 500,
        [ST_NO_MEMORY] = 507, [ST_UNREACHABLE] = 503, [ST_CANCELLED] = 503};
    for (int st = ST_USAGE; st <= ST_CANCELLED; st++) {
        enum problem problem = problem_of_status((enum status)st);
        assert_int_not_equal(problem, PROBLEM_NONE);
        assert_int_equal(problem_status(problem), codes[st]);
    }
}

static void etags_are_compared_as_rfc_9110_says(void **state) {
    (void)state;
    struct request rq = {.if_none_match = "\"a\", W/\"b\" ,\"c\"", .if_match = "\"a\", W/\"b\""};
    assert_true(request_has_etag(&rq, "a") && request_has_etag(&rq, "b") && request_has_etag(&rq, "c"));
    assert_false(request_has_etag(&rq, "d"));
    assert_false(request_has_etag(&rq, ""));
    assert_true(request_matches(&rq, "a"));
    assert_false(request_matches(&rq, "b")); /* weak ones are never equal here */
    rq = (struct request){.if_none_match = "*", .if_match = "*"};
    assert_true(request_has_etag(&rq, "x") && request_matches(&rq, "x"));
    rq = (struct request){.if_none_match = "\"a", .if_match = "a"};
    assert_false(request_has_etag(&rq, "a"));
    assert_false(request_matches(&rq, "a"));
    rq = (struct request){0};
    assert_false(request_has_etag(&rq, "a"));
    assert_true(request_matches(&rq, "a"));
}

static void events_are_written_as_the_standard_says(void **state) {
    (void)state;
    struct event_text text = {0};
    struct error err;
    assert_ok(event_append(&text, 7, "trial", "{\"a\":1}", &err));
    assert_int_equal(text.n, strlen("id: 7\nevent: trial\ndata: {\"a\":1}\n\n"));
    assert_memory_equal(text.text, "id: 7\nevent: trial\ndata: {\"a\":1}\n\n", text.n);
    for (uint64_t i = 0; i < 1000; i++)
        assert_ok(event_append(&text, UINT64_MAX - i, "x", "{}", &err));
    assert_memory_equal(text.text + text.n - 2, "\n\n", 2);
    free(text.text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_job_runs_once_even_those_that_wait_at_the_end),
        cmocka_unit_test(a_full_queue_refuses),
        cmocka_unit_test(no_owner_has_more_than_its_share_of_threads_or_queue),
        cmocka_unit_test(owners_take_turns),
        cmocka_unit_test(no_owner_holds_more_than_half_and_all_not_more_than_all),
        cmocka_unit_test(every_part_is_done_once_even_when_all_workers_spread),
        cmocka_unit_test(paths_find_their_rows),
        cmocka_unit_test(random_paths_never_hurt),
        cmocka_unit_test(words_are_found_whole),
        cmocka_unit_test(an_error_about_the_body_has_a_pointer_beside_its_words),
        cmocka_unit_test(a_refusal_has_its_own_code_and_any_other_failure_that_of_its_status),
        cmocka_unit_test(every_status_has_a_problem_of_a_fitting_code),
        cmocka_unit_test(etags_are_compared_as_rfc_9110_says),
        cmocka_unit_test(events_are_written_as_the_standard_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
