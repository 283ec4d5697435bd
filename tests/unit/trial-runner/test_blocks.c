/* Block-scaled 8-bit integers against a plain reading with the C library's division and rounding, and the bound of the
 * error that follows from the scale. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "strategy/encoder.h"
#include "tests/support/check.h"
#include "trial-runner/worker/mpi/blocks.h"

enum { MOST = 3000 };

static void draw(struct rng *rng, float *values, size_t n) {
    const double size = rng_log_between(rng, 1e-20, 1e20);
    const bool zeros = rng_below(rng, 4) == 0;
    for (size_t i = 0; i < n; i++)
        values[i] = zeros && rng_below(rng, 10) ? 0 : (float)(size * rng_normal(rng));
}

/* Whether `got` is what the plain reading gives: the nearest number of steps, either where two are as near. */
static void check_element(float value, float got, double scale) {
    const double steps = scale > 0 ? (double)value / scale : 0, is = scale > 0 ? (double)got / scale : 0;
    assert_true(fabs(is - round(is)) < 1e-4 && fabs(is) < 127.5);
    assert_true(fabs(steps - is) <= 0.5 + 1e-4);
}

static void check_blocks(const float *values, const float *got, size_t n, size_t block) {
    for (size_t at = 0; at < n; at += block) {
        float largest = 0;
        for (size_t i = at; i < n && i < at + block; i++)
            largest = fmaxf(largest, fabsf(values[i]));
        for (size_t i = at; i < n && i < at + block; i++)
            check_element(values[i], got[i], (double)largest / 127);
    }
}

static void what_comes_back_is_the_nearest_step_of_each_blocks_scale(void **state) {
    (void)state;
    struct rng rng;
    float values[MOST], got[MOST], sum[MOST];
    char *encoded = malloc(2 * MOST);
    rng_split(&rng, test_seed(), 1);
    for (int i = 0; i < 2000; i++) {
        const size_t n = 1 + rng_below(&rng, MOST), block = 8 + rng_below(&rng, 600);
        const size_t bytes = encoder_bytes(ENCODING_int8, (double)block, n);
        draw(&rng, values, n);
        memset(encoded, 0x55, 2 * MOST);
        blocks_encode(encoded, values, n, block);
        assert_int_equal(encoded[bytes], 0x55); /* nothing behind it is written */
        blocks_decode(got, encoded, n, block);
        check_blocks(values, got, n, block);
        memcpy(sum, values, sizeof sum);
        blocks_add(sum, encoded, n, block);
        for (size_t k = 0; k < n; k++) {
            const float added = values[k] + got[k];
            assert_memory_equal(&sum[k], &added, sizeof added);
        }
    }
    free(encoded);
}

static void the_largest_of_a_block_and_zero_come_back_as_they_are(void **state) {
    (void)state;
    const float values[9] = {0, -3.5f, 1, 0, 0, 0, 0, 3.5f, -0.0f};
    float got[9];
    char encoded[9 + 2 * sizeof(float)];
    blocks_encode(encoded, values, 9, 8);
    blocks_decode(got, encoded, 9, 8);
    assert_close((double)got[1], -3.5, 1e-6);
    assert_close((double)got[7], 3.5, 1e-6);
    assert_true(got[0] == 0 && got[8] == 0);
}

static void blocks_with_what_is_not_finite_are_not_numbers_and_others_are(void **state) {
    (void)state;
    const float bad[] = {INFINITY, -INFINITY, NAN};
    for (int i = 0; i < 3; i++) {
        float values[16] = {0}, got[16];
        char encoded[16 + 2 * sizeof(float)];
        values[3] = bad[i];
        values[9] = 2;
        blocks_encode(encoded, values, 16, 8);
        blocks_decode(got, encoded, 16, 8);
        assert_true(isnan(got[3]) && isnan(got[0]));
        assert_close((double)got[9], 2, 1e-6);
        assert_true(got[8] == 0);
    }
}

/* Rounding to steps of 1/127 loses a twelfth of a step squared of what has the mean square 1/3: 1/254 of its size. */
static void uniform_values_lose_what_rounding_to_steps_loses(void **state) {
    (void)state;
    struct rng rng;
    enum { N = 65536 };
    float *values = calloc(N, sizeof *values), *got = calloc(N, sizeof *got);
    char *encoded = malloc(2 * N);
    double lost = 0, all = 0;
    rng_split(&rng, test_seed(), 3);
    for (size_t i = 0; i < N; i++)
        values[i] = (float)rng_between(&rng, -1, 1);
    blocks_encode(encoded, values, N, 4096);
    blocks_decode(got, encoded, N, 4096);
    for (size_t i = 0; i < N; i++) {
        lost += pow((double)values[i] - (double)got[i], 2);
        all += pow((double)values[i], 2);
    }
    assert_close(sqrt(lost / all), 1 / 254.0, 0.03);
    free(values);
    free(got);
    free(encoded);
}

/* The two forms of the code, with wide registers and without, write the same bytes. */
static void wide_registers_round_as_narrow_ones_do(void **state) {
    (void)state;
    struct rng rng;
    float values[MOST];
    int8_t one[MOST], two[MOST];
    rng_split(&rng, test_seed(), 2);
    for (int i = 0; i < 500; i++) {
        const size_t n = 1 + rng_below(&rng, MOST);
        draw(&rng, values, n);
        const float a = blocks_encode_plainly(one, values, n), b = blocks_encode_one(two, values, n);
        assert_memory_equal(&a, &b, sizeof a);
        assert_memory_equal(one, two, n);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_back_is_the_nearest_step_of_each_blocks_scale),
        cmocka_unit_test(the_largest_of_a_block_and_zero_come_back_as_they_are),
        cmocka_unit_test(blocks_with_what_is_not_finite_are_not_numbers_and_others_are),
        cmocka_unit_test(uniform_values_lose_what_rounding_to_steps_loses),
        cmocka_unit_test(wide_registers_round_as_narrow_ones_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
