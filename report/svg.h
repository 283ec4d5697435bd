/* SVG's shapes and a chart's axes on top of markup.h. Positions are in the picture's own pixels; the class of a shape
 * and html_stylesheet() give its looks, so that one picture serves light, dark and print. */
#ifndef REPORT_SVG_H
#define REPORT_SVG_H

#include <stdbool.h>
#include <stddef.h>

#include "report/markup.h"

/* An svg element with its name and description for those who do not see it; `id` is unique in its page. To be ended by
 * markup_end. */
void svg_begin(struct markup *m, const char *id, const char *class, double width, double height, const char *title,
               const char *description);

void svg_line(struct markup *m, const char *class, double x1, double y1, double x2, double y2);

/* Left open for a title: end each with markup_end. */
void svg_rectangle_begin(struct markup *m, const char *class, double x, double y, double width, double height);
void svg_circle_begin(struct markup *m, const char *class, double x, double y, double radius);
void svg_cross_begin(struct markup *m, const char *class, double x, double y, double radius);

enum svg_anchor { SVG_START, SVG_MIDDLE, SVG_END };
void svg_text(struct markup *m, const char *class, double x, double y, enum svg_anchor anchor, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* A path: svg_path_begin, then 'M' and 'L' with a point, 'H' and 'V' with one number, 'Z' with none; then
 * svg_path_end and markup_end. */
void svg_path_begin(struct markup *m, const char *class);
void svg_path_to(struct markup *m, char command, double a, double b);
void svg_path_end(struct markup *m);

struct svg_axis {
    double low, high; /* of the values */
    bool log;         /* 0 < low */
    double from, to;  /* the pixels of low and high */
};

/* A range that holds the values and some air: {INFINITY, -INFINITY} holds nothing yet; what is not finite is ignored.
 * svg_axis_finish makes any range one that can be drawn. */
void svg_axis_include(struct svg_axis *axis, double value);
void svg_axis_finish(struct svg_axis *axis, double air);

double svg_axis_place(const struct svg_axis *axis, double value);

/* The unit for an axis whose largest value is `most_us`: "µs" below 5 ms, "ms" below 5 s, else "s"; `us` is its length
 * in microseconds. */
struct svg_unit {
    const char *word;
    double us;
};
struct svg_unit svg_time_unit(double most_us);

/* Lines across the chart at round values, and the values, divided by `unit`, beside it. y: lines from `left` to
 * `right`. x: lines from `top` to `bottom`. At most `most` (2 to 30) of them; whole: at whole values only. */
void svg_axis_y(struct markup *m, const struct svg_axis *axis, double unit, double left, double right, size_t most);
void svg_axis_x(struct markup *m, const struct svg_axis *axis, double unit, double top, double bottom, size_t most,
                bool whole);

#endif
