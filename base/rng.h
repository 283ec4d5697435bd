/* Random numbers from an explicit state, the same on every machine: xoshiro256** (Blackman and Vigna 2018), seeded
 * through SplitMix64. */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

struct rng {
    uint64_t s[4];
};

void rng_seed(struct rng *rng, uint64_t seed);

/* An independent stream for part `stream` of the work: the same parent seed and stream give the same numbers, whatever
 * was drawn from the parent before. */
void rng_split(struct rng *child, uint64_t seed, uint64_t stream);

uint64_t rng_next(struct rng *rng);
uint64_t rng_below(struct rng *rng, uint64_t n);                       /* uniform in [0, n), n > 0, unbiased */
double rng_uniform(struct rng *rng);                                   /* [0, 1), 53 bits */
double rng_between(struct rng *rng, double low, double high);          /* [low, high) */
double rng_log_between(struct rng *rng, double low, double high);      /* log-uniform, 0 < low <= high */
double rng_normal(struct rng *rng);                                    /* mean 0, variance 1 */
size_t rng_weighted(struct rng *rng, size_t n, const double *weights); /* index by weight >= 0, sum > 0 */
void rng_shuffle(struct rng *rng, size_t n, uint32_t *items);

#endif
