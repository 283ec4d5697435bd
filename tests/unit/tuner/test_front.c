/* The front of time against memory, against its definition on random points. */
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "tests/support/check.h"
#include "tuner/predict/front.h"

enum { INSTANCES = 2000, MOST = 12 };

/* Few values, so that many are equal. */
static size_t random_points(struct rng *rng, struct front_point *points, char ids[MOST][8]) {
    const size_t n = (size_t)rng_below(rng, MOST + 1);
    for (size_t i = 0; i < n; i++) {
        snprintf(ids[i], sizeof ids[i], "%u", (unsigned)i % MOST);
        points[i] = (struct front_point){.id = ids[i],
                                         .strategy = "s",
                                         .bytes = 1 + rng_below(rng, 6),
                                         .iteration_us = 1 + (double)rng_below(rng, 6)};
    }
    return n;
}

static bool beats(const struct front_point *a, const struct front_point *b) {
    return a->bytes <= b->bytes && a->iteration_us <= b->iteration_us &&
           (a->bytes < b->bytes || a->iteration_us < b->iteration_us);
}

static bool has(size_t n, const struct front_point *points, const struct front_point *wanted) {
    for (size_t i = 0; i < n; i++)
        if (points[i].bytes == wanted->bytes && points[i].iteration_us <= wanted->iteration_us &&
            points[i].iteration_us >= wanted->iteration_us)
            return true;
    return false;
}

static void the_front_is_what_no_point_beats(void **state) {
    (void)state;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct rng rng;
        struct front_point all[MOST], front[MOST];
        char ids[MOST][8];
        rng_split(&rng, test_seed(), i);
        const size_t n = random_points(&rng, all, ids);
        memcpy(front, all, sizeof all);
        front_sort(n, front);
        for (size_t k = 1; k < n; k++)
            assert_true(front[k - 1].bytes <= front[k].bytes);
        const size_t kept = front_keep(n, front);
        for (size_t k = 1; k < kept; k++)
            assert_true(front[k - 1].bytes < front[k].bytes && front[k - 1].iteration_us > front[k].iteration_us);
        for (size_t k = 0; k < n; k++) {
            bool beaten = false;
            for (size_t m = 0; m < n; m++)
                beaten |= beats(&all[m], &all[k]);
            assert_int_equal(has(kept, front, &all[k]), !beaten);
        }
    }
}

/* What is left out has a faster one beside it, and what is left has none. */
static void a_thinned_front_has_no_two_of_nearly_the_same_memory(void **state) {
    (void)state;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct rng rng;
        struct front_point front[MOST], thin[MOST];
        rng_split(&rng, test_seed(), i);
        const size_t n = (size_t)rng_below(&rng, MOST + 1);
        for (size_t k = 0; k < n; k++)
            front[k] =
                (struct front_point){.id = "x", .bytes = 100000 + 40 * k + rng_below(&rng, 140), .iteration_us = 99};
        front_sort(n, front);
        for (size_t k = 0; k < n; k++)
            front[k].iteration_us = 50 - (double)k;
        const size_t all = front_keep(n, front);
        memcpy(thin, front, sizeof front);
        const size_t kept = front_thin(all, thin);
        assert_true((kept == 0) == (n == 0));
        for (size_t k = 0; k < all; k++) {
            bool near = false;
            for (size_t m = k + 1; m < all; m++)
                near |= (double)front[m].bytes <= (double)front[k].bytes * 1.001;
            assert_int_equal(has(kept, thin, &front[k]), !near);
        }
    }
}

static void of_equal_points_the_first_id_is_kept(void **state) {
    (void)state;
    struct front_point points[] = {{.id = "b", .bytes = 5, .iteration_us = 7},
                                   {.id = "a", .bytes = 5, .iteration_us = 7}};
    front_sort(2, points);
    assert_int_equal(front_keep(2, points), 1);
    assert_string_equal(points[0].id, "a");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_front_is_what_no_point_beats),
        cmocka_unit_test(a_thinned_front_has_no_two_of_nearly_the_same_memory),
        cmocka_unit_test(of_equal_points_the_first_id_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
