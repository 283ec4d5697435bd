/* The keeper of a trial against a scripted service: what it says and when, and what makes it end a run. */
#include <fcntl.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/keeper.h"
#include "tests/unit/cli/scripted_service.h"

static atomic_int interrupted;
static const double LEASE_US = 0.6e6; /* a word each 0.2 s */

static struct keeper *keep(const struct script *s) {
    const struct remote_options remote = {.server = s->url};
    const struct keeper_options options = {.remote = &remote,
                                           .session = "s1",
                                           .client = "me",
                                           .number = 7,
                                           .attempt = 2,
                                           .lease_us = LEASE_US,
                                           .interrupted = &interrupted};
    struct keeper *keeper;
    struct error err;
    interrupted = 0;
    assert_ok(keeper_start(&options, &keeper, &err));
    return keeper;
}

/* At most two minutes: machines may be busy. */
static bool wait_for_flag(const struct keeper *keeper) {
    for (int i = 0; i < 12000 && !*keeper_flag(keeper); i++)
        clock_sleep_us(10e3);
    return *keeper_flag(keeper);
}

static void it_keeps_the_lease_while_nothing_is_measured(void **state) {
    (void)state;
    struct script s;
    START(s, OK("{\"lease_s\":0.6,\"stop\":false}"), OK("{\"lease_s\":0.6,\"stop\":true}"));
    const double start = clock_now_us();
    struct keeper *keeper = keep(&s);
    assert_true(wait_for_flag(keeper));
    assert_true(clock_now_us() - start >= 2 * LEASE_US / 3);
    assert_int_equal(keeper_stop(keeper), KEEPER_STOP);
    script_end(&s);
    for (size_t i = 0; i < s.n; i++) {
        assert_contains(s.requests[i], "POST /api/v1/sessions/s1/trials/7:heartbeat HTTP/1.1\r\n");
        assert_contains(s.requests[i], "\r\n\r\n{\"client\":\"me\",\"attempt\":2}");
    }
}

static void it_reports_what_was_measured_and_ends_a_run_that_is_too_slow(void **state) {
    (void)state;
    struct script s;
    START(s, OK("{\"lease_s\":0.6,\"stop\":true}"));
    struct keeper *keeper = keep(&s);
    keeper_add(keeper, 1500);
    keeper_add(keeper, 2500.5);
    assert_true(wait_for_flag(keeper));
    assert_int_equal(keeper_stop(keeper), KEEPER_STOP);
    script_end(&s);
    assert_contains(s.requests[0], "/trials/7:report ");
    assert_contains(s.requests[0], "\"iterations_us\":[1500,2500.5]");
}

static void a_trial_that_is_no_longer_ours_is_ended(void **state) {
    (void)state;
    struct script s;
    START(s, PROBLEM("409 No", "stale-attempt", ""));
    struct keeper *keeper = keep(&s);
    assert_true(wait_for_flag(keeper));
    assert_int_equal(keeper_stop(keeper), KEEPER_LOST);
    script_end(&s);
}

static void a_service_that_is_away_does_not_end_a_run(void **state) {
    (void)state;
    struct script s;
    START(s, NULL, PROBLEM("503 Busy", "draining", ""), OK("{\"lease_s\":0.6,\"stop\":true}"));
    struct keeper *keeper = keep(&s);
    clock_sleep_us(LEASE_US / 2);
    assert_int_equal(*keeper_flag(keeper), 0);
    assert_true(wait_for_flag(keeper));
    assert_int_equal(keeper_stop(keeper), KEEPER_STOP);
    script_end(&s);
}

static void who_is_interrupted_ends_the_run_without_a_word(void **state) {
    (void)state;
    struct script s;
    script_start(&s, 0, NULL);
    struct keeper *keeper = keep(&s);
    interrupted = 1;
    assert_true(wait_for_flag(keeper));
    assert_int_equal(keeper_stop(keeper), KEEPER_INTERRUPTED);
    script_end(&s);
}

static void a_keeper_of_a_short_run_says_nothing(void **state) {
    (void)state;
    struct script s;
    script_start(&s, 0, NULL);
    struct keeper *keeper = keep(&s);
    keeper_add(keeper, 1);
    assert_int_equal(keeper_stop(keeper), KEEPER_GO_ON);
    script_end(&s);
}

static atomic_int without_memory; /* so many pieces of cJSON's memory cannot be had */

static void *scarce(size_t size) {
    return without_memory > 0 && without_memory-- > 0 ? NULL : malloc(size);
}

/* What is logged until end_log: its text, valid until the next one. */
static int begin_log(void) {
    char path[256];
    const int before = dup(STDERR_FILENO);
    snprintf(path, sizeof path, "%.200s/log", test_dir());
    fflush(stderr);
    const int log = open(path, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
    assert_true(before >= 0 && log >= 0 && dup2(log, STDERR_FILENO) >= 0);
    close(log);
    log_set_level(LOG_DEBUG);
    return before;
}

static const char *end_log(int before) {
    static char text[8192];
    fflush(stderr);
    const ssize_t n = pread(STDERR_FILENO, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = 0;
    log_set_level(LOG_INFO);
    dup2(before, STDERR_FILENO);
    close(before);
    return text;
}

static void without_memory_it_says_so_and_tries_again(void **state) {
    (void)state;
    struct script s;
    START(s, OK("{\"lease_s\":0.6,\"stop\":true}"));
    const int before = begin_log();
    cJSON_InitHooks(&(cJSON_Hooks){scarce, free});
    without_memory = 1;
    struct keeper *keeper = keep(&s);
    const bool flagged = wait_for_flag(keeper);
    const enum keeper_verdict verdict = keeper_stop(keeper);
    cJSON_InitHooks(NULL);
    const char *log = end_log(before);
    script_end(&s);
    assert_true(flagged);
    assert_int_equal(verdict, KEEPER_STOP);
    assert_contains(log, "trial 7: out of memory\n");
}

int main(void) {
    unsetenv("http_proxy");
    unsetenv("all_proxy");
    unsetenv("SYNCOPATE_TOKEN");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_keeps_the_lease_while_nothing_is_measured),
        cmocka_unit_test(it_reports_what_was_measured_and_ends_a_run_that_is_too_slow),
        cmocka_unit_test(a_trial_that_is_no_longer_ours_is_ended),
        cmocka_unit_test(a_service_that_is_away_does_not_end_a_run),
        cmocka_unit_test(who_is_interrupted_ends_the_run_without_a_word),
        cmocka_unit_test(a_keeper_of_a_short_run_says_nothing),
        cmocka_unit_test(without_memory_it_says_so_and_tries_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
