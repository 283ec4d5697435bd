/* Charts: what is drawn lies where its numbers say, whatever the names, and a thousand pixels stay a thousand pixels.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "report/charts.h"
#include "tests/unit/report/strict_xml.h"

static const char HOSTILE[] = "</svg><script>alert(\"1\")</script>&\x01\xff";

static char *take(struct markup *m) {
    struct error err;
    char *text;
    assert_ok(markup_take(m, &text, NULL, &err));
    expect_strict_xml(text);
    assert_null(strstr(text, "<script"));
    return text;
}

static struct chart_trial trial_of(uint64_t number, double predicted_us, double measured_us) {
    return (struct chart_trial){.number = number,
                                .strategy = "s",
                                .proposer = "guided",
                                .outcome = isnan(measured_us) ? CHART_FAILED : CHART_COMPLETE,
                                .predicted_us = predicted_us,
                                .measured_us = measured_us};
}

/* The dots that have a title, which those of legends have not: cx and cy. */
static size_t dots_of(const char *text, size_t most, double (*out)[2]) {
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, "<circle ")); at++) {
        const char *end = strchr(at, '>');
        if (end[-1] == '/')
            continue;
        assert_true(n < most);
        out[n][0] = strtod(strstr(at, "cx=\"") + 4, NULL);
        out[n++][1] = strtod(strstr(at, "cy=\"") + 4, NULL);
    }
    return n;
}

static char *progress_of(size_t n, const struct chart_trial *trials, double baseline_us, double bound_us) {
    struct markup m = {0};
    const struct chart_progress chart = {n, trials, HOSTILE, baseline_us, bound_us};
    chart_progress(&m, "p", &chart);
    return take(&m);
}

static void faster_trials_are_lower_and_later_ones_further_right(void **state) {
    (void)state;
    const double us[] = {50e3, 42e3, 47e3, 30e3};
    struct chart_trial trials[4];
    double dots[4][2];
    for (size_t i = 0; i < 4; i++)
        trials[i] = trial_of(i + 1, 40e3, us[i]);
    char *text = progress_of(4, trials, 45e3, 25e3);
    assert_int_equal(dots_of(text, 4, dots), 4);
    for (size_t i = 1; i < 4; i++) {
        assert_true(dots[i][0] > dots[i - 1][0]);
        assert_true((us[i] > us[i - 1]) == (dots[i][1] < dots[i - 1][1]));
        /* On a linear axis distances are as the differences. */
        assert_true(fabs((dots[i][1] - dots[0][1]) / (dots[3][1] - dots[0][1]) - (us[i] - us[0]) / (us[3] - us[0])) <
                    2e-3);
    }
    free(text);
}

static void the_step_line_follows_the_fastest_and_not_the_final(void **state) {
    (void)state;
    struct chart_trial trials[] = {trial_of(1, 40e3, 50e3), trial_of(2, 40e3, 60e3), trial_of(3, 40e3, 40e3),
                                   trial_of(4, 40e3, 35e3)};
    double dots[4][2];
    trials[3].final = true;
    char *text = progress_of(4, trials, NAN, 25e3);
    assert_int_equal(dots_of(text, 4, dots), 4);
    char want[128];
    snprintf(want, sizeof want, "<path class=\"best\" d=\"M%.12g %.12gH%.12gV%.12gH%.12g\"/>", dots[0][0], dots[0][1],
             dots[2][0], dots[2][1], dots[3][0]);
    assert_contains(text, want);
    free(text);
}

static void failures_are_crosses_and_trials_under_way_are_not_drawn(void **state) {
    (void)state;
    struct chart_trial trials[] = {trial_of(1, 40e3, 50e3), trial_of(2, NAN, NAN), trial_of(3, 40e3, NAN)};
    double dots[2][2];
    trials[2].outcome = CHART_UNDERWAY;
    char *text = progress_of(3, trials, NAN, 25e3);
    assert_int_equal(dots_of(text, 2, dots), 1);
    assert_int_equal(count_of(text, "class=\"failed\""), 2); /* one is the legend's */
    assert_contains(text, "trial 2: s, did not complete");
    free(text);
}

static void nothing_measured_can_be_drawn(void **state) {
    (void)state;
    struct chart_trial trials[] = {trial_of(1, NAN, NAN)};
    char *text = progress_of(1, trials, NAN, NAN);
    assert_contains(text, "none has completed");
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
    free(text);
    text = progress_of(0, NULL, NAN, 25e3);
    free(text);
    struct markup m = {0};
    chart_accuracy(&m, "a", 1, trials);
    text = take(&m);
    assert_contains(text, "0 of 0 predictions");
    free(text);
}

/* Random trials that came out as predicted lie on the diagonal, and others on their side of it. */
static void true_predictions_lie_on_the_diagonal(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int t = 0; t < 50; t++) {
        struct chart_trial trials[20];
        double dots[20][2], off[20];
        for (size_t i = 0; i < 20; i++) {
            const double us = rng_log_between(&rng, 1e3, t % 2 ? 3e3 : 1e6);
            off[i] = i % 2 ? 1 : rng_between(&rng, 0.6, 1.4);
            trials[i] = trial_of(i + 1, us, us * off[i]);
        }
        struct markup m = {0};
        chart_accuracy(&m, "a", 20, trials);
        char *text = take(&m), *end;
        assert_int_equal(dots_of(text, 20, dots), 20);
        const char *diagonal = strstr(text, "class=\"diagonal\" d=\"M") + strlen("class=\"diagonal\" d=\"M");
        const double x0 = strtod(diagonal, &end), y0 = strtod(end, &end);
        const double x1 = strtod(end + 1, &end), y1 = strtod(end, &end);
        for (size_t i = 0; i < 20; i++) {
            const double above = (y0 + (dots[i][0] - x0) / (x1 - x0) * (y1 - y0)) - dots[i][1];
            assert_true(off[i] == 1 ? fabs(above) < 0.25 : (above > -0.25) == (off[i] > 1) || fabs(above) < 0.25);
        }
        free(text);
    }
}

static void names_cannot_break_a_chart(void **state) {
    (void)state;
    struct chart_trial trials[] = {trial_of(1, 40e3, 50e3)};
    const struct chart_span spans[] = {{.start_us = 0, .end_us = 90, .kind = CHART_MESSAGE, .label = HOSTILE}};
    const struct chart_lane lanes[] = {{HOSTILE, HOSTILE, 1, spans, 0}};
    const struct chart_timeline timelines[] = {{.name = HOSTILE,
                                                .iteration_us = 100,
                                                .window_us = 100,
                                                .waiting_us = 10,
                                                .n_lanes = 1,
                                                .lanes = lanes,
                                                .hidden = 0}};
    const struct chart_bar bars[] = {{HOSTILE, 0.5, 0.2, HOSTILE}};
    struct markup m = {0};
    trials[0].strategy = trials[0].proposer = HOSTILE;
    free(progress_of(1, trials, 45e3, 25e3));
    chart_accuracy(&m, "a", 1, trials);
    free(take(&m));
    chart_bars(&m, "b", HOSTILE, HOSTILE, 1, bars);
    free(take(&m));
    chart_timelines(&m, "t", 1, timelines);
    free(take(&m));
    const double share = 1;
    const char *const label = HOSTILE;
    const struct chart_delays delays = {HOSTILE, 1, &label, 1, {{.name = HOSTILE, .shares = &share, .dropped = 0}}};
    chart_delays(&m, "d", &delays);
    free(take(&m));
}

static void bars_are_as_long_as_their_values(void **state) {
    (void)state;
    const struct chart_bar bars[] = {{"a", 8, 2, "8"}, {"b", 4, NAN, "4"}};
    struct markup m = {0};
    chart_bars(&m, "b", "t", "d", 2, bars);
    char *text = take(&m);
    double widths[3];
    const char *at = text;
    for (size_t i = 0; i < 3; i++) {
        at = strstr(at, "<rect ") + 1;
        widths[i] = strtod(strstr(at, "width=\"") + 7, NULL);
    }
    assert_close(widths[1] / widths[0], 2.0 / 8, 1e-3);
    assert_close(widths[2] / widths[0], 4.0 / 8, 1e-3);
    free(text);
}

/* ---- timelines ---- */

enum { MOST_SPANS = 20000 };

/* Alternately `kind` and waiting, at random lengths, over the whole window. *waiting_us is how long it waits. */
static size_t alternate(struct rng *rng, double window_us, size_t n, struct chart_span *out, double *waiting_us) {
    double at = 0, unit = window_us / (double)n;
    size_t k = 0;
    *waiting_us = 0;
    for (; k < n && at < window_us; k++) {
        const double end = fmin(at + unit * rng_between(rng, 0.1, 1.9), window_us);
        out[k] = (struct chart_span){.start_us = at, .end_us = end, .kind = k % 2 ? CHART_WAITING : CHART_FORWARD};
        *waiting_us += k % 2 ? end - at : 0;
        at = end;
    }
    return k;
}

static size_t overlap(struct rng *rng, double window_us, size_t n, struct chart_span *out) {
    double at = 0;
    for (size_t k = 0; k < n; k++) {
        at += window_us / (double)n * rng_between(rng, 0, 1);
        out[k] = (struct chart_span){.start_us = at,
                                     .end_us = fmin(at + window_us / (double)n * rng_between(rng, 0, 6), window_us),
                                     .kind = CHART_MESSAGE,
                                     .shade = (unsigned)rng_below(rng, CHART_SHADES),
                                     .label = "all-reduce, a"};
    }
    return n;
}

/* All boxes of a class: their widths together; none leaves the chart. */
static double width_of(const char *text, const char *class) {
    char start[64];
    double sum = 0;
    snprintf(start, sizeof start, "<path class=\"%s\" d=\"", class);
    for (const char *at = text; (at = strstr(at, start));) {
        char *end;
        for (at += strlen(start); *at == 'M'; at = strchr(at, 'Z') + 1) {
            const double left = strtod(at + 1, &end), right = strtod(strchr(end, 'H') + 1, NULL);
            assert_true(left >= 0 && right >= left && right <= 1000);
            sum += right - left;
        }
    }
    return sum;
}

static void waiting_is_drawn_as_long_as_it_takes_at_any_fineness(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    struct chart_span *spans = calloc(MOST_SPANS, sizeof *spans);
    assert_non_null(spans);
    for (size_t n = 2; n <= 600; n *= 3) {
        struct chart_lane lane = {.node = "n1", .what = "compute", .spans = spans};
        struct chart_timeline timeline = {
            .name = "a", .iteration_us = 1e5, .window_us = 1e5, .n_lanes = 1, .lanes = &lane};
        struct markup m = {0};
        lane.n = alternate(&rng, 1e5, n, spans, &timeline.waiting_us);
        chart_timelines(&m, "t", 1, &timeline);
        char *text = take(&m);
        const double legend = 14, drawn = width_of(text, "waiting") - legend;
        assert_true(fabs(drawn / (984 - 132) - timeline.waiting_us / 1e5) < 0.1);
        free(text);
    }
    free(spans);
}

static void many_messages_stay_a_small_picture(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    struct chart_span *spans = calloc(MOST_SPANS, sizeof *spans);
    assert_non_null(spans);
    for (size_t n = 20; n <= MOST_SPANS; n *= 10) {
        struct chart_lane lanes[6];
        for (size_t l = 0; l < 6; l++)
            lanes[l] = (struct chart_lane){l < 3 ? "n1" : "n2", "push", overlap(&rng, 1e6, n, spans), spans, 0};
        const struct chart_timeline timelines[] = {{.name = "a",
                                                    .iteration_us = 1e6,
                                                    .window_us = 1e6,
                                                    .waiting_us = 0,
                                                    .n_lanes = 6,
                                                    .lanes = lanes,
                                                    .hidden = 3},
                                                   {.name = "b",
                                                    .iteration_us = 8e5,
                                                    .window_us = 1e6,
                                                    .waiting_us = 0,
                                                    .n_lanes = 6,
                                                    .lanes = lanes,
                                                    .hidden = 0}};
        struct markup m = {0};
        chart_timelines(&m, "t", 2, timelines);
        char *text = take(&m);
        assert_true(strlen(text) < 110000);
        assert_true(count_of(text, "all-reduce, a") <= 300);
        for (int shade = 0; shade < CHART_SHADES; shade++) {
            char class[4];
            snprintf(class, sizeof class, "m%d", shade);
            assert_true(width_of(text, class) > 14); /* more than in the legend */
        }
        free(text);
    }
    free(spans);
}

static void two_timelines_share_one_axis(void **state) {
    (void)state;
    const struct chart_span spans[] = {{.start_us = 0, .end_us = 3e4, .kind = CHART_FORWARD}};
    const struct chart_lane lane = {"n1", "compute", 1, spans, 0};
    const struct chart_timeline timelines[] = {{.name = "slow",
                                                .iteration_us = 8e4,
                                                .window_us = 8e4,
                                                .waiting_us = 5e4,
                                                .n_lanes = 1,
                                                .lanes = &lane,
                                                .hidden = 0},
                                               {.name = "fast",
                                                .iteration_us = 4e4,
                                                .window_us = 4e4,
                                                .waiting_us = 1e4,
                                                .n_lanes = 1,
                                                .lanes = &lane,
                                                .hidden = 0}};
    struct markup m = {0};
    double ends[2];
    chart_timelines(&m, "t", 2, timelines);
    char *text = take(&m);
    const char *at = text;
    for (int i = 0; i < 2; i++) {
        at = strstr(at, "<path class=\"end\" d=\"M") + strlen("<path class=\"end\" d=\"M");
        ends[i] = strtod(at, NULL);
    }
    assert_close((ends[1] - 132) / (ends[0] - 132), 0.5, 1e-3);
    assert_contains(text,
                    "slow takes 80.0 ms an iteration and fast 40.0 ms: 40.0 ms less (50.0%). The devices wait for "
                    "gradients 50.0 ms and 10.0 ms of it.");
    free(text);
}

static void differences_are_said_in_words(void **state) {
    (void)state;
    struct chart_timeline t[] = {{.name = "a", .iteration_us = 1e5}, {.name = "b", .iteration_us = 1e5 + 10}};
    char words[CHART_WORDS];
    chart_timelines_words(2, t, words);
    assert_contains(words, "no difference");
    t[1].iteration_us = 2e5;
    chart_timelines_words(2, t, words);
    assert_contains(words, "100 ms more (100.0%)");
    chart_timelines_words(1, t, words);
    assert_contains(words, "a takes 100 ms an iteration");
}

/* ---- weather ---- */

/* Random rates: each piece is as wide as it lasts and as high as its share of the NIC's own rate; together they fill
 * the lane. */
static void rates_are_as_high_as_their_shares(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int t = 0; t < 50; t++) {
        enum { PIECES = 7 };
        struct chart_rate rates[PIECES] = {{0, rng_between(&rng, 0.1, 10)}};
        for (size_t i = 1; i < PIECES; i++)
            rates[i] =
                (struct chart_rate){rates[i - 1].from_us + rng_between(&rng, 1e3, 1e4), rng_between(&rng, 0.1, 10)};
        const struct chart_span span = {.start_us = 0, .end_us = 1e4, .kind = CHART_SLOW};
        const struct chart_lane lane = {"n1", "compute", 1, &span, 0};
        const struct chart_rates nic = {HOSTILE, "in", 10, PIECES, rates};
        const double window_us = rates[PIECES - 1].from_us + 5e3;
        const struct chart_timeline timeline = {
            .name = "a",
            .iteration_us = window_us,
            .window_us = window_us,
            .n_lanes = 1,
            .lanes = &lane,
            .weather = {.seed = 3, .from_us = 2e6, .n_rates = 1, .rates = &nic, .hidden = 7}};
        struct markup m = {0};
        chart_timelines(&m, "t", 1, &timeline);
        char *text = take(&m), *end;
        const char *at = text;
        double right = 132;
        for (size_t i = 0; i < PIECES; i++) {
            at = strstr(at, "<path class=\"rate\" d=\"M") + strlen("<path class=\"rate\" d=\"M");
            const double left = strtod(at, &end), top = strtod(end, &end);
            const double until = i + 1 < PIECES ? rates[i + 1].from_us : window_us;
            assert_true(fabs(left - right) < 0.2);
            right = strtod(end + 1, &end);
            const double bottom = strtod(end + 1, NULL);
            assert_true(fabs(right - left - (until - rates[i].from_us) / window_us * (984 - 132)) < 0.2);
            assert_true(fabs(bottom - top - 15 * rates[i].gbit_per_s / 10) < 0.2);
        }
        assert_true(fabs(right - 984) < 0.2);
        assert_int_equal(count_of(text, "class=\"rate\""), PIECES + 1); /* one is the legend's */
        assert_contains(text, "slowed down");
        assert_contains(text, "In weather 3, from 2.000 s on");
        assert_contains(text, "7 more NICs have less than their own rate.");
        free(text);
    }
}

/* The legend has what is drawn, and words for whole updates only where these are. */
static void a_legend_tells_what_is_drawn(void **state) {
    (void)state;
    const struct chart_span spans[] = {{.start_us = 0, .end_us = 60, .kind = CHART_WHOLE},
                                       {.start_us = 60, .end_us = 90, .kind = CHART_WAITING}};
    const struct chart_span sums = {.start_us = 0, .end_us = 90, .kind = CHART_MESSAGE, .shade = CHART_SUM};
    const struct chart_lane lanes[] = {{"n2", "compute", 2, spans, 0}, {"n2", "sends", 1, &sums, 0}};
    const struct chart_timeline timeline = {.name = "a",
                                            .iteration_us = 90,
                                            .window_us = 90,
                                            .waiting_us = 30,
                                            .n_lanes = 2,
                                            .lanes = lanes,
                                            .updates_of = "n2"};
    struct markup m = {0};
    chart_timelines(&m, "t", 1, &timeline);
    char *text = take(&m);
    assert_contains(text, "sum of updates");
    assert_contains(text, ">computing<");
    assert_contains(text, "a: 90.0 µs an iteration on n2, 30.0 µs of it waiting");
    assert_contains(text, "a takes 90.0 µs an iteration on n2, whose worker waits 30.0 µs of it.");
    static const char *const absent[] = {">model<", ">update<", "forward", "slowed", "next iteration", "rate of a NIC"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        assert_null(strstr(text, absent[i]));
    free(text);
}

/* What is said of the strategy is the mean; the one that is drawn may take longer. */
static void words_tell_the_mean_from_the_iteration_that_is_shown(void **state) {
    (void)state;
    char words[CHART_WORDS];
    struct chart_timeline two[] = {{.name = "a", .iteration_us = 28.636e6, .predicted_us = 28.539e6, .waiting_us = 1e6},
                                   {.name = "b", .iteration_us = 28.539e6, .waiting_us = 2e6}};
    chart_timelines_words(1, two, words);
    assert_string_equal(words, "a takes 28.539 s an iteration. The one that is shown takes 28.636 s; 1.000 s of it the "
                               "devices wait for gradients.");
    chart_timelines_words(1, &two[1], words);
    assert_string_equal(words, "b takes 28.539 s an iteration; 2.000 s of it the devices wait for gradients.");
    chart_timelines_words(2, two, words);
    assert_contains(words, "a takes 28.539 s an iteration and b 28.539 s: no difference.");
}

static void a_timeline_without_lanes_can_be_drawn(void **state) {
    (void)state;
    const struct chart_timeline timeline = {.name = "a", .iteration_us = 90, .window_us = 90};
    struct markup m = {0};
    chart_timelines(&m, "t", 1, &timeline);
    char *text = take(&m);
    assert_contains(text, "next iteration at 90.0 µs");
    free(text);
}

static void bars_of_delays_are_as_high_as_their_shares(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int t = 0; t < 50; t++) {
        enum { BARS = 5 };
        static const char *const labels[BARS] = {"0", "1", "2", "3", "4"};
        double shares[2][BARS], dropped[2], tallest = 0, heights[2 * BARS + 2];
        for (size_t s = 0; s < 2; s++) {
            for (size_t b = 0; b < BARS; b++)
                tallest = fmax(tallest, shares[s][b] = rng_between(&rng, 0.05, 0.5));
            tallest = fmax(tallest, dropped[s] = rng_between(&rng, 0.05, 0.5));
        }
        const struct chart_delays chart = {
            "t", BARS, labels, 2, {{"predicted", shares[0], dropped[0]}, {"measured", shares[1], dropped[1]}}};
        struct markup m = {0};
        chart_delays(&m, "d", &chart);
        char *text = take(&m);
        const char *at = text;
        for (size_t i = 0; i < 2 + 2 * (BARS + 1); i++) { /* two are the legend's */
            at = strstr(at, "<rect ") + 1;
            if (i >= 2)
                heights[i - 2] = strtod(strstr(at, "height=\"") + 8, NULL);
        }
        for (size_t i = 0; i < 2 * (BARS + 1); i++) {
            const double share = i / 2 < BARS ? shares[i % 2][i / 2] : dropped[i % 2];
            assert_true(fabs(heights[i] / (232 - 34) - share / tallest) < 2e-3);
        }
        free(text);
    }
}

static void no_updates_at_all_can_be_drawn(void **state) {
    (void)state;
    const double share = 0;
    const char *const label = "0";
    const struct chart_delays chart = {"t", 1, &label, 1, {{"predicted", &share, 0}}};
    struct markup m = {0};
    chart_delays(&m, "d", &chart);
    char *text = take(&m);
    assert_contains(text, "predicted: 0.0% of the updates have delay 0, 0.0% are dropped.");
    assert_null(strstr(text, "nan"));
    free(text);
}

/* More memory is further right, a slower one higher, and the step line goes through those that are faster than all
 * before them. */
static void the_front_is_a_step_line_through_its_dots(void **state) {
    (void)state;
    static const struct chart_point points[] = {
        {HOSTILE, 1 << 20, 90e3}, {"b", 2 << 20, 95e3}, {"c", 3 << 20, 40e3}, {"d", 3.5 * (1 << 20), 60e3}};
    struct markup m = {0};
    double dots[4][2];
    char want[128];
    chart_front(&m, "f", 4, points);
    char *text = take(&m);
    assert_int_equal(dots_of(text, 4, dots), 4);
    for (size_t i = 1; i < 4; i++) {
        assert_true(dots[i][0] > dots[i - 1][0]);
        assert_true((points[i].us > points[i - 1].us) == (dots[i][1] < dots[i - 1][1]));
    }
    snprintf(want, sizeof want, "<path class=\"best\" d=\"M%.12g %.12gH%.12gV%.12gH", dots[0][0], dots[0][1],
             dots[2][0], dots[2][1]);
    assert_contains(text, want);
    assert_contains(text, "c: 40.0 ms, 3 MiB");
    assert_contains(text, ">2</text>"); /* MiB */
    assert_contains(text, ">3</text>");
    assert_int_equal(count_of(text, "class=\"dot\""), 3); /* one is the legend's */
    free(text);
    for (size_t n = 0; n < 2; n++) {
        chart_front(&m, "f", n, points);
        text = take(&m);
        assert_null(strstr(text, "nan"));
        assert_null(strstr(text, "inf"));
        free(text);
    }
}

static void equal_input_gives_equal_bytes(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    struct chart_span *spans = calloc(5000, sizeof *spans);
    assert_non_null(spans);
    const struct chart_lane lane = {"n1", "push", overlap(&rng, 1e6, 5000, spans), spans, 0};
    const struct chart_timeline timeline = {
        .name = "a", .iteration_us = 1e6, .window_us = 1e6, .waiting_us = 0, .n_lanes = 1, .lanes = &lane, .hidden = 3};
    char *texts[2];
    for (int i = 0; i < 2; i++) {
        struct markup m = {0};
        chart_timelines(&m, "t", 1, &timeline);
        texts[i] = take(&m);
    }
    assert_string_equal(texts[0], texts[1]);
    free(texts[0]);
    free(texts[1]);
    free(spans);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faster_trials_are_lower_and_later_ones_further_right),
        cmocka_unit_test(the_step_line_follows_the_fastest_and_not_the_final),
        cmocka_unit_test(failures_are_crosses_and_trials_under_way_are_not_drawn),
        cmocka_unit_test(nothing_measured_can_be_drawn),
        cmocka_unit_test(true_predictions_lie_on_the_diagonal),
        cmocka_unit_test(names_cannot_break_a_chart),
        cmocka_unit_test(bars_are_as_long_as_their_values),
        cmocka_unit_test(waiting_is_drawn_as_long_as_it_takes_at_any_fineness),
        cmocka_unit_test(many_messages_stay_a_small_picture),
        cmocka_unit_test(two_timelines_share_one_axis),
        cmocka_unit_test(differences_are_said_in_words),
        cmocka_unit_test(rates_are_as_high_as_their_shares),
        cmocka_unit_test(a_legend_tells_what_is_drawn),
        cmocka_unit_test(words_tell_the_mean_from_the_iteration_that_is_shown),
        cmocka_unit_test(a_timeline_without_lanes_can_be_drawn),
        cmocka_unit_test(bars_of_delays_are_as_high_as_their_shares),
        cmocka_unit_test(no_updates_at_all_can_be_drawn),
        cmocka_unit_test(the_front_is_a_step_line_through_its_dots),
        cmocka_unit_test(equal_input_gives_equal_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
