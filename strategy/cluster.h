/* A cluster: nodes, their devices, NICs and links, and what was measured on them (schema syncopate.cluster/1).
 *
 * The description is a JSON object. A member without a default is required; an unknown member is refused.
 *   "schema"         "syncopate.cluster/1"
 *   "name"           a name for people
 *   "transport"      what moves gradients: nccl, mpi, gloo, ps-lite or ideal; default: mpi where every device is a
 *                    "cpu", else nccl. It says what costs are that nobody measured (strategy/cost/transport.h); under
 *                    ideal they are zero. Under nccl all-reduces follow one another, under the others they may move
 *                    side by side
 *   "nodes"          an array of at least one node:
 *     "name"           unique; with "count" the numbers 1, 2, ... are added to it
 *     "count"          how many nodes are like this one; default 1
 *     "devices"        how many devices train on it, up to 64; default 1; 0 is a node that only serves
 *     "device"         what they are, such as "v100"; default "gpu". With "cpu", which is no GPU, trials do not choose
 *                      the NCCL worker by themselves
 *     "nic_gbit_per_s" rate of its NIC in each direction, in 10^9 bits a second
 *     "nic_latency_us" latency of its NIC in microseconds; default 0: not known
 *     "device_link_gbyte_per_s"  rate between its devices, and to a server on it, in 10^9 bytes a second; it may be
 *                      left out only where there is at most one device
 *     "device_memory_gbyte"  memory of each of its devices, in 10^9 bytes; default: not known
 *     "memory_gbyte"   memory of the node itself, for a server on it, in 10^9 bytes; default: not known
 *     "compute_scale"  operator times are multiplied by it; default 1; 1.5 is a straggler
 *   "links"          an array of paths that differ from what the two NICs allow, each in one direction; default none:
 *     "from", "to"     names of nodes
 *     "gbit_per_s"     rate, in 10^9 bits a second
 *   "collectives"    {"all_reduce": {"startup_us": a, "per_byte_ns": b}}: every all-reduce takes a + b * bytes / 1000
 *                    microseconds, whatever the algorithm; default: measurements, and formulas where there are none
 *   "measurements"   an array of times that were measured; default none:
 *     "operation"      all_reduce, push, pull, or half of a ring: reduce_scatter or all_gather
 *     "algorithm"      of an all_reduce: auto (default), ring, tree, double_tree, recursive_doubling, halving_doubling
 *                      or hierarchical
 *     "devices"        how many took part; required of all but push and pull, else 2
 *     "bytes"          of the message, on each device; of a half, what all devices have together
 *     "time_us"        microseconds
 *     "low_us", "high_us"  the interval around it that the repeats allow; default: not known
 *   "runtime"        costs that no link figure shows; `syncopate bench` measures them. What is left out, or 0 (of
 *                    goodput: 1), was not measured and is taken to be what is typical of the transport:
 *     "message_us"       launching one message: processor time on each participant, one after another
 *     "way_us"           sending and receiving all parts of one way of an encoder's message (strategy/encoder.h):
 *                        processor time likewise; default: message_us
 *     "coordination_us"  agreeing on the next collective where ranks do not issue in a fixed order (policy priority)
 *     "push_us"          one push or pull, on top of its bytes
 *     "copy_gbyte_per_s" gathering several gradients into a message, and scattering them again
 *     "sum_gbyte_per_s"  adding one gradient to another, on a server or between devices of a node
 *     "encode_gbyte_per_s" converting a gradient to the element type that it travels in, or back: bytes before encoding
 *     "int8_gbyte_per_s" encoding a gradient as int8 in blocks, or decoding it: bytes before encoding
 *     "topk_gbyte_per_s" taking the largest elements out of a gradient: bytes before encoding
 *     "powersgd_gbyte_per_s" all three passes of powersgd of rank 2 over a gradient: bytes before encoding
 *     "goodput"          the part of the NIC's rate that a flow's bytes get, at most 1
 *     "eager_bytes"      how large a message is sent before its receiver answers. A larger one waits for the answer
 *                        to its request. The answer to a push also returns the push's credit. Where it is not known,
 *                        strategy/cost/cost.h says what is assumed
 *   "interference"   how computing and traffic slow each other where they overlap; default: not at all
 *     "startup", "transfer"  while a message starts up, and while its bytes move: an object with
 *       "compute"        the share of its speed that computing keeps, in (0, 1]; default 1
 *       "traffic"        the share of its speed that the message keeps, in (0, 1]; default 1
 *       "beside"         of "startup" alone: the share of its speed that it keeps while bytes of other messages move,
 *                        in (0, 1]; default 1. Small messages wait behind those bytes in queues on their way
 *                    Measured times are then those of messages beside which nothing computes
 *   "variability"    how NICs and workers vary while training runs (strategy/weather.h); default: not at all
 *     "compute"        {"share", "factor", "drawn_every"}: with probability `share` a worker takes `factor` times as
 *                      long, drawn anew in every "iteration" (default) or once a "run"
 *     "network"        either {"every_us", "rates": [{"gbit_per_s", "share"}]}: each NIC and direction gets a new rate
 *                      every_us, with these probabilities, which add up to 1. Or {"until_us", "changes": [{"at_us",
 *                      "node", "direction", "gbit_per_s"}]}: a recorded trace, rising in time, which begins again
 *                      after until_us; directions are "out" and "in". No rate is above the NIC's. Either may have
 *       "monitor_lag_us"  how late a monitor reports a rate; default 0; it may stand alone, where only flows vary
 *     "background"     flows of other jobs from node to node, either {"flows_per_s", "mbytes", "gbit_per_s"}: so many
 *                      start in a second on average, anywhere in the cluster, of so many 10^6 bytes, and take up to
 *                      gbit_per_s of both NICs. Or {"until_us", "flows": [{"at_us", "from", "to", "mbytes",
 *                      "gbit_per_s"}]}: recorded ones, rising in time and over by until_us, which begin again then. No
 *                      rate is above a NIC's. What they leave of a NIC is for the job (strategy/weather.h)
 * Nodes with a "count" are written out when read. Devices are numbered node by node; each is one worker of
 * data-parallel training.
 * Threads: a const struct cluster may be shared. */
#ifndef STRATEGY_CLUSTER_H
#define STRATEGY_CLUSTER_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/id.h"
#include "strategy/names.h"

/* How a merge group is summed: X(name). all_gather is for sparse gradients alone: every device sends its touched rows
 * to all others, and each adds them up. The rest are all-reduces. */
#define ALGORITHM_TABLE(X)                                                                                             \
    X(auto) X(ring) X(tree) X(double_tree) X(recursive_doubling) X(halving_doubling) X(hierarchical) X(all_gather)

enum algorithm {
#define X(name) ALGORITHM_##name,
    ALGORITHM_TABLE(X)
#undef X
        ALGORITHM_COUNT,
    ALL_REDUCE_COUNT = ALGORITHM_all_gather /* all-reduces come first */
};

/* X(name): what a measurement timed. all_reduce: bytes per device, `devices` of them. push, pull: one message of
 * `bytes` between one worker and one server on different nodes. reduce_scatter, all_gather: half of a ring all-reduce
 * of `bytes`; each of the devices ends, or begins, with a part of them. */
#define OPERATION_TABLE(X) X(all_reduce) X(push) X(pull) X(reduce_scatter) X(all_gather)

enum operation {
#define X(name) OPERATION_##name,
    OPERATION_TABLE(X)
#undef X
        OPERATION_COUNT
};

/* X(name, word) */
#define TRANSPORT_TABLE(X) X(ideal, "ideal") X(nccl, "nccl") X(mpi, "mpi") X(gloo, "gloo") X(ps_lite, "ps-lite")

enum transport {
#define X(name, word) TRANSPORT_##name,
    TRANSPORT_TABLE(X)
#undef X
        TRANSPORT_COUNT,
    TRANSPORT_by_device = TRANSPORT_COUNT /* the description names none: cluster_transport has the default */
};

enum { CLUSTER_MAX_NODES = 16384, CLUSTER_MAX_DEVICES_PER_NODE = 64 };

struct node {
    const char *name;
    uint32_t devices;   /* 0 is allowed: a node that only serves */
    const char *device; /* what they are: "v100", "cpu" */
    double nic_gbit_per_s, nic_latency_us;
    double device_link_gbyte_per_s;           /* between devices of the node, and to its own server */
    double compute_scale;                     /* operator times are multiplied by it: 1.5 is a straggler */
    double device_memory_gbyte, memory_gbyte; /* of each device, and of the node itself; 0: not known */
    uint32_t first_device;                    /* number of its first device in the cluster */
};

struct link {
    uint32_t from, to; /* nodes; one direction */
    double gbit_per_s;
};

/* Of one worker and one server; all other operations are of all devices. */
static inline bool operation_is_one_way(enum operation operation) {
    return operation == OPERATION_push || operation == OPERATION_pull;
}

struct measurement {
    enum operation operation;
    enum algorithm algorithm; /* ALGORITHM_auto for all but all_reduce */
    uint32_t devices;
    uint64_t bytes;
    double time_us, low_us, high_us; /* 0, 0: no interval */
};

struct runtime {
    double message_us, way_us, coordination_us, push_us, copy_gbyte_per_s, sum_gbyte_per_s, encode_gbyte_per_s,
        int8_gbyte_per_s, topk_gbyte_per_s, powersgd_gbyte_per_s, goodput, eager_bytes;
};

/* What computing and a message keep of their speeds while they overlap, and what a startup keeps beside bytes of other
 * messages; 0: not measured, counts as 1. */
struct interference {
    double compute, traffic, beside;
};

enum direction { DIRECTION_OUT, DIRECTION_IN, DIRECTION_COUNT };
const char *direction_name(enum direction direction);

/* A rate and how likely it is. */
struct weather_rate {
    double gbit_per_s, share;
};

struct rate_change {
    double at_us;
    uint32_t node;
    enum direction direction;
    double gbit_per_s;
};

/* A flow of somebody else. It lasts as long as mbytes do at gbit_per_s. */
struct background_flow {
    double at_us;
    uint32_t from, to; /* nodes */
    double mbytes, gbit_per_s;
};

/* Zeroed: none. */
struct background {
    double flows_per_s;        /* drawn ones, in the whole cluster; 0: none are drawn */
    double mbytes, gbit_per_s; /* of a drawn one */
    double trace_us;           /* length of the recording; 0: none */
    uint32_t n_flows;
    const struct background_flow *flows; /* rising at_us, all over by trace_us */
};

/* "variability"; strategy/weather.h draws from it. */
struct variability {
    bool given; /* the description has the member */
    double slow_share, slow_factor;
    bool slow_for_good; /* who is slow is drawn once a run, not in every iteration */
    double every_us;    /* with rates */
    uint32_t n_rates;
    const struct weather_rate *rates;
    double trace_us; /* length of the trace; 0: none */
    uint32_t n_changes;
    const struct rate_change *changes; /* rising at_us, all below trace_us */
    double monitor_lag_us;             /* how late a monitor reports a rate */
    struct background background;
};

struct cluster {
    struct arena arena; /* owns everything below */
    struct id id;
    const char *name;
    enum transport transport;
    uint32_t n_nodes, n_devices, n_links, n_measurements;
    const struct node *nodes;
    const struct link *links;
    /* Sorted by operation, algorithm, devices, bytes; no two alike in all four. */
    const struct measurement *measurements;
    bool fixed_all_reduce; /* "collectives": time = startup_us + per_byte_ns * bytes / 1000, whatever the algorithm */
    double all_reduce_startup_us, all_reduce_per_byte_ns;
    struct runtime runtime;
    struct interference in_startup, in_transfer;
    struct variability variability;
    /* Not of the description: fixed costs are multiplied, and rates of NICs and links divided, by these, which a tuner
     * sets after trials. 0 counts as 1. Measured times and "collectives" are not touched. */
    double startup, transfer;
    struct names names; /* of the nodes */
};

const char *algorithm_name(enum algorithm algorithm);

/* A set of 1u << ALGORITHM_... as names with commas between ("ring,tree"), and back. `out` has ALGORITHMS_ROOM bytes.
 * Fails: ST_INVALID (an unknown name, or no all-reduce among them). */
enum { ALGORITHMS_ROOM = 128 };
enum status algorithms_parse(const char *names, uint32_t *set, struct error *err);
void algorithms_write(uint32_t set, char *out);

const char *operation_name(enum operation operation);
const char *transport_name(enum transport transport); /* not of TRANSPORT_by_device */

/* The transport that the description names, else `mpi` where every device is a "cpu", else `nccl`. */
enum transport cluster_transport(const struct cluster *cluster);

enum status cluster_read(const cJSON *json, const char *name, struct cluster *out, struct error *err);
enum status cluster_read_file(const char *path, struct cluster *out, struct error *err);

/* The description, expanded and with every default written out but those of eager_bytes and of encodings; NULL
 * when memory is out. */
cJSON *cluster_write(const struct cluster *cluster);

/* Whether what messages cost on the cluster is yet to be measured: it has several devices, neither "measurements" nor
 * "collectives", and a transport other than "ideal". */
bool cluster_wants_bench(const struct cluster *cluster);

/* Whether two descriptions have the same transport (cluster_transport) and differ at most in what a bench measures:
 * "measurements", "runtime" and "interference". Fails: ST_NO_MEMORY. */
enum status cluster_is_same_but_measured(const struct cluster *a, const struct cluster *b, bool *same,
                                         struct error *err);

/* Append one measurement to an array of them; false when memory is out. */
bool measurement_write(const struct measurement *measurement, cJSON *array);

int64_t cluster_find_node(const struct cluster *cluster, const char *name); /* or -1 */
uint32_t cluster_node_of_device(const struct cluster *cluster, uint32_t device);
/* How many consecutive devices make groups that stay in nodes: the most that divide the devices of every node. 0 where
 * that is one, or not fewer than `among`. */
uint32_t cluster_ranks_in_nodes(const struct cluster *cluster, uint32_t among);

void cluster_release(struct cluster *cluster);

#endif
