/* The profiles. Each figure has its source here; where sources differ, the range is given.
 *
 * Sources:
 *   [NCCL]    NCCL 2.21, src/graph/topo.h (12 GB/s for PCIe 3.0 x16 and for a NIC of 100 Gbit/s; traffic between GPUs
 *             takes 6/5 of its bytes on Intel processors; 20 of NVLink's 25 GB/s)
 *   [N209]    github.com/NVIDIA/nccl issue 209: over TCP on fast networks, with one or two rings, 1.85 to 2.77 GB/s
 *   [N450]    the same, issue 450: two TCP flows on 100 Gbit/s, 17.8 Gbit/s the slower one
 *   [HVD]     Horovod 0.21 and later: ranks agree once a cycle, HOROVOD_CYCLE_TIME, 1 ms; a tensor waits half of that
 *   [BS]      ByteScheduler (SOSP 2019) §4.1: about 300 us for each partition; section 4.2's tasks are one push, one
 *             pull and one acknowledgement, so a third for each
 *   [ETH]     1448 bytes of payload in 1538 on the wire, the rest of Ethernet, IP and TCP
 *   [HBM]     NVIDIA V100 datasheet: 900 GB/s; a copy reads and writes, and reaches about three quarters of it. To
 *             encode is to read 4 bytes and write 2, to decode the reverse: 6 bytes where a copy moves 8. With int8 it
 *             is 5 bytes, the scales aside, where a block is read once; topk reads an element four times and keeps the
 *             rest: 24 bytes; powersgd reads or writes it seven times: 28 bytes
 *   [BPS]     BytePS (OSDI 2020) §4.2: summing on a server's processor is faster than its NIC; 20 GB/s is a memory
 *             channel of DDR4
 *   [LAB]     `syncopate bench` of lab-4x1g, a network of namespaces on 2 cores: typical of loaded CPU machines only
 *   [F16C]    a processor's conversions between f32 and f16 are limited by memory too: 6 bytes where a copy moves 8, so
 *             4/3 of the copy's rate. The worker's conversions were 1.3 to 2.1 times as fast as copies beside them
 *   [TOPK]    `syncopate bench` in a lab of 3 nodes on 2 loaded cores: 0.30 to 0.40. The worker's radix select of 2
 *             million elements takes 4 ns an element where it has a core for itself
 *   [INT8]    the same: 24 beside 26 of conversions to f16, so nine tenths of those
 *   [POWER]   the same in a lab of 4 nodes, on 2 cores with much other work: 1.8. All passes of rank 2 over 2 million
 *             elements take 0.6 ns an element, 6.7 GB/s, where they have a core for themselves
 *   [GLOO]    `python3 -m syncopate_torch.bench` on the same, PyTorch 1.13: ranks share processors there, and gloo's
 *             threads wait for each other */
#include "strategy/cost/transport.h"

#include <math.h>
#include <stdio.h>

#include "base/units.h"

static const double RDMA_LATENCY_US = 10, RDMA_GBIT_PER_S = 100; /* the rule of the header */
static const double TYPICAL_RDMA_LATENCY_US = 5, TYPICAL_TCP_LATENCY_US = 30;
static const double NVLINK_FROM_GBYTE_PER_S = 32;
static const double TCP_GOODPUT = 1448.0 / 1538; /* [ETH] */
static const double RDMA_GOODPUT = 0.96;         /* [NCCL]: 12 of 12.5 GB/s */

struct figures {
    struct runtime runtime;       /* goodput aside */
    double tcp_gbit_per_s;        /* what TCP reaches through one NIC of 100 Gbit/s */
    double pcie, nvlink;          /* the part of a device link's rate that is reached */
    struct transport_error error; /* with these figures */
};

/* Of a cluster that `syncopate bench` has measured: `make accuracy`, all rows of docs/accuracy.txt. */
static const struct transport_error MEASURED_MPI = {0.037, 0.142, "72 trials on measured clusters in the lab"};

static const struct figures profiles[TRANSPORT_COUNT] = {
    [TRANSPORT_ideal] = {.tcp_gbit_per_s = INFINITY, .pcie = 1, .nvlink = 1},
    [TRANSPORT_nccl] = {.runtime = {.message_us = 300,           /* [BS] */
                                    .coordination_us = 500,      /* [HVD] */
                                    .push_us = 100,              /* [BS] */
                                    .copy_gbyte_per_s = 340,     /* [HBM] */
                                    .sum_gbyte_per_s = 20,       /* [BPS] */
                                    .encode_gbyte_per_s = 450,   /* [HBM] */
                                    .int8_gbyte_per_s = 540,     /* [HBM] */
                                    .topk_gbyte_per_s = 110,     /* [HBM] */
                                    .powersgd_gbyte_per_s = 95}, /* [HBM] */
                        .tcp_gbit_per_s = 20,                    /* [N209], [N450] */
                        .pcie = 5.0 / 6,                         /* [NCCL] */
                        .nvlink = 0.8,                           /* [NCCL] */
                        .error = {0.024, 0.53, "76 published throughputs of ResNet-50 on up to 32 V100"}},
    [TRANSPORT_mpi] = {.runtime = {.message_us = 60, /* [LAB], as the next four */
                                   .coordination_us = 200,
                                   .push_us = 150,
                                   .copy_gbyte_per_s = 7,
                                   .sum_gbyte_per_s = 6.5,
                                   .encode_gbyte_per_s = 9,      /* [F16C] */
                                   .int8_gbyte_per_s = 8,        /* [INT8] */
                                   .topk_gbyte_per_s = 0.35,     /* [TOPK] */
                                   .powersgd_gbyte_per_s = 1.8}, /* [POWER] */
                       .tcp_gbit_per_s = 20,                     /* [N450] */
                       .pcie = 1,
                       .nvlink = 1,
                       .error = {0.083, 0.23, "48 trials in the lab that the figures are from"}},
    [TRANSPORT_gloo] = {.runtime = {.message_us = 2600, /* [GLOO], as the next and the copy */
                                    .coordination_us = 1500,
                                    .push_us = 150, /* [LAB] */
                                    .copy_gbyte_per_s = 4.5,
                                    .sum_gbyte_per_s = 6.5,
                                    .encode_gbyte_per_s = 6,      /* [F16C] */
                                    .int8_gbyte_per_s = 5.5,      /* [INT8] */
                                    .topk_gbyte_per_s = 0.35,     /* [TOPK] */
                                    .powersgd_gbyte_per_s = 1.8}, /* [POWER] */
                        .tcp_gbit_per_s = 20,                     /* [N450] */
                        .pcie = 1,
                        .nvlink = 1},
    [TRANSPORT_ps_lite] = {.runtime = {.message_us = 300, /* all as nccl's */
                                       .coordination_us = 500,
                                       .push_us = 100,
                                       .copy_gbyte_per_s = 340,
                                       .sum_gbyte_per_s = 20,
                                       .encode_gbyte_per_s = 450,
                                       .int8_gbyte_per_s = 540,
                                       .topk_gbyte_per_s = 110,
                                       .powersgd_gbyte_per_s = 95},
                           .tcp_gbit_per_s = 20,
                           .pcie = 5.0 / 6,
                           .nvlink = 0.8},
};

bool transport_is_in_order(const struct cluster *cluster) {
    return cluster_transport(cluster) == TRANSPORT_nccl;
}

bool transport_workers_serve(const struct cluster *cluster) {
    return cluster_transport(cluster) == TRANSPORT_gloo;
}

static const struct figures *figures_of(const struct cluster *cluster) {
    return &profiles[cluster_transport(cluster)];
}

static bool is_measured(const struct cluster *cluster, enum operation operation) {
    for (uint32_t i = 0; i < cluster->n_measurements; i++)
        if (cluster->measurements[i].operation == operation)
            return true;
    return operation == OPERATION_all_reduce && cluster->fixed_all_reduce;
}

static double factor(double correction) {
    return correction > 0 ? correction : 1;
}

static double measured_or(double measured, double typical) {
    return measured > 0 ? measured : typical;
}

struct runtime transport_runtime(const struct cluster *cluster) {
    const enum transport transport = cluster->n_devices > 1 ? cluster_transport(cluster) : TRANSPORT_ideal;
    const struct runtime *measured = &cluster->runtime, *typical = &profiles[transport].runtime;
    const double startup = factor(cluster->startup);
    const double message_us = measured_or(measured->message_us, is_measured(cluster, OPERATION_all_reduce)
                                                                    ? 0 /* the launch is part of what was measured */
                                                                    : typical->message_us);
    return (struct runtime){
        .message_us = startup * message_us,
        .way_us = startup * measured_or(measured->way_us, message_us),
        .coordination_us = startup * measured_or(measured->coordination_us, typical->coordination_us),
        .push_us = startup * measured_or(measured->push_us, typical->push_us),
        .copy_gbyte_per_s = measured_or(measured->copy_gbyte_per_s, typical->copy_gbyte_per_s),
        .sum_gbyte_per_s = measured_or(measured->sum_gbyte_per_s, typical->sum_gbyte_per_s),
        .encode_gbyte_per_s = measured_or(measured->encode_gbyte_per_s, typical->encode_gbyte_per_s),
        .int8_gbyte_per_s = measured_or(measured->int8_gbyte_per_s, typical->int8_gbyte_per_s),
        .topk_gbyte_per_s = measured_or(measured->topk_gbyte_per_s, typical->topk_gbyte_per_s),
        .powersgd_gbyte_per_s = measured_or(measured->powersgd_gbyte_per_s, typical->powersgd_gbyte_per_s),
        .goodput = measured->goodput,
        .eager_bytes = measured->eager_bytes,
    };
}

/* ---- NICs and links ---- */

static bool is_rdma(const struct node *node) {
    if (node->nic_latency_us > 0)
        return node->nic_latency_us <= RDMA_LATENCY_US;
    return node->nic_gbit_per_s >= RDMA_GBIT_PER_S;
}

static double bytes_per_us(const struct cluster *cluster, bool rdma, double gbit_per_s) {
    double measured = cluster->runtime.goodput;
    if (measured < 1 || cluster_transport(cluster) == TRANSPORT_ideal)
        return units_gbit_per_s(gbit_per_s) * measured;
    if (rdma)
        return units_gbit_per_s(gbit_per_s) * RDMA_GOODPUT;
    double nics = fmax(1, gbit_per_s / RDMA_GBIT_PER_S); /* a larger rate is that of several NICs */
    return units_gbit_per_s(fmin(gbit_per_s * TCP_GOODPUT, nics * figures_of(cluster)->tcp_gbit_per_s));
}

double transport_nic_bytes_per_us(const struct cluster *cluster, uint32_t node) {
    const struct node *at = &cluster->nodes[node];
    return bytes_per_us(cluster, is_rdma(at), at->nic_gbit_per_s) / factor(cluster->transfer);
}

double transport_link_bytes_per_us(const struct cluster *cluster, const struct link *link) {
    bool rdma = is_rdma(&cluster->nodes[link->from]) && is_rdma(&cluster->nodes[link->to]);
    return bytes_per_us(cluster, rdma, link->gbit_per_s) / factor(cluster->transfer);
}

double transport_nic_latency_us(const struct cluster *cluster, uint32_t node) {
    const struct node *at = &cluster->nodes[node];
    if (at->nic_latency_us > 0 || cluster_transport(cluster) == TRANSPORT_ideal)
        return factor(cluster->startup) * at->nic_latency_us;
    return factor(cluster->startup) * (is_rdma(at) ? TYPICAL_RDMA_LATENCY_US : TYPICAL_TCP_LATENCY_US);
}

bool transport_has_nvlink(const struct node *node) {
    return node->device_link_gbyte_per_s > NVLINK_FROM_GBYTE_PER_S;
}

double transport_device_link_bytes_per_us(const struct cluster *cluster, uint32_t node) {
    const struct node *at = &cluster->nodes[node];
    const struct figures *figures = figures_of(cluster);
    if (at->device_link_gbyte_per_s <= 0)
        return INFINITY;
    return units_gbyte_per_s(at->device_link_gbyte_per_s) *
           (transport_has_nvlink(at) ? figures->nvlink : figures->pcie);
}

/* ---- what is known of predictions ---- */

const char *transport_typical_figures(const struct cluster *cluster, char out[TRANSPORT_FIGURES_TEXT]) {
    const struct runtime *measured = &cluster->runtime;
    const struct {
        const char *name;
        bool measured;
    } figures[] = {
        {"all-reduce", is_measured(cluster, OPERATION_all_reduce)},
        {"launch", measured->message_us > 0 || is_measured(cluster, OPERATION_all_reduce)},
        {"coordination", measured->coordination_us > 0},
        {"push and pull", is_measured(cluster, OPERATION_push) || measured->push_us > 0},
        {"copy", measured->copy_gbyte_per_s > 0},
        {"sum", measured->sum_gbyte_per_s > 0},
        {"goodput", measured->goodput < 1},
    };
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        if (!figures[i].measured && cluster_transport(cluster) != TRANSPORT_ideal)
            n += (size_t)snprintf(out + n, TRANSPORT_FIGURES_TEXT - n, "%s%s", n > 0 ? ", " : "", figures[i].name);
    return out;
}

struct transport_error transport_known_error(const struct cluster *cluster) {
    const enum transport transport = cluster_transport(cluster);
    if (transport == TRANSPORT_mpi && is_measured(cluster, OPERATION_all_reduce) && cluster->runtime.message_us > 0)
        return MEASURED_MPI;
    return figures_of(cluster)->error;
}

/* ---- encodings ---- */

uint32_t transport_encodings(const struct cluster *cluster) {
    static const enum encoding first_without[TRANSPORT_COUNT] = {[TRANSPORT_ideal] = ENCODING_COUNT,
                                                                 [TRANSPORT_mpi] = ENCODING_COUNT,
                                                                 [TRANSPORT_nccl] = ENCODING_COUNT,
                                                                 [TRANSPORT_gloo] = ENCODING_int8,
                                                                 [TRANSPORT_ps_lite] = ENCODING_int8};
    return (1u << first_without[cluster_transport(cluster)]) - 1;
}

enum lossiness transport_lossiness(const struct cluster *cluster) {
    enum lossiness most = LOSSY_none;
    for (uint32_t e = 0; e < ENCODING_COUNT; e++) {
        const enum lossiness its = encoding_lossiness((enum encoding)e);
        most = transport_encodings(cluster) >> e & 1 && its > most ? its : most;
    }
    return most;
}
