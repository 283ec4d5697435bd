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

struct taking {
    struct largest *to;
    struct kernel_largest *work;
    float *values;
    const float *more;
    uint64_t n;
    uint32_t k;
};

static void take_largest(void *context) {
    const struct taking *j = context;
    const uint32_t n_chunks = kernel_chunk_count(j->n);
    struct largest_search search = {0, j->k};
    for (uint32_t pass = 0; pass < LARGEST_PASSES; pass++, search = j->work->search) {
        memset(j->work->bins, 0, sizeof j->work->bins);
        kernel_count_sizes(j->work->bins, j->values, pass == 0 ? j->more : NULL, j->n, search.prefix, pass, 0, 1);
        kernel_narrow(j->work, search, pass, 0, 1);
    }
    for (uint32_t c = 0; c < n_chunks; c++)
        kernel_count_chunk(j->work, j->values, j->n, c, 0, 1);
    kernel_add_up(j->work->above, n_chunks, 0, 1);
    kernel_add_up(j->work->equal, n_chunks, 0, 1);
    for (uint32_t c = 0; c < n_chunks; c++)
        kernel_take_chunk(j->to, j->work, j->values, j->n, c, 0, 1);
    free(context);
}

cudaError_t kernels_take_largest(struct largest *to, struct kernel_largest *work, float *values, const float *more,
                                 uint64_t n, uint32_t k, cudaStream_t stream) {
    const struct taking job = {to, work, values, more, n, k};
    double_enqueue(stream, take_largest, double_copy(&job, sizeof job));
    return cudaSuccess;
}

struct adding {
    float *sum;
    const struct largest *from;
    uint64_t k, n;
};

static void add_largest(void *context) {
    const struct adding *j = context;
    kernel_add_largest(j->sum, j->from, j->k, j->n, 0, 1);
    free(context);
}

cudaError_t kernels_add_largest(float *sum, const struct largest *from, uint64_t k, uint64_t n, cudaStream_t stream) {
    const struct adding job = {sum, from, k, n};
    double_enqueue(stream, add_largest, double_copy(&job, sizeof job));
    return cudaSuccess;
}

static void thin_begin(void *context) {
    const struct kernel_thin *t = context;
    for (const struct kernel_matrix *a = t->matrices; a < t->matrices + t->n; a++) {
        for (uint32_t k = 0; k < t->rank; k++)
            kernel_begin_row(t, a, k, kernel_is_zero(t, a, k, 0, 1), 0, 1);
        for (uint64_t i = 0; i < a->rows && a->columns > 0; i++)
            kernel_multiply_row(t, a, i, 0, 1);
        if (a->columns == 0)
            memcpy(t->p + a->first, t->run + a->at, a->rows * sizeof(float));
    }
    free(context);
}

cudaError_t kernels_thin_begin(const struct kernel_thin *thin, cudaStream_t stream) {
    double_enqueue(stream, thin_begin, double_copy(thin, sizeof *thin));
    return cudaSuccess;
}

static void thin_turn(void *context) {
    const struct kernel_thin *t = context;
    for (const struct kernel_matrix *a = t->matrices; a < t->matrices + t->n; a++) {
        if (a->columns > 0)
            kernel_orthogonalise(t, a, 0, 1);
        for (uint64_t j = 0; j < a->columns; j++)
            for (uint32_t k = 0; k < t->rank; k += KERNEL_RANKS) {
                float sums[KERNEL_RANKS] = {0};
                kernel_multiply_back(t, a, k, j, 0, 1, sums);
                for (uint32_t l = 0; l < KERNEL_RANKS && k + l < t->rank; l++)
                    t->q[a->second + (k + l) * a->columns + j] = sums[l];
            }
    }
    free(context);
}

cudaError_t kernels_thin_turn(const struct kernel_thin *thin, cudaStream_t stream) {
    double_enqueue(stream, thin_turn, double_copy(thin, sizeof *thin));
    return cudaSuccess;
}

static void thin_end(void *context) {
    const struct kernel_thin *t = context;
    for (const struct kernel_matrix *a = t->matrices; a < t->matrices + t->n; a++) {
        for (uint64_t i = 0; i < a->rows && a->columns > 0; i++)
            kernel_restore_row(t, a, i, 0, 1);
        if (a->columns == 0)
            memcpy(t->run + a->at, t->p + a->first, a->rows * sizeof(float));
    }
    free(context);
}

cudaError_t kernels_thin_end(const struct kernel_thin *thin, cudaStream_t stream) {
    double_enqueue(stream, thin_end, double_copy(thin, sizeof *thin));
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

struct reading {
    double *out;
    const char *data;
    const uint64_t *places;
    uint32_t n;
    enum kernel_type type;
};

static void read_numbers(void *context) {
    const struct reading *r = context;
    for (uint32_t i = 0; i < r->n; i++)
        r->out[i] = kernel_number(r->data, r->places[i], r->type);
    free(context);
}

cudaError_t kernels_read(double *out, const char *data, const uint64_t *places, uint32_t n, enum kernel_type type,
                         cudaStream_t stream) {
    const struct reading job = {out, data, places, n, type};
    double_enqueue(stream, read_numbers, double_copy(&job, sizeof job));
    return cudaSuccess;
}

struct clearing {
    char *data;
    const uint64_t *places;
    uint32_t n, width;
};

static void clear(void *context) {
    const struct clearing *c = context;
    for (uint32_t i = 0; i < c->n; i++)
        kernel_clear(c->data, c->places[i], c->width);
    free(context);
}

cudaError_t kernels_clear(char *data, const uint64_t *places, uint32_t n, uint32_t width, cudaStream_t stream) {
    const struct clearing job = {data, places, n, width};
    double_enqueue(stream, clear, double_copy(&job, sizeof job));
    return cudaSuccess;
}
