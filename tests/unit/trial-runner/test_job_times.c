/* What of a line is a time: patterns with units, and JSON lines. */
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "tests/support/check.h"
#include "trial-runner/job_times.h"

static double match(const char *pattern, enum job_unit unit, double samples, const char *line) {
    struct job_times times;
    struct error err;
    double us = -1;
    assert_ok(job_times_init(&times, pattern, unit, samples, &err));
    job_times_begin(&times);
    if (!job_times_match(&times, line, strlen(line), &us))
        us = *times.odd ? -2 : -1;
    job_times_release(&times);
    return us;
}

static void a_unit_may_stand_behind_the_number(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double us;
    } lines[] = {{"took 12.5 ms", 12500},
                 {"took 12.5ms.", 12500},
                 {"took 2 s", 2e6},
                 {"took 2 seconds", 2e6},
                 {"took 7us", 7},
                 {"took 7 \u00b5s, good", 7},
                 {"took 1e-3 s", 1000},
                 {"took 3 microseconds)", 3},
                 {"took 12", -2},
                 {"took 12 samples/s", -2},
                 {"took 12 s/step", -2},
                 {"took 12 miles", -2},
                 {"took 0 ms", -2},
                 {"took -3 ms", -2},
                 {"took 1e300 s", -2},
                 {"nothing of the kind", -1},
                 {"", -1}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_close(match("took ([-0-9.e]+)", JOB_UNIT_SUFFIX, 0, lines[i].text), lines[i].us, 1e-12);
}

static void a_unit_that_is_given_counts_alone(void **state) {
    (void)state;
    assert_close(match("t=([0-9.]+)", JOB_UNIT_S, 0, "t=0.25 ms"), 250000, 1e-12);
    assert_close(match("t=([0-9.]+)", JOB_UNIT_MS, 0, "t=0.25"), 250, 1e-12);
    assert_close(match("t=([0-9.]+)", JOB_UNIT_US, 0, "t=0.25"), 0.25, 1e-12);
    assert_close(match("([0-9.]+) images", JOB_UNIT_RATE, 64, "128.0 images/s"), 500000, 1e-12);
    assert_close(match("([0-9.]+) images", JOB_UNIT_RATE, 64, "0 images/s"), -2, 0);
}

static void a_rate_needs_to_know_the_samples(void **state) {
    (void)state;
    struct job_times times;
    struct error err;
    assert_fails(job_times_init(&times, "([0-9]+)", JOB_UNIT_RATE, 0, &err), ST_USAGE, "batch_per_device");
}

static void a_pattern_has_one_group(void **state) {
    (void)state;
    struct job_times times;
    struct error err;
    assert_fails(job_times_init(&times, "a([0-9]", JOB_UNIT_S, 0, &err), ST_USAGE, "a([0-9]");
    assert_fails(job_times_init(&times, "a[0-9]", JOB_UNIT_S, 0, &err), ST_USAGE, "0 groups");
    assert_fails(job_times_init(&times, "(a)([0-9])", JOB_UNIT_S, 0, &err), ST_USAGE, "2 groups");
}

static void a_group_that_takes_no_part_is_no_time(void **state) {
    (void)state;
    assert_close(match("step( [0-9]+)?", JOB_UNIT_S, 0, "step"), -1, 0);
}

static void a_pattern_is_looked_for_at_the_head_of_a_long_line(void **state) {
    (void)state;
    static char line[100000];
    memset(line, 'x', sizeof line - 1);
    memcpy(line, "t=5 ms ", 7);
    assert_close(match("t=([0-9]+)", JOB_UNIT_SUFFIX, 0, line), 5000, 1e-12);
    memset(line, 'x', 7);
    memcpy(line + 50000, "t=5 ms ", 7);
    assert_close(match("t=([0-9]+)", JOB_UNIT_SUFFIX, 0, line), -1, 0);
}

static double json(struct job_times *times, const char *line) {
    double us;
    return job_times_json(times, line, strlen(line), &us) ? us : -1;
}

static void json_lines_have_a_time_or_a_rate(void **state) {
    (void)state;
    struct job_times times;
    struct error err;
    assert_ok(job_times_init(&times, NULL, JOB_UNIT_SUFFIX, 32, &err));
    job_times_begin(&times);
    assert_close(json(&times, "{\"time_us\": 12.5}"), 12.5, 1e-12);
    assert_close(json(&times, "  {\"loss\": 0.1, \"samples_per_s\": 64}"), 500000, 1e-12);
    assert_string_equal(times.odd, "");
    assert_close(json(&times, "{\"loss\": 0.1}"), -1, 0);
    assert_close(json(&times, "[1, 2]"), -1, 0);
    assert_close(json(&times, "{not json"), -1, 0);
    assert_string_equal(times.odd, "");
    assert_close(json(&times, "{\"time_us\": \"12\"}"), -1, 0);
    assert_contains(times.odd, "\"12\"");
    job_times_release(&times);
}

static void iterations_rise_and_what_is_told_again_does_not_count(void **state) {
    (void)state;
    struct job_times times;
    struct error err;
    assert_ok(job_times_init(&times, NULL, JOB_UNIT_SUFFIX, 0, &err));
    for (int run = 0; run < 2; run++) {
        job_times_begin(&times);
        assert_close(json(&times, "{\"iteration\": 0, \"time_us\": 5}"), 5, 1e-12);
        assert_close(json(&times, "{\"iteration\": 0, \"time_us\": 6}"), -1, 0);
        assert_close(json(&times, "{\"iteration\": 2, \"time_us\": 7}"), 7, 1e-12);
        assert_close(json(&times, "{\"iteration\": 1, \"time_us\": 8}"), -1, 0);
        assert_close(json(&times, "{\"time_us\": 9}"), 9, 1e-12);
    }
    job_times_release(&times);
}

static double value(double samples, const char *text) {
    struct job_times times;
    struct error err;
    double us;
    assert_ok(job_times_init(&times, NULL, JOB_UNIT_SUFFIX, samples, &err));
    job_times_begin(&times);
    if (!job_times_value(&times, text, &us))
        us = strstr(times.odd, "batch_per_device") ? -2 : *times.odd ? -1 : 0;
    job_times_release(&times);
    return us;
}

static void a_value_has_its_unit_and_nothing_else(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double us;
    } values[] = {{"12.5ms", 12500},     {" 12.5 ms ", 12500},   {"2s", 2e6},  {"7us", 7},   {"32samples/s", 2e6},
                  {"32 samples/s", 2e6}, {"32 samples/sec", -1}, {"12", -1},   {"ms", -1},   {"", -1},
                  {"12ms!", -1},         {"12 ms 13 ms", -1},    {"0ms", -1},  {"-1ms", -1}, {"0samples/s", -1},
                  {"nan ms", -1},        {"32 samples/s 1", -1}, {"inf s", -1}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        assert_close(value(64, values[i].text), values[i].us, 1e-12);
    assert_close(value(0, "12ms"), 12000, 1e-12);
}

static void a_rate_of_unknown_samples_is_said_to_be_one(void **state) {
    (void)state;
    struct job_times times;
    struct error err;
    assert_close(value(0, "32samples/s"), -2, 0);
    assert_ok(job_times_init(&times, NULL, JOB_UNIT_SUFFIX, 0, &err));
    job_times_begin(&times);
    assert_close(json(&times, "{\"samples_per_s\": 64}"), -1, 0);
    assert_contains(times.odd, "batch_per_device");
    job_times_release(&times);
}

/* Whatever a job says, a time that is found is one. */
static void random_lines_give_times_or_nothing(void **state) {
    (void)state;
    static const char alphabet[] = "{}\":,0123456789.-+einf time_usamplrow\t\\[]";
    struct job_times with, without;
    struct error err;
    struct rng rng;
    rng_seed(&rng, test_seed());
    assert_ok(job_times_init(&with, "t.*e[ :]*([^ ]+)", JOB_UNIT_MS, 8, &err));
    assert_ok(job_times_init(&without, NULL, JOB_UNIT_SUFFIX, 8, &err));
    job_times_begin(&with);
    job_times_begin(&without);
    for (int i = 0; i < 20000; i++) {
        char line[96];
        size_t n = rng_below(&rng, 2) ? (size_t)snprintf(line, sizeof line, "{\"time_us\":") : 0;
        for (size_t more = rng_below(&rng, 60); more; more--)
            line[n++] = alphabet[rng_below(&rng, sizeof alphabet - 1)];
        line[n] = 0;
        double us;
        if (job_times_match(&with, line, n, &us) || job_times_json(&without, line, n, &us) ||
            job_times_value(&without, line, &us))
            assert_true(us > 0 && us < 1e15);
    }
    job_times_release(&with);
    job_times_release(&without);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_unit_may_stand_behind_the_number),
        cmocka_unit_test(a_unit_that_is_given_counts_alone),
        cmocka_unit_test(a_rate_needs_to_know_the_samples),
        cmocka_unit_test(a_pattern_has_one_group),
        cmocka_unit_test(a_group_that_takes_no_part_is_no_time),
        cmocka_unit_test(a_pattern_is_looked_for_at_the_head_of_a_long_line),
        cmocka_unit_test(json_lines_have_a_time_or_a_rate),
        cmocka_unit_test(iterations_rise_and_what_is_told_again_does_not_count),
        cmocka_unit_test(a_value_has_its_unit_and_nothing_else),
        cmocka_unit_test(a_rate_of_unknown_samples_is_said_to_be_one),
        cmocka_unit_test(random_lines_give_times_or_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
