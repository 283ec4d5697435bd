/* The generator against its published numbers, and each distribution against its mean, spread or frequencies, with
 * bounds of six standard errors. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "tests/support/check.h"

enum { DRAWS = 200000 };

static void seed_zero_gives_the_published_splitmix64_state(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, 0);
    assert_true(rng.s[0] == UINT64_C(0xe220a8397b1dcdaf));
    assert_true(rng.s[1] == UINT64_C(0x6e789e6aa1b965f4));
    assert_true(rng.s[2] == UINT64_C(0x06c45d188009454f));
    assert_true(rng.s[3] == UINT64_C(0xf88bb8a8724c81ec));
}

/* From state 1, 2, 3, 4 the reference program prints these. */
static void the_first_numbers_are_those_of_the_reference_program(void **state) {
    (void)state;
    static const uint64_t want[] = {11520,
                                    0,
                                    1509978240,
                                    UINT64_C(1215971899390074240),
                                    UINT64_C(1216172134540287360),
                                    UINT64_C(607988272756665600),
                                    UINT64_C(16172922978634559625),
                                    UINT64_C(8476171486693032832)};
    struct rng rng = {{1, 2, 3, 4}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        assert_true(rng_next(&rng) == want[i]);
}

static void a_split_stream_depends_on_seed_and_stream_only(void **state) {
    (void)state;
    struct rng a, b, c, d;
    rng_split(&a, test_seed(), 3);
    rng_split(&b, test_seed(), 3);
    rng_split(&c, test_seed(), 4);
    rng_split(&d, test_seed() + 1, 3);
    int same = 0;
    for (int i = 0; i < 1000; i++) {
        const uint64_t x = rng_next(&a);
        assert_true(x == rng_next(&b));
        same += x == rng_next(&c);
        same += x == rng_next(&d);
    }
    assert_int_equal(same, 0);
}

static void numbers_below_n_are_uniform(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    int count[7] = {0};
    for (int i = 0; i < DRAWS; i++)
        count[rng_below(&rng, 7)]++;
    for (int k = 0; k < 7; k++)
        assert_true(fabs(count[k] - DRAWS / 7.0) < 6 * sqrt(DRAWS * (1.0 / 7) * (6.0 / 7)));
    /* With n = 3 * 2^62 plain multiplication would give the lowest third of each block twice as often. */
    int low = 0;
    for (int i = 0; i < DRAWS; i++)
        low += rng_below(&rng, UINT64_C(3) << 62) % 3 == 0;
    assert_true(fabs(low - DRAWS / 3.0) < 6 * sqrt(DRAWS * 2.0 / 9));
    assert_true(rng_below(&rng, 1) == 0);
}

static void uniform_and_normal_numbers_have_their_moments(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    double sum = 0, squares = 0, normal = 0, normal_squares = 0, fourth = 0;
    for (int i = 0; i < DRAWS; i++) {
        const double u = rng_uniform(&rng), z = rng_normal(&rng);
        assert_true(u >= 0 && u < 1);
        sum += u;
        squares += u * u;
        normal += z;
        normal_squares += z * z;
        fourth += z * z * z * z;
    }
    const double root = sqrt(DRAWS);
    assert_true(fabs(sum / DRAWS - 0.5) < 6 * sqrt(1 / 12.0) / root);
    assert_true(fabs(squares / DRAWS - 1 / 3.0) < 6 * sqrt(4 / 45.0) / root);
    assert_true(fabs(normal / DRAWS) < 6 / root);
    assert_true(fabs(normal_squares / DRAWS - 1) < 6 * sqrt(2) / root);
    assert_true(fabs(fourth / DRAWS - 3) < 6 * sqrt(96) / root);
}

static void ranges_are_kept(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    double log_sum = 0;
    for (int i = 0; i < DRAWS; i++) {
        const double x = rng_between(&rng, -3, 5), y = rng_log_between(&rng, 1e-3, 1e3);
        assert_true(x >= -3 && x < 5);
        assert_true(y >= 1e-3 && y <= 1e3);
        log_sum += log10(y);
        const double narrow = rng_between(&rng, 1, nextafter(1, 2));
        assert_true(narrow == 1);
    }
    assert_true(fabs(log_sum / DRAWS) < 6 * sqrt(3.0) / sqrt(DRAWS));
    assert_true(rng_between(&rng, 2, 2) == 2);
    assert_true(rng_log_between(&rng, 2, 2) == 2);
}

static void weights_are_respected_and_zero_is_never_drawn(void **state) {
    (void)state;
    static const double weights[] = {0, 1, 0, 3, 0};
    struct rng rng;
    rng_seed(&rng, test_seed());
    int count[5] = {0};
    for (int i = 0; i < DRAWS; i++)
        count[rng_weighted(&rng, 5, weights)]++;
    assert_int_equal(count[0] + count[2] + count[4], 0);
    assert_true(fabs(count[1] - DRAWS / 4.0) < 6 * sqrt(DRAWS * 3.0 / 16));
}

static void every_order_is_equally_likely_after_a_shuffle(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    int count[3][3] = {{0}};
    for (int i = 0; i < DRAWS; i++) {
        uint32_t items[3] = {0, 1, 2};
        rng_shuffle(&rng, 3, items);
        assert_int_equal(items[0] + items[1] + items[2], 3);
        assert_true(items[0] != items[1] && items[1] != items[2]);
        count[items[0]][items[1]]++;
    }
    for (int a = 0; a < 3; a++) {
        for (int b = 0; b < 3; b++) {
            if (a != b)
                assert_true(fabs(count[a][b] - DRAWS / 6.0) < 6 * sqrt(DRAWS * 5.0 / 36));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seed_zero_gives_the_published_splitmix64_state),
        cmocka_unit_test(the_first_numbers_are_those_of_the_reference_program),
        cmocka_unit_test(a_split_stream_depends_on_seed_and_stream_only),
        cmocka_unit_test(numbers_below_n_are_uniform),
        cmocka_unit_test(uniform_and_normal_numbers_have_their_moments),
        cmocka_unit_test(ranges_are_kept),
        cmocka_unit_test(weights_are_respected_and_zero_is_never_drawn),
        cmocka_unit_test(every_order_is_equally_likely_after_a_shuffle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
