/* What one all-reduce costs on a cluster, by algorithm and size.
 *
 * A cost has two parts. `startup_us` is latency: it passes whatever else is on the network. `transfer_us` is the time
 * for which the message would hold the network alone; transfers that overlap share it. Their sum is the time of a
 * lone all-reduce. Where a figure comes from, first that applies:
 *   one device                 nothing to do: 0
 *   "collectives"              startup_us + per_byte_ns * bytes, whatever the algorithm
 *   a measured curve           of that algorithm with exactly the cluster's number of devices (below)
 *   the formula                a + b * bytes, all_reduce_line()
 * `auto` is its own curve when it was measured, otherwise the cheapest algorithm for the size; when any algorithm was
 * measured, the cheapest of the measured ones, since a formula's ideal network must not beat what was seen.
 *
 * A curve is linear in log-log between its points (noise made monotone by a running maximum), constant below the
 * smallest and, above the largest, grows by the last segment's slope. Of its time T(M), the transfer is
 * max(T(M) - T(smallest), M * the best time a byte that the curve ever shows): bytes never move faster than was ever
 * seen, so that cutting messages below the smallest measured size gains no bandwidth.
 *
 * Units: bytes, microseconds (_us). Threads: a const table may be shared. */
#ifndef STRATEGY_COST_ALL_REDUCE_H
#define STRATEGY_COST_ALL_REDUCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "strategy/cluster.h"

struct all_reduce_cost {
    double startup_us, transfer_us;
};

/* a + b * bytes */
struct all_reduce_line {
    double startup_us, per_byte_us;
};

struct all_reduce_curve {
    uint32_t n; /* points; 0 = not measured */
    const double *bytes, *time_us;
    const double *exponent;  /* of the power law from point i to i + 1 */
    double tail_per_byte_us; /* slope above the largest point */
    double least_per_byte_us;
};

struct all_reduce_table {
    bool any_curve;
    struct all_reduce_line lines[ALGORITHM_COUNT]; /* lines[ALGORITHM_auto] is unused */
    struct all_reduce_curve curves[ALGORITHM_COUNT];
};

/* Build the table; its curves live in `arena`. Fails: ST_NO_MEMORY. */
enum status all_reduce_init(struct all_reduce_table *table, const struct cluster *cluster, struct arena *arena,
                            struct error *err);

/* The formula of one algorithm (not auto) on this cluster, measurements and "collectives" aside. */
struct all_reduce_line all_reduce_line(const struct cluster *cluster, enum algorithm algorithm);

/* O(log points); allocates nothing. */
struct all_reduce_cost all_reduce_cost(const struct all_reduce_table *table, enum algorithm algorithm, uint64_t bytes);

/* The least transfer time a byte that any algorithm and any size can reach. */
double all_reduce_least_per_byte_us(const struct all_reduce_table *table);

/* The rate of the narrowest NIC or overridden link between nodes with devices, times goodput, in bytes per
 * microsecond; INFINITY when fewer than two nodes have devices. */
double all_reduce_narrowest_bytes_per_us(const struct cluster *cluster);

#endif
