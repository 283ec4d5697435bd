/* Communication costs as lines a + b * bytes, which is how MG-WFBP (equation 10) and PACE (§IV) see them.
 *
 * A line is what one message takes when nothing else is on the network. It includes runtime.message_us. It leaves out
 * gathering and scattering of several gradients, the answers of receivers (cost.eager_bytes) and bursts
 * (cost.burst_bytes).
 * Units: bytes, microseconds. */
#ifndef STRATEGY_COST_LINE_H
#define STRATEGY_COST_LINE_H

#include <stdint.h>

#include "strategy/cost/cost.h"

struct cost_line {
    double startup_us, per_byte_us; /* neither negative */
};

/* What one all-reduce with algorithm auto takes on its own, runtime.message_us included. Never falls with bytes. */
double cost_all_reduce_us(const struct cost *cost, uint64_t bytes);

/* No all-reduce of so many bytes or more takes less. A library that changes its algorithm at some size may take less
 * time for more bytes, so this may be far below cost_all_reduce_us. */
double cost_all_reduce_floor_us(const struct cost *cost, uint64_t bytes);

enum { COST_MAX_LINES = 3 * ALL_REDUCE_COUNT };

/* Where the cost of an all-reduce (auto) is exactly the least of some lines, fill them and return how many: 1 with
 * "collectives" or one device, otherwise the lines of the algorithms that the library chooses from, without those that
 * another line beats at every size. 0 where any algorithm was measured (curves are not lines) and where the choice is
 * not the cheapest. */
uint32_t cost_all_reduce_lines(const struct cost *cost, struct cost_line lines[COST_MAX_LINES]);

/* One line for an all-reduce (auto) of up to max_bytes. Exact where one line is the cheapest up to there; otherwise the
 * least squares of the relative error over sizes from 1 KiB (or max_bytes) to max_bytes, each sqrt(2) times the one
 * before. *error (may be NULL) gets the largest relative error at those sizes, 0 when exact. O(sizes * log points). */
struct cost_line cost_line_all_reduce(const struct cost *cost, uint64_t max_bytes, double *error);

/* No half of a ring all-reduce costs less at any size; zero where rings were measured, since curves are not lines. */
struct cost_line cost_line_half_floor(const struct cost *cost);

#endif
