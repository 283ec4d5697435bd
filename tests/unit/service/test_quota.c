/* Daily quotas of trials: what is left, when it frees, restarts, and requests at the same time. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "service/quota.h"
#include "tests/support/check.h"

static const struct principal who = {.token = "0123456789ab", .team = "t", .role = ROLE_RUN, .trials_per_day = 10};
static char path[600];

/* The clocks of this test: the wall's is so much ahead, and so much time has passed for both. */
static long ahead_s, passed_s;

int clock_gettime(clockid_t clock, struct timespec *out) {
    const int result = (int)syscall(SYS_clock_gettime, clock, out);
    if (!result && clock == CLOCK_REALTIME)
        out->tv_sec += ahead_s + passed_s;
    if (!result && clock == CLOCK_BOOTTIME)
        out->tv_sec += passed_s;
    return result;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}

static int set_up(void **state) {
    static int number;
    (void)state;
    snprintf(path, sizeof path, "%s/quota-%d.usage", test_dir(), number++);
    return 0;
}

static struct quota *reopen(struct quota *old) {
    struct error err;
    struct quota *q;
    quota_close(old);
    assert_ok(quota_open(path, &q, &err));
    return q;
}

/* A line of `age_s` ago. */
static void write_line(double age_s, int trials) {
    FILE *to = fopen(path, "a");
    assert_non_null(to);
    fprintf(to, "{\"token\":\"%s\",\"at_s\":%lld,\"trials\":%d}\n", who.token, (long long)(time(NULL) - (time_t)age_s),
            trials);
    fclose(to);
}

static void what_is_left_is_granted_and_no_more(void **state) {
    (void)state;
    struct quota *q = reopen(NULL);
    uint64_t granted;
    unsigned wait_s;
    assert_true(quota_reserve(q, &who, 1, 4, &granted, &wait_s));
    assert_int_equal(granted, 4);
    quota_settle(q, &who, 4, 3); /* one was not used */
    assert_int_equal(quota_used(q, who.token), 3);
    assert_true(quota_reserve(q, &who, 1, 64, &granted, &wait_s));
    assert_int_equal(granted, 7);
    assert_false(quota_reserve(q, &who, 1, 1, &granted, &wait_s)); /* reserved, not yet used: it may come back */
    assert_int_equal(wait_s, 1);
    quota_settle(q, &who, 7, 7);
    assert_false(quota_reserve(q, &who, 1, 1, &granted, &wait_s));
    assert_in_range(wait_s, 86390, 86400);
    assert_false(quota_reserve(q, &who, 11, 11, &granted, &wait_s));
    assert_int_equal(wait_s, 0); /* never */
    assert_int_equal(quota_used(q, who.token), 10);
    assert_int_equal(quota_used(q, "ba9876543210"), 0);
    quota_close(q);
}

static void without_a_quota_nothing_is_counted(void **state) {
    (void)state;
    struct quota *q = reopen(NULL);
    uint64_t granted;
    unsigned wait_s;
    const struct principal free_token = {.token = "0123456789ab"}, nobody = {.trials_per_day = 3};
    assert_true(quota_reserve(q, &free_token, 1000, 1000, &granted, &wait_s));
    assert_int_equal(granted, 1000);
    quota_settle(q, &free_token, 1000, 1000);
    assert_true(quota_reserve(q, &nobody, 1000, 1000, &granted, &wait_s));
    assert_int_equal(quota_used(q, free_token.token), 0);
    assert_int_not_equal(access(path, F_OK), 0);
    quota_close(q);
}

static void trials_free_when_they_are_a_day_old(void **state) {
    (void)state;
    uint64_t granted;
    unsigned wait_s;
    write_line(86400 + 100, 10); /* long ago */
    write_line(86400 - 300, 4);
    write_line(86400 - 5000, 3);
    write_line(50, 2);
    struct quota *q = reopen(NULL);
    assert_int_equal(quota_used(q, who.token), 9);
    assert_false(quota_reserve(q, &who, 2, 2, &granted, &wait_s));
    assert_in_range(wait_s, 295, 300);
    assert_false(quota_reserve(q, &who, 6, 6, &granted, &wait_s));
    assert_in_range(wait_s, 4995, 5000);
    assert_true(quota_reserve(q, &who, 1, 5, &granted, &wait_s));
    assert_int_equal(granted, 1);
    quota_close(q);
}

static void a_restart_forgets_nothing_that_was_used(void **state) {
    (void)state;
    uint64_t granted, sum = 0;
    unsigned wait_s;
    struct stat at;
    struct quota *q = reopen(NULL);
    for (unsigned i = 0; i < 6; i++) {
        assert_true(quota_reserve(q, &who, 1, 2, &granted, &wait_s));
        quota_settle(q, &who, granted, i % 2);
        sum += i % 2;
        if (i == 4)
            assert_true(quota_reserve(q, &who, 1, 1, &granted, &wait_s)); /* and never settled: the service died */
        if (i % 2 == 0)
            q = reopen(q);
        assert_int_equal(quota_used(q, who.token), sum);
    }
    assert_int_equal(stat(path, &at), 0);
    assert_int_equal(at.st_mode & 0777, 0600);
    quota_close(q);
}

static void assert_used_up(struct quota *q) {
    uint64_t granted;
    unsigned wait_s;
    assert_int_equal(quota_used(q, who.token), 10);
    assert_false(quota_reserve(q, &who, 1, 1, &granted, &wait_s));
    assert_in_range(wait_s, 1, 86400);
}

/* Forward, back again, far back, each with and without a restart in between. */
static void a_clock_that_jumps_gives_no_fresh_quota_and_locks_nobody_out(void **state) {
    (void)state;
    static const long jumps_s[] = {2 * 86400, 0, -30 * 86400, 400 * 86400, 0};
    uint64_t granted;
    unsigned wait_s;
    struct quota *q = reopen(NULL);
    assert_true(quota_reserve(q, &who, 10, 10, &granted, &wait_s));
    quota_settle(q, &who, 10, 10);
    for (size_t i = 0; i < sizeof jumps_s / sizeof *jumps_s; i++) {
        ahead_s = jumps_s[i];
        assert_used_up(q);
        q = reopen(q);
        assert_used_up(q);
    }
    ahead_s = -30 * 86400;
    passed_s = 86400 + 1;
    assert_int_equal(quota_used(q, who.token), 0);
    q = reopen(q);
    assert_int_equal(quota_used(q, who.token), 0);
    ahead_s = passed_s = 0;
    quota_close(q);
}

/* What was written while the clock was behind, and read after the machine has begun anew with the clock set right. */
static void a_machine_that_begins_anew_believes_the_later_clock(void **state) {
    (void)state;
    char text[300];
    uint64_t granted;
    unsigned wait_s;
    struct quota *q = reopen(NULL);
    ahead_s = -2 * 86400;
    assert_true(quota_reserve(q, &who, 10, 10, &granted, &wait_s));
    quota_settle(q, &who, 10, 10);
    quota_close(q);
    ahead_s = 0;
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    char *boot = strstr(text, "\"boot\":\"");
    assert_non_null(boot);
    memcpy(boot + 8, "otherone", 8);
    rewind(file);
    fputs(text, file);
    fclose(file);
    q = reopen(NULL);
    assert_used_up(q);
    quota_close(q);
}

static void lines_that_are_none_are_skipped(void **state) {
    (void)state;
    FILE *to = fopen(path, "w");
    assert_non_null(to);
    fputs("\n{}\n[1]\n{\"token\":\"short\",\"at_s\":1,\"trials\":1}\n{\"token\":\"0123456789ab\",\"at_s\":\"x\","
          "\"trials\":1}\n"
          "{\"token\":\"0123456789ab\",\"at_s\":-5,\"trials\":9}\n{\"token\":\"0123456789ab\",\"at_s\":1e300,"
          "\"trials\":9}\n",
          to);
    fclose(to);
    write_line(-90000, 2); /* the clock was set back since */
    to = fopen(path, "a");
    assert_non_null(to);
    fputs("{\"token\":\"0123456789ab\",\"at_", to); /* cut by a crash */
    fclose(to);
    struct quota *q = reopen(NULL);
    assert_int_equal(quota_used(q, who.token), 2);
    quota_close(q);
}

static void the_file_does_not_grow_for_ever(void **state) {
    (void)state;
    struct stat at;
    write_line(70, 1);
    FILE *to = fopen(path, "a");
    assert_non_null(to);
    for (int i = 0; i < 10000; i++)
        fputs("{\"token\":\"ffffffffffff\",\"at_s\":1,\"trials\":1}\n", to);
    fclose(to);
    struct quota *q = reopen(NULL);
    uint64_t granted;
    unsigned wait_s;
    assert_true(quota_reserve(q, &who, 1, 1, &granted, &wait_s));
    quota_settle(q, &who, 1, 1);
    assert_int_equal(stat(path, &at), 0);
    assert_true(at.st_size < 200);
    q = reopen(q);
    assert_int_equal(quota_used(q, who.token), 2);
    quota_close(q);
}

enum { THREADS = 8, TURNS = 200 };
static struct quota *shared;
static atomic_int had;

static void *take_often(void *context) {
    (void)context;
    struct principal much = who;
    much.trials_per_day = 500;
    for (int i = 0; i < TURNS; i++) {
        uint64_t granted;
        unsigned wait_s;
        if (!quota_reserve(shared, &much, 1, 3, &granted, &wait_s))
            continue;
        const uint64_t used = granted > (uint64_t)(i % 3) ? (uint64_t)(i % 3) : granted;
        atomic_fetch_add(&had, (int)used);
        quota_settle(shared, &much, granted, used);
    }
    return NULL;
}

static void requests_at_once_do_not_overdraw_together(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    shared = reopen(NULL);
    atomic_store(&had, 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_often, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&had), 500); /* 8 × 200 turns wanted 1,600 */
    shared = reopen(shared);
    assert_int_equal(quota_used(shared, who.token), 500);
    quota_close(shared);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_is_left_is_granted_and_no_more, set_up),
        cmocka_unit_test_setup(without_a_quota_nothing_is_counted, set_up),
        cmocka_unit_test_setup(trials_free_when_they_are_a_day_old, set_up),
        cmocka_unit_test_setup(a_clock_that_jumps_gives_no_fresh_quota_and_locks_nobody_out, set_up),
        cmocka_unit_test_setup(a_machine_that_begins_anew_believes_the_later_clock, set_up),
        cmocka_unit_test_setup(a_restart_forgets_nothing_that_was_used, set_up),
        cmocka_unit_test_setup(lines_that_are_none_are_skipped, set_up),
        cmocka_unit_test_setup(the_file_does_not_grow_for_ever, set_up),
        cmocka_unit_test_setup(requests_at_once_do_not_overdraw_together, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
