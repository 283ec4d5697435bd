/* A line has two figures and table 2 three constants, so gamma is taken to be 0: the time of adding is then part of
 * beta. From ring to ring that changes nothing, since only the sum 2 beta + gamma appears. The other rows weigh gamma
 * more. They come out too low, by gamma / 2 (double tree) to gamma log2(N) / 2 a byte. Logarithms are rounded up to
 * whole rounds. As in table 2 every device counts as a node of its own. */
#include "strategy/cost/scaled_line.h"

#include <math.h>

static struct all_reduce_line table_2(enum algorithm algorithm, double n, double alpha, double beta) {
    double rounds = ceil(log2(n));
    switch (algorithm) {
    case ALGORITHM_tree:
        return (struct all_reduce_line){2 * alpha * rounds, 2 * beta * rounds};
    case ALGORITHM_recursive_doubling:
        return (struct all_reduce_line){alpha * rounds, beta * rounds};
    case ALGORITHM_halving_doubling:
        return (struct all_reduce_line){2 * alpha * rounds, 2 * (n - 1) / n * beta};
    case ALGORITHM_double_tree:
        return (struct all_reduce_line){2 * alpha * rounds, beta};
    case ALGORITHM_ring:
    case ALGORITHM_auto:
    case ALGORITHM_hierarchical:
    case ALGORITHM_all_gather:
    case ALGORITHM_COUNT:
        break;
    }
    return (struct all_reduce_line){2 * (n - 1) * alpha, 2 * (n - 1) / n * beta};
}

enum status scaled_line(struct all_reduce_line ring, uint32_t from, uint32_t to, enum algorithm algorithm,
                        struct all_reduce_line *out, struct error *err) {
    if (algorithm == ALGORITHM_auto || algorithm >= ALGORITHM_hierarchical)
        return error_set(err, ST_INFEASIBLE,
                         "a measured all-reduce line cannot be carried over to %s: give ring, tree, "
                         "double_tree, recursive_doubling or halving_doubling",
                         algorithm_name(algorithm));
    if (from < 2)
        return error_set(err, ST_INFEASIBLE, "an all-reduce line of one device tells nothing about several");
    double steps = 2 * ((double)from - 1);
    *out = to < 2 ? (struct all_reduce_line){0, 0}
                  : table_2(algorithm, to, ring.startup_us / steps, ring.per_byte_us * from / steps);
    return ST_OK;
}
