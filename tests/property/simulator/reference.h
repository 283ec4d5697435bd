/* A slow, plain simulation of a plan, written apart from the timeline to check it: every node, every push of every
 * device a flow of its own, rates worked out anew at every event, no heaps, no classes, no shortcuts. O(events *
 * messages * nodes). */
#ifndef TESTS_PROPERTY_SIMULATOR_REFERENCE_H
#define TESTS_PROPERTY_SIMULATOR_REFERENCE_H

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "strategy/cost/cost.h"
#include "strategy/cost/transport.h"
#include "strategy/encoder.h"
#include "strategy/plan.h"
#include "strategy/weather.h"

enum {
    REF_NODES = 8,
    REF_MESSAGES = 48,
    REF_STEPS = 32,
    REF_FLOWS = REF_NODES * REF_MESSAGES * 5,
    REF_RESOURCES = 4 * 64,
    REF_WAITS = REF_NODES * REF_MESSAGES * 2,
    REF_ITERATIONS = 80
};

enum ref_stage { REF_IDLE, REF_READY, REF_IN_LINE, REF_LATENCY, REF_MOVING, REF_SERVING };
/* What a connection carries; those from REF_PULL on come from the server, but REF_ASKED goes to it. And all-reduces: at
 * once, or of a tree first to the root and then away from it. A way of a large tree is requested along the way and
 * granted against it. */
enum ref_part {
    REF_PUSH,
    REF_PUSH_REST,
    REF_ASKED,
    REF_PULL,
    REF_PULL_REST,
    REF_TAKEN,
    REF_WHOLE,
    REF_TOWARDS_REQUEST,
    REF_TOWARDS_GRANT,
    REF_TOWARDS,
    REF_AWAY_REQUEST,
    REF_AWAY_GRANT,
    REF_AWAY,
    REF_EVERYWHERE, /* nothing to carry: the sum of a tree is at the last device */
    REF_SUMMED      /* nothing to carry: the server has the sum */
};

/* One message at one node; an all-reduce uses [message][0] once it has begun. */
struct ref_message {
    enum ref_stage stage;
    double until_us;          /* of a latency */
    double begin_us, left_us; /* of an all-reduce's startup */
    int begun;                /* how many had begun before */
    bool joined;
};

/* A part that waits for its latency to end. */
struct ref_wait {
    int message, chain;
    enum ref_part part;
    double until_us;
};

struct ref_flow {
    int message, node; /* node -1: all-reduce */
    enum ref_part part;
    int turn; /* on its connection; copies of one message go together */
    bool begun;
    double left, rate;
    bool frozen;
};

struct ref {
    const struct plan *plan;
    const struct cost *cost;
    bool varies; /* in weather */
    struct weather weather;
    double rates[WEATHER_NUMBERS * 64];
    double now_us;
    int n_nodes, node[REF_NODES]; /* chains, by their node */
    int step[REF_NODES], iteration[REF_NODES], next[REF_NODES], in_flight[REF_NODES];
    uint64_t in_flight_bytes[REF_NODES];
    bool running[REF_NODES];
    double step_end_us[REF_NODES], step_rate[REF_NODES], launcher_us[REF_NODES], server_us[64];
    int missing[REF_NODES][REF_STEPS];
    double usable_us[REF_NODES][REF_STEPS];
    struct ref_message at[REF_MESSAGES][REF_NODES];
    bool has[REF_MESSAGES][REF_NODES];      /* gradient there, for a coordinated all-reduce */
    bool pullable[REF_MESSAGES][REF_NODES]; /* waits for its turn among the node's pulls */
    int pulling[REF_NODES];
    uint64_t pulling_bytes[REF_NODES];
    int pushed[REF_MESSAGES];
    int arrived[REF_MESSAGES]; /* copies at this instant, in the order of nodes */
    struct ref_flow flows[REF_FLOWS];
    int n_flows, turns;
    struct ref_wait waits[REF_WAITS];
    int n_waits;
    int n_begun;
    /* All-reduces that have begun and not ended; others wait in line where they go in order. Those among replicas have
     * a line of their own. */
    int under_way[2];
    double saved[REF_RESOURCES]; /* by resource; of ports alone */
    bool inside[REF_MESSAGES];   /* ref_stays */
    double started_us[REF_NODES][REF_ITERATIONS + 1];
    int wanted;
};

static inline const struct node *ref_node(const struct ref *r, int c) {
    return &r->cost->cluster->nodes[r->node[c]];
}

static inline bool ref_is_server(const struct ref *r, int m) {
    return r->plan->messages[m].kind == SYNC_PARAMETER_SERVER;
}

/* Of two halves the first opens no gate and no step makes the second ready. Halves without another do both. */
static inline bool ref_is_first_half(const struct ref *r, int m) {
    return r->plan->messages[m].half == HALF_scatter && r->plan->messages[m].other != NO_MESSAGE;
}

static inline bool ref_is_second_half(const struct ref *r, int m) {
    return r->plan->messages[m].half == HALF_gather && r->plan->messages[m].other != NO_MESSAGE;
}

static inline bool ref_is_of_replicas(const struct ref *r, int m) {
    return r->plan->messages[m].half == HALF_replicas;
}

static inline uint32_t ref_node_of(const struct ref *r, uint32_t device) {
    uint32_t node = 0;
    while (device >= r->cost->cluster->nodes[node].devices)
        device -= r->cost->cluster->nodes[node++].devices;
    return node;
}

/* Whether no two devices of a group, each of which is within one node, are on two. */
static inline bool ref_stays(const struct ref *r, int m) {
    const struct message *message = &r->plan->messages[m];
    const uint32_t n = r->cost->cluster->n_devices, span = message->ranks * message->stride;
    for (uint32_t device = 0; device < n && message->ranks > 0; device++)
        for (uint32_t other = 0; other < n; other++)
            if (device / span == other / span && device % message->stride == other % message->stride &&
                ref_node_of(r, device) != ref_node_of(r, other))
                return false;
    return message->ranks > 0 && r->n_nodes > 1;
}

static inline bool ref_comes_back(enum ref_part part) {
    return part == REF_PULL || part == REF_PULL_REST || part == REF_TAKEN;
}

/* Of all-reduces: 1 towards the root, 2 away from it, 0 both at once. */
static inline int ref_way(enum ref_part part) {
    bool up = part == REF_TOWARDS || part == REF_TOWARDS_REQUEST || part == REF_AWAY_GRANT;
    return part == REF_WHOLE ? 0 : up ? 1 : 2;
}

/* Parts of trees on the same way, or bytes between the same two processes. */
static inline bool ref_same_connection(const struct ref *r, const struct ref_flow *f, const struct ref_flow *g) {
    if (f->node < 0 || g->node < 0)
        return f->node == g->node && ref_way(f->part) == ref_way(g->part) && f->part != REF_WHOLE;
    int server = (int)r->plan->messages[f->message].server, other = (int)r->plan->messages[g->message].server;
    bool back = ref_comes_back(f->part), other_back = ref_comes_back(g->part);
    if (r->cost->workers_serve && f->node == other && g->node == server && f->node != server)
        return back != other_back;
    return g->node == f->node && other == server && back == other_back;
}

/* Bytes of one connection follow each other. */
static inline bool ref_has_turn(const struct ref *r, const struct ref_flow *f) {
    if (!r->cost->connected)
        return true;
    for (int i = 0; i < r->n_flows; i++)
        if (r->flows[i].turn < f->turn && ref_same_connection(r, f, &r->flows[i]))
            return false;
    return true;
}

/* ---- interference ---- */

static inline bool ref_any_runs(const struct ref *r) {
    for (int c = 0; c < r->n_nodes; c++)
        if (r->running[c])
            return true;
    return false;
}

/* What computing and the weather leave of the speed of bytes through the NIC of a node. */
static inline double ref_nic_bytes_per_us(const struct ref *r, int node, bool in) {
    double rate = r->cost->nic_bytes_per_us[node];
    for (int c = 0; c < r->n_nodes; c++)
        if (r->node[c] == node && r->running[c])
            rate *= r->cost->in_transfer.traffic;
    if (r->varies)
        rate *= r->rates[2 * node + in] / r->cost->cluster->nodes[node].nic_gbit_per_s;
    return rate;
}

/* Answers take no bytes worth counting. */
static inline bool ref_moves(const struct ref_flow *f) {
    return f->node < 0 || (f->part != REF_ASKED && f->part != REF_TAKEN);
}

static inline double ref_startup_rate(const struct ref *r) {
    double rate = ref_any_runs(r) ? r->cost->in_startup.traffic : 1;
    for (int i = 0; i < r->n_flows; i++)
        if (ref_moves(&r->flows[i]))
            return rate * r->cost->in_startup.beside;
    return rate;
}

static inline bool ref_is_starting(const struct ref *r, int m) {
    return r->at[m][0].stage == REF_LATENCY && r->at[m][0].begin_us <= r->now_us;
}

/* What traffic leaves of the speed of computing. */
static inline double ref_step_rate(const struct ref *r, int c) {
    double rate = 1;
    for (int m = 0; m < (int)r->plan->n_messages; m++)
        if (ref_is_starting(r, m))
            rate = fmin(rate, r->cost->in_startup.compute);
    for (int i = 0; i < r->n_flows; i++) {
        const struct ref_flow *f = &r->flows[i];
        if (ref_moves(f) && (f->node < 0 || f->node == r->node[c]))
            rate = fmin(rate, r->cost->in_transfer.compute);
    }
    return rate;
}

/* Startups pass for `us`. The end of a step holds while its rate does. */
static inline void ref_pass(struct ref *r, double us) {
    for (int m = 0; m < (int)r->plan->n_messages; m++)
        if (ref_is_starting(r, m))
            r->at[m][0].left_us -= us * ref_startup_rate(r);
}

/* From the state of now. */
static inline void ref_pace(struct ref *r) {
    for (int c = 0; c < r->n_nodes && r->cost->interferes; c++) {
        double rate = ref_step_rate(r, c);
        if (r->running[c] && rate != r->step_rate[c])
            r->step_end_us[c] = r->now_us + (r->step_end_us[c] - r->now_us) * r->step_rate[c] / rate;
        r->step_rate[c] = rate;
    }
    for (int m = 0; m < (int)r->plan->n_messages; m++)
        if (r->at[m][0].stage == REF_LATENCY)
            r->at[m][0].until_us =
                fmax(r->now_us, r->at[m][0].begin_us) + fmax(r->at[m][0].left_us, 0) / ref_startup_rate(r);
}

/* ---- rates: all flows one by one ---- */

static inline double ref_all_reduce_unit(const struct ref *r) {
    return isfinite(r->cost->narrowest_bytes_per_us) ? r->cost->narrowest_bytes_per_us : 1;
}

static inline bool ref_uses(const struct ref *r, const struct ref_flow *f, int resource, double *capacity) {
    const struct cluster *cluster = r->cost->cluster;
    int n = (int)cluster->n_nodes, links = (int)cluster->n_links;
    const bool within = f->node < 0 && r->inside[f->message]; /* what stays in nodes has a resource of its own */
    if (within != (resource == 4 * n + links + 2))
        return false;
    if (within) {
        *capacity = ref_all_reduce_unit(r) * (ref_any_runs(r) ? r->cost->in_transfer.traffic : 1);
        return true;
    }
    if (resource < 4 * n) { /* egress, ingress, device link up, device link down */
        int node = resource / 4, what = resource % 4;
        *capacity = what < 2 ? ref_nic_bytes_per_us(r, node, what == 1) : r->cost->device_link_bytes_per_us[node];
        bool out = what == 0, root = node == r->node[0];
        if (f->node < 0)
            return what < 2 && cluster->nodes[node].devices > 0 && r->n_nodes > 1 &&
                   (f->part == REF_WHOLE || (ref_way(f->part) == 1) == (out != root));
        bool back = ref_comes_back(f->part);
        int server = (int)r->plan->messages[f->message].server, from = back ? server : f->node,
            to = back ? f->node : server;
        if (from == to)
            return node == from && what == (back ? 3 : 2);
        return what == 0 ? node == from : what == 1 ? node == to : false;
    }
    if (resource < 4 * n + links) {
        const struct link *link = &cluster->links[resource - 4 * n];
        *capacity = transport_link_bytes_per_us(cluster, link);
        if (f->node < 0)
            return f->part == REF_WHOLE && cluster->nodes[link->from].devices > 0 &&
                   cluster->nodes[link->to].devices > 0;
        uint32_t server = r->plan->messages[f->message].server, node = (uint32_t)f->node;
        return ref_comes_back(f->part) ? link->from == server && link->to == node
                                       : link->from == node && link->to == server;
    }
    *capacity = ref_all_reduce_unit(r);
    *capacity *= ref_any_runs(r) ? r->cost->in_transfer.traffic : 1;
    return f->node < 0 && ref_way(f->part) != (resource > 4 * n + links ? 1 : 2);
}

/* NICs, device links, overridden links, and all-reduces' own: towards the root, away from it, and within nodes. */
static inline int ref_resources(const struct ref *r) {
    return 4 * (int)r->cost->cluster->n_nodes + (int)r->cost->cluster->n_links + 3;
}

static inline void ref_rates(struct ref *r) {
    static bool uses[REF_RESOURCES][REF_FLOWS]; /* which do not change here, while rates do */
    static double capacity[REF_RESOURCES];
    int n_resources = ref_resources(r);
    assert(n_resources <= REF_RESOURCES);
    for (int i = 0; i < r->n_flows; i++) {
        r->flows[i].frozen = !ref_has_turn(r, &r->flows[i]);
        r->flows[i].rate = 0;
        for (int resource = 0; resource < n_resources; resource++)
            uses[resource][i] = ref_uses(r, &r->flows[i], resource, &capacity[resource]);
    }
    for (;;) {
        double lowest = INFINITY;
        int at = -1;
        for (int resource = 0; resource < n_resources; resource++) {
            double used = 0;
            int open = 0;
            for (int i = 0; i < r->n_flows; i++) {
                if (!uses[resource][i])
                    continue;
                used += r->flows[i].frozen ? r->flows[i].rate : 0;
                open += !r->flows[i].frozen;
            }
            if (open > 0 && fmax(capacity[resource] - used, 0) / open < lowest) {
                lowest = fmax(capacity[resource] - used, 0) / open;
                at = resource;
            }
        }
        if (at < 0)
            return;
        for (int i = 0; i < r->n_flows; i++)
            if (uses[at][i] && !r->flows[i].frozen) {
                r->flows[i].frozen = true;
                r->flows[i].rate = lowest;
            }
    }
}

/* ---- what happens ---- */

static inline double ref_pack_us(const struct ref *r, int m, bool back) {
    const struct message *message = &r->plan->messages[m];
    double us = 0;
    if (message->encoder == ENCODING_powersgd) { /* each a third of the rank's products and half of what is beside */
        us = (double)message->unencoded_bytes / r->cost->powersgd_bytes_per_us * (message->figure / 3 + 0.75) / 3.5;
        return message->n_pieces > 1 ? us + (double)message->unencoded_bytes / r->cost->copy_bytes_per_us : us;
    }
    if (message->encoder) {
        us = (double)message->unencoded_bytes /
             (message->encoder == ENCODING_int8 ? r->cost->int8_bytes_per_us : r->cost->topk_bytes_per_us);
        if (message->encoder == ENCODING_topk && back)
            us = (double)message->unencoded_bytes / r->cost->copy_bytes_per_us +
                 r->cost->cluster->n_devices * (double)message->bytes / r->cost->sum_bytes_per_us;
        return message->n_pieces > 1 ? us + (double)message->unencoded_bytes / r->cost->copy_bytes_per_us : us;
    }
    if (message->n_pieces > 1)
        us += (double)(message->bytes - message->encoded_bytes) / r->cost->copy_bytes_per_us;
    if (message->encoded_bytes > 0)
        us += (double)message->unencoded_bytes / r->cost->encode_bytes_per_us;
    return us;
}

/* A device's part, from its shard's type or into it, by the wider of both. */
static inline double ref_convert_us(const struct ref *r, int m) {
    return (double)r->plan->messages[m].converted_bytes / r->cost->encode_bytes_per_us;
}

static inline void ref_usable(struct ref *r, int c, int m, double time_us) {
    uint32_t gate = r->plan->messages[m].gate;
    r->at[m][c].stage = REF_IDLE;
    if (ref_is_first_half(r, m))
        return;
    r->missing[c][gate]--;
    r->usable_us[c][gate] = fmax(r->usable_us[c][gate], time_us);
}

static inline void ref_add_flows(struct ref *r, int m, int node, enum ref_part part, double amount, int copies) {
    for (int i = 0; i < copies; i++)
        r->flows[r->n_flows++] = (struct ref_flow){m, node, part, r->turns, false, amount, 0, false};
    r->turns++;
}

static inline int ref_copies(const struct ref *r, int c, int m) {
    return r->plan->messages[m].local_reduction ? 1 : (int)ref_node(r, c)->devices;
}

static inline void ref_start_up(struct ref *r, int m) {
    struct ref_message *at = &r->at[m][0];
    at->stage = REF_LATENCY;
    at->begin_us = fmax(at->begin_us, r->now_us);
    at->until_us = at->begin_us + at->left_us;
    r->under_way[ref_is_of_replicas(r, m)]++;
}

/* The all-reduce that came into that line first. */
static inline int ref_first_in_line(const struct ref *r, bool of_replicas) {
    int first = -1;
    for (int m = 0; m < (int)r->plan->n_messages; m++)
        if (r->at[m][0].stage == REF_IN_LINE && ref_is_of_replicas(r, m) == of_replicas &&
            (first < 0 || r->at[m][0].begun < r->at[first][0].begun))
            first = m;
    return first;
}

static inline void ref_join(struct ref *r, int c, int m, double at_us);

static inline void ref_all_reduce_done(struct ref *r, int m) {
    const bool of_replicas = ref_is_of_replicas(r, m);
    int next = ref_first_in_line(r, of_replicas);
    r->under_way[of_replicas]--;
    if (next >= 0)
        ref_start_up(r, next);
    for (int c = 0; c < r->n_nodes; c++) {
        r->in_flight[c] -= !of_replicas;
        r->in_flight_bytes[c] -= of_replicas ? 0 : r->plan->messages[m].bytes;
        const bool stays = of_replicas || r->plan->messages[m].half == HALF_scatter;
        double unpack_us = stays ? ref_convert_us(r, m) : ref_pack_us(r, m, true);
        ref_usable(r, c, m, r->now_us + unpack_us);
    }
    if (ref_is_first_half(r, m))
        for (int c = 0; c < (r->plan->policy == POLICY_priority ? 1 : r->n_nodes); c++)
            r->at[r->plan->messages[m].other][c].stage = REF_READY;
    for (int c = 0; c < r->n_nodes && r->plan->messages[m].replicas > 0; c++)
        ref_join(r, c, (int)r->plan->messages[m].replicas, r->now_us);
}

static inline void ref_return_credit(struct ref *r, int c, int m) {
    r->in_flight[c]--;
    r->in_flight_bytes[c] -= r->plan->messages[m].bytes;
}

static inline void ref_push_done(struct ref *r, int c, int m) {
    r->at[m][c].stage = REF_SERVING;
    r->arrived[m] += ref_copies(r, c, m);
    r->pushed[m]++;
}

/* On a connection a pull of at most eager_bytes comes unasked, and has no turn. */
static inline bool ref_has_pull_turn(const struct ref *r, int m) {
    bool whole_unasked = !isinf(r->cost->eager_bytes) && (double)r->plan->messages[m].bytes <= r->cost->eager_bytes;
    return r->plan->pulls_by_priority && !whole_unasked;
}

static inline void ref_pull_done(struct ref *r, int c, int m) {
    const struct message *message = &r->plan->messages[m];
    if (ref_has_pull_turn(r, m)) {
        r->pulling[c]--;
        r->pulling_bytes[c] -= message->bytes;
    }
    double time = r->now_us + ref_pack_us(r, m, true);
    if (message->local_reduction)
        time += (ref_node(r, c)->devices - 1) * (double)message->bytes / r->cost->device_link_bytes_per_us[r->node[c]];
    ref_usable(r, c, m, time);
}

static inline int ref_chain(const struct ref *r, int node) {
    for (int c = 0; c < r->n_nodes; c++)
        if (r->node[c] == node)
            return c;
    return -1;
}

static inline void ref_wait(struct ref *r, int c, int m, enum ref_part part, double at_us) {
    uint32_t node = (uint32_t)r->node[c], server = r->plan->messages[m].server;
    double latency = ref_comes_back(part) ? cost_pull_latency_us(r->cost, node, server)
                                          : cost_push_latency_us(r->cost, node, server);
    r->waits[r->n_waits++] = (struct ref_wait){m, c, part, at_us + latency};
}

static inline void ref_part_done(struct ref *r, int c, int m, enum ref_part part);

/* Whether a request goes before a push or a pull. */
static inline bool ref_asks(const struct ref *r, int m, bool back) {
    return (double)r->plan->messages[m].bytes > r->cost->eager_bytes ||
           (back && r->cost->workers_serve && r->plan->pulls_by_priority);
}

static inline void ref_begin_part(struct ref *r, int c, int m, enum ref_part part) {
    const struct message *message = &r->plan->messages[m];
    double bytes = (double)message->bytes, first = ref_asks(r, m, ref_comes_back(part)) ? 0 : bytes;
    double amount = part == REF_PUSH || part == REF_PULL             ? first
                    : part == REF_PUSH_REST || part == REF_PULL_REST ? bytes - first
                                                                     : 0;
    if ((uint32_t)r->node[c] == message->server && !isfinite(r->cost->device_link_bytes_per_us[r->node[c]]))
        ref_part_done(r, c, m, part);
    else
        ref_add_flows(r, m, r->node[c], part, amount, ref_copies(r, c, m));
}

static inline void ref_part_done(struct ref *r, int c, int m, enum ref_part part) {
    bool large = ref_asks(r, m, ref_comes_back(part) != (part == REF_TAKEN || part == REF_ASKED));
    bool answers = r->cost->connected;
    if (part == REF_PUSH && answers)
        ref_wait(r, c, m, REF_TAKEN, r->now_us);
    if (part == REF_TAKEN || (part == REF_PUSH && !answers))
        ref_return_credit(r, c, m);
    if (part == REF_TAKEN && large)
        ref_begin_part(r, c, m, REF_PUSH_REST);
    if (part == REF_PUSH_REST || (part == REF_PUSH && !large))
        ref_push_done(r, c, m);
    if (part == REF_PULL && large && ref_has_pull_turn(r, m))
        r->pullable[m][c] = true;
    else if (part == REF_PULL && large)
        ref_wait(r, c, m, REF_ASKED, r->now_us);
    if (part == REF_ASKED)
        ref_begin_part(r, c, m, REF_PULL_REST);
    if (part == REF_PULL_REST || (part == REF_PULL && !large))
        ref_pull_done(r, c, m);
}

static inline struct all_reduce_cost ref_cost(const struct ref *r, int m) {
    const struct message *message = &r->plan->messages[m];
    if (message->encoder || message->ranks > 0) /* test_encoder.c and test_rank_groups.c have these by hand */
        return cost_all_reduce(r->cost, message);
    return message->half ? all_reduce_half_cost(&r->cost->all_reduce, message->half, message->bytes)
                         : all_reduce_cost(&r->cost->all_reduce, message->algorithm, message->bytes);
}

/* What a part of an all-reduce has to move. */
static inline double ref_hold(const struct ref *r, int m, enum ref_part part) {
    return (part == REF_AWAY ? ref_cost(r, m).back_us : ref_cost(r, m).hold_us) * ref_all_reduce_unit(r);
}

static inline void ref_start_way(struct ref *r, int m, enum ref_part request, enum ref_part data) {
    bool large = (double)r->plan->messages[m].bytes > r->cost->eager_bytes;
    ref_add_flows(r, m, -1, large ? request : data, large ? 0 : ref_hold(r, m, data), 1);
}

/* The root sends back once all that comes at this instant has come. */
static inline void ref_tree_part_done(struct ref *r, int m, enum ref_part part) {
    if (part == REF_TOWARDS_REQUEST || part == REF_AWAY_REQUEST)
        ref_add_flows(r, m, -1, part == REF_AWAY_REQUEST ? REF_AWAY_GRANT : REF_TOWARDS_GRANT, 0, 1);
    else if (part == REF_TOWARDS_GRANT)
        ref_add_flows(r, m, -1, REF_TOWARDS, ref_hold(r, m, REF_TOWARDS), 1);
    else if (part == REF_AWAY_GRANT)
        ref_add_flows(r, m, -1, REF_AWAY, ref_hold(r, m, REF_AWAY), 1);
    else if (part == REF_AWAY && ref_cost(r, m).rest_us > 0)
        r->waits[r->n_waits++] = (struct ref_wait){m, -1, REF_EVERYWHERE, r->now_us + ref_cost(r, m).rest_us};
    else if (part == REF_TOWARDS)
        r->waits[r->n_waits++] = (struct ref_wait){m, -1, REF_AWAY, r->now_us};
    else
        ref_all_reduce_done(r, m);
}

static inline void ref_end_flow(struct ref *r, struct ref_flow flow) {
    if (flow.node < 0) {
        ref_tree_part_done(r, flow.message, flow.part);
        return;
    }
    for (int i = 0; i < r->n_flows; i++) /* the last of its copies counts */
        if (r->flows[i].turn == flow.turn)
            return;
    ref_part_done(r, ref_chain(r, flow.node), flow.message, flow.part);
}

/* ---- what ports have saved ---- */

static inline bool ref_is_port(const struct ref *r, int resource) {
    if (resource < 4 * (int)r->cost->cluster->n_nodes)
        return resource % 4 < 2;
    const int first_way = ref_resources(r) - 3;
    return resource >= first_way && resource < first_way + 2 && isfinite(r->cost->narrowest_bytes_per_us);
}

static inline double ref_capacity(const struct ref *r, int resource) {
    bool nic = resource < 4 * (int)r->cost->cluster->n_nodes;
    if (nic)
        return ref_nic_bytes_per_us(r, resource / 4, resource % 4 == 1);
    return r->cost->narrowest_bytes_per_us * (ref_any_runs(r) ? r->cost->in_transfer.traffic : 1);
}

static inline void ref_save(struct ref *r, double us) {
    for (int resource = 0; resource < ref_resources(r); resource++) {
        double used = 0, unused;
        if (!ref_is_port(r, resource))
            continue;
        for (int i = 0; i < r->n_flows; i++)
            used += ref_uses(r, &r->flows[i], resource, &unused) ? r->flows[i].rate : 0;
        double spare = fmax(ref_capacity(r, resource) - used, 0);
        r->saved[resource] = fmin(r->cost->burst_bytes, r->saved[resource] + spare * us);
    }
}

/* All copies of a transfer whose turn has come take an equal part of what their ports have saved. All-reduces go by
 * what is no port. */
static inline void ref_leap(struct ref *r, int turn) {
    int n_resources = ref_resources(r), copies = 0, first = -1;
    for (int i = 0; i < r->n_flows; i++)
        if (r->flows[i].turn == turn) {
            first = i;
            copies++;
            r->flows[i].begun = true;
        }
    double bytes = r->flows[first].left, unused;
    bool ports = false;
    for (int resource = 0; resource < n_resources; resource++)
        if (ref_uses(r, &r->flows[first], resource, &unused) && (ref_is_port(r, resource) || r->flows[first].node >= 0))
            bytes = fmin(bytes, ref_is_port(r, resource) ? r->saved[resource] / copies : 0);
    for (int resource = 0; resource < n_resources; resource++)
        ports |= ref_is_port(r, resource) && ref_uses(r, &r->flows[first], resource, &unused);
    if (!ports)
        bytes = 0;
    for (int i = 0; i < r->n_flows; i++)
        r->flows[i].left -= r->flows[i].turn == turn ? bytes : 0;
    for (int resource = 0; resource < n_resources; resource++)
        if (ref_is_port(r, resource) && ref_uses(r, &r->flows[first], resource, &unused))
            r->saved[resource] -= copies * bytes;
}

/* In the order in which they came into their connections. */
static inline void ref_leaps(struct ref *r) {
    for (;;) {
        int turn = -1;
        for (int i = 0; i < r->n_flows; i++) {
            const struct ref_flow *f = &r->flows[i];
            if (!f->begun && (turn < 0 || f->turn < turn) && ref_has_turn(r, f))
                turn = f->turn;
        }
        if (turn < 0)
            return;
        ref_leap(r, turn);
    }
}

static inline void ref_begin_all_reduce(struct ref *r, int m) {
    struct all_reduce_cost cost = ref_cost(r, m);
    for (int c = 0; c < r->n_nodes; c++)
        r->at[m][c].stage = REF_MOVING;
    if (cost.hold_us <= 0)
        ref_all_reduce_done(r, m);
    else if (cost.back_us > 0)
        ref_start_way(r, m, REF_TOWARDS_REQUEST, REF_TOWARDS);
    else
        ref_add_flows(r, m, -1, REF_WHOLE, ref_hold(r, m, REF_WHOLE), 1);
}

/* What an encoder's message asks of the launcher after its launch. */
static inline double ref_later_us(const struct ref *r, int m) {
    const struct message *message = &r->plan->messages[m];
    const bool by_nccl = cluster_transport(r->cost->cluster) == TRANSPORT_nccl;
    double ways = 1, between_us = 0;
    if (message->encoder == ENCODING_int8) {
        const double largest = (double)encoder_part_bytes(ENCODING_int8, message->figure, message_elements(message),
                                                          r->cost->cluster->n_devices);
        ways = 2;
        between_us =
            (1 + largest / (double)message->bytes) * (double)message->unencoded_bytes / r->cost->int8_bytes_per_us;
    } else if (message->encoder == ENCODING_powersgd) {
        ways = by_nccl ? 2 : 4;
        between_us = (double)message->unencoded_bytes / r->cost->powersgd_bytes_per_us * message->figure / 3 / 3.5;
    } else if (message->encoder == ENCODING_none)
        return 0;
    return fmax(ways * r->cost->runtime.way_us - r->cost->runtime.message_us, 0) + between_us + ref_pack_us(r, m, true);
}

/* Launch at the node; the time when its part is done. */
static inline double ref_launch(struct ref *r, int c, int m, double at_us) {
    const struct message *message = &r->plan->messages[m];
    double others = ref_node(r, c)->devices - 1, bytes = (double)message->bytes;
    const bool packs = message->half == HALF_none || message->half == HALF_scatter;
    double work = r->cost->runtime.message_us + (packs ? ref_pack_us(r, m, false) : 0);
    if (message->half == HALF_gather && message->other == NO_MESSAGE)
        work += ref_convert_us(r, m);
    if (ref_is_server(r, m) && message->local_reduction)
        work +=
            others * bytes / r->cost->device_link_bytes_per_us[r->node[c]] + others * bytes / r->cost->sum_bytes_per_us;
    r->in_flight[c] += !ref_is_of_replicas(r, m);
    r->in_flight_bytes[c] += ref_is_of_replicas(r, m) ? 0 : message->bytes;
    work += fmax(r->launcher_us[c], at_us);
    r->launcher_us[c] = work + ref_later_us(r, m);
    return work;
}

static inline void ref_join(struct ref *r, int c, int m, double at_us) {
    double latest = 0;
    r->at[m][c].joined = true;
    r->at[m][c].stage = REF_IDLE;
    r->at[m][c].until_us = ref_launch(r, c, m, at_us);
    for (int d = 0; d < r->n_nodes; d++) {
        if (!r->at[m][d].joined)
            return;
        latest = fmax(latest, r->at[m][d].until_us);
    }
    for (int d = 0; d < r->n_nodes; d++)
        r->at[m][d].joined = false;
    r->at[m][0].begun = r->n_begun++;
    r->at[m][0].begin_us = latest;
    r->at[m][0].left_us = ref_cost(r, m).startup_us;
    if (r->cost->in_order && r->under_way[ref_is_of_replicas(r, m)] > 0)
        r->at[m][0].stage = REF_IN_LINE;
    else
        ref_start_up(r, m);
}

static inline void ref_start(struct ref *r, int c, int m) {
    bool coordinated = r->plan->policy == POLICY_priority;
    if (ref_is_server(r, m)) {
        r->at[m][c].stage = REF_MOVING;
        ref_wait(r, c, m, REF_PUSH, ref_launch(r, c, m, r->now_us));
    } else if (!coordinated) {
        ref_join(r, c, m, r->now_us);
    } else {
        for (int d = 0; d < r->n_nodes; d++)
            ref_join(r, d, m, r->now_us + r->cost->runtime.coordination_us);
    }
}

static inline bool ref_may_start(const struct ref *r, int c, int m) {
    uint64_t credit = r->plan->credit_bytes;
    return r->in_flight[c] == 0 || credit == CREDIT_UNLIMITED ||
           r->in_flight_bytes[c] + r->plan->messages[m].bytes <= credit;
}

/* The first of the pulls that wait, while the credit holds it beside the other pulls. */
static inline void ref_serve_pulls(struct ref *r, int c) {
    uint64_t credit = r->plan->credit_bytes;
    for (int m = 0; m < (int)r->plan->n_messages; m++) {
        uint64_t bytes = r->plan->messages[m].bytes;
        if (!r->pullable[m][c])
            continue;
        if (r->pulling[c] > 0 && credit != CREDIT_UNLIMITED && r->pulling_bytes[c] + bytes > credit)
            return;
        r->pullable[m][c] = false;
        r->pulling[c]++;
        r->pulling_bytes[c] += bytes;
        ref_wait(r, c, m, r->cost->connected ? REF_ASKED : REF_PULL, r->now_us);
    }
}

/* What is among replicas is last, and has no turn. */
static inline void ref_serve(struct ref *r, int c) {
    int n = (int)r->plan->n_messages;
    while (n > 0 && ref_is_of_replicas(r, n - 1))
        n--;
    for (;;) {
        int m = r->next[c];
        if (r->plan->policy == POLICY_priority)
            for (m = 0; m < n && r->at[m][c].stage != REF_READY; m++)
                ;
        if (m == n || r->at[m][c].stage != REF_READY || !ref_may_start(r, c, m))
            return;
        r->next[c] = (m + 1) % n;
        ref_start(r, c, m);
    }
}

static inline void ref_step_done(struct ref *r, int c) {
    int step = r->step[c];
    for (int m = 0; m < (int)r->plan->n_messages; m++) {
        if ((int)r->plan->messages[m].ready != step || ref_is_second_half(r, m) || ref_is_of_replicas(r, m))
            continue;
        bool everywhere = true;
        r->has[m][c] = true;
        for (int d = 0; d < r->n_nodes; d++)
            everywhere &= r->has[m][d];
        if (r->plan->policy != POLICY_priority || ref_is_server(r, m)) {
            r->at[m][c].stage = REF_READY;
        } else if (everywhere) {
            r->at[m][0].stage = REF_READY;
            for (int d = 0; d < r->n_nodes; d++)
                r->has[m][d] = false;
        }
    }
    r->running[c] = false;
    r->step[c] = (step + 1) % (int)r->plan->n_steps;
}

/* Begin the next step if its gate is open by now. */
static inline bool ref_begin_step(struct ref *r, int c, int home) {
    int step = r->step[c];
    if (r->running[c] || r->missing[c][step] > 0 || r->usable_us[c][step] > r->now_us)
        return false;
    for (int m = 0; m < (int)r->plan->n_messages; m++)
        r->missing[c][step] += (int)r->plan->messages[m].gate == step && !ref_is_first_half(r, m);
    if (step == home) /* every message is decoded */
        r->launcher_us[c] = fmin(r->launcher_us[c], r->now_us);
    if (step == home && r->iteration[c] <= REF_ITERATIONS)
        r->started_us[c][r->iteration[c]++] = r->now_us;
    r->running[c] = true;
    double scale = ref_node(r, c)->compute_scale;
    if (r->varies)
        scale *=
            weather_slowness(r->cost->cluster, r->weather.seed, (uint32_t)r->node[c], (uint64_t)r->iteration[c] - 1);
    r->step_end_us[c] = r->now_us + r->plan->step_us[step] * scale;
    r->step_rate[c] = 1;
    return true;
}

static inline void ref_answer(struct ref *r, int m) {
    const struct message *message = &r->plan->messages[m];
    r->pushed[m] = 0;
    double sum_us = r->server_us[message->server];
    bool waits = ref_has_pull_turn(r, m) && !r->cost->connected;
    for (int c = 0; c < r->n_nodes; c++)
        if (waits && sum_us <= r->now_us + 1e-7)
            r->pullable[m][c] = true;
        else if (waits)
            r->waits[r->n_waits++] = (struct ref_wait){m, c, REF_SUMMED, sum_us};
        else
            ref_wait(r, c, m, REF_PULL, sum_us);
}

/* Sums at servers; `sums` is what the server has of the message before this instant. */
static inline void ref_sum_arrivals(struct ref *r, int *sums) {
    for (int m = 0; m < (int)r->plan->n_messages; m++) {
        if (r->arrived[m] == 0)
            continue;
        double *free_us = &r->server_us[r->plan->messages[m].server];
        int adds = r->arrived[m] - (sums[m] == 0);
        *free_us = fmax(*free_us, r->now_us) + adds * (double)r->plan->messages[m].bytes / r->cost->sum_bytes_per_us;
        sums[m] += r->arrived[m];
        r->arrived[m] = 0;
        if (r->pushed[m] == r->n_nodes) {
            sums[m] = 0;
            ref_answer(r, m);
        }
    }
}

static inline double ref_next_us(struct ref *r) {
    double next = INFINITY;
    if (r->cost->interferes)
        ref_pace(r);
    ref_rates(r);
    for (int i = 0; i < r->n_flows; i++)
        if (r->flows[i].rate > 0 || r->flows[i].begun)
            next = fmin(next, r->flows[i].left <= 0 ? r->now_us : r->now_us + r->flows[i].left / r->flows[i].rate);
    for (int i = 0; i < r->n_waits; i++)
        next = fmin(next, r->waits[i].until_us);
    for (int c = 0; c < r->n_nodes; c++) {
        if (r->running[c])
            next = fmin(next, r->step_end_us[c]);
        else if (r->missing[c][r->step[c]] == 0)
            next = fmin(next, fmax(r->now_us, r->usable_us[c][r->step[c]]));
        for (int m = 0; m < (int)r->plan->n_messages; m++)
            if (r->at[m][c].stage == REF_LATENCY)
                next = fmin(next, r->at[m][c].begin_us > r->now_us ? r->at[m][c].begin_us : r->at[m][c].until_us);
    }
    return next;
}

/* The earliest of the parts whose latency ends by `until`, the one set first if several. */
static inline bool ref_end_wait(struct ref *r, double until_us) {
    int first = -1;
    for (int i = 0; i < r->n_waits; i++)
        if (r->waits[i].until_us <= until_us && (first < 0 || r->waits[i].until_us < r->waits[first].until_us))
            first = i;
    if (first < 0)
        return false;
    struct ref_wait wait = r->waits[first];
    r->n_waits--;
    for (int i = first; i < r->n_waits; i++)
        r->waits[i] = r->waits[i + 1];
    if (wait.part == REF_SUMMED)
        r->pullable[wait.message][wait.chain] = true;
    else if (wait.part == REF_EVERYWHERE)
        ref_all_reduce_done(r, wait.message);
    else if (wait.chain < 0)
        ref_start_way(r, wait.message, REF_AWAY_REQUEST, REF_AWAY);
    else
        ref_begin_part(r, wait.chain, wait.message, wait.part);
    return true;
}

/* Servers in the order in which they first occur among the messages, then nodes, then what goes there; then what comes
 * back; all-reduces last, by their ways, and what stays in nodes behind them. */
static inline int ref_rank(const struct ref *r, const struct ref_flow *f) {
    int server = 0;
    if (f->node < 0)
        return INT_MAX - 3 + (r->inside[f->message] ? 3 : ref_way(f->part));
    while (!ref_is_server(r, server) || r->plan->messages[server].server != r->plan->messages[f->message].server)
        server++;
    return (server * REF_NODES + ref_chain(r, f->node)) * 2 + ref_comes_back(f->part);
}

static inline double ref_left_us(const struct ref_flow *f) {
    return f->left <= 1e-9 ? 0 : f->rate > 0 ? f->left / f->rate : INFINITY;
}

/* The earliest of the flows that end by `until`, the lowest rank if several. */
static inline bool ref_end_due(struct ref *r, double until_us) {
    int first = -1;
    for (int i = 0; i < r->n_flows; i++) {
        const struct ref_flow *f = &r->flows[i], *best = &r->flows[first < 0 ? i : first];
        double us = ref_left_us(f), least_us = ref_left_us(best);
        if (us <= until_us - r->now_us && ref_has_turn(r, f) &&
            (first < 0 || us < least_us || (us == least_us && ref_rank(r, f) < ref_rank(r, best))))
            first = i;
    }
    if (first < 0)
        return false;
    struct ref_flow flow = r->flows[first];
    r->flows[first] = r->flows[--r->n_flows];
    ref_end_flow(r, flow);
    return true;
}

/* The all-reduce whose startup ends by `until`, the one that began first if several; -1: none. */
static inline int ref_started_up(const struct ref *r, int c, double until_us) {
    int first = -1;
    for (int m = 0; m < (int)r->plan->n_messages; m++) {
        const struct ref_message *at = &r->at[m][c];
        if (at->stage == REF_LATENCY && at->until_us <= until_us && (first < 0 || at->begun < r->at[first][c].begun))
            first = m;
    }
    return first;
}

/* All that happens by `until`; true when anything did. */
static inline bool ref_events(struct ref *r, double until_us, int home) {
    bool any = false;
    for (; ref_end_wait(r, until_us); any = true)
        ref_leaps(r);
    for (; ref_end_due(r, until_us); any = true)
        ref_leaps(r);
    for (int c = 0; c < r->n_nodes; c++) {
        if (r->running[c] && r->step_end_us[c] <= until_us) {
            ref_step_done(r, c);
            any = true;
        }
        any |= ref_begin_step(r, c, home);
        for (int m; (m = ref_started_up(r, c, until_us)) >= 0;) {
            any = true;
            ref_begin_all_reduce(r, m);
            ref_leaps(r);
            if (r->cost->interferes) /* what a startup's end lets go at once, goes before the next startup ends */
                return true;
        }
    }
    return any;
}

/* Run until every node has begun `iterations` iterations after the first; times of their starts at `home` are then in
 * started_us[chain][0 .. iterations]. In the weather of this seed; 0: in none. False when the plan is stuck. */
static inline bool ref_run(struct ref *r, const struct plan *plan, const struct cost *cost, int home, int iterations,
                           uint64_t seed) {
    int sums[REF_MESSAGES] = {0};
    memset(r, 0, sizeof *r);
    r->varies = seed > 0;
    r->weather = (struct weather){.cluster = cost->cluster, .seed = seed, .gbit_per_s = r->rates};
    if (r->varies)
        weather_begin(&r->weather);
    r->plan = plan;
    r->cost = cost;
    r->n_nodes = (int)cost->n_workers;
    for (int m = 0; m < (int)plan->n_messages; m++)
        r->inside[m] = ref_stays(r, m);
    for (int c = 0; c < r->n_nodes; c++) {
        r->node[c] = (int)cost->workers[c];
        r->step[c] = home;
        for (int m = 0; m < (int)plan->n_messages; m++)
            r->missing[c][plan->messages[m].gate] += (int)plan->messages[m].gate != home && !ref_is_first_half(r, m);
    }
    for (;;) {
        bool enough = true;
        for (int c = 0; c < r->n_nodes; c++)
            enough &= r->iteration[c] > iterations;
        if (enough)
            return true;
        double next = ref_next_us(r);
        if (!isfinite(next))
            return false;
        if (r->varies)
            next = fmin(next, weather_next_us(&r->weather));
        ref_save(r, next - r->now_us);
        ref_pass(r, next - r->now_us);
        for (int i = 0; i < r->n_flows; i++)
            r->flows[i].left -= r->flows[i].rate * (next - r->now_us);
        r->now_us = next;
        while (r->varies && weather_next_us(&r->weather) <= next)
            weather_advance(&r->weather);
        while (ref_events(r, next + 1e-7, home))
            ;
        ref_sum_arrivals(r, sums);
        for (int c = 0; c < r->n_nodes; c++)
            ref_serve(r, c);
        for (int c = 0; c < r->n_nodes; c++)
            ref_serve_pulls(r, c);
    }
}

#endif
