/* Public tables of measured all-reduces, and how well a size is told from the others.
 *
 * The files are ../shared/data/all-reduce of a checkout that has it: NCCL on one node by number of GPUs and type
 * (message_size counts elements), and Vidur's, three runs a size. Sizes that occur more than once are one point with
 * the mean of their times. Functions end the test program with a message when a file is not what it should be. Units:
 * bytes, microseconds (_us). Threads: one. */
#ifndef TESTS_SUPPORT_STRATEGY_MEASURED_TABLES_H
#define TESTS_SUPPORT_STRATEGY_MEASURED_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "strategy/cost/curve.h"

enum { MEASURED_POINTS = 1024, MEASURED_TABLES = 16 };

/* What one size took: the mean of what was repeated, the least and the most of it. */
struct measured_point {
    double bytes, time_us, low_us, high_us;
    uint32_t times;
};

struct measured_table {
    char name[48]; /* "half, 4 GPUs" */
    uint32_t ranks, nodes;
    uint32_t n;
    struct measured_point points[MEASURED_POINTS]; /* bytes rise */
};

/* The tables of one file. */
struct measured_file {
    uint32_t n;
    struct measured_table tables[MEASURED_TABLES];
};

extern const char measured_folder[];

/* Whether the folder is there. */
bool measured_tables_exist(void);

/* A file of NCCL's times ("a100_sxm", "h100_sxm", "l40s"), or of Vidur's ("a100", "h100"; medians of three runs).
 * Release with free. */
struct measured_file *measured_nccl(const char *gpu);
struct measured_file *measured_vidur(const char *gpu);

/* A prediction of tables[which] at `bytes`, a size that it lacks. */
struct guess {
    double (*us)(const void *context, uint32_t n_tables, const struct curve_table *tables, uint32_t which,
                 double bytes);
    const void *context;
};

/* Relative errors (0.1: 10% above) of the guess at each point of a table that is left out, the others of its family
 * being there; NAN at sizes up to 1 KiB, and at the first and the last point unless `ends`. off: [MEASURED_POINTS].
 * family: tables that may lend their shape, the table itself aside; 0 of them is allowed. */
void leave_each_out(const struct measured_table *table, uint32_t n_family, const struct measured_table *const *family,
                    const struct guess *guess, bool ends, double *off);

/* The model: the curve of the table, with the shape of its family. */
double guess_curve_us(const void *context, uint32_t n_tables, const struct curve_table *tables, uint32_t which,
                      double bytes);
extern const struct guess guess_curve;

/* The tables with the same number of ranks and nodes, `of` aside. */
uint32_t measured_family(const struct measured_file *file, const struct measured_table *of,
                         const struct measured_table *family[MEASURED_TABLES]);

/* Of n errors, NAN aside: how many, and of their sizes the median, the mean, the largest, and how many exceed `limit`.
 */
struct error_summary {
    uint32_t n, above;
    double median, mean, worst;
};
struct error_summary summarize_errors(uint32_t n, const double *off, double limit);

#endif
