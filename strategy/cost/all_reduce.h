/* What one all-reduce, or the all-gather in place of one, costs on a cluster, by algorithm and size.
 *
 * A cost has two parts. `startup_us` is latency: it passes whatever else is on the network. `transfer_us` is the time
 * for which the message would hold the network alone; transfers that overlap share the network. The sum of both is the
 * time of a lone all-reduce. The figures come from the first of these that applies:
 *   one device                 nothing to do: 0
 *   "collectives"              startup_us + per_byte_ns * bytes, whatever the algorithm
 *   a measured curve           of that algorithm with exactly the cluster's number of devices (below)
 *   the transport's lines      NCCL's own model of its ring and trees (strategy/cost/nccl.h)
 *   the formula                a + b * bytes, all_reduce_line(); outside `ideal` a ring pays the NIC's latency for
 *                              at most two steps a node: steps between devices of a node wait for nobody else
 * `auto` is its own curve when it was measured. When only other algorithms were measured, it is the cheapest of those:
 * the ideal network of a formula must not beat what was seen. Otherwise it is what the transport's library chooses:
 *   ideal                      the cheapest algorithm for the size
 *   nccl                       the ring or the trees, whichever NCCL's model has faster
 *   mpi                        Open MPI's libnbc: a binomial tree below 64 KiB and on less than four ranks, else a ring
 *   gloo, ps-lite              a ring (gloo's default; servers have no all-reduce)
 *
 * A half of M bytes, a reduce-scatter or an all-gather of what all devices have together, costs what its own curve says
 * where that was measured (operations reduce_scatter and all_gather; never with "collectives"). Otherwise it takes half
 * as long as a ring of M (as `auto` where all-reduces were measured and no ring was), but never less than n - 1 of n
 * parts take through the narrowest NIC: the ring enters and leaves each node once, however many devices it has. Both
 * halves are a family of curves of their own.
 *
 * `all_gather` of M bytes a device on n devices is the second half of a ring all-reduce of n * M: n - 1 steps, in each
 * of which every device passes on the M bytes of another. Where all-reduces were measured or are fixed, it takes half
 * as long as a ring of n * M (as `auto` where no ring was measured), but never less than (n - 1) * M over the narrowest
 * NIC. Otherwise it has lines of its own: NCCL's, or the formula of a ring, which is gloo's too. Open MPI's libnbc has
 * every device send to all others at once: one latency, and a node of d devices takes in every slice from outside d
 * times (coll/libnbc/nbc_iallgather.c, 4.1). After it every device adds n slices; this is part of startup_us, because
 * meanwhile the network is free. The rate is runtime.sum_gbyte_per_s. Where that is not known and the devices are GPUs
 * (transports nccl and ps-lite), an addition takes one and a half copies, since it reads two numbers and writes one.
 *
 * A curve never falls and is straight in bytes between its points; the algorithms of a cluster are a family
 * (strategy/cost/curve.h). Of its time T(M), the transfer is max(T(M) - T(smallest), M * the least time a byte that the
 * curve shows anywhere). So bytes never move faster than was seen, and cutting messages below the smallest measured
 * size gains no bandwidth.
 *
 * Bursts. Some NICs pass a burst at once after a pause, as token buckets do. Then a curve shows less than a message
 * costs the network, because messages were measured one after another, and the bucket refills while one of them waits
 * (latency, the way back of a tree). Let L = T(smallest), and let S be the time in which a NIC sends a burst. An
 * algorithm holds NICs for H; then T = max(L, H, L + H - S), and H is found so:
 *   - from T: H = min(T, T - L + S);
 *   - but at least the time in which the algorithm can move its bytes. This limit is that of strategy/cost/wire.h, or
 *     what the largest message shows if that is less;
 *   - if the limit is at most L, H is the limit.
 * A tree goes towards the root, for H, and then back, for B, which is H times what the wire says of the two ways. A
 * lone tree takes longer than both, because the NICs of the root are free again while the last devices still wait for
 * what others pass on: T = L + (H - S) + (B - S) + R. What others can use meanwhile is not held: H is the limit. S is
 * the smallest that fits every point of every curve. The result is startup_us = L, transfer_us = T - L, hold_us = H,
 * back_us = B and rest_us = R, for NICs that save what they do not use (simulator/network.h). Where S is 0, hold_us is
 * transfer_us, in one part.
 *
 * Units: bytes, microseconds (_us). Threads: a const table may be shared. */
#ifndef STRATEGY_COST_ALL_REDUCE_H
#define STRATEGY_COST_ALL_REDUCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "strategy/cluster.h"
#include "strategy/cost/all_reduce_line.h"
#include "strategy/cost/curve.h"
#include "strategy/plan.h"

struct all_reduce_cost {
    double startup_us, transfer_us; /* of a lone one */
    double hold_us;                 /* how long it holds the network, or a tree NICs towards the root */
    double back_us;                 /* and then those away from it; 0: it is no tree */
    double rest_us;                 /* and then neither */
};

struct all_reduce_curve {
    struct curve measured;
    /* NULL without bursts. By point: hold_us a byte; the exponent of the power law by which it goes on to the next
     * point; back_us over hold_us. */
    const double *hold_per_byte_us, *hold_exponent, *back;
};

/* What an all-gather has beside its line. */
struct gather {
    double devices;
    double least_per_byte_us; /* of the bytes of one device: through the narrowest NIC */
    double sum_per_byte_us;   /* adding all slices */
};

enum { HALVES = 2 }; /* the reduce-scatter and the all-gather */

struct all_reduce_table {
    bool any_curve, any_half; /* measured */
    double burst_us;          /* S: the time in which the narrowest NIC sends a burst; 0: there are no bursts */
    struct all_reduce_lines lines[ALGORITHM_COUNT]; /* lines[ALGORITHM_auto] is unused */
    bool choice[ALGORITHM_COUNT]; /* auto without measurements: the cheapest of these, from small_bytes on */
    enum algorithm small;         /* and below that */
    uint64_t small_bytes;
    struct all_reduce_curve curves[ALGORITHM_COUNT];
    struct all_reduce_curve halves[HALVES]; /* [half == HALF_gather] */
    double half_least_per_byte_us;          /* of halves that were not measured */
    bool fixed;                             /* "collectives": all lines are one, but that of all_gather */
    struct gather gather;
};

/* Build the table; its curves live in `arena`. burst_us: the burst that is known already, 0 if none; the curves may
 * show a larger one. Fails: ST_NO_MEMORY. */
enum status all_reduce_init(struct all_reduce_table *table, const struct cluster *cluster, double burst_us,
                            struct arena *arena, struct error *err);

/* MG-WFBP's formula of one algorithm (not auto) on this cluster, measurements and "collectives" aside. */
struct all_reduce_line all_reduce_line(const struct cluster *cluster, enum algorithm algorithm);

/* O(log points); allocates nothing. */
struct all_reduce_cost all_reduce_cost(const struct all_reduce_table *table, enum algorithm algorithm, uint64_t bytes);

/* Half of a ring all-reduce of `bytes`: its reduce-scatter (HALF_scatter) or its all-gather (HALF_gather). */
struct all_reduce_cost all_reduce_half_cost(const struct all_reduce_table *table, enum half half, uint64_t bytes);

/* An all-gather of `bytes` of each device, without adding them. */
struct all_reduce_cost all_reduce_gather_cost(const struct all_reduce_table *table, double bytes);

/* The least time a byte for which any all-reduce of any size, or both of its halves, hold the network in either
 * direction. */
double all_reduce_least_per_byte_us(const struct all_reduce_table *table);

/* The same of the second half alone. */
double all_reduce_least_half_gather_per_byte_us(const struct all_reduce_table *table);

/* The least startup_us of any all-reduce of any size or half of one, and of any all-gather of touched rows. */
double all_reduce_least_startup_us(const struct all_reduce_table *table);
double all_reduce_least_gather_startup_us(const struct all_reduce_table *table);

/* The table of the same cluster with nothing from profiles. What a library's algorithm must move still counts: each of
 * NCCL's two trees takes its half of the bytes up and down again. Fails: ST_NO_MEMORY. */
enum status all_reduce_init_limits(struct all_reduce_table *table, const struct cluster *cluster, double burst_us,
                                   struct arena *arena, struct error *err);

/* The rate of the narrowest NIC or overridden link between nodes with devices, times goodput, in bytes per
 * microsecond; INFINITY when fewer than two nodes have devices. */
double all_reduce_narrowest_bytes_per_us(const struct cluster *cluster);

#endif
