/* Ranks of a host find each other by MPI's shared-memory communicator, GPUs by their UUID, which is the same whatever
 * CUDA_VISIBLE_DEVICES makes of their numbers. */
#include "trial-runner/worker/nccl/device.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trial-runner/worker/nccl/kernels.h"
#include "trial-runner/worker/pause.h"
#include "trial-runner/worker/report.h"

void device_check(cudaError_t result, const char *what) {
    if (result != cudaSuccess)
        report_abort(ST_TRIAL, "%s: %s", what, cudaGetErrorString(result));
}

/* Streams that share a queue to the GPU wait for each other, and here some wait for other ranks; so each of a rank's
 * streams, and the default one, must have its own. MPS gives its clients queues from one pool, so no rank takes more
 * than it needs. CUDA reads the variable at its first call. */
static void ask_for_queues(void) {
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", device_has_mps() ? "8" : "32", 0);
}

enum status device_look(int *count, struct error *err) {
    char host[64] = "";
    ask_for_queues();
    cudaError_t result = cudaGetDeviceCount(count);
    gethostname(host, sizeof host - 1);
    if (result != cudaSuccess)
        return error_set(err, ST_ENVIRONMENT, "no GPU can be used on %s: %s", host, cudaGetErrorString(result));
    if (*count == 0)
        return error_set(err, ST_ENVIRONMENT, "no GPU on %s", host);
    return ST_OK;
}

enum status device_agree(enum status status, struct error *err) {
    int rank;
    struct error shared = {.status = ST_OK};
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    struct {
        int failed, rank;
    } mine = {status ? 1 : 0, rank}, first;
    MPI_Allreduce(&mine, &first, 1, MPI_2INT, MPI_MAXLOC, MPI_COMM_WORLD);
    if (!first.failed)
        return ST_OK;
    if (rank == first.rank)
        error_pass(&shared, err);
    MPI_Bcast(&shared, sizeof shared, MPI_BYTE, first.rank, MPI_COMM_WORLD);
    return error_pass(err, &shared);
}

bool device_has_mps(void) {
    char path[4096];
    const char *folder = getenv("CUDA_MPS_PIPE_DIRECTORY");
    snprintf(path, sizeof path, "%s/control", folder ? folder : "/tmp/nvidia-mps");
    return access(path, F_OK) == 0;
}

static bool asked_to_share(void) {
    const char *word = getenv("SYNCOPATE_SHARE_GPU");
    return word && strcmp(word, "1") == 0;
}

struct seat {
    char uuid[16];
    bool serves;
};

/* A rank of this host that has the same GPU and precedes this one: workers precede servers, else the lower rank does.
 * -1 when there is none. */
static int find_sharer(const struct seat *seats, int me, int n) {
    for (int i = 0; i < n; i++)
        if ((seats[i].serves < seats[me].serves || (seats[i].serves == seats[me].serves && i < me)) &&
            memcmp(seats[i].uuid, seats[me].uuid, sizeof seats[me].uuid) == 0)
            return i;
    return -1;
}

static enum status separate(const struct device *device, const struct world *world, const struct seat *seats, int me,
                            int n, struct error *err) {
    char host_id[32], host[64] = "";
    const int other = find_sharer(seats, me, n);
    snprintf(host_id, sizeof host_id, "syncopate-%d", world->rank);
    gethostname(host, sizeof host - 1);
    if (!device->shared && other >= 0 && !seats[me].serves)
        return error_set(err, ST_ENVIRONMENT,
                         "%d ranks on %s, but fewer GPUs: give the cluster's nodes as many devices as they have GPUs, "
                         "or let ranks share one with --share-gpu",
                         n, host);
    if (!device->shared && other < 0)
        return ST_OK;
    /* In a multi-node NVLink domain NCCL would ignore the ids of hosts. */
    if (setenv("NCCL_HOSTID", host_id, 1) != 0 || setenv("NCCL_MNNVL_ENABLE", "0", 0) != 0)
        return error_no_memory(err);
    return ST_OK;
}

/* This rank's number among those of its host: workers first, so that servers do not take their GPUs. */
static int number_on_host(const struct world *world, MPI_Comm host, int me, int n) {
    int number = 0;
    const char serves = world->is_server;
    char *all = report_alloc((size_t)n, 1);
    MPI_Allgather(&serves, 1, MPI_BYTE, all, 1, MPI_BYTE, host);
    for (int i = 0; i < n; i++)
        number += all[i] < serves || (all[i] == serves && i < me);
    free(all);
    return number;
}

static enum status take(struct device *device, int count, int number, struct seat *seat, struct error *err) {
    struct cudaDeviceProp properties;
    device->shared = asked_to_share();
    device->index = device->shared ? 0 : number % count;
    cudaError_t result = cudaSetDevice(device->index);
    if (result == cudaSuccess)
        result = cudaGetDeviceProperties(&properties, device->index);
    if (result == cudaSuccess)
        result = kernels_load();
    if (result == cudaSuccess)
        result = cudaDeviceGetStreamPriorityRange(&device->idle, &device->urgent);
    if (result == cudaErrorMemoryAllocation && device_has_mps())
        return error_set(err, ST_ENVIRONMENT,
                         "GPU %d cannot be used: %s: MPS has queues for about 12 ranks, let fewer share the GPU",
                         device->index, cudaGetErrorString(result));
    if (result != cudaSuccess)
        return error_set(err, ST_ENVIRONMENT, "GPU %d cannot be used: %s", device->index, cudaGetErrorString(result));
    device->blocks = properties.multiProcessorCount;
    snprintf(device->name, sizeof device->name, "%.63s", properties.name);
    memcpy(seat->uuid, &properties.uuid, sizeof seat->uuid);
    return ST_OK;
}

static enum status choose_on_host(struct device *device, const struct world *world, MPI_Comm host, struct seat *seat,
                                  struct error *err) {
    int me, n, count = 0;
    seat->serves = world->is_server;
    MPI_Comm_rank(host, &me);
    MPI_Comm_size(host, &n);
    const int number = number_on_host(world, host, me, n);
    enum status status = device_look(&count, err);
    if (!status)
        status = take(device, count, number, seat, err);
    struct seat *seats = report_alloc((size_t)n, sizeof *seats);
    MPI_Allgather(seat, sizeof *seat, MPI_BYTE, seats, sizeof *seat, MPI_BYTE, host);
    if (!status)
        status = separate(device, world, seats, me, n, err);
    device->crowded = n >= sysconf(_SC_NPROCESSORS_ONLN);
    free(seats);
    return status;
}

/* Ranks on this rank's GPU, itself among them. A GPU's UUID is its own among all hosts, and hosts of MPI that are
 * namespaces of one machine have the same GPU. */
static int count_sharers(const struct world *world, const struct seat *seat) {
    int count = 0;
    struct seat *seats = report_alloc((size_t)world->size, sizeof *seats);
    MPI_Allgather(seat, sizeof *seat, MPI_BYTE, seats, sizeof *seat, MPI_BYTE, MPI_COMM_WORLD);
    for (int i = 0; i < world->size; i++)
        count += memcmp(seats[i].uuid, seat->uuid, sizeof seat->uuid) == 0;
    free(seats);
    return count;
}

/* Without MPS the ranks' kernels take turns, so only the kernels of one rank must fit at once, and with one block each
 * they always do. */
static enum status share_blocks(struct device *device, const struct world *world, const struct seat *seat,
                                struct error *err) {
    const int all = device->blocks, sharers = count_sharers(world, seat);
    int blocks = all / (DEVICE_KERNELS * sharers);
    const bool crammed = blocks == 0 && all > 0 && device_has_mps();
    blocks = blocks > 0 ? blocks : 1;
    MPI_Allreduce(&blocks, &device->blocks, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (crammed)
        return error_set(
            err, ST_ENVIRONMENT,
            "%d ranks on a GPU of %d multiprocessors under MPS, where the kernels of at most %d are sure to "
            "run together: let fewer share it, or end MPS",
            sharers, all, all / DEVICE_KERNELS);
    return ST_OK;
}

enum status device_choose(struct device *device, const struct world *world, struct error *err) {
    MPI_Comm host;
    struct seat seat = {.uuid = ""};
    *device = (struct device){0};
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, world->rank, MPI_INFO_NULL, &host);
    enum status status = choose_on_host(device, world, host, &seat, err);
    MPI_Comm_free(&host);
    const enum status shared = share_blocks(device, world, &seat, !status ? err : NULL);
    return device_agree(!status ? shared : status, err);
}

/* Clearing and copying return before they are done, and our streams do not wait for the default one. */
static void settle_default(void) {
    device_check(cudaStreamSynchronize(NULL), "the GPU");
}

void *device_alloc(uint64_t bytes) {
    void *memory = NULL;
    cudaError_t result = cudaMalloc(&memory, bytes ? bytes : 1);
    if (result != cudaSuccess)
        report_abort(ST_NO_MEMORY, "%llu bytes of GPU memory: %s", (unsigned long long)bytes,
                     cudaGetErrorString(result));
    device_check(cudaMemset(memory, 0, bytes ? bytes : 1), "clearing GPU memory");
    settle_default();
    return memory;
}

void device_free(void *memory) {
    device_check(cudaFree(memory), "freeing GPU memory");
}

uint64_t device_left_bytes(void) {
    size_t left = 0, all = 0;
    device_check(cudaMemGetInfo(&left, &all), "asking for GPU memory");
    return left;
}

void *device_upload(const void *data, uint64_t bytes) {
    void *memory = device_alloc(bytes);
    device_check(cudaMemcpy(memory, data, bytes, cudaMemcpyHostToDevice), "copying to the GPU");
    settle_default();
    return memory;
}

void device_rest(const struct device *device) {
    if (device->crowded)
        pause_once();
    else
        sched_yield();
}
