/* The cluster's figures in the simulator's units. O(nodes + links + measurements). */
#include "strategy/cost/cost.h"

#include <math.h>

#include "base/units.h"
#include "strategy/cost/transport.h"
#include "strategy/plan.h"

/* btl_tcp_eager_limit of Open MPI 4.1, less the header that counts with it. */
static const double WORKER_EAGER_BYTES = 65536 - 56;

static double rate_or_free(double bytes_per_us) {
    return bytes_per_us > 0 ? bytes_per_us : INFINITY;
}

/* The rate at which pushes were measured: bench sends them from the first device to the last. */
static double measured_rate(const struct cluster *cluster) {
    uint32_t from = cluster_node_of_device(cluster, 0), to = cluster_node_of_device(cluster, cluster->n_devices - 1);
    double least = fmin(transport_nic_bytes_per_us(cluster, from), transport_nic_bytes_per_us(cluster, to));
    for (uint32_t i = 0; i < cluster->n_links; i++)
        if (cluster->links[i].from == from && cluster->links[i].to == to)
            least = fmin(least, transport_link_bytes_per_us(cluster, &cluster->links[i]));
    return least;
}

/* Measurements are sorted by bytes within an operation and number of devices; the smallest of all counts. */
static const struct measurement *smallest_of(const struct cluster *cluster, enum operation operation) {
    const struct measurement *smallest = NULL;
    for (uint32_t i = 0; i < cluster->n_measurements; i++) {
        const struct measurement *m = &cluster->measurements[i];
        if (m->operation == operation && (!smallest || m->bytes < smallest->bytes))
            smallest = m;
    }
    return smallest;
}

static double measured_burst(const struct cluster *cluster) {
    const struct measurement *first = smallest_of(cluster, OPERATION_push);
    const struct measurement *end = first ? cluster->measurements + cluster->n_measurements : NULL;
    double rate = measured_rate(cluster), burst = 0;
    for (const struct measurement *m = first; m && m < end; m++) {
        if (m->operation != first->operation || m->devices != first->devices)
            break;
        double more = (double)(m->bytes - first->bytes), passed = (m->time_us - first->time_us) * rate;
        if (m > first && passed > more / 2)
            break;
        burst = m > first ? fmin((double)m->bytes, (double)m->bytes - passed) : 0;
    }
    return burst;
}

static double eager_bytes(const struct cluster *cluster) {
    if (transport_workers_serve(cluster))
        return INFINITY;
    if (cluster->runtime.eager_bytes > 0)
        return cluster->runtime.eager_bytes;
    return smallest_of(cluster, OPERATION_push) ? WORKER_EAGER_BYTES : INFINITY;
}

static double measured_latency(const struct cluster *cluster, enum operation operation) {
    const struct measurement *smallest = smallest_of(cluster, operation);
    if (!smallest)
        return transport_runtime(cluster).push_us;
    return fmax(0, smallest->time_us - (double)smallest->bytes / measured_rate(cluster));
}

static void list_nodes(struct cost *cost, uint32_t *workers, double *nic, double *device_link) {
    const struct cluster *cluster = cost->cluster;
    for (uint32_t i = 0; i < cluster->n_nodes; i++) {
        const struct node *node = &cluster->nodes[i];
        nic[i] = transport_nic_bytes_per_us(cluster, i);
        device_link[i] = transport_device_link_bytes_per_us(cluster, i);
        if (node->devices == 0)
            continue;
        if (cost->n_workers == 0 || node->compute_scale > cluster->nodes[cost->slowest].compute_scale)
            cost->slowest = i;
        workers[cost->n_workers++] = i;
    }
}

static struct interference shares_of(const struct interference *measured) {
    return (struct interference){measured->compute > 0 ? measured->compute : 1,
                                 measured->traffic > 0 ? measured->traffic : 1,
                                 measured->beside > 0 ? measured->beside : 1};
}

static bool is_disturbed(const struct interference *shares) {
    return shares->compute < 1 || shares->traffic < 1 || shares->beside < 1;
}

static void find_interference(struct cost *cost) {
    cost->in_startup = shares_of(&cost->cluster->in_startup);
    cost->in_transfer = shares_of(&cost->cluster->in_transfer);
    cost->interferes = is_disturbed(&cost->in_startup) || is_disturbed(&cost->in_transfer);
}

static double least_nic_latency_us(const struct cluster *cluster) {
    double least = INFINITY;
    for (uint32_t i = 0; i < cluster->n_nodes; i++)
        least = fmin(least, transport_nic_latency_us(cluster, i));
    return least;
}

static void limit_latencies(struct cost *cost, const struct cluster *bare) {
    const struct runtime runtime = transport_runtime(bare);
    const double nic_us = least_nic_latency_us(bare);
    cost->limit_message_us = runtime.message_us;
    cost->limit_local_us = runtime.push_us;
    cost->limit_push_us = fmin(fmax(nic_us, measured_latency(bare, OPERATION_push)), fmax(nic_us, cost->push_us));
    cost->limit_pull_us = fmin(fmax(nic_us, measured_latency(bare, OPERATION_pull)), fmax(nic_us, cost->pull_us));
}

/* By how much less the timeline's NICs pass than the limits say, at the NIC where that is least. */
static double least_slack(const struct cost *cost) {
    double least = INFINITY;
    for (uint32_t i = 0; i < cost->n_workers; i++) {
        uint32_t node = cost->workers[i];
        least = fmin(least, cost->limit_nic_bytes_per_us[node] / cost->nic_bytes_per_us[node]);
    }
    return least;
}

/* With a profile another NIC or device link may be the slowest. Then a wide NIC is held for less time than the limits
 * say. The shorter of both counts; the same with startups. */
static void limit_all_reduces(struct cost *cost, const struct all_reduce_table *limits, double narrowest) {
    const struct all_reduce_table *own = &cost->all_reduce;
    double limit = all_reduce_least_per_byte_us(limits), seen = all_reduce_least_per_byte_us(own);
    cost->limit_all_reduce_per_byte_us = fmin(limit, seen);
    cost->limit_all_reduce_wire = fmin(limit * narrowest, seen * cost->narrowest_bytes_per_us * least_slack(cost));
    cost->limit_all_reduce_startup_us = fmin(all_reduce_least_startup_us(limits), all_reduce_least_startup_us(own));
    cost->limit_gather_startup_us =
        fmin(all_reduce_least_gather_startup_us(limits), all_reduce_least_gather_startup_us(own));
}

static void limit_replicas(struct cost *cost, const struct rank_groups *groups, const struct all_reduce_table *limits,
                           double narrowest) {
    const struct all_reduce_table *own = &cost->all_reduce;
    const double limit = rank_groups_least_per_byte_us(groups, limits),
                 seen = rank_groups_least_per_byte_us(&cost->groups, own);
    cost->limit_replicas_per_byte_us = fmin(cost->limit_all_reduce_per_byte_us, fmin(limit, seen));
    cost->limit_replicas_wire = cost->limit_all_reduce_wire;
    if (isfinite(limit) && isfinite(narrowest)) /* else there are no groups, or no NICs */
        cost->limit_replicas_wire =
            fmin(cost->limit_all_reduce_wire,
                 fmin(limit * narrowest, seen * cost->narrowest_bytes_per_us * least_slack(cost)));
    cost->limit_replicas_startup_us =
        fmin(cost->limit_all_reduce_startup_us,
             fmin(rank_groups_least_startup_us(groups, limits), rank_groups_least_startup_us(&cost->groups, own)));
}

/* Of groups of each size, and of all devices. */
static enum status limit_gathers(struct cost *cost, const struct rank_groups *groups,
                                 const struct all_reduce_table *limits, double narrowest, struct error *err) {
    const double seen_rate = cost->narrowest_bytes_per_us * least_slack(cost);
    struct gather_limit *out = arena_alloc(&cost->arena, groups->n + (size_t)1, sizeof *out);
    if (!out)
        return error_no_memory(err);
    cost->limit_gathers = out;
    cost->n_limit_gathers = 0;
    if (cost->n_workers < 2 || !isfinite(narrowest))
        return ST_OK;
    for (uint32_t i = 0; i < groups->n; i++) {
        const uint32_t ranks = groups->group[i].ranks, n = cost->n_limit_gathers;
        if (groups->group[i].stride != 1 || ranks < 2 || (n > 0 && out[n - 1].ranks == ranks))
            continue;
        const double limit = rank_groups_gather_us(groups, limits, ranks) * narrowest,
                     seen = rank_groups_gather_us(&cost->groups, &cost->all_reduce, ranks) * seen_rate;
        out[cost->n_limit_gathers++] = (struct gather_limit){ranks, fmin(limit, seen)};
    }
    const double limit = all_reduce_least_half_gather_per_byte_us(limits) * narrowest,
                 seen = all_reduce_least_half_gather_per_byte_us(&cost->all_reduce) * seen_rate;
    out[cost->n_limit_gathers++] = (struct gather_limit){cost->cluster->n_devices, fmin(limit, seen)};
    return ST_OK;
}

/* The costs of groups of devices, and all limits. Figures that nobody measured may be better than a profile says, so a
 * bound counts them as free. */
static enum status find_groups_and_limits(struct cost *cost, double *nic, struct error *err) {
    struct cluster bare = *cost->cluster;
    struct all_reduce_table table;
    struct rank_groups groups;
    bare.transport = TRANSPORT_ideal;
    for (uint32_t i = 0; i < bare.n_nodes; i++)
        nic[i] = transport_nic_bytes_per_us(&bare, i);
    cost->limit_nic_bytes_per_us = nic;
    cost->limit_device_link_bytes_per_us = transport_device_link_bytes_per_us(&bare, cost->workers[0]);
    const double narrowest = all_reduce_narrowest_bytes_per_us(&bare);
    enum status st =
        all_reduce_init_limits(&table, cost->cluster, measured_burst(&bare) / narrowest, &cost->arena, err);
    if (!st)
        st = rank_groups_init(&cost->groups, &groups, cost->cluster, &cost->all_reduce, &table, &cost->arena, err);
    if (st)
        return st;
    limit_all_reduces(cost, &table, narrowest);
    limit_replicas(cost, &groups, &table, narrowest);
    limit_latencies(cost, &bare);
    return limit_gathers(cost, &groups, &table, narrowest, err);
}

/* What the timeline charges, all-reduces aside. */
static void find_figures(struct cost *cost) {
    const struct cluster *cluster = cost->cluster;
    cost->narrowest_bytes_per_us = all_reduce_narrowest_bytes_per_us(cluster);
    cost->copy_bytes_per_us = rate_or_free(units_gbyte_per_s(cost->runtime.copy_gbyte_per_s));
    cost->sum_bytes_per_us = rate_or_free(units_gbyte_per_s(cost->runtime.sum_gbyte_per_s));
    cost->encode_bytes_per_us = rate_or_free(units_gbyte_per_s(cost->runtime.encode_gbyte_per_s));
    cost->int8_bytes_per_us = rate_or_free(units_gbyte_per_s(cost->runtime.int8_gbyte_per_s));
    cost->topk_bytes_per_us = rate_or_free(units_gbyte_per_s(cost->runtime.topk_gbyte_per_s));
    cost->powersgd_bytes_per_us = rate_or_free(units_gbyte_per_s(cost->runtime.powersgd_gbyte_per_s));
    cost->direct_per_byte_us = cost_direct_per_byte_us(cost);
    cost->push_us = measured_latency(cluster, OPERATION_push);
    cost->pull_us = measured_latency(cluster, OPERATION_pull);
    cost->burst_bytes = isfinite(cost->narrowest_bytes_per_us)
                            ? cost->all_reduce.burst_us * cost->narrowest_bytes_per_us
                            : measured_burst(cluster);
    cost->eager_bytes = eager_bytes(cluster);
    cost->workers_serve = transport_workers_serve(cluster);
    cost->connected = isfinite(cost->eager_bytes) || cost->workers_serve;
    cost->in_order = transport_is_in_order(cluster);
    find_interference(cost);
}

enum status cost_init(struct cost *out, const struct cluster *cluster, struct error *err) {
    struct cost cost = {.cluster = cluster, .runtime = transport_runtime(cluster)};
    uint32_t *workers = arena_alloc(&cost.arena, cluster->n_nodes, sizeof *workers);
    double *nic = arena_alloc(&cost.arena, cluster->n_nodes, sizeof *nic);
    double *device_link = arena_alloc(&cost.arena, cluster->n_nodes, sizeof *device_link);
    double *limit = arena_alloc(&cost.arena, cluster->n_nodes, sizeof *limit);
    enum status st = ST_OK;
    if (!workers || !nic || !device_link || !limit)
        st = error_no_memory(err);
    else if (cluster->n_devices == 0)
        st = error_set(err, ST_INVALID, "cluster %s has no device: nothing computes there", cluster->name);
    else
        st = all_reduce_init(&cost.all_reduce, cluster,
                             measured_burst(cluster) / all_reduce_narrowest_bytes_per_us(cluster), &cost.arena, err);
    if (!st) {
        list_nodes(&cost, workers, nic, device_link);
        cost.workers = workers;
        cost.nic_bytes_per_us = nic;
        cost.device_link_bytes_per_us = device_link;
        find_figures(&cost);
        st = find_groups_and_limits(&cost, limit, err);
    }
    if (st) {
        arena_release(&cost.arena);
        return st;
    }
    *out = cost;
    return ST_OK;
}

static double latency(const struct cost *cost, uint32_t worker, uint32_t server, double between) {
    if (worker == server)
        return cost->runtime.push_us;
    return fmax(between,
                fmax(transport_nic_latency_us(cost->cluster, worker), transport_nic_latency_us(cost->cluster, server)));
}

double cost_push_latency_us(const struct cost *cost, uint32_t worker, uint32_t server) {
    return latency(cost, worker, server, cost->push_us);
}

double cost_pull_latency_us(const struct cost *cost, uint32_t worker, uint32_t server) {
    return latency(cost, worker, server, cost->pull_us);
}

double cost_nic_bytes_per_us(const struct cost *cost, uint32_t node, double gbit_per_s) {
    return cost->nic_bytes_per_us[node] * gbit_per_s / cost->cluster->nodes[node].nic_gbit_per_s;
}

void cost_release(struct cost *cost) {
    arena_release(&cost->arena);
    *cost = (struct cost){.cluster = NULL};
}

bool cost_stays_in_nodes(const struct cost *cost, const struct message *message) {
    return message->ranks > 0 && rank_groups_stay(&cost->groups, message);
}

struct all_reduce_cost cost_all_reduce(const struct cost *cost, const struct message *message) {
    if (message->encoder)
        return cost_encoded(cost, message);
    if (message->ranks > 0)
        return rank_groups_cost(&cost->groups, &cost->all_reduce, message);
    if (message->half)
        return all_reduce_half_cost(&cost->all_reduce, message->half, message->bytes);
    return all_reduce_cost(&cost->all_reduce, message->algorithm, message->bytes);
}
