/* What a transport costs where nobody measured it: typical figures, each with its source, and the algorithm that its
 * library chooses for an all-reduce.
 *
 * A figure of the cluster's description comes first. Only what it leaves out is taken from here; transport `ideal`
 * takes nothing from here, so what was not measured is free. Figures of a profile are what people and papers report of
 * such systems, not properties of one machine; transport_known_error() says how far off predictions from them are.
 *
 * A network is RDMA (InfiniBand, RoCE) or TCP. A described NIC latency of at most 10 us says RDMA, since no kernel's
 * TCP stack is that fast, and a larger one says TCP, whatever the rate: TCP over InfiniBand is TCP. Without a latency,
 * a NIC of 100 Gbit/s and more is taken for RDMA.
 *
 * A device link of more than 32 GB/s is NVLink; what is slower is PCIe (4.0 with 16 lanes has 32 GB/s).
 *
 * Units: in the names. Threads: pure functions. */
#ifndef STRATEGY_COST_TRANSPORT_H
#define STRATEGY_COST_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "strategy/cluster.h"
#include "strategy/strategy.h"

/* An all-reduce begins when the one before it has ended, as NCCL's kernels do on the stream of a communicator.
 * Frameworks use one communicator for all gradients (PyTorch's ProcessGroupNCCL; Horovod, HOROVOD_NUM_NCCL_STREAMS=1 by
 * default). Elsewhere those in flight move side by side. The parts of NCCL's
 * reduce-scatters and all-gathers are equal: what the devices do not divide is padded by less than an element for each,
 * which no cost counts; strategy/memory.h counts the padded copy. */
bool transport_is_in_order(const struct cluster *cluster);

/* Servers are ranks that also work, two ranks have one connection, and receives are posted before anything is sent, but
 * for pulls in turns: gloo by syncopate_torch's hook. Elsewhere servers are processes of their own. */
bool transport_workers_serve(const struct cluster *cluster);

/* The figures of the description, and the profile's where it has none and there is more than one device. */
struct runtime transport_runtime(const struct cluster *cluster);

/* What a NIC, and an overridden link between two nodes, leave for the bytes of gradients, in bytes per us. */
double transport_nic_bytes_per_us(const struct cluster *cluster, uint32_t node);
double transport_link_bytes_per_us(const struct cluster *cluster, const struct link *link);

double transport_nic_latency_us(const struct cluster *cluster, uint32_t node);

/* Between devices of a node, in bytes per us; INFINITY where the description has no rate. */
double transport_device_link_bytes_per_us(const struct cluster *cluster, uint32_t node);
bool transport_has_nvlink(const struct node *node);

/* Which figures of a cluster are the profile's, for people to read: "all-reduce, launch, copy". */
enum { TRANSPORT_FIGURES_TEXT = 128 };
const char *transport_typical_figures(const struct cluster *cluster, char out[TRANSPORT_FIGURES_TEXT]);

/* How far off predictions for such a cluster are known to be: |predicted / measured - 1| on runs that the figures were
 * not made from. */
struct transport_error {
    double median, p90;
    const char *runs; /* NULL: not known */
};

struct transport_error transport_known_error(const struct cluster *cluster);

/* The encodings that workers of the transport carry out, as a set of 1u << ENCODING_...: all encoders by MPI and
 * NCCL. And the most that one of them loses. */
uint32_t transport_encodings(const struct cluster *cluster);
enum lossiness transport_lossiness(const struct cluster *cluster);

#endif
