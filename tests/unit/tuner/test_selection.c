/* Selection against brute force over all ordered choices, on random scores and similarities. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/support/check.h"
#include "tests/support/strategy/random_instances.h"
#include "tests/support/tuner/selection.h"

enum { INSTANCES = 3000, MOST = 7, MOST_TRIED = 4 };

struct scene {
    double scores[MOST], likeness[MOST + MOST_TRIED][MOST + MOST_TRIED];
    size_t calls;
    struct selection selection;
};

static enum status look_up(const void *context, size_t a, size_t b, double *out, struct error *err) {
    (void)err;
    struct scene *s = (struct scene *)(uintptr_t)context;
    assert_true(a < s->selection.n && b < s->selection.n + s->selection.n_tried && a != b);
    s->calls++;
    *out = s->likeness[a][b];
    return ST_OK;
}

/* Few distinct values, so that ties are common. */
static void open_scene(struct scene *s, uint64_t number, struct rng *rng) {
    rng_split(rng, test_seed(), number);
    *s = (struct scene){0};
    bool coarse = rng_below(rng, 2);
    size_t n = 1 + rng_below(rng, MOST), n_tried = rng_below(rng, MOST_TRIED + 1);
    for (size_t i = 0; i < n; i++)
        s->scores[i] = coarse ? (double)rng_below(rng, 3) : rng_uniform(rng);
    for (size_t i = 0; i < n + n_tried; i++)
        for (size_t j = 0; j < i; j++)
            s->likeness[i][j] = s->likeness[j][i] = coarse ? (double)rng_below(rng, 3) / 2 : rng_uniform(rng);
    s->selection = (struct selection){.n = n,
                                      .n_tried = n_tried,
                                      .scores = s->scores,
                                      .weight = rng_below(rng, 4) ? 2 * rng_uniform(rng) : 0,
                                      .similarity = look_up,
                                      .context = s};
}

/* The cost by its definition. */
static double cost_of(const struct scene *s, size_t k, const size_t *chosen) {
    double cost = 0;
    for (size_t i = 0; i < k; i++) {
        double nearest = 0;
        for (size_t t = 0; t < s->selection.n_tried; t++)
            nearest = fmax(nearest, s->likeness[chosen[i]][s->selection.n + t]);
        for (size_t j = 0; j < i; j++)
            nearest = fmax(nearest, s->likeness[chosen[i]][chosen[j]]);
        cost += s->scores[chosen[i]] + s->selection.weight * nearest;
    }
    return cost;
}

static bool is_among(size_t candidate, size_t k, const size_t *chosen) {
    for (size_t i = 0; i < k; i++)
        if (chosen[i] == candidate)
            return true;
    return false;
}

/* The least cost of any k candidates in any order. */
static double least_cost(const struct scene *s, size_t k, size_t have, size_t *chosen) {
    double least = INFINITY;
    if (have == k)
        return cost_of(s, k, chosen);
    for (size_t i = 0; i < s->selection.n; i++)
        if (!is_among(i, have, chosen)) {
            chosen[have] = i;
            least = fmin(least, least_cost(s, k, have + 1, chosen));
        }
    return least;
}

/* The plain greedy rule, and the k best scores. */
static void choose_plainly(const struct scene *s, size_t k, size_t *greedy, size_t *best) {
    for (size_t c = 0; c < k; c++) {
        double least = INFINITY, least_score = INFINITY;
        for (size_t i = 0; i < s->selection.n; i++) {
            size_t with[MOST];
            memcpy(with, greedy, c * sizeof *with);
            with[c] = i;
            double added = cost_of(s, c + 1, with) - cost_of(s, c, with);
            if (!is_among(i, c, greedy) && added < least - 1e-12) {
                least = added;
                greedy[c] = i;
            }
            if (!is_among(i, c, best) && s->scores[i] < least_score) {
                least_score = s->scores[i];
                best[c] = i;
            }
        }
    }
}

static void the_choice_is_the_greedy_one_unless_the_best_scores_cost_less(void **state) {
    (void)state;
    struct error err;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct rng rng;
        struct scene s;
        size_t chosen[MOST], greedy[MOST] = {0}, best[MOST] = {0}, count;
        open_scene(&s, i, &rng);
        size_t k = 1 + rng_below(&rng, s.selection.n);
        assert_ok(selection_choose(&s.selection, k, chosen, &count, &err));
        assert_int_equal(count, k);
        choose_plainly(&s, k, greedy, best);
        double gain = cost_of(&s, k, greedy) - cost_of(&s, k, best);
        bool is_best = !memcmp(chosen, best, k * sizeof *chosen);
        bool is_greedy = !memcmp(chosen, greedy, k * sizeof *chosen);
        assert_true(gain > 1e-12 ? is_best : gain < -1e-12 ? is_greedy : is_best || is_greedy);
    }
}

/* The greedy rule takes 3 second, which is unlike 0, and finds that 1 and 2 are just like 3. */
static void a_greedy_choice_that_costs_more_than_the_best_scores_is_given_up(void **state) {
    (void)state;
    struct error err;
    struct scene s = {.scores = {0, 1, 1.1, 1.2}};
    size_t chosen[MOST], greedy[MOST] = {0}, best[MOST] = {0}, count;
    s.likeness[0][1] = s.likeness[1][0] = s.likeness[0][2] = s.likeness[2][0] = 0.3;
    s.likeness[1][3] = s.likeness[3][1] = s.likeness[2][3] = s.likeness[3][2] = 1;
    s.selection = (struct selection){.n = 4, .scores = s.scores, .weight = 1, .similarity = look_up, .context = &s};
    choose_plainly(&s, 3, greedy, best);
    assert_int_equal(greedy[1], 3);
    assert_ok(selection_choose(&s.selection, 3, chosen, &count, &err));
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(chosen[i], i);
}

static void the_choice_is_never_worse_than_the_best_scores_nor_better_than_the_best_of_all(void **state) {
    (void)state;
    struct error err;
    uint32_t gained = 0;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct rng rng;
        struct scene s;
        size_t chosen[MOST], scratch[MOST] = {0}, best[MOST] = {0}, count;
        open_scene(&s, i, &rng);
        size_t k = 1 + rng_below(&rng, s.selection.n < 4 ? s.selection.n : 4);
        assert_ok(selection_choose(&s.selection, k, chosen, &count, &err));
        choose_plainly(&s, k, scratch, best);
        double cost = cost_of(&s, k, chosen), plain = cost_of(&s, k, best), least = least_cost(&s, k, 0, scratch);
        assert_true(cost <= plain + 1e-12);
        assert_true(cost >= least - 1e-12);
        if (k == 1 || s.selection.weight <= 0)
            assert_close(cost, least, 1e-12);
        gained += cost < plain - 1e-6;
    }
    assert_true(gained > INSTANCES / 10);
}

static void the_cost_is_what_its_definition_says(void **state) {
    (void)state;
    struct error err;
    for (uint64_t i = 0; i < INSTANCES / 4; i++) {
        struct rng rng;
        struct scene s;
        size_t chosen[MOST], count;
        double cost;
        open_scene(&s, i, &rng);
        assert_ok(selection_choose(&s.selection, s.selection.n, chosen, &count, &err));
        assert_ok(selection_cost(&s.selection, count, chosen, &cost, &err));
        assert_close(cost + 1, cost_of(&s, count, chosen) + 1, 1e-12);
    }
}

static void equal_candidates_come_in_the_order_of_their_index(void **state) {
    (void)state;
    struct error err;
    struct scene s = {.scores = {1, 1, 1, 1, 1}};
    size_t chosen[MOST], count;
    s.selection = (struct selection){.n = 5, .scores = s.scores, .weight = 1, .similarity = look_up, .context = &s};
    assert_ok(selection_choose(&s.selection, 3, chosen, &count, &err));
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(chosen[i], i);
}

static void what_has_no_finite_score_is_never_chosen(void **state) {
    (void)state;
    struct error err;
    struct scene s = {.scores = {NAN, 3, INFINITY, 2, -INFINITY}};
    size_t chosen[MOST], count;
    s.selection = (struct selection){.n = 5, .scores = s.scores, .weight = 1, .similarity = look_up, .context = &s};
    assert_ok(selection_choose(&s.selection, 5, chosen, &count, &err));
    assert_int_equal(count, 2);
    assert_int_equal(chosen[0], 3);
    assert_int_equal(chosen[1], 1);
    s.selection.n = 0;
    assert_ok(selection_choose(&s.selection, 5, chosen, &count, &err));
    assert_int_equal(count, 0);
}

static void a_negative_weight_is_refused(void **state) {
    (void)state;
    struct error err;
    struct scene s = {.scores = {1}};
    size_t chosen[1], count;
    s.selection = (struct selection){.n = 1, .scores = s.scores, .weight = -1, .similarity = look_up, .context = &s};
    assert_fails(selection_choose(&s.selection, 1, chosen, &count, &err), ST_INVALID, "weight");
    s.selection.weight = NAN;
    assert_fails(selection_choose(&s.selection, 1, chosen, &count, &err), ST_INVALID, "weight");
}

static enum status refuse(const void *context, size_t a, size_t b, double *out, struct error *err) {
    (void)context;
    (void)a;
    (void)b;
    (void)out;
    return error_set(err, ST_NUMERIC, "no similarity");
}

static void a_failing_similarity_is_passed_on(void **state) {
    (void)state;
    struct error err;
    const double scores[] = {1, 2, 3};
    const struct selection s = {.n = 3, .scores = scores, .weight = 1, .similarity = refuse};
    size_t chosen[2], count;
    assert_fails(selection_choose(&s, 2, chosen, &count, &err), ST_NUMERIC, "no similarity");
}

/* Lines on which many candidates are hopeless whatever their likeness. */
static enum status count_calls(const void *context, size_t a, size_t b, double *out, struct error *err) {
    (void)err;
    ++*(size_t *)(uintptr_t)context;
    *out = 1 / (1 + fabs((double)a - (double)b));
    return ST_OK;
}

static void hopeless_candidates_are_not_compared(void **state) {
    (void)state;
    enum { N = 2000, TRIED = 20, K = 10 };
    struct error err;
    double scores[N];
    size_t calls = 0, chosen[K], count;
    for (size_t i = 0; i < N; i++)
        scores[i] = 0.01 * (double)i;
    const struct selection s = {
        .n = N, .n_tried = TRIED, .scores = scores, .weight = 1, .similarity = count_calls, .context = &calls};
    assert_ok(selection_choose(&s, K, chosen, &count, &err));
    assert_int_equal(count, K);
    assert_true(calls < (size_t)N * (K + TRIED) / 10);
}

static void ranks_are_mean_places_from_zero_to_one(void **state) {
    (void)state;
    struct error err;
    const double scores[] = {5, 1, INFINITY, 3, 3, 9};
    double ranks[6];
    assert_ok(selection_ranks(6, scores, ranks, &err));
    assert_close(ranks[0], 0.75, 1e-12);
    assert_true(ranks[1] <= 0 && ranks[1] >= 0);
    assert_true(isinf(ranks[2]));
    assert_close(ranks[3], 0.375, 1e-12);
    assert_close(ranks[4], 0.375, 1e-12);
    assert_close(ranks[5], 1, 1e-12);
}

static void strategies_are_chosen_unlike_those_tried(void **state) {
    (void)state;
    struct error err;
    struct rng rng;
    struct model model;
    struct cluster cluster;
    struct space space;
    struct strategy s[3];
    const struct space_options o = space_default_options();
    rng_split(&rng, test_seed(), 77);
    assert_ok(random_model(&rng, &model, &err));
    assert_ok(random_cluster(&rng, &cluster, &err));
    assert_ok(space_init(&space, &model, &cluster, &o, &err));
    for (int i = 0; i < 2; i++)
        assert_ok(space_sample_uniform(&space, &rng, &s[i], &err));
    assert_ok(space_neighbour(&space, &s[0], &rng, &s[2], &err));
    const struct strategy *const items[] = {&s[0], &s[1], &s[2]};
    const struct selection_strategies context = {&space, items};
    const double scores[] = {1, 1};
    const struct selection selection = {.n = 2,
                                        .n_tried = 1,
                                        .scores = scores,
                                        .weight = 1,
                                        .similarity = selection_similarity_of_strategies,
                                        .context = &context};
    size_t chosen[1], count;
    assert_ok(selection_choose(&selection, 1, chosen, &count, &err));
    assert_int_equal(chosen[0], 1);
    for (int i = 0; i < 3; i++)
        strategy_release(&s[i]);
    space_release(&space);
    cluster_release(&cluster);
    model_release(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_choice_is_the_greedy_one_unless_the_best_scores_cost_less),
        cmocka_unit_test(a_greedy_choice_that_costs_more_than_the_best_scores_is_given_up),
        cmocka_unit_test(the_choice_is_never_worse_than_the_best_scores_nor_better_than_the_best_of_all),
        cmocka_unit_test(the_cost_is_what_its_definition_says),
        cmocka_unit_test(equal_candidates_come_in_the_order_of_their_index),
        cmocka_unit_test(what_has_no_finite_score_is_never_chosen),
        cmocka_unit_test(a_negative_weight_is_refused),
        cmocka_unit_test(a_failing_similarity_is_passed_on),
        cmocka_unit_test(hopeless_candidates_are_not_compared),
        cmocka_unit_test(ranks_are_mean_places_from_zero_to_one),
        cmocka_unit_test(strategies_are_chosen_unlike_those_tried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
