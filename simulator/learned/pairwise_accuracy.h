/* How well scores order what was measured. */
#ifndef SIMULATOR_LEARNED_PAIRWISE_ACCURACY_H
#define SIMULATOR_LEARNED_PAIRWISE_ACCURACY_H

#include <stddef.h>
#include <stdint.h>

/* Share of pairs of one domain with different times that `score` orders as `us` does; half for equal scores. NaN
 * without pairs. O(n^2). */
double pairwise_accuracy(size_t n, const double *us, const double *score, const uint32_t *domain);

#endif
