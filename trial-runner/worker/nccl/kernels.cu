/* Grids are sized for a launch that is short beside what it moves: a block a chunk, or enough threads to fill the
 * memory's pipes. A warp encodes or decodes a block of int8 at a time, so that its largest element needs no barrier. The
 * spin reads the GPU's global timer, which counts nanoseconds whatever the clock rate does, in steps of up to a
 * microsecond. */
#include "trial-runner/worker/nccl/kernels.h"

enum {
    THREADS = 256,
    MANY_THREADS = 1024,
    WARP = 32,
    MOST_BLOCKS = 1024,
    BLOCKS_A_MATRIX = 256,
    ELEMENTS_A_THREAD = 8
};

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

static __device__ uint32_t this_thread() {
    return blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ uint32_t all_threads() {
    return gridDim.x * blockDim.x;
}

static __device__ uint32_t this_warp() {
    return this_thread() / WARP;
}

static __device__ uint32_t all_warps() {
    return all_threads() / WARP;
}

static __global__ void copy(const struct kernel_chunk *chunks, uint32_t n, char *data, char *buffer, bool scatter) {
    kernel_copy_chunks(chunks, n, data, buffer, scatter, blockIdx.x, gridDim.x, threadIdx.x, blockDim.x);
}

static __global__ void sum(void *to, const void *from, uint64_t count, enum kernel_type type) {
    kernel_sum(to, from, count, type, this_thread(), all_threads());
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

/* A block counts in its own memory first. */
static __global__ void count_sizes(struct kernel_largest *work, float *values, const float *more, uint64_t n,
                                   uint32_t pass) {
    __shared__ uint32_t bins[LARGEST_BINS];
    for (uint32_t i = threadIdx.x; i < LARGEST_BINS; i += blockDim.x)
        bins[i] = 0;
    __syncthreads();
    kernel_count_sizes(bins, values, more, n, work->search.prefix, pass, this_thread(), all_threads());
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < LARGEST_BINS; i += blockDim.x)
        if (bins[i] > 0)
            atomicAdd(&work->bins[i], bins[i]);
}

/* One warp. The bins are zero afterwards. */
static __global__ void narrow(struct kernel_largest *work, uint32_t pass, uint32_t k) {
    struct largest_search before = work->search;
    if (pass == 0)
        before.left = k;
    __syncwarp();
    kernel_narrow(work, before, pass, threadIdx.x, WARP);
    __syncwarp();
    for (uint32_t i = threadIdx.x; i < LARGEST_BINS; i += WARP)
        work->bins[i] = 0;
}

static __global__ void count_chunks(struct kernel_largest *work, const float *values, uint64_t n) {
    for (uint32_t c = this_warp(); c < kernel_chunk_count(n); c += all_warps())
        kernel_count_chunk(work, values, n, c, threadIdx.x % WARP, WARP);
}

/* One warp. */
static __global__ void add_up(struct kernel_largest *work, uint32_t n_chunks) {
    kernel_add_up(work->above, n_chunks, threadIdx.x, WARP);
    kernel_add_up(work->equal, n_chunks, threadIdx.x, WARP);
}

static __global__ void take_chunks(struct largest *to, const struct kernel_largest *work, float *values, uint64_t n) {
    for (uint32_t c = this_warp(); c < kernel_chunk_count(n); c += all_warps())
        kernel_take_chunk(to, work, values, n, c, threadIdx.x % WARP, WARP);
}

static __global__ void add_largest(float *sum, const struct largest *from, uint64_t k, uint64_t n) {
    kernel_add_largest(sum, from, k, n, this_thread(), all_threads());
}

/* A block for each row of Q. */
static __global__ void begin_rows(struct kernel_thin t) {
    for (uint32_t b = blockIdx.x; b < t.n * t.rank; b += gridDim.x) {
        const struct kernel_matrix *a = &t.matrices[b / t.rank];
        const int zero = __syncthreads_and(kernel_is_zero(&t, a, b % t.rank, threadIdx.x, blockDim.x));
        kernel_begin_row(&t, a, b % t.rank, zero, threadIdx.x, blockDim.x);
    }
}

static __device__ void copy_vector(float *to, const float *from, uint64_t n) {
    kernel_copy((char *)to, (const char *)from, n * sizeof *to, this_thread(), all_threads());
}

/* Rows of blocks have a matrix each, here and below. A warp has a row of it. */
static __global__ void multiply(struct kernel_thin t) {
    for (uint32_t i = blockIdx.y; i < t.n; i += gridDim.y) {
        const struct kernel_matrix *a = &t.matrices[i];
        if (a->columns == 0)
            copy_vector(t.p + a->first, t.run + a->at, a->rows);
        for (uint64_t row = this_warp(); row < a->rows && a->columns > 0; row += all_warps())
            kernel_multiply_row(&t, a, row, threadIdx.x % WARP, WARP);
    }
}

/* A block for each matrix. */
static __global__ void __launch_bounds__(MANY_THREADS) orthogonalise(struct kernel_thin t) {
    for (uint32_t i = blockIdx.x; i < t.n; i += gridDim.x)
        if (t.matrices[i].columns > 0)
            kernel_orthogonalise(&t, &t.matrices[i], threadIdx.x, blockDim.x);
}

/* A block has a column for each lane. Its warps share the rows of M, and the sums of all are added in order. */
static __global__ void __launch_bounds__(MANY_THREADS) multiply_back(struct kernel_thin t) {
    __shared__ float sums[MANY_THREADS / WARP][KERNEL_RANKS][WARP];
    const uint32_t lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = MANY_THREADS / WARP;
    for (uint32_t i = blockIdx.y; i < t.n; i += gridDim.y) {
        const struct kernel_matrix *a = &t.matrices[i];
        for (uint64_t begin = blockIdx.x * WARP; begin < a->columns; begin += gridDim.x * WARP)
            for (uint32_t k = 0; k < t.rank; k += KERNEL_RANKS) {
                float own[KERNEL_RANKS] = {0}, sum = 0;
                if (begin + lane < a->columns)
                    kernel_multiply_back(&t, a, k, begin + lane, warp, warps, own);
                for (uint32_t l = 0; l < KERNEL_RANKS; l++)
                    sums[warp][l][lane] = own[l];
                __syncthreads();
                for (uint32_t w = 0; w < warps && warp < KERNEL_RANKS; w++)
                    sum += sums[w][warp][lane];
                if (warp < KERNEL_RANKS && k + warp < t.rank && begin + lane < a->columns)
                    t.q[a->second + (k + warp) * a->columns + begin + lane] = sum;
                __syncthreads();
            }
    }
}

static __global__ void restore(struct kernel_thin t) {
    for (uint32_t i = blockIdx.y; i < t.n; i += gridDim.y) {
        const struct kernel_matrix *a = &t.matrices[i];
        if (a->columns == 0)
            copy_vector(t.run + a->at, t.p + a->first, a->rows);
        for (uint64_t row = this_warp(); row < a->rows && a->columns > 0; row += all_warps())
            kernel_restore_row(&t, a, row, threadIdx.x % WARP, WARP);
    }
}

static __global__ void produce(struct kernel_table table, const uint32_t *messages, uint32_t iteration,
                               uint32_t micro_batch, bool spoilt) {
    kernel_produce(&table, messages[blockIdx.x], iteration, micro_batch, spoilt, threadIdx.x);
}

static __global__ void check(struct kernel_table table, uint32_t message, uint32_t iteration, uint8_t *verdict) {
    verdict[threadIdx.x] = kernel_check(&table, message, iteration, threadIdx.x);
}

static __global__ void clear(char *data, const uint64_t *places, uint32_t n, uint32_t width) {
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
        kernel_clear(data, places[i], width);
}

static __global__ void read_numbers(double *out, const char *data, const uint64_t *places, uint32_t n,
                                    enum kernel_type type) {
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
        out[i] = kernel_number(data, places[i], type);
}

static uint32_t at_most(uint64_t blocks) {
    return blocks == 0 ? 1 : blocks < MOST_BLOCKS ? (uint32_t)blocks : MOST_BLOCKS;
}

cudaError_t kernels_load(void) {
    const void *const kernels[] = {
        (const void *)spin,       (const void *)copy,          (const void *)sum,           (const void *)encode_blocks,
        (const void *)sum_blocks, (const void *)count_sizes,   (const void *)narrow,        (const void *)count_chunks,
        (const void *)add_up,     (const void *)take_chunks,   (const void *)add_largest,   (const void *)begin_rows,
        (const void *)multiply,   (const void *)orthogonalise, (const void *)multiply_back, (const void *)restore,
        (const void *)produce,    (const void *)check,         (const void *)clear,         (const void *)read_numbers};
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

/* Threads for each element, some elements each. */
static uint32_t blocks_of_threads(uint64_t n) {
    return at_most((n + THREADS * ELEMENTS_A_THREAD - 1) / (THREADS * ELEMENTS_A_THREAD));
}

cudaError_t kernels_sum(void *to, const void *from, uint64_t count, enum kernel_type type, cudaStream_t stream) {
    sum<<<blocks_of_threads(count), THREADS, 0, stream>>>(to, from, count, type);
    return cudaGetLastError();
}

/* A warp for each of n. */
static uint32_t blocks_of_warps(uint64_t n) {
    return at_most((n * WARP + THREADS - 1) / THREADS);
}

cudaError_t kernels_encode_blocks(char *to, const float *from, uint64_t n, uint32_t block, cudaStream_t stream) {
    encode_blocks<<<blocks_of_warps((n + block - 1) / block), THREADS, 0, stream>>>(to, from, n, block);
    return cudaGetLastError();
}

cudaError_t kernels_sum_blocks(float *to, const char *parts, uint64_t stride, uint32_t n_parts, uint64_t n,
                               uint32_t block, cudaStream_t stream) {
    sum_blocks<<<blocks_of_warps((n + block - 1) / block), THREADS, 0, stream>>>(to, parts, stride, n_parts, n, block);
    return cudaGetLastError();
}

cudaError_t kernels_take_largest(struct largest *to, struct kernel_largest *work, float *values, const float *more,
                                 uint64_t n, uint32_t k, cudaStream_t stream) {
    const uint32_t n_chunks = kernel_chunk_count(n), warps = blocks_of_warps(n_chunks);
    cudaError_t result = cudaMemsetAsync(work, 0, offsetof(struct kernel_largest, above), stream);
    if (result != cudaSuccess)
        return result;
    for (uint32_t pass = 0; pass < LARGEST_PASSES; pass++) {
        count_sizes<<<blocks_of_threads(n), THREADS, 0, stream>>>(work, values, pass == 0 ? more : NULL, n, pass);
        narrow<<<1, WARP, 0, stream>>>(work, pass, k);
    }
    count_chunks<<<warps, THREADS, 0, stream>>>(work, values, n);
    add_up<<<1, WARP, 0, stream>>>(work, n_chunks);
    take_chunks<<<warps, THREADS, 0, stream>>>(to, work, values, n);
    return cudaGetLastError();
}

cudaError_t kernels_add_largest(float *sum, const struct largest *from, uint64_t k, uint64_t n, cudaStream_t stream) {
    add_largest<<<blocks_of_threads(k), THREADS, 0, stream>>>(sum, from, k, n);
    return cudaGetLastError();
}

/* So many blocks for each matrix that all of `wanted` do something in the largest. */
static dim3 blocks_of_matrices(const struct kernel_thin *t, uint64_t wanted) {
    const uint64_t each = wanted < 1 ? 1 : wanted < BLOCKS_A_MATRIX ? wanted : BLOCKS_A_MATRIX;
    return dim3((unsigned)each, t->n < MOST_BLOCKS ? t->n : MOST_BLOCKS);
}

/* A warp for each row of a matrix. */
static dim3 blocks_of_rows(const struct kernel_thin *t) {
    return blocks_of_matrices(t, (t->most_rows * WARP + THREADS - 1) / THREADS);
}

cudaError_t kernels_thin_begin(const struct kernel_thin *t, cudaStream_t stream) {
    begin_rows<<<at_most((uint64_t)t->n * t->rank), THREADS, 0, stream>>>(*t);
    multiply<<<blocks_of_rows(t), THREADS, 0, stream>>>(*t);
    return cudaGetLastError();
}

cudaError_t kernels_thin_turn(const struct kernel_thin *t, cudaStream_t stream) {
    orthogonalise<<<at_most(t->n), MANY_THREADS, 0, stream>>>(*t);
    multiply_back<<<blocks_of_matrices(t, (t->most_columns + WARP - 1) / WARP), MANY_THREADS, 0, stream>>>(*t);
    return cudaGetLastError();
}

cudaError_t kernels_thin_end(const struct kernel_thin *t, cudaStream_t stream) {
    restore<<<blocks_of_rows(t), THREADS, 0, stream>>>(*t);
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

cudaError_t kernels_clear(char *data, const uint64_t *places, uint32_t n, uint32_t width, cudaStream_t stream) {
    clear<<<1, THREADS, 0, stream>>>(data, places, n, width);
    return cudaGetLastError();
}

cudaError_t kernels_read(double *out, const char *data, const uint64_t *places, uint32_t n, enum kernel_type type,
                         cudaStream_t stream) {
    read_numbers<<<1, THREADS, 0, stream>>>(out, data, places, n, type);
    return cudaGetLastError();
}
