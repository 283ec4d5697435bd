/* A list of communicators with what each is for. Unique ids travel by MPI from the first rank of the same ranks. */
#include "trial-runner/worker/nccl/network.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "trial-runner/worker/nccl/stream.h"
#include "trial-runner/worker/parts.h"
#include "trial-runner/worker/report.h"

struct network_link {
    struct network_link *next;
    enum network_kind kind;
    enum algorithm algorithm;
    uint32_t ranks, stride; /* of groups of devices; 0: all that are of this kind */
    ncclComm_t comm;
    int rank, size; /* in it */
    unsigned warm;  /* a bit for each dtype that it has moved, and one for each of which it has moved halves */
};

enum status network_open(struct network *network, struct world *world, struct error *err) {
    *network = (struct network){.world = world, .node = MPI_COMM_NULL};
    enum status status = device_choose(&network->device, world, err);
    if (status)
        return status;
    /* A call that returns before its kernel is on the stream would let the next event come too soon, and the variable
     * beats a communicator's configuration. */
    if (setenv("NCCL_COMM_BLOCKING", "1", 1) != 0)
        return error_no_memory(err);
    if (!world->is_server)
        MPI_Comm_split(world->workers, (int)world->node, (int)world->device, &network->node);
    world->backend = network;
    return ST_OK;
}

void network_close(struct network *network) {
    while (network->links) {
        struct network_link *next = network->links->next;
        if (network->links->comm)
            ncclCommDestroy(network->links->comm);
        free(network->links);
        network->links = next;
    }
    if (network->node != MPI_COMM_NULL)
        MPI_Comm_free(&network->node);
}

/* What NCCL calls it; "" leaves the choice to NCCL, NULL when it has none. */
static const char *nccl_word(enum algorithm algorithm) {
    switch (algorithm) {
    case ALGORITHM_auto:
        return "";
    case ALGORITHM_ring:
    case ALGORITHM_hierarchical: /* between the nodes */
    case ALGORITHM_all_gather:
        return "Ring";
    case ALGORITHM_double_tree: /* NCCL's only tree */
        return "Tree";
    default:
        return NULL;
    }
}

bool network_has(enum algorithm algorithm) {
    return nccl_word(algorithm) != NULL;
}

static MPI_Comm ranks_of(const struct network *network, enum network_kind kind) {
    switch (kind) {
    case NETWORK_WORKERS:
    case NETWORK_PARTS:
    case NETWORK_REPLICAS:
        return network->world->workers;
    case NETWORK_NODE:
    case NETWORK_RETURN:
        return network->node;
    case NETWORK_LEADERS:
        return network->world->between;
    default:
        return MPI_COMM_WORLD;
    }
}

/* The communicators of a job must go at once: peers wait inside kernels of theirs. */
static _Noreturn void fail(struct network *network, const char *what, ncclResult_t result) {
    struct error err = {.status = ST_OK};
    const char *last = ncclGetLastError(NULL);
    error_set(&err, ST_TRIAL, "NCCL, %s: %s%s%s", what, ncclGetErrorString(result), last && *last ? ": " : "",
              last ? last : "");
    report_error(&err);
    for (struct network_link *link = network->links; link; link = link->next)
        if (link->comm)
            ncclCommAbort(link->comm);
    report_end(ST_TRIAL);
}

void network_check(struct network *network, ncclResult_t result, const char *what) {
    if (result != ncclSuccess)
        fail(network, what, result);
}

void network_watch(struct network *network) {
    enum { EVERY_US = 10000 };
    const double now = clock_now_us();
    if (now - network->watched_us < EVERY_US)
        return;
    network->watched_us = now;
    for (struct network_link *link = network->links; link; link = link->next) {
        ncclResult_t result = ncclSuccess;
        if (link->comm)
            network_check(network, ncclCommGetAsyncError(link->comm, &result), "asking a communicator");
        network_check(network, result, "a message");
    }
}

/* How many of `blocks` a kernel of this kind may have. For sends and receives NCCL rounds its limit up to a power of
 * two, so we give it a power of two. */
static int blocks_of(enum network_kind kind, int blocks) {
    int power = 1;
    while (power * 2 <= blocks)
        power *= 2;
    return kind == NETWORK_PUSH || kind == NETWORK_PULL || kind == NETWORK_PARTS ? power : blocks;
}

static void make(struct network *network, struct network_link *link, MPI_Comm ranks, const char *word) {
    ncclUniqueId id;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    const char *set = getenv("NCCL_ALGO");
    char *before = set ? strdup(set) : NULL;
    MPI_Comm_rank(ranks, &link->rank);
    MPI_Comm_size(ranks, &link->size);
    if (link->rank == 0)
        network_check(network, ncclGetUniqueId(&id), "making an id");
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, ranks);
    config.blocking = 1;
    config.maxCTAs = blocks_of(link->kind, network->device.blocks);
    config.cgaClusterSize = 0; /* blocks of a cluster need neighbours: what fits one by one might not fit */
    if (*word)
        setenv("NCCL_ALGO", word, 1);
    network_check(network, ncclCommInitRankConfig(&link->comm, link->size, id, link->rank, &config),
                  "making a communicator");
    if (before)
        setenv("NCCL_ALGO", before, 1);
    else
        unsetenv("NCCL_ALGO");
    free(before);
}

/* Groups of `ranks` devices, `stride` apart, have a communicator each. */
static MPI_Comm split(const struct network *network, uint32_t ranks, uint32_t stride) {
    const uint32_t device = network->world->device, n = network->world->cluster->n_devices;
    const struct message like = {.ranks = ranks, .stride = stride};
    MPI_Comm group;
    MPI_Comm_split(network->world->workers, (int)part_group(&like, device, n).first, (int)device, &group);
    return group;
}

/* NULL at a rank that it leaves out. */
static struct network_link *find_group_link(struct network *network, enum network_kind kind, enum algorithm algorithm,
                                            uint32_t ranks, uint32_t stride) {
    MPI_Comm members = ranks_of(network, kind);
    const char *word = nccl_word(algorithm);
    if (members == MPI_COMM_NULL || !word)
        return NULL;
    for (struct network_link *link = network->links; link; link = link->next)
        if (link->kind == kind && link->ranks == ranks && link->stride == stride &&
            strcmp(nccl_word(link->algorithm), word) == 0)
            return link;
    struct network_link *link = report_alloc(1, sizeof *link);
    *link = (struct network_link){
        .next = network->links, .kind = kind, .algorithm = algorithm, .ranks = ranks, .stride = stride};
    if (ranks > 0)
        members = split(network, ranks, stride);
    make(network, link, members, word);
    if (ranks > 0)
        MPI_Comm_free(&members);
    return network->links = link;
}

static struct network_link *find_link(struct network *network, enum network_kind kind, enum algorithm algorithm) {
    return find_group_link(network, kind, algorithm, 0, 0);
}

ncclComm_t network_comm(struct network *network, enum network_kind kind, enum algorithm algorithm) {
    const struct network_link *link = find_link(network, kind, algorithm);
    return link ? link->comm : NULL;
}

/* powersgd is all-reduced. */
static bool goes_in_parts(const struct message *message) {
    return message->encoder == ENCODING_int8 || message->encoder == ENCODING_topk;
}

static struct network_link *link_of(struct network *network, const struct message *message) {
    const enum network_kind kind = world_sums_in_nodes(network->world, message) ? NETWORK_LEADERS
                                   : message_is_of_replicas(message)            ? NETWORK_REPLICAS
                                   : goes_in_parts(message)                     ? NETWORK_PARTS
                                                                                : NETWORK_WORKERS;
    return find_group_link(network, kind, message->algorithm, message->ranks, message->ranks > 0 ? message->stride : 0);
}

ncclComm_t network_comm_of(struct network *network, const struct message *message) {
    const struct network_link *link = link_of(network, message);
    return link ? link->comm : NULL;
}

ncclDataType_t network_type(enum dtype dtype) {
    static const ncclDataType_t types[DTYPE_COUNT] = {
        [DTYPE_f32] = ncclFloat32, [DTYPE_f16] = ncclFloat16, [DTYPE_bf16] = ncclBfloat16, [DTYPE_f64] = ncclFloat64,
        [DTYPE_i32] = ncclInt32,   [DTYPE_i64] = ncclInt64,   [DTYPE_u8] = ncclUint8,
    };
    return types[dtype];
}

/* Until the default stream is done, or a communicator has failed. */
static void settle(struct network *network) {
    cudaError_t result;
    cudaEvent_t end = event_new(false);
    device_check(cudaEventRecord(end, NULL), "recording an event");
    while ((result = cudaEventQuery(end)) == cudaErrorNotReady) {
        network_watch(network);
        device_rest(&network->device);
    }
    device_check(result, "the GPU");
    device_check(cudaEventDestroy(end), "ending an event");
}

/* True once for each type, and once for its halves; false where there is no link. */
static bool is_cold(struct network_link *link, enum dtype dtype, bool halves) {
    const unsigned bit = 1u << (halves ? DTYPE_COUNT + (int)dtype : (int)dtype);
    if (!link || link->warm & bit)
        return false;
    link->warm |= bit;
    return true;
}

enum { GROWTH = 16 }; /* from size to size of first uses */

/* NCCL connects at the first use of an algorithm, which follows from size and type. */
static void warm_up_sums(struct network *network, struct network_link *link, enum dtype dtype, uint64_t max_bytes,
                         char *scratch) {
    const uint64_t width = dtype_bytes(dtype);
    if (!is_cold(link, dtype, false))
        return;
    for (uint64_t bytes = width; bytes < max_bytes * GROWTH; bytes *= GROWTH)
        network_check(network,
                      ncclAllReduce(scratch, scratch, (bytes < max_bytes ? bytes : max_bytes) / width,
                                    network_type(dtype), ncclSum, link->comm, NULL),
                      "a first all-reduce");
    settle(network);
}

static void warm_up_halves(struct network *network, struct network_link *link, enum dtype dtype, uint64_t max_bytes,
                           char *scratch) {
    const ncclDataType_t type = network_type(dtype);
    if (!is_cold(link, dtype, true))
        return;
    const uint64_t width = dtype_bytes(dtype), n = (uint64_t)link->size;
    for (uint64_t bytes = n * width; bytes < max_bytes * GROWTH; bytes *= GROWTH) {
        const uint64_t count = (bytes < max_bytes ? bytes : max_bytes) / width / n;
        char *part = scratch + (uint64_t)link->rank * count * width;
        network_check(network, ncclReduceScatter(scratch, part, count, type, ncclSum, link->comm, NULL),
                      "a first reduce-scatter");
        network_check(network, ncclAllGather(part, scratch, count, type, link->comm, NULL), "a first all-gather");
    }
    settle(network);
}

/* A byte from each device to each other. */
static void warm_up_parts(struct network *network, struct network_link *link, char *scratch) {
    if (!is_cold(link, DTYPE_u8, false))
        return;
    network_check(network, ncclGroupStart(), "a group");
    for (int step = 1; step < link->size; step++) {
        const int to = (link->rank + step) % link->size, from = (link->rank + link->size - step) % link->size;
        network_check(network, ncclSend(scratch, 1, ncclUint8, to, link->comm, NULL), "a first message");
        network_check(network, ncclRecv(scratch + 1, 1, ncclUint8, from, link->comm, NULL), "a first message");
    }
    network_check(network, ncclGroupEnd(), "a group");
    settle(network);
}

/* Of all devices together up to max_bytes. */
static void warm_up_gathers(struct network *network, struct network_link *link, uint64_t max_bytes, char *scratch) {
    if (!is_cold(link, DTYPE_u8, true))
        return;
    const uint64_t n = (uint64_t)link->size;
    for (uint64_t bytes = n; bytes < max_bytes * GROWTH; bytes *= GROWTH) {
        const uint64_t count = (bytes < max_bytes ? bytes : max_bytes) / n;
        network_check(
            network, ncclAllGather(scratch + (uint64_t)link->rank * count, scratch, count, ncclUint8, link->comm, NULL),
            "a first all-gather");
    }
    settle(network);
}

/* What comes from all devices of a message by topk grows with their number. */
static uint64_t largest_gather(const struct plan *plan) {
    uint64_t most = plan->max_bytes;
    for (uint32_t m = 0; m < plan->n_messages; m++) {
        const uint64_t all = plan->messages[m].bytes * plan->cluster->n_devices;
        most = plan->messages[m].encoder == ENCODING_topk && all > most ? all : most;
    }
    return most;
}

static void warm_up_encoder(struct network *network, const struct plan *plan, const struct message *message,
                            char *scratch) {
    struct network_link *link = link_of(network, message);
    if (message->encoder == ENCODING_int8)
        warm_up_parts(network, link, scratch);
    warm_up_gathers(network, link, largest_gather(plan), scratch);
}

static void warm_up_node(struct network *network, struct network_link *link, enum dtype dtype, char *scratch) {
    const ncclDataType_t type = network_type(dtype);
    if (!is_cold(link, dtype, false))
        return;
    network_check(network, ncclReduce(scratch, scratch, 1, type, ncclSum, 0, link->comm, NULL), "a first reduce");
    network_check(network, ncclBroadcast(scratch, scratch, 1, type, 0, link->comm, NULL), "a first broadcast");
    settle(network);
}

/* Between every worker and every server: a byte from the one to the other. */
static void warm_up_pairs(struct network *network, ncclComm_t comm, bool pushes, char *scratch) {
    const struct world *world = network->world;
    const bool sends = world->is_server != pushes;
    network_check(network, ncclGroupStart(), "a group");
    for (uint32_t d = 0; world->is_server && d < world->cluster->n_devices; d++)
        network_check(network,
                      sends ? ncclSend(scratch, 1, ncclUint8, world->worker_rank[d], comm, NULL)
                            : ncclRecv(scratch, 1, ncclUint8, world->worker_rank[d], comm, NULL),
                      "a first message");
    for (uint32_t i = 0; !world->is_server && i < world->cluster->n_nodes; i++)
        if (world->server_rank[i] >= 0)
            network_check(network,
                          sends ? ncclSend(scratch, 1, ncclUint8, world->server_rank[i], comm, NULL)
                                : ncclRecv(scratch, 1, ncclUint8, world->server_rank[i], comm, NULL),
                          "a first message");
    network_check(network, ncclGroupEnd(), "a group");
}

void network_connect_pair(struct network *network, int sender, int receiver, enum network_kind kind, void *scratch) {
    const int rank = network->world->rank;
    ncclComm_t comm = network_comm(network, kind, ALGORITHM_auto);
    if (rank == sender)
        network_check(network, ncclSend(scratch, 1, ncclUint8, receiver, comm, NULL), "a first message");
    if (rank == receiver)
        network_check(network, ncclRecv(scratch, 1, ncclUint8, sender, comm, NULL), "a first message");
    settle(network);
}

static void connect_message(struct network *network, const struct plan *plan, uint32_t m, char *scratch) {
    const struct message *message = &plan->messages[m];
    const enum dtype dtype = message->encoder ? DTYPE_f32 : message->dtype;
    const bool in_nodes = world_sums_in_nodes(network->world, message), sums = message->kind == SYNC_ALL_REDUCE;
    if (in_nodes)
        warm_up_node(network, find_link(network, NETWORK_NODE, ALGORITHM_auto), dtype, scratch);
    if (message->half && !message_is_of_replicas(message))
        warm_up_halves(network, link_of(network, message), dtype, plan->max_bytes, scratch);
    else if (goes_in_parts(message))
        warm_up_encoder(network, plan, message, scratch);
    else if (sums)
        warm_up_sums(network, link_of(network, message), dtype, plan->max_bytes, scratch);
    else if (in_nodes)
        warm_up_node(network, find_link(network, NETWORK_RETURN, ALGORITHM_auto), dtype, scratch);
}

void network_connect(struct network *network, const struct plan *plan, void *scratch) {
    for (uint32_t m = 0; !network->world->is_server && m < plan->n_messages; m++)
        connect_message(network, plan, m, scratch);
    if (plan->any_server) {
        warm_up_pairs(network, network_comm(network, NETWORK_PUSH, ALGORITHM_auto), true, scratch);
        warm_up_pairs(network, network_comm(network, NETWORK_PULL, ALGORITHM_auto), false, scratch);
    }
    settle(network);
}

void note_send(struct requests *requests, const struct world *world, enum note_kind kind, int rank, uint32_t message) {
    requests_send_copy(requests, &message, sizeof message, rank, (int)kind, world->pushes);
}

bool note_take(const struct world *world, struct note *out) {
    int found;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, world->pushes, &found, &status);
    if (!found)
        return false;
    *out = (struct note){.kind = (enum note_kind)status.MPI_TAG, .rank = status.MPI_SOURCE};
    MPI_Recv(&out->message, sizeof out->message, MPI_BYTE, out->rank, status.MPI_TAG, world->pushes, MPI_STATUS_IGNORE);
    return true;
}
