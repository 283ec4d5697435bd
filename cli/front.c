/* See front.h. The picture is a chart of cli/plot.h: x is the memory of each strategy. Ways have points without lines:
 * between two strategies nothing is bought. The front is grey steps, as memory that no strategy needs buys no time. */
#include "cli/front.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/stream.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/picture.h"
#include "cli/plot.h"
#include "cli/table.h"

static const double GIB = 1 << 30;
enum { BAR_CELLS = 24 };

static void begin_table(struct table *table, bool ways) {
    if (ways)
        table_init(table, (const char *const[]){">MEMORY", ">ITERATION", "", "WAY", "STRATEGY", ">GROUPS", "ID", NULL});
    else
        table_init(table, (const char *const[]){">MEMORY", ">ITERATION", "", "STRATEGY", ">GROUPS", "ID", NULL});
}

void front_print(size_t n, struct front_point *points) {
    struct table table;
    char text[64], bar[BAR_CELLS * PICTURE_BYTES + 1];
    double most_us = 0;
    n = front_thin(front_keep(n, points), points);
    for (size_t i = 0; i < n; i++)
        most_us = fmax(most_us, points[i].iteration_us);
    text_print(stdout, "Time against memory; nothing that needs less is as fast:\n");
    begin_table(&table, n > 0 && points[0].way);
    for (size_t i = 0; i < n; i++) {
        const struct front_point *p = &points[i];
        table_cell(&table, "%s", units_format_bytes_finely(p->bytes, text, sizeof text));
        table_cell(&table, "%s", units_format_time(p->iteration_us, text, sizeof text));
        table_cell(&table, "%s", picture_bar(p->iteration_us / most_us, BAR_CELLS, bar));
        if (p->way)
            table_cell(&table, "%s", p->way);
        table_cell(&table, "%s", p->strategy);
        table_cell(&table, "%s", front_groups(p->n_groups, text, sizeof text));
        table_cell(&table, "%.12s", p->id);
    }
    table_print(&table, stdout);
    table_release(&table);
}

static const char *line_of(const struct front_point *point) {
    return point->way ? point->way : point->strategy;
}

/* The y of all lines, one behind the other: of each way where it has a point, and of the best so far. Equal memories
 * are moved apart, since x rises. Returns how many lines. */
static size_t fill(size_t n, const struct front_point *points, double *x, double *y, struct plot_line *lines) {
    size_t n_lines = 0;
    double best_us = INFINITY;
    for (size_t i = 0; i < n; i++) {
        size_t l = 0;
        x[i] = (double)points[i].bytes / GIB;
        if (i && !(x[i] > x[i - 1]))
            x[i] = nextafter(x[i - 1], INFINITY);
        while (l < n_lines && strcmp(lines[l].name, line_of(&points[i])) != 0)
            l++;
        if (l == n_lines) {
            lines[n_lines++] = (struct plot_line){line_of(&points[i]), &y[l * n], false, PLOT_POINTS};
            for (size_t k = 0; k < n; k++)
                y[l * n + k] = NAN;
        }
        y[l * n + i] = points[i].iteration_us / 1e3;
    }
    for (size_t i = 0; i < n; i++)
        y[n_lines * n + i] = (best_us = fmin(best_us, points[i].iteration_us)) / 1e3;
    lines[n_lines] = (struct plot_line){"fastest so far", &y[n_lines * n], true, PLOT_STEPS};
    return n_lines + 1;
}

enum status front_write_plot(size_t n, const struct front_point *points, const char *title, const char *path,
                             struct error *err) {
    char *text;
    size_t size;
    double *x = calloc(n + 1, sizeof *x), *y = calloc((n + 1) * (n + 1), sizeof *y);
    struct plot_line *lines = calloc(n + 1, sizeof *lines);
    FILE *memory = stream_open(&text, &size);
    enum status st = x && y && lines ? ST_OK : error_no_memory(err);
    if (memory && !st) {
        const size_t n_lines = fill(n, points, x, y, lines);
        st = plot_write(&(struct plot){.title = title,
                                       .subtitle = "each strategy by the memory that it needs of a device",
                                       .x_label = "memory (GiB)",
                                       .y_label = "iteration (ms)",
                                       .x_log = true,
                                       .x_anywhere = true,
                                       .n = n,
                                       .x = x,
                                       .n_lines = n_lines,
                                       .lines = lines},
                        memory, err);
    }
    st = stream_save(memory, st, &text, &size, path, err);
    free(x);
    free(y);
    free(lines);
    return st;
}
