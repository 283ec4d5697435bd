/* See statistics.h. The interval: the j-th and (n+1-j)-th smallest of n values hold the median with probability
 * 1 - 2 P(Binomial(n, 1/2) < j); j is the largest that keeps it at 95% (David and Nagaraja, Order Statistics, 7.1). */
#include "base/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double middle(size_t n, const double *sorted) {
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

void numbers_sort(size_t n, double *values) {
    qsort(values, n, sizeof *values, compare);
}

double median_of(size_t n, double *values) {
    numbers_sort(n, values);
    return middle(n, values);
}

/* Above the table, the normal's with a correction. */
double student_quantile(size_t freedom) {
    static const double table[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                   2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120};
    return freedom == 0                              ? 0
           : freedom <= sizeof table / sizeof *table ? table[freedom - 1]
                                                     : 1.96 + 2.5 / (double)freedom;
}

/* log (n!); lgamma itself writes a global variable, which threads share. */
static double log_factorial(size_t n) {
    int sign;
    return lgamma_r((double)n + 1, &sign);
}

/* The largest j >= 1 with 2 P(Binomial(n, 1/2) < j) <= 5%, or 0 when there is none. */
static size_t interval_rank(size_t n) {
    double tail = 0;
    for (size_t k = 0; k < n / 2; k++) {
        tail += exp(log_factorial(n) - log_factorial(k) - log_factorial(n - k) - (double)n * M_LN2);
        if (2 * tail > 0.05)
            return k;
    }
    return n / 2;
}

struct summary summary_of(size_t n, double *values_us) {
    struct summary s = {.n = n, .median_us = median_of(n, values_us)};
    for (size_t i = 0; i < n; i++)
        s.mean_us += values_us[i] / (double)n;
    size_t j = interval_rank(n);
    s.low_us = values_us[j ? j - 1 : 0];
    s.high_us = values_us[j ? n - j : n - 1];
    return s;
}

enum status summary_of_copy(size_t n, const double *values_us, struct summary *out, struct error *err) {
    if (!n) {
        *out = (struct summary){0};
        return ST_OK;
    }
    double *copy = malloc(n * sizeof *copy);
    if (!copy)
        return error_no_memory(err);
    memcpy(copy, values_us, n * sizeof *copy);
    *out = summary_of(n, copy);
    free(copy);
    return ST_OK;
}

enum status summary_of_rounds(size_t n_rounds, const size_t *counts, const double *const *rounds, struct summary *out,
                              struct error *err) {
    size_t n = 0;
    double least = INFINITY, most = -INFINITY;
    for (size_t r = 0; r < n_rounds; r++)
        n += counts[r];
    double *pooled = calloc(n + 1, sizeof *pooled), *end = pooled;
    if (!pooled)
        return error_no_memory(err);
    for (size_t r = 0; r < n_rounds; r++) {
        if (!counts[r])
            continue;
        memcpy(end, rounds[r], counts[r] * sizeof *end);
        const double m = median_of(counts[r], end);
        least = fmin(least, m);
        most = fmax(most, m);
        end += counts[r];
    }
    struct summary s = {0};
    if (n) {
        s = summary_of(n, pooled);
        s.low_us = fmin(s.low_us, least);
        s.high_us = fmax(s.high_us, most);
    }
    free(pooled);
    *out = s;
    return ST_OK;
}
