/* See pool.h. */
#include "tests/evaluate/pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "simulator/bound.h"
#include "simulator/closed_form.h"
#include "strategy/plan.h"
#include "tests/support/feature_columns.h"
#include "tests/support/strategy/similarity.h"

#define X(name) FEATURE_GLOBAL_##name,
static const size_t box_features[POOL_BOX] = {POOL_BOX_TABLE(X)};
#undef X

static const double *make_box(struct pool *pool) {
    double *box = allocate(&pool->arena, pool->n * POOL_BOX, sizeof *box);
    for (size_t k = 0; k < POOL_BOX; k++) {
        double low = INFINITY, high = -INFINITY;
        for (size_t i = 0; i < pool->n; i++) {
            const double value = pool->examples[i].features->global[box_features[k]];
            low = fmin(low, value);
            high = fmax(high, value);
        }
        for (size_t i = 0; i < pool->n && high > low; i++)
            box[i * POOL_BOX + k] = (pool->examples[i].features->global[box_features[k]] - low) / (high - low);
    }
    return box;
}

static const struct features *make_blind(struct pool *pool) {
    struct features *blind = allocate(&pool->arena, pool->n, sizeof *blind);
    for (size_t i = 0; i < pool->n; i++) {
        blind[i] = *pool->examples[i].features;
        blind[i].arena = (struct arena){0};
        blind[i].timeline_us = 1;
        for (size_t k = 0; k < FEATURE_GLOBAL_COUNT; k++)
            if (GLOBAL_KINDS[k] == FEATURE_KIND_timeline)
                blind[i].global[k] = 0;
    }
    return blind;
}

static const double *make_likeness(struct pool *pool) {
    const size_t n = pool->n;
    double *likeness = allocate(&pool->arena, n * n, sizeof *likeness);
    struct error err;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            double *out = &likeness[i * n + j];
            check(space_similarity(&pool->space, &pool->strategies[i], &pool->strategies[j], out, &err), &err);
            likeness[j * n + i] = *out;
        }
    return likeness;
}

static const double *make_closed(struct pool *pool, const struct cost *cost) {
    double *closed = allocate(&pool->arena, pool->n, sizeof *closed);
    struct error err;
    for (size_t i = 0; i < pool->n; i++) {
        struct plan plan;
        struct prediction p;
        check(plan_lower(&pool->domain->model, &pool->domain->cluster, &pool->strategies[i], &plan, &err), &err);
        check(closed_form_run(&plan, cost, &p, &err), &err);
        plan_release(&plan);
        closed[i] = p.iteration_us;
    }
    return closed;
}

static void predict(struct pool *pool) {
    struct cost cost;
    struct bound bound;
    struct error err;
    check(cost_init(&cost, &pool->domain->cluster, &err), &err);
    check(bound_iteration(&pool->domain->model, &cost, LOSSY_none, IN_PARTS_none, &bound, &err), &err);
    pool->bound_us = bound.iteration_us;
    pool->closed_us = make_closed(pool, &cost);
    cost_release(&cost);
}

void pool_init(struct pool *pool, const struct corpus *corpus, size_t domain) {
    const struct examples *all = &corpus->examples;
    const struct domain *d = corpus_domain(corpus, domain);
    const struct space_options options = space_default_options();
    struct error err;
    *pool = (struct pool){.corpus = corpus,
                          .domain = d,
                          .n = d->n,
                          .examples = all->examples + d->first,
                          .strategies = all->strategies + d->first,
                          .proposers = all->proposers + d->first,
                          .variance = corpus->variance + d->first,
                          .best_us = INFINITY};
    for (size_t i = 0; i < pool->n; i++)
        pool->best_us = fmin(pool->best_us, pool->examples[i].us);
    check(space_init(&pool->space, &d->model, &d->cluster, &options, &err), &err);
    pool->words = domain_words(corpus, domain, &pool->arena);
    pool->box = make_box(pool);
    pool->blind = make_blind(pool);
    pool->likeness = make_likeness(pool);
    predict(pool);
}

void pool_release(struct pool *pool) {
    for (size_t k = 0; k < RANKER_KIND_COUNT; k++)
        ranker_free(pool->rankers[k]);
    space_release(&pool->space);
    arena_release(&pool->arena);
}

const struct ranker *pool_ranker(struct pool *pool, enum ranker_kind kind) {
    const struct examples *all = &pool->corpus->examples;
    const size_t before = pool->domain->first, after = all->n - before - pool->n;
    struct ranker_options options = ranker_default_options(kind);
    struct arena scratch = {0};
    struct error err;
    if (pool->rankers[kind])
        return pool->rankers[kind];
    struct ranker_example *others = allocate(&scratch, before + after, sizeof *others);
    for (size_t i = 0; i < before + after; i++)
        others[i] = all->examples[i < before ? i : i + pool->n];
    options.residual = true;
    check(ranker_train(&options, before + after, others, &pool->rankers[kind], NULL, &err), &err);
    arena_release(&scratch);
    return pool->rankers[kind];
}

static void leave_out(struct play *play, size_t entry) {
    play->taken[entry] = true;
    play->n_left--;
}

void play_init(struct play *play, struct pool *pool, uint64_t seed, enum subset subset) {
    struct error err;
    *play = (struct play){.pool = pool, .seed = seed, .n_left = pool->n, .best_us = INFINITY};
    rng_split(&play->rng, seed, pool->domain->first);
    play->taken = calloc(pool->n, sizeof *play->taken);
    play->tried = calloc(pool->n, sizeof *play->tried);
    if (!play->taken || !play->tried) {
        error_no_memory(&err);
        fail(&err);
    }
    while (subset == SUBSET_HALF && play->n_left > (pool->n + 1) / 2)
        leave_out(play, play_random(play));
    for (size_t i = 0; subset == SUBSET_DRAWN && i < pool->n; i++)
        if (!strcmp(pool->proposers[i], "collect-fast"))
            leave_out(play, i);
    for (size_t i = 0; i < pool->n; i++)
        if (!play->taken[i])
            play->best_us = fmin(play->best_us, pool->examples[i].us);
}

void play_release(struct play *play) {
    free(play->taken);
    free(play->tried);
}

void play_take(struct play *play, size_t entry) {
    play->taken[entry] = true;
    play->tried[play->n_tried++] = entry;
    play->n_left--;
}

double play_us(const struct play *play, size_t i) {
    return play->pool->examples[play->tried[i]].us;
}

size_t play_random(struct play *play) {
    size_t ahead = (size_t)rng_below(&play->rng, play->n_left), entry = 0;
    while (play->taken[entry] || ahead--)
        entry++;
    return entry;
}

size_t play_nearest(const struct play *play, const double x[POOL_BOX]) {
    size_t nearest = SIZE_MAX;
    double least = INFINITY;
    for (size_t i = 0; i < play->pool->n; i++) {
        double squares = 0;
        for (size_t k = 0; k < POOL_BOX; k++) {
            const double d = play->pool->box[i * POOL_BOX + k] - x[k];
            squares += d * d;
        }
        if (!play->taken[i] && squares < least) {
            least = squares;
            nearest = i;
        }
    }
    return nearest;
}

void play_untried(const struct play *play, size_t *out) {
    for (size_t i = 0; i < play->pool->n; i++)
        if (!play->taken[i])
            *out++ = i;
}
