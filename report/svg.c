/* Coordinates are pixels from the upper left corner. Ticks stand at round numbers. */
#include "report/svg.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "report/placing.h"

enum { MOST_TICKS = 32 };

void svg_begin(struct markup *m, const char *id, const char *class, double width, double height, const char *title,
               const char *description) {
    markup_begin(m, "svg");
    markup_attribute(m, "class", class);
    markup_attributef(m, "viewBox", "0 0 %.0f %.0f", width, height);
    markup_attribute(m, "role", "img");
    markup_attributef(m, "aria-labelledby", "%s-title %s-text", id, id);
    markup_begin(m, "title");
    markup_attributef(m, "id", "%s-title", id);
    markup_text(m, title);
    markup_end(m);
    markup_begin(m, "desc");
    markup_attributef(m, "id", "%s-text", id);
    markup_text(m, description);
    markup_end(m);
}

void svg_line(struct markup *m, const char *class, double x1, double y1, double x2, double y2) {
    svg_path_begin(m, class);
    svg_path_to(m, 'M', x1, y1);
    svg_path_to(m, 'L', x2, y2);
    svg_path_end(m);
    markup_end(m);
}

void svg_rectangle_begin(struct markup *m, const char *class, double x, double y, double width, double height) {
    markup_begin(m, "rect");
    markup_attribute(m, "class", class);
    markup_attribute_number(m, "x", x);
    markup_attribute_number(m, "y", y);
    markup_attribute_number(m, "width", fmax(width, 0));
    markup_attribute_number(m, "height", fmax(height, 0));
}

void svg_circle_begin(struct markup *m, const char *class, double x, double y, double radius) {
    markup_begin(m, "circle");
    markup_attribute(m, "class", class);
    markup_attribute_number(m, "cx", x);
    markup_attribute_number(m, "cy", y);
    markup_attribute_number(m, "r", radius);
}

void svg_cross_begin(struct markup *m, const char *class, double x, double y, double radius) {
    svg_path_begin(m, class);
    svg_path_to(m, 'M', x - radius, y - radius);
    svg_path_to(m, 'L', x + radius, y + radius);
    svg_path_to(m, 'M', x + radius, y - radius);
    svg_path_to(m, 'L', x - radius, y + radius);
    svg_path_end(m);
}

void svg_text(struct markup *m, const char *class, double x, double y, enum svg_anchor anchor, const char *format,
              ...) {
    static const char *const anchors[] = {"start", "middle", "end"};
    char text[512];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    markup_begin(m, "text");
    if (*class)
        markup_attribute(m, "class", class);
    markup_attribute_number(m, "x", x);
    markup_attribute_number(m, "y", y);
    if (anchor != SVG_START)
        markup_attribute(m, "text-anchor", anchors[anchor]);
    markup_text(m, text);
    markup_end(m);
}

void svg_path_begin(struct markup *m, const char *class) {
    markup_begin(m, "path");
    markup_attribute(m, "class", class);
    markup_attribute_begin(m, "d");
}

void svg_path_to(struct markup *m, char command, double a, double b) {
    markup_piece(m, (char[]){command, '\0'});
    if (command == 'Z')
        return;
    markup_piece_number(m, a);
    if (command == 'H' || command == 'V')
        return;
    markup_piece(m, " ");
    markup_piece_number(m, b);
}

void svg_path_end(struct markup *m) {
    markup_attribute_end(m);
}

/* ---- axes ---- */

static double scaled(const struct svg_axis *axis, double value) {
    return axis->log ? log(value) : value;
}

static double unscaled(const struct svg_axis *axis, double x) {
    return axis->log ? exp(x) : x;
}

void svg_axis_include(struct svg_axis *axis, double value) {
    if (!isfinite(value) || (axis->log && value <= 0))
        return;
    axis->low = fmin(axis->low, value);
    axis->high = fmax(axis->high, value);
}

void svg_axis_finish(struct svg_axis *axis, double air) {
    if (axis->low > axis->high)
        axis->low = axis->high = 1;
    double low = scaled(axis, axis->low), high = scaled(axis, axis->high);
    if (high - low < 1e-9 * fmax(fabs(high), 1e-300)) {
        double half = axis->log ? log(1.1) : fmax(fabs(high), 1e-6) * 0.1;
        low -= half;
        high += half;
    }
    const double more = air * (high - low);
    axis->low = unscaled(axis, low - more);
    axis->high = unscaled(axis, high + more);
}

double svg_axis_place(const struct svg_axis *axis, double value) {
    double low = scaled(axis, axis->low), high = scaled(axis, axis->high);
    return axis->from + (scaled(axis, value) - low) / (high - low) * (axis->to - axis->from);
}

struct svg_unit svg_time_unit(double most_us) {
    return most_us >= 5e6   ? (struct svg_unit){"s", 1e6}
           : most_us >= 5e3 ? (struct svg_unit){"ms", 1e3}
                            : (struct svg_unit){"µs", 1};
}

static size_t ticks_of(const struct svg_axis *axis, size_t most, double out[MOST_TICKS]) {
    return axis->log ? placing_log_ticks(axis->low, axis->high, most, out)
                     : placing_ticks(axis->low, axis->high, most, out);
}

void svg_axis_y(struct markup *m, const struct svg_axis *axis, double unit, double left, double right, size_t most) {
    double ticks[MOST_TICKS];
    const size_t n = ticks_of(axis, most, ticks);
    for (size_t i = 0; i < n; i++) {
        const double y = svg_axis_place(axis, ticks[i]);
        svg_line(m, "grid", left, y, right, y);
        svg_text(m, "tick", left - 8, y + 4, SVG_END, "%.6g", ticks[i] / unit);
    }
}

void svg_axis_x(struct markup *m, const struct svg_axis *axis, double unit, double top, double bottom, size_t most,
                bool whole) {
    double ticks[MOST_TICKS];
    const size_t n = ticks_of(axis, most, ticks);
    for (size_t i = 0; i < n; i++) {
        const double x = svg_axis_place(axis, ticks[i]);
        if (whole && fabs(ticks[i] - round(ticks[i])) > 1e-9)
            continue;
        svg_line(m, "grid", x, top, x, bottom);
        svg_text(m, "tick", x, bottom + 18, SVG_MIDDLE, "%.6g", ticks[i] / unit);
    }
}
