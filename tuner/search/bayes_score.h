/* The score of candidates by a Gaussian process: the logarithm of their augmented expected improvement. */
#ifndef TUNER_SEARCH_BAYES_SCORE_H
#define TUNER_SEARCH_BAYES_SCORE_H

#include <stddef.h>

#include "tuner/search/gaussian_process.h"

/* The score over `best` of n rows [n x the columns of gp] with their
 * priors [n; NULL: 0]; -INFINITY when nothing is expected. O(n observations^2), allocates nothing. */
void bayes_score(struct gp *gp, size_t n, const double *rows, const double *prior, double best, double *score);

/* The candidate of the highest score, the first of equals; n >= 1. */
size_t bayes_choose(size_t n, const double *score);

#endif
