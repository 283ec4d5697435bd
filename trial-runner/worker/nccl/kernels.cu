/* Grids are sized for a launch that is short beside what it moves: a block a chunk, or enough threads to fill the
 * memory's pipes. A warp encodes or decodes a block of int8 at a time, so that its
 * largest element needs no barrier. The spin reads the GPU's global timer, which counts nanoseconds whatever the clock
 * rate does, in steps of up to a microsecond. */
#include "trial-runner/worker/nccl/kernels.h"

enum { THREADS = 256, WARP = 32, MOST_BLOCKS = 1024, ELEMENTS_A_THREAD = 8 };

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

static __device__ uint32_t this_warp() {
    return (blockIdx.x * blockDim.x + threadIdx.x) / WARP;
}

static __device__ uint32_t all_warps() {
    return gridDim.x * blockDim.x / WARP;
}

static __global__ void encode_blocks(char *to, const float *from, uint64_t n, uint32_t block) {
    const uint32_t lane = threadIdx.x % WARP;
    for (uint64_t b = this_warp(); b * block < n; b += all_warps()) {
        int32_t largest = kernel_block_largest(from, n, block, b, lane, WARP);
        for (int distance = WARP / 2; distance > 0; distance /= 2) {
            const int32_t other = __shfl_xor_sync(~0u, largest, distance);
            largest = other > largest ? other : largest;
        }
        kernel_encode_block(to, from, n, block, b, largest, lane, WARP);
    }
}

static __global__ void sum_blocks(float *to, const char *parts, uint64_t stride, uint32_t n_parts, uint64_t n,
                                  uint32_t block) {
    for (uint64_t b = this_warp(); b * block < n; b += all_warps())
        kernel_sum_block(to, parts, stride, n_parts, n, block, b, threadIdx.x % WARP, WARP);
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
    const void *const kernels[] = {(const void *)spin,          (const void *)copy,       (const void *)sum,
                                   (const void *)encode_blocks, (const void *)sum_blocks, (const void *)produce,
                                   (const void *)check};
    struct cudaFuncAttributes attributes;
    cudaError_t result = cudaSuccess;
    for (const void *kernel : kernels)
        if (result == cudaSuccess)
            result = cudaFuncGetAttributes(&attributes, kernel);
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

/* A warp for each block of int8. */
static uint32_t blocks_of_warps(uint64_t n, uint32_t block) {
    return at_most(((n + block - 1) / block * WARP + THREADS - 1) / THREADS);
}

cudaError_t kernels_encode_blocks(char *to, const float *from, uint64_t n, uint32_t block, cudaStream_t stream) {
    encode_blocks<<<blocks_of_warps(n, block), THREADS, 0, stream>>>(to, from, n, block);
    return cudaGetLastError();
}

cudaError_t kernels_sum_blocks(float *to, const char *parts, uint64_t stride, uint32_t n_parts, uint64_t n,
                               uint32_t block, cudaStream_t stream) {
    sum_blocks<<<blocks_of_warps(n, block), THREADS, 0, stream>>>(to, parts, stride, n_parts, n, block);
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
