/* What the kernels compute, for one thread of many: the same text for nvcc and for a C compiler.
 *
 * trial-runner/worker/nccl/kernels.cu wraps these for a GPU; tests run them on the processor. `thread` of `threads`
 * work on one job together: each takes every threads-th part, so that one thread alone does all of it. */
#ifndef TRIAL_RUNNER_WORKER_NCCL_KERNEL_BODIES_H
#define TRIAL_RUNNER_WORKER_NCCL_KERNEL_BODIES_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#include <cuda_fp16.h>
#define KERNEL_BODY static __device__ __forceinline__
#else
#define KERNEL_BODY static inline
#endif

enum { KERNEL_SAMPLES = 16, KERNEL_SPOILT = 50 };

/* Element types, numbered as strategy/model.h's enum dtype. */
enum kernel_type { KERNEL_f32, KERNEL_f16, KERNEL_bf16, KERNEL_f64, KERNEL_i32, KERNEL_i64, KERNEL_u8, KERNEL_TYPES };

/* A run of bytes that lies at `data` in the gradients and at `buffer` in a fused message. */
struct kernel_chunk {
    uint64_t data, buffer, bytes;
};

struct kernel_message {
    uint32_t type, n_samples;
};

/* What producing and checking must know; arrays in the device's memory. */
struct kernel_table {
    char *data;
    const struct kernel_message *messages; /* [n_messages] */
    const uint64_t *samples;               /* [n_messages * KERNEL_SAMPLES] offsets in data */
    uint32_t device, n_devices;
};

KERNEL_BODY uint32_t kernel_width(uint32_t type) {
    return type == KERNEL_u8                           ? 1
           : type == KERNEL_f16 || type == KERNEL_bf16 ? 2
           : type == KERNEL_f32 || type == KERNEL_i32  ? 4
                                                       : 8;
}

/* Up to here whole numbers, and so all partial sums, are exact in the type. Integers wrap, which is exact as well. */
KERNEL_BODY uint32_t kernel_exact_limit(uint32_t type) {
    return type == KERNEL_bf16 ? 256 : type == KERNEL_f16 ? 2048 : 1u << 24;
}

/* A small number that only the device, the iteration, the message and the place determine. The sum over all devices is
 * at most the type's limit: with many devices values are smaller, and with very many only the first have one. */
KERNEL_BODY uint32_t kernel_value(uint32_t device, uint32_t n_devices, uint32_t iteration, uint32_t message, uint32_t k,
                                  uint32_t type) {
    uint32_t limit = kernel_exact_limit(type), most = limit / n_devices < 7 ? limit / n_devices : 7;
    uint32_t mixed = device * 2654435761u ^ iteration * 2246822519u ^ message * 3266489917u ^ k * 668265263u;
    return most == 0 ? device < limit : 1 + (mixed >> 16) % most;
}

/* The bits of a whole number up to the type's limit, in the low bytes. */
KERNEL_BODY uint64_t kernel_bits(uint32_t type, uint32_t value) {
    float f32 = (float)value;
    double f64 = (double)value;
    uint32_t bits32 = 0, power = 0;
    uint64_t bits64 = 0;
    memcpy(&bits32, &f32, sizeof bits32);
    memcpy(&bits64, &f64, sizeof bits64);
    while (value >> power > 1)
        power++;
    switch (type) {
    case KERNEL_f32:
        return bits32;
    case KERNEL_bf16:
        return bits32 >> 16;
    case KERNEL_f16: /* 2^power * 1.fraction, 10 bits of fraction, exponent biased by 15 */
        return value == 0 ? 0 : (uint64_t)(power + 15) << 10 | ((((uint64_t)value << 10) >> power) & 0x3ff);
    case KERNEL_f64:
        return bits64;
    default:
        return value;
    }
}

/* Thread k of a message: write this device's value at sample k. */
KERNEL_BODY void kernel_produce(const struct kernel_table *table, uint32_t message, uint32_t iteration, int spoilt,
                                uint32_t k) {
    const struct kernel_message *m = &table->messages[message];
    if (k >= m->n_samples)
        return;
    uint32_t value = kernel_value(table->device, table->n_devices, iteration, message, k, m->type);
    uint64_t bits = kernel_bits(m->type, spoilt && k == 0 ? KERNEL_SPOILT : value);
    memcpy(table->data + table->samples[(uint64_t)message * KERNEL_SAMPLES + k], &bits, kernel_width(m->type));
}

/* Thread k of a message: 1 when sample k holds the sum over all devices or does not exist, 2 when it holds another
 * value. */
KERNEL_BODY uint8_t kernel_check(const struct kernel_table *table, uint32_t message, uint32_t iteration, uint32_t k) {
    const struct kernel_message *m = &table->messages[message];
    if (k >= m->n_samples)
        return 1;
    uint32_t sum = 0;
    for (uint32_t device = 0; device < table->n_devices; device++)
        sum += kernel_value(device, table->n_devices, iteration, message, k, m->type);
    uint64_t wanted = kernel_bits(m->type, sum), found = 0, mask = ~UINT64_C(0) >> (64 - 8 * kernel_width(m->type));
    memcpy(&found, table->data + table->samples[(uint64_t)message * KERNEL_SAMPLES + k], kernel_width(m->type));
    return found == (wanted & mask) ? 1 : 2;
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

/* Gather or scatter chunk `block` of `blocks` and every blocks-th after it. */
KERNEL_BODY void kernel_copy_chunks(const struct kernel_chunk *chunks, uint32_t n, char *data, char *buffer,
                                    int scatter, uint32_t block, uint32_t blocks, uint32_t thread, uint32_t threads) {
    for (uint32_t i = block; i < n; i += blocks) {
        char *in_data = data + chunks[i].data, *in_buffer = buffer + chunks[i].buffer;
        kernel_copy(scatter ? in_data : in_buffer, scatter ? in_buffer : in_data, chunks[i].bytes, thread, threads);
    }
}

#ifdef __CUDACC__
KERNEL_BODY uint16_t kernel_add_f16(uint16_t a, uint16_t b) {
    return __half_as_ushort(__float2half_rn(__half2float(__ushort_as_half(a)) + __half2float(__ushort_as_half(b))));
}
#else
KERNEL_BODY float kernel_f16_value(uint16_t bits) {
    const int exponent = bits >> 10 & 31;
    float value = (float)(bits & 0x3ff) / 1024 + (exponent > 0 ? 1 : 0);
    for (int e = exponent > 0 ? exponent : 1; e != 15; e += e < 15 ? 1 : -1)
        value *= e < 15 ? 0.5f : 2;
    return bits >> 15 ? -value : value;
}
/* Add two finite numbers whose sum is finite, and normal or zero. A sum between two f16 numbers is rounded towards
 * zero. */
KERNEL_BODY uint16_t kernel_add_f16(uint16_t a, uint16_t b) {
    const float sum = kernel_f16_value(a) + kernel_f16_value(b);
    uint32_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if (sum == 0)
        return 0;
    return (uint16_t)((bits >> 16 & 0x8000) | (((bits >> 23 & 255) - 112) << 10 & 0x7c00) | (bits >> 13 & 0x3ff));
}
#endif

/* Add two bf16 numbers. The sum is rounded to even, as all adders of bf16 do. */
KERNEL_BODY uint16_t kernel_add_bf16(uint16_t a, uint16_t b) {
    uint32_t wide_a = (uint32_t)a << 16, wide_b = (uint32_t)b << 16, bits;
    float x, y;
    memcpy(&x, &wide_a, sizeof x);
    memcpy(&y, &wide_b, sizeof y);
    x += y;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
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

#endif
