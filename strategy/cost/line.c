/* Lines out of costs; see strategy/cost/line.h. Formulas of algorithms are lines, so `auto` without measurements is
 * their lower envelope; a line that is cheapest at two sizes is cheapest between them. A relative fit, because a
 * gradient of 1 KiB and one of 100 MiB are mispredicted alike by a wrong factor. */
#include "strategy/cost/line.h"

#include <math.h>

#include "base/units.h"

static const double FIT_FROM_BYTES = 1024;

double cost_all_reduce_us(const struct cost *cost, uint64_t bytes) {
    struct all_reduce_cost c = all_reduce_cost(&cost->all_reduce, ALGORITHM_auto, bytes);
    return cost->runtime.message_us + c.startup_us + c.transfer_us;
}

double cost_all_reduce_floor_us(const struct cost *cost, uint64_t bytes) {
    return all_reduce_least_startup_us(&cost->all_reduce) +
           all_reduce_least_per_byte_us(&cost->all_reduce) * (double)bytes;
}

/* Whether another line is as cheap at every size; of equal lines the first counts. */
static bool is_dominated(uint32_t n, const struct cost_line *lines, uint32_t i) {
    for (uint32_t other = 0; other < n; other++) {
        bool as_cheap =
            lines[other].startup_us <= lines[i].startup_us && lines[other].per_byte_us <= lines[i].per_byte_us;
        bool equal = lines[other].startup_us >= lines[i].startup_us && lines[other].per_byte_us >= lines[i].per_byte_us;
        if (as_cheap && (!equal || other < i))
            return true;
    }
    return false;
}

uint32_t cost_all_reduce_lines(const struct cost *cost, struct cost_line out[COST_MAX_LINES]) {
    const struct all_reduce_table *table = &cost->all_reduce;
    struct cost_line lines[COST_MAX_LINES];
    uint32_t n = 0, kept = 0;
    if (table->any_curve || table->small_bytes > 0)
        return 0;
    for (int a = ALGORITHM_auto + 1; a < ALL_REDUCE_COUNT; a++)
        for (uint32_t i = 0; i < table->lines[a].n && table->choice[a]; i++)
            lines[n++] = (struct cost_line){cost->runtime.message_us + table->lines[a].line[i].startup_us,
                                            table->lines[a].line[i].per_byte_us};
    for (uint32_t i = 0; i < n; i++)
        if (!is_dominated(n, lines, i))
            out[kept++] = lines[i];
    return kept;
}

static double line_us(const struct cost_line *line, double bytes) {
    return line->startup_us + line->per_byte_us * bytes;
}

static const struct cost_line *cheapest(uint32_t n, const struct cost_line *lines, double bytes) {
    const struct cost_line *best = &lines[0];
    for (uint32_t i = 1; i < n; i++)
        if (line_us(&lines[i], bytes) < line_us(best, bytes))
            best = &lines[i];
    return best;
}

/* Sizes of the fit: the k-th, the last one being max_bytes itself. */
static double fit_size(uint64_t max_bytes, uint32_t k) {
    return fmin(floor(FIT_FROM_BYTES * exp2(k / 2.0)), (double)max_bytes);
}

/* Minimize the sum of ((a + b m) / t - 1)² with a, b >= 0. */
static struct cost_line fit(const struct cost *cost, uint64_t max_bytes) {
    double xx = 0, xy = 0, yy = 0, x_sum = 0, y_sum = 0, bytes = 0;
    for (uint32_t k = 0; bytes < (double)max_bytes; k++) {
        bytes = fit_size(max_bytes, k);
        double time = cost_all_reduce_us(cost, (uint64_t)bytes);
        if (time <= 0)
            continue;
        double x = 1 / time, y = bytes / time;
        xx += x * x;
        xy += x * y;
        yy += y * y;
        x_sum += x;
        y_sum += y;
    }
    double det = xx * yy - xy * xy;
    if (xx <= 0)
        return (struct cost_line){0, 0};
    if (det <= 1e-12 * xx * yy)
        return (struct cost_line){x_sum / xx, 0};
    struct cost_line line = {(yy * x_sum - xy * y_sum) / det, (xx * y_sum - xy * x_sum) / det};
    if (line.startup_us < 0)
        return (struct cost_line){0, y_sum / yy};
    return line.per_byte_us < 0 ? (struct cost_line){x_sum / xx, 0} : line;
}

static double fit_error(const struct cost *cost, uint64_t max_bytes, const struct cost_line *line) {
    double worst = 0, bytes = 0;
    for (uint32_t k = 0; bytes < (double)max_bytes; k++) {
        bytes = fit_size(max_bytes, k);
        double time = cost_all_reduce_us(cost, (uint64_t)bytes);
        if (time > 0)
            worst = fmax(worst, fabs(line_us(line, bytes) / time - 1));
    }
    return worst;
}

struct cost_line cost_line_half_floor(const struct cost *cost) {
    const struct all_reduce_table *table = &cost->all_reduce;
    const struct all_reduce_lines *ring = &table->lines[ALGORITHM_ring];
    struct cost_line least = {INFINITY, INFINITY};
    if (table->any_curve || table->any_half || ring->n == 0)
        return (struct cost_line){0, 0};
    for (uint32_t i = 0; i < ring->n; i++) {
        least.startup_us = fmin(least.startup_us, ring->line[i].startup_us / 2);
        least.per_byte_us = fmin(least.per_byte_us, ring->line[i].per_byte_us / 2);
    }
    least.startup_us += cost->runtime.message_us;
    return least;
}

struct cost_line cost_line_all_reduce(const struct cost *cost, uint64_t max_bytes, double *error) {
    struct cost_line lines[COST_MAX_LINES], line;
    uint32_t n = cost_all_reduce_lines(cost, lines);
    const struct cost_line *last = n ? cheapest(n, lines, (double)max_bytes) : NULL;
    bool exact = last && line_us(last, 0) <= line_us(cheapest(n, lines, 0), 0);
    line = exact ? *last : fit(cost, max_bytes);
    if (error)
        *error = exact ? 0 : fit_error(cost, max_bytes, &line);
    return line;
}
