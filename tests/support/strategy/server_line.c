/* See server_line.h. */
#include "tests/support/strategy/server_line.h"

#include <math.h>

#include "strategy/cost/transport.h"

/* The overridden link from one node to another, or INFINITY. */
static double link_bytes_per_us(const struct cost *cost, uint32_t from, uint32_t to) {
    const struct cluster *cluster = cost->cluster;
    for (uint32_t i = 0; i < cluster->n_links; i++)
        if (cluster->links[i].from == from && cluster->links[i].to == to)
            return transport_link_bytes_per_us(cluster, &cluster->links[i]);
    return INFINITY;
}

/* Latency and time a byte of one phase: flows of equal size share the server's NIC equally, unless one has less than
 * its share by itself; that one is then the last. */
static struct cost_line phase(const struct cost *cost, uint32_t server, bool pull) {
    struct cost_line line = {0, 0};
    uint32_t remote = 0;
    for (uint32_t i = 0; i < cost->n_workers; i++) {
        uint32_t worker = cost->workers[i];
        double latency = pull ? cost_pull_latency_us(cost, worker, server) : cost_push_latency_us(cost, worker, server);
        double own = cost->device_link_bytes_per_us[worker];
        if (worker != server) {
            own = fmin(cost->nic_bytes_per_us[worker],
                       link_bytes_per_us(cost, pull ? server : worker, pull ? worker : server));
            remote++;
        }
        line.startup_us = fmax(line.startup_us, latency);
        line.per_byte_us = fmax(line.per_byte_us, 1 / own);
    }
    line.per_byte_us = fmax(line.per_byte_us, remote / cost->nic_bytes_per_us[server]);
    return line;
}

/* Time a byte within the slowest node: `hops` transfers for each device but the first. */
static double within_node(const struct cost *cost, double (*a_device)(const struct cost *, uint32_t)) {
    double slowest = 0;
    for (uint32_t i = 0; i < cost->n_workers; i++) {
        uint32_t node = cost->workers[i];
        slowest = fmax(slowest, (cost->cluster->nodes[node].devices - 1) * a_device(cost, node));
    }
    return slowest;
}

static double copy_per_byte(const struct cost *cost, uint32_t node) {
    return 1 / cost->device_link_bytes_per_us[node];
}

static double sum_per_byte(const struct cost *cost, uint32_t node) {
    return copy_per_byte(cost, node) + 1 / cost->sum_bytes_per_us;
}

struct cost_line cost_line_push(const struct cost *cost, uint32_t server) {
    struct cost_line line = phase(cost, server, false);
    line.startup_us += cost->runtime.message_us;
    line.per_byte_us += within_node(cost, sum_per_byte) + (cost->n_workers - 1) / cost->sum_bytes_per_us;
    return line;
}

struct cost_line cost_line_pull(const struct cost *cost, uint32_t server) {
    struct cost_line line = phase(cost, server, true);
    line.per_byte_us += within_node(cost, copy_per_byte);
    return line;
}

struct cost_line cost_line_push_pull(const struct cost *cost, uint32_t server) {
    struct cost_line push = cost_line_push(cost, server), pull = cost_line_pull(cost, server);
    return (struct cost_line){push.startup_us + pull.startup_us, push.per_byte_us + pull.per_byte_us};
}
