/* Every algorithm as it is laid over N devices, node by node, and each hop that leaves a node charged to two NICs:
 *   ring                 N - 1 pieces of M / N on to the next device, twice
 *   tree                 binomial: device i sends M to i without its lowest set bit, and gets the sum from i without
 *                        its highest (Open MPI 4.1, coll/libnbc/nbc_iallreduce.c)
 *   double_tree          every node sends and receives M once
 *   recursive_doubling   P = 2^floor(log2 N); the first N - P pairs fold into their second, which then takes part for
 *                        both and sends the sum back; log2 P exchanges of M with the partner at 1, 2, 4, ...
 *   halving_doubling     the same fold; exchanges of M / 2 at 1, M / 4 at 2, ... and back
 *   hierarchical         the ring among nodes
 * (Thakur, Rabenseifner and Gropp, Optimization of Collective Communication Operations in MPICH, 2005.) */
#include "strategy/cost/wire.h"

#include <math.h>

#include "strategy/cost/transport.h"

/* Bytes out of and into each node, of each byte of the message. */
struct traffic {
    const struct cluster *cluster;
    double *out, *in;
};

static void clear(struct traffic *t) {
    for (uint32_t i = 0; i < t->cluster->n_nodes; i++)
        t->out[i] = t->in[i] = 0;
}

static void hop(struct traffic *t, uint32_t from, uint32_t to, double amount) {
    uint32_t a = cluster_node_of_device(t->cluster, from), b = cluster_node_of_device(t->cluster, to);
    if (a == b)
        return;
    t->out[a] += amount;
    t->in[b] += amount;
}

static double busiest_us(const struct traffic *t) {
    double most = 0;
    for (uint32_t i = 0; i < t->cluster->n_nodes; i++) {
        double rate = transport_nic_bytes_per_us(t->cluster, i);
        most = fmax(most, fmax(t->out[i], t->in[i]) / rate);
    }
    return most;
}

static void route_ring(struct traffic *t) {
    uint32_t n = t->cluster->n_devices;
    for (uint32_t i = 0; i < n; i++)
        hop(t, i, (i + 1) % n, 2 * (n - 1.0) / n);
}

static void route_tree_up(struct traffic *t) {
    for (uint32_t i = 1; i < t->cluster->n_devices; i++)
        hop(t, i, i & (i - 1), 1);
}

static void route_tree_back(struct traffic *t) {
    for (uint32_t highest = 1, i = 1; i < t->cluster->n_devices; i++) {
        highest = i == 2 * highest ? i : highest;
        hop(t, i - highest, i, 1);
    }
}

/* Device that stands for number i of the P that are left after the fold. */
static uint32_t unfolded(uint32_t i, uint32_t extra) {
    return i < extra ? 2 * i + 1 : i + extra;
}

static void route_recursive(struct traffic *t, bool halving) {
    uint32_t p = 1, n = t->cluster->n_devices;
    while (p <= n / 2)
        p *= 2;
    for (uint32_t i = 0; i < n - p; i++) {
        hop(t, 2 * i, 2 * i + 1, 1);
        hop(t, 2 * i + 1, 2 * i, 1);
    }
    for (uint32_t distance = 1; distance < p; distance *= 2)
        for (uint32_t i = 0; i < p; i++)
            hop(t, unfolded(i, n - p), unfolded(i ^ distance, n - p), halving ? 1.0 / distance : 1);
}

/* Nodes with devices, each with what leaves it and comes to it. */
static void route_nodes(struct traffic *t, bool ring) {
    double k = 0;
    for (uint32_t i = 0; i < t->cluster->n_nodes; i++)
        k += t->cluster->nodes[i].devices > 0;
    for (uint32_t i = 0; i < t->cluster->n_nodes; i++)
        if (t->cluster->nodes[i].devices > 0 && k > 1)
            t->out[i] = t->in[i] = ring ? 2 * (k - 1) / k : 1;
}

static void route(struct traffic *t, enum algorithm algorithm) {
    switch (algorithm) {
    case ALGORITHM_ring:
        route_ring(t);
        break;
    case ALGORITHM_tree:
        route_tree_up(t);
        break;
    case ALGORITHM_recursive_doubling:
    case ALGORITHM_halving_doubling:
        route_recursive(t, algorithm == ALGORITHM_halving_doubling);
        break;
    case ALGORITHM_double_tree:
    case ALGORITHM_hierarchical:
        route_nodes(t, algorithm == ALGORITHM_hierarchical);
        break;
    case ALGORITHM_auto:
    case ALGORITHM_all_gather:
    case ALGORITHM_COUNT:
        break;
    }
}

enum status wire_per_byte_us(const struct cluster *cluster, double by_algorithm[ALGORITHM_COUNT], double *tree_back,
                             struct error *err) {
    struct arena arena = {0};
    struct traffic traffic = {.cluster = cluster,
                              .out = arena_alloc(&arena, cluster->n_nodes, sizeof(double)),
                              .in = arena_alloc(&arena, cluster->n_nodes, sizeof(double))};
    enum status st = traffic.out && traffic.in ? ST_OK : error_no_memory(err);
    double least = INFINITY;
    for (int a = ALGORITHM_auto + 1; a < ALL_REDUCE_COUNT && !st; a++) {
        clear(&traffic);
        route(&traffic, (enum algorithm)a);
        by_algorithm[a] = busiest_us(&traffic);
        least = fmin(least, by_algorithm[a]);
    }
    by_algorithm[ALGORITHM_all_gather] = 0;
    if (!st) {
        by_algorithm[ALGORITHM_auto] = least;
        clear(&traffic);
        route_tree_back(&traffic);
        *tree_back = busiest_us(&traffic);
    }
    arena_release(&arena);
    return st;
}
