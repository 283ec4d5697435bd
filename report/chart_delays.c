/* A group of bars for each delay, and one for what was dropped, apart from these. */
#include <math.h>
#include <stdio.h>

#include "report/charts.h"
#include "report/svg.h"

static const double WIDTH = 540, HEIGHT = 290, LEFT = 44, RIGHT = 532, TOP = 34, BOTTOM = 232, DROPPED_ROOM = 76,
                    LEAST_BAR = 1, LABEL = 54;
static const char *const classes[CHART_DELAY_SERIES] = {"bar", "bar part"};

static double most_of(const struct chart_delays *c) {
    double most = 0;
    for (size_t s = 0; s < c->n_series; s++) {
        for (size_t b = 0; b < c->n; b++)
            most = fmax(most, c->series[s].shares[b]);
        most = fmax(most, c->series[s].dropped);
    }
    return most;
}

static void bar(struct markup *m, const struct svg_axis *y, const struct chart_delays *c, size_t s, double left,
                double width, double share, const char *what) {
    const double top = svg_axis_place(y, share);
    svg_rectangle_begin(m, classes[s], left, top, width, share > 0 ? fmax(BOTTOM - top, LEAST_BAR) : 0);
    markup_begin(m, "title");
    markup_textf(m, "%s, %s: %.1f%%", what, c->series[s].name, 100 * share);
    markup_end(m);
    markup_end(m);
}

/* The bars of all series side by side in the room from `left` on. Labels stand as often as they fit, also on a phone.
 */
static void group(struct markup *m, const struct svg_axis *y, const struct chart_delays *c, size_t b, double left,
                  double room) {
    const double width = room * 0.84 / (double)c->n_series;
    char what[96] = "dropped";
    if (b < c->n)
        snprintf(what, sizeof what, "delay %s", c->labels[b]);
    for (size_t s = 0; s < c->n_series; s++)
        bar(m, y, c, s, left + room * 0.08 + width * (double)s, width,
            b < c->n ? c->series[s].shares[b] : c->series[s].dropped, what);
    if (b % (size_t)ceil(LABEL / room) == 0 || b == c->n)
        svg_text(m, "tick", left + room / 2, BOTTOM + 18, SVG_MIDDLE, "%s", b < c->n ? c->labels[b] : "dropped");
}

static void legend(struct markup *m, const struct chart_delays *c) {
    double x = LEFT;
    for (size_t s = 0; s < c->n_series; s++) {
        svg_rectangle_begin(m, classes[s], x, 8, 14, 10);
        markup_end(m);
        svg_text(m, "note", x + 20, 17, SVG_START, "%s", c->series[s].name);
        x += 120;
    }
}

static void begin(struct markup *m, const char *id, const struct chart_delays *c) {
    char words[512];
    size_t at = 0;
    for (size_t s = 0; s < c->n_series && at < sizeof words; s++)
        at += (size_t)snprintf(words + at, sizeof words - at,
                               "%s%.40s: %.1f%% of the updates have delay %s, %.1f%% are dropped.", s ? " " : "",
                               c->series[s].name, c->n ? 100 * c->series[s].shares[0] : 0, c->n ? c->labels[0] : "0",
                               100 * c->series[s].dropped);
    svg_begin(m, id, "chart mid", WIDTH, HEIGHT, c->title, words);
}

void chart_delays(struct markup *m, const char *id, const struct chart_delays *c) {
    struct svg_axis y = {0, most_of(c), false, BOTTOM, TOP};
    if (y.high <= 0)
        y.high = 1;
    const double room = (RIGHT - LEFT - DROPPED_ROOM) / (double)(c->n ? c->n : 1);
    begin(m, id, c);
    legend(m, c);
    svg_axis_y(m, &y, 0.01, LEFT, RIGHT, 6);
    svg_text(m, "label", LEFT - 8, 17, SVG_END, "%%");
    for (size_t b = 0; b < c->n; b++)
        group(m, &y, c, b, LEFT + room * (double)b, room);
    group(m, &y, c, c->n, RIGHT - DROPPED_ROOM + 12, DROPPED_ROOM - 12);
    svg_text(m, "label", (LEFT + RIGHT - DROPPED_ROOM) / 2, HEIGHT - 12, SVG_MIDDLE,
             "delay: versions of the model between");
    markup_end(m);
}
