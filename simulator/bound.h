/* A lower bound on the iteration time of every strategy, so that each answer can be reported with its gap to it.
 *
 * It holds for timeline_run of every plan that strategies without encoding lower to on this model and cluster, and
 * of those with encodings that lose at most `lossy` (every f32 and f64 then counts two bytes, or one or none, which no
 * server can add), whatever the architecture, servers (nodes without devices too), merging, partition, policy and
 * credit. docs/lower-bound.md has the proof. It is the largest of
 *
 *   compute   the slowest device's operators, one after another, and the update of all variables; of a device's part of
 *             them where updates are shared.
 *
 *   volume    what an iteration must move through NICs. Let k nodes have devices. Each of them sends one copy of every
 *             gradient. The server of a gradient sends more: k - 2 copies more if it has a device itself, k if it has
 *             none. For each of its bytes an all-reduce holds every NIC for the least time that any algorithm reaches
 *             at any size. NICs get prices at which every server costs the same, and each gradient takes the cheaper of
 *             both ways.
 *
 *   windows   the same volume, but between release (gradient ready) and tail (computation from the first forward
 *             operator that reads it up to the next backward pass), as a one-machine problem with preemption. Nodes may
 *             be apart in time, so what a server sends counts half. What a NIC may have saved is taken off (burst_bytes
 *             in strategy/cost/cost.h).
 *             Launch, start-up and latencies count once a window, so far as they are described or measured. If one
 *             node alone has devices, these share its device link instead of NICs.
 *
 * With the barrier (cross_iteration false) every tail is the whole forward pass, which makes windows larger for such
 * strategies. Sharded parameters are an exception: they are gathered beside the forward pass, so barrier_us does not
 * hold for them. What holds for all strategies holds for them too: of each all-reduce they move one half after the
 * gradient, and the other half before the forward operator that reads the variable.
 *
 * Who shares updates ("sharded", enum in_parts) may do each before or after the sums of others have come, so then they
 * are in no window. Else each is, with the operator that reads the variable.
 *
 * Replicas ("shard_ranks") may move less through NICs than any all-reduce among all devices that was measured: within a
 * node nothing, and then a part for each device. The bound of IN_PARTS_replicas takes the least of every size of shard
 * groups, and holds for strategies with and without them.
 *
 * With several micro-batches the same, with and without replicas, where all before the last one's backward pass is the
 * tail of the gradients, since what the last one sums is all in one pass. "each" sends more, and no less than that.
 *
 * All this holds whatever a device can hold. Within a budget of memory more must move (bound_again_bytes).
 *
 * Coordination, copy and summing costs count as zero. Overridden links, and device links of several nodes, count only
 * where they slow all-reduces down. If one node works and spare ones may serve, only compute counts. */
#ifndef SIMULATOR_BOUND_H
#define SIMULATOR_BOUND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "strategy/cost/cost.h"
#include "strategy/model.h"
#include "strategy/plan.h"
#include "strategy/strategy.h"

struct prediction; /* simulator/timeline.h */

enum { BOUND_VOLUMES = 5 };

struct bound {
    double compute_us, volume_us;
    /* volume_us is the most of these, each at its own prices of NICs. With it what a byte costs that every working NIC
     * passes; zeros on one node. */
    struct {
        double us, byte_us;
    } volumes[BOUND_VOLUMES];
    double windows_us, barrier_windows_us; /* for every strategy; for those of barrier_us */
    double iteration_us;                   /* no strategy is faster */
    double barrier_us; /* no strategy with the barrier is faster, without sharded parameters; at least iteration_us */
};

/* Bytes that a strategy which loses nothing and needs at most memory_bytes of a device (strategy/memory.h) must move
 * through each working NIC, in each direction, beyond what volumes count. Parameters that do not stay on a device
 * between the passes are gathered twice. 0 for memory_bytes 0, and on one node. O(operators + variables + divisors of
 * the devices cubed). */
double bound_again_bytes(const struct model *model, const struct cost *cost, uint64_t memory_bytes);

/* Raise a bound of strategies that lose nothing to that of those which need at most memory_bytes. */
void bound_within(struct bound *bound, const struct model *model, const struct cost *cost, uint64_t memory_bytes);

/* O((operators + variables) log variables + nodes). `cost` is the cluster's, `in_parts` and `lossy` the most that
 * strategies do, in so many micro-batches. Fails: ST_NO_MEMORY. */
enum status bound_of_micro_batches(const struct model *model, const struct cost *cost, enum lossiness lossy,
                                   enum in_parts in_parts, uint32_t micro_batches, struct bound *out,
                                   struct error *err);

/* In one micro-batch. */
enum status bound_iteration(const struct model *model, const struct cost *cost, enum lossiness lossy,
                            enum in_parts in_parts, struct bound *out, struct error *err);

/* Bounds by what a strategy of one micro-batch may do, and what it may lose; model and cost are borrowed. Fails:
 * ST_NO_MEMORY. */
struct bounds {
    const struct model *model;
    const struct cost *cost;
    struct bound of[IN_PARTS_COUNT][LOSSINESS_COUNT];
};
enum status bounds_find(const struct model *model, const struct cost *cost, struct bounds *out, struct error *err);

/* The bound that holds for the strategy of a prediction; of several micro-batches it is made here, as by
 * bound_of_micro_batches. memory_bytes: that the strategy fits into; 0: whatever it needs. Fails: ST_NO_MEMORY. */
enum status bounds_of(const struct bounds *bounds, const struct prediction *prediction, uint64_t memory_bytes,
                      double *us, struct error *err);

/* Whether that is the bound of strategies which do no more than all-reduces and servers do, once an iteration. */
bool bounds_is_plain(const struct bounds *bounds, const struct prediction *prediction);

#endif
