/* One measured all-reduce line carried to another number of devices, or another algorithm.
 *
 * A cluster whose "collectives" give a + b * M was measured with one number of devices. To predict the same network
 * with more workers, MG-WFBP (§6.4) reads the line as table 2's row for the ring:
 *     a = 2 (N - 1) alpha,  b = (N - 1) / N (2 beta + gamma).
 * It solves for alpha and beta, and puts them into the row of the wanted algorithm for the wanted number of workers.
 * Units: microseconds (_us), microseconds a byte. */
#ifndef STRATEGY_COST_SCALED_LINE_H
#define STRATEGY_COST_SCALED_LINE_H

#include <stdint.h>

#include "base/error.h"
#include "strategy/cost/all_reduce.h"

/* The line of `algorithm` on `to` devices, from a ring's line on `from` devices. `to` = 1 gives {0, 0}.
 * Fails: ST_INFEASIBLE (one device measured: a line without communication tells nothing; algorithm auto or
 * hierarchical, which table 2 does not have). */
enum status scaled_line(struct all_reduce_line ring, uint32_t from, uint32_t to, enum algorithm algorithm,
                        struct all_reduce_line *out, struct error *err);

#endif
