/* Curves come from operations between barriers, small ones in rows, in two passes over all points, so that what
 * disturbs the machine for a while disturbs one pass. Points on which the passes differ, or that are slower than larger
 * ones, are measured again (strategy/cost/points.h). In the time that is left, sizes are added where a curve bends,
 * since a straight line may be far off there. The runtime costs come from real runs of plans without compute:
 * message_us is the slope of an iteration's time over the number of small concurrent messages, way_us the same of
 * messages with an encoder, coordination_us what each message of a stop-and-wait plan takes longer under priority than
 * under fifo; each is the median of up to three rounds. Rates are measured at the start, after the small plans and at
 * the end, a few seconds beyond the time limit; the median counts. push = T(bytes there, 4 back) less half of T(4, 4),
 * and pull the other way round, so that no clock of another machine is read. */
#include "trial-runner/worker/measure.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/statistics.h"
#include "strategy/cost/points.h"
#include "trial-runner/worker/backend.h"
#include "trial-runner/worker/bench_plan.h"
#include "trial-runner/worker/interference.h"
#include "trial-runner/worker/operations.h"
#include "trial-runner/worker/report.h"

enum { FIRST_BYTES = 1024, GROWTH = 4, MAX_REPEATS = POINT_REPEATS, SMALL_PLAN = 8, LARGE_PLAN = 72, WORD = 4 };
enum { MAX_POINTS = 512, BEND_ROUNDS = 2, REDO_ROUNDS = 3, PLAN_ROUNDS = 3, RATE_ROUNDS = 3 };

static const double INTERFERENCE_PART = 0.25; /* of the time limit, at most */
static const double PLANS_PART = 0.1;         /* of the time limit: later no further round of small plans begins */
static const double FIRST_PASS = 0.55;        /* of what is left then, at most */
static const double BENT = 0.05;              /* a straight line that may be off by more gets a size in its middle */

/* All-reduces and their halves that take less come in rows, as in training. Alone they wait for ranks that leave the
 * barrier late, and begin with what NICs and sockets have room for: in lab-4x1g a ring of 4 KiB took 50% longer alone
 * than in a row, one of 64 KiB 12% less, one of 1 MiB the same. */
enum { ROW = 8, ROWS = 9 };
static const double ROW_US = 6000;

static const double LEAST_US = 0.001; /* of a cost that does not show: 0 would say that nobody measured it */

enum { RATE_copy, RATE_sum, RATE_encode, RATE_int8, RATE_topk, RATE_powersgd, RATES };

struct bench {
    const struct cluster *cluster;
    const struct measure_options *options;
    struct world world;
    struct operations *operations;
    uint32_t peer;        /* the device that plays the server for device 0 */
    double end_us;        /* of the time limit, or of a part of it, by device 0's clock */
    struct point *points; /* MAX_POINTS */
    int n_points, n_redone;
    double word_us; /* there and back */
    double rate_us[RATES][RATE_ROUNDS];
    size_t n_rate_rounds;
    struct runtime runtime;
};

/* One operation of every rank, which takes part in it or returns at once. */
typedef void operation_function(struct bench *bench, uint64_t there, uint64_t back, enum algorithm algorithm);

/* A repeat is `row` operations in a row. slowest[i] is the slowest rank's time of repeat i, over `row`. All ranks get
 * the same. */
static void time_rows(struct bench *b, operation_function *operation, uint64_t there, uint64_t back,
                      enum algorithm algorithm, int repeats, int row, double slowest[MAX_REPEATS]) {
    double mine[MAX_REPEATS];
    for (int i = 0; i < repeats; i++) {
        MPI_Barrier(b->world.workers);
        double start = clock_now_us();
        for (int k = 0; k < row; k++)
            operation(b, there, back, algorithm);
        mine[i] = (clock_now_us() - start) / row;
    }
    MPI_Allreduce(mine, slowest, repeats, MPI_DOUBLE, MPI_MAX, b->world.workers);
}

static double time_operation(struct bench *b, operation_function *operation, uint64_t there, uint64_t back,
                             enum algorithm algorithm, int repeats) {
    double slowest[MAX_REPEATS];
    time_rows(b, operation, there, back, algorithm, repeats, 1, slowest);
    return median_of((size_t)repeats, slowest);
}

static void all_reduce(struct bench *b, uint64_t bytes, uint64_t unused, enum algorithm algorithm) {
    (void)unused;
    operations_all_reduce(b->operations, bytes, algorithm);
}

static void reduce_scatter(struct bench *b, uint64_t bytes, uint64_t unused, enum algorithm unused_too) {
    (void)unused, (void)unused_too;
    operations_half(b->operations, bytes, HALF_scatter);
}

static void all_gather(struct bench *b, uint64_t bytes, uint64_t unused, enum algorithm unused_too) {
    (void)unused, (void)unused_too;
    operations_half(b->operations, bytes, HALF_gather);
}

static void push_and_pull(struct bench *b, uint64_t there, uint64_t back, enum algorithm unused) {
    (void)unused;
    operations_push_and_pull(b->operations, there, back);
}

static cJSON *point_event(const struct bench *b, const char *event, const struct point *point, double time_us) {
    cJSON *line = report_event(event);
    cJSON_AddStringToObject(line, "operation", operation_name(point->operation));
    if (point->operation == OPERATION_all_reduce)
        cJSON_AddStringToObject(line, "algorithm", algorithm_name(point->algorithm));
    cJSON_AddNumberToObject(line, "devices", operation_is_one_way(point->operation) ? 2 : b->cluster->n_devices);
    cJSON_AddNumberToObject(line, "bytes", (double)point->bytes);
    cJSON_AddNumberToObject(line, "time_us", time_us);
    return line;
}

/* Whether something that takes about `us` may still start. Device 0 decides for all. */
static bool time_allows(const struct bench *b, double us) {
    int allowed = clock_now_us() + us < b->end_us;
    MPI_Bcast(&allowed, 1, MPI_INT, 0, b->world.workers);
    return allowed != 0;
}

static int repeats_for(double last_us) {
    return last_us < 3e3 ? MAX_REPEATS : last_us < 20e3 ? 9 : last_us < 100e3 ? 5 : 3;
}

/* ---- points ---- */

static void add_point(struct bench *b, enum operation operation, enum algorithm algorithm, uint64_t bytes) {
    if (b->n_points < MAX_POINTS)
        b->points[b->n_points++] = (struct point){.operation = operation, .algorithm = algorithm, .bytes = bytes};
}

static void add_size(struct bench *b, uint64_t bytes) {
    if (cluster_node_of_device(b->cluster, b->peer) != cluster_node_of_device(b->cluster, 0)) {
        add_point(b, OPERATION_push, ALGORITHM_auto, bytes);
        add_point(b, OPERATION_pull, ALGORITHM_auto, bytes);
    }
    for (int k = 0; k < operations_kind.n_algorithms; k++)
        add_point(b, OPERATION_all_reduce, operations_kind.algorithms[k], bytes);
    if (operations_kind.halves) {
        add_point(b, OPERATION_reduce_scatter, ALGORITHM_auto, bytes);
        add_point(b, OPERATION_all_gather, ALGORITHM_auto, bytes);
    }
}

/* All sizes of one operation after the other would meet different hours of a machine: so size by size. */
static void list_points(struct bench *b) {
    for (uint64_t bytes = FIRST_BYTES; bytes <= b->options->max_bytes; bytes *= GROWTH)
        add_size(b, bytes);
}

static const struct point *next_smaller(const struct bench *b, const struct point *point) {
    return point_next_smaller((size_t)b->n_points, b->points, point);
}

static double last_median_us(const struct point *point) {
    return point->n_passes ? point->passes[point->n_passes - 1].median_us : 0;
}

/* What one repeat may take; 0 where nothing is known. */
static double expected_us(const struct point *point, const struct point *smaller) {
    const double before = last_median_us(point);
    if (before > 0 || !smaller)
        return before;
    return (double)point->bytes / (double)smaller->bytes * last_median_us(smaller);
}

static void run_point(struct bench *b, const struct point *point, int repeats, int row, double us[MAX_REPEATS]) {
    if (point->operation == OPERATION_all_reduce)
        time_rows(b, all_reduce, point->bytes, 0, point->algorithm, repeats, row, us);
    else if (point->operation == OPERATION_reduce_scatter)
        time_rows(b, reduce_scatter, point->bytes, 0, ALGORITHM_auto, repeats, row, us);
    else if (point->operation == OPERATION_all_gather)
        time_rows(b, all_gather, point->bytes, 0, ALGORITHM_auto, repeats, row, us);
    else if (point->operation == OPERATION_push)
        time_rows(b, push_and_pull, point->bytes, WORD, ALGORITHM_auto, repeats, 1, us);
    else
        time_rows(b, push_and_pull, WORD, point->bytes, ALGORITHM_auto, repeats, 1, us);
}

/* False when the time does not allow it. A larger point of a curve is not measured where a smaller one was not. */
static bool measure_point(struct bench *b, struct point *point) {
    const struct point *smaller = next_smaller(b, point);
    double expected = expected_us(point, smaller), us[MAX_REPEATS];
    const int row = expected < ROW_US && !operation_is_one_way(point->operation) ? ROW : 1;
    const int repeats = row > 1 ? ROWS : repeats_for(expected);
    if ((smaller && smaller->n_passes == 0) || !time_allows(b, expected * repeats * row))
        return false;
    run_point(b, point, repeats, row, us);
    point_add(point, repeats, us);
    if (b->world.device == 0)
        report_send(point_event(b, "point", point, last_median_us(point)));
    return true;
}

/* A further pass over the points from `first` on. */
static void measure_again(struct bench *b, int first) {
    for (int i = first; i < b->n_points; i++)
        if (b->points[i].n_passes > 0)
            measure_point(b, &b->points[i]);
}

static bool is_doubtful(const struct bench *b, const struct point *point) {
    const struct point *larger = point_next_larger((size_t)b->n_points, b->points, point);
    const struct point *smaller = next_smaller(b, point);
    if (point->n_passes < 2 || point->n_passes == POINT_PASSES)
        return false;
    return !point_settled(point) || (larger && larger->n_passes && point_falls(point, larger)) ||
           (smaller && smaller->n_passes && point_falls(smaller, point));
}

static void redo_doubtful(struct bench *b) {
    for (int round = 0; round < REDO_ROUNDS; round++)
        for (int i = 0; i < b->n_points; i++)
            if (is_doubtful(b, &b->points[i]))
                b->n_redone += measure_point(b, &b->points[i]);
}

/* Add the sizes in the middle of lines that are not straight enough, by what device 0 finds. All curves get the sizes
 * that one of them needs: what one lacks, it would borrow from others (strategy/cost/curve.h), which do not bend where
 * it does. */
static bool add_middles(struct bench *b) {
    uint64_t middles[MAX_POINTS];
    int n = 0;
    for (int i = 0; i < b->n_points; i++) {
        const uint64_t bytes = point_middle((size_t)b->n_points, b->points, &b->points[i], BENT, FIRST_BYTES);
        bool listed = bytes == 0;
        for (int k = 0; k < n && !listed; k++)
            listed = middles[k] == bytes;
        if (!listed)
            middles[n++] = bytes;
    }
    MPI_Bcast(&n, 1, MPI_INT, 0, b->world.workers);
    MPI_Bcast(middles, n, MPI_UINT64_T, 0, b->world.workers);
    for (int k = 0; k < n; k++)
        add_size(b, middles[k]);
    return n > 0;
}

/* Of the points from `first` on keep those that are settled: others say less than the line that they lie on. */
static void keep_settled(struct bench *b, int first) {
    int n = first;
    for (int i = first; i < b->n_points; i++)
        if (point_settled(&b->points[i]))
            b->points[n++] = b->points[i];
    b->n_points = n;
}

static void measure_bent(struct bench *b) {
    for (int round = 0; round < BEND_ROUNDS; round++) {
        const int n = b->n_points;
        if (!add_middles(b))
            return;
        for (int i = n; i < b->n_points; i++)
            measure_point(b, &b->points[i]);
        measure_again(b, n);
        redo_doubtful(b);
        keep_settled(b, n);
    }
}

/* A push is the time there and back less that of a word back. On a busy machine the difference of two medians may be
 * less than a word's own time. */
static double one_way_us(const struct bench *b, const struct point *point, double us) {
    return operation_is_one_way(point->operation) ? fmax(us - b->word_us / 2, b->word_us / 2) : us;
}

static void report_points(const struct bench *b) {
    for (int i = 0; i < b->n_points && b->world.device == 0; i++) {
        const struct point *point = &b->points[i];
        if (point->n_passes == 0)
            continue;
        const struct summary s = point_summary(point);
        cJSON *line = point_event(b, "measurement", point, one_way_us(b, point, s.median_us));
        cJSON_AddNumberToObject(line, "low_us", one_way_us(b, point, s.low_us));
        cJSON_AddNumberToObject(line, "high_us", one_way_us(b, point, s.high_us));
        report_send(line);
    }
}

/* How well the passes agree, for people. */
static void report_agreement(const struct bench *b) {
    double differences[MAX_POINTS];
    int n = 0, unsettled = 0;
    for (int i = 0; i < b->n_points; i++) {
        if (b->points[i].n_passes < 2)
            continue;
        differences[n++] = point_difference(&b->points[i]) - 1;
        unsettled += !point_settled(&b->points[i]);
    }
    if (b->world.device != 0 || n == 0)
        return;
    cJSON *line = report_event("agreement");
    cJSON_AddNumberToObject(line, "points", n);
    cJSON_AddNumberToObject(line, "redone", b->n_redone);
    cJSON_AddNumberToObject(line, "unsettled", unsettled);
    cJSON_AddNumberToObject(line, "difference", median_of((size_t)n, differences));
    report_send(line);
}

/* The rate of the way from node a to node b, as described. */
static double described_gbit(const struct cluster *cluster, uint32_t a, uint32_t b) {
    double gbit = fmin(cluster->nodes[a].nic_gbit_per_s, cluster->nodes[b].nic_gbit_per_s);
    for (uint32_t i = 0; i < cluster->n_links; i++)
        if (cluster->links[i].from == a && cluster->links[i].to == b)
            gbit = fmin(gbit, cluster->links[i].gbit_per_s);
    return gbit;
}

/* Note which part of the described rate a push reaches. The rate of a push is the difference of the two largest sizes
 * over the difference of their times. On a busy machine it may come out as any number; one that no description may have
 * is ignored. */
static void note_goodput(struct bench *b, uint64_t bytes, double us, uint64_t less_bytes, double less_us) {
    static const double least = 0.001; /* strategy/cluster.c */
    double gbit =
        described_gbit(b->cluster, cluster_node_of_device(b->cluster, 0), cluster_node_of_device(b->cluster, b->peer));
    double bytes_per_us = (double)(bytes - less_bytes) / (us - less_us);
    if (us > less_us && gbit > 0 && bytes_per_us / (gbit * 125) >= least)
        b->runtime.goodput = fmin(0.999, bytes_per_us / (gbit * 125)); /* 1 would say that nobody measured it */
}

/* From the two largest pushes that were measured. */
static void find_goodput(struct bench *b) {
    const struct point *last = NULL;
    for (int i = 0; i < b->n_points; i++) {
        const struct point *p = &b->points[i];
        if (p->operation == OPERATION_push && p->n_passes > 0 && (!last || p->bytes > last->bytes))
            last = p;
    }
    const struct point *before = last ? next_smaller(b, last) : NULL;
    if (before && before->n_passes > 0)
        note_goodput(b, last->bytes, point_summary(last).median_us, before->bytes, point_summary(before).median_us);
}

/* Connections are made on first use. */
static void connect_all(struct bench *b) {
    for (int k = 0; k < operations_kind.n_algorithms; k++)
        all_reduce(b, FIRST_BYTES, 0, operations_kind.algorithms[k]);
    if (operations_kind.halves)
        all_gather(b, FIRST_BYTES, 0, ALGORITHM_auto);
    push_and_pull(b, FIRST_BYTES, FIRST_BYTES, ALGORITHM_auto);
}

static void measure_points(struct bench *b) {
    const double end_us = b->end_us;
    connect_all(b);
    b->word_us = time_operation(b, push_and_pull, WORD, WORD, ALGORITHM_auto, MAX_REPEATS);
    list_points(b);
    b->end_us -= (1 - FIRST_PASS) * (end_us - clock_now_us());
    for (int i = 0; i < b->n_points; i++)
        measure_point(b, &b->points[i]);
    b->end_us = end_us;
    b->word_us = fmin(b->word_us, time_operation(b, push_and_pull, WORD, WORD, ALGORITHM_auto, MAX_REPEATS));
    measure_again(b, 0);
    redo_doubtful(b);
    measure_bent(b);
    b->runtime.push_us = b->word_us / 2;
    find_goodput(b);
    report_points(b);
    report_agreement(b);
}

static void copy(struct bench *b, uint64_t bytes, uint64_t unused, enum algorithm unused_too) {
    (void)unused, (void)unused_too;
    operations_copy(b->operations, bytes);
}

static void sum(struct bench *b, uint64_t bytes, uint64_t unused, enum algorithm unused_too) {
    (void)unused, (void)unused_too;
    operations_sum(b->operations, bytes);
}

static void encode(struct bench *b, uint64_t bytes, uint64_t unused, enum algorithm unused_too) {
    (void)unused, (void)unused_too;
    operations_encode(b->operations, bytes);
}

static void encode_blocks(struct bench *b, uint64_t bytes, uint64_t unused, enum algorithm unused_too) {
    (void)unused, (void)unused_too;
    operations_encode_blocks(b->operations, bytes);
}

static void take_largest(struct bench *b, uint64_t bytes, uint64_t unused, enum algorithm unused_too) {
    (void)unused, (void)unused_too;
    operations_take_largest(b->operations, bytes);
}

static void make_thin(struct bench *b, uint64_t bytes, uint64_t unused, enum algorithm unused_too) {
    (void)unused, (void)unused_too;
    operations_make_thin(b->operations, bytes);
}

static const struct rate {
    operation_function *operation;
    enum encoding encoding; /* that the program must know */
    double passes;          /* over the bytes */
} rates[RATES] = {
    [RATE_copy] = {copy, ENCODING_none, 1},         [RATE_sum] = {sum, ENCODING_none, 1},
    [RATE_encode] = {encode, ENCODING_f16, 2},      [RATE_int8] = {encode_blocks, ENCODING_int8, 2},
    [RATE_topk] = {take_largest, ENCODING_topk, 1}, [RATE_powersgd] = {make_thin, ENCODING_powersgd, 1},
};

static bool encodes_as(enum encoding encoding) {
    return encoding == ENCODING_none || operations_kind.encodings >> encoding & 1;
}

/* Of all ranks at once, as in a run, since they share what the machine has. One repeat says how many the time is worth:
 * encoders take long on a slow processor. */
static void time_rates(struct bench *b) {
    const uint64_t bytes = operations_kind.rate_bytes;
    assert(b->n_rate_rounds < RATE_ROUNDS);
    for (int i = 0; i < RATES; i++) {
        if (!encodes_as(rates[i].encoding))
            continue;
        const double once_us = time_operation(b, rates[i].operation, bytes, 0, ALGORITHM_auto, 1);
        b->rate_us[i][b->n_rate_rounds] =
            time_operation(b, rates[i].operation, bytes, 0, ALGORITHM_auto, repeats_for(once_us));
    }
    b->n_rate_rounds++;
}

/* 0 where the program does not encode so. */
static double rate_of(struct bench *b, int i) {
    const double bytes = rates[i].passes * (double)operations_kind.rate_bytes;
    return encodes_as(rates[i].encoding) ? bytes / median_of(b->n_rate_rounds, b->rate_us[i]) / 1e3 : 0;
}

static void find_rates(struct bench *b) {
    b->runtime.copy_gbyte_per_s = rate_of(b, RATE_copy);
    b->runtime.sum_gbyte_per_s = rate_of(b, RATE_sum);
    b->runtime.encode_gbyte_per_s = rate_of(b, RATE_encode);
    b->runtime.int8_gbyte_per_s = rate_of(b, RATE_int8);
    b->runtime.topk_gbyte_per_s = rate_of(b, RATE_topk);
    b->runtime.powersgd_gbyte_per_s = rate_of(b, RATE_powersgd);
}

static struct bench_plan_shape small_plan(uint32_t n, enum encoding encoding, enum policy policy,
                                          uint64_t credit_bytes) {
    return (struct bench_plan_shape){.messages = n,
                                     .bytes = FIRST_BYTES,
                                     .algorithm = encoding ? ALGORITHM_auto : operations_kind.small,
                                     .encoding = encoding,
                                     .policy = policy,
                                     .credit_bytes = credit_bytes};
}

/* What one more small message takes where there are many at once. Of the encoders topk is timed, since its message has
 * one way. */
static enum status measure_messages(struct bench *b, struct error *err) {
    enum { ITERATIONS = 15 };
    enum { FEW, MANY, FIFO, PRIORITY, FEW_WAYS, MANY_WAYS, PLANS };
    const struct bench_plan_shape plans[PLANS] = {
        [FEW] = small_plan(SMALL_PLAN, ENCODING_none, POLICY_fifo, CREDIT_UNLIMITED),
        [MANY] = small_plan(LARGE_PLAN, ENCODING_none, POLICY_fifo, CREDIT_UNLIMITED),
        [FIFO] = small_plan(LARGE_PLAN, ENCODING_none, POLICY_fifo, 0),
        [PRIORITY] = small_plan(LARGE_PLAN, ENCODING_none, POLICY_priority, 0),
        [FEW_WAYS] = small_plan(SMALL_PLAN, ENCODING_topk, POLICY_fifo, CREDIT_UNLIMITED),
        [MANY_WAYS] = small_plan(LARGE_PLAN, ENCODING_topk, POLICY_fifo, CREDIT_UNLIMITED),
    };
    const bool encodes = encodes_as(ENCODING_topk);
    const int n_plans = encodes ? PLANS : FEW_WAYS;
    const double end_us = b->end_us;
    double us[PLANS][PLAN_ROUNDS];
    size_t rounds = 0;
    b->end_us -= (1 - PLANS_PART) * b->options->time_limit_s * 1e6;
    do {
        for (int i = 0; i < n_plans; i++) {
            enum status status = bench_plan_time(&b->world, &plans[i], ITERATIONS, &us[i][rounds], NULL, err);
            if (status)
                return status;
        }
    } while (++rounds < PLAN_ROUNDS && time_allows(b, 0));
    b->end_us = end_us;
    for (int i = 0; i < n_plans; i++)
        us[i][0] = median_of(rounds, us[i]);
    b->runtime.message_us = fmax(LEAST_US, (us[MANY][0] - us[FEW][0]) / (LARGE_PLAN - SMALL_PLAN));
    b->runtime.coordination_us = fmax(LEAST_US, (us[PRIORITY][0] - us[FIFO][0]) / LARGE_PLAN);
    if (encodes)
        b->runtime.way_us = fmax(LEAST_US, (us[MANY_WAYS][0] - us[FEW_WAYS][0]) / (LARGE_PLAN - SMALL_PLAN));
    return ST_OK;
}

static void report_runtime(const struct bench *b) {
    if (b->world.device != 0)
        return;
    const struct runtime *r = &b->runtime;
    const double eager_bytes = operations_eager_bytes();
    cJSON *line = report_event("runtime");
    cJSON_AddNumberToObject(line, "message_us", r->message_us);
    if (r->way_us > 0)
        cJSON_AddNumberToObject(line, "way_us", r->way_us);
    cJSON_AddNumberToObject(line, "coordination_us", r->coordination_us);
    cJSON_AddNumberToObject(line, "push_us", r->push_us);
    cJSON_AddNumberToObject(line, "copy_gbyte_per_s", r->copy_gbyte_per_s);
    cJSON_AddNumberToObject(line, "sum_gbyte_per_s", r->sum_gbyte_per_s);
    if (r->encode_gbyte_per_s > 0)
        cJSON_AddNumberToObject(line, "encode_gbyte_per_s", r->encode_gbyte_per_s);
    if (r->int8_gbyte_per_s > 0)
        cJSON_AddNumberToObject(line, "int8_gbyte_per_s", r->int8_gbyte_per_s);
    if (r->topk_gbyte_per_s > 0)
        cJSON_AddNumberToObject(line, "topk_gbyte_per_s", r->topk_gbyte_per_s);
    if (r->powersgd_gbyte_per_s > 0)
        cJSON_AddNumberToObject(line, "powersgd_gbyte_per_s", r->powersgd_gbyte_per_s);
    if (r->goodput > 0)
        cJSON_AddNumberToObject(line, "goodput", r->goodput);
    if (eager_bytes > 0)
        cJSON_AddNumberToObject(line, "eager_bytes", eager_bytes);
    report_send(line);
}

/* The ring of so many bytes, as measured. */
static struct interference_load ring_of(const struct bench *b, uint64_t bytes) {
    const struct point ring = {.operation = OPERATION_all_reduce, .algorithm = ALGORITHM_ring, .bytes = bytes};
    for (const struct point *p = b->points; p < b->points + b->n_points; p++)
        if (point_same_curve(p, &ring) && p->bytes == bytes && p->n_passes > 0)
            return (struct interference_load){bytes, point_summary(p).median_us};
    return (struct interference_load){0, 0};
}

static enum status measure_interference(const struct bench *b, struct error *err) {
    struct interference_options options = {.limit_us = INTERFERENCE_PART * b->options->time_limit_s * 1e6};
    struct interference_load loads[MAX_POINTS];
    size_t n = 0;
    for (uint64_t bytes = FIRST_BYTES; bytes <= b->options->max_bytes && n < MAX_POINTS; bytes *= GROWTH)
        loads[n++] = ring_of(b, bytes);
    if (n > 0) {
        options.small = loads[0];
        options.large = interference_large(n, loads, options.limit_us);
    }
    MPI_Bcast(&options, sizeof options, MPI_BYTE, 0, b->world.workers);
    return interference_measure(&b->world, &options, err);
}

static enum status measure_all(struct bench *b, struct error *err) {
    time_rates(b);
    if (b->cluster->n_devices > 1) {
        enum status status = measure_messages(b, err);
        if (status)
            return status;
        time_rates(b);
        b->end_us -= INTERFERENCE_PART * b->options->time_limit_s * 1e6;
        measure_points(b);
        status = measure_interference(b, err);
        if (status)
            return status;
        time_rates(b);
    }
    find_rates(b);
    report_runtime(b);
    if (b->world.device == 0)
        report_send(report_event("done"));
    return ST_OK;
}

/* Any plan of all-reduces alone gives the ranks that the bench needs: one a device. */
static enum status bench_world(struct bench *b, struct error *err) {
    const struct bench_plan_shape shape = small_plan(1, ENCODING_none, POLICY_fifo, 0);
    struct bench_plan plan;
    enum status status = bench_plan_init(&plan, b->cluster, &shape, err);
    if (status)
        return status;
    status = world_init(&b->world, &plan.plan, err);
    bench_plan_release(&plan);
    return status;
}

enum status measure_cluster(const struct cluster *cluster, const struct measure_options *options,
                            void (*ready)(const struct world *world), struct error *err) {
    struct bench b = {.cluster = cluster, .options = options, .peer = cluster->n_devices - 1};
    const uint64_t rate_bytes = operations_kind.rate_bytes;
    b.points = calloc(MAX_POINTS, sizeof *b.points);
    enum status status = b.points ? bench_world(&b, err) : error_no_memory(err);
    if (status)
        goto release_points;
    status = backend_join(&b.world, err);
    if (status)
        goto release_world;
    b.operations = operations_new(&b.world, b.peer, options->max_bytes > rate_bytes ? options->max_bytes : rate_bytes);
    b.end_us = clock_now_us() + options->time_limit_s * 1e6;
    if (b.world.device == 0)
        ready(&b.world);
    status = measure_all(&b, err);
    operations_free(b.operations);
    backend_leave(&b.world);
release_world:
    world_release(&b.world);
release_points:
    free(b.points);
    return status;
}
