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

enum status device_look(int *count, struct error *err) {
    char host[64] = "";
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
    } mine = {status != ST_OK, rank}, first;
    MPI_Allreduce(&mine, &first, 1, MPI_2INT, MPI_MAXLOC, MPI_COMM_WORLD);
    if (!first.failed)
        return ST_OK;
    if (rank == first.rank)
        error_set(&shared, status, "%s", err->message);
    MPI_Bcast(&shared, sizeof shared, MPI_BYTE, first.rank, MPI_COMM_WORLD);
    return error_set(err, shared.status, "%s", shared.message);
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

/* Another rank of this host that has the same GPU and, of two of a kind, comes before; servers give way to workers.
 * -1 when there is none. */
static int find_sharer(const struct seat *seats, int me, int n) {
    for (int i = 0; i < n; i++)
        if ((seats[i].serves < seats[me].serves || (seats[i].serves == seats[me].serves && i < me)) &&
            memcmp(seats[i].uuid, seats[me].uuid, sizeof seats[me].uuid) == 0)
            return i;
    return -1;
}

/* Ranks of this host on this rank's GPU, itself among them. */
static int count_sharers(const struct seat *seats, int me, int n) {
    int count = 0;
    for (int i = 0; i < n; i++)
        count += memcmp(seats[i].uuid, seats[me].uuid, sizeof seats[me].uuid) == 0;
    return count;
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
    /* Where hosts form one NVLink domain, NCCL would look past them. */
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
    if (result != cudaSuccess)
        return error_set(err, ST_ENVIRONMENT, "GPU %d cannot be used: %s", device->index, cudaGetErrorString(result));
    device->blocks = properties.multiProcessorCount;
    snprintf(device->name, sizeof device->name, "%.63s", properties.name);
    memcpy(seat->uuid, &properties.uuid, sizeof seat->uuid);
    return ST_OK;
}

static enum status choose_on_host(struct device *device, const struct world *world, MPI_Comm host, struct error *err) {
    int me, n, count = 0;
    struct seat seat = {.serves = world->is_server};
    MPI_Comm_rank(host, &me);
    MPI_Comm_size(host, &n);
    const int number = number_on_host(world, host, me, n);
    enum status status = device_look(&count, err);
    if (status == ST_OK)
        status = take(device, count, number, &seat, err);
    struct seat *seats = report_alloc((size_t)n, sizeof *seats);
    MPI_Allgather(&seat, sizeof seat, MPI_BYTE, seats, sizeof seat, MPI_BYTE, host);
    if (status == ST_OK)
        status = separate(device, world, seats, me, n, err);
    device->crowded = n >= sysconf(_SC_NPROCESSORS_ONLN);
    device->blocks /= DEVICE_KERNELS * count_sharers(seats, me, n);
    free(seats);
    return status;
}

static void agree_on_blocks(struct device *device) {
    MPI_Allreduce(MPI_IN_PLACE, &device->blocks, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    device->blocks = device->blocks > 0 ? device->blocks : 1;
}

enum status device_choose(struct device *device, const struct world *world, struct error *err) {
    MPI_Comm host;
    *device = (struct device){0};
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, world->rank, MPI_INFO_NULL, &host);
    enum status status = choose_on_host(device, world, host, err);
    MPI_Comm_free(&host);
    agree_on_blocks(device);
    return device_agree(status, err);
}

void *device_alloc(uint64_t bytes) {
    void *memory = NULL;
    cudaError_t result = cudaMalloc(&memory, bytes ? bytes : 1);
    if (result != cudaSuccess)
        report_abort(ST_NO_MEMORY, "%llu bytes of GPU memory: %s", (unsigned long long)bytes,
                     cudaGetErrorString(result));
    device_check(cudaMemset(memory, 0, bytes ? bytes : 1), "clearing GPU memory");
    return memory;
}

void device_free(void *memory) {
    device_check(cudaFree(memory), "freeing GPU memory");
}

void *device_upload(const void *data, uint64_t bytes) {
    void *memory = device_alloc(bytes);
    device_check(cudaMemcpy(memory, data, bytes, cudaMemcpyHostToDevice), "copying to the GPU");
    return memory;
}

void device_rest(const struct device *device) {
    if (device->crowded)
        pause_for_us(PAUSE_US);
    else
        sched_yield();
}
