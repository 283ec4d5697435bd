/* Random inputs of the networks, and inputs made by hand. Numbers are as after normalisation. */
#ifndef TESTS_UNIT_SIMULATOR_EXAMPLES_H
#define TESTS_UNIT_SIMULATOR_EXAMPLES_H

#include <string.h>

#include "simulator/learned/network.h"
#include "tests/unit/simulator/gradient.h"

enum { EXAMPLE_VARIABLES = 12, EXAMPLE_ROWS = 36, EXAMPLE_EDGES = 66 };

struct example {
    struct network_input input;
    double global[FEATURE_GLOBAL_COUNT];
    double shards[EXAMPLE_ROWS * FEATURE_SHARD_COUNT];
    uint32_t variable[EXAMPLE_ROWS];
    double weight[EXAMPLE_ROWS];
    struct feature_edge edges[EXAMPLE_EDGES];
};

/* Points the input at the example's own arrays; call it again where the struct was copied. */
static inline void example_finish(struct example *e, uint32_t n_variables, size_t n_shards, size_t n_edges) {
    e->input = (struct network_input){.global = e->global,
                                      .n_variables = n_variables,
                                      .n_shards = n_shards,
                                      .shards = e->shards,
                                      .variable = e->variable,
                                      .weight = e->weight,
                                      .n_edges = n_edges,
                                      .edges = e->edges};
}

/* n variables of one row each, all zeros, in a chain. */
static inline void example_chain(struct example *e, uint32_t n) {
    *e = (struct example){0};
    for (uint32_t i = 0; i < n; i++) {
        e->variable[i] = i;
        e->weight[i] = 1;
        if (i > 0)
            e->edges[i - 1] = (struct feature_edge){i - 1, i};
    }
    example_finish(e, n, n, n - 1);
}

/* One to three rows a variable, each of weight 1 to 4; each pair of variables has an edge with this chance. */
static inline void example_random(struct rng *rng, struct example *e, uint32_t n_variables, double chance) {
    size_t n_shards = 0, n_edges = 0;
    random_numbers(rng, FEATURE_GLOBAL_COUNT, e->global, 1);
    for (uint32_t i = 0; i < n_variables; i++) {
        const uint64_t rows = n_variables == 1 ? 1 : 1 + rng_below(rng, 3);
        for (uint64_t k = 0; k < rows; k++) {
            e->variable[n_shards] = i;
            e->weight[n_shards++] = 1 + (double)rng_below(rng, 4);
        }
    }
    random_numbers(rng, n_shards * FEATURE_SHARD_COUNT, e->shards, 1);
    for (uint32_t i = 0; i < n_variables; i++)
        for (uint32_t j = i + 1; j < n_variables; j++)
            if (rng_uniform(rng) < chance)
                e->edges[n_edges++] = (struct feature_edge){i, j};
    example_finish(e, n_variables, n_shards, n_edges);
}

#endif
