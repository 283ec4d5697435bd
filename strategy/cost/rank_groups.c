/* Each group is described as a struct cluster with its devices alone, and then asked what a cluster is asked. */
#include "strategy/cost/rank_groups.h"

#include <math.h>
#include <string.h>

#include "strategy/cost/transport.h"
#include "strategy/plan.h"

/* ---- which groups there are ---- */

/* What is charged, and its limits: the same groups with other tables. */
enum { CHARGED, LIMITS, TABLES };

struct builder {
    const struct cluster *cluster;
    const struct all_reduce_table *whole[TABLES];
    struct arena *arena;
    uint32_t *node_of;  /* by device */
    uint32_t *end_of;   /* by node: the first device after it */
    uint32_t *crossing; /* by node: groups of the present size that have devices here and elsewhere */
    /* Of the group that is looked at: its nodes, how many of its devices each has, the links between them. */
    uint32_t *which, *devices;
    struct link *links;
    uint32_t n_nodes, n_links;
    struct rank_group *groups[TABLES];
    uint32_t n, room;
    bool one_node;
};

/* Write down the nodes of a group, each with as many devices as the group has there. O(those nodes). */
static void find_nodes(struct builder *b, uint32_t ranks, uint32_t stride, uint32_t group) {
    const uint32_t first = stride == 1 ? group * ranks : group, end = first + ranks * stride;
    b->n_nodes = 0;
    for (uint32_t device = first; device < end;) {
        const uint32_t node = b->node_of[device], here = b->end_of[node] < end ? b->end_of[node] : end;
        const uint32_t left = here - device, n = left <= stride ? 1 : (left - 1) / stride + 1;
        b->which[b->n_nodes] = node;
        b->devices[b->n_nodes++] = n;
        device += n * stride;
    }
}

static int64_t place_of(const struct builder *b, uint32_t node) {
    for (uint32_t i = 0; i < b->n_nodes; i++)
        if (b->which[i] == node)
            return i;
    return -1;
}

/* Overridden links between nodes of the group. */
static void find_links(struct builder *b) {
    b->n_links = 0;
    for (uint32_t i = 0; i < b->cluster->n_links; i++) {
        const struct link *link = &b->cluster->links[i];
        const int64_t from = place_of(b, link->from), to = place_of(b, link->to);
        if (from >= 0 && to >= 0)
            b->links[b->n_links++] = (struct link){(uint32_t)from, (uint32_t)to, link->gbit_per_s};
    }
}

static double most_crossing(const struct builder *b) {
    uint32_t most = 1;
    for (uint32_t i = 0; i < b->n_nodes; i++)
        most = b->crossing[b->which[i]] > most ? b->crossing[b->which[i]] : most;
    return most;
}

static bool is_alike(const struct node *a, const struct node *b) {
    return a->nic_gbit_per_s == b->nic_gbit_per_s && a->nic_latency_us == b->nic_latency_us &&
           a->device_link_gbyte_per_s == b->device_link_gbyte_per_s;
}

/* Whether a group like that which is looked at is there already. Groups with overridden links have no like. */
static bool is_known(const struct builder *b, uint32_t ranks, uint32_t stride) {
    for (uint32_t k = b->n; k-- > 0 && b->n_links == 0;) {
        const struct rank_group *g = &b->groups[CHARGED][k];
        if (g->ranks != ranks || g->stride != stride)
            return false;
        bool alike = g->n_nodes == b->n_nodes && g->crossing == most_crossing(b) && !g->linked;
        for (uint32_t i = 0; i < g->n_nodes && alike; i++)
            alike = g->nodes[i].devices == b->devices[i] && is_alike(&g->nodes[i], &b->cluster->nodes[b->which[i]]);
        if (alike)
            return true;
    }
    return false;
}

static bool is_measured(const struct all_reduce_table *table) {
    return table->fixed || table->any_curve || table->any_half;
}

/* What a measured step of the ring of all devices takes before its bytes, without the NIC's latency. */
static double step_within_us(const struct builder *b, const struct all_reduce_table *whole) {
    double latency = 0;
    for (uint32_t i = 0; i < b->cluster->n_nodes; i++)
        if (b->cluster->nodes[i].devices > 0)
            latency = fmax(latency, transport_nic_latency_us(b->cluster, i));
    return fmax(all_reduce_half_cost(whole, HALF_scatter, 1).startup_us / (b->cluster->n_devices - 1.0) - latency, 0);
}

static enum status make_room(struct builder *b, struct error *err) {
    const uint32_t room = b->room ? 2 * b->room : 16;
    if (b->n < b->room)
        return ST_OK;
    for (int t = 0; t < TABLES; t++) {
        struct rank_group *groups = arena_alloc(b->arena, room, sizeof *groups);
        if (!groups)
            return error_no_memory(err);
        if (b->n > 0)
            memcpy(groups, b->groups[t], b->n * sizeof *groups);
        b->groups[t] = groups;
    }
    b->room = room;
    return ST_OK;
}

static void write_nodes(const struct builder *b, struct node *nodes) {
    uint32_t first = 0;
    for (uint32_t i = 0; i < b->n_nodes; i++) {
        nodes[i] = b->cluster->nodes[b->which[i]];
        nodes[i].devices = b->devices[i];
        nodes[i].first_device = first;
        first += b->devices[i];
    }
}

static struct cluster cluster_of_group(const struct builder *b, struct node *nodes, uint32_t ranks, uint32_t stride) {
    struct cluster c = *b->cluster;
    c.nodes = nodes;
    c.n_nodes = b->n_nodes;
    c.links = b->links;
    c.n_links = b->n_links;
    c.n_devices = ranks;
    c.transport = cluster_transport(b->cluster);
    c.transfer = most_crossing(b) * (c.transfer > 0 ? c.transfer : 1);
    c.fixed_all_reduce = false;
    if (stride > 1)
        c.n_measurements = 0; /* they are of devices that stand together */
    return c;
}

/* `group` is like that which is looked at, and lacks its table. */
static enum status add_table(struct builder *b, int t, const struct cluster *cluster, struct rank_group group,
                             struct error *err) {
    enum status st = t == LIMITS ? all_reduce_init_limits(&group.table, cluster, 0, b->arena, err)
                                 : all_reduce_init(&group.table, cluster, 0, b->arena, err);
    if (st)
        return st;
    if (is_measured(b->whole[t]) && !is_measured(&group.table)) {
        group.scaled = !group.stays;
        group.step_us = group.stays ? step_within_us(b, b->whole[t]) : 0;
    }
    b->groups[t][b->n] = group;
    return ST_OK;
}

static enum status add_group(struct builder *b, uint32_t ranks, uint32_t stride, struct error *err) {
    enum status st = make_room(b, err);
    struct node *nodes = st ? NULL : arena_alloc(b->arena, b->n_nodes, sizeof *nodes);
    if (!nodes)
        return st ? st : error_no_memory(err);
    write_nodes(b, nodes);
    const struct cluster cluster = cluster_of_group(b, nodes, ranks, stride);
    const struct rank_group group = {.ranks = ranks,
                                     .stride = stride,
                                     .stays = b->n_nodes == 1 && !b->one_node,
                                     .rings = cluster.transport == TRANSPORT_mpi,
                                     .devices = b->cluster->n_devices,
                                     .crossing = most_crossing(b),
                                     .linked = b->n_links > 0,
                                     .nodes = nodes,
                                     .n_nodes = b->n_nodes};
    for (int t = 0; t < TABLES && !st; t++)
        st = add_table(b, t, &cluster, group, err);
    b->n += !st;
    return st;
}

static void count_crossing(struct builder *b, uint32_t ranks, uint32_t stride) {
    memset(b->crossing, 0, b->cluster->n_nodes * sizeof *b->crossing);
    for (uint32_t group = 0; group < b->cluster->n_devices / ranks; group++) {
        find_nodes(b, ranks, stride, group);
        for (uint32_t i = 0; i < b->n_nodes && b->n_nodes > 1; i++)
            b->crossing[b->which[i]]++;
    }
}

static enum status add_size(struct builder *b, uint32_t ranks, uint32_t stride, struct error *err) {
    enum status st = ST_OK;
    count_crossing(b, ranks, stride);
    for (uint32_t group = 0; group < b->cluster->n_devices / ranks && !st; group++) {
        find_nodes(b, ranks, stride, group);
        find_links(b);
        if (!is_known(b, ranks, stride))
            st = add_group(b, ranks, stride, err);
    }
    return st;
}

static bool take_room(struct builder *b) {
    const struct cluster *c = b->cluster;
    b->node_of = arena_alloc(b->arena, c->n_devices, sizeof *b->node_of);
    b->end_of = arena_alloc(b->arena, c->n_nodes, sizeof *b->end_of);
    b->crossing = arena_alloc(b->arena, c->n_nodes, sizeof *b->crossing);
    b->devices = arena_alloc(b->arena, c->n_nodes, sizeof *b->devices);
    b->which = arena_alloc(b->arena, c->n_nodes, sizeof *b->which);
    b->links = arena_alloc(b->arena, c->n_links, sizeof *b->links);
    return b->node_of && b->end_of && b->crossing && b->devices && b->which && b->links;
}

static void number_devices(struct builder *b) {
    for (uint32_t i = 0, device = 0; i < b->cluster->n_nodes; i++) {
        for (uint32_t k = 0; k < b->cluster->nodes[i].devices; k++)
            b->node_of[device++] = i;
        b->end_of[i] = device;
    }
}

enum status rank_groups_init(struct rank_groups *out, struct rank_groups *limits, const struct cluster *cluster,
                             const struct all_reduce_table *whole, const struct all_reduce_table *whole_limits,
                             struct arena *arena, struct error *err) {
    struct builder b = {.cluster = cluster, .whole = {whole, whole_limits}, .arena = arena};
    const uint32_t n = cluster->n_devices;
    if (!take_room(&b))
        return error_no_memory(err);
    number_devices(&b);
    b.one_node = n > 0 && b.node_of[0] == b.node_of[n - 1];
    enum status st = ST_OK;
    for (uint32_t ranks = 2; ranks < n && !st; ranks++) {
        if (n % ranks > 0)
            continue;
        st = add_size(&b, ranks, 1, err);
        if (!st)
            st = add_size(&b, ranks, n / ranks, err);
    }
    if (!st) {
        *out = (struct rank_groups){b.n, b.groups[CHARGED], b.one_node};
        *limits = (struct rank_groups){b.n, b.groups[LIMITS], b.one_node};
    }
    return st;
}

/* ---- what they cost ---- */

static struct all_reduce_cost times(struct all_reduce_cost c, double startup, double transfer) {
    return (struct all_reduce_cost){startup * c.startup_us, transfer * c.transfer_us, transfer * c.hold_us,
                                    transfer * c.back_us, transfer * c.rest_us};
}

static struct all_reduce_cost plus(struct all_reduce_cost a, struct all_reduce_cost b) {
    return (struct all_reduce_cost){a.startup_us + b.startup_us, a.transfer_us + b.transfer_us, a.hold_us + b.hold_us,
                                    a.back_us + b.back_us, a.rest_us + b.rest_us};
}

/* Of one group, among the others. */
static struct all_reduce_cost half_us(const struct rank_group *g, const struct all_reduce_table *whole, enum half half,
                                      double bytes) {
    const double steps = (g->ranks - 1.0) / (g->devices - 1);
    if (g->scaled)
        return times(all_reduce_half_cost(whole, half, (uint64_t)llround(bytes * g->devices / g->ranks)), steps,
                     steps * g->crossing);
    struct all_reduce_cost c = all_reduce_half_cost(&g->table, half, (uint64_t)llround(bytes));
    if (is_measured(&g->table))
        c = times(c, 1, g->crossing);
    c.startup_us += (g->ranks - 1.0) * g->step_us;
    return c;
}

static struct all_reduce_cost replicas_us(const struct rank_group *g, const struct all_reduce_table *whole,
                                          enum algorithm algorithm, double part) {
    if (g->scaled)
        return plus(half_us(g, whole, HALF_scatter, part), half_us(g, whole, HALF_gather, part));
    return all_reduce_cost(&g->table, g->rings ? ALGORITHM_ring : algorithm, (uint64_t)llround(part));
}

static bool is_of(const struct rank_group *g, const struct message *m) {
    return g->ranks == m->ranks && g->stride == m->stride;
}

static double lone_us(struct all_reduce_cost c) {
    return c.startup_us + c.transfer_us;
}

struct all_reduce_cost rank_groups_cost(const struct rank_groups *groups, const struct all_reduce_table *whole,
                                        const struct message *m) {
    struct all_reduce_cost slowest = {0};
    const double bytes = (double)m->bytes;
    for (uint32_t k = 0; k < groups->n; k++) {
        const struct rank_group *g = &groups->group[k];
        if (!is_of(g, m))
            continue;
        const struct all_reduce_cost c = message_is_of_replicas(m)
                                             ? replicas_us(g, whole, m->algorithm, ceil(bytes / m->stride))
                                             : half_us(g, whole, m->half, bytes);
        if (lone_us(c) > lone_us(slowest))
            slowest = c;
    }
    return slowest;
}

bool rank_groups_stay(const struct rank_groups *groups, const struct message *m) {
    bool any = false;
    for (uint32_t k = 0; k < groups->n; k++) {
        if (is_of(&groups->group[k], m) && !groups->group[k].stays)
            return false;
        any |= is_of(&groups->group[k], m);
    }
    return any;
}

/* ---- limits ---- */

static double ring_per_byte_us(const struct all_reduce_table *table) {
    const struct all_reduce_lines *ring = &table->lines[ALGORITHM_ring];
    double least = INFINITY;
    for (uint32_t i = 0; i < ring->n; i++)
        least = fmin(least, ring->line[i].per_byte_us);
    return is_measured(table) ? all_reduce_least_per_byte_us(table) : least;
}

/* For how long a byte of half a ring holds NICs at least. */
static double half_hold_us(const struct rank_group *g, const struct all_reduce_table *whole) {
    const double n = g->devices, r = g->ranks;
    if (g->stays)
        return 0;
    if (g->scaled)
        return g->crossing * (r - 1) / (n - 1) * n / r * all_reduce_least_per_byte_us(whole) / 2;
    return ring_per_byte_us(&g->table) / 2 * (is_measured(&g->table) ? g->crossing : 1);
}

static double replicas_hold_us(const struct rank_group *g, const struct all_reduce_table *whole) {
    if (g->stays)
        return 0;
    return (g->scaled ? 2 * half_hold_us(g, whole) : all_reduce_least_per_byte_us(&g->table)) / g->stride;
}

/* The least of all groups of that size. */
static double least_hold_us(const struct rank_groups *groups, const struct all_reduce_table *whole, uint32_t ranks,
                            uint32_t stride) {
    double least = INFINITY;
    for (uint32_t k = 0; k < groups->n; k++) {
        const struct rank_group *g = &groups->group[k];
        if (g->ranks == ranks && g->stride == stride)
            least = fmin(least, stride > 1 ? replicas_hold_us(g, whole) : half_hold_us(g, whole));
    }
    return least;
}

static double gather_hold_us(const struct rank_group *g, const struct all_reduce_table *whole) {
    const double n = g->devices, r = g->ranks;
    if (g->stays)
        return 0;
    if (g->scaled)
        return g->crossing * (r - 1) / (n - 1) * n / r * all_reduce_least_half_gather_per_byte_us(whole);
    return all_reduce_least_half_gather_per_byte_us(&g->table) * (is_measured(&g->table) ? g->crossing : 1);
}

double rank_groups_gather_us(const struct rank_groups *groups, const struct all_reduce_table *whole, uint32_t ranks) {
    double least = INFINITY;
    for (uint32_t k = 0; k < groups->n; k++)
        if (groups->group[k].ranks == ranks && groups->group[k].stride == 1)
            least = fmin(least, gather_hold_us(&groups->group[k], whole));
    return least;
}

double rank_groups_least_per_byte_us(const struct rank_groups *groups, const struct all_reduce_table *whole) {
    double least = INFINITY;
    for (uint32_t k = 0; k < groups->n; k++) {
        const struct rank_group *g = &groups->group[k];
        const uint32_t replicas = (uint32_t)g->devices / g->ranks;
        if (g->stride == 1)
            least = fmin(least, 2 * least_hold_us(groups, whole, g->ranks, 1) +
                                    least_hold_us(groups, whole, replicas, g->ranks));
    }
    return least;
}

double rank_groups_least_startup_us(const struct rank_groups *groups, const struct all_reduce_table *whole) {
    double least = INFINITY;
    for (uint32_t k = 0; k < groups->n; k++) {
        const struct rank_group *g = &groups->group[k];
        const double table = all_reduce_least_startup_us(&g->table) / 2 + (g->ranks - 1.0) * g->step_us;
        const double steps = (g->ranks - 1.0) / (g->devices - 1) * all_reduce_least_startup_us(whole);
        least = fmin(least, g->scaled ? steps : table);
    }
    return least;
}
