/* The GPU of a rank, and what goes wrong with it.
 *
 * A rank's GPU has its number among the ranks of its host, workers before servers, modulo the GPUs that it sees.
 * Workers have a GPU of their own, unless SYNCOPATE_SHARE_GPU=1: then all take the first. NCCL refuses two ranks on one
 * GPU of one host; ranks whose NCCL_HOSTID differ are on different hosts to it and talk over the network. So every rank
 * of a shared run gets a NCCL_HOSTID of its own, and so does a server that has to use a worker's GPU. */
#ifndef TRIAL_RUNNER_WORKER_NCCL_DEVICE_H
#define TRIAL_RUNNER_WORKER_NCCL_DEVICE_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "trial-runner/worker/world.h"

struct device {
    int index;
    bool shared;  /* every rank on the first GPU, as asked */
    bool crowded; /* more ranks on this host than can poll without sleeping */
    char name[64];
    int urgent, idle; /* priorities of streams, as CUDA numbers them */
    int blocks;       /* that a communicator's kernel may have: see device_choose */
};

/* Find a GPU here; the first call of CUDA. Fails: ST_ENVIRONMENT. */
enum status device_look(int *count, struct error *err);

/* Choose this rank's GPU and make it current. NCCL's kernels wait for other ranks' and hold their multiprocessors
 * meanwhile, so all kernels that may run at once must fit on the GPU at once. `blocks` is the same on all ranks, and so
 * small that DEVICE_KERNELS kernels of every rank on one GPU fit, also where NCCL or MPI take these ranks to be on
 * different hosts. Collective, the same result on every rank; before any call of NCCL. Fails: ST_ENVIRONMENT. */
enum { DEVICE_KERNELS = 4 }; /* collectives, to servers, from servers, back into the node or among replicas */
enum status device_choose(struct device *device, const struct world *world, struct error *err);

/* A control daemon of MPS answers here, so that the kernels of several ranks on one GPU run together. */
bool device_has_mps(void);

/* The same failure on every rank when any rank has one. Collective. */
enum status device_agree(enum status status, struct error *err);

/* End the job when a call of CUDA failed; `what` names it. */
void device_check(cudaError_t result, const char *what);

/* Get zeroed device memory. All streams see the zeros, because the call waits for the default stream. Ends the job when
 * memory is out; `bytes` of 0 give a valid pointer. */
void *device_alloc(uint64_t bytes);
void device_free(void *memory);

/* How much of its memory the GPU has left. */
uint64_t device_left_bytes(void);

/* A copy of host memory on the device, there for all streams. */
void *device_upload(const void *data, uint64_t bytes);

/* Nothing happened: sleep, or where there is a core for every rank only let others run. */
void device_rest(const struct device *device);

#endif
