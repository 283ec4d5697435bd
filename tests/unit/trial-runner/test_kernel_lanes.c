/* Kernels whose lanes tell each other numbers, with threads of the processor as lanes: a barrier stands for the step of
 * a warp. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/support/check.h"
#include "trial-runner/worker/mpi/largest.h"
#include "trial-runner/worker/mpi/low_rank.h"

enum { MOST_LANES = 8 };

static uint32_t n_lanes = 1;
static pthread_barrier_t all_lanes;
static double told[2][MOST_LANES];
static _Thread_local uint32_t this_lane, n_told;

/* Tell all lanes a number; those of all lie at what is returned until the next but one is told. */
static const double *tell(double number) {
    double *all = told[n_told++ % 2];
    all[this_lane] = number;
    pthread_barrier_wait(&all_lanes);
    return all;
}

#define KERNEL_LANES
static uint32_t kernel_votes(int yes) {
    const double *all = tell(yes != 0);
    uint32_t votes = 0;
    for (uint32_t lane = 0; lane < n_lanes; lane++)
        votes |= (uint32_t)(all[lane] != 0) << lane;
    return votes;
}

static uint32_t kernel_sum_before(uint32_t own, uint32_t lane) {
    const double *all = tell(own);
    uint32_t sum = 0;
    for (uint32_t other = 0; other < lane; other++)
        sum += (uint32_t)all[other];
    return sum;
}

static double kernel_sum_threads(double own) {
    const double *all = tell(own);
    double sum = 0;
    for (uint32_t lane = 0; lane < n_lanes; lane++)
        sum += all[lane];
    return sum;
}

static float kernel_sum_lanes(float own) {
    return (float)kernel_sum_threads((double)own);
}

#include "trial-runner/worker/nccl/kernel_largest.h"
#include "trial-runner/worker/nccl/kernel_low_rank.h"

struct lane {
    uint32_t number;
    void (*work)(void *context, uint32_t lane);
    void *context;
};

static void *run_lane(void *context) {
    const struct lane *lane = context;
    this_lane = lane->number;
    lane->work(lane->context, lane->number);
    return NULL;
}

/* All lanes do it, in step. */
static void by_lanes(void (*work)(void *context, uint32_t lane), void *context) {
    pthread_t threads[MOST_LANES];
    struct lane lanes[MOST_LANES];
    assert_int_equal(pthread_barrier_init(&all_lanes, NULL, n_lanes), 0);
    for (uint32_t i = 0; i < n_lanes; i++) {
        lanes[i] = (struct lane){i, work, context};
        assert_int_equal(pthread_create(&threads[i], NULL, run_lane, &lanes[i]), 0);
    }
    for (uint32_t i = 0; i < n_lanes; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&all_lanes);
}

/* ---- the largest elements ---- */

enum { MOST = 5000 };

struct taking {
    struct kernel_largest work;
    struct largest taken[MOST];
    float values[MOST], more[MOST];
    uint64_t n;
    uint32_t k;
};

/* The launches of kernels.cu, one after another. */
static void take(void *context, uint32_t lane) {
    struct taking *t = context;
    const uint32_t n_chunks = kernel_chunk_count(t->n);
    struct largest_search search = {0, t->k};
    for (uint32_t pass = 0; pass < LARGEST_PASSES; pass++) {
        if (lane == 0)
            memset(t->work.bins, 0, sizeof t->work.bins);
        tell(0);
        for (uint32_t i = 0; i < n_lanes && lane == 0; i++) /* one at a time: only a GPU counts by atomic additions */
            kernel_count_sizes(t->work.bins, t->values, pass == 0 ? t->more : NULL, t->n, search.prefix, pass, i,
                               n_lanes);
        tell(0);
        kernel_narrow(&t->work, search, pass, lane, n_lanes);
        tell(0);
        search = t->work.search;
        tell(0);
    }
    for (uint32_t c = 0; c < n_chunks; c++)
        kernel_count_chunk(&t->work, t->values, t->n, c, lane, n_lanes);
    tell(0);
    kernel_add_up(t->work.above, n_chunks, lane, n_lanes);
    kernel_add_up(t->work.equal, n_chunks, lane, n_lanes);
    tell(0);
    for (uint32_t c = n_chunks; c-- > 0;)
        kernel_take_chunk(t->taken, &t->work, t->values, t->n, c, lane, n_lanes);
}

/* Numbers of many sizes, or few different ones, so that some are equal; or zeros but for a few. */
static float draw(struct rng *rng, int kind) {
    if (kind == 0)
        return (float)(rng_normal(rng) * rng_log_between(rng, 1e-20, 1e20));
    return kind == 1 || rng_below(rng, 100) == 0 ? (float)rng_below(rng, 7) - 3 : 0;
}

/* Bit by bit, in one order, and so is what is left. And the elements add up to what was taken. */
static void the_largest_elements_are_those_of_the_mpi_worker(void **state) {
    (void)state;
    static struct taking t;
    static struct largest wanted[MOST];
    static float left[MOST], sum[MOST];
    static const uint32_t lanes[] = {1, 2, 4, 8};
    struct rng rng;
    rng_split(&rng, test_seed(), 11);
    for (int round = 0; round < 60; round++) {
        n_lanes = lanes[round % 4];
        t.n = 1 + rng_below(&rng, round % 5 ? 1500 : MOST);
        t.k = (uint32_t)(1 + rng_below(&rng, round % 3 ? t.n : 1 + t.n / 50));
        for (uint64_t i = 0; i < t.n; i++) {
            t.values[i] = draw(&rng, round % 3);
            t.more[i] = draw(&rng, round % 3);
            left[i] = t.values[i] + t.more[i];
        }
        largest_take(wanted, left, t.n, t.k);
        by_lanes(take, &t);
        assert_memory_equal(t.taken, wanted, t.k * sizeof *wanted);
        assert_memory_equal(t.values, left, t.n * sizeof *left);
        memset(sum, 0, sizeof sum);
        for (uint32_t thread = 0; thread < 7; thread++)
            kernel_add_largest(sum, t.taken, t.k, t.n, thread, 7);
        for (uint32_t i = 0; i < t.k; i++) {
            assert_true(sum[wanted[i].at] == wanted[i].value);
            sum[wanted[i].at] = 0;
        }
        for (uint64_t i = 0; i < t.n; i++)
            assert_true(sum[i] == 0);
    }
}

static void chunks_are_no_more_than_there_is_room_for(void **state) {
    (void)state;
    struct rng rng;
    rng_split(&rng, test_seed(), 12);
    for (int i = 0; i < 1000; i++) {
        const uint64_t n = 1 + rng_below(&rng, i % 2 ? UINT64_C(1) << 32 : 100000), length = kernel_chunk_length(n);
        assert_in_range(kernel_chunk_count(n), 1, KERNEL_CHUNKS);
        assert_true(length % 32 == 0 && kernel_chunk_count(n) * length >= n &&
                    (kernel_chunk_count(n) - 1) * length < n);
    }
}

/* What comes in and was lost may name any place. */
static void a_place_beyond_the_sum_adds_nothing(void **state) {
    (void)state;
    float sum[3] = {1, 2, 3};
    const struct largest from[] = {{3, 1}, {UINT32_MAX, 1}, {2, 1}};
    kernel_add_largest(sum, from, 3, 3, 0, 1);
    assert_true(sum[0] == 1 && sum[1] == 2 && sum[2] == 4);
}

/* ---- thin matrices ---- */

enum { MOST_SIDE = 40, MOST_RANK = 9, SIZE = MOST_SIDE * MOST_SIDE, THIN = MOST_SIDE * MOST_RANK };

/* Behind PAD elements of other variables. */
enum { PAD = 3 };

struct thin_room {
    struct kernel_matrix matrix;
    struct kernel_thin thin;
    float run[SIZE + PAD], left[SIZE + PAD], kept_q[THIN + PAD], p[THIN + PAD], q[THIN + PAD];
};

/* The launches of kernels.cu, one after another. */
static void iterate(void *context, uint32_t lane) {
    const struct thin_room *room = context;
    const struct kernel_matrix *a = &room->matrix;
    const struct kernel_thin *t = &room->thin;
    for (uint32_t k = 0; k < t->rank; k++) {
        const uint32_t zero = kernel_votes(kernel_is_zero(t, a, k, lane, n_lanes));
        kernel_begin_row(t, a, k, zero == (1u << n_lanes) - 1, lane, n_lanes);
    }
    tell(0);
    for (uint64_t i = 0; i < a->rows; i++)
        kernel_multiply_row(t, a, i, lane, n_lanes);
    tell(0);
    kernel_orthogonalise(t, a, lane, n_lanes);
    tell(0);
    for (uint64_t j = 0; j < a->columns; j++)
        for (uint32_t k = 0; k < t->rank; k += KERNEL_RANKS) {
            float sums[KERNEL_RANKS] = {0};
            kernel_multiply_back(t, a, k, j, lane, n_lanes, sums);
            for (uint32_t l = 0; l < KERNEL_RANKS && k + l < t->rank; l++) {
                const float sum = kernel_sum_lanes(sums[l]);
                if (lane == 0)
                    t->q[a->second + (k + l) * a->columns + j] = sum;
            }
        }
    tell(0);
    for (uint64_t i = 0; i < a->rows; i++)
        kernel_restore_row(t, a, i, lane, n_lanes);
}

/* The same by the MPI worker. `run` is the gradients, and what comes back. */
static void iterate_by_mpi(const struct low_rank *a, float *run, uint32_t variable) {
    low_rank_draw(a, variable);
    low_rank_run(LOW_RANK_multiply, a, run, NULL, 0);
    low_rank_orthogonalise(a);
    low_rank_run(LOW_RANK_multiply_back, a, NULL, NULL, 0);
    low_rank_run(LOW_RANK_restore, a, NULL, run, 0.5f);
}

static void fill(struct rng *rng, float *values, size_t n) {
    for (size_t i = 0; i < n; i++)
        values[i] = (float)rng_normal(rng);
}

static void assert_near(const float *got, const float *wanted, size_t n) {
    double largest = 0;
    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs((double)wanted[i]));
    for (size_t i = 0; i < n; i++)
        assert_true(fabs((double)got[i] - (double)wanted[i]) <= 2e-3 * largest);
}

static void draw_matrix(struct rng *rng, struct thin_room *room) {
    struct kernel_matrix *a = &room->matrix;
    *a = (struct kernel_matrix){.rows = 1 + rng_below(rng, MOST_SIDE),
                                .columns = 1 + rng_below(rng, MOST_SIDE),
                                .at = rng_below(rng, PAD + 1),
                                .first = rng_below(rng, PAD + 1),
                                .second = rng_below(rng, PAD + 1),
                                .variable = (uint32_t)rng_below(rng, 100)};
    const uint64_t side = a->rows < a->columns ? a->rows : a->columns;
    const uint32_t rank = 1 + (uint32_t)rng_below(rng, side < MOST_RANK ? side : MOST_RANK);
    fill(rng, room->run, SIZE + PAD);
    fill(rng, room->left, SIZE + PAD);
    fill(rng, room->kept_q, THIN + PAD);
    memset(room->kept_q + a->second + (rank - 1) * a->columns, 0, a->columns * sizeof(float)); /* a row to be drawn */
    room->thin = (struct kernel_thin){a,       1,       rank, a->rows, a->columns, room->run, room->left, room->kept_q,
                                      room->p, room->q, 0.5f};
}

/* As nearly as the order of additions allows. Elements of other variables stay. */
static void thin_matrices_are_those_of_the_mpi_worker(void **state) {
    (void)state;
    static struct thin_room room, before;
    static float run[SIZE], left[SIZE], p[THIN], q[THIN];
    static const uint32_t lanes[] = {1, 2, 4, 8};
    struct rng rng;
    rng_split(&rng, test_seed(), 13);
    for (int round = 0; round < 24; round++) {
        n_lanes = lanes[round % 4];
        draw_matrix(&rng, &room);
        before = room;
        const struct kernel_matrix *a = &room.matrix;
        const size_t n = a->rows * a->columns, rank = room.thin.rank;
        const struct low_rank wanted = {a->rows, a->columns, rank, left, p, q};
        memcpy(run, room.run + a->at, n * sizeof *run);
        memcpy(left, room.left + a->at, n * sizeof *left);
        memcpy(q, room.kept_q + a->second, a->columns * rank * sizeof *q);
        by_lanes(iterate, &room);
        iterate_by_mpi(&wanted, run, a->variable);
        assert_near(room.run + a->at, run, n);
        assert_near(room.left + a->at, left, n);
        assert_near(room.p + a->first, p, a->rows * rank);
        assert_near(room.q + a->second, q, a->columns * rank);
        memcpy(before.run + a->at, room.run + a->at, n * sizeof *run);
        memcpy(before.left + a->at, room.left + a->at, n * sizeof *left);
        memcpy(before.p + a->first, room.p + a->first, a->rows * rank * sizeof *p);
        memcpy(before.q + a->second, room.q + a->second, a->columns * rank * sizeof *q);
        assert_memory_equal(&room, &before, sizeof room);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_elements_are_those_of_the_mpi_worker),
        cmocka_unit_test(chunks_are_no_more_than_there_is_room_for),
        cmocka_unit_test(a_place_beyond_the_sum_adds_nothing),
        cmocka_unit_test(thin_matrices_are_those_of_the_mpi_worker),
    };
    return cmocka_run_group_tests_name("kernel_lanes", tests, NULL, NULL);
}
