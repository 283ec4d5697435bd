/* Sizes and times: what people write and what they read. */
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "tests/support/check.h"

static void bytes_are(const char *text, uint64_t want) {
    struct error err = {0};
    uint64_t bytes = 0;
    assert_ok(units_parse_bytes(text, &bytes, &err));
    assert_true(bytes == want);
}

static void time_is(const char *text, double want) {
    struct error err = {0};
    double us = -1;
    assert_ok(units_parse_time(text, &us, &err));
    assert_close(us, want, 1e-12);
}

static void sizes_are_read_in_binary_and_decimal_units(void **state) {
    (void)state;
    bytes_are("64", 64);
    bytes_are("64K", 65536);
    bytes_are("4MiB", 4194304);
    bytes_are("25 MB", 25000000);
    bytes_are("1G", 1073741824);
    bytes_are("1GB", 1000000000);
    bytes_are("1.5KiB", 1536);
    bytes_are("64k", 65536);
    bytes_are("0", 0);
    bytes_are("7B", 7);
    bytes_are("18446744073709551615", UINT64_MAX);
}

static void times_are_read_in_their_units(void **state) {
    (void)state;
    time_is("90", 90e6);
    time_is("90s", 90e6);
    time_is("5m", 300e6);
    time_is("1.5h", 5400e6);
    time_is("250ms", 250e3);
    time_is("40us", 40);
    time_is("40\xc2\xb5s", 40);
    time_is("0.5 s", 0.5e6);
}

static void what_is_no_size_or_time_is_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"",    "K",   "-5",  "+5",  "1..2", ".",    "1e3", "0x10",
                                      "inf", "nan", "5 5", "5KK", " 5",   "5 K ", NULL};
    struct error err = {0};
    uint64_t bytes = 7;
    double us = 7;
    for (size_t i = 0; bad[i]; i++) {
        assert_fails(units_parse_bytes(bad[i], &bytes, &err), ST_USAGE, "is not a size; write for example");
        assert_fails(units_parse_time(bad[i], &us, &err), ST_USAGE, "is not a time; write for example");
    }
    assert_fails(units_parse_bytes("18446744073709551616", &bytes, &err), ST_USAGE, "64 bits");
    assert_fails(units_parse_bytes("99999999T", &bytes, &err), ST_USAGE, "64 bits");
    assert_fails(units_parse_time("99999999999d", &us, &err), ST_USAGE, "too long");
    assert_true(bytes == 7);
    assert_close(us, 7, 0);
}

static void shown_bytes_are(uint64_t bytes, const char *want) {
    char out[32];
    assert_string_equal(units_format_bytes(bytes, out, sizeof out), want);
}

static void shown_time_is(double us, const char *want) {
    char out[32];
    assert_string_equal(units_format_time(us, out, sizeof out), want);
}

static void a_thousandth_more_looks_different(void **state) {
    (void)state;
    char one[32], more[32];
    for (double bytes = 5000; bytes < 1e18; bytes *= 1.37) {
        units_format_bytes_finely((uint64_t)bytes, one, sizeof one);
        units_format_bytes_finely((uint64_t)(bytes * 1.0011), more, sizeof more);
        assert_string_not_equal(one, more);
    }
    assert_string_equal(units_format_bytes_finely(7589888, one, sizeof one), "7.238 MiB");
    assert_string_equal(units_format_bytes_finely(UINT64_C(4) << 20, one, sizeof one), "4 MiB");
}

static void budget_is(const char *text, const char *want) {
    struct error err = {0};
    uint64_t bytes = 0;
    char out[64];
    assert_ok(units_parse_memory(text, &bytes, &err));
    assert_string_equal(units_format_budget(bytes, out, sizeof out), want);
}

static void memory_is_shown_as_typed_and_in_the_units_of_needs(void **state) {
    (void)state;
    budget_is("80GB", "80GB (74.51 GiB)");
    budget_is("3.6GB", "3.6GB (3.353 GiB)");
    budget_is("800MB", "800MB (762.9 MiB)");
    budget_is("1000000", "1MB (976.6 KiB)");
    budget_is("20KB", "20KB (19.53 KiB)");
    budget_is("24GiB", "24 GiB");
    budget_is("24G", "24 GiB");
    budget_is("1.5GiB", "1.500 GiB");
    budget_is("1000MiB", "1000 MiB");
    budget_is("125KiB", "125 KiB");
    budget_is("36099B", "35.25 KiB");
    budget_is("9B", "9 B");
}

/* Nobody means "--memory 24" as bytes. */
static void memory_below_a_million_needs_a_unit(void **state) {
    (void)state;
    struct error err = {0};
    uint64_t bytes = 7;
    assert_fails(units_parse_memory("24", &bytes, &err), ST_USAGE, "24 is 24 bytes; write 24GB or 24GiB");
    assert_fails(units_parse_memory("1.5 ", &bytes, &err), ST_USAGE, "1.5 is 1 byte; write 1.5GB or 1.5GiB");
    assert_fails(units_parse_memory("800", &bytes, &err), ST_USAGE, "800 is 800 bytes; write 800MB or 800MiB");
    assert_fails(units_parse_memory("999999", &bytes, &err), ST_USAGE, "write 999999MB or 999999MiB");
    assert_fails(units_parse_memory("0", &bytes, &err), ST_USAGE, "nothing fits into 0 bytes");
    assert_fails(units_parse_memory("0GB", &bytes, &err), ST_USAGE, "nothing fits into 0 bytes");
    assert_fails(units_parse_memory("lots", &bytes, &err), ST_USAGE, "is not a size");
    assert_true(bytes == 7);
}

static void sizes_are_shown_short(void **state) {
    (void)state;
    shown_bytes_are(0, "0 B");
    shown_bytes_are(1023, "1023 B");
    shown_bytes_are(4194304, "4 MiB");
    shown_bytes_are(26214401, "25.0 MiB");
    shown_bytes_are(1536, "1.5 KiB");
    shown_bytes_are(1048575, "1.0 MiB"); /* never "1024.0 KiB" */
    shown_bytes_are(UINT64_MAX, "16.0 EiB");
}

static void times_are_shown_with_three_digits_or_in_clock_form(void **state) {
    (void)state;
    shown_time_is(0, "0 \xc2\xb5s");
    shown_time_is(0.25, "0.25 \xc2\xb5s");
    shown_time_is(812, "812 \xc2\xb5s");
    shown_time_is(999.6, "1.00 ms");
    shown_time_is(3420, "3.42 ms");
    shown_time_is(34200, "34.2 ms");
    shown_time_is(1207000, "1.207 s");
    shown_time_is(999.6e3, "1.000 s");
    shown_time_is(59.9999e6, "1 min 00 s");
    shown_time_is(125e6, "2 min 05 s");
    shown_time_is(3599.7e6, "1 h 00 min");
    shown_time_is(7500e6, "2 h 05 min");
    shown_time_is(-3420, "-3.42 ms");
    shown_time_is(INFINITY, "infinite");
    shown_time_is(NAN, "unknown");
}

static void rates_turn_into_bytes_per_microsecond(void **state) {
    (void)state;
    assert_close(units_gbit_per_s(1), 125, 1e-15);
    assert_close(units_gbyte_per_s(12), 12000, 1e-15);
}

static void a_time_that_is_not_known_has_words_of_its_own(void **state) {
    (void)state;
    const double unknown[] = {NAN, INFINITY, 0, -1};
    char out[32];
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(units_format_known_time(unknown[i], "-", out, sizeof out), "-");
    assert_string_equal(units_format_known_time(812, "-", out, sizeof out), "812 µs");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_time_that_is_not_known_has_words_of_its_own),
        cmocka_unit_test(sizes_are_read_in_binary_and_decimal_units),
        cmocka_unit_test(times_are_read_in_their_units),
        cmocka_unit_test(what_is_no_size_or_time_is_refused),
        cmocka_unit_test(sizes_are_shown_short),
        cmocka_unit_test(memory_is_shown_as_typed_and_in_the_units_of_needs),
        cmocka_unit_test(memory_below_a_million_needs_a_unit),
        cmocka_unit_test(a_thousandth_more_looks_different),
        cmocka_unit_test(times_are_shown_with_three_digits_or_in_clock_form),
        cmocka_unit_test(rates_turn_into_bytes_per_microsecond),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
