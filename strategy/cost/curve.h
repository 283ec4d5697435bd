/* A measured cost as a function of size: timed at some sizes, read at any.
 *
 * Between two points a curve is straight in bytes, a + b * M. That is what a collective costs as long as its library
 * does not change its protocol; where it does, tables show a step between two points. docs/curves.txt compares this
 * with lines that are straight in log-log and with cubic pieces. Below the smallest size a curve is constant. Above the
 * largest it goes on with the slope between the last point and the last one of at most half its size, or, when that
 * slope is 0, in proportion to bytes.
 *
 * More bytes never take less time. Where a table falls, by noise or because the library is faster with more bytes, runs
 * of such points are replaced by their geometric mean (isotonic regression: the closest curve that never falls, by
 * least squares of relative errors). All other points are met exactly.
 *
 * Tables of one family (other algorithms on the same devices, the same collective of another type) share their shape,
 * because the library changes its protocol at the same size in all of them. So a size that this table lacks between two
 * of its points is taken from another table that has it: the other's time, times the ratio of the two tables, which is
 * interpolated in log-log between the ends of the gap. Of several tables the geometric mean counts. The new point stays
 * between the ends of its gap.
 *
 * Units: bytes, microseconds (_us). Threads: a const curve may be shared. */
#ifndef STRATEGY_COST_CURVE_H
#define STRATEGY_COST_CURVE_H

#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

/* What was timed: sizes are positive and rise, times are positive. */
struct curve_table {
    uint32_t n;
    const double *bytes, *time_us;
};

struct curve {
    uint32_t n;                    /* points; 0 = not measured */
    const double *bytes, *time_us; /* rising; never falling */
    double tail_per_byte_us;       /* slope above the largest point, positive */
    double least_per_byte_us;      /* of any size: time over bytes, or the tail's slope */
};

/* The curve of tables[which] among the others of its family, empty ones allowed; nothing is borrowed from them.
 * *out has n = 0 when tables[which] is empty. O(p log p + p * n_tables) for p sizes in all tables together.
 * Fails: ST_NO_MEMORY. */
enum status curve_init(struct curve *out, uint32_t n_tables, const struct curve_table *tables, uint32_t which,
                       struct arena *arena, struct error *err);

/* n >= 1, bytes >= 0. O(log points). */
double curve_us(const struct curve *curve, double bytes);

/* The last point of at most `bytes`, the first if there is none. O(log points). */
uint32_t curve_point_below(const struct curve *curve, double bytes);

#endif
