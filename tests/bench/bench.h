/* What the benchmarks share: errors that end them, medians, and a count of allocations (bench.sh wraps the allocator).
 */
#ifndef TESTS_BENCH_BENCH_H
#define TESTS_BENCH_BENCH_H

#include <stddef.h>

#include "base/error.h"

/* Calls of malloc, calloc and realloc so far. */
extern size_t bench_allocations;

/* End the program with the message unless the status is ST_OK. */
void bench_check(enum status status, const struct error *err);

/* The upper median of n >= 1 values, which are sorted. */
double bench_median(size_t n, double *values);

#endif
