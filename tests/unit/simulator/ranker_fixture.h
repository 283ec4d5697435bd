/* Made-up strategies whose times are known functions of their features. */
#ifndef TESTS_UNIT_SIMULATOR_RANKER_FIXTURE_H
#define TESTS_UNIT_SIMULATOR_RANKER_FIXTURE_H

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "simulator/learned/pairwise_accuracy.h"
#include "simulator/learned/ranker.h"
#include "tests/support/check.h"

/* The features that matter below; all others are noise. */
enum { FIRST = 3, SECOND = 7 };

static const double TIMELINE_US = 20000;

struct made {
    size_t n;
    struct features *features;
    struct ranker_example *examples;
};

static inline void make_features(struct features *f, struct rng *rng) {
    enum { ROWS = 5 };
    *f = (struct features){.n_variables = 3, .n_shards = ROWS, .n_edges = 2, .partitions = 3 + rng_below(rng, 8)};
    f->shards = arena_alloc(&f->arena, ROWS * FEATURE_SHARD_COUNT, sizeof *f->shards);
    f->variable = arena_alloc(&f->arena, ROWS, sizeof *f->variable);
    f->weight = arena_alloc(&f->arena, ROWS, sizeof *f->weight);
    f->edges = arena_alloc(&f->arena, 2, sizeof *f->edges);
    assert_true(f->shards && f->variable && f->weight && f->edges);
    for (size_t k = 0; k < FEATURE_GLOBAL_COUNT; k++)
        f->global[k] = 10 + 3 * rng_normal(rng);
    for (size_t k = 0; k < ROWS * FEATURE_SHARD_COUNT; k++)
        f->shards[k] = rng_normal(rng);
    for (uint32_t s = 0; s < ROWS; s++) {
        f->variable[s] = s * 3 / ROWS;
        f->weight[s] = 1 + (double)rng_below(rng, 3);
    }
    f->edges[0] = (struct feature_edge){0, 1};
    f->edges[1] = (struct feature_edge){1, 2};
    f->timeline_us = TIMELINE_US * exp(0.3 * rng_normal(rng));
}

/* A feature in deviations. */
static inline double feature(const struct features *f, int k) {
    return (f->global[k] - 10) / 3;
}

/* n strategies in `domains` domains; times are set by the test. */
static inline struct made make_examples(size_t n, uint32_t domains, uint64_t seed) {
    struct made made = {n, calloc(n, sizeof *made.features), calloc(n, sizeof *made.examples)};
    struct rng rng;
    assert_true(made.features && made.examples);
    rng_seed(&rng, seed);
    for (size_t i = 0; i < n; i++) {
        make_features(&made.features[i], &rng);
        made.examples[i] = (struct ranker_example){&made.features[i], 1, (uint32_t)(7 + i % domains)};
    }
    return made;
}

static inline void free_examples(struct made *made) {
    for (size_t i = 0; i < made->n; i++)
        arena_release(&made->features[i].arena);
    free(made->features);
    free(made->examples);
    *made = (struct made){0};
}

/* Time as a function of the features alone; domains differ by a factor of 10. */
static inline void plant_order(struct made *made) {
    for (size_t i = 0; i < made->n; i++) {
        const struct features *f = &made->features[i];
        const double log_us = 0.5 * feature(f, FIRST) - 0.3 * feature(f, SECOND);
        made->examples[i].us = 1e4 * exp(log_us) * (made->examples[i].domain % 2 ? 10 : 1);
    }
}

/* What the timeline gets wrong: a factor, and two terms. */
static inline double planted_correction(const struct features *f) {
    return 0.4 + 0.15 * feature(f, FIRST) - 0.1 * feature(f, SECOND);
}

static inline void plant_correction(struct made *made) {
    for (size_t i = 0; i < made->n; i++)
        made->examples[i].us = made->features[i].timeline_us * exp(planted_correction(&made->features[i]));
}

static inline double accuracy_on(const struct ranker *ranker, const struct made *made) {
    struct error err;
    double *score = calloc(made->n, sizeof *score), *us = calloc(made->n, sizeof *us);
    uint32_t *domain = calloc(made->n, sizeof *domain);
    assert_true(score && us && domain);
    for (size_t i = 0; i < made->n; i++) {
        assert_ok(ranker_score(ranker, &made->features[i], &score[i], &err));
        us[i] = made->examples[i].us;
        domain[i] = made->examples[i].domain;
    }
    const double accuracy = pairwise_accuracy(made->n, us, score, domain);
    free(score);
    free(us);
    free(domain);
    return accuracy;
}

#endif
