/* Line charts as SVG, written by us: plain XML that any browser opens, with nothing to install.
 *
 * Lines differ in colour (a palette that colour-blind readers can tell apart), dash and marker, and carry their names
 * at their right ends, so that twenty stay readable without looking back and forth to a legend. Pointing at a line
 * makes it bold, and at a marker tells its value. Reference lines are grey and without markers. */
#ifndef CLI_PLOT_H
#define CLI_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

/* How its points are joined: by straight lines; by steps, each value holding until the next x; or not at all. */
enum plot_way { PLOT_STRAIGHT, PLOT_STEPS, PLOT_POINTS };

struct plot_line {
    const char *name;
    const double *y; /* one for each x; NAN: no point there, and the line has a gap */
    bool reference;
    enum plot_way way;
};

struct plot {
    const char *title, *subtitle, *x_label, *y_label;
    bool x_log, y_log; /* with a logarithmic axis only positive values are drawn */
    bool x_anywhere; /* the points lie anywhere on x, which is marked at round values; else a logarithmic x at points */
    size_t n;        /* points */
    const double *x; /* rising */
    size_t n_lines;
    const struct plot_line *lines;
};

enum { PLOT_MAX_LINES = 64 };

/* Write the chart [O(points * lines + lines log lines)]. Fails: ST_INVALID (no point can be drawn, or more than
 * PLOT_MAX_LINES lines). Errors of the stream are the caller's to see. */
enum status plot_write(const struct plot *plot, FILE *to, struct error *err);

#endif
