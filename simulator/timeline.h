/* The timeline: a plan run in virtual time, for the iteration time that it settles to.
 *
 * What happens is what the worker programs do:
 *   - Every device runs the steps in order, each step_us * compute_scale, and before a step waits for its gate.
 *   - Every node has one queue of ready messages. fifo and preemptive launch strictly in the plan's order; priority the
 *     first ready one. A message goes when nothing is in flight or the credit still holds it; if it does not fit,
 *     nothing goes.
 *   - A launch occupies its node for runtime.message_us, plus gathering (several pieces) at copy_gbyte_per_s, plus the
 *     sum within the node (local_reduction): launches of one node follow one another.
 *   - All-reduce: in a strict order every node joins when its own queue comes to it; under priority the first decides
 *     once the gradient is ready everywhere, and all join runtime.coordination_us later. It begins when all have
 *     joined, spends its startup (which overlaps with anything), then transfers. Credit comes back at the end.
 *   - Parameter server: every node pushes (once, or once a device); the server adds each push to the sum as it comes,
 *     one after another, and when it has all sends the sum back. Each push and pull shares the NICs with all others,
 *     and a push's credit comes back when it has arrived.
 *   - Where the transport is a measured one (cost.eager_bytes is finite), what goes from one process to another goes
 *     over one connection, in order, and a connection, not a message, is what shares a NIC. Up to eager_bytes of a
 *     push or pull go unasked; the receiver answers a latency later, and then the rest goes. A push's credit comes
 *     back with its answer, since then the sender has handed over all of it. An answer has no length, but waits for
 *     what its connection carries that way before it.
 *   - Scattering into several gradients, and copies to a node's other devices (local_reduction), delay the gate only.
 *   - A tree whose NICs save (all_reduce.h: in two parts) first holds the NICs' directions towards the first worker,
 *     then those away from it, hold_us each; any other all-reduce both at once.
 *   - All-reduces alone share the network equally. Otherwise rates are max-min fair over NICs (each direction),
 *     overridden links and device links, and what a NIC has saved while it was not used, up to cost.burst_bytes, the
 *     next part on a connection has at once; an all-reduce then is a flow through the NICs of all nodes with devices,
 *     of hold_us times the narrowest of them, so that alone it takes just that.
 *
 * Devices of a node are alike, so a node is simulated as one, and nodes that nothing tells apart and that only work are
 * simulated as one too (but not for `record`). Nothing is random.
 * Units: microseconds (_us). Threads: a struct timeline belongs to one thread at a time. */
#ifndef SIMULATOR_TIMELINE_H
#define SIMULATOR_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "strategy/cost/cost.h"
#include "strategy/plan.h"

struct timeline; /* opaque: scratch that is reused from run to run */

enum interval_kind { INTERVAL_COMPUTE, INTERVAL_ALL_REDUCE, INTERVAL_PUSH, INTERVAL_PULL };

struct interval {
    enum interval_kind kind;
    uint32_t node;  /* whose compute, push or pull; UINT32_MAX for an all-reduce: all nodes with devices */
    uint32_t index; /* step or message */
    double start_us, end_us;
};

struct timeline_options {
    /* Called for every interval, in order of their ends within a node and kind; NULL: none. Time 0 is the start of the
     * first step of the backward pass that comes after all gates. */
    void (*record)(void *context, const struct interval *interval);
    void *context;
    uint32_t passes;     /* run at least so many iterations; 0: as many as it takes */
    uint32_t max_passes; /* and at most so many, but 2; 0: TIMELINE_MAX_PASSES. For rankers that need an answer soon */
    bool every_node;     /* simulate every node and the max-min network even where fewer and equal shares suffice */
};

struct prediction {
    double iteration_us;  /* the steady-state period */
    double compute_us;    /* of the slowest device */
    double exposed_us;    /* iteration - compute */
    double samples_per_s; /* batch of all devices over the iteration */
    double comm_busy_us;  /* an iteration's time in which some message is on its way */
    double queue_us;      /* an iteration's sum over messages (and nodes, for pushes) of waiting while ready */
    uint32_t messages;    /* an iteration */
    uint32_t passes;      /* iterations that were simulated */
    bool converged; /* false: iterations go on differing, and iteration_us is their mean: to a standard error of 0.5%
                     (1% where an iteration has more than 100,000 pushes and pulls), or over TIMELINE_MAX_PASSES */
};

enum { TIMELINE_MAX_PASSES = 64 };

/* NULL when memory is out. */
struct timeline *timeline_new(void);
void timeline_free(struct timeline *timeline); /* NULL is allowed */

/* How much memory it keeps for the next run. */
size_t timeline_bytes(const struct timeline *timeline);

/* Predict. `options` may be NULL. `cost` is the plan's cluster's. *out is written only on ST_OK.
 * Fails: ST_INVALID (a gate that comes after a gradient's own step), ST_TOO_LARGE, ST_NO_MEMORY, and as work_check.
 * Cost a pass: all-reduces alone O((steps + messages) log messages); with servers O(messages * chains) transfers, and
 * for each as many rates as it moves: few where credit is small, up to all that are on their way where it is not.
 * Chains are the working nodes that differ from each other or serve too. */
enum status timeline_run(struct timeline *timeline, const struct plan *plan, const struct cost *cost,
                         const struct timeline_options *options, struct prediction *out, struct error *err);

#endif
