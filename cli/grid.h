/* A sweep run: every strategy at every value of the axis, and the ways to show it.
 *
 * Speedup is samples a second over those of one device alone, the fastest that the cluster has, with the same batch;
 * efficiency is speedup over devices. A cell whose strategy cannot be built, lowered or simulated there stays empty.
 * Units: microseconds (_us). Threads: one at a time. */
#ifndef CLI_GRID_H
#define CLI_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "tuner/predict/simulation.h"
#include "tuner/predict/sweep.h"

enum grid_measure { GRID_TIME, GRID_THROUGHPUT, GRID_SPEEDUP, GRID_EFFICIENCY, GRID_MEASURES };

struct grid_point {
    double value;
    uint32_t devices;
    double batch;    /* a device */
    double bound_us; /* no strategy is faster that does no more than some strategy of the grid does */
    double alone_us;
};

struct grid_cell {
    bool there, of_updates;
    double iteration_us; /* of_updates: a round, in which as many are applied as there are workers */
    uint32_t messages;
};

struct grid {
    const struct sweep *sweep;   /* borrowed, all four */
    const char *model, *cluster; /* names */
    const struct contender *columns;
    size_t n_columns;
    struct grid_point *points; /* one a value */
    struct grid_cell *cells;   /* row-major points x columns */
    char note[256];            /* what was assumed to get from the descriptions to the values */
};

struct grid_options {
    enum algorithm all_reduce;          /* of every all-reduce; auto: as the strategies have it */
    bool autosync, json;                /* json: print syncopate.prediction/1 lines as cells come */
    struct expectation_options weather; /* where the cluster has any: times are those to expect in it */
};

/* Run, with a line of progress on a terminal; says on standard error which cells stay empty and what was left out.
 * Release with grid_release. Fails: as sweep_apply; ST_NO_MEMORY; ST_INFEASIBLE (no cell could be filled). */
enum status grid_run(const struct sweep *sweep, const struct model *model, const struct cluster *cluster,
                     const struct contender *columns, size_t n_columns, const struct grid_options *options,
                     struct grid *out, struct error *err);
void grid_release(struct grid *grid);

/* A time seen through a measure: milliseconds, samples/s, times one device, percent. */
double grid_measured(const struct grid_point *point, enum grid_measure measure, double iteration_us);

/* "time", "throughput", "speedup", "efficiency". Fails: ST_USAGE. */
enum status grid_parse_measure(const char *word, enum grid_measure *out, struct error *err);

void grid_print(const struct grid *grid); /* times, for people, on standard output */

/* axis,value,devices,strategy,iteration_us,...: a line a cell, to a file or "-". Fails: ST_ENVIRONMENT, ST_NO_MEMORY.
 */
enum status grid_write_csv(const struct grid *grid, const char *path, struct error *err);

/* An SVG file. Fails: ST_ENVIRONMENT, ST_NO_MEMORY. */
enum status grid_write_plot(const struct grid *grid, enum grid_measure measure, const char *path, struct error *err);

#endif
