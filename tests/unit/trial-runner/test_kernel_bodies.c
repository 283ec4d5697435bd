/* What the GPU's kernels compute, on the processor: values whose sums are exact in every type and for any number of
 * devices, copies between any two addresses, sums of any type, and shares of threads that make a whole. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/support/check.h"
#include "trial-runner/worker/mpi/blocks.h"
#include "trial-runner/worker/mpi/convert.h"
#include "trial-runner/worker/mpi/half.h"
#include "trial-runner/worker/nccl/kernel_bodies.h"

enum { DEVICES = 64, ELEMENTS = 257 };

/* Sums of type's own addition over devices, and the bits that the check wants. */
static void check_values(uint32_t type, uint32_t n_devices) {
    for (uint32_t k = 0; k < KERNEL_SAMPLES; k++) {
        uint64_t total = 0, one;
        uint32_t sum = 0;
        for (uint32_t device = 0; device < n_devices; device++) {
            uint32_t value = kernel_value(device, n_devices, 3, 17, k, type);
            assert_true(value <= 7);
            sum += value;
            one = kernel_bits(type, value);
            kernel_sum(&total, &one, 1, type, 0, 1);
        }
        uint64_t wanted = kernel_bits(type, sum), mask = ~UINT64_C(0) >> (64 - 8 * kernel_width(type));
        assert_true(n_devices == 0 || sum > 0);
        assert_int_equal(total & mask, wanted & mask);
    }
}

static void sums_are_exact_for_any_number_of_devices(void **state) {
    (void)state;
    static const uint32_t counts[] = {1, 2, 7, 37, 100, 292, 300, 1000, 5000};
    for (uint32_t type = 0; type < KERNEL_TYPES; type++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            check_values(type, counts[i]);
}

static void every_device_has_its_own_part_in_a_sum(void **state) {
    (void)state;
    for (uint32_t device = 0; device < 8; device++)
        for (uint32_t k = 0; k < KERNEL_SAMPLES; k++)
            assert_true(kernel_value(device, 8, 1, 2, k, KERNEL_f32) >= 1);
}

/* Two devices' tables over memory of their own. */
struct device {
    uint64_t data[64];
    struct kernel_message messages[2];
    struct kernel_sample samples[2 * KERNEL_SAMPLES];
    struct kernel_table table;
};

static void device_init(struct device *d, uint32_t number, uint32_t type) {
    *d = (struct device){.messages = {{type, KERNEL_SAMPLES, type, type, 0, 0, 0}, {type, 3, type, type, 0, 1, 0}}};
    for (uint32_t k = 0; k < KERNEL_SAMPLES + 3; k++)
        d->samples[k] = (struct kernel_sample){k * kernel_width(type), k * kernel_width(type), {0, 1, 2}};
    d->table = (struct kernel_table){(char *)d->data, d->messages, d->samples, number, 2, 1};
}

static unsigned wrong_samples(const struct device *d, uint32_t message, uint32_t iteration) {
    unsigned wrong = 0;
    for (uint32_t k = 0; k < KERNEL_SAMPLES; k++)
        wrong += kernel_check(&d->table, message, iteration, k) != 1;
    return wrong;
}

static void produce(struct device *d, uint32_t iteration, int spoilt) {
    for (uint32_t message = 0; message < 2; message++)
        for (uint32_t k = 0; k < KERNEL_SAMPLES; k++)
            kernel_produce(&d->table, message, iteration, 0, spoilt, k);
}

static void a_check_knows_the_sum_and_nothing_else(void **state) {
    (void)state;
    for (uint32_t type = 0; type < KERNEL_TYPES; type++) {
        struct device a, b;
        device_init(&a, 0, type);
        device_init(&b, 1, type);
        produce(&a, 5, 0);
        produce(&b, 5, 0);
        assert_int_equal(wrong_samples(&a, 0, 5), KERNEL_SAMPLES);
        kernel_sum(a.data, b.data, KERNEL_SAMPLES + 3, type, 0, 1);
        assert_int_equal(wrong_samples(&a, 0, 5), 0);
        assert_int_equal(wrong_samples(&a, 1, 5), 0);
        assert_true(wrong_samples(&a, 0, 6) > 0);
        produce(&a, 5, 1);
        kernel_sum(a.data, b.data, KERNEL_SAMPLES + 3, type, 0, 1);
        assert_int_equal(wrong_samples(&a, 0, 5), 1);
        assert_int_equal(wrong_samples(&a, 1, 5), 1);
    }
}

/* Gathered into another type chunks are as the MPI worker converts them, in any share of blocks and threads, and come
 * back. */
static void chunks_are_converted_as_the_mpi_worker_does(void **state) {
    (void)state;
    enum { N = 37 };
    static const uint32_t floats[] = {KERNEL_f32, KERNEL_f16, KERNEL_bf16, KERNEL_f64};
    for (int pair = 0; pair < 16; pair++) {
        const uint32_t in_data = floats[pair / 4], in_buffer = floats[pair % 4];
        const uint64_t bytes = N * kernel_width(in_buffer);
        const struct kernel_chunk chunk = {8, 16, bytes, in_data, in_buffer};
        uint64_t data[N + 2] = {0}, buffer[N + 3] = {0}, wanted[N] = {0}, before[N + 2];
        for (uint64_t i = 0; i < N; i++)
            kernel_store_float(data + 1, in_data, i, ((double)i - 11) * 0.75);
        memcpy(before, data, sizeof data);
        convert_elements(wanted, (enum dtype)in_buffer, data + 1, (enum dtype)in_data, N);
        for (uint32_t thread = 0; thread < 5; thread++)
            kernel_copy_chunks(&chunk, 1, (char *)data, (char *)buffer, 0, 0, 1, thread, 5);
        assert_memory_equal(buffer + 2, wanted, bytes);
        memset(data + 1, 0x55, N * kernel_width(in_data));
        for (uint32_t thread = 0; thread < 5; thread++)
            kernel_copy_chunks(&chunk, 1, (char *)data, (char *)buffer, 1, 0, 1, thread, 5);
        assert_memory_equal(data, before, sizeof data);
        assert_int_equal(buffer[1], 0);
    }
}

/* Shares of micro-batches add up to what one micro-batch would make; before the last they do not, and a spoilt one is
 * wrong. What is made at once comes with the last. */
static void micro_batches_add_up_to_the_value(void **state) {
    (void)state;
    for (uint32_t type = 0; type < KERNEL_TYPES; type++)
        for (uint32_t n = 2; n < 10; n++) {
            struct device a, whole;
            device_init(&a, 1, type);
            device_init(&whole, 1, type);
            produce(&whole, 4, 0);
            a.table.micro_batches = n;
            a.messages[0].adds_up = 1;
            memset(a.data, 0xff, sizeof a.data); /* the first writes over what is there */
            for (uint32_t i = 0; i < n; i++) {
                for (uint32_t k = 0; k < KERNEL_SAMPLES; k++)
                    kernel_produce(&a.table, 0, 4, i, 0, k);
                const bool all = memcmp(a.data, whole.data, KERNEL_SAMPLES * kernel_width(type)) == 0;
                assert_int_equal(all, i + 1 == n);
            }
            kernel_produce(&a.table, 0, 4, n - 1, 1, 0);
            assert_int_not_equal(memcmp(a.data, whole.data, kernel_width(type)), 0);
            a.messages[0].adds_up = 0;
            memset(a.data, 0, sizeof a.data);
            kernel_produce(&a.table, 0, 4, 0, 0, 0);
            assert_int_equal(a.data[0], 0);
            kernel_produce(&a.table, 0, 4, n - 1, 0, 0);
            assert_int_equal(memcmp(a.data, whole.data, kernel_width(type)), 0);
        }
}

/* Every alignment of both ends, with one thread and with several. */
static void copies_are_whole_wherever_they_lie(void **state) {
    (void)state;
    struct rng rng;
    char from[512], to[512];
    rng_seed(&rng, test_seed());
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (char)rng_below(&rng, 256);
    for (int round = 0; round < 2000; round++) {
        const uint64_t a = rng_below(&rng, 33), b = rng_below(&rng, 33), n = rng_below(&rng, 400);
        const uint32_t threads = 1 + (uint32_t)rng_below(&rng, 40);
        memset(to, 99, sizeof to);
        for (uint32_t thread = 0; thread < threads; thread++)
            kernel_copy(to + a, from + b, n, thread, threads);
        assert_memory_equal(to + a, from + b, n);
        for (uint64_t i = 0; i < sizeof to; i++)
            assert_true((i >= a && i < a + n) || to[i] == 99);
    }
}

static void scattering_undoes_gathering_in_any_share_of_blocks(void **state) {
    (void)state;
    static const struct kernel_chunk chunks[] = {
        {64, 0, 33, 0, 0}, {0, 33, 16, 0, 0}, {200, 49, 64, 0, 0}, {128, 113, 7, 0, 0}};
    char data[300], back[300] = {0}, buffer[120] = {0};
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 7 + 1);
    for (uint32_t block = 0; block < 3; block++)
        for (uint32_t thread = 0; thread < 5; thread++)
            kernel_copy_chunks(chunks, 4, data, buffer, 0, block, 3, thread, 5);
    assert_memory_equal(buffer + 33, data, 16);
    for (uint32_t thread = 0; thread < 5; thread++)
        kernel_copy_chunks(chunks, 4, back, buffer, 1, 0, 1, thread, 5);
    for (int i = 0; i < 4; i++)
        assert_memory_equal(back + chunks[i].data, data + chunks[i].data, chunks[i].bytes);
    assert_int_equal(back[63], 0);
    assert_int_equal(back[97], 0);
}

static void threads_share_a_sum_without_gaps(void **state) {
    (void)state;
    float to[ELEMENTS], from[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++) {
        to[i] = (float)i;
        from[i] = 1;
    }
    for (uint32_t thread = 0; thread < 32; thread++)
        kernel_sum(to, from, ELEMENTS, KERNEL_f32, thread, 32);
    for (int i = 0; i < ELEMENTS; i++)
        assert_true(to[i] == (float)(i + 1));
}

/* 1 + 2^-8 is half-way between two numbers of bf16: to the even one, 1; 1 + 3 * 2^-8 to 1 + 2^-6. */
static void bf16_rounds_to_even(void **state) {
    (void)state;
    const uint16_t one = 0x3f80, step = 0x3b80, three_steps = 0x3c40;
    assert_int_equal(kernel_add_bf16(one, step), one);
    assert_int_equal(kernel_add_bf16(one, three_steps), 0x3f82);
}

/* Every pair of some f16 numbers, more than eight at a time: the nearest number to the sum. */
static void f16_sums_are_the_nearest_numbers(void **state) {
    (void)state;
    enum { N = 19 };
    uint16_t to[N], from[N], before[N];
    struct rng rng;
    rng_seed(&rng, 1);
    for (int round = 0; round < 2000; round++) {
        for (int i = 0; i < N; i++) { /* from 2^-4 to 2^4, of either sign */
            before[i] = to[i] =
                (uint16_t)(rng_below(&rng, 2) << 15 | (11 + rng_below(&rng, 8)) << 10 | rng_below(&rng, 1024));
            from[i] = (uint16_t)(rng_below(&rng, 2) << 15 | (11 + rng_below(&rng, 8)) << 10 | rng_below(&rng, 1024));
        }
        half_add_f16(to, from, N);
        for (int i = 0; i < N; i++) {
            float sum = kernel_f16_value(before[i]) + kernel_f16_value(from[i]), found = kernel_f16_value(to[i]);
            assert_true(fabsf(found - sum) <= fabsf(sum) / 1024 + 0x1p-24f);
        }
    }
}

static void bf16_sums_go_element_by_element(void **state) {
    (void)state;
    uint16_t to[] = {0x3f80, 0x4000, 0xc040}, from[] = {0x3f80, 0x3f80, 0x3f80}; /* 1 + 1, 2 + 1, -3 + 1 */
    half_add_bf16(to, from, 3);
    assert_int_equal(to[0], 0x4000);
    assert_int_equal(to[1], 0x4040);
    assert_int_equal(to[2], 0xc000);
}

/* All 65536 numbers of 16 bits go to f32 and f64 and back unchanged; NaN stays NaN. */
static void what_fits_into_16_bits_survives_encoding(void **state) {
    (void)state;
    static const enum dtype narrow[] = {DTYPE_f16, DTYPE_bf16}, wide[] = {DTYPE_f32, DTYPE_f64};
    enum { ALL = 65536 };
    uint16_t *all = malloc(ALL * sizeof *all), *back = malloc(ALL * sizeof *back);
    double *values = malloc(ALL * sizeof *values);
    assert_true(all && back && values);
    for (uint32_t i = 0; i < ALL; i++)
        all[i] = (uint16_t)i;
    for (int kind = 0; kind < 4; kind++) {
        enum dtype type = narrow[kind / 2];
        const uint16_t infinite = type == DTYPE_f16 ? 0x7c00 : 0x7f80;
        convert_decode(values, wide[kind % 2], all, type, ALL);
        convert_encode(back, type, values, wide[kind % 2], ALL);
        for (uint32_t i = 0; i < ALL; i++)
            if ((i & 0x7fff) > infinite)
                assert_true((back[i] & 0x7fff) > infinite);
            else
                assert_int_equal(back[i], i);
    }
    free(values);
    free(back);
    free(all);
}

/* The processor's conversions and ours, on random bits of f32 and on the halves between two numbers of f16. */
static void encoding_rounds_as_the_processor_does(void **state) {
    (void)state;
    enum { N = 4096 };
    float from[N];
    uint16_t fast[N];
    struct rng rng;
    rng_split(&rng, test_seed(), 7);
    for (uint32_t i = 0; i < N; i++)
        from[i] =
            kernel_float(i % 2 ? (uint32_t)rng_next(&rng) : 0x33000000 + 0x1000 * (uint32_t)rng_below(&rng, 81920));
    size_t n = convert_to_f16_fast(fast, from, N);
    for (size_t i = 0; i < n; i++)
        if (!isnan(from[i]))
            assert_int_equal(fast[i], kernel_f16_of(from[i]));
    assert_int_equal(kernel_f16_of(1 + 0x1p-11f), 0x3c00); /* half-way: to the even one */
    assert_int_equal(kernel_f16_of(1 + 0x3p-11f), 0x3c02);
    assert_int_equal(kernel_f16_of(65519), 0x7bff);
    assert_int_equal(kernel_f16_of(-65520), 0xfc00);
    assert_int_equal(kernel_f16_of(0x1p-25f), 0);
    assert_int_equal(kernel_bf16_of(1 + 0x1p-8f), 0x3f80);
    assert_int_equal(kernel_bf16_of(1 + 0x3p-8f), 0x3f82);
}

/* Through f32, which holds all types of 16 bits; f64 is rounded to f32 first. */
static void any_type_of_floats_becomes_any_other(void **state) {
    (void)state;
    static const enum dtype types[] = {DTYPE_f32, DTYPE_f16, DTYPE_bf16, DTYPE_f64};
    enum { N = 37 }; /* some by eight, some one by one */
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int pair = 0; pair < 16; pair++) {
        const enum dtype from = types[pair / 4], to = types[pair % 4];
        double before[N], after[N], wanted[N];
        _Alignas(double) char source[8 * N], target[8 * N];
        for (int i = 0; i < N; i++)
            before[i] = (rng_uniform(&rng) - 0.5) * 100;
        for (int i = 0; i < N; i++) {
            const float wide = (float)before[i];
            const float value = from == DTYPE_f16    ? kernel_value_of_f16(kernel_f16_of(wide))
                                : from == DTYPE_bf16 ? kernel_value_of_bf16(kernel_bf16_of(wide))
                                                     : wide;
            before[i] = from == DTYPE_f64 ? before[i] : (double)value;
            const float narrow = (float)before[i];
            wanted[i] = to == DTYPE_f16    ? (double)kernel_value_of_f16(kernel_f16_of(narrow))
                        : to == DTYPE_bf16 ? (double)kernel_value_of_bf16(kernel_bf16_of(narrow))
                        : to == DTYPE_f32  ? (double)narrow
                                           : before[i];
        }
        convert_elements(source, from, before, DTYPE_f64, N);
        convert_elements(target, to, source, from, N);
        convert_elements(after, DTYPE_f64, target, to, N);
        assert_memory_equal(after, wanted, sizeof after);
    }
}

/* All blocks of a run, each by `threads` threads. */
static void encode(char *to, const float *from, uint64_t n, uint32_t block, uint32_t threads) {
    for (uint64_t b = 0; b * block < n; b++) {
        int32_t largest = 0;
        for (uint32_t thread = 0; thread < threads; thread++) {
            const int32_t its = kernel_block_largest(from, n, block, b, thread, threads);
            largest = its > largest ? its : largest;
        }
        for (uint32_t thread = 0; thread < threads; thread++)
            kernel_encode_block(to, from, n, block, b, largest, thread, threads);
    }
}

/* Bit by bit, however many threads share a block, wherever scales lie; nothing beside the blocks is written. */
static void blocks_are_those_of_the_mpi_worker(void **state) {
    (void)state;
    enum { MOST = 1500, PARTS = 3, ROOM = MOST * 2 + 16 };
    static float values[MOST], sum[MOST], wanted_sum[MOST];
    static char encoded[PARTS * ROOM], wanted[PARTS * ROOM];
    struct rng rng;
    rng_split(&rng, test_seed(), 8);
    for (int round = 0; round < 300; round++) {
        const uint64_t n = 1 + rng_below(&rng, MOST);
        const uint32_t block = 8 + (uint32_t)rng_below(&rng, 600), threads = 1 + (uint32_t)rng_below(&rng, 40);
        const uint64_t stride = n + (n + block - 1) / block * sizeof(float) + rng_below(&rng, 5);
        memset(encoded, 0x55, sizeof encoded);
        memset(wanted, 0x55, sizeof wanted);
        memset(wanted_sum, 0, sizeof wanted_sum);
        for (uint32_t part = 0; part < PARTS; part++) {
            for (uint64_t i = 0; i < n; i++)
                values[i] =
                    rng_below(&rng, 4) == 0 ? 0 : (float)(rng_log_between(&rng, 1e-12, 1e12) * rng_normal(&rng));
            encode(encoded + part * stride, values, n, block, threads);
            blocks_encode(wanted + part * stride, values, n, block);
            blocks_add(wanted_sum, wanted + part * stride, n, block);
        }
        assert_memory_equal(encoded, wanted, sizeof encoded);
        for (uint64_t b = 0; b * block < n; b++)
            for (uint32_t thread = 0; thread < threads; thread++)
                kernel_sum_block(sum, encoded, stride, PARTS, n, block, b, thread, threads);
        assert_memory_equal(sum, wanted_sum, n * sizeof *sum);
    }
}

/* Two devices' samples of two blocks, encoded, added and encoded again by the passes themselves. The error of a sum is
 * within half a step of each of the three scales. */
static void a_check_knows_what_blocks_leave_of_a_sum(void **state) {
    (void)state;
    enum { BLOCK = 8, ITERATION = 5 };
    struct device d[2];
    char encoded[2][KERNEL_SAMPLES * 2];
    for (uint32_t i = 0; i < 2; i++) {
        device_init(&d[i], i, KERNEL_f32);
        produce(&d[i], ITERATION, 0);
        encode(encoded[i], (const float *)(const void *)d[i].data, KERNEL_SAMPLES, BLOCK, 1);
    }
    float *sum = (float *)(void *)d[0].data;
    for (uint64_t b = 0; b < KERNEL_SAMPLES / BLOCK; b++)
        kernel_sum_block(sum, encoded[0], sizeof encoded[0], 2, KERNEL_SAMPLES, BLOCK, b, 0, 1);
    encode(encoded[0], sum, KERNEL_SAMPLES, BLOCK, 1);
    for (uint64_t b = 0; b < KERNEL_SAMPLES / BLOCK; b++)
        kernel_sum_block(sum, encoded[0], 0, 1, KERNEL_SAMPLES, BLOCK, b, 0, 1);
    for (uint32_t k = 0; k < KERNEL_SAMPLES; k++) {
        const uint32_t first = k / BLOCK * BLOCK;
        const uint32_t exact = kernel_sum_over((struct kernel_devices){0, 1, 2}, 2, ITERATION, 0, k, KERNEL_f32);
        const float wanted = blocks_sum_of_sample(2, ITERATION, 0, k, first, first + BLOCK, KERNEL_f32);
        const double found = kernel_number((const char *)d[0].data, k * sizeof(float), KERNEL_f32);
        assert_true(found == (double)wanted && fabs(found - exact) <= 0.5 * (7 + 7 + 14.1) / 127);
    }
    assert_true(kernel_number((const char *)d[0].data, KERNEL_NOWHERE, KERNEL_f32) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_exact_for_any_number_of_devices),
        cmocka_unit_test(every_device_has_its_own_part_in_a_sum),
        cmocka_unit_test(a_check_knows_the_sum_and_nothing_else),
        cmocka_unit_test(chunks_are_converted_as_the_mpi_worker_does),
        cmocka_unit_test(micro_batches_add_up_to_the_value),
        cmocka_unit_test(copies_are_whole_wherever_they_lie),
        cmocka_unit_test(scattering_undoes_gathering_in_any_share_of_blocks),
        cmocka_unit_test(threads_share_a_sum_without_gaps),
        cmocka_unit_test(bf16_rounds_to_even),
        cmocka_unit_test(f16_sums_are_the_nearest_numbers),
        cmocka_unit_test(bf16_sums_go_element_by_element),
        cmocka_unit_test(what_fits_into_16_bits_survives_encoding),
        cmocka_unit_test(encoding_rounds_as_the_processor_does),
        cmocka_unit_test(any_type_of_floats_becomes_any_other),
        cmocka_unit_test(blocks_are_those_of_the_mpi_worker),
        cmocka_unit_test(a_check_knows_what_blocks_leave_of_a_sum),
    };
    return cmocka_run_group_tests_name("kernel_bodies", tests, NULL, NULL);
}
