/* What an example costs the learned networks: forward alone (scoring a candidate), and forward and backward (training),
 * for models of 60 variables and of 391 (bert-large). Medians on one core. */
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "simulator/learned/network.h"
#include "tests/bench/bench.h"

enum { REPEATS = 101, ROWS_PER_VARIABLE = 2 };

static void *need(void *p) {
    if (!p) {
        fprintf(stderr, "bench_networks: out of memory\n");
        exit(1);
    }
    return p;
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

static void bench_network(const struct neural_network *network, const char *name, uint32_t n) {
    struct error err;
    struct arena arena = {0}, scratch = {0};
    struct rng rng;
    double there[REPEATS], both[REPEATS], score;
    rng_seed(&rng, 20260917);
    double *parameters = need(arena_alloc(&arena, network->parameters, sizeof *parameters));
    double *gradient = need(arena_alloc(&arena, network->parameters, sizeof *gradient));
    const struct network_input input = make_input(&arena, n, &rng);
    network->init(parameters, &rng);
    for (int i = 0; i < REPEATS; i++) {
        void *left;
        const double start = clock_now_us();
        bench_check(network->forward(parameters, &input, &scratch, &left, &score, &err), &err);
        there[i] = clock_now_us() - start;
        bench_check(network->backward(parameters, &input, &scratch, left, 1, gradient, &err), &err);
        both[i] = clock_now_us() - start;
    }
    double there_us = bench_median(REPEATS, there), both_us = bench_median(REPEATS, both);
    printf("network %s: %zu parameters, %u variables of %d rows: forward %.0f us, forward and backward %.0f us\n", name,
           network->parameters, n, ROWS_PER_VARIABLE, there_us, both_us);
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
