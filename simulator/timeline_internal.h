/* The timeline's state, shared by simulator/timeline_setup.c (sizes, memory, classes of transfers) and
 * simulator/timeline.c (events).
 *
 * A chain is one simulated node's compute stream with its queue. With all-reduces alone there is one chain, that of the
 * slowest node. A faster node is never behind it: completions are common to all nodes, a step starts at the later of
 * "the step before ended" and "common completions", and on a faster node it takes no longer. So each gradient is ready
 * everywhere when the slowest node has it. In any strict order the queue of a faster node has got at least as far: what
 * is in flight there and not here has already left its queue, so whatever fits here was launched there before.
 *
 * With servers there is a chain for each node that works. Nodes with the same figures that serve nothing and have no
 * overridden link behave alike at every moment, so one chain stands for all of them. Its NIC then stands for all their
 * NICs, and each of its transfers arrives `count` times at the server. */
#ifndef SIMULATOR_TIMELINE_INTERNAL_H
#define SIMULATOR_TIMELINE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "simulator/network.h"
#include "simulator/ready_set.h"
#include "strategy/cost/cost.h"
#include "strategy/plan.h"
#include "strategy/weather.h"

struct timeline_options; /* simulator/timeline.h */

/* A push or pull of more than eager_bytes is a request, an answer and the rest, which is all of its bytes. So is a pull
 * that its receiver asks for when its turn comes (cost.workers_serve). On connections a smaller push is answered
 * too. The timer of a part is its start. */
enum timer_kind {
    TIMER_STEP,
    TIMER_STARTUP, /* of an all-reduce, where computing may slow it */
    TIMER_ALL_REDUCE,
    TIMER_TREE_REQUEST, /* one way of a tree is not sent unasked: more than eager_bytes */
    TIMER_TREE_ANSWER,
    TIMER_TREE_BACK, /* the sum is at the root, and goes back now */
    TIMER_TREE_END,  /* it is everywhere */
    TIMER_PUSH,
    TIMER_PUSH_ANSWER,
    TIMER_PUSH_REST,
    TIMER_SUM, /* the server has the sum, where pulls wait for their turn and have not begun */
    TIMER_PULL,
    TIMER_PULL_ANSWER,
    TIMER_PULL_REST
};

/* Of timers with equal time the one that was set first fires first. */
struct timer {
    double time_us, began_us; /* began_us: of the push or pull */
    uint64_t number;
    uint32_t message;
    uint16_t chain, kind;
};

/* What of a node's messages is in flight: pushes and all-reduces, or pulls. */
struct window {
    uint32_t messages;
    uint64_t bytes;
};

struct chain {
    uint32_t node, devices;
    uint32_t count; /* nodes that it stands for, `node` the first of them */
    double scale;
    uint32_t step;  /* running, or waited for */
    double time_us; /* when the step before the waited-for one ended */
    bool waiting;
    uint32_t *left;    /* n_steps: messages that the gate still waits for */
    double *opened_us; /* n_steps: when the latest of the messages that have come became usable */
    struct ready_set ready;
    uint32_t next; /* fifo, preemptive: whose turn it is */
    struct window in_flight;
    double launcher_us;   /* when the launching processor is free */
    bool dirty;           /* its queue may have something to launch */
    uint32_t arrivals;    /* how often it has come to the start of `home` */
    double started_us[4]; /* the last four of them, by arrivals mod 4 */
    double second_us;     /* the second of them */
    /* Only where computing and traffic slow each other: the step before which the chain stands, or that it runs. */
    bool computes;
    double wake_us;                 /* when the step begins or, once the chain computes, ends at the present rate */
    double left_us, rate, since_us; /* of the step at since_us, and how fast it passes */
    double began_us;                /* of the step */
    uint32_t starting, moving;      /* its messages that start up, and whose bytes move */
    /* Only where pulls wait for their turn. */
    struct ready_set pulls;
    struct window pulling;
    bool pulls_dirty;
};

/* All-reduces behind the one under way, as a ring of n_messages. */
struct line {
    uint32_t *messages;
    uint32_t first, n;
    bool under_way;
};

enum { LINES = 2 };

/* A push that has come to its server, `copies` gradients of the message in one. */
struct arrival {
    uint32_t message, copies;
};

/* How much room there is, or is needed. */
struct sizes {
    size_t chains, steps, messages, words, nodes, classes, transfers, resources, uses, timers;
};

struct timeline {
    struct arena arena;
    struct sizes room;

    const struct plan *plan;
    const struct cost *cost;
    const struct timeline_options *options; /* of this run */
    bool interferes;                        /* computing and traffic slow each other */
    struct weather weather;                 /* where options->weather asks for it */
    bool coordinated;                       /* all-reduces wait for the first chain's decision (priority) */
    uint32_t home; /* step at whose start nothing is in flight for a chain: after every gate, before every gradient */

    uint32_t n_chains;
    struct chain *chains;
    uint32_t *left; /* n_chains * n_steps, cut up among the chains; so are the next two */
    double *opened_us;
    uint64_t *words;
    uint32_t *n_ready, *joined; /* by message: chains that have it ready / joined or pushed it */
    double *begin_us;           /* by message: latest join of an all-reduce */
    struct line lines[LINES];   /* where all-reduces go in order; those among replicas have a line of their own */
    double *server_us;          /* by node: when its summing processor is free */
    double *reduced, *raw;      /* by node, of timeline_load_us: bytes served there, a copy a node or a device */

    struct timer *timers; /* heap */
    size_t n_timers;
    uint64_t timers_set;

    struct network network;
    struct flows flows;
    struct transfer *transfers; /* cut up among the classes */
    size_t n_transfers;         /* an iteration */
    double *capacity;
    uint32_t *first_use, *uses;
    uint32_t *server_slot;      /* by node: 0 .. n_servers - 1, or UINT32_MAX */
    uint32_t *server_node;      /* by server slot */
    uint32_t *chain_of;         /* by node, or UINT32_MAX */
    uint32_t *egress, *ingress; /* by node: resource, or UINT32_MAX */
    uint32_t *class_link;       /* by class: resource of the overriding link, or UINT32_MAX */
    uint32_t *served;           /* by server slot: its messages */
    uint32_t n_servers;
    uint32_t all_reduce_class; /* with two_way the next two are those of the first and the second part of a tree */
    double all_reduce_unit;    /* amount of one microsecond of transfer */
    bool two_way;              /* some all-reduce may have two parts */
    uint32_t first_way;        /* resource of all-reduces; with two_way, the next is that of the way back */
    bool inside;               /* some messages never leave their nodes: they have a class and a resource */
    uint32_t inside_class, inside_way;
    bool spends; /* some port had saved less when this iteration began than when the last one did */

    struct arrival *arrived; /* pushes of this instant */
    size_t n_arrived;

    double now_us, busy_us, queue_us;
    uint64_t queued;    /* ready and not launched, over all nodes */
    uint32_t computing; /* chains that compute, where that slows traffic */
    uint32_t moving;    /* transfers whose bytes move, a chain each, likewise */
    uint32_t active;    /* messages on their way, a push and its pull counting once a chain */
    bool done, converged;
    uint32_t rounds;         /* iterations that every chain has begun, less one */
    uint32_t slowest;        /* chain */
    double mean_us, squares; /* of its iterations, without the very first */
    double iteration_us;
    struct all_reduce_cost last_cost; /* of the last all-reduce, since most are alike */
    uint64_t last_bytes;
    enum algorithm last_algorithm;
    enum half last_half;
    enum encoding last_encoder;
    uint64_t last_unencoded;
    uint32_t last_ranks, last_stride;
};

/* Whether a chain's pulls from a server are in one class with the pushes of the server's node, where the two nodes both
 * work and serve. They are on connections if the server is the worker itself, and then wait for each other. They are
 * not if the server is a process of its own. Without connections it does not matter who sends. */
static inline bool timeline_pulls_as_pushes(const struct timeline *tl, uint32_t chain, uint32_t server) {
    uint32_t node = tl->chains[chain].node;
    return (!tl->cost->connected || tl->cost->workers_serve) && node != server && tl->chain_of[server] != UINT32_MAX &&
           tl->server_slot[node] != UINT32_MAX;
}

static inline uint32_t timeline_class(const struct timeline *tl, uint32_t chain, uint32_t server, bool back) {
    if (back && timeline_pulls_as_pushes(tl, chain, server))
        return (tl->server_slot[tl->chains[chain].node] * tl->n_chains + tl->chain_of[server]) * 2;
    return (tl->server_slot[server] * tl->n_chains + chain) * 2 + back;
}

/* How long the launching processor of a chain is busy with a message. */
double timeline_launch_us(const struct timeline *tl, const struct chain *chain, const struct message *message);

/* The cost of an all-reduce. */
struct all_reduce_cost timeline_message_cost(struct timeline *tl, const struct message *message);

/* No iteration of the plan is shorter: how long its busiest NIC or processor works for it. O(messages + nodes). */
double timeline_load_us(struct timeline *tl);

/* What a node's NIC lets through, each way, when it keeps `share` of it from computing and has its rate of the moment.
 */
double timeline_nic_bytes_per_us(const struct timeline *tl, uint32_t node, enum direction direction, double share);

/* Point the timeline at the plan, grow its memory where that is needed, and bring all state to the start of `home`.
 * `options`, with max_passes set, must live as long as the run. */
enum status timeline_prepare(struct timeline *tl, const struct plan *plan, const struct cost *cost,
                             const struct timeline_options *options, struct error *err);

#endif
