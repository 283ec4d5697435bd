/* The searches that ByteScheduler compares Bayesian optimization with (§4.3 and its figure 14): random, grid, and
 * stochastic gradient descent with momentum; on the unit cube, for any objective that is to be small.
 *
 * A searcher is asked for a point and told its value, in turn:
 *
 *     struct searcher s;
 *     reference_find("grid")->open(d, seed, &s, &err);
 *     for (...) { s.ask(s.state, x); s.tell(s.state, measure(x)); }
 *     s.close(s.state);
 *
 * The same dimensions, seed and values give the same points. Threads: a searcher belongs to one at a time. */
#ifndef TESTS_SUPPORT_TUNER_REFERENCE_H
#define TESTS_SUPPORT_TUNER_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { REFERENCE_MAX_DIMENSIONS = 32 };

struct searcher {
    void *state;
    void (*ask)(void *state, double *x);     /* writes the next point of [0, 1]^d; again the same until told */
    void (*tell)(void *state, double value); /* of that point; what is not finite counts as a failed try */
    void (*close)(void *state);
};

struct reference {
    const char *name, *summary;
    /* 1 <= d <= REFERENCE_MAX_DIMENSIONS. Fails: ST_INVALID, ST_NO_MEMORY. */
    enum status (*open)(size_t d, uint64_t seed, struct searcher *out, struct error *err);
};

/* random: points uniform in the cube.
 * grid: the middles of 3^d equal boxes, then of 9^d, and so on, those of a coarser grid first; each grid in an order
 *   that the seed draws, a step through its points that is the same all along.
 * momentum: from a random point, the gradient by forward differences (d + 1 values a step), velocity kept at 0.9,
 *   points held in the cube; another random point when a descent no longer improves. */
const struct reference *reference_list(size_t *n);
const struct reference *reference_find(const char *name); /* or NULL */

#endif
