/* Markup, its tables and axes: whatever is put in, what comes out is well-formed and says it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "report/html.h"
#include "report/markup.h"
#include "report/placing.h"
#include "report/svg.h"
#include "tests/unit/report/strict_xml.h"

static char *take(struct markup *m) {
    struct error err;
    char *text;
    size_t length;
    assert_ok(markup_take(m, &text, &length, &err));
    assert_int_equal(length, strlen(text));
    return text;
}

static void expect(struct markup *m, const char *want) {
    char *text = take(m);
    assert_string_equal(text, want);
    free(text);
}

static void markup_in_texts_and_values_is_escaped(void **state) {
    (void)state;
    struct markup m = {0};
    markup_begin(&m, "p");
    markup_attribute(&m, "title", "\"><script>&");
    markup_text(&m, "</p><script>alert(1)</script>&amp;");
    markup_textf(&m, " %s", "<b>");
    markup_end(&m);
    expect(&m, "<p title=\"&quot;&gt;&lt;script&gt;&amp;\">&lt;/p&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;amp; "
               "&lt;b&gt;</p>");
}

static void what_no_xml_may_hold_is_replaced(void **state) {
    (void)state;
    struct markup m = {0};
    markup_leaf(&m, "p", "a\x01\x7f\xff\xc0\xaf\xed\xa0\x80\xf5\x80\xe2\x82 µ\xf0\x9f\x98\x80\xef\xbf\xbf");
    char *text = take(&m);
    expect_strict_xml(text);
    assert_contains(text, "<p>a\xef\xbf\xbd");
    assert_contains(text, "µ\xf0\x9f\x98\x80");
    free(text);
}

static void numbers_are_tenths_and_short(void **state) {
    (void)state;
    static const struct {
        double x;
        const char *text;
    } cases[] = {{12, "12"},      {3.5, "3.5"}, {3.04, "3"},  {-0.04, "0"},           {0.05, "0.1"},
                 {-7.25, "-7.3"}, {NAN, "0"},   {1e300, "0"}, {100000.06, "100000.1"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct markup m = {0};
        char want[64];
        markup_begin(&m, "p");
        markup_attribute_number(&m, "x", cases[i].x);
        markup_end(&m);
        snprintf(want, sizeof want, "<p x=\"%s\"></p>", cases[i].text);
        expect(&m, want);
    }
}

static void void_elements_and_svg_close_themselves_and_others_never_do(void **state) {
    (void)state;
    struct markup m = {0};
    markup_begin(&m, "div");
    markup_begin(&m, "br");
    markup_end(&m);
    markup_begin(&m, "td");
    markup_end(&m);
    markup_begin(&m, "svg");
    markup_begin(&m, "g");
    markup_end(&m);
    markup_end(&m);
    markup_end(&m);
    expect(&m, "<div><br/><td></td><svg><g/></svg></div>");
}

/* A random tree with random bytes in it. */
static size_t grow(struct markup *m, struct rng *rng, unsigned depth) {
    static const char *const names[] = {"div", "p", "svg", "g", "td", "input"};
    char text[24];
    size_t n = 1;
    markup_begin(m, names[rng_below(rng, 6)]);
    for (size_t i = 0, k = rng_below(rng, 3); i <= k; i++) {
        size_t length = rng_below(rng, sizeof text);
        for (size_t c = 0; c < length; c++)
            text[c] = (char)(1 + rng_below(rng, 255));
        text[length] = '\0';
        markup_attribute(m, (const char *const[]){"class", "id", "title"}[i], text);
    }
    for (size_t i = rng_below(rng, 4); i > 0 && depth < 8; i--)
        if (rng_below(rng, 2))
            n += grow(m, rng, depth + 1);
        else
            markup_text(m, text);
    markup_end(m);
    return n;
}

static void random_trees_of_random_bytes_are_well_formed(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int t = 0; t < 500; t++) {
        struct markup m = {0};
        size_t n = grow(&m, &rng, 0);
        char *text = take(&m);
        assert_int_equal(expect_strict_xml(text), n);
        free(text);
    }
}

static void a_page_is_whole_and_needs_nothing_else(void **state) {
    (void)state;
    struct markup m = {0};
    html_page_begin(&m, "a <page>", NULL);
    html_command(&m, "run --name '%s'", "<&>");
    html_page_end(&m);
    char *text = take(&m);
    expect_strict_xml(text);
    assert_contains(text, "<title>a &lt;page&gt;</title><style>:root{");
    assert_contains(text, "prefers-color-scheme:dark");
    assert_contains(text, "<code>run --name '&lt;&amp;&gt;'</code>");
    assert_null(strstr(text, "http"));
    assert_null(strstr(text, "<script"));
    assert_null(strstr(text, "url("));
    free(text);
}

static void a_page_may_name_its_sheet_instead(void **state) {
    (void)state;
    struct markup m = {0};
    html_page_begin(&m, "t", "/style.css");
    html_page_end(&m);
    char *text = take(&m);
    expect_strict_xml(text);
    assert_contains(text, "<link rel=\"stylesheet\" href=\"/style.css\"/>");
    assert_null(strstr(text, "<style>"));
    free(text);
}

static void tables_wrap_their_rows(void **state) {
    (void)state;
    static const char *const heads[] = {"Name", ">Time", NULL};
    struct markup m = {0};
    struct html_table t;
    html_table_begin(&t, &m, "times", heads);
    t.row_class = "best";
    html_cell(&t, "a<b");
    html_cellf(&t, "%d", 1);
    html_cell(&t, "c");
    html_cell(&t, "");
    html_table_end(&t);
    char *text = take(&m);
    expect_strict_xml(text);
    assert_contains(text, "<th scope=\"col\">Name</th><th class=\"n\" scope=\"col\">Time</th>");
    assert_contains(
        text, "<tr class=\"best\"><td>a&lt;b</td><td class=\"n\">1</td></tr><tr><td>c</td><td class=\"n\"></td></tr>");
    free(text);
}

/* ---- axes ---- */

static void random_axes_hold_what_was_included(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int t = 0; t < 2000; t++) {
        struct svg_axis axis = {.low = INFINITY, .high = -INFINITY, .log = rng_below(&rng, 2), .from = 300, .to = 20};
        double values[5];
        size_t n = rng_below(&rng, 6);
        for (size_t i = 0; i < n; i++)
            svg_axis_include(&axis, values[i] = rng_log_between(&rng, 1e-3, 1e9));
        svg_axis_include(&axis, NAN);
        svg_axis_include(&axis, INFINITY);
        svg_axis_finish(&axis, 0.05);
        assert_true(isfinite(axis.low) && axis.low < axis.high && (!axis.log || axis.low > 0));
        for (size_t i = 0; i < n; i++) {
            double y = svg_axis_place(&axis, values[i]);
            assert_true(y >= 20 && y <= 300);
        }
        assert_close(svg_axis_place(&axis, axis.low), 300, 1e-9);
        assert_close(svg_axis_place(&axis, axis.high), 20, 1e-9);
    }
}

static void logarithmic_ticks_are_round_within_and_few(void **state) {
    (void)state;
    struct rng rng;
    double ticks[32];
    rng_seed(&rng, test_seed());
    for (int t = 0; t < 2000; t++) {
        double low = rng_log_between(&rng, 1e-3, 1e6), high = low * rng_log_between(&rng, 1.01, 1e6);
        size_t n = placing_log_ticks(low, high, 7, ticks);
        assert_true(n <= 7);
        for (size_t i = 0; i < n; i++) {
            assert_true(ticks[i] >= low * (1 - 1e-6) && ticks[i] <= high * (1 + 1e-6));
            assert_true(!i || ticks[i] > ticks[i - 1]);
        }
    }
}

static void units_follow_the_largest_value(void **state) {
    (void)state;
    assert_string_equal(svg_time_unit(4999).word, "µs");
    assert_string_equal(svg_time_unit(5000).word, "ms");
    assert_string_equal(svg_time_unit(5e6).word, "s");
    assert_close(svg_time_unit(5e6).us, 1e6, 0);
}

static void ticks_are_told_in_the_unit(void **state) {
    (void)state;
    struct markup m = {0};
    const struct svg_axis axis = {0, 300000, false, 100, 0};
    svg_begin(&m, "id", "chart", 100, 100, "a & b", "d");
    svg_axis_y(&m, &axis, 1000, 10, 90, 4);
    markup_end(&m);
    char *text = take(&m);
    expect_strict_xml(text);
    assert_contains(text, "aria-labelledby=\"id-title id-text\"");
    assert_contains(text, "<title id=\"id-title\">a &amp; b</title><desc id=\"id-text\">d</desc>");
    assert_contains(text, ">100</text>");
    assert_contains(text, ">300</text>");
    free(text);
}

/* One sign for each, and no more: U+009B, U+202E, U+2066. */
static void marks_that_turn_text_around_are_replaced(void **state) {
    (void)state;
    struct markup m = {0};
    markup_leaf(&m, "p",
                "a\xc2\x9b"
                "b\xe2\x80\xae"
                "c\xe2\x81\xa6"
                "d\te\nf");
    char *text = take(&m);
    assert_string_equal(text, "<p>a\xef\xbf\xbd"
                              "b\xef\xbf\xbd"
                              "c\xef\xbf\xbd"
                              "d\te\nf</p>");
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(markup_in_texts_and_values_is_escaped),
        cmocka_unit_test(what_no_xml_may_hold_is_replaced),
        cmocka_unit_test(marks_that_turn_text_around_are_replaced),
        cmocka_unit_test(numbers_are_tenths_and_short),
        cmocka_unit_test(void_elements_and_svg_close_themselves_and_others_never_do),
        cmocka_unit_test(random_trees_of_random_bytes_are_well_formed),
        cmocka_unit_test(a_page_is_whole_and_needs_nothing_else),
        cmocka_unit_test(a_page_may_name_its_sheet_instead),
        cmocka_unit_test(tables_wrap_their_rows),
        cmocka_unit_test(random_axes_hold_what_was_included),
        cmocka_unit_test(logarithmic_ticks_are_round_within_and_few),
        cmocka_unit_test(units_follow_the_largest_value),
        cmocka_unit_test(ticks_are_told_in_the_unit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
