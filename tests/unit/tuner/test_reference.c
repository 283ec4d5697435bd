/* The reference searches: where they ask, that they repeat, and that they find what they should. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/support/check.h"
#include "tests/support/tuner/reference.h"

enum { D = 3 };

static double bowl(size_t d, const double *x) {
    double sum = 0;
    for (size_t i = 0; i < d; i++)
        sum += (double)(i + 1) * (x[i] - 0.3) * (x[i] - 0.3);
    return sum;
}

static double slope(size_t d, const double *x) {
    double sum = 0;
    for (size_t i = 0; i < d; i++)
        sum += i % 2 ? -x[i] : x[i];
    return sum;
}

static double flat(size_t d, const double *x) {
    (void)d;
    (void)x;
    return 1;
}

/* Half of the cube cannot be run. */
static double half(size_t d, const double *x) {
    return x[0] > 0.5 ? INFINITY : bowl(d, x);
}

/* The best value in n tries; every point must lie in the cube. */
static double run(const char *name, size_t d, uint64_t seed, size_t n, double (*f)(size_t, const double *),
                  double *points) {
    struct error err;
    struct searcher s;
    double best = INFINITY, x[REFERENCE_MAX_DIMENSIONS];
    assert_ok(reference_find(name)->open(d, seed, &s, &err));
    for (size_t t = 0; t < n; t++) {
        s.ask(s.state, x);
        for (size_t i = 0; i < d; i++)
            assert_true(x[i] >= 0 && x[i] <= 1);
        if (points)
            memcpy(points + t * d, x, d * sizeof *x);
        double value = f(d, x);
        best = fmin(best, value);
        s.tell(s.state, value);
    }
    s.close(s.state);
    return best;
}

static bool is_equal(size_t n, const double *a, const double *b) {
    for (size_t i = 0; i < n; i++)
        if (a[i] < b[i] || a[i] > b[i])
            return false;
    return true;
}

static void the_same_seed_asks_for_the_same_points_and_another_for_others(void **state) {
    (void)state;
    enum { N = 50 };
    size_t n;
    const struct reference *list = reference_list(&n);
    double a[N * D], b[N * D], c[N * D];
    assert_int_equal(n, 3);
    for (size_t i = 0; i < n; i++) {
        run(list[i].name, D, 1, N, bowl, a);
        run(list[i].name, D, 1, N, bowl, b);
        run(list[i].name, D, 2, N, bowl, c);
        assert_true(is_equal(sizeof a / sizeof *a, a, b));
        assert_false(is_equal(sizeof a / sizeof *a, a, c));
    }
}

static void points_stay_in_the_cube_whatever_the_values(void **state) {
    (void)state;
    size_t n;
    const struct reference *list = reference_list(&n);
    for (size_t i = 0; i < n; i++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            run(list[i].name, 1 + seed % 5, seed, 500, slope, NULL);
            run(list[i].name, 1 + seed % 5, seed, 500, flat, NULL);
            run(list[i].name, 1 + seed % 5, seed, 500, half, NULL);
        }
}

static void asking_again_gives_the_same_point(void **state) {
    (void)state;
    struct error err;
    struct searcher s;
    size_t n;
    const struct reference *list = reference_list(&n);
    for (size_t i = 0; i < n; i++) {
        double a[D], b[D];
        assert_ok(list[i].open(D, 3, &s, &err));
        s.ask(s.state, a);
        s.ask(s.state, b);
        assert_true(is_equal(D, a, b));
        s.close(s.state);
    }
}

static void random_points_fill_the_cube_evenly(void **state) {
    (void)state;
    enum { N = 8000 };
    double *points = calloc((size_t)N * D, sizeof *points);
    uint32_t octant[8] = {0};
    assert_non_null(points);
    run("random", D, test_seed(), N, flat, points);
    for (size_t t = 0; t < N; t++)
        octant[(points[t * D] > 0.5) + 2 * (points[t * D + 1] > 0.5) + 4 * (points[t * D + 2] > 0.5)]++;
    for (int i = 0; i < 8; i++) /* 1,000 expected, deviation 30 */
        assert_true(octant[i] > 850 && octant[i] < 1150);
    free(points);
}

/* The coordinates must be middles of 1/side, which numbers the point. */
static size_t number_of(const double *x, size_t d, size_t side) {
    size_t number = 0;
    for (size_t i = 0; i < d; i++) {
        double place = x[i] * (double)side - 0.5;
        assert_true(fabs(place - round(place)) < 1e-9);
        number = number * side + (size_t)round(place);
    }
    return number;
}

/* 3^d points first, each once, then those of 9^d that are new, each once, whatever the seed. */
static void grids_visit_every_point_once_the_coarser_ones_first(void **state) {
    (void)state;
    for (size_t d = 1; d <= 3; d++)
        for (uint64_t seed = 0; seed < 5; seed++) {
            size_t coarse = (size_t)pow(3, (double)d), fine = (size_t)pow(9, (double)d);
            double *points = calloc(fine * d, sizeof *points);
            bool *seen = calloc(fine, sizeof *seen);
            assert_true(points && seen);
            run("grid", d, seed, fine, flat, points);
            for (size_t t = 0; t < coarse; t++)
                number_of(points + t * d, d, 3);
            for (size_t t = 0; t < fine; t++) {
                size_t number = number_of(points + t * d, d, 9);
                assert_false(seen[number]);
                seen[number] = true;
            }
            free(points);
            free(seen);
        }
}

static void momentum_descends_a_bowl_sooner_than_random_search(void **state) {
    (void)state;
    enum { DIMENSIONS = 4, TRIES = 150, SEEDS = 21 };
    uint32_t wins = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        double momentum = run("momentum", DIMENSIONS, seed, TRIES, bowl, NULL);
        assert_true(momentum < 0.1);
        wins += momentum < run("random", DIMENSIONS, seed, TRIES, bowl, NULL);
    }
    assert_true(wins >= SEEDS * 3 / 4);
}

static void momentum_comes_to_the_corner_that_a_slope_leads_to(void **state) {
    (void)state;
    const double corner[D] = {0, 1, 0};
    for (uint64_t seed = 0; seed < 10; seed++)
        assert_true(run("momentum", D, seed, 200, slope, NULL) < slope(D, corner) + 1e-9);
}

/* On a plain there is nothing to follow: each restart is a new random point. */
static void momentum_starts_anew_where_it_is_stuck(void **state) {
    (void)state;
    enum { N = 200 };
    double points[N];
    run("momentum", 1, 9, N, flat, points);
    uint32_t jumps = 0;
    for (size_t t = 1; t < N; t++)
        jumps += fabs(points[t] - points[t - 1]) > 0.21;
    assert_true(jumps > N / 20);
}

/* Minima at both ends; the left one is the deeper. One descent that starts at the right misses it. */
static double two_wells(size_t d, const double *x) {
    (void)d;
    return x[0] < 0.3 ? fabs(x[0] - 0.15) : 0.2 + fabs(x[0] - 0.9);
}

static void momentum_leaves_a_local_minimum_by_restarting(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++)
        assert_true(run("momentum", 1, seed, 300, two_wells, NULL) < 0.1);
}

static void unknown_names_and_impossible_dimensions_are_refused(void **state) {
    (void)state;
    struct error err;
    struct searcher s;
    assert_null(reference_find("tabu"));
    assert_fails(reference_find("grid")->open(0, 1, &s, &err), ST_INVALID, "dimensions");
    assert_fails(reference_find("momentum")->open(REFERENCE_MAX_DIMENSIONS + 1, 1, &s, &err), ST_INVALID, "33");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_asks_for_the_same_points_and_another_for_others),
        cmocka_unit_test(points_stay_in_the_cube_whatever_the_values),
        cmocka_unit_test(asking_again_gives_the_same_point),
        cmocka_unit_test(random_points_fill_the_cube_evenly),
        cmocka_unit_test(grids_visit_every_point_once_the_coarser_ones_first),
        cmocka_unit_test(momentum_descends_a_bowl_sooner_than_random_search),
        cmocka_unit_test(momentum_comes_to_the_corner_that_a_slope_leads_to),
        cmocka_unit_test(momentum_starts_anew_where_it_is_stuck),
        cmocka_unit_test(momentum_leaves_a_local_minimum_by_restarting),
        cmocka_unit_test(unknown_names_and_impossible_dimensions_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
