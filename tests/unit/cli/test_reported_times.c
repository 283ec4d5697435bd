/* Times that a script tells: lists, files of JSON lines, of values and of other lines, and what is none of these. */
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "cli/reported_times.h"
#include "tests/support/check.h"

static void assert_told(const struct reported_times_options *words, size_t n, const double *us) {
    struct error err;
    size_t told;
    double *times_us;
    assert_ok(reported_times_read(words, &told, &times_us, &err));
    assert_int_equal(told, n);
    for (size_t i = 0; i < n; i++)
        assert_close(times_us[i], us[i], 1e-12);
    free(times_us);
}

static void assert_refused(const struct reported_times_options *words, enum status status, const char *part) {
    struct error err;
    size_t n = 77;
    double *times_us = NULL;
    assert_fails(reported_times_read(words, &n, &times_us, &err), status, part);
    assert_int_equal(n, 77);
    assert_null(times_us);
}

#define TIMES(...)                                                                                                     \
    sizeof((double[]){__VA_ARGS__}) / sizeof(double), (const double[]) {                                               \
        __VA_ARGS__                                                                                                    \
    }

static void a_list_has_times_and_rates(void **state) {
    (void)state;
    assert_told(&(struct reported_times_options){.list = "12ms,11.5 ms, 1s"}, TIMES(12000, 11500, 1e6));
    assert_told(&(struct reported_times_options){.list = "64samples/s,1ms", .samples = 32}, TIMES(500000, 1000));
    assert_told(&(struct reported_times_options){.list = "12ms", .warmup = 5}, TIMES(12000));
    assert_refused(&(struct reported_times_options){.list = "12ms,11"}, ST_INVALID, "say the unit");
    assert_refused(&(struct reported_times_options){.list = "12ms,,11ms"}, ST_INVALID, "no number");
    assert_refused(&(struct reported_times_options){.list = "64samples/s"}, ST_INVALID, "batch_per_device");
}

static void a_file_has_json_lines_or_values(void **state) {
    (void)state;
    const char *path = test_file("times", "{\"iteration\":0,\"time_us\":9}\n{\"iteration\":0,\"time_us\":8}\n\n"
                                          "{\"loss\":0.5}\n{\"iteration\":1,\"samples_per_s\":64}\n7us\n");
    struct reported_times_options words = {.file = path, .samples = 32};
    assert_told(&words, TIMES(9, 500000, 7));
    words.warmup = 2;
    assert_told(&words, TIMES(7));
    words.warmup = 3;
    assert_refused(&words, ST_INVALID, "3 iterations, of which the first 3 are for warming up");
    words.warmup = 0;
    words.samples = 0;
    assert_refused(&words, ST_INVALID, "times:5: ");
    words.file = test_file("talk", "9us\nepoch 1\n");
    assert_refused(&words, ST_INVALID, "talk:2: \"epoch 1\" is no time; give --pattern");
    words.file = test_file("cut", "{\"time_us\":9}\n{\"time_us\":8");
    assert_refused(&words, ST_INVALID, "cut:2: \"{\"time_us\":8\" is no JSON");
    words.file = "/nowhere/times";
    assert_refused(&words, ST_NOT_FOUND, "/nowhere/times: No such file");
    words.file = test_dir();
    assert_refused(&words, ST_ENVIRONMENT, "Is a directory");
}

static void a_pattern_finds_the_lines_that_count(void **state) {
    (void)state;
    struct reported_times_options words = {
        .file = test_file("output", "rank 0 begins\n step 1: 64.0 img/s\nstep 2: 32.0 img/s"),
        .pattern = "step [0-9]+: ([0-9.]+)",
        .unit = "samples/s",
        .samples = 32};
    assert_told(&words, TIMES(500000, 1e6));
    words.unit = "ms";
    assert_told(&words, TIMES(64000, 32000));
    words.unit = NULL;
    assert_refused(&words, ST_INVALID, "output:2: no unit stands behind the number");
    words.unit = "h";
    assert_refused(&words, ST_USAGE, "none of s, ms, us, samples/s");
    words.unit = "s";
    words.pattern = "took ([0-9.]+)";
    assert_refused(&words, ST_INVALID, "no line has the pattern \"took ([0-9.]+)\"");
    words.pattern = NULL;
    assert_refused(&words, ST_USAGE, "--unit is of the number that --pattern finds");
}

/* Any times come back in order, whatever their number. */
static void many_times_come_back_in_their_order(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int run = 0; run < 20; run++) {
        static double us[3000];
        static char text[64 * 3000];
        const size_t n = 1 + rng_below(&rng, 3000), warmup = rng_below(&rng, n);
        size_t used = 0;
        for (size_t i = 0; i < n; i++) {
            us[i] = (double)(1 + rng_below(&rng, 1000000));
            used += (size_t)snprintf(text + used, sizeof text - used,
                                     rng_below(&rng, 2) ? "{\"time_us\":%.0f}\n" : "%.0fus\n", us[i]);
        }
        const struct reported_times_options words = {.file = test_file("many", text), .warmup = warmup};
        assert_told(&words, n - warmup, us + warmup);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_has_times_and_rates),
        cmocka_unit_test(a_file_has_json_lines_or_values),
        cmocka_unit_test(a_pattern_finds_the_lines_that_count),
        cmocka_unit_test(many_times_come_back_in_their_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
