/* The advisor and importance on made-up strategies whose times are known functions of their sketches. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/support/check.h"
#include "tuner/search/advisor.h"
#include "tuner/search/importance.h"

enum { POOL = 60 };

struct pool {
    struct features features[POOL];
    const struct features *pointers[POOL];
    double us[POOL];
};

/* Sizes, credit and order at random; the timeline knows sizes and nothing of the order. */
static void make_pool(struct pool *pool, double order_costs, double noise, uint64_t stream) {
    struct rng rng;
    rng_split(&rng, test_seed(), stream);
    for (size_t i = 0; i < POOL; i++) {
        struct features *f = &pool->features[i];
        *f = (struct features){0};
        double size = rng_between(&rng, 10, 22), credit = rng_between(&rng, 12, 22);
        f->global[FEATURE_GLOBAL_log2_message_bytes] = size;
        f->global[FEATURE_GLOBAL_log2_credit] = credit;
        f->global[FEATURE_GLOBAL_priority] = (double)rng_below(&rng, 2);
        f->timeline_us = 1e4 * exp(0.03 * (size - 16) * (size - 16));
        pool->us[i] = f->timeline_us * exp(order_costs * f->global[FEATURE_GLOBAL_priority] + noise * rng_normal(&rng));
        pool->pointers[i] = f;
    }
}

static size_t best_of(const struct pool *pool) {
    size_t best = 0;
    for (size_t i = 1; i < POOL; i++)
        if (pool->us[i] < pool->us[best])
            best = i;
    return best;
}

static void without_trials_the_order_is_the_timelines(void **state) {
    (void)state;
    struct error err;
    struct pool pool;
    size_t order[POOL];
    double gain;
    struct advisor_options o = {.process = true, .diversity = 0};
    make_pool(&pool, 0, 0, 1);
    assert_ok(advisor_rank(&o, 0, NULL, POOL, pool.pointers, POOL, order, NULL, &gain, &err));
    assert_true(isinf(gain));
    for (size_t i = 1; i < POOL; i++)
        assert_true(pool.features[order[i - 1]].timeline_us <= pool.features[order[i]].timeline_us);
}

/* With one to three trials the prediction is the timeline's, moved by what these were off on average, in logarithms. */
static void few_trials_move_the_timelines_prediction(void **state) {
    (void)state;
    struct error err;
    struct pool pool;
    const double off[ADVISOR_LEAST - 1] = {1.7, 0.9, 2.5};
    struct advisor_observation observed[ADVISOR_LEAST - 1];
    struct advice advice[POOL - ADVISOR_LEAST];
    const size_t n = POOL - ADVISOR_LEAST;
    const struct advisor_options o = advisor_default_options();
    size_t next;
    double product = 1;
    make_pool(&pool, 0, 0, 2);
    for (size_t tried = 1; tried < ADVISOR_LEAST; tried++) {
        const struct features *f = pool.pointers[tried - 1];
        observed[tried - 1] = (struct advisor_observation){f, f->timeline_us * off[tried - 1]};
        product *= off[tried - 1];
        assert_ok(advisor_rank(&o, tried, observed, n, pool.pointers + ADVISOR_LEAST, 1, &next, advice, NULL, &err));
        for (size_t i = 0; i < n; i++) {
            const double timeline_us = pool.features[ADVISOR_LEAST + i].timeline_us;
            assert_close(advice[i].mean_us, timeline_us * pow(product, 1.0 / (double)tried), 1e-9);
            assert_true(isnan(advice[i].deviation));
        }
    }
}

/* Ten trials that show that priority costs 40%: those without it must come first though the timeline sees no
 * difference. */
static void process_learns_what_the_timeline_does_not_know(void **state) {
    (void)state;
    struct error err;
    size_t first_with = 0;
    for (uint64_t stream = 2; stream < 12; stream++) {
        struct pool pool;
        struct advisor_observation observed[12];
        size_t order[8];
        struct advisor_options o = advisor_default_options();
        make_pool(&pool, 0.4, 0.01, stream);
        for (size_t i = 0; i < 12; i++)
            observed[i] = (struct advisor_observation){&pool.features[i], pool.us[i]};
        assert_ok(advisor_rank(&o, 12, observed, POOL - 12, pool.pointers + 12, 8, order, NULL, NULL, &err));
        first_with += pool.features[12 + order[0]].global[FEATURE_GLOBAL_priority] > 0;
    }
    assert_true(first_with <= 1);
}

/* Asking again after each trial finds the best of the pool in a dozen trials. */
static void best_of_a_pool_is_found_in_few_trials(void **state) {
    (void)state;
    struct error err;
    for (uint64_t stream = 20; stream < 30; stream++) {
        struct pool pool;
        struct advisor_observation observed[POOL];
        const struct features *left[POOL];
        size_t places[POOL], n_left = POOL, n = 0, next, target;
        struct advisor_options o = advisor_default_options();
        make_pool(&pool, 0.2, 0.002, stream);
        target = best_of(&pool);
        for (size_t i = 0; i < POOL; i++) {
            left[i] = pool.pointers[i];
            places[i] = i;
        }
        for (;;) {
            assert_ok(advisor_rank(&o, n, observed, n_left, left, 1, &next, NULL, NULL, &err));
            size_t place = places[next];
            observed[n++] = (struct advisor_observation){left[next], pool.us[place]};
            if (pool.us[place] <= 1.02 * pool.us[target])
                break;
            n_left--;
            left[next] = left[n_left];
            places[next] = places[n_left];
        }
        assert_true(n <= 12);
    }
}

static void choices_of_a_batch_are_distinct_and_the_same_each_time(void **state) {
    (void)state;
    struct error err;
    struct pool pool;
    struct advisor_observation observed[10];
    size_t a[20], b[20];
    struct advice advice[POOL];
    struct advisor_options o = advisor_default_options();
    make_pool(&pool, 0.2, 0.02, 40);
    for (size_t i = 0; i < 10; i++)
        observed[i] = (struct advisor_observation){&pool.features[i], i == 3 ? INFINITY : pool.us[i]};
    assert_ok(advisor_rank(&o, 10, observed, POOL, pool.pointers, 20, a, advice, NULL, &err));
    assert_ok(advisor_rank(&o, 10, observed, POOL, pool.pointers, 20, b, NULL, NULL, &err));
    assert_memory_equal(a, b, sizeof a);
    for (size_t i = 0; i < 20; i++) {
        assert_true(a[i] < POOL);
        assert_true(advice[a[i]].mean_us > 0 && advice[a[i]].deviation >= 0);
        for (size_t j = 0; j < i; j++)
            assert_true(a[i] != a[j]);
    }
}

/* Without a penalty for likeness a score is the logarithm of the expected improvement. */
static void gain_is_the_largest_expected_improvement(void **state) {
    (void)state;
    struct error err;
    struct pool pool;
    struct advisor_observation observed[8];
    struct advice advice[POOL - 8];
    size_t order;
    double gain, most = -INFINITY;
    struct advisor_options o = advisor_default_options();
    o.diversity = 0;
    make_pool(&pool, 0.2, 0.02, 41);
    for (size_t i = 0; i < 8; i++)
        observed[i] = (struct advisor_observation){&pool.features[i], pool.us[i]};
    assert_ok(advisor_rank(&o, 8, observed, POOL - 8, pool.pointers + 8, 1, &order, advice, &gain, &err));
    for (size_t i = 0; i < POOL - 8; i++)
        most = fmax(most, advice[i].score);
    assert_close(gain, exp(most), 1e-9);
    assert_close(advice[order].score, most, 1e-12);
    assert_ok(advisor_rank(&o, 2, observed, POOL - 8, pool.pointers + 8, 1, &order, advice, &gain, &err));
    assert_true(isinf(gain) && gain > 0);
}

static void nothing_to_choose_from_is_refused(void **state) {
    (void)state;
    struct error err;
    size_t order;
    struct advisor_options o = advisor_default_options();
    assert_fails(advisor_rank(&o, 0, NULL, 0, NULL, 1, &order, NULL, NULL, &err), ST_INVALID, "0 candidates");
}

static void the_knob_that_decides_is_found(void **state) {
    (void)state;
    struct error err;
    struct pool pool;
    struct advisor_observation observed[POOL];
    double importance[SKETCH_KNOBS];
    make_pool(&pool, 0, 0, 50);
    for (size_t i = 0; i < POOL; i++) {
        double credit = pool.features[i].global[FEATURE_GLOBAL_log2_credit];
        observed[i] = (struct advisor_observation){&pool.features[i], 1e4 * exp(0.1 * credit)};
    }
    assert_ok(importance_of(40, observed, importance, &err));
    assert_true(importance[SKETCH_CREDIT] > 0.9);
    for (size_t k = 0; k < SKETCH_KNOBS; k++)
        assert_true(k == SKETCH_CREDIT || importance[k] < 0.1);
}

/* y = a + b of independent knobs with equal variances: each total effect is one half. */
static void two_knobs_that_add_share_the_importance(void **state) {
    (void)state;
    struct error err;
    struct pool pool;
    struct advisor_observation observed[POOL];
    double importance[SKETCH_KNOBS];
    make_pool(&pool, 0, 0, 51);
    struct rng rng;
    rng_split(&rng, test_seed(), 52);
    for (size_t i = 0; i < POOL; i++) {
        double credit = rng_between(&rng, 10, 20), size = rng_between(&rng, 10, 20);
        pool.features[i].global[FEATURE_GLOBAL_log2_credit] = credit;
        pool.features[i].global[FEATURE_GLOBAL_log2_message_bytes] = size;
        observed[i] = (struct advisor_observation){&pool.features[i], 1e3 * exp(0.1 * (credit + size))};
    }
    assert_ok(importance_of(POOL, observed, importance, &err));
    assert_true(fabs(importance[SKETCH_CREDIT] - 0.5) < 0.2);
    assert_true(fabs(importance[SKETCH_SIZES] - 0.5) < 0.2);
    assert_true(importance[SKETCH_SCHEDULE] < 0.1);
}

static void few_trials_or_equal_times_tell_nothing(void **state) {
    (void)state;
    struct error err;
    struct pool pool;
    struct advisor_observation observed[POOL];
    double importance[SKETCH_KNOBS];
    make_pool(&pool, 0, 0, 53);
    for (size_t i = 0; i < POOL; i++)
        observed[i] = (struct advisor_observation){&pool.features[i], i < IMPORTANCE_LEAST - 1 ? 100 : INFINITY};
    assert_fails(importance_of(POOL, observed, importance, &err), ST_NOT_FOUND, "too few");
    for (size_t i = 0; i < POOL; i++)
        observed[i].us = 100;
    assert_fails(importance_of(POOL, observed, importance, &err), ST_NOT_FOUND, "same time");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_trials_the_order_is_the_timelines),
        cmocka_unit_test(few_trials_move_the_timelines_prediction),
        cmocka_unit_test(process_learns_what_the_timeline_does_not_know),
        cmocka_unit_test(best_of_a_pool_is_found_in_few_trials),
        cmocka_unit_test(choices_of_a_batch_are_distinct_and_the_same_each_time),
        cmocka_unit_test(gain_is_the_largest_expected_improvement),
        cmocka_unit_test(nothing_to_choose_from_is_refused),
        cmocka_unit_test(the_knob_that_decides_is_found),
        cmocka_unit_test(two_knobs_that_add_share_the_importance),
        cmocka_unit_test(few_trials_or_equal_times_tell_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
