/* Equation 3 on cases worked by hand, and its derivatives against finite differences. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "simulator/learned/loss.h"
#include "tests/support/check.h"

enum { N = 9 };
static const uint32_t MEMBERS[N] = {0, 1, 2, 3, 4, 5, 6, 7, 8};

struct instance {
    double us[N], score[N], slope[N], curve[N];
    uint64_t partitions[N];
};

static double value(const struct loss *loss, const struct instance *in, size_t n, double offset) {
    const struct loss_view view = {in->us, in->partitions, in->score, NULL, NULL};
    return loss_group(loss, &view, n, MEMBERS, offset, 1);
}

static double derive(const struct loss *loss, struct instance *in, size_t n, double offset) {
    const struct loss_view view = {in->us, in->partitions, in->score, in->slope, in->curve};
    return loss_group(loss, &view, n, MEMBERS, offset, 1);
}

static void a_higher_score_of_the_slower_one_costs_less(void **state) {
    (void)state;
    const struct loss loss = {.temperature = 1};
    struct instance in = {.us = {200, 100}, .score = {1.5, 0.5}};
    assert_close(value(&loss, &in, 2, 0), log(1 + exp(-1)), 1e-12);
    in.score[0] = -0.5;
    assert_close(value(&loss, &in, 2, 0), log(1 + exp(1)), 1e-12);
    derive(&loss, &in, 2, 0);
    assert_true(in.slope[0] < 0 && in.slope[1] > 0); /* downhill: the slower one's score rises */
    assert_close(in.slope[0], -in.slope[1], 1e-12);
}

static void the_temperature_divides_differences_of_scores(void **state) {
    (void)state;
    const struct loss loss = {.temperature = 0.1};
    struct instance in = {.us = {200, 100}, .score = {0.2, 0.1}};
    assert_close(value(&loss, &in, 2, 0), log(1 + exp(-1)), 1e-12);
}

static void times_that_are_equal_make_no_pair(void **state) {
    (void)state;
    const struct loss loss = {.temperature = 1};
    struct instance in = {.us = {100, 100}, .score = {3, -3}};
    assert_close(derive(&loss, &in, 2, 0), 0, 0);
    assert_close(in.slope[0], 0, 0);
}

/* f = 100, 90 and P = 2, 5: without sigma the first is slower; with sigma = 20 it is the second, for it has more
 * partitions (90 + 20 > 100) and the first's time is lowered (100 - 20 < 90). */
static void the_penalty_turns_a_close_pair_against_more_partitions(void **state) {
    (void)state;
    struct loss loss = {.temperature = 1};
    struct instance in = {.us = {100, 90}, .partitions = {2, 5}, .score = {1, 0}};
    assert_close(value(&loss, &in, 2, 0), log(1 + exp(-1)), 1e-12);
    loss.sigma_us = 20;
    assert_close(value(&loss, &in, 2, 0), log(1 + exp(1)), 1e-12);
    loss.sigma_us = 9;
    assert_close(value(&loss, &in, 2, 0), log(1 + exp(-1)), 1e-12);
    in.partitions[1] = 2; /* as many: no penalty */
    loss.sigma_us = 20;
    assert_close(value(&loss, &in, 2, 0), log(1 + exp(-1)), 1e-12);
}

/* Three examples: pairs (0,1), (0,2), (2,1). The mean of the three, not their sum. */
static void the_loss_is_the_mean_over_the_pairs_of_a_group(void **state) {
    (void)state;
    const struct loss loss = {.temperature = 1};
    struct instance in = {.us = {300, 100, 200}, .score = {0.3, 0.1, -0.4}};
    const double want = (log1p(exp(0.1 - 0.3)) + log1p(exp(-0.4 - 0.3)) + log1p(exp(0.1 + 0.4))) / 3;
    assert_close(value(&loss, &in, 3, 0), want, 1e-12);
}

/* Times 100, 101 and 200 with noise 0.02: the first pair is half as far apart as the noise and weighs a half. */
static void a_pair_within_the_noise_weighs_less(void **state) {
    (void)state;
    const struct loss loss = {.temperature = 1, .noise = 0.02};
    struct instance in = {.us = {100, 101, 200}, .score = {0.5, 0.2, 0.1}};
    const double want = (0.5 * log1p(exp(0.5 - 0.2)) + log1p(exp(0.5 - 0.1)) + log1p(exp(0.2 - 0.1))) / 2.5;
    assert_close(value(&loss, &in, 3, 0), want, 1e-12);
}

/* Scores 0.05 and 0.5 above log(us) + offset, in temperatures of 0.1: 0.5 (quadratic) and 5 (linear). */
static void the_anchor_is_quadratic_near_the_time_and_linear_far_off(void **state) {
    (void)state;
    const struct loss loss = {.temperature = 0.1, .anchor = 0.3};
    const double us = exp(5);
    struct instance in = {.us = {us, us}, .score = {5 + 0.2 + 0.05, 5 + 0.2 + 0.5}};
    assert_close(value(&loss, &in, 2, 0.2), 0.3 * (0.5 * 0.25 + (5 - 0.5)) / 2, 1e-9);
}

static void slopes_and_curvatures_are_those_of_finite_differences(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int round = 0; round < 50; round++) {
        const double offset = 0.1 * rng_normal(&rng), h = 1e-5;
        const struct loss loss = {.sigma_us = round % 2 ? 20 : 0,
                                  .temperature = rng_between(&rng, 0.05, 1),
                                  .noise = round % 3 ? 0.05 : 0,
                                  .anchor = round % 5 ? 0.5 : 0};
        struct instance in = {0};
        for (int i = 0; i < N; i++) {
            in.us[i] = rng_between(&rng, 80, 120);
            in.partitions[i] = rng_below(&rng, 3);
            in.score[i] = log(in.us[i]) + 0.2 * rng_normal(&rng);
        }
        derive(&loss, &in, N, offset);
        for (int i = 0; i < N; i++) {
            struct instance up = in, down = in;
            up.score[i] += h;
            down.score[i] -= h;
            memset(up.slope, 0, sizeof up.slope);
            memset(down.slope, 0, sizeof down.slope);
            memset(up.curve, 0, sizeof up.curve);
            memset(down.curve, 0, sizeof down.curve);
            const double slope = (value(&loss, &up, N, offset) - value(&loss, &down, N, offset)) / (2 * h);
            derive(&loss, &up, N, offset);
            derive(&loss, &down, N, offset);
            const double curve = (up.slope[i] - down.slope[i]) / (2 * h);
            assert_true(fabs(slope - in.slope[i]) < 1e-6 * (1 + fabs(slope)));
            /* The Huber term's curvature jumps where it turns linear. */
            const double knee = fabs(fabs(in.score[i] - log(in.us[i]) - offset) / loss.temperature - 1);
            if (knee > 2 * h / loss.temperature)
                assert_true(fabs(curve - in.curve[i]) < 1e-4 * (1 + fabs(curve)));
        }
    }
}

static void scores_far_apart_do_not_overflow(void **state) {
    (void)state;
    const struct loss loss = {.temperature = 0.1};
    struct instance in = {.us = {200, 100}, .score = {-500, 500}};
    assert_close(derive(&loss, &in, 2, 0), 10000, 1e-12);
    assert_close(in.slope[0], -10, 1e-12);
    in.score[0] = 500, in.score[1] = -500;
    assert_true(value(&loss, &in, 2, 0) >= 0 && value(&loss, &in, 2, 0) < 1e-300);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_higher_score_of_the_slower_one_costs_less),
        cmocka_unit_test(the_temperature_divides_differences_of_scores),
        cmocka_unit_test(times_that_are_equal_make_no_pair),
        cmocka_unit_test(the_penalty_turns_a_close_pair_against_more_partitions),
        cmocka_unit_test(the_loss_is_the_mean_over_the_pairs_of_a_group),
        cmocka_unit_test(a_pair_within_the_noise_weighs_less),
        cmocka_unit_test(the_anchor_is_quadratic_near_the_time_and_linear_far_off),
        cmocka_unit_test(slopes_and_curvatures_are_those_of_finite_differences),
        cmocka_unit_test(scores_far_apart_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
