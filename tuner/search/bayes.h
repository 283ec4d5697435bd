/* Bayesian optimization: which point to measure next, so that few measurements find the least value.
 *
 *   bayes_new(n, dimensions, &options, &b, &err);
 *   loop: bayes_suggest(b, &history, q, x, &advice, &err);    stop when advice.gain is small
 *         measure the points; add them to history
 *
 * A Gaussian process (gaussian_process.h) is fitted to the history anew each time; the next point has the highest
 * score, the logarithm of augmented expected improvement (acquisition.h) over the best posterior mean among the points
 * measured. The least measured value is not used, because noise may have made it too low. A point that is still being
 * measured counts as if it had measured as expected, so that the next points lie elsewhere.
 *
 * Minimise logarithms of times: ratios then count alike everywhere, noise is even, and a gain is a relative gain.
 *
 * A suggestion is a function of the options, the history and q: nothing is kept between calls but memory, and a session
 * that starts again with its records goes on as it would have. Threads: a struct bayes belongs to one thread at a time.
 */
#ifndef TUNER_SEARCH_BAYES_H
#define TUNER_SEARCH_BAYES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "tuner/search/bayes_space.h"
#include "tuner/search/gaussian_process.h"

struct bayes; /* opaque */

struct bayes_options {
    uint64_t seed;
    size_t first; /* trials before the model chooses points; 0: one more than there are dimensions, or 3 with a prior */
    /* What is known of the value at x [dimensions] before any trial, such as a simulator's prediction; the model learns
     * what is wrong with it. Called about 700 times a point suggested, and once a trial. +INFINITY: never try this
     * point. NULL: nothing is known. */
    double (*prior)(void *context, const double *x);
    void *context;
};

struct bayes_trial {
    const double *x; /* dimensions */
    double y;        /* finite */
    double noise;    /* variance of y beyond what all trials share; more for what was measured under other conditions */
    bool elsewhere;  /* known from another session: the model learns from it, but it is no answer here */
};

struct bayes_history {
    size_t n;
    const struct bayes_trial *trials; /* n, the same x may occur several times */
    size_t n_pending;
    const double *pending; /* row-major n_pending x dimensions: under way */
};

struct bayes_advice {
    size_t n;      /* points suggested, fewer than asked for when a discrete space has no more untried ones */
    bool modelled; /* false: the first points, spread evenly or, with a prior, its best that are far apart */
    double gain;   /* expected improvement of the first point, unit of y; INFINITY when not modelled, 0 when n = 0 */
    double relative_gain; /* gain / |best value|; with y a logarithm, gain itself is what to look at */
};

/* The dimensions are copied. Fails: ST_INVALID, ST_TOO_LARGE, ST_NO_MEMORY. */
enum status bayes_new(size_t n, const struct bayes_dimension *dimensions, const struct bayes_options *options,
                      struct bayes **out, struct error *err);
void bayes_free(struct bayes *bayes); /* NULL is allowed */

/* q >= 1 distinct points into x [row-major q x dimensions; advice->n of them are valid]. In a space without continuous
 * dimensions, no point that was tried here or is under way is suggested. [O(n^3) for the fit; 700 n^2 a point.]
 * Fails: ST_INVALID (names the trial and dimension), ST_TOO_LARGE, ST_NUMERIC, ST_NO_MEMORY. x is written, in part, on
 * failure as well; *advice is not. */
enum status bayes_suggest(struct bayes *bayes, const struct bayes_history *history, size_t q, double *x,
                          struct bayes_advice *advice, struct error *err);

#endif
