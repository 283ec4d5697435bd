/* Passes that agree: a window over the sorted medians. */
#include "strategy/cost/points.h"

#include <math.h>
#include <string.h>

void point_add(struct point *point, int n, const double *us) {
    if (point->n_passes == POINT_PASSES)
        return;
    struct point_pass *pass = &point->passes[point->n_passes++];
    double sorted[POINT_REPEATS];
    pass->n = n;
    memcpy(pass->us, us, (size_t)n * sizeof *us);
    memcpy(sorted, us, (size_t)n * sizeof *us);
    pass->median_us = median_of((size_t)n, sorted);
}

/* The window of medians that holds most passes: from *low to *high. Returns how many. */
static int agreeing(const struct point *point, double *low, double *high) {
    double medians[POINT_PASSES];
    int most = 0, n = point->n_passes;
    for (int i = 0; i < n; i++)
        medians[i] = point->passes[i].median_us;
    numbers_sort((size_t)n, medians);
    for (int i = 0; i < n; i++) {
        int end = i;
        while (end < n && medians[end] <= medians[i] * POINT_AGREES)
            end++;
        if (end - i > most) {
            most = end - i;
            *low = medians[i];
            *high = medians[end - 1];
        }
    }
    return most;
}

struct summary point_summary(const struct point *point) {
    double pooled[POINT_PASSES * POINT_REPEATS], low = 0, high = 0;
    size_t n = 0;
    agreeing(point, &low, &high);
    for (int i = 0; i < point->n_passes; i++) {
        const struct point_pass *pass = &point->passes[i];
        if (pass->median_us < low || pass->median_us > high)
            continue;
        memcpy(pooled + n, pass->us, (size_t)pass->n * sizeof *pooled);
        n += (size_t)pass->n;
    }
    return n ? summary_of(n, pooled) : (struct summary){0};
}

bool point_settled(const struct point *point) {
    double low, high;
    return agreeing(point, &low, &high) > 1;
}

double point_difference(const struct point *point) {
    double least = INFINITY, most = 0;
    for (int i = 0; i < point->n_passes; i++) {
        least = fmin(least, point->passes[i].median_us);
        most = fmax(most, point->passes[i].median_us);
    }
    return point->n_passes > 1 && least > 0 ? most / least : 1;
}

bool point_falls(const struct point *point, const struct point *larger) {
    return point_summary(point).median_us > point_summary(larger).median_us * POINT_AGREES;
}

bool point_same_curve(const struct point *a, const struct point *b) {
    return a->operation == b->operation && a->algorithm == b->algorithm;
}

const struct point *point_next_smaller(size_t n, const struct point *points, const struct point *point) {
    const struct point *next = NULL;
    for (const struct point *p = points; p < points + n; p++)
        if (point_same_curve(p, point) && p->bytes < point->bytes && (!next || p->bytes > next->bytes))
            next = p;
    return next;
}

const struct point *point_next_larger(size_t n, const struct point *points, const struct point *point) {
    const struct point *next = NULL;
    for (const struct point *p = points; p < points + n; p++)
        if (point_same_curve(p, point) && p->bytes > point->bytes && (!next || p->bytes < next->bytes))
            next = p;
    return next;
}

static double slope(const struct point *from, const struct point *to) {
    return (point_summary(to).median_us - point_summary(from).median_us) / (double)(to->bytes - from->bytes);
}

double point_bend(const struct point *a, const struct point *b, const struct point *c, const struct point *d) {
    const double start_us = point_summary(b).median_us, end_us = point_summary(c).median_us;
    const double gap = (double)(c->bytes - b->bytes), straight = slope(b, c);
    const double before = slope(a, b) - straight, after = straight - slope(c, d); /* against the straight line */
    const bool one_side = before * after > 0;
    const double at = one_side ? gap * after / (before + after) : gap / 2;
    const double off = one_side ? fabs(before) * at : fmax(fabs(before) * at, fabs(after) * (gap - at));
    return off / (start_us + (end_us - start_us) * at / gap);
}

uint64_t point_middle(size_t n, const struct point *points, const struct point *point, double most, uint64_t unit) {
    const struct point *before = point_next_smaller(n, points, point), *end = point_next_larger(n, points, point);
    const struct point *after = end ? point_next_larger(n, points, end) : NULL;
    if (!before || !after || !point_settled(before) || !point_settled(point) || !point_settled(end) ||
        !point_settled(after) || point_bend(before, point, end, after) <= most)
        return 0;
    const double middle = sqrt((double)point->bytes * (double)end->bytes);
    const uint64_t bytes = (uint64_t)(middle / (double)unit + 0.5) * unit;
    return bytes > point->bytes && bytes < end->bytes ? bytes : 0;
}
