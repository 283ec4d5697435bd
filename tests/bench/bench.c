/* See bench.h. */
#include "tests/bench/bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

size_t bench_allocations;

void *__wrap_malloc(size_t n) {
    bench_allocations++;
    return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size) {
    bench_allocations++;
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n) {
    bench_allocations++;
    return __real_realloc(p, n);
}

void bench_check(enum status status, const struct error *err) {
    if (status == ST_OK)
        return;
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, ERROR_TEXT(err));
    exit(1);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(size_t n, double *values) {
    qsort(values, n, sizeof *values, by_value);
    return values[n / 2];
}
