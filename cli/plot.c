/* See plot.h. The colours are those of Okabe and Ito (2008) without yellow, which white paper swallows, and with a dark
 * grey; colour, dash and marker run through cycles of 7, 3 and 6, so that no two of 42 lines look alike. Names stand at
 * the line ends, moved apart by placing_spread and tied to their ends by a thin stroke. */
#include "cli/plot.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/placing.h"

static const double LEFT = 78, TOP = 78, BOTTOM = 62, PLOT_WIDTH = 700, LEAST_HEIGHT = 420;
static const double NAME_GAP = 16, LEADER = 34, GLYPH = 7; /* px: between names, to a name, a character of one */
enum { MAX_TICKS = 32, MAX_X_TICKS = 16, MAX_NAME = 32, MAX_LABEL = 160, COLOURS = 7, DASHES = 3, MARKERS = 6 };

static const char STYLE[] =
    "text{font-family:'DejaVu Sans',Verdana,Helvetica,Arial,sans-serif;font-size:12px;fill:#222}"
    ".title{font-size:17px;font-weight:bold}.note,.tick{fill:#555}"
    ".grid{stroke:#e4e4e4;stroke-width:1}.frame{stroke:#888;stroke-width:1;fill:none}"
    ".line path{fill:none;stroke-width:2;stroke-linejoin:round}.line .leader{stroke-width:.8;stroke-dasharray:none;"
    "opacity:.7}.reference path{stroke-width:1.5}.line:hover path{stroke-width:4}.line:hover .leader{stroke-width:2}"
    ".line:hover text{font-weight:bold}";

/* ---- what is drawn ---- */

struct axis {
    double low, high; /* of the values; their logarithms if log */
    bool log;
    double from, to; /* pixels */
};

struct chart {
    const struct plot *plot;
    struct axis x, y;
    size_t marked; /* 1: every point has a marker; 2: every second point; and so on */
    FILE *to;
};

static double scaled(const struct axis *axis, double value) {
    return axis->log ? log(value) : value;
}

static double pixel(const struct axis *axis, double value) {
    return axis->from + (scaled(axis, value) - axis->low) / (axis->high - axis->low) * (axis->to - axis->from);
}

static bool drawn(const struct plot *plot, const struct plot_line *line, size_t i) {
    return isfinite(line->y[i]) && (!plot->y_log || line->y[i] > 0) && (!plot->x_log || plot->x[i] > 0);
}

/* The index of the last point of a line, or SIZE_MAX. */
static size_t last_point(const struct plot *plot, const struct plot_line *line) {
    for (size_t i = plot->n; i-- > 0;)
        if (drawn(plot, line, i))
            return i;
    return SIZE_MAX;
}

static void include(struct axis *axis, double value) {
    axis->low = fmin(axis->low, scaled(axis, value));
    axis->high = fmax(axis->high, scaled(axis, value));
}

/* Make the range start at 0 if it shall, widen one of a single value, and leave a margin. */
static void finish(struct axis *axis, bool from_zero) {
    if (from_zero && axis->low > 0)
        axis->low = 0;
    if (axis->high - axis->low < 1e-12 * fmax(fabs(axis->high), 1)) {
        axis->low -= 0.5 * fmax(fabs(axis->low), 1);
        axis->high += 0.5 * fmax(fabs(axis->high), 1);
    }
    double air = 0.03 * (axis->high - axis->low);
    axis->high += air;
    if (!from_zero || axis->low < 0)
        axis->low -= air;
}

static enum status chart_init(struct chart *chart, const struct plot *plot, FILE *to, struct error *err) {
    *chart = (struct chart){.plot = plot, .to = to, .marked = plot->n / MAX_TICKS + 1};
    chart->x = (struct axis){INFINITY, -INFINITY, plot->x_log, LEFT, LEFT + PLOT_WIDTH};
    chart->y = (struct axis){INFINITY, -INFINITY, plot->y_log, 0, 0};
    double height = fmax(LEAST_HEIGHT, NAME_GAP * (double)plot->n_lines);
    chart->y.from = TOP + height;
    chart->y.to = TOP;
    if (plot->n_lines > PLOT_MAX_LINES)
        return error_set(err, ST_INVALID, "%zu lines in one chart; at most %d", plot->n_lines, PLOT_MAX_LINES);
    for (size_t l = 0; l < plot->n_lines; l++)
        for (size_t i = 0; i < plot->n; i++)
            if (drawn(plot, &plot->lines[l], i)) {
                include(&chart->x, plot->x[i]);
                include(&chart->y, plot->lines[l].y[i]);
            }
    if (chart->y.high < chart->y.low)
        return error_set(err, ST_INVALID, "%s: there is no point to draw", plot->title);
    finish(&chart->x, false);
    finish(&chart->y, !plot->y_log);
    return ST_OK;
}

static const char *entity(char c) {
    return c == '&'    ? "&amp;"
           : c == '<'  ? "&lt;"
           : c == '>'  ? "&gt;"
           : c == '"'  ? "&quot;"
           : c == '\'' ? "&apos;"
                       : NULL;
}

/* Text for XML: the five special characters escaped, what is not clean (base/text.h) or no character of XML left out,
 * at most `most` characters. */
static void put_text(FILE *to, const char *text, size_t most) {
    char shown[TEXT_SHOWN];
    for (size_t n = 0; *text;) {
        const size_t length = text_character(text, strnlen(text, 4));
        const bool allowed = length && strncmp(text, "\xef\xbf\xbe", 3) && strncmp(text, "\xef\xbf\xbf", 3);
        if (allowed && n++ == most) {
            fputs("…", to);
            return;
        }
        if (allowed)
            fprintf(to, "%.*s", entity(*text) ? (int)strlen(entity(*text)) : (int)length,
                    entity(*text) ? entity(*text) : text);
        text += length ? length : text_show(text, strnlen(text, 4), shown);
    }
}

static void put_label(FILE *to, const char *attributes, double x, double y, const char *text) {
    fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes);
    put_text(to, text, MAX_LABEL);
    fputs("</text>\n", to);
}

static double width_of(const struct plot *plot) {
    double longest = 0, head = LEFT + GLYPH * (double)text_columns(plot->subtitle, strlen(plot->subtitle));
    for (size_t l = 0; l < plot->n_lines; l++) {
        const char *name = plot->lines[l].name;
        longest = fmax(longest, fmin((double)text_columns(name, strlen(name)), MAX_NAME + 1));
    }
    return fmax(LEFT + PLOT_WIDTH + LEADER + 10 + GLYPH * longest, head) + 12;
}

static void put_head(const struct chart *chart) {
    const struct plot *plot = chart->plot;
    double width = width_of(plot), height = chart->y.from + BOTTOM;
    fprintf(chart->to,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" "
            "height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" role=\"img\">\n<title>",
            width, height, width, height);
    put_text(chart->to, plot->title, MAX_LABEL);
    fprintf(chart->to, "</title>\n<style>%s</style>\n<rect width=\"%.0f\" height=\"%.0f\" fill=\"#fff\"/>\n", STYLE,
            width, height);
    put_label(chart->to, "class=\"title\"", LEFT, 30, plot->title);
    put_label(chart->to, "class=\"note\"", LEFT, 52, plot->subtitle);
}

/* Draw the grid line of a tick of the x axis (`across` false) or of the y axis. */
static void put_tick(const struct chart *chart, bool across, double value) {
    const struct axis *x = &chart->x, *y = &chart->y;
    double at = pixel(across ? y : x, value);
    if (across)
        fprintf(chart->to,
                "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/><text class=\"tick\" x=\"%.1f\" y=\"%.1f\" "
                "text-anchor=\"end\">%.10g</text>\n",
                x->from, at, x->to, x->from - 8, at + 4, value);
    else
        fprintf(chart->to,
                "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/><text class=\"tick\" x=\"%.1f\" y=\"%.1f\" "
                "text-anchor=\"middle\">%.10g</text>\n",
                at, y->from, y->to, at, y->from + 18, value);
}

static double value_at(const struct axis *axis, double part) {
    double scaled_value = axis->low + part * (axis->high - axis->low);
    return axis->log ? exp(scaled_value) : scaled_value;
}

static void put_axes(const struct chart *chart) {
    const struct plot *plot = chart->plot;
    double ticks[MAX_TICKS];
    size_t n = plot->y_log ? placing_log_ticks(value_at(&chart->y, 0), value_at(&chart->y, 1), MAX_TICKS, ticks)
                           : placing_ticks(value_at(&chart->y, 0), value_at(&chart->y, 1), 9, ticks);
    for (size_t i = 0; i < n; i++)
        put_tick(chart, true, ticks[i]);
    if (plot->x_log && !plot->x_anywhere) { /* the values themselves, which are few and evenly apart */
        size_t every = (plot->n + MAX_X_TICKS - 1) / MAX_X_TICKS;
        for (size_t i = 0; i < plot->n; i += every)
            put_tick(chart, false, plot->x[i]);
    } else {
        n = plot->x_log ? placing_log_ticks(value_at(&chart->x, 0), value_at(&chart->x, 1), MAX_X_TICKS, ticks)
                        : placing_ticks(value_at(&chart->x, 0), value_at(&chart->x, 1), 11, ticks);
        for (size_t i = 0; i < n; i++)
            put_tick(chart, false, ticks[i]);
    }
    fprintf(chart->to, "<path class=\"frame\" d=\"M%.1f %.1fV%.1fH%.1f\"/>\n", chart->x.from, chart->y.to,
            chart->y.from, chart->x.to);
    put_label(chart->to, "text-anchor=\"middle\"", (chart->x.from + chart->x.to) / 2, chart->y.from + 44,
              plot->x_label);
    fprintf(chart->to, "<g transform=\"translate(20 %.1f) rotate(-90)\">", (chart->y.from + chart->y.to) / 2);
    put_label(chart->to, "text-anchor=\"middle\"", 0, 0, plot->y_label);
    fputs("</g>\n", chart->to);
}

/* ---- lines ---- */

struct look {
    const char *colour, *dash, *marker;
};

static struct look look_of(size_t i, bool reference) {
    static const char *const colours[COLOURS] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                 "#E69F00", "#56B4E9", "#444444"};
    static const char *const dashes[DASHES] = {"none", "9 4", "2 3"};
    static const char *const markers[MARKERS] = {
        "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", /* circle */
        "m-3.5 -3.5h7v7h-7z",                  /* square */
        "m0 -5l4.6 8h-9.2z",                   /* triangle */
        "m0 -5l5 5l-5 5l-5 -5z",               /* diamond */
        "m0 5l4.6 -8h-9.2z",                   /* triangle on its head */
        "m-4.5 -1.5h3v-3h3v3h3v3h-3v3h-3v-3h-3z",
    };
    if (reference)
        return (struct look){"#8a8a8a", i % 2 ? "1 3" : "6 3 1 3", NULL};
    return (struct look){colours[i % COLOURS], dashes[i / COLOURS % DASHES], markers[i % MARKERS]};
}

static void put_path(const struct chart *chart, const struct plot_line *line, const struct look *look) {
    const struct plot *plot = chart->plot;
    bool pen_down = false;
    if (line->way == PLOT_POINTS)
        return;
    fprintf(chart->to, "<path stroke=\"%s\" stroke-dasharray=\"%s\" d=\"", look->colour, look->dash);
    for (size_t i = 0; i < plot->n; i++) {
        bool here = drawn(plot, line, i);
        if (here && pen_down && line->way == PLOT_STEPS)
            fprintf(chart->to, "H%.1fV%.1f", pixel(&chart->x, plot->x[i]), pixel(&chart->y, line->y[i]));
        else if (here)
            fprintf(chart->to, "%c%.1f %.1f", pen_down ? 'L' : 'M', pixel(&chart->x, plot->x[i]),
                    pixel(&chart->y, line->y[i]));
        pen_down = here;
    }
    fputs("\"/>\n", chart->to);
}

static void put_markers(const struct chart *chart, const struct plot_line *line, const struct look *look) {
    const struct plot *plot = chart->plot;
    for (size_t i = 0; i < plot->n && look->marker; i++) {
        if (!drawn(plot, line, i) || (i % chart->marked && line->way != PLOT_POINTS))
            continue;
        fprintf(chart->to, "<path style=\"fill:%s;stroke:#fff;stroke-width:.7\" d=\"M%.1f %.1f%s\"><title>",
                look->colour, pixel(&chart->x, plot->x[i]), pixel(&chart->y, line->y[i]), look->marker);
        put_text(chart->to, line->name, MAX_NAME);
        fprintf(chart->to, ": %.4g at %.10g</title></path>\n", line->y[i], plot->x[i]);
    }
}

/* Write the name of a line at height `y`, and tie it to the last point of the line. */
static void put_name(const struct chart *chart, const struct plot_line *line, const struct look *look, double y) {
    size_t last = last_point(chart->plot, line);
    double right = chart->x.to + LEADER;
    fprintf(chart->to, "<path class=\"leader\" stroke=\"%s\" d=\"M%.1f %.1fL%.1f %.1fH%.1f\"/>\n", look->colour,
            pixel(&chart->x, chart->plot->x[last]), pixel(&chart->y, line->y[last]), right - 10, y, right);
    if (look->marker)
        fprintf(chart->to, "<path style=\"fill:%s;stroke:none\" d=\"M%.1f %.1f%s\"/>\n", look->colour, right, y,
                look->marker);
    else
        fprintf(chart->to, "<path stroke=\"%s\" stroke-dasharray=\"%s\" d=\"M%.1f %.1fh18\"/>\n", look->colour,
                look->dash, right - 11, y);
    fprintf(chart->to, "<text x=\"%.1f\" y=\"%.1f\">", right + 10, y + 4);
    put_text(chart->to, line->name, MAX_NAME);
    fputs("</text>\n", chart->to);
}

struct end {
    size_t line, number; /* number: among its kind, for its look */
    double y;
};

static int compare_ends(const void *a, const void *b) {
    double x = ((const struct end *)a)->y, y = ((const struct end *)b)->y;
    return (x > y) - (x < y);
}

static void put_lines(const struct chart *chart) {
    const struct plot *plot = chart->plot;
    struct end ends[PLOT_MAX_LINES];
    double wanted[PLOT_MAX_LINES], heights[PLOT_MAX_LINES];
    size_t n = 0, number[2] = {0, 0};
    for (size_t l = 0; l < plot->n_lines; l++) {
        const struct plot_line *line = &plot->lines[l];
        size_t last = last_point(plot, line), k = number[line->reference]++;
        if (last != SIZE_MAX)
            ends[n++] = (struct end){l, k, pixel(&chart->y, line->y[last]) - chart->y.to};
    }
    qsort(ends, n, sizeof *ends, compare_ends);
    for (size_t i = 0; i < n; i++)
        wanted[i] = ends[i].y;
    placing_spread(n, wanted, NAME_GAP, chart->y.from - chart->y.to, heights);
    for (int reference = 1; reference >= 0; reference--) /* references below the others */
        for (size_t i = 0; i < n; i++) {
            const struct plot_line *line = &plot->lines[ends[i].line];
            struct look look = look_of(ends[i].number, line->reference);
            if (line->reference != reference)
                continue;
            fprintf(chart->to, "<g class=\"line%s\">\n", reference ? " reference" : "");
            put_path(chart, line, &look);
            put_name(chart, line, &look, chart->y.to + heights[i]);
            put_markers(chart, line, &look);
            fputs("</g>\n", chart->to);
        }
}

enum status plot_write(const struct plot *plot, FILE *to, struct error *err) {
    struct chart chart;
    enum status st = chart_init(&chart, plot, to, err);
    if (st)
        return st;
    put_head(&chart);
    put_axes(&chart);
    put_lines(&chart);
    fputs("</svg>\n", to);
    return ST_OK;
}
