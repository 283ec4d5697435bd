/* Clusters made by hand: what a test does not set is zero or ideal. */
#ifndef TESTS_SUPPORT_STRATEGY_HANDMADE_CLUSTER_H
#define TESTS_SUPPORT_STRATEGY_HANDMADE_CLUSTER_H

#include "strategy/cluster.h"

enum { HANDMADE_NODES = 16 };

struct handmade {
    struct node nodes[HANDMADE_NODES];
    struct link links[HANDMADE_NODES];
    struct measurement pushes[2];
    struct measurement curves[10]; /* for tests that measure all-reduces too, and halves */
    struct cluster cluster;
};

/* n nodes of one device, 8 Gbit/s (1000 bytes a microsecond), no latency. */
static inline void handmade_cluster(struct handmade *h, uint32_t n) {
    *h = (struct handmade){.cluster = {.name = "test", .n_nodes = n, .nodes = h->nodes, .links = h->links}};
    h->cluster.runtime.goodput = 1;
    for (uint32_t i = 0; i < n; i++)
        h->nodes[i] = (struct node){.name = "n", .devices = 1, .nic_gbit_per_s = 8, .compute_scale = 1};
}

/* All-reduce costs a + b * bytes. */
static inline void handmade_fix(struct handmade *h, double a, double per_byte_us) {
    h->cluster.fixed_all_reduce = true;
    h->cluster.all_reduce_startup_us = a;
    h->cluster.all_reduce_per_byte_ns = per_byte_us * 1000;
}

/* Measured pushes: `burst` bytes (at least 2) take no longer than 1 byte, which takes `us`. */
static inline void handmade_burst(struct handmade *h, double us, uint64_t burst) {
    h->pushes[0] = (struct measurement){.operation = OPERATION_push, .devices = 2, .bytes = 1, .time_us = us};
    h->pushes[1] = (struct measurement){.operation = OPERATION_push, .devices = 2, .bytes = burst, .time_us = us};
    h->cluster.measurements = h->pushes;
    h->cluster.n_measurements = 2;
}

static inline void handmade_number_devices(struct handmade *h) {
    h->cluster.n_devices = 0;
    for (uint32_t i = 0; i < h->cluster.n_nodes; i++) {
        h->nodes[i].first_device = h->cluster.n_devices;
        h->cluster.n_devices += h->nodes[i].devices;
    }
}

#endif
