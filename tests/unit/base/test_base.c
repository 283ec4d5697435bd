/* Errors, arenas, ids, clocks and the log. */
#include <math.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/id.h"
#include "base/log.h"
#include "base/utf8.h"
#include "tests/support/check.h"

static void an_error_is_cut_and_never_overrun(void **state) {
    (void)state;
    struct error err = {0};
    char text[2000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    assert_int_equal(error_set(&err, ST_TRIAL, "%s", text), ST_TRIAL);
    assert_int_equal(strlen(ERROR_TEXT(&err)), sizeof err.message - 1);
    assert_int_equal(error_set(NULL, ST_TRIAL, "nobody listens"), ST_TRIAL);
}

static void an_error_is_not_cut_inside_a_character(void **state) {
    (void)state;
    struct error err = {0};
    for (size_t before = 500; before <= 511; before++) {
        error_set(&err, ST_INVALID, "%*s\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac", (int)before, "");
        const size_t n = strlen(ERROR_TEXT(&err));
        assert_int_equal((n - before) % 3, 0);
        assert_true(sizeof err.message - 1 - n < 3);
    }
}

static void a_prefix_goes_before_the_message_and_keeps_the_status(void **state) {
    (void)state;
    struct error err = {0};
    error_set(&err, ST_NOT_FOUND, "no such node");
    assert_int_equal(error_prefix(&err, ST_NOT_FOUND, "trial %d", 7), ST_NOT_FOUND);
    assert_string_equal(ERROR_TEXT(&err), "trial 7: no such node");
    assert_string_equal(err.place, "trial 7");
    assert_string_equal(err.message, "no such node");
    char text[600];
    memset(text, 'p', sizeof text);
    text[sizeof text - 1] = '\0';
    assert_int_equal(error_prefix(&err, ST_NOT_FOUND, "%s", text), ST_NOT_FOUND);
    assert_int_equal(error_prefix(NULL, ST_INVALID, "%s", text), ST_INVALID);
    assert_int_equal(strlen(ERROR_TEXT(&err)), ERROR_TEXT_ROOM - 1);
    assert_string_equal(err.message, "trial 7: no such node");
}

static void an_error_keeps_its_place_its_pointer_and_its_message_apart(void **state) {
    (void)state;
    struct error err = {.position = 9}, copy;
    assert_int_equal(error_at(&err, ST_INVALID, "model.json", "must be %d", 3), ST_INVALID);
    assert_int_equal(err.position, 0);
    assert_string_equal(ERROR_TEXT(&err), "model.json: must be 3");
    assert_int_equal(error_inside(&err, ST_INVALID, "/%zu", (size_t)4), ST_INVALID);
    assert_int_equal(error_inside(&err, ST_INVALID, "/variables"), ST_INVALID);
    assert_string_equal(err.place, "model.json");
    assert_string_equal(err.pointer, "/variables/4");
    assert_string_equal(err.message, "must be 3");
    assert_string_equal(ERROR_TEXT(&err), "model.json: /variables/4: must be 3");
    assert_int_equal(error_pass(&copy, &err), ST_INVALID);
    assert_int_equal(error_pass(NULL, &err), ST_INVALID);
    assert_string_equal(ERROR_TEXT(&copy), ERROR_TEXT(&err));
    assert_int_equal(error_at(NULL, ST_INVALID, "nowhere", "nothing"), ST_INVALID);
    assert_int_equal(error_inside(NULL, ST_INVALID, "/a"), ST_INVALID);
    assert_int_equal(error_code(&err, ST_INVALID, "model-broken"), ST_INVALID);
    assert_int_equal(error_code(NULL, ST_INVALID, "model-broken"), ST_INVALID);
    error_prefix(&err, ST_INVALID, "here");
    assert_string_equal(err.code, "model-broken");
    assert_string_equal(ERROR_TEXT(&err), "here: model.json: /variables/4: must be 3");
    error_set(&err, ST_USAGE, "another error");
    assert_string_equal(ERROR_TEXT(&err), "another error");
    assert_string_equal(err.code, "");
}

/* The pointer is one into the inner document. */
static void a_prefix_makes_an_inner_place_part_of_the_message(void **state) {
    (void)state;
    struct error err;
    error_at(&err, ST_INVALID, "content", "is wrong");
    error_inside(&err, ST_INVALID, "/a");
    err.position = 5;
    error_prefix(&err, ST_INVALID, "text: line %d", 7);
    assert_string_equal(err.place, "text: line 7");
    assert_string_equal(err.pointer, "");
    assert_string_equal(err.message, "content: /a: is wrong");
    assert_int_equal(err.position, 0);
    error_set(&err, ST_INVALID, "is wrong");
    error_inside(&err, ST_INVALID, "/a");
    error_prefix(&err, ST_INVALID, "body");
    assert_string_equal(err.pointer, "/a");
    assert_string_equal(ERROR_TEXT(&err), "body: /a: is wrong");
}

static void every_part_of_an_error_is_cut_between_characters(void **state) {
    (void)state;
    struct error err;
    char place[ERROR_TEXT_ROOM + 9];
    for (int before = ERROR_TEXT_ROOM - 12; before < ERROR_TEXT_ROOM; before++) {
        snprintf(place, sizeof place, "%*s\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac", before, "");
        error_at(&err, ST_INVALID, place, "m");
        assert_int_equal((strlen(err.place) - (size_t)before) % 3, 0);
        assert_true(strlen(err.place) > ERROR_TEXT_ROOM - 4);
        assert_true(strlen(ERROR_TEXT(&err)) < ERROR_TEXT_ROOM);
        place[before - 20] = '\0'; /* place and message fit, and not both */
        error_at(&err, ST_INVALID, place, "%s",
                 "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac");
        assert_int_equal((strlen(ERROR_TEXT(&err)) - strlen(err.place) - 2) % 3, 0);
    }
    for (int before = ERROR_POINTER_ROOM - 9; before < ERROR_POINTER_ROOM; before++) {
        error_set(&err, ST_INVALID, "m");
        error_inside(&err, ST_INVALID, "/\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac");
        error_inside(&err, ST_INVALID, "/%*s", before - 1, "");
        assert_true(strlen(err.pointer) < ERROR_POINTER_ROOM);
        assert_true(strlen(err.pointer) <= (size_t)before || (strlen(err.pointer) - (size_t)before - 1) % 3 == 0);
    }
}

static void a_character_is_what_rfc_3629_allows(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t n, length;
    } cases[] = {{"a", 1, 1},
                 {"\xc3\xa9z", 3, 2},
                 {"\xe2\x82\xac", 3, 3},
                 {"\xe2\x82\xac", 2, 0}, /* cut */
                 {"\xf0\x9f\x99\x82", 4, 4},
                 {"\xf4\x8f\xbf\xbf", 4, 4}, /* U+10FFFF */
                 {"\xf4\x90\x80\x80", 4, 0}, /* beyond it */
                 {"\xf0\x8f\xbf\xbf", 4, 0}, /* longer than needed */
                 {"\xe0\x9f\xbf", 3, 0},
                 {"\xc1\xbf", 2, 0},
                 {"\xed\x9f\xbf", 3, 3},
                 {"\xed\xa0\x80", 3, 0}, /* a surrogate */
                 {"\x80", 1, 0},
                 {"\xf5\x80\x80\x80", 4, 0},
                 {"\xc3(", 2, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(utf8_length(cases[i].text, cases[i].n), cases[i].length);
}

static void an_array_that_grows_keeps_its_items(void **state) {
    (void)state;
    uint32_t *items = NULL;
    size_t room = 0, moves = 0;
    for (uint32_t i = 0; i < 100000; i++) {
        const size_t before = room;
        assert_true(GROW(&items, &room, i + 1u));
        moves += room != before;
        items[i] = i * 7;
    }
    assert_true(room >= 100000 && room < 200000);
    assert_true(moves < 20);
    for (uint32_t i = 0; i < 100000; i++)
        assert_int_equal(items[i], i * 7);
    uint32_t *const before = items;
    const size_t room_before = room;
    assert_false(GROW(&items, &room, SIZE_MAX)); /* whose bytes nothing can count */
    assert_false(GROW(&items, &room, SIZE_MAX / 4));
    assert_true(items == before && room == room_before);
    assert_true(GROW(&items, &room, 1000000u)); /* many at once */
    assert_int_equal(room, 1000000);
    assert_int_equal(items[99999], 99999 * 7);
    free(items);
}

static void each_status_has_its_word_and_exit_code(void **state) {
    (void)state;
    assert_string_equal(status_word(ST_INFEASIBLE), "infeasible");
    assert_int_equal(status_exit_code(ST_OK), 0);
    assert_int_equal(status_exit_code(ST_USAGE), 2);
    assert_int_equal(status_exit_code(ST_INFEASIBLE), 3);
    assert_int_equal(status_exit_code(ST_UNREACHABLE), 4);
    assert_int_equal(status_exit_code(ST_CANCELLED), 130);
}

static void arena_memory_is_zeroed_aligned_and_apart(void **state) {
    (void)state;
    struct arena arena = {0};
    for (size_t round = 0; round < 2; round++) {
        char *last = NULL;
        for (size_t i = 0; i < 3000; i++) {
            const size_t n = 1 + i * 37 % 5000;
            char *p = arena_alloc(&arena, n, 1);
            assert_non_null(p);
            assert_int_equal((uintptr_t)p % alignof(max_align_t), 0);
            for (size_t k = 0; k < n; k += 97)
                assert_int_equal(p[k], 0);
            memset(p, 0xee, n);
            assert_true(p != last);
            last = p;
        }
        arena_clear(&arena);
    }
    arena_release(&arena);
    assert_null(arena.blocks);
}

static void an_arena_request_that_overflows_is_refused(void **state) {
    (void)state;
    struct arena arena = {0};
    assert_null(arena_alloc(&arena, SIZE_MAX / 2, 4));
    assert_null(arena_alloc(&arena, SIZE_MAX, 1));
    assert_non_null(arena_alloc(&arena, 0, 8));
    assert_string_equal(arena_strdup(&arena, "text"), "text");
    assert_string_equal(arena_copy(&arena, "text", 2), "te");
    assert_string_equal(arena_printf(&arena, "%s-%d", "n", 4), "n-4");
    arena_release(&arena);
}

static void an_id_is_the_sha256_of_the_bytes(void **state) {
    (void)state;
    struct error err = {0};
    struct id id;
    assert_ok(id_of("abc", 3, &id, &err));
    assert_string_equal(id.hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_ok(id_of(NULL, 0, &id, &err));
    assert_string_equal(id.hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static void a_sleep_is_never_short(void **state) {
    (void)state;
    const double start = clock_now_us();
    clock_sleep_us(20000);
    const double took = clock_now_us() - start;
    assert_true(took >= 20000 && took < 5e6);
    clock_sleep_us(0);
    clock_sleep_us(-5);
}

static void a_time_stamp_is_iso_8601_in_utc(void **state) {
    (void)state;
    char out[25];
    int year, month, day, hour, minute, second, ms;
    clock_utc(out, sizeof out);
    assert_int_equal(strlen(out), 24);
    assert_int_equal(sscanf(out, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ", &year, &month, &day, &hour, &minute, &second, &ms), 7);
    assert_true(year >= 2024 && month >= 1 && month <= 12 && day >= 1 && hour < 24);
    assert_int_equal(out[23], 'Z');
}

static void a_time_stamp_is_of_a_time_that_there_is(void **state) {
    (void)state;
    static const char *const good[] = {"2026-11-21T08:41:17.123Z", "2024-02-29T00:00:00.000Z",
                                       "2000-02-29T23:59:59.999Z", "0001-01-01T00:00:00.000Z"};
    static const char *const bad[] = {"",
                                      "2026-11-21",
                                      "2026-11-21T08:41:17Z",
                                      "2026-11-21 08:41:17.123Z",
                                      "2026-11-21T08:41:17.123Z ",
                                      "2026-11-21T08:41:17.123+01:00",
                                      "2026-00-21T08:41:17.123Z",
                                      "2026-13-21T08:41:17.123Z",
                                      "2026-11-00T08:41:17.123Z",
                                      "2026-11-31T08:41:17.123Z",
                                      "2025-02-29T08:41:17.123Z",
                                      "1900-02-29T08:41:17.123Z",
                                      "2026-11-21T24:00:00.000Z",
                                      "2026-11-21T08:60:17.123Z",
                                      "2026-11-21T08:41:60.123Z"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(clock_is_utc(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(clock_is_utc(bad[i]));
    for (time_t second = 951696000; second < 951696000 + 10 * 366 * 86400; second += 77760) { /* from 2000-02-28 */
        struct tm utc;
        char stamp[32];
        strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S.000Z", gmtime_r(&second, &utc));
        assert_true(clock_is_utc(stamp));
    }
}

/* Milliseconds since 1970. */
static long long ms_of(const char *stamp) {
    struct tm utc = {0};
    int ms;
    assert_int_equal(strlen(stamp), 24);
    assert_int_equal(sscanf(stamp, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ", &utc.tm_year, &utc.tm_mon, &utc.tm_mday,
                            &utc.tm_hour, &utc.tm_min, &utc.tm_sec, &ms),
                     7);
    utc.tm_year -= 1900;
    utc.tm_mon--;
    return 1000LL * timegm(&utc) + ms;
}

static void a_time_stamp_of_another_time_is_as_far_away(void **state) {
    (void)state;
    static const double later_us[] = {0,    1e3,  999e3,          1e6,   59.5e6, 400 * 86400e6, 1e300,
                                      -1e3, -5e6, -400 * 86400e6, -1e300};
    static const double century_ms = 100 * 365.25 * 86400e3;
    for (size_t i = 0; i < sizeof later_us / sizeof *later_us; i++) {
        char now[32], later[32], after[32];
        clock_utc(now, sizeof now);
        clock_utc_after(later_us[i], later, sizeof later);
        clock_utc(after, sizeof after);
        const double ms = fmax(-century_ms, fmin(later_us[i] / 1e3, century_ms));
        assert_true((double)(ms_of(later) - ms_of(now)) >= ms - 1);
        assert_true((double)(ms_of(later) - ms_of(after)) <= ms + 1);
    }
}

/* What log_write says on standard error at `level`. */
static const char *logged(enum log_level setting, enum log_level level, const char *message) {
    static char text[8192];
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const int saved = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    log_set_level(setting);
    log_write(level, "%s", message);
    log_set_level(LOG_INFO);
    dup2(saved, STDERR_FILENO);
    close(saved);
    const ssize_t n = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static void the_log_prefixes_by_level_and_leaves_out_what_is_not_wanted(void **state) {
    (void)state;
    assert_string_equal(logged(LOG_INFO, LOG_WARN, "slow disk"), "syncopate: warning: slow disk\n");
    assert_string_equal(logged(LOG_INFO, LOG_ERROR, "no disk"), "syncopate: error: no disk\n");
    assert_string_equal(logged(LOG_INFO, LOG_INFO, "trial 3 of 40"), "trial 3 of 40\n");
    assert_string_equal(logged(LOG_INFO, LOG_DEBUG, "detail"), "");
    assert_string_equal(logged(LOG_DEBUG, LOG_DEBUG, "detail"), "syncopate: debug: detail\n");
    assert_string_equal(logged(LOG_QUIET, LOG_ERROR, "no disk"), "");
}

static void a_long_log_line_still_ends(void **state) {
    (void)state;
    char text[6000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    const char *line = logged(LOG_INFO, LOG_ERROR, text);
    assert_true(strlen(line) >= 4000);
    assert_int_equal(line[strlen(line) - 1], '\n');
}

static void log_levels_are_known_by_word(void **state) {
    (void)state;
    enum log_level level = LOG_INFO;
    assert_true(log_parse_level("debug", &level));
    assert_int_equal(level, LOG_DEBUG);
    assert_true(log_parse_level("quiet", &level));
    assert_int_equal(level, LOG_QUIET);
    assert_false(log_parse_level("loud", &level));
    assert_int_equal(level, LOG_QUIET);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_is_cut_and_never_overrun),
        cmocka_unit_test(an_error_is_not_cut_inside_a_character),
        cmocka_unit_test(a_prefix_goes_before_the_message_and_keeps_the_status),
        cmocka_unit_test(an_error_keeps_its_place_its_pointer_and_its_message_apart),
        cmocka_unit_test(a_prefix_makes_an_inner_place_part_of_the_message),
        cmocka_unit_test(every_part_of_an_error_is_cut_between_characters),
        cmocka_unit_test(a_character_is_what_rfc_3629_allows),
        cmocka_unit_test(an_array_that_grows_keeps_its_items),
        cmocka_unit_test(each_status_has_its_word_and_exit_code),
        cmocka_unit_test(arena_memory_is_zeroed_aligned_and_apart),
        cmocka_unit_test(an_arena_request_that_overflows_is_refused),
        cmocka_unit_test(an_id_is_the_sha256_of_the_bytes),
        cmocka_unit_test(a_sleep_is_never_short),
        cmocka_unit_test(a_time_stamp_is_iso_8601_in_utc),
        cmocka_unit_test(a_time_stamp_is_of_a_time_that_there_is),
        cmocka_unit_test(a_time_stamp_of_another_time_is_as_far_away),
        cmocka_unit_test(the_log_prefixes_by_level_and_leaves_out_what_is_not_wanted),
        cmocka_unit_test(a_long_log_line_still_ends),
        cmocka_unit_test(log_levels_are_known_by_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
