/* Which gradients should share an all-reduce: cuts of the ready-ordered chain into merge groups (MG-WFBP §3 and §4).
 *
 * One all-reduce runs at a time, in the order of readiness. A group goes when its last gradient is ready and the group
 * before it has ended:
 *     end(i..j) = max(end of what came before i, ready(j)) + cost of the group.
 * A cut's value is the end of its last group. Groups are runs of adjacent gradients of one dtype; cuts that skip over
 * gradients are not looked at (with one dtype and a linear cost none of them is better).
 *
 *   merge_greedy    MG-WFBP's algorithm 1. It is published as optimal and is not: it merges whenever the next gradient
 *                   then ends sooner, and does not see that a longer wait may save more later
 *   merge_by_lines  the optimum for a cost that is a line, or the least of several lines: O(gradients * lines)
 *   merge_by_cost   the optimum for any cost: O(gradients²) at worst, usually far less
 *
 * Units: any one unit of time, as long as ready_us, lines and costs agree; bytes. Times are from the start of the
 * backward pass, ready_us is not negative and never falls along the chain. Threads: no state. */
#ifndef STRATEGY_EXACT_MERGE_H
#define STRATEGY_EXACT_MERGE_H

#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "strategy/cost/line.h"
#include "strategy/exact/gradients.h"

struct merge {
    uint32_t n_groups;
    const uint32_t *ends; /* group g is gradients ends[g - 1] (or 0) to ends[g] - 1; in the caller's arena */
};

/* A group of `n` gradients costs the least of the lines at its bytes, and gather_per_byte_us * bytes more when n > 1.
 */
struct merge_lines {
    uint32_t n; /* 1 to MERGE_MAX_LINES */
    const struct cost_line *lines;
    double gather_per_byte_us;
};

enum { MERGE_MAX_LINES = 8 };

/* Any finite cost of a group of n gradients that have `bytes` together. No group with more bytes and gradients costs
 * less than floor_us, which only rises; NULL: group_us itself does. after_us only rises. after_us (NULL: none) is work
 * after the group's all-reduce, such as scattering. No other group waits for that work, but the whole ends only with
 * it: a cut's value is then the largest end + after of its groups. */
struct merge_cost {
    double (*group_us)(const void *context, uint64_t bytes, uint32_t n);
    double (*after_us)(const void *context, uint64_t bytes, uint32_t n);
    double (*floor_us)(const void *context, uint64_t bytes, uint32_t n);
    const void *context;
};

/* group_us of a cost whose context is a struct merge_lines. */
double merge_lines_us(const void *context, uint64_t bytes, uint32_t n);

/* The value of a cut. */
double merge_end_us(const struct merge *merge, const struct gradient *gradients, const struct merge_cost *cost);

/* Each fills *out from `arena`; n may be 0. Fail: ST_NO_MEMORY. */
enum status merge_greedy(uint32_t n, const struct gradient *gradients, const struct cost_line *line,
                         struct arena *arena, struct merge *out, struct error *err);
enum status merge_by_lines(uint32_t n, const struct gradient *gradients, const struct merge_lines *lines,
                           struct arena *arena, struct merge *out, struct error *err);
enum status merge_by_cost(uint32_t n, const struct gradient *gradients, const struct merge_cost *cost,
                          struct arena *arena, struct merge *out, struct error *err);

#endif
