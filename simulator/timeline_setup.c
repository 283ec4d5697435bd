/* Sizes, memory and the first state of a timeline; which transfers share which resources. O(messages + chains * (steps
 * + servers) + links), and no allocation once the room is large enough. */
#include <math.h>
#include <string.h>

#include "simulator/timeline.h"
#include "simulator/timeline_internal.h"
#include "strategy/cost/transport.h"

enum { NONE = UINT32_MAX, WAYS = 3, MAX_PUSHES = 1 << 27, NODE_WORDS = CLUSTER_MAX_NODES / 64 };

static bool is_served(const struct message *message) {
    return message->kind == SYNC_PARAMETER_SERVER;
}

static bool simulates_all(const struct plan *plan, const struct timeline_options *options) {
    return plan->any_server || options->every_node || options->weather;
}

/* Whether an all-reduce may come in two parts. That is a tree, which `auto` may become. */
static bool goes_two_ways(const struct plan *plan, const struct cost *cost) {
    if (cost->all_reduce.burst_us <= 0)
        return false;
    for (uint32_t m = 0; m < plan->n_messages; m++) {
        const struct message *message = &plan->messages[m];
        if (!is_served(message) && (message->algorithm == ALGORITHM_tree || message->algorithm == ALGORITHM_auto))
            return true;
    }
    return false;
}

/* Whether some messages move within groups that lie in one node each. */
static bool any_inside(const struct plan *plan, const struct cost *cost) {
    bool any = false;
    for (uint32_t m = 0; m < plan->n_messages && !any; m++)
        any = cost_stays_in_nodes(cost, &plan->messages[m]);
    return any;
}

static bool is_alike(const struct node *a, const struct node *b) {
    return a->devices == b->devices && a->nic_gbit_per_s == b->nic_gbit_per_s &&
           a->nic_latency_us == b->nic_latency_us && a->device_link_gbyte_per_s == b->device_link_gbyte_per_s &&
           a->compute_scale == b->compute_scale;
}

static void mark(uint64_t *set, uint32_t node) {
    set[node / 64] |= UINT64_C(1) << node % 64;
}

/* Nodes that must be simulated alone: servers, ends of overridden links, and the first worker where it differs from the
 * others. Under priority only the first worker queues all-reduces, since it decides when they go; and it is the root of
 * trees. */
static void mark_single(const struct plan *plan, const struct cost *cost, uint64_t *single) {
    const struct cluster *cluster = cost->cluster;
    for (uint32_t m = 0; m < plan->n_messages; m++)
        if (is_served(&plan->messages[m]))
            mark(single, plan->messages[m].server);
    for (uint32_t i = 0; i < cluster->n_links; i++) {
        mark(single, cluster->links[i].from);
        mark(single, cluster->links[i].to);
    }
    if ((plan->policy == POLICY_priority && plan->any_all_reduce) || goes_two_ways(plan, cost))
        mark(single, cost->workers[0]);
}

/* Which nodes are simulated, and for how many each stands. */
struct folding {
    uint32_t n;
    uint16_t node[CLUSTER_MAX_NODES], count[CLUSTER_MAX_NODES];
};

/* O(messages + workers * kinds of workers). */
static void fold(const struct plan *plan, const struct cost *cost, const struct timeline_options *options,
                 struct folding *out) {
    const struct node *nodes = cost->cluster->nodes;
    uint64_t single[NODE_WORDS] = {0};
    uint16_t kinds[CLUSTER_MAX_NODES];
    uint32_t n_kinds = 0, k;
    bool folds = !options->every_node && !options->record && !options->weather;
    mark_single(plan, cost, single);
    out->n = 0;
    for (uint32_t i = 0; i < cost->n_workers; i++) {
        uint32_t node = cost->workers[i];
        bool foldable = folds && !(single[node / 64] >> node % 64 & 1);
        for (k = foldable ? 0 : n_kinds; k < n_kinds; k++)
            if (is_alike(&nodes[out->node[kinds[k]]], &nodes[node]))
                break;
        if (k < n_kinds) {
            out->count[kinds[k]]++;
            continue;
        }
        if (foldable)
            kinds[n_kinds++] = (uint16_t)out->n;
        out->node[out->n] = (uint16_t)node;
        out->count[out->n++] = 1;
    }
}

static uint32_t chains_of(const struct plan *plan, const struct cost *cost, const struct timeline_options *options) {
    struct folding folding;
    if (!simulates_all(plan, options))
        return 1;
    fold(plan, cost, options, &folding);
    return folding.n;
}

static void count_served(const struct plan *plan, size_t *messages, size_t *servers) {
    uint64_t seen[NODE_WORDS] = {0};
    *messages = *servers = 0;
    for (uint32_t m = 0; m < plan->n_messages; m++) {
        if (!is_served(&plan->messages[m]))
            continue;
        uint32_t node = plan->messages[m].server;
        *servers += !(seen[node / 64] >> node % 64 & 1);
        mark(seen, node);
        ++*messages;
    }
}

/* How many parts of one message can be on their way in one direction of a connection, or have a timer, at once. Two:
 * the answer to its push may be on its way when its pull starts. The answer to its pull has come before the rest is
 * pulled. */
static size_t parts_at_once(const struct cost *cost) {
    return cost->connected ? 2 : 1;
}

/* Of a chain: one of pushes and all-reduces, and perhaps one of pulls. */
static size_t queues_of(const struct plan *plan) {
    return plan->pulls_by_priority ? 2 : 1;
}

static enum status sizes_of(const struct plan *plan, const struct cost *cost, const struct timeline_options *options,
                            struct sizes *out, struct error *err) {
    size_t served, servers, nodes = cost->cluster->n_nodes, links = cost->cluster->n_links;
    bool all = simulates_all(plan, options);
    count_served(plan, &served, &servers);
    struct sizes s = {.chains = chains_of(plan, cost, options), .steps = plan->n_steps, .messages = plan->n_messages};
    size_t pushes = s.chains * served, ways = goes_two_ways(plan, cost) ? WAYS : 1;
    if (pushes > MAX_PUSHES)
        return error_set(err, ST_TOO_LARGE,
                         "%zu nodes push %zu messages each; the simulator holds %d pushes: use larger partitions",
                         s.chains, served, MAX_PUSHES);
    s.words = ready_set_words(s.messages) * s.chains * queues_of(plan);
    s.nodes = nodes;
    s.classes = servers * s.chains * 2 + ways;
    s.transfers = 2 * pushes * parts_at_once(cost) + ways * (s.messages - served);
    s.resources = all ? 4 * nodes + links + 2 : 2;
    s.uses = servers * s.chains * 6 + ways * (s.resources + links) + links;
    s.timers = pushes * parts_at_once(cost) + s.messages + s.chains;
    if (cost->interferes) {
        s.classes++;
        s.transfers += s.messages;
    }
    if (any_inside(plan, cost)) {
        s.classes++;
        s.resources++;
        s.uses++;
        s.transfers += s.messages;
    }
    *out = s;
    return ST_OK;
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

static bool holds(const struct sizes *room, const struct sizes *need) {
    const size_t *a = (const size_t *)room, *b = (const size_t *)need;
    for (size_t i = 0; i < sizeof *room / sizeof *a; i++)
        if (a[i] < b[i])
            return false;
    return true;
}

static struct sizes joined_sizes(const struct sizes *a, const struct sizes *b) {
    return (struct sizes){larger(a->chains, b->chains),       larger(a->steps, b->steps),
                          larger(a->messages, b->messages),   larger(a->words, b->words),
                          larger(a->nodes, b->nodes),         larger(a->classes, b->classes),
                          larger(a->transfers, b->transfers), larger(a->resources, b->resources),
                          larger(a->uses, b->uses),           larger(a->timers, b->timers)};
}

#define TAKE(pointer, n) (((pointer) = arena_alloc(&tl->arena, (n), sizeof *(pointer))) != NULL)

static bool take_compute(struct timeline *tl, const struct sizes *s) {
    return TAKE(tl->chains, s->chains) && TAKE(tl->left, s->chains * s->steps) &&
           TAKE(tl->opened_us, s->chains * s->steps) && TAKE(tl->words, s->words) && TAKE(tl->n_ready, s->messages) &&
           TAKE(tl->joined, s->messages) && TAKE(tl->begin_us, s->messages) &&
           TAKE(tl->lines[0].messages, s->messages) && TAKE(tl->lines[1].messages, s->messages) &&
           TAKE(tl->server_us, s->nodes) && TAKE(tl->weather.gbit_per_s, s->nodes * WEATHER_NUMBERS) &&
           TAKE(tl->reduced, s->nodes) && TAKE(tl->raw, s->nodes) && TAKE(tl->timers, s->timers) &&
           TAKE(tl->arrived, s->timers);
}

static bool take_network(struct timeline *tl, const struct sizes *s) {
    struct network *net = &tl->network;
    struct flows *flows = &tl->flows;
    return TAKE(net->classes, s->classes) && TAKE(net->active, s->classes) && TAKE(flows->use, s->uses) &&
           TAKE(flows->members, s->uses) && TAKE(flows->class, s->classes) && TAKE(flows->resource, s->resources) &&
           TAKE(flows->touched, s->classes) && TAKE(flows->changed, s->classes) && TAKE(flows->queue, s->resources) &&
           TAKE(flows->scratch, 2 * s->classes) && TAKE(tl->transfers, s->transfers) &&
           TAKE(tl->capacity, s->resources) && TAKE(tl->first_use, s->classes + 1) && TAKE(tl->uses, s->uses) &&
           TAKE(tl->server_slot, s->nodes) && TAKE(tl->chain_of, s->nodes) && TAKE(tl->egress, s->nodes) &&
           TAKE(tl->ingress, s->nodes) && TAKE(tl->class_link, s->classes) && TAKE(tl->served, s->nodes) &&
           TAKE(tl->server_node, s->nodes) && TAKE(net->ports, s->resources);
}

static enum status timeline_reserve(struct timeline *tl, const struct plan *plan, const struct cost *cost,
                                    const struct timeline_options *options, struct error *err) {
    struct sizes need = {0};
    enum status status = sizes_of(plan, cost, options, &need, err);
    if (status || holds(&tl->room, &need))
        return status;
    struct sizes room = joined_sizes(&tl->room, &need);
    arena_release(&tl->arena);
    tl->room = (struct sizes){0};
    if (!take_compute(tl, &room) || !take_network(tl, &room))
        return error_no_memory(err);
    tl->room = room;
    return ST_OK;
}

/* Nothing is in flight when the update begins: whatever is ready after it, or after a step, has its gate before the
 * update ends. Steps are counted from there. */
static enum status check_update(const struct plan *plan, struct error *err) {
    const uint32_t update = plan->n_steps - 1;
    for (uint32_t m = 0; m < plan->n_messages; m++) {
        const uint32_t ready = plan->messages[m].ready, gate = plan->messages[m].gate;
        const uint32_t from = ready == update ? 0 : ready + 1;
        if (from > gate)
            return error_set(err, ST_INVALID,
                             "message %u is ready after step %u, and step %u, before the update, waits for it", m,
                             ready, gate);
    }
    return ST_OK;
}

static enum status check_plan(const struct plan *plan, uint32_t *home, struct error *err) {
    uint32_t last_gate = 0, first_ready = UINT32_MAX;
    if (!consistency_is_plain(&plan->consistency))
        return error_set(err, ST_INVALID,
                         "a strategy with \"consistency\" (%s) has no iteration time; simulate says what it has",
                         consistency_name(plan->consistency.kind));
    if (plan->ends_in_update) {
        *home = plan->n_steps - 1;
        return check_update(plan, err);
    }
    for (uint32_t m = 0; m < plan->n_messages; m++) {
        const uint32_t gate = plan_step_in_pass(plan, plan->messages[m].gate),
                       ready = plan_step_in_pass(plan, plan->messages[m].ready);
        last_gate = gate > last_gate ? gate : last_gate;
        first_ready = ready < first_ready ? ready : first_ready;
    }
    if (last_gate > first_ready)
        return error_set(err, ST_INVALID, "step %u waits for a message, but a gradient is ready after step %u already",
                         last_gate, first_ready);
    *home = last_gate;
    return ST_OK;
}

/* ---- chains ---- */

static void init_chain(struct timeline *tl, uint32_t c, uint32_t node, uint32_t count, size_t words) {
    const struct plan *plan = tl->plan;
    struct chain *chain = &tl->chains[c];
    *chain = (struct chain){.node = node,
                            .count = count,
                            .devices = tl->cost->cluster->nodes[node].devices,
                            .wake_us = INFINITY,
                            .scale = tl->cost->cluster->nodes[node].compute_scale,
                            .left = tl->left + (size_t)c * plan->n_steps,
                            .opened_us = tl->opened_us + (size_t)c * plan->n_steps};
    for (uint32_t k = 0; k < plan->n_steps; k++) {
        chain->left[k] = k == tl->home ? 0 : plan->first_gate[k + 1] - plan->first_gate[k];
        chain->opened_us[k] = 0;
    }
    uint64_t *at = tl->words + c * queues_of(plan) * words;
    ready_set_init(&chain->ready, plan->n_messages, at);
    if (plan->pulls_by_priority)
        ready_set_init(&chain->pulls, plan->n_messages, at + words);
}

static void init_chains(struct timeline *tl, bool all) {
    size_t words = ready_set_words(tl->plan->n_messages);
    struct folding folding;
    if (all) {
        fold(tl->plan, tl->cost, tl->options, &folding);
    } else {
        folding.n = folding.count[0] = 1;
        folding.node[0] = (uint16_t)tl->cost->slowest;
    }
    tl->n_chains = folding.n;
    tl->slowest = 0;
    for (uint32_t c = 0; c < tl->n_chains; c++) {
        init_chain(tl, c, folding.node[c], folding.count[c], words);
        if (tl->chains[c].node == tl->cost->slowest)
            tl->slowest = c;
    }
}

/* ---- classes and resources ---- */

static uint32_t add_resource(struct timeline *tl, double capacity) {
    tl->capacity[tl->flows.n_resources] = capacity;
    return tl->flows.n_resources++;
}

static void number_nodes(struct timeline *tl) {
    const struct plan *plan = tl->plan;
    uint32_t n = tl->cost->cluster->n_nodes;
    memset(tl->server_slot, 0xff, n * sizeof *tl->server_slot);
    memset(tl->chain_of, 0xff, n * sizeof *tl->chain_of);
    memset(tl->served, 0, n * sizeof *tl->served);
    tl->n_servers = 0;
    for (uint32_t c = 0; c < tl->n_chains; c++)
        tl->chain_of[tl->chains[c].node] = c;
    for (uint32_t m = 0; m < plan->n_messages; m++) {
        if (!is_served(&plan->messages[m]))
            continue;
        uint32_t *slot = &tl->server_slot[plan->messages[m].server];
        if (*slot == NONE) {
            tl->server_node[tl->n_servers] = plan->messages[m].server;
            *slot = tl->n_servers++;
        }
        tl->served[*slot]++;
    }
}

double timeline_nic_bytes_per_us(const struct timeline *tl, uint32_t node, enum direction direction, double share) {
    if (!tl->options->weather)
        return share * tl->cost->nic_bytes_per_us[node];
    return share * cost_nic_bytes_per_us(tl->cost, node, tl->weather.gbit_per_s[node * DIRECTION_COUNT + direction]);
}

static void add_nics(struct timeline *tl) {
    for (uint32_t i = 0; i < tl->cost->cluster->n_nodes; i++) {
        bool used = tl->chain_of[i] != NONE || tl->server_slot[i] != NONE;
        tl->egress[i] = used ? add_resource(tl, timeline_nic_bytes_per_us(tl, i, DIRECTION_OUT, 1)) : NONE;
        tl->ingress[i] = used ? add_resource(tl, timeline_nic_bytes_per_us(tl, i, DIRECTION_IN, 1)) : NONE;
    }
}

/* Overridden links: a resource for the classes that use one, and for all-reduces between two nodes with devices. The
 * all-reduce class stands last, so its resources can be written as they are found. */
static uint32_t add_links(struct timeline *tl, uint32_t *collective_uses) {
    const struct cluster *cluster = tl->cost->cluster;
    uint32_t n = 0;
    memset(tl->class_link, 0xff, tl->flows.n_classes * sizeof *tl->class_link);
    for (uint32_t i = 0; i < cluster->n_links; i++) {
        const struct link *link = &cluster->links[i];
        bool from_works = tl->chain_of[link->from] != NONE, to_works = tl->chain_of[link->to] != NONE;
        bool pushes = from_works && tl->server_slot[link->to] != NONE;
        bool pulls = to_works && tl->server_slot[link->from] != NONE;
        if (!pushes && !pulls && !(from_works && to_works))
            continue;
        uint32_t r = add_resource(tl, transport_link_bytes_per_us(cluster, link));
        if (pushes)
            tl->class_link[timeline_class(tl, tl->chain_of[link->from], link->to, false)] = r;
        if (pulls)
            tl->class_link[timeline_class(tl, tl->chain_of[link->to], link->from, true)] = r;
        if (from_works && to_works)
            collective_uses[n++] = r;
    }
    return n;
}

static uint32_t add_use(struct timeline *tl, uint32_t at, uint32_t resource, uint32_t times) {
    tl->uses[at] = resource;
    tl->flows.use[at].times = times;
    return at + 1;
}

/* The nodes that a chain stands for share the server's NIC, so `count` flows go through it. */
static uint32_t use_between(struct timeline *tl, uint32_t c, uint32_t server, bool back, uint32_t at) {
    uint32_t node = tl->chains[c].node, count = tl->chains[c].count;
    uint32_t link = tl->class_link[timeline_class(tl, c, server, back)];
    at = add_use(tl, at, tl->egress[back ? server : node], back ? count : 1);
    at = add_use(tl, at, tl->ingress[back ? node : server], back ? 1 : count);
    return link != NONE ? add_use(tl, at, link, 1) : at;
}

/* Where the device link costs nothing, the class uses no resource; it is then never given a transfer. */
static uint32_t use_within(struct timeline *tl, uint32_t node, uint32_t at) {
    double rate = tl->cost->device_link_bytes_per_us[node];
    return isfinite(rate) ? add_use(tl, at, add_resource(tl, rate), 1) : at;
}

static uint32_t add_server_classes(struct timeline *tl, uint32_t server, uint32_t at) {
    for (uint32_t c = 0; c < tl->n_chains; c++) {
        uint32_t node = tl->chains[c].node;
        for (uint32_t back = 0; back < 2; back++) {
            tl->first_use[timeline_class(tl, c, server, false) + back] = at;
            if (node == server)
                at = use_within(tl, node, at);
            else if (!back || !timeline_pulls_as_pushes(tl, c, server))
                at = use_between(tl, c, server, back, at);
        }
    }
    return at;
}

/* The NICs of a class of all-reduces. Way 0 uses both directions of all NICs, way 1 those towards the root, way 2 those
 * away from it. */
static uint32_t use_nics(struct timeline *tl, uint32_t way, uint32_t at) {
    for (uint32_t c = 0; c < tl->n_chains; c++) {
        uint32_t node = tl->chains[c].node;
        bool root = node == tl->cost->workers[0];
        if (way == 0 || (way == 1) == !root)
            at = add_use(tl, at, tl->egress[node], 1);
        if (way == 0 || (way == 1) == root)
            at = add_use(tl, at, tl->ingress[node], 1);
    }
    return at;
}

/* What all-reduces share among themselves: a resource, or one for each way of trees. Between nodes they are ports. */
static void add_ways(struct timeline *tl, double capacity) {
    tl->all_reduce_unit = capacity;
    tl->first_way = add_resource(tl, capacity);
    if (tl->two_way)
        add_resource(tl, capacity);
    if (isfinite(tl->cost->narrowest_bytes_per_us))
        tl->network.n_ports = tl->flows.n_resources;
}

/* Only way 0 uses overridden links as resources. For the two ways of a tree such links only lower the rate. */
static void add_all_reduce_classes(struct timeline *tl, uint32_t at, bool nics, uint32_t n_links,
                                   const uint32_t *links) {
    for (uint32_t way = 0; way < (tl->two_way ? WAYS : 1); way++) {
        tl->first_use[tl->all_reduce_class + way] = at;
        if (way != 2)
            at = add_use(tl, at, tl->first_way, 1);
        if (way != 1 && tl->two_way)
            at = add_use(tl, at, tl->first_way + 1, 1);
        if (nics)
            at = use_nics(tl, way, at);
        for (uint32_t i = 0; way == 0 && i < n_links; i++)
            at = add_use(tl, at, links[i], 1);
        tl->first_use[tl->all_reduce_class + way + 1] = at;
    }
}

/* What stays in nodes leaves NICs to others. Behind all other classes. */
static void add_inside_class(struct timeline *tl) {
    const uint32_t class = tl->flows.n_classes;
    if (!tl->inside)
        return;
    tl->inside_class = class;
    tl->inside_way = add_resource(tl, tl->all_reduce_unit);
    tl->first_use[class + 1] = add_use(tl, tl->first_use[class], tl->inside_way, 1);
    tl->flows.n_classes++;
}

static void init_flows(struct timeline *tl) {
    uint32_t at = 0;
    double narrowest = tl->cost->narrowest_bytes_per_us;
    bool between = isfinite(narrowest);
    number_nodes(tl);
    tl->all_reduce_class = tl->n_servers * tl->n_chains * 2;
    tl->flows.n_classes = tl->all_reduce_class + (tl->two_way ? WAYS : 1);
    add_nics(tl);
    tl->network.n_ports = tl->flows.n_resources;
    add_ways(tl, between ? narrowest : 1);
    /* The links of all-reduces wait at the far end of `uses` until the classes before them are written. */
    uint32_t *links = tl->uses + tl->room.uses - tl->cost->cluster->n_links;
    uint32_t n_links = add_links(tl, links);
    for (uint32_t slot = 0; slot < tl->n_servers; slot++)
        at = add_server_classes(tl, tl->server_node[slot], at);
    add_all_reduce_classes(tl, at, between, n_links, links);
}

/* Amounts are in microseconds of the narrowest NIC, the only one that matters here. */
static void init_all_reduces_alone(struct timeline *tl) {
    tl->network.burst = tl->cost->all_reduce.burst_us;
    tl->flows.n_classes = tl->two_way ? WAYS : 1;
    add_ways(tl, 1);
    add_all_reduce_classes(tl, 0, false, 0, NULL);
}

/* How many transfers can be in a class of pushes or pulls at once. */
static size_t most_at_once(const struct timeline *tl, uint32_t class) {
    uint32_t slot = class / 2 / tl->n_chains, c = class / 2 % tl->n_chains;
    bool back = class % 2, shared = timeline_pulls_as_pushes(tl, c, tl->server_node[slot]);
    if (back && shared)
        return 0;
    uint32_t pulls = shared ? tl->served[tl->server_slot[tl->chains[c].node]] : 0;
    return (tl->served[slot] + pulls) * parts_at_once(tl->cost);
}

/* Cut up the room for transfers. */
static void share_out_heaps(struct timeline *tl) {
    struct network_class *classes = tl->network.classes;
    struct transfer *heap = tl->transfers;
    uint32_t all_reduces = tl->plan->n_messages;
    tl->n_transfers = 0;
    for (uint32_t slot = 0; slot < tl->n_servers; slot++) {
        all_reduces -= tl->served[slot];
        tl->n_transfers += (size_t)tl->served[slot] * tl->n_chains * 2;
    }
    for (uint32_t k = 0; k < tl->flows.n_classes; k++) {
        bool served = k < tl->all_reduce_class;
        classes[k].heap = heap;
        classes[k].connection =
            tl->cost->connected && k != tl->all_reduce_class && !(tl->inside && k == tl->inside_class);
        heap += served ? most_at_once(tl, k) : all_reduces;
    }
    if (tl->interferes) {
        tl->network.timed = tl->flows.n_classes;
        classes[tl->network.timed].heap = heap;
        classes[tl->network.timed].connection = false;
    }
}

static void init_network(struct timeline *tl, bool all) {
    struct network *net = &tl->network;
    struct flows *flows = &tl->flows;
    tl->two_way = goes_two_ways(tl->plan, tl->cost);
    tl->inside = any_inside(tl->plan, tl->cost);
    tl->n_servers = tl->all_reduce_class = net->n_ports = 0;
    net->burst = tl->cost->burst_bytes;
    flows->n_resources = 0;
    flows->capacity = tl->capacity;
    flows->first = tl->first_use;
    flows->uses = tl->uses;
    if (all)
        init_flows(tl);
    else
        init_all_reduces_alone(tl);
    add_inside_class(tl);
    net->flows = all || net->burst > 0 || tl->inside ? flows : NULL;
    if (net->flows)
        flows_clear(flows);
    net->n_classes = flows->n_classes + tl->interferes;
    net->timed = NONE;
    share_out_heaps(tl);
    network_clear(net);
}

enum status timeline_prepare(struct timeline *tl, const struct plan *plan, const struct cost *cost,
                             const struct timeline_options *options, struct error *err) {
    uint32_t home = 0;
    enum status status = check_plan(plan, &home, err);
    if (!status)
        status = timeline_reserve(tl, plan, cost, options, err);
    if (status)
        return status;
    bool all = simulates_all(plan, options);
    tl->plan = plan;
    tl->cost = cost;
    tl->options = options;
    tl->home = home;
    tl->interferes = cost->interferes;
    tl->coordinated = plan->policy == POLICY_priority;
    memset(tl->n_ready, 0, plan->n_messages * sizeof *tl->n_ready);
    memset(tl->joined, 0, plan->n_messages * sizeof *tl->joined);
    memset(tl->begin_us, 0, plan->n_messages * sizeof *tl->begin_us);
    memset(tl->server_us, 0, cost->cluster->n_nodes * sizeof *tl->server_us);
    tl->n_timers = tl->n_arrived = 0;
    for (int i = 0; i < LINES; i++)
        tl->lines[i] = (struct line){.messages = tl->lines[i].messages};
    tl->timers_set = 0;
    tl->now_us = tl->busy_us = tl->queue_us = tl->mean_us = tl->squares = 0;
    tl->queued = 0;
    tl->active = tl->rounds = tl->computing = tl->moving = 0;
    tl->done = tl->converged = false;
    tl->last_bytes = 0;
    tl->spends = false;
    if (options->weather) {
        tl->weather.cluster = cost->cluster;
        tl->weather.seed = options->seed;
        weather_begin(&tl->weather);
    }
    init_chains(tl, all);
    init_network(tl, all);
    return ST_OK;
}
