/* Dots carry their data as a title, which browsers show where the pointer is; with more than TITLES dots the titles
 * would make the file large for little use. */
#include "report/charts.h"

#include <math.h>
#include <stdio.h>

#include "base/units.h"
#include "report/placing.h"
#include "report/svg.h"

enum { TITLES = 250 };
static const double AIR = 0.08;
static const double LOG_FROM = 4; /* largest over smallest, from which on an axis is logarithmic */

static bool is_measured(const struct chart_trial *trial) {
    return trial->outcome == CHART_COMPLETE && trial->measured_us > 0;
}

static const char *kind_of(const struct chart_trial *trial) {
    return trial->final ? "dot final" : trial->baseline ? "dot baseline" : "dot";
}

static void title_of(struct markup *m, const struct chart_trial *trial) {
    char measured[32], predicted[32];
    markup_begin(m, "title");
    markup_textf(m, "trial %llu: %s", (unsigned long long)trial->number, trial->strategy);
    if (is_measured(trial))
        markup_textf(m, ", %s", units_format_time(trial->measured_us, measured, sizeof measured));
    else
        markup_text(m, ", did not complete");
    if (trial->predicted_us > 0)
        markup_textf(m, " (predicted %s)", units_format_time(trial->predicted_us, predicted, sizeof predicted));
    if (!trial->baseline)
        markup_textf(m, ", by %s", trial->proposer);
    markup_end(m);
}

static void dot(struct markup *m, const struct chart_trial *trial, double x, double y, bool title) {
    if (is_measured(trial))
        svg_circle_begin(m, kind_of(trial), x, y, trial->final ? 3 : 4.5);
    else
        svg_cross_begin(m, "failed", x, y, 5);
    if (title)
        title_of(m, trial);
    markup_end(m);
}

/* ---- progress ---- */

struct progress {
    const struct chart_progress *chart;
    struct svg_axis x, y;
    struct svg_unit unit;
    double best_us;
    bool updates; /* of a trial, at least */
};

static const double PROGRESS_WIDTH = 720, PROGRESS_HEIGHT = 400, PROGRESS_TOP = 34, PROGRESS_BOTTOM = 336,
                    PROGRESS_LEFT = 64, PROGRESS_RIGHT = 706;

static struct progress progress_of(const struct chart_progress *chart) {
    struct progress p = {.chart = chart,
                         .x = {.low = 0, .high = 1, .from = PROGRESS_LEFT, .to = PROGRESS_RIGHT},
                         .y = {.low = INFINITY, .high = -INFINITY, .from = PROGRESS_BOTTOM, .to = PROGRESS_TOP},
                         .best_us = INFINITY};
    for (size_t i = 0; i < chart->n; i++) {
        svg_axis_include(&p.x, (double)chart->trials[i].number + 0.5);
        if (!is_measured(&chart->trials[i]))
            continue;
        svg_axis_include(&p.y, chart->trials[i].measured_us);
        p.updates |= chart->trials[i].updates;
        if (!chart->trials[i].updates)
            p.best_us = fmin(p.best_us, chart->trials[i].measured_us);
    }
    svg_axis_include(&p.y, chart->bound_us);
    svg_axis_include(&p.y, chart->baseline_us);
    p.y.log = p.y.low > 0 && p.y.high / p.y.low > LOG_FROM;
    p.unit = svg_time_unit(p.y.high);
    svg_axis_finish(&p.y, AIR);
    return p;
}

/* A dashed line across, and its words above or below it at the right end. */
static void reference(struct markup *m, const struct progress *p, const char *class, double us, bool below,
                      const char *what, const char *name) {
    char text[32];
    if (!(us > 0) || !isfinite(us))
        return;
    const double y = svg_axis_place(&p->y, us);
    svg_line(m, class, PROGRESS_LEFT, y, PROGRESS_RIGHT, y);
    svg_text(m, class, PROGRESS_RIGHT - 4, below ? y + 16 : y - 6, SVG_END, "%s%.48s, %s", what, name,
             units_format_time(us, text, sizeof text));
}

/* The fastest so far, as a step line; it leaves out the repeats of the final. */
static void best_so_far(struct markup *m, const struct progress *p) {
    double best = INFINITY, last = 0;
    svg_path_begin(m, "best");
    for (size_t i = 0; i < p->chart->n; i++) {
        const struct chart_trial *trial = &p->chart->trials[i];
        const double x = svg_axis_place(&p->x, (double)trial->number);
        if (is_measured(trial) && !trial->final && !trial->updates && trial->measured_us < best) {
            const double y = svg_axis_place(&p->y, trial->measured_us);
            if (isfinite(best)) {
                svg_path_to(m, 'H', x, 0);
                svg_path_to(m, 'V', y, 0);
            } else {
                svg_path_to(m, 'M', x, y);
            }
            best = trial->measured_us;
        }
        last = x;
    }
    if (isfinite(best))
        svg_path_to(m, 'H', last, 0);
    else
        svg_path_to(m, 'M', PROGRESS_LEFT, PROGRESS_BOTTOM);
    svg_path_end(m);
    markup_end(m);
}

static double legend_item(struct markup *m, double x, double y, const char *class, double radius, const char *words,
                          double room) {
    svg_circle_begin(m, class, x, y - 4, radius);
    markup_end(m);
    svg_text(m, "note", x + 10, y, SVG_START, "%s", words);
    return x + room;
}

static void progress_legend(struct markup *m) {
    double x = PROGRESS_LEFT + 14;
    const double y = 16;
    x = legend_item(m, x, y, "dot baseline", 4.5, "baseline", 122);
    x = legend_item(m, x, y, "dot", 4.5, "candidate", 132);
    x = legend_item(m, x, y, "dot final", 3, "final", 88);
    svg_cross_begin(m, "failed", x, y - 4, 5);
    markup_end(m);
    svg_text(m, "note", x + 12, y, SVG_START, "failed");
    svg_line(m, "best", x + 96, y - 4, x + 116, y - 4);
    svg_text(m, "note", x + 122, y, SVG_START, "best so far");
}

static void progress_begin(struct markup *m, const char *id, const struct progress *p) {
    char words[512], best[32], bound[32];
    const struct chart_progress *c = p->chart;
    if (isfinite(p->best_us))
        snprintf(words, sizeof words,
                 "%zu trials; the fastest%s took %s an iteration. No strategy can take less than %s.", c->n,
                 p->updates ? " without updates" : "", units_format_time(p->best_us, best, sizeof best),
                 units_format_time(c->bound_us, bound, sizeof bound));
    else
        snprintf(words, sizeof words, "%zu trials; none has completed.", c->n);
    svg_begin(m, id, "chart wide", PROGRESS_WIDTH, PROGRESS_HEIGHT, "Measured time of each trial", words);
}

void chart_progress(struct markup *m, const char *id, const struct chart_progress *chart) {
    const struct progress p = progress_of(chart);
    progress_begin(m, id, &p);
    svg_axis_y(m, &p.y, p.unit.us, PROGRESS_LEFT, PROGRESS_RIGHT, 7);
    svg_axis_x(m, &p.x, 1, PROGRESS_BOTTOM, PROGRESS_BOTTOM + 4, 9, true);
    svg_text(m, "label", PROGRESS_LEFT - 8, 16, SVG_END, "%s", p.unit.word);
    svg_text(m, "label", (PROGRESS_LEFT + PROGRESS_RIGHT) / 2, PROGRESS_HEIGHT - 16, SVG_MIDDLE, "trial");
    progress_legend(m);
    reference(m, &p, "bound", chart->bound_us, true, "lower bound", "");
    best_so_far(m, &p);
    for (size_t i = 0; i < chart->n; i++) {
        const struct chart_trial *trial = &chart->trials[i];
        if (trial->outcome != CHART_UNDERWAY)
            dot(m, trial, svg_axis_place(&p.x, (double)trial->number),
                is_measured(trial) ? svg_axis_place(&p.y, trial->measured_us) : PROGRESS_TOP + 6, chart->n <= TITLES);
    }
    if (chart->baseline)
        reference(m, &p, "reference", chart->baseline_us, false, "best baseline: ", chart->baseline);
    markup_end(m);
}

/* ---- predicted against measured ---- */

struct accuracy {
    struct svg_axis x, y;
    struct svg_unit unit;
    size_t n, near; /* of those drawn; within a tenth */
};

static const double SQUARE = 400, SQUARE_LEFT = 58, SQUARE_RIGHT = 388, SQUARE_TOP = 20, SQUARE_BOTTOM = 342,
                    BAND = 0.1;

static bool is_comparable(const struct chart_trial *trial) {
    return is_measured(trial) && trial->predicted_us > 0;
}

static struct accuracy accuracy_of(size_t n, const struct chart_trial *trials) {
    struct svg_axis range = {.low = INFINITY, .high = -INFINITY};
    struct accuracy a = {0};
    for (size_t i = 0; i < n; i++) {
        if (!is_comparable(&trials[i]))
            continue;
        a.n++;
        a.near += fabs(trials[i].predicted_us / trials[i].measured_us - 1) <= BAND;
        svg_axis_include(&range, trials[i].measured_us);
        svg_axis_include(&range, trials[i].predicted_us);
    }
    a.unit = svg_time_unit(range.high);
    range.log = range.low > 0 && range.high / range.low > LOG_FROM;
    svg_axis_finish(&range, AIR);
    a.x = a.y = range;
    a.x.from = SQUARE_LEFT, a.x.to = SQUARE_RIGHT;
    a.y.from = SQUARE_BOTTOM, a.y.to = SQUARE_TOP;
    return a;
}

static double clamp(const struct svg_axis *axis, double value) {
    return fmin(fmax(value, axis->low), axis->high);
}

/* The border of the band at `factor` times the prediction, from edge to edge of the chart. */
static void band_edge(struct markup *m, const struct accuracy *a, double factor, bool back) {
    const double at[2] = {clamp(&a->x, a->y.low / factor), clamp(&a->x, a->y.high / factor)};
    for (int i = 0; i < 2; i++) {
        const double x = at[back ? 1 - i : i];
        svg_path_to(m, i || back ? 'L' : 'M', svg_axis_place(&a->x, x),
                    svg_axis_place(&a->y, clamp(&a->y, x * factor)));
    }
}

static void band(struct markup *m, const struct accuracy *a) {
    svg_path_begin(m, "band");
    band_edge(m, a, 1 + BAND, false);
    svg_path_to(m, 'L', a->x.to, a->y.to);
    band_edge(m, a, 1 - BAND, true);
    svg_path_to(m, 'L', a->x.from, a->y.from);
    svg_path_to(m, 'Z', 0, 0);
    svg_path_end(m);
    markup_end(m);
    svg_line(m, "diagonal", a->x.from, a->y.from, a->x.to, a->y.to);
}

void chart_accuracy(struct markup *m, const char *id, size_t n, const struct chart_trial *trials) {
    const struct accuracy a = accuracy_of(n, trials);
    char words[256];
    snprintf(words, sizeof words, "%zu of %zu predictions were within 10%% of what was measured.", a.near, a.n);
    svg_begin(m, id, "chart", SQUARE, SQUARE, "Predicted against measured time", words);
    band(m, &a);
    svg_axis_y(m, &a.y, a.unit.us, SQUARE_LEFT, SQUARE_RIGHT, 7);
    svg_axis_x(m, &a.x, a.unit.us, SQUARE_TOP, SQUARE_BOTTOM, 6, false);
    svg_text(m, "label", SQUARE_LEFT - 8, 12, SVG_END, "%s", a.unit.word);
    svg_text(m, "label", SQUARE_LEFT, 12, SVG_START, "measured");
    svg_text(m, "label", SQUARE_RIGHT, SQUARE - 18, SVG_END, "predicted, %s", a.unit.word);
    for (size_t i = 0; i < n; i++)
        if (is_comparable(&trials[i]))
            dot(m, &trials[i], svg_axis_place(&a.x, trials[i].predicted_us),
                svg_axis_place(&a.y, trials[i].measured_us), n <= TITLES);
    markup_end(m);
}

/* ---- bars ---- */

static const double BARS_WIDTH = 540, BAR_ROW = 44, BAR_HEIGHT = 14, BAR_ROOM = 120;

void chart_bars(struct markup *m, const char *id, const char *title, const char *description, size_t n,
                const struct chart_bar *bars) {
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, bars[i].value);
    svg_begin(m, id, "chart mid", BARS_WIDTH, BAR_ROW * (double)n + 4, title, description);
    for (size_t i = 0; i < n; i++) {
        const double y = BAR_ROW * (double)i, scale = most > 0 ? (BARS_WIDTH - BAR_ROOM) / most : 0;
        svg_text(m, "", 0, y + 16, SVG_START, "%s", bars[i].words);
        svg_rectangle_begin(m, "bar", 0, y + 22, fmax(bars[i].value * scale, 1), BAR_HEIGHT);
        markup_end(m);
        if (bars[i].part > 0) {
            svg_rectangle_begin(m, "bar part", 0, y + 22, bars[i].part * scale, BAR_HEIGHT);
            markup_end(m);
        }
        svg_text(m, "note", bars[i].value * scale + 8, y + 34, SVG_START, "%s", bars[i].note);
    }
    markup_end(m);
}
