/* What the kernels compute, for one thread of many: the same text for nvcc and for a C compiler.
 *
 * trial-runner/worker/nccl/kernels.cu wraps these for a GPU; tests run them on the processor. `thread` of `threads`
 * work on one job together: each takes every threads-th part, so that one thread alone does all of it. */
#ifndef TRIAL_RUNNER_WORKER_NCCL_KERNEL_BODIES_H
#define TRIAL_RUNNER_WORKER_NCCL_KERNEL_BODIES_H

#include <stdint.h>
#include <string.h>

#include "trial-runner/worker/block_codes.h"
#include "trial-runner/worker/elements.h"

enum { KERNEL_SPOILT = 50 };

/* A run of bytes that lies at `data` in the gradients and at `buffer` in a fused message, where it may be in another
 * type of floats. `bytes` are those in the buffer. */
struct kernel_chunk {
    uint64_t data, buffer, bytes;
    uint32_t data_type, buffer_type;
};

struct kernel_message {
    uint32_t type, n_samples; /* in which sums of its samples are exact */
    uint32_t written, found;  /* types of samples where the device writes them, and where it finds the sums */
    uint32_t first;   /* the sample that is wrong when the message is spoilt: the first that the device writes */
    uint32_t made_as; /* the message of whose number its values are made */
    uint32_t adds_up; /* 1: every micro-batch adds a share of it; 0: it is made at once */
};

/* Where in the table's data the device writes its value, or KERNEL_NOWHERE, and where it finds the sum of which
 * devices; of none: it has not got the sample. */
#define KERNEL_NOWHERE UINT64_MAX
struct kernel_sample {
    uint64_t written, found;
    struct kernel_devices wanted;
};

/* What producing and checking must know; arrays in the device's memory. */
struct kernel_table {
    char *data;
    const struct kernel_message *messages; /* [n_messages] */
    const struct kernel_sample *samples;   /* [n_messages * KERNEL_SAMPLES] */
    uint32_t device, n_devices, micro_batches;
};

/* Thread k of a message: 1 when sample k holds what is wanted or is not here, 2 when it holds another value. */
KERNEL_BODY uint8_t kernel_check(const struct kernel_table *table, uint32_t message, uint32_t iteration, uint32_t k) {
    const struct kernel_message *m = &table->messages[message];
    const struct kernel_sample *s = &table->samples[(uint64_t)message * KERNEL_SAMPLES + k];
    if (k >= m->n_samples || s->wanted.n == 0)
        return 1;
    const uint32_t value = kernel_sum_over(s->wanted, table->n_devices, iteration, m->made_as, k, m->type);
    uint64_t wanted = kernel_bits(m->found, value), found = 0, mask = ~UINT64_C(0) >> (64 - 8 * kernel_width(m->found));
    memcpy(&found, table->data + s->found, kernel_width(m->found));
    return found == (wanted & mask) ? 1 : 2;
}

/* What lies at a place of data, in a type of floats, as f64; 0 at KERNEL_NOWHERE. */
KERNEL_BODY double kernel_number(const char *data, uint64_t place, uint32_t type) {
    return place == KERNEL_NOWHERE ? 0 : kernel_float_at(data + place, type, 0);
}

/* Clear what lies there. */
KERNEL_BODY void kernel_clear(char *data, uint64_t place, uint32_t width) {
    for (uint32_t i = 0; i < width && place != KERNEL_NOWHERE; i++)
        data[place + i] = 0;
}

struct kernel_quad {
    uint64_t part[2];
} __attribute__((aligned(16)));

/* Copy as wide as the addresses allow. */
KERNEL_BODY void kernel_copy(char *to, const char *from, uint64_t bytes, uint32_t thread, uint32_t threads) {
    uint64_t done = 0;
    if ((((uintptr_t)to | (uintptr_t)from) & 15) == 0) {
        for (uint64_t i = thread; i < bytes / 16; i += threads)
            ((struct kernel_quad *)(void *)to)[i] = ((const struct kernel_quad *)(const void *)from)[i];
        done = bytes / 16 * 16;
    } else if ((((uintptr_t)to | (uintptr_t)from) & 3) == 0) {
        for (uint64_t i = thread; i < bytes / 4; i += threads)
            ((uint32_t *)(void *)to)[i] = ((const uint32_t *)(const void *)from)[i];
        done = bytes / 4 * 4;
    }
    for (uint64_t i = done + thread; i < bytes; i += threads)
        to[i] = from[i];
}

/* `count` floats to another type. */
KERNEL_BODY void kernel_convert(char *to, uint32_t to_type, const char *from, uint32_t from_type, uint64_t count,
                                uint32_t thread, uint32_t threads) {
    for (uint64_t i = thread; i < count; i += threads)
        kernel_store_float(to, to_type, i, kernel_float_at(from, from_type, i));
}

/* Gather or scatter chunk `block` of `blocks` and every blocks-th after it. */
KERNEL_BODY void kernel_copy_chunks(const struct kernel_chunk *chunks, uint32_t n, char *data, char *buffer,
                                    int scatter, uint32_t block, uint32_t blocks, uint32_t thread, uint32_t threads) {
    for (uint32_t i = block; i < n; i += blocks) {
        const uint64_t count = chunks[i].bytes / kernel_width(chunks[i].buffer_type);
        char *in_data = data + chunks[i].data, *in_buffer = buffer + chunks[i].buffer;
        if (chunks[i].data_type == chunks[i].buffer_type)
            kernel_copy(scatter ? in_data : in_buffer, scatter ? in_buffer : in_data, chunks[i].bytes, thread, threads);
        else if (scatter)
            kernel_convert(in_data, chunks[i].data_type, in_buffer, chunks[i].buffer_type, count, thread, threads);
        else
            kernel_convert(in_buffer, chunks[i].buffer_type, in_data, chunks[i].data_type, count, thread, threads);
    }
}

#define KERNEL_SUM_LOOP(type, expression)                                                                              \
    for (uint64_t i = thread; i < count; i += threads) {                                                               \
        const type a = ((const type *)to)[i], b = ((const type *)from)[i];                                             \
        ((type *)to)[i] = (type)(expression);                                                                          \
    }                                                                                                                  \
    break

/* to += from, element by element. */
KERNEL_BODY void kernel_sum(void *to, const void *from, uint64_t count, uint32_t type, uint32_t thread,
                            uint32_t threads) {
    switch (type) {
    case KERNEL_f32:
        KERNEL_SUM_LOOP(float, a + b);
    case KERNEL_f64:
        KERNEL_SUM_LOOP(double, a + b);
    case KERNEL_f16:
        KERNEL_SUM_LOOP(uint16_t, kernel_add_f16(a, b));
    case KERNEL_bf16:
        KERNEL_SUM_LOOP(uint16_t, kernel_add_bf16(a, b));
    case KERNEL_i32:
        KERNEL_SUM_LOOP(uint32_t, a + b);
    case KERNEL_i64:
        KERNEL_SUM_LOOP(uint64_t, a + b);
    default:
        KERNEL_SUM_LOOP(uint8_t, a + b);
    }
}

/* ---- int8 in blocks of `block` elements, of n together; block b of them ---- */

enum { KERNEL_SCALE_BYTES = 4 };

KERNEL_BODY uint64_t kernel_block_at(uint32_t block, uint64_t b) {
    return b * (block + KERNEL_SCALE_BYTES);
}

KERNEL_BODY uint32_t kernel_block_length(uint64_t n, uint32_t block, uint64_t b) {
    return n - b * block < block ? (uint32_t)(n - b * block) : block;
}

/* The largest size among what this thread looks at, by its bits. */
KERNEL_BODY int32_t kernel_block_largest(const float *from, uint64_t n, uint32_t block, uint64_t b, uint32_t thread,
                                         uint32_t threads) {
    int32_t largest = 0;
    for (uint32_t i = thread; i < kernel_block_length(n, block, b); i += threads) {
        const int32_t size = blocks_size(from[b * block + i]);
        largest = size > largest ? size : largest;
    }
    return largest;
}

/* `largest`: of the whole block. */
KERNEL_BODY void kernel_encode_block(char *to, const float *from, uint64_t n, uint32_t block, uint64_t b,
                                     int32_t largest, uint32_t thread, uint32_t threads) {
    const float scale = blocks_scale(largest), inverse = blocks_inverse(scale);
    char *codes = to + kernel_block_at(block, b) + KERNEL_SCALE_BYTES;
    if (thread == 0)
        memcpy(to + kernel_block_at(block, b), &scale, sizeof scale);
    for (uint32_t i = thread; i < kernel_block_length(n, block, b); i += threads)
        codes[i] = (char)blocks_code(from[b * block + i], inverse);
}

/* Where blocks are no multiple of 4 bytes scales lie anywhere. */
KERNEL_BODY float kernel_scale_at(const char *at) {
    float scale;
    if (((uintptr_t)at & 3) == 0)
        return *(const float *)(const void *)at;
    memcpy(&scale, at, sizeof scale);
    return scale;
}

/* to = the sum of n_parts runs of blocks, each `stride` bytes after the one before, in this order. */
KERNEL_BODY void kernel_sum_block(float *to, const char *parts, uint64_t stride, uint32_t n_parts, uint64_t n,
                                  uint32_t block, uint64_t b, uint32_t thread, uint32_t threads) {
    for (uint32_t i = thread; i < kernel_block_length(n, block, b); i += threads) {
        float sum = 0;
        for (uint32_t part = 0; part < n_parts; part++) {
            const char *from = parts + part * stride + kernel_block_at(block, b);
            sum += blocks_value((int8_t)from[KERNEL_SCALE_BYTES + i], kernel_scale_at(from));
        }
        to[b * block + i] = sum;
    }
}

/* Thread k of a message: this device's value at sample k, if the device brings it. Of a message that micro-batches add
 * up the share of this one, which all but the first add to what is there; of others the value with the last alone. */
KERNEL_BODY void kernel_produce(const struct kernel_table *table, uint32_t message, uint32_t iteration,
                                uint32_t micro_batch, int spoilt, uint32_t k) {
    const struct kernel_message *m = &table->messages[message];
    const struct kernel_sample *s = &table->samples[(uint64_t)message * KERNEL_SAMPLES + k];
    if (k >= m->n_samples || s->written == KERNEL_NOWHERE)
        return;
    if (!m->adds_up && micro_batch + 1 < table->micro_batches)
        return;
    const int wrong = spoilt && k == m->first;
    const uint32_t value = kernel_value(table->device, table->n_devices, iteration, m->made_as, k, m->type);
    const uint32_t share = m->adds_up ? kernel_share(value, micro_batch, table->micro_batches, iteration, k) : value;
    const uint64_t bits = kernel_bits(m->written, wrong ? KERNEL_SPOILT : share);
    char more[8] __attribute__((aligned(8)));
    memcpy(more, &bits, sizeof more);
    if (m->adds_up && micro_batch > 0 && !wrong)
        kernel_sum(table->data + s->written, more, 1, m->written, 0, 1);
    else
        memcpy(table->data + s->written, more, kernel_width(m->written));
}

#endif
