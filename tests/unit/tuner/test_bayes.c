/* Bayesian optimization: how near it comes to known minima beside random search, and what it promises about spaces,
 * points under way, repeats and failures. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/support/check.h"
#include "tests/support/landscapes.h"
#include "tests/support/tuner/recommend.h"
#include "tuner/search/bayes.h"
#include "tuner/search/bayes_score.h"

enum { SEEDS = 5, MOST = 64, DIMENSIONS = 8 };

/* Trials so far. */
struct run {
    size_t n;
    double x[MOST][DIMENSIONS], value[MOST];
    struct bayes_trial trials[MOST];
};

static struct bayes *new_bayes(size_t n, const struct bayes_dimension *dimensions, struct bayes_options options) {
    struct error err;
    struct bayes *b;
    assert_ok(bayes_new(n, dimensions, &options, &b, &err));
    return b;
}

static struct bayes_history history_of(const struct run *run) {
    return (struct bayes_history){.n = run->n, .trials = run->trials};
}

static void add(struct run *run, double value, double noise) {
    run->value[run->n] = value;
    run->trials[run->n] = (struct bayes_trial){.x = run->x[run->n], .y = value + noise};
    run->n++;
}

static struct bayes_advice suggest(struct bayes *b, const struct run *run, size_t q, double *x) {
    struct error err;
    struct bayes_advice advice;
    struct bayes_history history = history_of(run);
    assert_ok(bayes_suggest(b, &history, q, x, &advice, &err));
    return advice;
}

static struct recommendation recommended(size_t n, const struct bayes_dimension *dimensions, const struct run *run) {
    struct error err;
    struct recommendation best;
    struct bayes_history history = history_of(run);
    assert_ok(recommend(n, dimensions, &(struct bayes_options){0}, &history, &best, &err));
    return best;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values) {
    qsort(values, SEEDS, sizeof *values, by_value);
    return values[SEEDS / 2];
}

/* ---- known minima ---- */

static double regret_of_bayes(const struct landscape *l, double noise, size_t evaluations, uint64_t seed) {
    struct run run = {0};
    struct rng rng;
    struct bayes *b = new_bayes(l->n, l->dimensions, (struct bayes_options){.seed = seed});
    rng_split(&rng, seed, 1);
    while (run.n < evaluations) {
        assert_int_equal(suggest(b, &run, 1, run.x[run.n]).n, 1);
        double value = l->at(run.x[run.n]);
        add(&run, value, noise * value * rng_normal(&rng));
    }
    bayes_free(b);
    return run.value[recommended(l->n, l->dimensions, &run).trial] - l->least;
}

static double regret_of_random(const struct landscape *l, size_t evaluations, uint64_t seed) {
    struct rng rng;
    double least = INFINITY, x[DIMENSIONS];
    rng_split(&rng, seed, 2);
    for (size_t i = 0; i < evaluations; i++) {
        for (size_t k = 0; k < l->n; k++)
            x[k] = rng_between(&rng, l->dimensions[k].low, l->dimensions[k].high);
        least = fmin(least, l->at(x));
    }
    return least - l->least;
}

static void check_regret(const struct landscape *l, double noise, size_t evaluations, double bound) {
    double bayes[SEEDS], random[SEEDS];
    for (uint64_t s = 0; s < SEEDS; s++) {
        bayes[s] = regret_of_bayes(l, noise, evaluations, test_seed() + s);
        random[s] = regret_of_random(l, evaluations, test_seed() + s);
        assert_true(bayes[s] > -1e-9);
    }
    double ours = median(bayes), theirs = median(random);
    printf("# %s, noise %g, %zu evaluations: regret %.2g, random %.2g\n", l->name, noise, evaluations, ours, theirs);
    assert_true(ours < bound);
    assert_true(ours < theirs / 3);
}

static void branin_is_minimised(void **state) {
    (void)state;
    check_regret(&landscapes[0], 0, 40, 0.01);
}

static void branin_is_minimised_through_noise(void **state) {
    (void)state;
    check_regret(&landscapes[0], 0.05, 40, 0.1);
}

static void the_six_hump_camel_is_minimised(void **state) {
    (void)state;
    check_regret(&landscapes[1], 0, 50, 0.05);
}

static void hartmann_in_six_dimensions_is_minimised(void **state) {
    (void)state;
    check_regret(&landscapes[2], 0, 60, 0.3);
}

/* ---- spaces ---- */

static const struct bayes_dimension mixed[] = {
    {BAYES_LOG2, 1024, 1 << 26}, {BAYES_LINEAR, -1, 1}, {BAYES_INTEGER, 1, 16}, {BAYES_CATEGORICAL, 0, 3}};

/* Least, 0, at 2^20, 0.25, 5, category 2. */
static double mixed_value(const double *x) {
    static const double of_category[] = {1, 0.7, 0, 0.4};
    return pow((log2(x[0]) - 20) / 8, 2) + pow(x[1] - 0.25, 2) + pow((x[2] - 5) / 8, 2) + of_category[(size_t)x[3]];
}

static void assert_inside(size_t n, const struct bayes_dimension *dimensions, const double *x) {
    for (size_t k = 0; k < n; k++) {
        assert_true(x[k] >= dimensions[k].low && x[k] <= dimensions[k].high);
        if (dimensions[k].kind == BAYES_INTEGER || dimensions[k].kind == BAYES_CATEGORICAL)
            assert_true(x[k] == floor(x[k]));
    }
}

static void a_mixed_space_is_searched_inside_its_bounds(void **state) {
    (void)state;
    double ours[SEEDS], random[SEEDS];
    for (uint64_t s = 0; s < SEEDS; s++) {
        struct run run = {0};
        struct rng rng;
        struct bayes *b = new_bayes(4, mixed, (struct bayes_options){.seed = test_seed() + s});
        ours[s] = random[s] = INFINITY;
        rng_split(&rng, test_seed(), s);
        while (run.n < 35) {
            suggest(b, &run, 1, run.x[run.n]);
            assert_inside(4, mixed, run.x[run.n]);
            add(&run, mixed_value(run.x[run.n]), 0);
            ours[s] = fmin(ours[s], run.value[run.n - 1]);
            double x[] = {rng_log_between(&rng, 1024, 1 << 26), rng_between(&rng, -1, 1),
                          (double)(1 + rng_below(&rng, 16)), (double)rng_below(&rng, 4)};
            random[s] = fmin(random[s], mixed_value(x));
        }
        bayes_free(b);
    }
    double m = median(ours);
    printf("# mixed space, 35 evaluations: %.2g, random %.2g\n", m, median(random));
    assert_true(m < 0.01);
    assert_true(m < random[SEEDS / 2] / 3);
}

static void values_become_rows_and_come_back(void **state) {
    (void)state;
    struct error err;
    struct rng rng;
    struct arena arena = {0};
    struct bayes_space space;
    double row[16], near[16], x[4], back[4];
    assert_ok(bayes_space_init(&space, 4, mixed, &arena, &err));
    assert_int_equal(space.columns, 7);
    assert_int_equal(space.continuous, 2);
    assert_close(bayes_space_size(&space), INFINITY, 0);
    rng_seed(&rng, test_seed());
    for (size_t i = 0; i < 1000; i++) {
        bayes_space_spread(&space, test_seed(), i, 1, row);
        bayes_space_decode(&space, row, x);
        assert_inside(4, mixed, x);
        assert_ok(bayes_space_encode(&space, x, near, &err));
        bayes_space_decode(&space, near, back);
        for (size_t k = 0; k < 4; k++)
            assert_close(back[k], x[k], 1e-12);
        bayes_space_perturb(&space, &rng, 0.1, row, near);
        bayes_space_decode(&space, near, back);
        assert_inside(4, mixed, back);
    }
    arena_release(&arena);
}

/* Of n points of the even sequence, each of 4 x 4 cells holds about n / 16. */
static void the_first_points_are_spread_evenly(void **state) {
    (void)state;
    enum { N = 64 };
    struct error err;
    struct arena arena = {0};
    struct bayes_space space;
    double rows[N][2];
    assert_ok(bayes_space_init(&space, 2, unit_box, &arena, &err));
    for (uint64_t s = 0; s < 20; s++) {
        int cells[16] = {0};
        bayes_space_spread(&space, test_seed() + s, 0, N, rows[0]);
        for (size_t i = 0; i < N; i++)
            cells[4 * (int)(4 * rows[i][0]) + (int)(4 * rows[i][1])]++;
        for (int c = 0; c < 16; c++)
            assert_in_range(cells[c], 2, 6);
    }
    arena_release(&arena);
}

static const struct bayes_dimension small[] = {{BAYES_INTEGER, 0, 4}, {BAYES_CATEGORICAL, 0, 2}};

static void a_discrete_space_is_tried_without_repeats_until_it_is_used_up(void **state) {
    (void)state;
    struct run run = {0};
    bool tried[5][3] = {{false}};
    struct bayes *b = new_bayes(2, small, (struct bayes_options){.seed = test_seed()});
    while (run.n < 15) {
        assert_int_equal(suggest(b, &run, 1, run.x[run.n]).n, 1);
        bool *place = &tried[(int)run.x[run.n][0]][(int)run.x[run.n][1]];
        assert_false(*place);
        *place = true;
        add(&run, run.x[run.n][0] - 2 * run.x[run.n][1], 0);
    }
    struct bayes_advice advice = suggest(b, &run, 1, run.x[run.n]);
    assert_int_equal(advice.n, 0);
    assert_close(advice.gain, 0, 0);
    bayes_free(b);
}

/* 2^15 points are too many to look at all. */
static void a_large_discrete_space_is_tried_without_repeats(void **state) {
    (void)state;
    const struct bayes_dimension large[] = {{BAYES_INTEGER, 0, 31}, {BAYES_INTEGER, 0, 31}, {BAYES_CATEGORICAL, 0, 31}};
    struct run run = {0};
    struct bayes *b = new_bayes(3, large, (struct bayes_options){.seed = test_seed()});
    while (run.n < 40) {
        const double *x = run.x[run.n];
        assert_int_equal(suggest(b, &run, 1, run.x[run.n]).n, 1);
        assert_inside(3, large, x);
        for (size_t i = 0; i < run.n; i++)
            assert_true(run.x[i][0] != x[0] || run.x[i][1] != x[1] || run.x[i][2] != x[2]);
        add(&run, pow((x[0] - 9) / 16, 2) + pow((x[1] - 22) / 16, 2) + (x[2] == 7 ? 0 : 0.5), 0);
    }
    bayes_free(b);
}

/* ---- batches and what is under way ---- */

static void tried_camel(struct run *run, size_t n) {
    memset(run, 0, sizeof *run);
    struct bayes *b = new_bayes(2, camel_box, (struct bayes_options){.seed = test_seed()});
    while (run->n < n) {
        suggest(b, run, 1, run->x[run->n]);
        add(run, camel(run->x[run->n]), 0);
    }
    bayes_free(b);
}

static double apart(const double *a, const double *b) {
    return hypot((a[0] - b[0]) / 6, (a[1] - b[1]) / 4);
}

static void a_batch_has_distinct_points(void **state) {
    (void)state;
    struct run run;
    double x[4][2];
    for (size_t n = 0; n <= 20; n += 10) {
        tried_camel(&run, n);
        struct bayes *b = new_bayes(2, camel_box, (struct bayes_options){.seed = test_seed()});
        assert_int_equal(suggest(b, &run, 4, x[0]).n, 4);
        for (int i = 0; i < 4; i++)
            for (int k = 0; k < i; k++)
                assert_true(apart(x[i], x[k]) > 1e-3);
        bayes_free(b);
    }
}

/* The next suggestion keeps away from the one under way, which without that word would come again. */
static void what_is_under_way_is_not_suggested_again(void **state) {
    (void)state;
    struct error err;
    struct run run;
    struct bayes_advice advice;
    double first[2], again[2], second[2];
    tried_camel(&run, 15);
    struct bayes *b = new_bayes(2, camel_box, (struct bayes_options){.seed = test_seed()});
    suggest(b, &run, 1, first);
    suggest(b, &run, 1, again);
    assert_memory_equal(first, again, sizeof first);
    struct bayes_history history = history_of(&run);
    history.n_pending = 1;
    history.pending = first;
    assert_ok(bayes_suggest(b, &history, 1, second, &advice, &err));
    assert_true(apart(first, second) > 0.01);
    bayes_free(b);
}

static void a_discrete_space_counts_what_is_under_way(void **state) {
    (void)state;
    struct error err;
    struct run run = {0};
    struct bayes_advice advice;
    double x[20][2];
    struct bayes *b = new_bayes(2, small, (struct bayes_options){.seed = test_seed()});
    for (; run.n < 6;) {
        suggest(b, &run, 1, run.x[run.n]);
        add(&run, run.x[run.n][0], 0);
    }
    struct bayes_history history = history_of(&run);
    assert_ok(bayes_suggest(b, &history, 4, x[0], &advice, &err));
    assert_int_equal(advice.n, 4);
    history.n_pending = 4;
    history.pending = x[0];
    assert_ok(bayes_suggest(b, &history, 10, x[4], &advice, &err));
    assert_int_equal(advice.n, 5);
    for (int i = 0; i < 9; i++)
        for (int k = 0; k < i; k++)
            assert_true(x[i][0] != x[k][0] || x[i][1] != x[k][1]);
    bayes_free(b);
}

static void a_suggestion_is_a_function_of_seed_and_history(void **state) {
    (void)state;
    struct run run;
    double x[3][8];
    tried_camel(&run, 12);
    for (int i = 0; i < 3; i++) {
        struct bayes *b = new_bayes(2, camel_box, (struct bayes_options){.seed = test_seed() + (i == 2)});
        struct run less = run;
        less.n = 9;
        if (i == 1) /* what was asked before leaves no trace */
            suggest(b, &less, 3, x[1]);
        suggest(b, &run, 4, x[i]);
        bayes_free(b);
    }
    assert_memory_equal(x[0], x[1], sizeof x[0]);
    assert_memory_not_equal(x[0], x[2], sizeof x[0]);
}

/* ---- knowledge from elsewhere ---- */

/* Branin as a prior guess: right but for a shift and a factor. */
static double guess(void *context, const double *x) {
    (void)context;
    return 0.9 * branin(x) + 7;
}

static void a_good_prior_is_used_from_the_first_trial_on(void **state) {
    (void)state;
    double regret[SEEDS];
    for (uint64_t s = 0; s < SEEDS; s++) {
        struct run run = {0};
        struct bayes *b = new_bayes(2, branin_box, (struct bayes_options){.seed = test_seed() + s, .prior = guess});
        regret[s] = INFINITY;
        while (run.n < 8) {
            suggest(b, &run, 1, run.x[run.n]);
            add(&run, branin(run.x[run.n]), 0);
            regret[s] = fmin(regret[s], run.value[run.n - 1] - landscapes[0].least);
        }
        bayes_free(b);
    }
    assert_true(median(regret) < 0.02);
}

static double half_forbidden(void *context, const double *x) {
    return *(const double *)context * x[0] > 2.5 ? INFINITY : 0;
}

static void an_infinite_prior_forbids_points(void **state) {
    (void)state;
    struct run run = {0};
    double sign = 1;
    struct bayes *b = new_bayes(2, branin_box,
                                (struct bayes_options){.seed = test_seed(), .prior = half_forbidden, .context = &sign});
    while (run.n < 12) {
        assert_int_equal(suggest(b, &run, 1, run.x[run.n]).n, 1);
        assert_true(run.x[run.n][0] <= 2.5);
        add(&run, branin(run.x[run.n]), 0);
    }
    bayes_free(b);
}

/* A hundred noisy values of the same function from another session, some of them at points better than any here. */
static void trials_from_elsewhere_help_but_are_not_recommended(void **state) {
    (void)state;
    enum { ELSEWHERE = 30 };
    struct rng rng;
    struct run run = {0};
    double least = INFINITY;
    rng_split(&rng, test_seed(), 77);
    for (size_t i = 0; i < ELSEWHERE; i++) {
        run.x[run.n][0] = rng_between(&rng, -5, 10);
        run.x[run.n][1] = rng_between(&rng, 0, 15);
        add(&run, branin(run.x[run.n]), 3 * rng_normal(&rng));
        run.trials[i].noise = 9;
        run.trials[i].elsewhere = true;
    }
    struct bayes *b = new_bayes(2, branin_box, (struct bayes_options){.seed = test_seed()});
    for (int i = 0; i < 10; i++) {
        struct bayes_advice advice = suggest(b, &run, 1, run.x[run.n]);
        assert_true(advice.modelled);
        add(&run, branin(run.x[run.n]), 0);
        least = fmin(least, run.value[run.n - 1]);
    }
    assert_true(recommended(2, branin_box, &run).trial >= ELSEWHERE);
    assert_true(least - landscapes[0].least < 0.5);
    bayes_free(b);
}

static void the_best_from_elsewhere_is_not_what_to_improve_on(void **state) {
    (void)state;
    struct run run = {0};
    for (int i = 0; i < 5; i++) {
        run.x[i][0] = i / 4.0;
        add(&run, 10 * pow(run.x[i][0] - 0.5, 2), 0);
    }
    for (int elsewhere = 0; elsewhere < 2; elsewhere++) {
        double x, gain;
        struct bayes *b = new_bayes(1, unit_box, (struct bayes_options){.seed = test_seed()});
        run.trials[2].elsewhere = elsewhere; /* the least: 0, the others are 0.625 and more */
        gain = suggest(b, &run, 1, &x).gain;
        assert_true(elsewhere ? gain > 0.5 : gain < 0.1);
        bayes_free(b);
    }
}

/* ---- stopping ---- */

static void the_expected_gain_falls_until_it_is_time_to_stop(void **state) {
    (void)state;
    struct run run = {0};
    struct bayes *b = new_bayes(2, unit_box, (struct bayes_options){.seed = test_seed()});
    struct bayes_advice advice = suggest(b, &run, 1, run.x[0]);
    assert_close(advice.gain, INFINITY, 0);
    assert_false(advice.modelled);
    double early = 0;
    while (run.n < 30) {
        advice = suggest(b, &run, 1, run.x[run.n]);
        early = run.n == 4 ? advice.gain : early;
        add(&run, 2 + pow(run.x[run.n][0] - 0.4, 2) + pow(run.x[run.n][1] - 0.7, 2), 0);
    }
    assert_true(early > 1e-3);
    assert_true(advice.gain > 0 && advice.gain < 1e-4 && advice.relative_gain < 1e-4);
    assert_close(advice.relative_gain, advice.gain / 2, 0.01);
    bayes_free(b);
}

/* ---- edges ---- */

/* The first points are far apart; then nothing is expected any more. */
static void equal_values_and_one_trial_still_give_a_suggestion(void **state) {
    (void)state;
    struct run run = {0};
    struct bayes_advice advice = {0};
    struct bayes *b = new_bayes(2, unit_box, (struct bayes_options){.seed = test_seed(), .first = 1});
    while (run.n < 20) {
        advice = suggest(b, &run, 1, run.x[run.n]);
        assert_int_equal(advice.n, 1);
        assert_int_equal(advice.modelled, run.n > 0);
        assert_inside(2, unit_box, run.x[run.n]);
        for (size_t i = 0; i < run.n && run.n < 5; i++)
            assert_true(hypot(run.x[i][0] - run.x[run.n][0], run.x[i][1] - run.x[run.n][1]) > 0.05);
        add(&run, 3, 0);
    }
    assert_true(advice.gain < 1e-3);
    assert_close(recommended(2, unit_box, &run).mean, 3, 1e-9);
    bayes_free(b);
}

static void the_recommended_trial_is_not_the_luckiest(void **state) {
    (void)state;
    struct rng rng;
    struct run run = {0};
    rng_split(&rng, test_seed(), 78);
    for (size_t i = 0; i < 40; i++) {
        run.x[i][0] = (double)i / 39;
        add(&run, 10 * pow(run.x[i][0] - 0.5, 2), 0.2 * rng_normal(&rng));
    }
    run.trials[3].y = -0.3; /* true value 1.8 */
    const struct recommendation best = recommended(1, unit_box, &run);
    assert_true(fabs(run.x[best.trial][0] - 0.5) < 0.2);
    assert_true(fabs(best.mean) < 5 * best.sd + 0.1);
}

static void what_is_no_number_is_refused_with_its_place(void **state) {
    (void)state;
    struct error err;
    struct bayes_advice advice = {.n = 99};
    double out[DIMENSIONS], x[4] = {2048, 0, 3, 1};
    struct bayes_trial trial = {.x = x, .y = 1};
    struct bayes_history history = {.n = 1, .trials = &trial};
    struct bayes *b = new_bayes(4, mixed, (struct bayes_options){.seed = 1});
    const struct {
        double *place, value;
        const char *words;
    } bad[] = {{&x[0], NAN, "trial 0: dimension 0: nan"},
               {&x[0], 0, "trial 0: dimension 0: 0 has no logarithm"},
               {&x[1], INFINITY, "trial 0: dimension 1"},
               {&x[2], 2.5, "trial 0: dimension 2: 2.5 is not whole"},
               {&x[3], 4, "trial 0: dimension 3: there is no category 4"},
               {&trial.y, NAN, "trial 0: value nan"},
               {&trial.y, INFINITY, "trial 0: value inf"},
               {&trial.noise, -1, "trial 0"},
               {&trial.noise, NAN, "trial 0"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        double before = *bad[i].place;
        *bad[i].place = bad[i].value;
        assert_fails(bayes_suggest(b, &history, 1, out, &advice, &err), ST_INVALID, bad[i].words);
        *bad[i].place = before;
    }
    x[1] = NAN;
    history = (struct bayes_history){.n_pending = 1, .pending = x};
    assert_fails(bayes_suggest(b, &history, 1, out, &advice, &err), ST_INVALID, "point 0 under way: dimension 1");
    history.n_pending = 0;
    assert_fails(bayes_suggest(b, &history, GP_MOST + 1, out, &advice, &err), ST_TOO_LARGE, "more than");
    assert_int_equal(advice.n, 99);
    bayes_free(b);
}

static void spaces_that_make_no_sense_are_refused(void **state) {
    (void)state;
    struct error err;
    struct bayes *b = NULL;
    const struct {
        struct bayes_dimension dimension;
        enum status status;
        const char *words;
    } bad[] = {{{BAYES_LINEAR, 1, 1}, ST_INVALID, "no interval"},
               {{BAYES_LINEAR, 0, NAN}, ST_INVALID, "no interval"},
               {{BAYES_LOG2, 0, 4}, ST_INVALID, "no logarithm"},
               {{BAYES_INTEGER, 0.5, 4}, ST_INVALID, "not whole"},
               {{BAYES_CATEGORICAL, 1, 4}, ST_INVALID, "counted from 0"},
               {{BAYES_CATEGORICAL, 0, 1000}, ST_TOO_LARGE, "at most"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_fails(bayes_new(1, &bad[i].dimension, &(struct bayes_options){0}, &b, &err), bad[i].status,
                     bad[i].words);
    assert_fails(bayes_new(0, unit_box, &(struct bayes_options){0}, &b, &err), ST_INVALID, "needs a dimension");
    assert_null(b);
}

/* ---- candidates ---- */

static void candidates_are_scored_by_what_the_model_expects_of_them(void **state) {
    (void)state;
    enum { N = 30, CANDIDATES = 300 };
    struct error err;
    struct rng rng;
    struct gp *gp;
    double x[N * 2], y[N], rows[CANDIDATES * 2], prior[CANDIDATES], score[CANDIDATES], means[N], best = INFINITY;
    rng_split(&rng, test_seed(), 79);
    for (size_t i = 0; i < N; i++) {
        x[2 * i] = rng_uniform(&rng);
        x[2 * i + 1] = rng_uniform(&rng);
        y[i] = sin(5 * x[2 * i]) + x[2 * i + 1] + 0.02 * rng_normal(&rng);
    }
    assert_ok(gp_new(2, NULL, &gp, &err));
    assert_ok(gp_fit(gp, &(struct gp_data){.n = N, .x = x, .y = y}, &err));
    gp_observed_means(gp, means);
    for (size_t i = 0; i < N; i++)
        best = fmin(best, means[i]);
    for (size_t i = 0; i < CANDIDATES; i++) {
        rows[2 * i] = rng_uniform(&rng);
        rows[2 * i + 1] = rng_uniform(&rng);
        prior[i] = rng_between(&rng, -0.1, 0.1);
    }
    bayes_score(gp, CANDIDATES, rows, prior, best, score);
    for (size_t i = 0; i < CANDIDATES; i += 7) { /* against a sum over the normal density */
        double mean, variance, sum = 0;
        gp_predict(gp, 1, rows + 2 * i, &prior[i], &mean, &variance);
        for (int k = -9000; k < 9000; k++) {
            double u = 0.001 * k;
            sum += 0.001 * exp(-u * u / 2) / sqrt(2 * M_PI) * fmax(0, best - mean - u * sqrt(variance));
        }
        sum *= 1 - gp_noise(gp) / sqrt(variance + gp_noise(gp) * gp_noise(gp));
        assert_true(fabs(exp(score[i]) - sum) < 1e-6 + 1e-3 * sum);
    }
    size_t choice = bayes_choose(CANDIDATES, score);
    for (size_t i = 0; i < CANDIDATES; i++)
        assert_true(score[i] <= score[choice]);
    gp_free(gp);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(branin_is_minimised),
        cmocka_unit_test(branin_is_minimised_through_noise),
        cmocka_unit_test(the_six_hump_camel_is_minimised),
        cmocka_unit_test(hartmann_in_six_dimensions_is_minimised),
        cmocka_unit_test(a_mixed_space_is_searched_inside_its_bounds),
        cmocka_unit_test(values_become_rows_and_come_back),
        cmocka_unit_test(the_first_points_are_spread_evenly),
        cmocka_unit_test(a_discrete_space_is_tried_without_repeats_until_it_is_used_up),
        cmocka_unit_test(a_large_discrete_space_is_tried_without_repeats),
        cmocka_unit_test(a_batch_has_distinct_points),
        cmocka_unit_test(what_is_under_way_is_not_suggested_again),
        cmocka_unit_test(a_discrete_space_counts_what_is_under_way),
        cmocka_unit_test(a_suggestion_is_a_function_of_seed_and_history),
        cmocka_unit_test(a_good_prior_is_used_from_the_first_trial_on),
        cmocka_unit_test(an_infinite_prior_forbids_points),
        cmocka_unit_test(trials_from_elsewhere_help_but_are_not_recommended),
        cmocka_unit_test(the_best_from_elsewhere_is_not_what_to_improve_on),
        cmocka_unit_test(the_expected_gain_falls_until_it_is_time_to_stop),
        cmocka_unit_test(equal_values_and_one_trial_still_give_a_suggestion),
        cmocka_unit_test(the_recommended_trial_is_not_the_luckiest),
        cmocka_unit_test(what_is_no_number_is_refused_with_its_place),
        cmocka_unit_test(spaces_that_make_no_sense_are_refused),
        cmocka_unit_test(candidates_are_scored_by_what_the_model_expects_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
