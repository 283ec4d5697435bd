/* What the double of NCCL does with ranks that call in different orders: a line a rank for worker_nccl.sh.
 *
 *   nccl-order same|reversed|parts|reversed-parts COUNT_A COUNT_B
 *
 * Two processes sum two vectors of f32 over both, rank 1 the second one first when `reversed`. With parts they swap
 * them instead, by a send and a receive in a group. Each says "right", "wrong", "failed" (an asynchronous error) or
 * "hangs" (not done after a second). */
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

enum { MOST = 4096 };

static float vectors[2][MOST], other[MOST];

ncclResult_t ncclGroupStart(void); /* nccl.h declares them without a prototype */
ncclResult_t ncclGroupEnd(void);

/* What each vector must have become: the sum of 1 and 2, or what the other rank had; times its number. */
static const char *judge(ncclComm_t comm, cudaEvent_t end, const int *counts, int wanted) {
    ncclResult_t failure = ncclSuccess;
    const double limit_us = clock_now_us() + 1e6;
    while (cudaEventQuery(end) == cudaErrorNotReady) {
        ncclCommGetAsyncError(comm, &failure);
        if (failure != ncclSuccess)
            return "failed";
        if (clock_now_us() > limit_us)
            return "hangs";
        clock_sleep_us(1000);
    }
    for (int v = 0; v < 2; v++)
        for (int i = 0; i < counts[v]; i++)
            if (vectors[v][i] != (float)(wanted * (v + 1)))
                return "wrong";
    return "right";
}

/* The vector becomes what the other rank had. */
static void swap(float *vector, int count, int peer, ncclComm_t comm) {
    ncclGroupStart();
    ncclSend(vector, (size_t)count, ncclFloat32, peer, comm, NULL);
    ncclRecv(other, (size_t)count, ncclFloat32, peer, comm, NULL);
    ncclGroupEnd();
    cudaMemcpyAsync(vector, other, (size_t)count * sizeof *vector, cudaMemcpyDeviceToDevice, NULL);
}

/* Rank r's part of vector v is (r + 1) * (v + 1). */
static void be_rank(int rank, ncclUniqueId id, int reversed, int parts, const int *counts) {
    ncclComm_t comm;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.maxCTAs = 1;
    cudaEvent_t end;
    if (ncclCommInitRankConfig(&comm, 2, id, rank, &config) != ncclSuccess ||
        cudaEventCreateWithFlags(&end, cudaEventDisableTiming) != cudaSuccess)
        exit(1);
    for (int i = 0; i < 2; i++) {
        const int v = reversed && rank == 1 ? 1 - i : i;
        for (int k = 0; k < counts[v]; k++)
            vectors[v][k] = (float)((rank + 1) * (v + 1));
        if (parts)
            swap(vectors[v], counts[v], 1 - rank, comm);
        else
            ncclAllReduce(vectors[v], vectors[v], (size_t)counts[v], ncclFloat32, ncclSum, comm, NULL);
    }
    cudaEventRecord(end, NULL);
    printf("%s\n", judge(comm, end, counts, parts ? 2 - rank : 3));
    fflush(stdout);
    _exit(0);
}

int main(int argc, char **argv) {
    ncclUniqueId id;
    if (argc != 4 || ncclGetUniqueId(&id) != ncclSuccess)
        return 2;
    const int counts[] = {atoi(argv[2]), atoi(argv[3])};
    if (counts[0] < 1 || counts[0] > MOST || counts[1] < 1 || counts[1] > MOST)
        return 2;
    const int reversed = strncmp(argv[1], "reversed", 8) == 0, parts = strstr(argv[1], "parts") != NULL;
    for (int rank = 0; rank < 2; rank++)
        if (fork() == 0)
            be_rank(rank, id, reversed, parts, counts);
    while (wait(NULL) > 0)
        continue;
    return 0;
}
