/* The point of a space whose score (bayes_score) is the highest.
 *
 * A sweep of evenly spread points and of points near the best known ones, then a climb from the best few: continuous
 * dimensions by L-BFGS with analytic gradients (Sbplx when there is a prior, which need not be smooth), discrete ones
 * by moving to neighbours, in turn. In small discrete spaces every point is scored. */
#ifndef TUNER_SEARCH_BAYES_CLIMB_H
#define TUNER_SEARCH_BAYES_CLIMB_H

#include "base/arena.h"
#include "tuner/search/bayes_space.h"
#include "tuner/search/gaussian_process.h"

enum {
    BAYES_SPREAD = 512, /* evenly spread points of a sweep */
    BAYES_NEAR = 128,   /* points of a sweep near those in `near` */
    BAYES_WHOLE = 2048  /* in discrete spaces up to this size every point is scored */
};

struct bayes_climb {
    const struct bayes_space *space;
    struct gp *gp;
    double (*prior)(void *context, const double *x); /* NULL: 0 */
    void *context;
    double best;   /* what is to be improved on */
    size_t n_near; /* rows near which to look */
    const double *near;
    size_t n_seen; /* values [n_seen x dimensions] that must not be found, in a discrete space */
    const double *seen;
    uint64_t seed;
};

/* The row; *found is false when every point has been seen or has an infinite prior.
 * Fails: ST_INVALID (a prior that is NaN), ST_NO_MEMORY. */
enum status bayes_climb(const struct bayes_climb *climb, struct arena *arena, bool *found, double *row,
                        struct error *err);

/* Whether the row's values are among the seen ones, in a discrete space; scratch [dimensions]. */
bool bayes_climb_seen(const struct bayes_climb *climb, const double *row, double *scratch);

/* Priors of n rows into prior[n]. Fails: ST_INVALID (NaN). */
enum status bayes_climb_priors(const struct bayes_climb *climb, size_t n, const double *rows, double *scratch,
                               double *prior, struct error *err);

#endif
