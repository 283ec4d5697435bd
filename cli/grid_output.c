/* What grid.h says about showing: measures, the table of times, CSV and the chart. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/stream.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/grid.h"
#include "cli/plot.h"
#include "cli/table.h"

static const struct measure {
    const char *name, *label;
    bool log; /* the axis may be logarithmic, when workers span decades */
} measures[GRID_MEASURES] = {
    [GRID_TIME] = {"time", NULL, true}, /* iterations or rounds: label_of */
    [GRID_THROUGHPUT] = {"throughput", "samples/s", true},
    [GRID_SPEEDUP] = {"speedup", "speedup over one device", true},
    [GRID_EFFICIENCY] = {"efficiency", "scaling efficiency (%)", false},
};

double grid_measured(const struct grid_point *point, enum grid_measure measure, double iteration_us) {
    switch (measure) {
    case GRID_TIME:
        return iteration_us / 1e3;
    case GRID_THROUGHPUT:
        return point->devices * point->batch / iteration_us * 1e6;
    case GRID_SPEEDUP:
        return point->devices * point->alone_us / iteration_us;
    case GRID_EFFICIENCY:
        return point->alone_us / iteration_us * 100;
    case GRID_MEASURES:
        break;
    }
    return NAN;
}

enum status grid_parse_measure(const char *word, enum grid_measure *out, struct error *err) {
    for (int m = 0; m < GRID_MEASURES; m++)
        if (!strcmp(measures[m].name, word)) {
            *out = (enum grid_measure)m;
            return ST_OK;
        }
    return error_set(err, ST_USAGE, "--y: \"%s\" is none of time, throughput, speedup, efficiency", word);
}

/* Row i, column c of the table of times, whose last strategy is the bound. */
static void time_cell(struct table *table, const struct grid *grid, size_t point, size_t column) {
    char text[32];
    const struct grid_cell *cell = &grid->cells[point * grid->n_columns + column];
    if (column == grid->n_columns)
        table_cell(table, "%s", units_format_time(grid->points[point].bound_us, text, sizeof text));
    else
        table_cell(table, "%s", cell->there ? units_format_time(cell->iteration_us, text, sizeof text) : "-");
}

static void print_by_value(const struct grid *grid) {
    const char *heads[TABLE_MAX_COLUMNS + 1] = {">value"};
    char names[TABLE_MAX_COLUMNS][40];
    struct table table;
    snprintf(names[0], sizeof names[0], ">%s", sweep_axis_name(grid->sweep->axis));
    for (size_t c = 0; c <= grid->n_columns; c++)
        snprintf(names[c + 1], sizeof names[0], ">%.38s", c < grid->n_columns ? grid->columns[c].name : "lower bound");
    for (size_t c = 0; c < grid->n_columns + 2; c++)
        heads[c] = names[c];
    table_init(&table, heads);
    for (size_t i = 0; i < grid->sweep->n; i++) {
        table_cell(&table, "%g", grid->points[i].value);
        for (size_t c = 0; c <= grid->n_columns; c++)
            time_cell(&table, grid, i, c);
    }
    table_print(&table, stdout);
    table_release(&table);
}

static void print_by_strategy(const struct grid *grid) {
    const char *heads[TABLE_MAX_COLUMNS + 1] = {sweep_axis_name(grid->sweep->axis)};
    char names[TABLE_MAX_COLUMNS][40];
    struct table table;
    for (size_t i = 0; i < grid->sweep->n; i++) {
        snprintf(names[i], sizeof names[i], ">%g", grid->points[i].value);
        heads[i + 1] = names[i];
    }
    table_init(&table, heads);
    for (size_t c = 0; c <= grid->n_columns; c++) {
        table_cell(&table, "%s", c < grid->n_columns ? grid->columns[c].name : "lower bound");
        for (size_t i = 0; i < grid->sweep->n; i++)
            time_cell(&table, grid, i, c);
    }
    table_print(&table, stdout);
    table_release(&table);
}

static bool is_of_updates(const struct grid *grid, size_t column) {
    for (size_t i = 0; i < grid->sweep->n; i++)
        if (grid->cells[i * grid->n_columns + column].of_updates)
            return true;
    return false;
}

static size_t count_of_updates(const struct grid *grid) {
    size_t n = 0;
    for (size_t c = 0; c < grid->n_columns; c++)
        n += is_of_updates(grid, c);
    return n;
}

/* What takes the time that is shown. */
static const char *name_of_time(const struct grid *grid) {
    const size_t n = count_of_updates(grid);
    return n == 0 ? "iteration" : n < grid->n_columns ? "iteration or round" : "round";
}

/* Which strategies have rounds, and what these are. */
static void print_rounds(const struct grid *grid) {
    const char *before = "";
    if (count_of_updates(grid) == 0)
        return;
    text_print(stdout, "\nA round: as many updates as there are workers are applied. Strategies with rounds: ");
    for (size_t c = 0; c < grid->n_columns; c++) {
        if (!is_of_updates(grid, c))
            continue;
        text_print(stdout, "%s%s", before, grid->columns[c].name);
        before = ", ";
    }
    text_print(stdout, "\n");
}

/* Strategies or values: those of which there are more become the lines. */
void grid_print(const struct grid *grid) {
    static_assert(MAX_CONTENDERS + 2 <= TABLE_MAX_COLUMNS, "every strategy, the value and the bound have a column");
    static_assert(MAX_CONTENDERS + 2 <= PLOT_MAX_LINES, "every strategy and both references have a line");
    const char *name = name_of_time(grid);
    text_print(stdout, "%s on %s: time of %s %s; %s\n\n", grid->model, grid->cluster, *name == 'i' ? "an" : "a", name,
               grid->note);
    if (grid->n_columns > grid->sweep->n)
        print_by_strategy(grid);
    else
        print_by_value(grid);
    print_rounds(grid);
}

static void put_csv(const struct grid *grid, FILE *to) {
    fputs("axis,value,devices,strategy,iteration_us,samples_per_s,speedup,efficiency,lower_bound_us,messages\n", to);
    for (size_t i = 0; i < grid->sweep->n * grid->n_columns; i++) {
        const struct grid_point *point = &grid->points[i / grid->n_columns];
        const struct grid_cell *cell = &grid->cells[i];
        const char *name = grid->columns[i % grid->n_columns].name;
        double us = cell->iteration_us;
        fprintf(to, "%s,%g,%u,", sweep_axis_name(grid->sweep->axis), point->value, point->devices);
        text_print_csv(to, name);
        if (cell->there)
            fprintf(to, ",%.3f,%.3f,%.6g,%.6g,%.3f,%u\n", us, grid_measured(point, GRID_THROUGHPUT, us),
                    grid_measured(point, GRID_SPEEDUP, us), grid_measured(point, GRID_EFFICIENCY, us) / 100,
                    point->bound_us, cell->messages);
        else
            fprintf(to, ",,,,,%.3f,\n", point->bound_us);
    }
}

enum status grid_write_csv(const struct grid *grid, const char *path, struct error *err) {
    char *text;
    size_t size;
    FILE *memory = stream_open(&text, &size);
    if (memory)
        put_csv(grid, memory);
    return stream_save(memory, ST_OK, &text, &size, path, err);
}

/* Column c, or behind them the bound and one device's own time. */
static double time_of_line(const struct grid *grid, size_t point, size_t line) {
    if (line == grid->n_columns)
        return grid->points[point].bound_us;
    if (line > grid->n_columns)
        return grid->points[point].alone_us;
    const struct grid_cell *cell = &grid->cells[point * grid->n_columns + line];
    return cell->there ? cell->iteration_us : NAN;
}

/* Decades on the y axis where the x axis has them too and all lines together span more than one. */
static bool wants_log(const struct grid *grid, enum grid_measure measure, size_t n, const double *y) {
    double least = INFINITY, most = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(y[i])) {
            least = fmin(least, y[i]);
            most = fmax(most, y[i]);
        }
    return grid->sweep->geometric && measures[measure].log && most > 10 * least;
}

static const char *label_of(const struct grid *grid, enum grid_measure measure, size_t room, char *out) {
    if (measure == GRID_TIME)
        snprintf(out, room, "%s (ms)", name_of_time(grid));
    else
        snprintf(out, room, "%s", measures[measure].label);
    return out;
}

static enum status draw(const struct grid *grid, enum grid_measure measure, double *y, struct plot_line *lines,
                        FILE *to, struct error *err) {
    char title[256], label[64];
    const size_t n = grid->sweep->n, n_lines = grid->n_columns + 2;
    for (size_t l = 0; l < n_lines; l++) {
        const char *name = l < grid->n_columns    ? grid->columns[l].name
                           : l == grid->n_columns ? "lower bound"
                                                  : "linear scaling";
        for (size_t i = 0; i < n; i++)
            y[l * n + i] = grid_measured(&grid->points[i], measure, time_of_line(grid, i, l));
        lines[l] = (struct plot_line){name, &y[l * n], l >= grid->n_columns, PLOT_STRAIGHT};
    }
    snprintf(title, sizeof title, "%s on %s", grid->model, grid->cluster);
    return plot_write(&(struct plot){.title = title,
                                     .subtitle = grid->note,
                                     .x_label = sweep_axis_unit(grid->sweep->axis),
                                     .y_label = label_of(grid, measure, sizeof label, label),
                                     .x_log = grid->sweep->geometric,
                                     .y_log = wants_log(grid, measure, n_lines * n, y),
                                     .n = n,
                                     .x = grid->sweep->values,
                                     .n_lines = n_lines,
                                     .lines = lines},
                      to, err);
}

enum status grid_write_plot(const struct grid *grid, enum grid_measure measure, const char *path, struct error *err) {
    const size_t n_lines = grid->n_columns + 2;
    char *text;
    size_t size;
    double *y = calloc(n_lines * grid->sweep->n, sizeof *y);
    struct plot_line *lines = calloc(n_lines, sizeof *lines);
    FILE *memory = stream_open(&text, &size);
    enum status st = y && lines ? ST_OK : error_no_memory(err);
    if (memory && !st)
        st = draw(grid, measure, y, lines, memory, err);
    st = stream_save(memory, st, &text, &size, path, err);
    free(lines);
    free(y);
    return st;
}
