/* Charts: where names and ticks go, that points lie where they should, and that the file is XML whatever the names. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "cli/plot.h"
#include "report/placing.h"
#include "tests/support/check.h"

static struct error err;

/* ---- names and ticks ---- */

static double squares(size_t n, const double *a, const double *b) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void names_that_are_apart_stay_where_they_are(void **state) {
    (void)state;
    const double wanted[] = {5, 40, 60, 99};
    double out[4];
    placing_spread(4, wanted, 16, 100, out);
    for (size_t i = 0; i < 4; i++)
        assert_close(out[i], wanted[i], 1e-12);
}

static void names_at_one_height_are_centred_around_it(void **state) {
    (void)state;
    const double wanted[] = {50, 50, 50};
    double out[3];
    placing_spread(3, wanted, 10, 100, out);
    assert_close(out[0], 40, 1e-12);
    assert_close(out[1], 50, 1e-12);
    assert_close(out[2], 60, 1e-12);
}

static void more_names_than_room_share_it_evenly(void **state) {
    (void)state;
    const double wanted[] = {0, 0, 0, 0, 0};
    double out[5];
    placing_spread(5, wanted, 50, 100, out);
    for (size_t i = 0; i < 5; i++)
        assert_close(out[i], 25.0 * (double)i, 1e-12);
}

/* The problem is convex: a placement that no small allowed step improves is the best one. Steps move a run of names
 * together, as the pools do. */
static void no_allowed_step_brings_random_names_nearer(void **state) {
    (void)state;
    enum { MOST = 20 };
    const double gap = 10, room = 240;
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int t = 0; t < 2000; t++) {
        size_t n = 1 + rng_below(&rng, MOST);
        double wanted[MOST], out[MOST], moved[MOST];
        for (size_t i = 0; i < n; i++)
            wanted[i] = rng_between(&rng, -20, 260);
        qsort(wanted, n, sizeof *wanted, compare);
        placing_spread(n, wanted, gap, room, out);
        assert_true(out[0] >= 0 && out[n - 1] <= room + 1e-9);
        for (size_t i = 1; i < n; i++)
            assert_true(out[i] - out[i - 1] >= gap - 1e-9);
        for (size_t from = 0; from < n; from++)
            for (size_t to = from; to < n; to++)
                for (int sign = -1; sign <= 1; sign += 2) {
                    memcpy(moved, out, sizeof out);
                    for (size_t i = from; i <= to; i++)
                        moved[i] += sign * 1e-3;
                    bool allowed = moved[0] >= 0 && moved[n - 1] <= room;
                    for (size_t i = 1; i < n; i++)
                        allowed = allowed && moved[i] - moved[i - 1] >= gap - 1e-12;
                    assert_true(!allowed || squares(n, moved, wanted) >= squares(n, out, wanted) - 1e-6);
                }
    }
}

static void ticks_are_round_within_and_few(void **state) {
    (void)state;
    struct rng rng;
    double ticks[16];
    rng_seed(&rng, test_seed());
    for (int t = 0; t < 5000; t++) {
        double span = rng_log_between(&rng, 1e-6, 1e6);
        double low = rng_between(&rng, -100, 100) * span, high = low + span;
        size_t most = 4 + rng_below(&rng, 8), n = placing_ticks(low, high, most, ticks);
        assert_true(n >= 1 && n <= most);
        double slack = 1e-6 * (high - low), step = n > 1 ? ticks[1] - ticks[0] : 0;
        for (size_t i = 0; i < n; i++)
            assert_true(ticks[i] >= low - slack && ticks[i] <= high + slack);
        if (n > 1) {
            double mantissa = step / pow(10, floor(log10(step * (1 + 1e-6))));
            assert_true(fabs(mantissa - 1) < 1e-5 || fabs(mantissa - 2) < 1e-5 || fabs(mantissa - 5) < 1e-5);
        }
    }
    assert_int_equal(placing_ticks(0, 10, 11, ticks), 11);
    assert_close(ticks[10], 10, 1e-12);
}

/* ---- charts ---- */

static char *drawn(const struct plot *plot) {
    char *text = NULL;
    size_t size;
    FILE *memory = open_memstream(&text, &size);
    assert_non_null(memory);
    assert_ok(plot_write(plot, memory, &err));
    assert_int_equal(fclose(memory), 0);
    return text;
}

static struct plot plot_of(size_t n, const double *x, size_t n_lines, const struct plot_line *lines) {
    return (struct plot){.title = "t",
                         .subtitle = "s",
                         .x_label = "x",
                         .y_label = "y",
                         .n = n,
                         .x = x,
                         .n_lines = n_lines,
                         .lines = lines};
}

/* The points of the first line in the text, as pixels; how many pieces it has. */
static size_t points_of(const char *text, size_t *n, double (*out)[2]) {
    size_t pieces = 0;
    const char *at = strstr(text, "<g class=\"line");
    at = strstr(at, " d=\"") + 4;
    for (*n = 0; *at != '"'; ++*n) {
        char *end;
        pieces += *at == 'M';
        out[*n][0] = strtod(at + 1, &end);
        out[*n][1] = strtod(end, &end);
        at = end;
    }
    return pieces;
}

/* Points of a line in the axes' own terms lie on a line of pixels (which are written to 0.1). */
static void expect_straight(const struct plot *plot) {
    double points[64][2];
    size_t n;
    char *text = drawn(plot);
    assert_int_equal(points_of(text, &n, points), 1);
    assert_int_equal(n, plot->n);
    for (size_t i = 1; i + 1 < n; i++) {
        double part = (points[i][0] - points[0][0]) / (points[n - 1][0] - points[0][0]);
        assert_true(fabs(points[0][1] + part * (points[n - 1][1] - points[0][1]) - points[i][1]) < 0.25);
    }
    assert_true(points[n - 1][0] > points[0][0] && points[n - 1][1] < points[0][1]); /* right and up */
    free(text);
}

static void straight_lines_are_straight(void **state) {
    (void)state;
    double x[8], linear[8], power[8];
    for (int i = 0; i < 8; i++) {
        x[i] = 3 << i;
        linear[i] = 2 * x[i] + 1;
        power[i] = pow(x[i], 1.5);
    }
    struct plot_line line = {"one", linear, false, PLOT_STRAIGHT};
    struct plot plot = plot_of(8, x, 1, &line);
    expect_straight(&plot);
    line.y = power;
    plot.x_log = plot.y_log = true;
    expect_straight(&plot);
}

static void a_missing_point_leaves_a_gap(void **state) {
    (void)state;
    const double x[] = {1, 2, 3, 4, 5}, y[] = {1, 2, NAN, 4, 5};
    const struct plot_line line = {"holed", y, false, PLOT_STRAIGHT};
    const struct plot plot = plot_of(5, x, 1, &line);
    double points[8][2];
    size_t n;
    char *text = drawn(&plot);
    assert_int_equal(points_of(text, &n, points), 2);
    assert_int_equal(n, 4);
    free(text);
}

/* Points have markers, all of them, and no line; steps only lines along the axes. */
static void points_are_not_joined_and_steps_are_not_slanted(void **state) {
    (void)state;
    enum { MANY = 100 };
    double x[MANY], y[MANY];
    for (int i = 0; i < MANY; i++) {
        x[i] = i + 1;
        y[i] = MANY - i;
    }
    struct plot_line line = {"apart", y, false, PLOT_POINTS};
    const struct plot plot = plot_of(MANY, x, 1, &line);
    char *text = drawn(&plot);
    assert_null(strstr(text, "<path stroke=\"#0072B2\""));
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, "<title>apart: ")); at++)
        n++;
    assert_int_equal(n, MANY);
    free(text);
    line = (struct plot_line){"steps", y, true, PLOT_STEPS};
    text = drawn(&plot);
    const char *path = strstr(text, "<path stroke=\"#8a8a8a\"");
    assert_non_null(path);
    const char *d = strstr(path, " d=\"M"), *end = strchr(d + 4, '"');
    size_t across = 0;
    for (const char *at = d; at < end; at++) {
        assert_true(*at != 'L');
        across += *at == 'H';
    }
    assert_int_equal(across, MANY - 1);
    free(text);
}

/* Every element that opens closes, in order; outside of tags no bare '<' or '&'. */
static void expect_xml(const char *text) {
    char open[32][16];
    size_t depth = 0;
    for (const char *at = strchr(text, '<'); at; at = strchr(at + 1, '<')) {
        size_t name = strcspn(at + 1, " >/");
        const char *end = strchr(at, '>');
        assert_non_null(end);
        assert_null(memchr(at + 1, '<', (size_t)(end - at - 1)));
        if (at[1] == '?')
            continue;
        if (at[1] == '/') {
            assert_true(depth > 0);
            depth--;
            assert_memory_equal(open[depth], at + 2, strlen(open[depth]));
        } else if (end[-1] != '/') {
            assert_true(depth < 32 && name < 16);
            snprintf(open[depth++], sizeof open[0], "%.*s", (int)name, at + 1);
        }
    }
    assert_int_equal(depth, 0);
    for (const char *at = strchr(text, '&'); at; at = strchr(at + 1, '&'))
        assert_true(!strncmp(at, "&amp;", 5) || !strncmp(at, "&lt;", 4) || !strncmp(at, "&gt;", 4) ||
                    !strncmp(at, "&quot;", 6) || !strncmp(at, "&apos;", 6));
}

static void names_from_files_cannot_break_the_file(void **state) {
    (void)state;
    const double x[] = {1, 2}, y[] = {1, 2};
    const struct plot_line lines[] = {{"<script>alert(\"1\")</script>", y, false, PLOT_STRAIGHT},
                                      {"a & 'b' \x01\xef\xbf\xbf", y, true, PLOT_STRAIGHT}};
    struct plot plot = plot_of(2, x, 2, lines);
    plot.title = "]]><&";
    char *text = drawn(&plot);
    expect_xml(text);
    assert_null(strstr(text, "<script"));
    assert_null(strchr(text, '\x01'));
    assert_null(strstr(text, "\xef\xbf\xbf"));
    assert_contains(text, "a &amp; &apos;b&apos; </text>");
    free(text);
}

/* Colour and dash of the n lines, as written: stroke="#xxxxxx" stroke-dasharray="..." d= */
static void expect_no_two_alike(const char *text, size_t n) {
    char looks[PLOT_MAX_LINES][64];
    size_t found = 0;
    for (const char *at = strstr(text, "<path stroke="); at; at = strstr(at + 1, "<path stroke="))
        snprintf(looks[found++], sizeof looks[0], "%.*s", (int)(strstr(at, " d=") - at), at);
    assert_int_equal(found, n);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(looks[i], looks[k]);
}

static void many_lines_have_looks_and_places_of_their_own(void **state) {
    (void)state;
    enum { N = 21 };
    double x[6], y[N][6];
    char names[N][32];
    struct plot_line lines[N];
    for (int l = 0; l < N; l++) {
        for (int i = 0; i < 6; i++) {
            x[i] = 1 << i;
            y[l][i] = 10 + 0.1 * l * i;
        }
        snprintf(names[l], sizeof names[l], "line-%02d", l);
        lines[l] = (struct plot_line){names[l], y[l], false, PLOT_STRAIGHT};
    }
    const struct plot plot = plot_of(6, x, N, lines);
    char *text = drawn(&plot);
    double heights[N];
    size_t n = 0;
    expect_xml(text);
    for (int l = 0; l < N; l++) { /* <text x=".." y="..">line-NN</text> */
        char label[64];
        snprintf(label, sizeof label, "\">%s</text>", names[l]);
        const char *at = strstr(text, label);
        assert_non_null(at);
        while (strncmp(at, "y=\"", 3))
            at--;
        heights[n++] = strtod(at + 3, NULL);
    }
    qsort(heights, n, sizeof *heights, compare);
    for (size_t i = 1; i < n; i++)
        assert_true(heights[i] - heights[i - 1] >= 14);
    expect_no_two_alike(text, N);
    free(text);
}

static void what_cannot_be_drawn_is_refused(void **state) {
    (void)state;
    const double x[] = {1, 2}, none[] = {NAN, INFINITY}, negative[] = {-1, 0};
    struct plot_line line = {"none", none, false, PLOT_STRAIGHT};
    struct plot plot = plot_of(2, x, 1, &line);
    assert_fails(plot_write(&plot, stderr, &err), ST_INVALID, "no point");
    plot.n_lines = 0;
    assert_fails(plot_write(&plot, stderr, &err), ST_INVALID, "no point");
    plot.n_lines = 1;
    plot.y_log = true;
    line.y = negative;
    assert_fails(plot_write(&plot, stderr, &err), ST_INVALID, "no point");
    plot.n_lines = PLOT_MAX_LINES + 1;
    assert_fails(plot_write(&plot, stderr, &err), ST_INVALID, "lines");
}

static void one_point_and_level_lines_have_finite_places(void **state) {
    (void)state;
    const double x[] = {8, 9}, y[] = {3, 3}, zero[] = {0, 0};
    struct plot_line lines[] = {{"level", y, false, PLOT_STRAIGHT}, {"zero", zero, true, PLOT_STRAIGHT}};
    for (int k = 0; k < 8; k++) {
        struct plot plot = plot_of(k & 1 ? 1 : 2, x, k & 2 ? 1 : 2, lines);
        plot.x_log = plot.y_log = k & 4;
        char *text = drawn(&plot);
        expect_xml(text);
        assert_null(strstr(text, "nan"));
        assert_null(strstr(text, "inf"));
        free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_that_are_apart_stay_where_they_are),
        cmocka_unit_test(names_at_one_height_are_centred_around_it),
        cmocka_unit_test(more_names_than_room_share_it_evenly),
        cmocka_unit_test(no_allowed_step_brings_random_names_nearer),
        cmocka_unit_test(ticks_are_round_within_and_few),
        cmocka_unit_test(straight_lines_are_straight),
        cmocka_unit_test(a_missing_point_leaves_a_gap),
        cmocka_unit_test(points_are_not_joined_and_steps_are_not_slanted),
        cmocka_unit_test(names_from_files_cannot_break_the_file),
        cmocka_unit_test(many_lines_have_looks_and_places_of_their_own),
        cmocka_unit_test(what_cannot_be_drawn_is_refused),
        cmocka_unit_test(one_point_and_level_lines_have_finite_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
