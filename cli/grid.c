/* See grid.h; grid_output.c shows what is run here. Values run outside and strategies inside, so that a cluster and its
 * costs are made once a value. */
#include "cli/grid.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "cli/output.h"
#include "cli/progress.h"

static struct grid_point describe_point(const struct simulation *s, double value) {
    double scale = INFINITY;
    for (uint32_t i = 0; i < s->cluster->n_nodes; i++)
        if (s->cluster->nodes[i].devices > 0)
            scale = fmin(scale, s->cluster->nodes[i].compute_scale);
    return (struct grid_point){value, s->cluster->n_devices, s->model->batch_per_device, s->bound_us,
                               (s->model->forward_us + s->model->backward_us + s->model->update_us) * scale};
}

static double time_of(const struct simulation *s, const struct row *row) {
    return simulation_expects(s) ? row->expected.mean_us : row->prediction.iteration_us;
}

static enum status print_json(const struct grid *grid, const struct simulation *s, const struct grid_point *point,
                              const struct row *row, struct error *err) {
    bool whole;
    const double us = time_of(s, row);
    cJSON *root = simulation_json(s, row, &whole);
    cJSON *sweep = whole ? cJSON_AddObjectToObject(root, "sweep") : NULL;
    whole = sweep && cJSON_AddStringToObject(sweep, "axis", sweep_axis_name(grid->sweep->axis)) &&
            cJSON_AddNumberToObject(sweep, "value", point->value) &&
            cJSON_AddNumberToObject(sweep, "devices", point->devices) &&
            cJSON_AddNumberToObject(sweep, "speedup", grid_measured(point, GRID_SPEEDUP, us)) &&
            cJSON_AddNumberToObject(sweep, "efficiency", grid_measured(point, GRID_EFFICIENCY, us) / 100);
    return output_line(root, whole, err);
}

static enum status run_cell(struct grid *grid, struct simulation *s, size_t point, size_t column, bool json,
                            struct error *err) {
    const struct contender *contender = &grid->columns[column];
    struct row row;
    progress_say("[%zu/%zu] %s=%g %s", point * grid->n_columns + column + 1, grid->sweep->n * grid->n_columns,
                 sweep_axis_name(grid->sweep->axis), grid->sweep->values[point], contender->name);
    enum status st = simulation_predict(s, contender, NULL, &row, err);
    progress_end();
    if (st == ST_INFEASIBLE || st == ST_TOO_LARGE) {
        log_warn("%s=%g: %s is left empty: %s", sweep_axis_name(grid->sweep->axis), grid->sweep->values[point],
                 contender->name, ERROR_TEXT(err));
        return ST_OK;
    }
    if (st)
        return st;
    if (!row.has_updates)
        grid->points[point].bound_us = fmin(grid->points[point].bound_us, row.bound_us);
    grid->cells[point * grid->n_columns + column] =
        (struct grid_cell){true, row.has_updates, time_of(s, &row), row.prediction.messages};
    return json ? print_json(grid, s, &grid->points[point], &row, err) : ST_OK;
}

static enum status run_point(struct grid *grid, const struct sweep_point *at, size_t point,
                             const struct grid_options *options, struct error *err) {
    struct simulation s;
    enum status st = simulation_init(&s, &at->model, &at->cluster, options->autosync, err);
    if (st)
        return st;
    s.weather = options->weather;
    grid->points[point] = describe_point(&s, grid->sweep->values[point]);
    for (size_t c = 0; c < grid->n_columns && !st; c++)
        st = run_cell(grid, &s, point, c, options->json, err);
    simulation_release(&s);
    return st;
}

/* Every value once, so that a number of devices that cannot be is said before any long work. */
static enum status check_values(const struct sweep *sweep, const struct model *model, const struct cluster *cluster,
                                enum algorithm all_reduce, struct error *err) {
    enum status st = ST_OK;
    for (size_t i = 0; i < sweep->n && !st; i++) {
        struct sweep_point at;
        st = sweep_apply(sweep, sweep->values[i], all_reduce, model, cluster, &at, err);
        if (!st)
            sweep_point_release(&at);
    }
    return st;
}

static const char *all_reduce_source(const struct sweep *sweep, const struct cluster *cluster,
                                     enum algorithm all_reduce) {
    bool curves = false;
    for (uint32_t i = 0; i < cluster->n_measurements; i++)
        curves |= cluster->measurements[i].operation == OPERATION_all_reduce;
    if (cluster->fixed_all_reduce && (sweep->axis == SWEEP_WORKERS || all_reduce != ALGORITHM_auto))
        return "as measured on the described cluster and carried over by MG-WFBP's table 2";
    if (cluster->fixed_all_reduce)
        return sweep->axis == SWEEP_BANDWIDTH ? "as measured, its slope with the bandwidth" : "as measured";
    return curves && sweep->axis == SWEEP_BATCH && all_reduce == ALGORITHM_auto ? "as measured"
                                                                                : "derived from NICs and links";
}

static void note_assumptions(struct grid *grid, const struct cluster *cluster, const struct grid_options *options) {
    const enum algorithm all_reduce = options->all_reduce;
    FILE *to = fmemopen(grid->note, sizeof grid->note, "w");
    bool ring = cluster->fixed_all_reduce && grid->sweep->axis == SWEEP_WORKERS;
    if (!to)
        return;
    if (cluster->variability.given && !options->autosync)
        fputs("mean in weather; ", to);
    if (grid->sweep->axis != SWEEP_WORKERS)
        fprintf(to, "%u devices; ", cluster->n_devices);
    if (grid->sweep->axis == SWEEP_BATCH)
        fputs("operator times in proportion to the batch; ", to);
    fputs("all-reduce ", to);
    if (ring || all_reduce != ALGORITHM_auto)
        fprintf(to, "by %s, ", algorithm_name(all_reduce == ALGORITHM_auto ? ALGORITHM_ring : all_reduce));
    fputs(all_reduce_source(grid->sweep, cluster, all_reduce), to);
    fclose(to);
}

static enum status grid_init(struct grid *out, const struct sweep *sweep, const struct contender *columns,
                             size_t n_columns, struct error *err) {
    *out = (struct grid){.sweep = sweep, .columns = columns, .n_columns = n_columns};
    out->points = calloc(sweep->n, sizeof *out->points);
    out->cells = calloc(sweep->n * n_columns, sizeof *out->cells);
    return out->points && out->cells ? ST_OK : error_no_memory(err);
}

static bool any_cell(const struct grid *grid) {
    for (size_t i = 0; i < grid->sweep->n * grid->n_columns; i++)
        if (grid->cells[i].there)
            return true;
    return false;
}

enum status grid_run(const struct sweep *sweep, const struct model *model, const struct cluster *cluster,
                     const struct contender *columns, size_t n_columns, const struct grid_options *options,
                     struct grid *out, struct error *err) {
    struct grid grid = {0};
    enum status st = check_values(sweep, model, cluster, options->all_reduce, err);
    if (!st)
        st = grid_init(&grid, sweep, columns, n_columns, err);
    grid.model = model->name;
    grid.cluster = cluster->name;
    if (!st && sweep_drops_measurements(sweep, options->all_reduce, cluster))
        log_warn("%s: measured curves belong to its own %u devices and network; the sweep goes by formula instead",
                 cluster->name, cluster->n_devices);
    for (size_t i = 0; i < sweep->n && !st; i++) {
        struct sweep_point at;
        st = sweep_apply(sweep, sweep->values[i], options->all_reduce, model, cluster, &at, err);
        if (st)
            break;
        st = run_point(&grid, &at, i, options, err);
        sweep_point_release(&at);
    }
    if (!st && !any_cell(&grid))
        st = error_set(err, ST_INFEASIBLE, "no strategy could be simulated at any value");
    if (st) {
        grid_release(&grid);
        return st;
    }
    note_assumptions(&grid, cluster, options);
    *out = grid;
    return ST_OK;
}

void grid_release(struct grid *grid) {
    free(grid->points);
    free(grid->cells);
    *grid = (struct grid){0};
}
