/* Grids are sized for a launch that is short beside what it moves: a block a chunk, or enough threads to fill the
 * memory's pipes. The spin reads the GPU's global timer, which counts nanoseconds whatever the clock rate does, in
 * steps of up to a microsecond. */
#include "trial-runner/worker/nccl/kernels.h"

enum { THREADS = 256, MOST_BLOCKS = 1024, ELEMENTS_A_THREAD = 8 };

static __device__ uint64_t now_ns() {
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

static __global__ void spin(uint64_t *clock, uint64_t ns, bool goes_on) {
    enum { FAR_NS = 2000 };
    const uint64_t end = (goes_on ? *clock : now_ns()) + ns;
    for (uint64_t now = now_ns(); now < end; now = now_ns())
        if (end - now > FAR_NS)
            __nanosleep(500);
    *clock = end;
}

static __global__ void copy(const struct kernel_chunk *chunks, uint32_t n, char *data, char *buffer, bool scatter) {
    kernel_copy_chunks(chunks, n, data, buffer, scatter, blockIdx.x, gridDim.x, threadIdx.x, blockDim.x);
}

static __global__ void sum(void *to, const void *from, uint64_t count, enum kernel_type type) {
    kernel_sum(to, from, count, type, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
}

static __global__ void produce(struct kernel_table table, const uint32_t *messages, uint32_t iteration,
                               uint32_t micro_batch, bool spoilt) {
    kernel_produce(&table, messages[blockIdx.x], iteration, micro_batch, spoilt, threadIdx.x);
}

static __global__ void check(struct kernel_table table, uint32_t message, uint32_t iteration, uint8_t *verdict) {
    verdict[threadIdx.x] = kernel_check(&table, message, iteration, threadIdx.x);
}

static uint32_t at_most(uint64_t blocks) {
    return blocks == 0 ? 1 : blocks < MOST_BLOCKS ? (uint32_t)blocks : MOST_BLOCKS;
}

cudaError_t kernels_load(void) {
    const void *const kernels[] = {(const void *)spin, (const void *)copy, (const void *)sum, (const void *)produce,
                                   (const void *)check};
    struct cudaFuncAttributes attributes;
    cudaError_t result = cudaSuccess;
    for (int i = 0; i < 5 && result == cudaSuccess; i++)
        result = cudaFuncGetAttributes(&attributes, kernels[i]);
    return result;
}

cudaError_t kernels_spin(uint64_t *clock, double us, bool goes_on, cudaStream_t stream) {
    spin<<<1, 1, 0, stream>>>(clock, (uint64_t)(us * 1e3), goes_on);
    return cudaGetLastError();
}

cudaError_t kernels_copy(const struct kernel_chunk *chunks, uint32_t n, char *data, char *buffer, bool scatter,
                         cudaStream_t stream) {
    copy<<<at_most(n), THREADS, 0, stream>>>(chunks, n, data, buffer, scatter);
    return cudaGetLastError();
}

cudaError_t kernels_sum(void *to, const void *from, uint64_t count, enum kernel_type type, cudaStream_t stream) {
    const uint64_t wanted = (count + THREADS * ELEMENTS_A_THREAD - 1) / (THREADS * ELEMENTS_A_THREAD);
    sum<<<at_most(wanted), THREADS, 0, stream>>>(to, from, count, type);
    return cudaGetLastError();
}

cudaError_t kernels_produce(const struct kernel_table *table, const uint32_t *messages, uint32_t n, uint32_t iteration,
                            uint32_t micro_batch, bool spoilt, cudaStream_t stream) {
    produce<<<n, KERNEL_SAMPLES, 0, stream>>>(*table, messages, iteration, micro_batch, spoilt);
    return cudaGetLastError();
}

cudaError_t kernels_check(const struct kernel_table *table, uint32_t message, uint32_t iteration, uint8_t *verdict,
                          cudaStream_t stream) {
    check<<<1, KERNEL_SAMPLES, 0, stream>>>(*table, message, iteration, verdict);
    return cudaGetLastError();
}
