/* See genetic.h. Steady-state: the population is what the session knows, and selection is the caller's, who predicts
 * the children and keeps whom it likes. A mutation is a geometric number of steps, so that most children stay near
 * their parents and a few go far. */
#include "tuner/search/genetic.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct breeding {
    const struct space *space;
    const struct genetic_options *options;
    size_t n_population;
    const struct genetic_parent *population;
    size_t n; /* of them, those that can be picked */
    const struct genetic_parent **parents;
    struct rng *rng;
};

struct genetic_options genetic_default_options(void) {
    return (struct genetic_options){.tournament = 3, .crossover = 0.7, .mutation = 0.5};
}

/* The fastest of a few, the earlier of equals. */
static const struct genetic_parent *pick(const struct breeding *b) {
    size_t best = rng_below(b->rng, b->n);
    for (size_t i = 1; i < b->options->tournament; i++) {
        size_t other = rng_below(b->rng, b->n);
        double us = b->parents[other]->us, best_us = b->parents[best]->us;
        if (us < best_us || (us <= best_us && other < best))
            best = other;
    }
    return b->parents[best];
}

static enum status conceive(const struct breeding *b, struct strategy *out, struct error *err) {
    const struct strategy *mother = pick(b)->strategy;
    if (rng_uniform(b->rng) < b->options->crossover)
        return space_crossover(b->space, mother, pick(b)->strategy, b->rng, out, err);
    enum status st = strategy_copy(mother, "mutation", out, err);
    if (!st)
        out->id = mother->id;
    return st;
}

/* A space of one has no steps to take. */
static enum status mutate(const struct breeding *b, struct strategy *child, struct error *err) {
    while (rng_uniform(b->rng) < b->options->mutation) {
        struct strategy next;
        enum status st = space_neighbour(b->space, child, b->rng, &next, err);
        if (st == ST_INFEASIBLE)
            return ST_OK;
        if (st)
            return st;
        strategy_release(child);
        *child = next;
    }
    return ST_OK;
}

static bool is_new(const struct breeding *b, const struct strategy *child, size_t made, const struct strategy *others) {
    for (size_t i = 0; i < b->n_population; i++)
        if (!memcmp(&b->population[i].strategy->id, &child->id, sizeof child->id))
            return false;
    for (size_t i = 0; i < made; i++)
        if (!memcmp(&others[i].id, &child->id, sizeof child->id))
            return false;
    return true;
}

/* Breed one more child at others[made]. *found is false when the tries ran out. */
static enum status breed(const struct breeding *b, size_t made, struct strategy *others, bool *found,
                         struct error *err) {
    *found = false;
    for (int i = 0; i < GENETIC_MAX_TRIES && !*found; i++) {
        struct strategy child;
        enum status st = conceive(b, &child, err);
        if (st)
            return st;
        st = mutate(b, &child, err);
        if (!st && is_new(b, &child, made, others)) {
            others[made] = child;
            *found = true;
            continue;
        }
        strategy_release(&child);
        if (st)
            return st;
    }
    return ST_OK;
}

/* Children until there are n or no new one is found. */
static enum status breed_all(const struct breeding *b, size_t n, struct strategy *out, size_t *made,
                             struct error *err) {
    size_t count = 0;
    bool found = true;
    enum status st = ST_OK;
    while (count < n && found && !st) {
        st = breed(b, count, out, &found, err);
        count += !st && found;
    }
    if (!st && !count && n)
        st = error_set(err, ST_NOT_FOUND, "no child that is not in the population already");
    if (!st)
        *made = count;
    for (size_t i = 0; i < count && st; i++)
        strategy_release(&out[i]);
    return st;
}

enum status genetic_propose(const struct space *space, const struct genetic_options *options, size_t n_population,
                            const struct genetic_parent *population, struct rng *rng, size_t n, struct strategy *out,
                            size_t *made, struct error *err) {
    struct breeding b = {.space = space,
                         .options = options,
                         .n_population = n_population,
                         .population = population,
                         .parents = calloc(n_population + 1, sizeof *b.parents),
                         .rng = rng};
    if (!b.parents)
        return error_no_memory(err);
    for (size_t i = 0; i < n_population; i++)
        if (isfinite(population[i].us))
            b.parents[b.n++] = &population[i];
    enum status st = b.n ? breed_all(&b, n, out, made, err)
                         : error_set(err, ST_NOT_FOUND, "no parent with a known time to breed from");
    free(b.parents);
    return st;
}
