/* The timeline: a plan run in virtual time, for the iteration time that it settles to.
 *
 * The timeline does what the worker programs do:
 *   - Every device runs the steps in order, each for step_us * compute_scale. Before a step it waits for the step's
 *     gate.
 *   - Every node has one queue of ready messages. fifo and preemptive launch strictly in the plan's order; priority
 *     launches the first message that is ready. A message goes when nothing is in flight or when the credit still holds
 *     it. If the message does not fit, nothing goes.
 *   - A launch occupies its node for runtime.message_us, plus gathering at copy_gbyte_per_s (of several pieces) or
 *     encoding at encode_gbyte_per_s, plus the sum within the node (local_reduction). A gradient that is encoded goes
 *     into its message by the conversion and is not copied. So is a device's part of sharded parameters that are
 *     gathered in another type than the model's; what gradients are summed to is converted back before the gate.
 *     Launches of one node follow one another. With an encoder the node is busy with the message after its launch too:
 *     it moves its ways, computes between them, and decodes (cost_later_us). The launches behind wait for all of that.
 *   - All-reduce: in a strict order every node joins when its own queue comes to the message. Under priority the first
 *     node decides once the gradient is ready everywhere, and all join runtime.coordination_us later. The all-reduce
 *     begins when all have joined, spends its startup, which overlaps with anything, and then transfers. Its credit
 *     comes back at the end. Where all-reduces go in order (cost.in_order: NCCL), one that all have joined also waits
 *     for the end of those that were joined before, and its startup overlaps with no other all-reduce.
 *     Of two halves the first opens no gate: when it ends, the second is ready on every node. Gradients are gathered
 *     before the first and scattered after the second.
 *   - Parameter server: every node pushes, once or once a device. The server adds the pushes to the sum one after
 *     another, as they come, and sends the sum back when it has all of them. Pushes and pulls share the NICs, and the
 *     credit of a push comes back when the push has arrived.
 *   - Pulls by priority (plan->pulls_by_priority; ByteScheduler theorem 1): every node has a second queue, for its
 *     pulls, in the plan's order and with a credit of its own, as large as that of the pushes. A pull is ready when its
 *     server has the sum, and its credit comes back when it has arrived. The queue is the worker's and not the
 *     server's, because every worker runs its own scheduler, for the pulls from all servers (ByteScheduler §5). Pushes
 *     and pulls have separate credits, because they use different resources, the two directions of the NIC (§2.2): the
 *     theorem puts pulls before pulls and pushes before pushes.
 *   - Connections: where the transport has them (cost.connected), one process sends another
 *     everything over one connection, in order, and connections, not messages, share a NIC. A message of more than
 *     eager_bytes is not sent unasked: a request goes ahead, the receiver answers a latency later, and then all of it
 *     is sent. The credit of a push comes back with its answer, because the sender has then handed over all of it.
 *     Requests and answers have no length, but wait for what their connection carries before them. Where pulls go by
 *     priority, the answer to a pull's request waits in the queue of pulls; a pull that needs no request has no turn.
 *   - Ranks that serve (cost.workers_serve: gloo by the hook): two ranks have one connection, so a pull also waits for
 *     what its server pushes the same way. Receivers ask for pushes beforehand, and for pulls too unless these go by
 *     priority. The credit of a push comes back with the server's word that it is there.
 *     Two things the timeline leaves out. The hook asks for touched rows only when it hears how many come. And a
 *     server's own part of a message takes no time in the hook; here it is pushed, and its sum has a turn as a pull.
 *   - Scattering into several gradients, decoding, and copies to a node's other devices (local_reduction), delay the
 * gate only.
 *   - A tree with bursts has two parts (strategy/cost/all_reduce.h): it first holds the NICs' directions towards the
 *     first worker, for hold_us, then those away from it, for back_us, and ends rest_us later, while other trees move
 *     already. Any other all-reduce holds both at once. On connections trees take each way in turn, as they come, since
 *     a hop sends the whole message. Each way of one of more than eager_bytes begins with a request, whose answer waits
 *     for what trees send in the other direction. So small trees come back while others go to the root, and large ones
 *     do not.
 *   - Rates: all-reduces alone share the network equally. Otherwise rates are max-min fair over NICs (each direction),
 *     overridden links and device links. A NIC saves what it does not use, up to cost.burst_bytes, and the next part on
 *     a connection gets that at once. An all-reduce is then a flow through the NICs of all nodes with devices, of so
 *     many bytes that alone it takes hold_us.
 *   - Interference (cost.in_startup, cost.in_transfer): while a node has an all-reduce that starts up, or bytes that
 *     are on their way, its steps run at the share that traffic leaves them. While any node computes, startups and
 *     bytes of all-reduces pass at the share that computing leaves them; a node that computes lets that share of bytes
 *     through its NIC. While bytes move, startups pass at the share that these leave them (in_startup.beside). What
 *     overlaps is cut where a rate changes, so this is exact. Latencies of pushes and pulls stay as they are.
 *
 * Devices of a node are alike, so a node is simulated as one device. Nodes that only work and that nothing tells apart
 * are simulated as one node too, but not for `record`. Nothing is random.
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
     * step with the last gate: with the barrier the first step of the forward pass, without it a late one. */
    void (*record)(void *context, const struct interval *interval);
    void *context;
    uint32_t passes; /* run at least so many iterations; 0: as many as it takes */
    uint32_t
        max_passes; /* and at most so many, at least 2; 0: TIMELINE_MAX_PASSES. A search that ranks many sets it low */
    /* Give up on a plan that keeps a NIC or a processor of a server busy for longer than this, or when an event comes
     * later than this in an iteration; 0: never. It is for a search that has no use for a slower strategy. iteration_us
     * is then above enough_us and as a rule below the true time, and converged is false. In weather the mean over
     * `passes` iterations is what must not be longer. */
    double enough_us;
    /* End after the iteration in which so many events have been simulated (prediction.events), with the mean until
     * then, and fail with ST_TOO_LARGE if not even one iteration is through; 0: no limit. */
    uint64_t most_events;
    /* Simulate the weather of this seed (strategy/weather.h) instead of quiet NICs and workers. Weather has no steady
     * state. So the run ends with an iteration: the first that ends after until_us, once there were `passes` of them.
     * iteration_us is the mean of all. */
    bool weather;
    uint64_t seed;
    double until_us;
    void (*iteration)(void *context, double us); /* called in weather for every iteration; NULL: none */
    bool every_node; /* simulate every node and max-min rates, even where one node and equal shares suffice */
};

struct prediction {
    double iteration_us;  /* the steady-state period */
    double compute_us;    /* of the slowest device */
    double exposed_us;    /* iteration - compute */
    double samples_per_s; /* batch of all devices over the iteration */
    double comm_busy_us;  /* time of an iteration in which some message is on its way */
    double queue_us;      /* sum over an iteration's messages (and nodes, for pushes; pulls do not count): how long each
                             waited when ready */
    uint32_t messages;    /* an iteration */
    uint32_t micro_batches; /* of an iteration, as the plan: samples_per_s counts them all */
    uint32_t passes;        /* iterations that were simulated */
    uint64_t events;        /* what the run has cost: ends of steps, starts of transfers, changes of their rates */
    enum lossiness lossy;   /* as the plan: only the bound for strategies that lose as much holds */
    enum in_parts in_parts; /* likewise */
    bool converged; /* false: iterations go on differing and iteration_us is their mean, to a standard error of 0.5% or
                       over max_passes of them. Where an iteration has more than 100,000 pushes and pulls, two
                       iterations that agree to 1% are enough: off by 1% on average, at worst 7% was seen */
};

enum { TIMELINE_MAX_PASSES = 64 };

/* NULL when memory is out. */
struct timeline *timeline_new(void);
void timeline_free(struct timeline *timeline); /* NULL is allowed */

/* How much memory it keeps for the next run. */
size_t timeline_bytes(const struct timeline *timeline);

/* Predict. `options` may be NULL. `cost` is the plan's cluster's. *out is written only on ST_OK.
 * Fails: ST_INVALID (a gate that comes after a gradient's own step), ST_TOO_LARGE, ST_NO_MEMORY, and as work_check.
 * Cost of a pass: all-reduces alone O((steps + messages) log messages). With servers O(messages * chains) transfers;
 * each changes some rates: few where credit is small, up to those of all transfers on their way where it is large.
 * Chains are the working nodes that differ from each other or that also serve. */
enum status timeline_run(struct timeline *timeline, const struct plan *plan, const struct cost *cost,
                         const struct timeline_options *options, struct prediction *out, struct error *err);

#endif
