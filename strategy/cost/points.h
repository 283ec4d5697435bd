/* Measured points of cost curves, and how far they can be trusted.
 *
 * On a machine that others use too, a burst of their work can make all repeats of a point slow at once. So a point is
 * measured in several passes over all points. Passes agree when their medians differ by at most POINT_AGREES. The
 * largest set of passes that agree counts (of two such sets the faster one, since others' work only delays); the rest
 * was disturbed. A point is settled when at least two passes agree.
 * Units: microseconds, bytes. */
#ifndef STRATEGY_COST_POINTS_H
#define STRATEGY_COST_POINTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/statistics.h"
#include "strategy/cluster.h"

enum { POINT_PASSES = 5, POINT_REPEATS = 21 };
static const double POINT_AGREES = 1.15;

struct point_pass {
    int n;
    double us[POINT_REPEATS];
    double median_us;
};

struct point {
    enum operation operation;
    enum algorithm algorithm;
    uint64_t bytes;
    int n_passes;
    struct point_pass passes[POINT_PASSES];
};

/* Add a pass of n repeats, 1 to POINT_REPEATS; a point that is full stays as it is. */
void point_add(struct point *point, int n, const double *us);

/* The repeats of the passes that count, pooled; n = 0 without passes. */
struct summary point_summary(const struct point *point);

bool point_settled(const struct point *point);

/* Largest over smallest median of all passes; 1 with fewer than two. */
double point_difference(const struct point *point);

/* Whether the point takes longer than the next larger one of its curve, by more than passes may differ: one of the two
 * was disturbed in every pass. */
bool point_falls(const struct point *point, const struct point *larger);

bool point_same_curve(const struct point *a, const struct point *b);

/* Of n points those of the same curve next to one of them; NULL where it ends. O(n). */
const struct point *point_next_smaller(size_t n, const struct point *points, const struct point *point);
const struct point *point_next_larger(size_t n, const struct point *points, const struct point *point);

/* How far the straight line from b to c may be off, as a part of what it says, where the curve bends between them. The
 * lines from a to b and from c to d are drawn on into the gap. Where both lie on one side of the line from b to c, the
 * curve lies between them and that line, which is farthest at the point where they meet. Otherwise there may be a step
 * anywhere, and the middle counts. Points rise in bytes, are of one curve and have passes. 0: all on one line. */
double point_bend(const struct point *a, const struct point *b, const struct point *c, const struct point *d);

/* The size in the middle (of the logarithms) between a point and the next larger one of its curve, rounded to `unit`
 * bytes, if the straight line between them may be off by more than `most`. 0 where it is straight enough, where one of
 * the four points around is not there or not settled, and where nothing lies between. O(n). */
uint64_t point_middle(size_t n, const struct point *points, const struct point *point, double most, uint64_t unit);

#endif
