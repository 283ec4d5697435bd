/* See quantile.h. */
#include "tests/evaluate/quantile.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double quantile_of(size_t n, double *values, double quantile) {
    qsort(values, n, sizeof *values, compare);
    const double place = quantile * (double)(n - 1);
    const size_t below = (size_t)place, above = below + (place > (double)below);
    if (above == below || !isfinite(values[above]))
        return values[above];
    return values[below] + (place - (double)below) * (values[above] - values[below]);
}
