/* The kernels' launches with the bodies run on the stream's thread, by one thread for all. The spin is a sleep. */
#include <stdlib.h>

#include "base/clock.h"
#include "tests/support/nccl/double.h"
#include "trial-runner/worker/nccl/kernels.h"

cudaError_t kernels_load(void) {
    return cudaSuccess;
}

struct spin {
    uint64_t *clock;
    double us;
    bool goes_on;
};

static uint64_t now_ns(void) {
    return (uint64_t)(clock_now_us() * 1e3);
}

static void spin(void *context) {
    const struct spin *s = context;
    const uint64_t end = (s->goes_on ? *s->clock : now_ns()) + (uint64_t)(s->us * 1e3), now = now_ns();
    if (end > now)
        clock_sleep_us((double)(end - now) / 1e3);
    *s->clock = end;
    free(context);
}

cudaError_t kernels_spin(uint64_t *clock, double us, bool goes_on, cudaStream_t stream) {
    double_enqueue(stream, spin, double_copy(&(struct spin){clock, us, goes_on}, sizeof(struct spin)));
    return cudaSuccess;
}

struct copy {
    const struct kernel_chunk *chunks;
    uint32_t n;
    char *data, *buffer;
    bool scatter;
};

static void copy(void *context) {
    const struct copy *c = context;
    kernel_copy_chunks(c->chunks, c->n, c->data, c->buffer, c->scatter, 0, 1, 0, 1);
    free(context);
}

cudaError_t kernels_copy(const struct kernel_chunk *chunks, uint32_t n, char *data, char *buffer, bool scatter,
                         cudaStream_t stream) {
    double_enqueue(stream, copy, double_copy(&(struct copy){chunks, n, data, buffer, scatter}, sizeof(struct copy)));
    return cudaSuccess;
}

struct sum {
    void *to;
    const void *from;
    uint64_t count;
    enum kernel_type type;
};

static void sum(void *context) {
    const struct sum *s = context;
    kernel_sum(s->to, s->from, s->count, s->type, 0, 1);
    free(context);
}

cudaError_t kernels_sum(void *to, const void *from, uint64_t count, enum kernel_type type, cudaStream_t stream) {
    double_enqueue(stream, sum, double_copy(&(struct sum){to, from, count, type}, sizeof(struct sum)));
    return cudaSuccess;
}

struct blocks {
    char *encoded; /* or n_parts of them, `stride` apart */
    float *values;
    uint64_t stride, n;
    uint32_t n_parts, block;
};

static void encode_blocks(void *context) {
    const struct blocks *j = context;
    for (uint64_t b = 0; b * j->block < j->n; b++)
        kernel_encode_block(j->encoded, j->values, j->n, j->block, b,
                            kernel_block_largest(j->values, j->n, j->block, b, 0, 1), 0, 1);
    free(context);
}

cudaError_t kernels_encode_blocks(char *to, const float *from, uint64_t n, uint32_t block, cudaStream_t stream) {
    const struct blocks job = {to, (float *)from, 0, n, 1, block};
    double_enqueue(stream, encode_blocks, double_copy(&job, sizeof job));
    return cudaSuccess;
}

static void sum_blocks(void *context) {
    const struct blocks *j = context;
    for (uint64_t b = 0; b * j->block < j->n; b++)
        kernel_sum_block(j->values, j->encoded, j->stride, j->n_parts, j->n, j->block, b, 0, 1);
    free(context);
}

cudaError_t kernels_sum_blocks(float *to, const char *parts, uint64_t stride, uint32_t n_parts, uint64_t n,
                               uint32_t block, cudaStream_t stream) {
    const struct blocks job = {(char *)parts, to, stride, n, n_parts, block};
    double_enqueue(stream, sum_blocks, double_copy(&job, sizeof job));
    return cudaSuccess;
}

struct values {
    struct kernel_table table;
    const uint32_t *messages;
    uint32_t n, iteration; /* n: of messages, or the message that is checked */
    uint32_t micro_batch;
    bool spoilt;
    uint8_t *verdict;
};

static void produce(void *context) {
    const struct values *v = context;
    for (uint32_t i = 0; i < v->n; i++)
        for (uint32_t k = 0; k < KERNEL_SAMPLES; k++)
            kernel_produce(&v->table, v->messages[i], v->iteration, v->micro_batch, v->spoilt, k);
    free(context);
}

cudaError_t kernels_produce(const struct kernel_table *table, const uint32_t *messages, uint32_t n, uint32_t iteration,
                            uint32_t micro_batch, bool spoilt, cudaStream_t stream) {
    const struct values values = {*table, messages, n, iteration, micro_batch, spoilt, NULL};
    double_enqueue(stream, produce, double_copy(&values, sizeof values));
    return cudaSuccess;
}

static void check(void *context) {
    const struct values *v = context;
    for (uint32_t k = 0; k < KERNEL_SAMPLES; k++)
        v->verdict[k] = kernel_check(&v->table, v->n, v->iteration, k);
    free(context);
}

cudaError_t kernels_check(const struct kernel_table *table, uint32_t message, uint32_t iteration, uint8_t *verdict,
                          cudaStream_t stream) {
    const struct values values = {*table, NULL, message, iteration, 0, false, verdict};
    double_enqueue(stream, check, double_copy(&values, sizeof values));
    return cudaSuccess;
}
