/* Everything that the simulator asks of a cluster, worked out once: all-reduce tables, rates and latencies.
 *
 * Rates are bytes per microsecond. Those of NICs, overridden links and device links are what the transport leaves for
 * the bytes of gradients (strategy/cost/transport.h). A rate of INFINITY costs no time.
 *
 * Latency of one push or pull, beside its bytes:
 *   on one node     runtime.push_us
 *   between nodes   the larger of runtime.push_us and the two NICs' latencies
 * Where pushes (or pulls) were measured, the smallest one replaces push_us: its time without that of its bytes. The
 * rate of its bytes is that between the first and the last node with devices, where bench measures.
 *
 * `burst_bytes`: how many bytes a NIC that was idle passes at once, as a token bucket does. A measured push curve shows
 * it: as long as a larger push takes less than half the time that its bytes need, burst_bytes are the bytes by which
 * the push is ahead of the rate. Measured all-reduces may show more (strategy/cost/all_reduce.h).
 *
 * `eager_bytes`: the runtime's figure. Where that is not known but pushes were measured: the eager limit of the
 * transport of syncopate-worker-mpi, which measured them. Else INFINITY: no push waits for its receiver's answer.
 *
 * `connected`: what one process sends another goes over one connection, in order: where eager_bytes is known, and with
 * gloo. `workers_serve`: with gloo and syncopate_torch's hook a server is a rank that also works. Receives are posted
 * beforehand there, so eager_bytes is INFINITY, whatever the description says.
 * Threads: a const struct cost may be shared. */
#ifndef STRATEGY_COST_COST_H
#define STRATEGY_COST_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "strategy/cluster.h"
#include "strategy/cost/all_reduce.h"
#include "strategy/cost/rank_groups.h"

struct message; /* strategy/plan.h */

struct gather_limit {
    uint32_t ranks;
    double wire; /* bytes through each worker's NIC in each direction, of each byte that is gathered */
};

struct cost {
    struct arena arena;            /* owns what the pointers show */
    const struct cluster *cluster; /* borrowed: must outlive this */
    struct runtime runtime;        /* measured, else the transport's typical figures */
    struct all_reduce_table all_reduce;
    struct rank_groups groups;     /* what moves within groups of devices */
    double narrowest_bytes_per_us; /* all_reduce_narrowest_bytes_per_us */
    uint32_t n_workers;            /* nodes with devices */
    const uint32_t *workers;       /* their positions, rising */
    const double *nic_bytes_per_us;
    const double *device_link_bytes_per_us;
    double copy_bytes_per_us, sum_bytes_per_us, encode_bytes_per_us, int8_bytes_per_us, topk_bytes_per_us,
        powersgd_bytes_per_us;
    /* Where every device sends a part of its bytes to each other device: through the NIC that takes longest. */
    double direct_per_byte_us;
    double push_us, pull_us; /* between nodes, NIC latency aside */
    double burst_bytes, eager_bytes;
    struct interference in_startup, in_transfer; /* shares of speed; 1 where nothing was measured */
    bool interferes;                             /* some share is below 1 */
    bool connected, workers_serve;               /* how pushes and pulls go, see above */
    bool in_order;                               /* all-reduces follow one another (transport_is_in_order) */
    /* What no transport can beat: the same without profiles, and never above the cost that the timeline charges.
     * simulator/bound.h rests on these. */
    const double *limit_nic_bytes_per_us;
    double limit_device_link_bytes_per_us; /* of the first node with devices */
    double limit_all_reduce_wire;          /* bytes through each worker's NIC, of each byte that is all-reduced */
    double limit_all_reduce_per_byte_us;   /* on one node, between its devices */
    double limit_all_reduce_startup_us, limit_gather_startup_us;
    /* The same three where gradients may be summed within groups of devices, and then among replicas; none is larger.
     */
    double limit_replicas_wire, limit_replicas_per_byte_us, limit_replicas_startup_us;
    /* Of an all-gather among so many consecutive devices, by their number, on several nodes; none where NICs have no
     * rate. */
    uint32_t n_limit_gathers;
    const struct gather_limit *limit_gathers;
    double limit_message_us;             /* launch of a message */
    double limit_push_us, limit_pull_us; /* latency between any two nodes */
    double limit_local_us;               /* and on one node, either way */
    uint32_t slowest;                    /* the worker node with the largest compute_scale, the first if several */
};

/* Fails: ST_INVALID (no device), ST_NO_MEMORY. Release with cost_release. */
enum status cost_init(struct cost *cost, const struct cluster *cluster, struct error *err);
void cost_release(struct cost *cost);

/* What a node's NIC leaves for gradients while its rate is this one (strategy/weather.h). */
double cost_nic_bytes_per_us(const struct cost *cost, uint32_t node, double gbit_per_s);

/* Latency of one push from node `worker` to a server on node `server`, or of one pull the other way. */
double cost_push_latency_us(const struct cost *cost, uint32_t worker, uint32_t server);
double cost_pull_latency_us(const struct cost *cost, uint32_t worker, uint32_t server);

/* Bringing what is encoded of a message into it, and out of it. */
double cost_encode_us(const struct cost *cost, const struct message *message);
double cost_decode_us(const struct cost *cost, const struct message *message);

/* What a message asks of the processor that launched it, after the launch: with an encoder its ways, what it computes
 * between them, and decoding; else nothing. */
double cost_later_us(const struct cost *cost, const struct message *message);

/* A device's conversion of its part of sharded parameters: before an all-gather, or of a sum that has come. */
double cost_convert_us(const struct cost *cost, const struct message *message);

/* direct_per_byte_us, from the rates of NICs; and what a message with an encoder has in place of an all-reduce
 * (strategy/cost/encoded.c). O(nodes); O(log points). */
double cost_direct_per_byte_us(const struct cost *cost);
struct all_reduce_cost cost_encoded(const struct cost *cost, const struct message *message);

/* An all-reduce of a plan, or half of one, or what a message with an encoder has in its place. Of that, the passes over
 * gradients between the first and the last byte are part of startup_us, since the network is free meanwhile. */
struct all_reduce_cost cost_all_reduce(const struct cost *cost, const struct message *message);

/* Whether it never touches a NIC, on a cluster of several nodes: it moves within groups of devices of one node. */
bool cost_stays_in_nodes(const struct cost *cost, const struct message *message);

#endif
