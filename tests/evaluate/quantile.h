/* Quantiles of counts some of which are infinite: trials until something that a play never reached. */
#ifndef TESTS_EVALUATE_QUANTILE_H
#define TESTS_EVALUATE_QUANTILE_H

#include <stddef.h>

/* Between the two nearest of n >= 1 values, and the larger of the two when it is infinite. Sorts them. */
double quantile_of(size_t n, double *values, double quantile);

#endif
