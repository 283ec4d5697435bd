/* What a handful of noisy iteration times say.
 *
 * Times on shared machines have long right tails, so the centre is the median, and its interval comes from order
 * statistics, which assume nothing about the distribution. Units: microseconds. */
#ifndef BASE_STATISTICS_H
#define BASE_STATISTICS_H

#include <stddef.h>

#include "base/error.h"

struct summary {
    size_t n;
    double mean_us, median_us;
    double low_us, high_us; /* holds the true median with at least 95% confidence; the whole range below 6 values */
};

/* n >= 1 values, in any order; they are sorted in place. */
struct summary summary_of(size_t n, double *values_us);

/* The same, leaving the values as they are; n = 0 gives zeros. Fails: ST_NO_MEMORY. */
enum status summary_of_copy(size_t n, const double *values_us, struct summary *out, struct error *err);

/* Several rounds of the same strategy: the pooled values, and an interval that also spans the medians of the rounds,
 * since iterations of one run are more alike than those of two. rounds[i] has counts[i] values, which stay as they are;
 * no values give zeros. Fails: ST_NO_MEMORY. */
enum status summary_of_rounds(size_t n_rounds, const size_t *counts, const double *const *rounds, struct summary *out,
                              struct error *err);

/* The 97.5% quantile of Student's t: half of a 95% interval of a mean, in standard errors; 0 without a degree of
 * freedom.
 */
double student_quantile(size_t freedom);

double median_of(size_t n, double *values); /* sorts; n >= 1 */

void numbers_sort(size_t n, double *values); /* rising; none is NAN */

#endif
