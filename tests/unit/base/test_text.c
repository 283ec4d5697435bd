/* What is clean, and that no printer lets through what is not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/text.h"
#include "tests/support/check.h"

#define ESC "\x1b]0;x\x07"
#define CSI "\xc2\x9b"     /* U+009B */
#define RLO "\xe2\x80\xae" /* U+202E */
#define EVIL                                                                                                           \
    "a" ESC "\r\n" CSI RLO "\xff"                                                                                      \
    "b"

static void only_utf8_that_no_terminal_obeys_is_clean(void **state) {
    (void)state;
    static const char *const good[] = {"",         "abc",          "\xc3\xa9",         "\xe2\x82\xac",
                                       "\xc2\xa0", "\xe2\x80\x8d", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"};
    static const char *const bad[] = {"\xc3",
                                      "\xc0\xaf",
                                      "\xe0\x80\xaf",
                                      "\xed\xa0\x80",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\x80",
                                      "a\tb",
                                      "\x7f",
                                      "\xe2\x82",
                                      "\xf0\x80\x80\x80",
                                      "\xff",
                                      "\xc2\x80",     /* U+0080 */
                                      "\xc2\x9f",     /* U+009F */
                                      "\xd8\x9c",     /* U+061C */
                                      "\xe2\x80\x8e", /* U+200E */
                                      "\xe2\x80\x8f", /* U+200F */
                                      "\xe2\x80\xa8", /* U+2028 */
                                      "\xe2\x80\xa9", /* U+2029 */
                                      "\xe2\x80\xaa", /* U+202A */
                                      RLO,
                                      "\xe2\x81\xa6",  /* U+2066 */
                                      "\xe2\x81\xa9"}; /* U+2069 */
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(text_is_clean(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[16];
        assert_false(text_is_clean(bad[i], strlen(bad[i])));
        snprintf(text, sizeof text, "%s", bad[i]);
        text_clean(text);
        assert_true(text_is_clean(text, strlen(text)));
        assert_int_equal(strlen(text), strlen(bad[i]));
    }
    assert_int_equal(text_clean_length("ab" CSI "c", 5), 2);
}

static void names_and_words_are_bounded(void **state) {
    (void)state;
    assert_true(text_is_name("r\xc3\xa9seau 1", 9));
    assert_false(text_is_name("r\xc3\xa9seau 1", 8));
    assert_false(text_is_name("", 10));
    assert_false(text_is_name(NULL, 10));
    assert_false(text_is_name("a" RLO, 10));
    assert_true(text_is_word("20261121-084117-3fa2", 63));
    static const char *const none[] = {"", "../x", ".x", "-o", "_a", "a/b", "a b", "a\n", "\xc3\xa9"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_false(text_is_word(none[i], 63));
    assert_true(text_is_word("abc", 3));
    assert_false(text_is_word("abcd", 3));
    assert_false(text_is_word(NULL, 3));
}

static void what_is_printed_shows_what_it_would_have_done(void **state) {
    (void)state;
    char out[128];
    const size_t n = text_format(out, sizeof out, "%s|\n", EVIL);
    assert_int_equal(n, strlen(out));
    assert_string_equal(out, "a\\x1b]0;x\\x07\\x0d\\x0a\\u009b\\u202e\\xffb|\n");
    text_format(out, sizeof out, "\r\x1b[K%c%c", '\n', 'x'); /* the format is our own */
    assert_string_equal(out, "\r\x1b[K\\x0ax");
    text_format(out, sizeof out, "%.*s|%.3s", 2, "\xc3\xa9\xc3\xa9", "\xc3\xa9\xc3\xa9");
    assert_string_equal(out, "\xc3\xa9|\xc3\xa9");
}

static void a_precision_reads_no_further(void **state) {
    (void)state;
    char out[16], *three = malloc(3); /* the address sanitizer sees a fourth */
    memcpy(three, "abc", 3);
    text_format(out, sizeof out, "%.3s", three);
    assert_string_equal(out, "abc");
    free(three);
}

static void widths_count_what_is_shown(void **state) {
    (void)state;
    char out[64];
    text_format(out, sizeof out, "%5s|%-5s|%*s|%-*s|", "\xc2\xb5s", "\xc2\xb5s", 3, "a", 3, "a");
    assert_string_equal(out, "   \xc2\xb5s|\xc2\xb5s   |  a|a  |");
    text_format(out, sizeof out, "%6s|%-6s|", "\x1b", "\x1b");
    assert_string_equal(out, "  \\x1b|\\x1b  |");
    assert_int_equal(text_columns("\xc2\xb5s\x1b", 4), 6);
    assert_int_equal(text_columns("abc", 2), 2);
    assert_int_equal(text_columns("", 0), 0);
}

/* Everything but texts is as the C library has it. */
static void numbers_are_those_of_printf(void **state) {
    (void)state;
    char ours[512], theirs[512];
#define SAME(...)                                                                                                      \
    do {                                                                                                               \
        text_format(ours, sizeof ours, __VA_ARGS__);                                                                   \
        snprintf(theirs, sizeof theirs, __VA_ARGS__);                                                                  \
        assert_string_equal(ours, theirs);                                                                             \
    } while (0)
    SAME("%d %i %u %x %04X %o %c %%", -7, 8, 9u, 255u, 255u, 8u, 'c');
    SAME("%ld %lu %lld %llu %zu %zd", -7L, 8UL, -9LL, 10ULL, (size_t)11, (ssize_t)-12);
    SAME("%hd %hhu %jd %td", (short)-3, (unsigned char)200, (intmax_t)-4, (ptrdiff_t)5);
    SAME("%f %.3f %10.2f|%-10.1f|%+.1f %g %.6g %e %a", 1.5, 2.25, 3.125, 4.5, 5.5, 1e300, 1e-9, 2.5, 1.0);
    SAME("%*d|%-*d|%.*f|%5d|%-5d|%05d", 6, 42, 6, 42, 2, 1.0 / 3, 1, 2, 3);
    SAME("%.2Lf %s %5s %-5s| %.2s", 1.25L, "text", "ab", "ab", "abc");
#undef SAME
}

static void what_does_not_fit_is_cut_between_characters(void **state) {
    (void)state;
    for (size_t room = 1; room < 12; room++) {
        char out[16];
        memset(out, 'z', sizeof out);
        const size_t n = text_format(out, room, "%s", "\xc3\xa9\xe2\x82\xac\x1bz");
        assert_true(n < room && out[n] == '\0' && text_is_clean(out, n));
        assert_int_equal(out[room], 'z');
    }
}

/* The text of `print`, which writes into a file. */
static char *printed(void (*print)(FILE *to, const char *text), const char *text) {
    char *out = NULL;
    size_t n;
    FILE *to = open_memstream(&out, &n);
    assert_non_null(to);
    print(to, text);
    fclose(to);
    return out;
}

static void print_json(FILE *to, const char *text) {
    text_print_json(to, text, strlen(text));
}

static void json_means_the_same_and_is_clean(void **state) {
    (void)state;
    char *out = printed(print_json, "{\"a\":\t\"" CSI RLO "\xc3\xa9\x7f\"\n}");
    assert_string_equal(out, "{\"a\":\t\"\\u009b\\u202e\xc3\xa9\\u007f\" }");
    cJSON *json = cJSON_Parse(out);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(json, "a")), CSI RLO "\xc3\xa9\x7f");
    char *line = json_line(json), *pretty = json_pretty(json), *canonical = json_canonical(json);
    assert_string_equal(line, "{\"a\":\"\\u009b\\u202e\xc3\xa9\\u007f\"}");
    assert_string_equal(pretty, "{\"a\": \"\\u009b\\u202e\xc3\xa9\\u007f\"}");
    assert_string_equal(canonical, "{\"a\":\"" CSI RLO "\xc3\xa9\x7f\"}"); /* its hash is an id */
    free(line);
    free(pretty);
    free(canonical);
    free(out);
    cJSON_Delete(json);
}

static void no_cell_of_csv_is_a_formula(void **state) {
    (void)state;
    static const struct {
        const char *text, *cell;
    } cases[] = {{"=cmd()", "'=cmd()"},
                 {"+1", "'+1"},
                 {"-1", "'-1"},
                 {"@x", "'@x"},
                 {"'quoted'", "''quoted'"},
                 {"a=b", "a=b"},
                 {"\t=1", "\\x09=1"},
                 {"\r=1", "\\x0d=1"},
                 {"a,\"b\"", "\"a,\"\"b\"\"\""},
                 {"=a,b", "\"'=a,b\""},
                 {"a\r\nb", "a\\x0d\\x0ab"},
                 {"", ""},
                 {EVIL, "a\\x1b]0;x\\x07\\x0d\\x0a\\u009b\\u202e\\xffb"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *out = printed(text_print_csv, cases[i].text);
        assert_string_equal(out, cases[i].cell);
        free(out);
    }
    char *none = printed(text_print_csv, NULL);
    assert_string_equal(none, "");
    free(none);
}

static void print_line(FILE *to, const char *text) {
    text_print(to, "%s", text);
}

/* Whatever the bytes, what comes out is clean. */
static void random_bytes_come_out_clean(void **state) {
    (void)state;
    void (*const printers[])(FILE *, const char *) = {print_line, print_json, text_print_csv};
    struct rng rng;
    rng_seed(&rng, 7);
    for (int round = 0; round < 20000; round++) {
        char bytes[12];
        const size_t n = (size_t)rng_below(&rng, sizeof bytes);
        for (size_t i = 0; i < n; i++) /* mostly the beginnings of what is not clean */
            bytes[i] = "\x1b\x7f\xc2\x9b\xe2\x80\xae\x81\xa6\xd8\x9c\"',=\nA\xf4\xed"[rng_below(&rng, 20)];
        bytes[n] = '\0';
        char *out = printed(printers[round % 3], bytes);
        assert_true(text_is_clean(out, strlen(out)));
        free(out);
    }
}

static void a_line_of_the_log_is_one_line(void **state) {
    (void)state;
    char text[256] = "";
    const int keep = dup(STDERR_FILENO);
    FILE *file = tmpfile();
    assert_true(keep >= 0 && file);
    fflush(stderr);
    dup2(fileno(file), STDERR_FILENO);
    log_error("%s: is\nwrong", EVIL);
    dup2(keep, STDERR_FILENO);
    close(keep);
    rewind(file);
    const size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    assert_string_equal(text, "syncopate: error: a\\x1b]0;x\\x07\\x0d\\x0a\\u009b\\u202e\\xffb: is\nwrong\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_utf8_that_no_terminal_obeys_is_clean),
        cmocka_unit_test(names_and_words_are_bounded),
        cmocka_unit_test(what_is_printed_shows_what_it_would_have_done),
        cmocka_unit_test(a_precision_reads_no_further),
        cmocka_unit_test(widths_count_what_is_shown),
        cmocka_unit_test(numbers_are_those_of_printf),
        cmocka_unit_test(what_does_not_fit_is_cut_between_characters),
        cmocka_unit_test(json_means_the_same_and_is_clean),
        cmocka_unit_test(no_cell_of_csv_is_a_formula),
        cmocka_unit_test(random_bytes_come_out_clean),
        cmocka_unit_test(a_line_of_the_log_is_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
