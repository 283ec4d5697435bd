/* xoshiro256** and SplitMix64 after Blackman and Vigna, "Scrambled linear pseudorandom number generators" (2018);
 * bounded integers after Lemire, "Fast random integer generation in an interval" (2019); normals by Marsaglia's polar
 * method, one of each pair dropped so that the state is the four words and nothing else. Cost: O(1) a number. */
#include "base/rng.h"

#include <math.h>

__extension__ typedef unsigned __int128 wide;

static uint64_t splitmix(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t rotate_left(uint64_t x, int k) {
    return (x << k) | (x >> (64 - k));
}

void rng_seed(struct rng *rng, uint64_t seed) {
    for (int i = 0; i < 4; i++)
        rng->s[i] = splitmix(&seed);
}

void rng_split(struct rng *child, uint64_t seed, uint64_t stream) {
    /* Both numbers are mixed before they meet, so that (seed, stream) and (seed + 1, stream - 1) have nothing in
     * common. */
    uint64_t other = stream ^ UINT64_C(0x6a09e667f3bcc909);
    rng_seed(child, splitmix(&seed) ^ rotate_left(splitmix(&other), 17));
}

uint64_t rng_next(struct rng *rng) {
    uint64_t *s = rng->s;
    const uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    const uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t rng_below(struct rng *rng, uint64_t n) {
    wide product = (wide)rng_next(rng) * n;
    if ((uint64_t)product < n) {
        const uint64_t threshold = (0 - n) % n;
        while ((uint64_t)product < threshold)
            product = (wide)rng_next(rng) * n;
    }
    return (uint64_t)(product >> 64);
}

double rng_uniform(struct rng *rng) {
    return (double)(rng_next(rng) >> 11) * 0x1.0p-53;
}

double rng_between(struct rng *rng, double low, double high) {
    const double x = low + rng_uniform(rng) * (high - low);
    return x < high || low >= high ? x : nextafter(high, low); /* the sum may round up to `high` */
}

double rng_log_between(struct rng *rng, double low, double high) {
    const double x = low * exp(rng_uniform(rng) * log(high / low));
    return fmin(fmax(x, low), high);
}

double rng_normal(struct rng *rng) {
    double u, v, s;
    do {
        u = 2 * rng_uniform(rng) - 1;
        v = 2 * rng_uniform(rng) - 1;
        s = u * u + v * v;
    } while (s >= 1 || s == 0);
    return u * sqrt(-2 * log(s) / s);
}

size_t rng_weighted(struct rng *rng, size_t n, const double *weights) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += weights[i];
    double left = rng_uniform(rng) * sum;
    size_t last = 0; /* rounding may carry `left` past the end: the last one with weight takes it */
    for (size_t i = 0; i < n; i++) {
        if (weights[i] <= 0)
            continue;
        last = i;
        if (left < weights[i])
            return i;
        left -= weights[i];
    }
    return last;
}

void rng_shuffle(struct rng *rng, size_t n, uint32_t *items) {
    for (size_t i = n; i > 1; i--) {
        const size_t j = (size_t)rng_below(rng, i);
        const uint32_t item = items[i - 1];
        items[i - 1] = items[j];
        items[j] = item;
    }
}
