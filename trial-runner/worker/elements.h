/* Elements of gradients: their types, the values that prove a sum, and sums of 16-bit floats. The same text for nvcc
 * and for a C compiler. */
#ifndef TRIAL_RUNNER_WORKER_ELEMENTS_H
#define TRIAL_RUNNER_WORKER_ELEMENTS_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#include <cuda_fp16.h>
#define KERNEL_BODY static __device__ __forceinline__
#define KERNEL_BOTH static __host__ __device__ __forceinline__ /* for those who launch kernels too */
#else
#define KERNEL_BODY static inline
#define KERNEL_BOTH static inline
#endif

/* Element types, numbered as strategy/model.h's enum dtype. */
enum kernel_type { KERNEL_f32, KERNEL_f16, KERNEL_bf16, KERNEL_f64, KERNEL_i32, KERNEL_i64, KERNEL_u8, KERNEL_TYPES };

enum { KERNEL_SAMPLES = 16 }; /* of a message, at most (trial-runner/worker/layout.h) */

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

/* What a device adds in one of several micro-batches, so that all of them add up to its value: floor(v / n) +
 * floor((v + 1) / n) + ... + floor((v + n - 1) / n) is v (Hermite), in whatever order. The order turns, so that every
 * micro-batch has a part in some sample. */
KERNEL_BODY uint32_t kernel_share(uint32_t value, uint32_t micro_batch, uint32_t micro_batches, uint32_t iteration,
                                  uint32_t k) {
    return (value + (micro_batch + k + iteration) % micro_batches) / micro_batches;
}

/* The device `first` and n - 1 more, each `stride` after the one before. */
struct kernel_devices {
    uint32_t first, stride, n;
};

/* The sum of their values. */
KERNEL_BODY uint32_t kernel_sum_over(struct kernel_devices devices, uint32_t n_devices, uint32_t iteration,
                                     uint32_t message, uint32_t k, uint32_t type) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < devices.n; i++)
        sum += kernel_value(devices.first + i * devices.stride, n_devices, iteration, message, k, type);
    return sum;
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

/* ---- a float as a number of 16 bits, rounded to even, and back ---- */

KERNEL_BODY uint32_t kernel_float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

KERNEL_BODY float kernel_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Below 2^-14 f16 counts in steps of 2^-24, which are the steps of f32 from 1/2 on: so adding 1/2 rounds. */
KERNEL_BODY uint16_t kernel_f16_of(float value) {
    uint32_t bits = kernel_float_bits(value), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000)
        return (uint16_t)(sign | 0x7e00);
    if (size >= 0x47800000) /* 65536 */
        return (uint16_t)(sign | 0x7c00);
    if (size < 0x38800000) /* 2^-14 */
        return (uint16_t)(sign | (kernel_float_bits(kernel_float(size) + 0.5f) - 0x3f000000));
    return (uint16_t)(sign | (size + 0xfff + (size >> 13 & 1) - 0x38000000) >> 13);
}

KERNEL_BODY float kernel_value_of_f16(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, size = (uint32_t)(bits & 0x7fff) << 13;
    if (size >= 0x7c00u << 13)
        return kernel_float(sign | 0x7f800000 | size);
    return kernel_float(sign | kernel_float_bits(kernel_float(size) * 0x1p112f));
}

KERNEL_BODY uint16_t kernel_bf16_of(float value) {
    uint32_t bits = kernel_float_bits(value), rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : rounded);
}

KERNEL_BODY float kernel_value_of_bf16(uint16_t bits) {
    return kernel_float((uint32_t)bits << 16);
}

/* Element i of any type of floats, and storing there. */
KERNEL_BODY double kernel_float_at(const void *from, uint32_t type, uint64_t i) {
    return type == KERNEL_f16    ? (double)kernel_value_of_f16(((const uint16_t *)from)[i])
           : type == KERNEL_bf16 ? (double)kernel_value_of_bf16(((const uint16_t *)from)[i])
           : type == KERNEL_f32  ? (double)((const float *)from)[i]
                                 : ((const double *)from)[i];
}
KERNEL_BODY void kernel_store_float(void *to, uint32_t type, uint64_t i, double value) {
    if (type == KERNEL_f64)
        ((double *)to)[i] = value;
    else if (type == KERNEL_f32)
        ((float *)to)[i] = (float)value;
    else
        ((uint16_t *)to)[i] = type == KERNEL_f16 ? kernel_f16_of((float)value) : kernel_bf16_of((float)value);
}

#endif
