/* Children of good strategies (the genetic variant of AutoSync §3.2).
 *
 * Parents are picked by tournament among strategies with a known time, measured or predicted; a child is crossed from
 * two of them (space_crossover) or copied from one, and then takes a few random small steps (space_neighbour). No child
 * is in the population, and no two are alike, so every one is worth a prediction.
 * The same population and state of `rng` give the same children. Units: microseconds. */
#ifndef TUNER_SEARCH_GENETIC_H
#define TUNER_SEARCH_GENETIC_H

#include <stddef.h>

#include "base/error.h"
#include "base/rng.h"
#include "strategy/space/space.h"

struct genetic_parent {
    const struct strategy *strategy;
    double us; /* one without a finite time is never picked */
};

struct genetic_options {
    size_t tournament; /* how many are drawn for one parent, with replacement; the fastest wins. At least 1 */
    double crossover;  /* chance of two parents */
    double mutation;   /* chance of a first step, and of each further one after a step; below 1 */
};

/* Tournaments of 3, crossover 0.7, mutation 0.5. */
struct genetic_options genetic_default_options(void);

/* Make up to n children of population[0..n_population); *made tells how many, fewer than n only when
 * GENETIC_MAX_TRIES draws for one found nothing new. Each is sealed, in the space when the population is, and the
 * caller's to release. O(n · (variables log variables + n_population)) when the space is large. Fails: ST_NOT_FOUND (no
 * parent with a finite time, or no child at all), ST_NO_MEMORY; then nothing is to be released.
 */
enum { GENETIC_MAX_TRIES = 50 };
enum status genetic_propose(const struct space *space, const struct genetic_options *options, size_t n_population,
                            const struct genetic_parent *population, struct rng *rng, size_t n, struct strategy *out,
                            size_t *made, struct error *err);

#endif
