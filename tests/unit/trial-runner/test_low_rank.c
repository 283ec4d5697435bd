/* Matrices as products of thin ones: each pass against a plain reading in doubles, orthogonal columns by what defines
 * them, and what iterations of powersgd must keep true. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/support/check.h"
#include "trial-runner/worker/mpi/low_rank.h"

enum { DEVICES = 3, MOST_ROWS = 70, MOST_COLUMNS = 90, MOST_RANK = 9, MOST = MOST_ROWS * MOST_COLUMNS };

struct room {
    float left[MOST], gradient[MOST], out[MOST], p[MOST_ROWS * MOST_RANK], q[MOST_COLUMNS * MOST_RANK];
};

static void draw(struct rng *rng, float *values, size_t n) {
    for (size_t i = 0; i < n; i++)
        values[i] = (float)rng_normal(rng);
}

static struct low_rank random_matrix(struct rng *rng, struct room *room) {
    struct low_rank a = {.m = 1 + rng_below(rng, MOST_ROWS),
                         .n = 1 + rng_below(rng, MOST_COLUMNS),
                         .left = room->left,
                         .p = room->p,
                         .q = room->q};
    const size_t most = a.m < a.n ? a.m : a.n;
    a.r = 1 + rng_below(rng, most < MOST_RANK ? most : MOST_RANK);
    draw(rng, a.left, a.m * a.n);
    draw(rng, a.p, a.m * a.r);
    draw(rng, a.q, a.n * a.r);
    draw(rng, room->gradient, a.m * a.n);
    return a;
}

/* Whether `got` is element (i, k) of the product of M and Q, or of M^T and P, to rounding. */
static bool is_product(const struct low_rank *a, size_t i, size_t k, bool back, double got) {
    double sum = 0, size = 0;
    for (size_t j = 0; j < (back ? a->m : a->n); j++) {
        const double term = back ? (double)a->left[j * a->n + i] * (double)a->p[j * a->r + k]
                                 : (double)a->left[i * a->n + j] * (double)a->q[k * a->n + j];
        sum += term;
        size += fabs(term);
    }
    return fabs(got - sum) <= 1e-5 * size;
}

static void check_passes(struct rng *rng, struct room *room, bool widely) {
    const struct low_rank a = random_matrix(rng, room);
    float before[MOST], old[MOST];
    memcpy(before, a.left, sizeof before);
    (widely ? low_rank_run : low_rank_pass_plainly)(LOW_RANK_multiply, &a, room->gradient, NULL, 0);
    for (size_t i = 0; i < a.m * a.n; i++)
        assert_true(a.left[i] == before[i] + room->gradient[i]);
    for (size_t i = 0; i < a.m; i++)
        for (size_t k = 0; k < a.r; k++)
            assert_true(is_product(&a, i, k, false, (double)a.p[i * a.r + k]));
    (widely ? low_rank_run : low_rank_pass_plainly)(LOW_RANK_multiply_back, &a, NULL, NULL, 0);
    for (size_t j = 0; j < a.n; j++)
        for (size_t k = 0; k < a.r; k++)
            assert_true(is_product(&a, j, k, true, (double)a.q[k * a.n + j]));
    memcpy(old, a.left, sizeof old);
    (widely ? low_rank_run : low_rank_pass_plainly)(LOW_RANK_restore, &a, NULL, room->out, 0.25f);
    for (size_t i = 0; i < a.m; i++)
        for (size_t j = 0; j < a.n; j++) {
            double sum = 0, size = 0;
            for (size_t k = 0; k < a.r; k++) {
                const double term = (double)a.p[i * a.r + k] * (double)a.q[k * a.n + j];
                sum += term;
                size += fabs(term);
            }
            assert_true(fabs((double)room->out[i * a.n + j] - sum) <= 1e-5 * size);
            assert_true(a.left[i * a.n + j] == old[i * a.n + j] + -0.25f * room->out[i * a.n + j]);
        }
}

static void passes_are_those_of_a_plain_reading(void **state) {
    (void)state;
    struct rng rng;
    struct room *room = calloc(1, sizeof *room);
    assert_non_null(room);
    rng_seed(&rng, test_seed());
    for (int i = 0; i < 200; i++)
        check_passes(&rng, room, i % 2);
    free(room);
}

static double inner(const struct low_rank *a, size_t j, size_t k) {
    double sum = 0;
    for (size_t i = 0; i < a->m; i++)
        sum += (double)a->p[i * a->r + j] * (double)a->p[i * a->r + k];
    return sum;
}

/* Some columns are made of those before them. The rest come out orthogonal, of length 1, and these zero. What columns
 * span stays: of each old column nothing is left without the new ones. */
static void columns_become_orthogonal_and_what_depends_becomes_zero(void **state) {
    (void)state;
    struct rng rng;
    struct room *room = calloc(1, sizeof *room);
    assert_non_null(room);
    rng_seed(&rng, test_seed());
    for (int turn = 0; turn < 200; turn++) {
        const struct low_rank a = random_matrix(&rng, room);
        bool depends[MOST_RANK] = {false};
        float old[MOST_ROWS * MOST_RANK];
        for (size_t k = 1; k < a.r; k++) {
            const size_t of = rng_below(&rng, k);
            depends[k] = rng_below(&rng, 4) == 0;
            for (size_t i = 0; i < a.m && depends[k]; i++)
                a.p[i * a.r + k] = 3 * a.p[i * a.r] - a.p[i * a.r + of];
        }
        memcpy(old, a.p, sizeof old);
        low_rank_orthogonalise(&a);
        for (size_t k = 0; k < a.r; k++)
            for (size_t j = 0; j <= k; j++)
                assert_true(fabs(inner(&a, j, k) - (j == k && !depends[k])) < 1e-4);
        for (size_t k = 0; k < a.r; k++) {
            double rest = 0, all = 0, common[MOST_RANK] = {0};
            for (size_t j = 0; j < a.r; j++)
                for (size_t i = 0; i < a.m; i++)
                    common[j] += (double)a.p[i * a.r + j] * (double)old[i * a.r + k];
            for (size_t i = 0; i < a.m; i++) {
                double left = (double)old[i * a.r + k];
                all += left * left;
                for (size_t j = 0; j < a.r; j++)
                    left -= common[j] * (double)a.p[i * a.r + j];
                rest += left * left;
            }
            assert_true(rest <= 1e-5 * all);
        }
    }
    free(room);
}

/* One device's side of all. */
struct device {
    struct room room;
    struct low_rank a;
};

static void add_over_devices(struct device *devices, bool second) {
    const struct low_rank *first = &devices[0].a;
    const size_t n = second ? first->n * first->r : first->m * first->r;
    for (size_t i = 0; i < n; i++) {
        float sum = 0;
        for (int d = 0; d < DEVICES; d++)
            sum += second ? devices[d].a.q[i] : devices[d].a.p[i];
        for (int d = 0; d < DEVICES; d++)
            *(second ? &devices[d].a.q[i] : &devices[d].a.p[i]) = sum;
    }
}

/* Algorithm 2 of the paper, in the order in which the worker does it. */
static void iterate(struct device *devices) {
    for (int d = 0; d < DEVICES; d++) {
        low_rank_draw(&devices[d].a, 5);
        low_rank_run(LOW_RANK_multiply, &devices[d].a, devices[d].room.gradient, NULL, 0);
    }
    add_over_devices(devices, false);
    for (int d = 0; d < DEVICES; d++) {
        low_rank_orthogonalise(&devices[d].a);
        low_rank_run(LOW_RANK_multiply_back, &devices[d].a, NULL, NULL, 0);
    }
    add_over_devices(devices, true);
    for (int d = 0; d < DEVICES; d++)
        low_rank_run(LOW_RANK_restore, &devices[d].a, NULL, devices[d].room.out, 1.0f / DEVICES);
}

static struct device *devices_new(struct rng *rng) {
    struct device *devices = calloc(DEVICES, sizeof *devices);
    assert_non_null(devices);
    for (int d = 0; d < DEVICES; d++) {
        struct room *room = &devices[d].room;
        devices[d].a = random_matrix(rng, room);
        if (d > 0)
            devices[d].a.m = devices[0].a.m, devices[d].a.n = devices[0].a.n, devices[d].a.r = devices[0].a.r;
        memset(room->left, 0, sizeof room->left);
        memset(room->q, 0, sizeof room->q);
    }
    return devices;
}

/* Whatever came back and is still kept adds up to all gradients; all devices have the same. */
static void nothing_is_lost_for_ever(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int turn = 0; turn < 30; turn++) {
        struct device *devices = devices_new(&rng);
        const size_t n = devices[0].a.m * devices[0].a.n;
        double owed[MOST] = {0};
        for (int iteration = 0; iteration < 10; iteration++) {
            for (int d = 0; d < DEVICES; d++)
                draw(&rng, devices[d].room.gradient, n);
            for (size_t i = 0; i < n; i++)
                for (int d = 0; d < DEVICES; d++)
                    owed[i] += (double)devices[d].room.gradient[i];
            iterate(devices);
            for (size_t i = 0; i < n; i++)
                owed[i] -= (double)devices[0].room.out[i];
            for (int d = 1; d < DEVICES; d++)
                assert_memory_equal(devices[d].room.out, devices[0].room.out, n * sizeof(float));
        }
        for (size_t i = 0; i < n; i++) {
            double kept = 0;
            for (int d = 0; d < DEVICES; d++)
                kept += (double)devices[d].room.left[i];
            assert_true(fabs(owed[i] - kept) < 1e-3);
        }
        free(devices);
    }
}

/* Where the sum of gradients has no more than the rank, all of it comes back at once. */
static void a_sum_of_low_rank_comes_back_whole(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int turn = 0; turn < 30; turn++) {
        struct device *devices = devices_new(&rng);
        const struct low_rank a = devices[0].a;
        float p[MOST_ROWS * MOST_RANK], q[MOST_COLUMNS * MOST_RANK];
        draw(&rng, p, a.m * a.r);
        draw(&rng, q, a.n * a.r);
        double off = 0, all = 0;
        for (size_t i = 0; i < a.m; i++)
            for (size_t j = 0; j < a.n; j++) {
                double sum = 0;
                for (size_t k = 0; k < a.r; k++)
                    sum += (double)p[i * a.r + k] * (double)q[k * a.n + j];
                for (int d = 1; d < DEVICES; d++)
                    sum -= (double)devices[d].room.gradient[i * a.n + j];
                devices[0].room.gradient[i * a.n + j] = (float)sum;
            }
        iterate(devices);
        for (size_t i = 0; i < a.m * a.n; i++) {
            double sum = 0;
            for (int d = 0; d < DEVICES; d++)
                sum += (double)devices[d].room.gradient[i];
            off += pow(sum - (double)devices[0].room.out[i], 2);
            all += sum * sum;
        }
        assert_true(off <= 1e-4 * all);
        free(devices);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_are_those_of_a_plain_reading),
        cmocka_unit_test(columns_become_orthogonal_and_what_depends_becomes_zero),
        cmocka_unit_test(nothing_is_lost_for_ever),
        cmocka_unit_test(a_sum_of_low_rank_comes_back_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
