/* Searching for the best of what was measured: a domain of the corpus as a game.
 *
 * A pool is the recorded strategies of one domain (model, cluster), each with its measured time. A play tries one
 * entry after another, as a method (methods.h) chooses, and is told the recorded time of each; it costs as many trials
 * as it takes to meet an entry nearly as fast as the best of the pool. No trial is run, so every method meets the same
 * times.
 *
 * What a method may look at: everything that is known before a trial (strategies, features, predictions, rankers
 * trained on other domains) and the times of what its play has tried. All functions end the program when something
 * fails (evaluate.h). Units: microseconds. Threads: one. */
#ifndef TESTS_EVALUATE_POOL_H
#define TESTS_EVALUATE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/rng.h"
#include "simulator/learned/ranker.h"
#include "strategy/space/space.h"
#include "tests/evaluate/evaluate.h"
#include "tuner/learn/examples.h"

/* The box that methods with points search: X(global feature), each scaled to [0, 1] over the pool. A strategy has one
 * value of each; a point stands for the nearest entry that is not yet tried. */
#define POOL_BOX_TABLE(X)                                                                                              \
    X(server_share)                                                                                                    \
    X(log2_message_bytes)                                                                                              \
    X(log2_groups)                                                                                                     \
    X(log2_credit)                                                                                                     \
    X(priority)                                                                                                        \
    X(cross_iteration)
enum {
#define X(name) POOL_BOX_##name,
    POOL_BOX_TABLE(X)
#undef X
        POOL_BOX
};

struct pool {
    struct arena arena;
    const struct corpus *corpus;
    const struct domain *domain;
    const char *words; /* "decoder on four" */
    size_t n;
    const struct ranker_example *examples; /* [n]; the times are what plays are told */
    const struct strategy *strategies;     /* [n] */
    const char *const *proposers;          /* [n] */
    const double *variance;                /* [n] of log(measured time) */
    const struct features *blind; /* [n] as if the timeline had never run: its features 0, its prediction 1 us */
    const double *box;            /* row-major n x POOL_BOX */
    const double *likeness;       /* n x n space_similarity */
    const double *closed_us;      /* [n] AutoSync's closed form */
    struct space space;
    double bound_us; /* no strategy is faster on this cluster as described */
    double best_us;
    struct ranker *rankers[RANKER_KIND_COUNT]; /* pool_ranker's */
};

/* O(n^2 similarities). Release with pool_release. */
void pool_init(struct pool *pool, const struct corpus *corpus, size_t domain);
void pool_release(struct pool *pool);

/* A residual ranker trained on all other domains, borrowed; trained when first asked for. */
const struct ranker *pool_ranker(struct pool *pool, enum ranker_kind kind);

/* Which entries a play is about. */
enum subset {
    SUBSET_ALL,
    SUBSET_HALF,  /* a random half, which the seed alone decides */
    SUBSET_DRAWN, /* not those that the recipe took because our simulator found them fast */
};

struct play {
    struct pool *pool;
    uint64_t seed;
    struct rng rng;
    size_t n_left;
    bool *taken; /* [pool->n] tried, or not in this play */
    size_t n_tried;
    size_t *tried;  /* [pool->n] in order */
    double best_us; /* of the entries in this play; for the judge, not for methods */
};

/* Release with play_release. */
void play_init(struct play *play, struct pool *pool, uint64_t seed, enum subset subset);
void play_release(struct play *play);
void play_take(struct play *play, size_t entry);

double play_us(const struct play *play, size_t i); /* of the i-th tried */
size_t play_random(struct play *play);             /* an untried entry; n_left >= 1, as below */
size_t play_nearest(const struct play *play, const double x[POOL_BOX]);
void play_untried(const struct play *play, size_t *out); /* [n_left] entries, rising */

#endif
