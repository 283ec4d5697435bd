/* What an example costs the learned networks: forward alone (scoring a candidate), and forward and backward (training),
 * for models of 60 variables and of 391 (bert-large). Medians on one core. */
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "simulator/learned/network.h"

enum { REPEATS = 101, ROWS_PER_VARIABLE = 2 };

/* bench.sh wraps the allocator for another benchmark. */
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

void *__wrap_malloc(size_t n) {
    return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size) {
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n) {
    return __real_realloc(p, n);
}

static void *need(void *p) {
    if (!p) {
        fprintf(stderr, "bench_networks: out of memory\n");
        exit(1);
    }
    return p;
}

static void check(enum status status, const struct error *err) {
    if (status == ST_OK)
        return;
    fprintf(stderr, "bench_networks: %s\n", err->message);
    exit(1);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double *random_numbers(struct arena *arena, size_t n, struct rng *rng) {
    double *x = need(arena_alloc(arena, n, sizeof *x));
    for (size_t i = 0; i < n; i++)
        x[i] = rng_normal(rng);
    return x;
}

/* Variables in a chain, each with the same number of rows. */
static struct network_input make_input(struct arena *arena, uint32_t n, struct rng *rng) {
    const size_t rows = (size_t)n * ROWS_PER_VARIABLE;
    uint32_t *variable = need(arena_alloc(arena, rows, sizeof *variable));
    double *weight = need(arena_alloc(arena, rows, sizeof *weight));
    struct feature_edge *edges = need(arena_alloc(arena, n - 1, sizeof *edges));
    for (size_t i = 0; i < rows; i++) {
        variable[i] = (uint32_t)(i / ROWS_PER_VARIABLE);
        weight[i] = 1;
    }
    for (uint32_t i = 0; i + 1 < n; i++)
        edges[i] = (struct feature_edge){i, i + 1};
    return (struct network_input){.global = random_numbers(arena, FEATURE_GLOBAL_COUNT, rng),
                                  .n_variables = n,
                                  .n_shards = rows,
                                  .shards = random_numbers(arena, rows * FEATURE_SHARD_COUNT, rng),
                                  .variable = variable,
                                  .weight = weight,
                                  .n_edges = n - 1,
                                  .edges = edges};
}

static void bench_network(const struct network_class *network, const char *name, uint32_t n) {
    struct error err;
    struct arena arena = {0}, scratch = {0};
    struct rng rng;
    double there[REPEATS], both[REPEATS], score, hidden[RANKER_HIDDEN];
    rng_seed(&rng, 20260917);
    double *parameters = need(arena_alloc(&arena, network->parameters, sizeof *parameters));
    double *gradient = need(arena_alloc(&arena, network->parameters, sizeof *gradient));
    const struct network_input input = make_input(&arena, n, &rng);
    network->init(parameters, &rng);
    for (int i = 0; i < REPEATS; i++) {
        void *left;
        const double start = clock_now_us();
        check(network->forward(parameters, &input, &scratch, &left, &score, hidden, &err), &err);
        there[i] = clock_now_us() - start;
        check(network->backward(parameters, &input, &scratch, left, 1, gradient, &err), &err);
        both[i] = clock_now_us() - start;
    }
    qsort(there, REPEATS, sizeof *there, by_value);
    qsort(both, REPEATS, sizeof *both, by_value);
    printf("network %s: %zu parameters, %u variables of %d rows: forward %.0f us, forward and backward %.0f us\n", name,
           network->parameters, n, ROWS_PER_VARIABLE, there[REPEATS / 2], both[REPEATS / 2]);
    arena_release(&scratch);
    arena_release(&arena);
}

int main(void) {
    openblas_set_num_threads(1);
    bench_network(&network_rnn, "rnn", 60);
    bench_network(&network_rnn, "rnn", 391);
    bench_network(&network_gat, "gat", 60);
    bench_network(&network_gat, "gat", 391);
    return 0;
}
