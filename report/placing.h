/* Where things go on a chart: round figures along an axis, and names that must not touch. Pure arithmetic. */
#ifndef REPORT_PLACING_H
#define REPORT_PLACING_H

#include <stddef.h>

enum { PLACING_MOST = 64 };

/* `n` <= PLACING_MOST heights within 0..room, as near to `wanted` (rising) as at least `gap` between neighbours
 * allows: least squares, by pooling adjacent violators. When n - 1 gaps need more room than there is, they share it
 * evenly. O(n). */
void placing_spread(size_t n, const double *wanted, double gap, double room, double *out);

/* Round figures from low to high, at most `most` (>= 2), 1, 2 or 5 times powers of ten apart; returns how many. */
size_t placing_ticks(double low, double high, size_t most, double *out);

/* The same for a logarithmic axis, 0 < low < high: 1, 2 and 5 times powers of ten, only the powers when there are many,
 * and evenly spaced ones when there is less than a factor of five. At most max(most, 6). */
size_t placing_log_ticks(double low, double high, size_t most, double *out);

#endif
