/* Stretches of time, and how much of one stretch others cover.
 * Units: microseconds. Threads: one at a time. */
#ifndef INTEROP_TRACES_SPANS_H
#define INTEROP_TRACES_SPANS_H

#include <stdbool.h>
#include <stddef.h>

struct span {
    double start, end;
};

/* Zeroed: none. */
struct spans {
    struct span *items; /* malloc'd */
    size_t n, room;
};

/* Add a stretch, in any order; those that overlap may be joined. False when memory is out. Amortized O(log n). */
bool spans_add(struct spans *spans, double start, double end);

/* Sort, and join those that touch or overlap. spans_covered needs it. O(n log n). */
void spans_join(struct spans *spans);

/* The first of spans in order, and apart from each other, that ends later than `moment`; n when none does. O(log n). */
size_t spans_after(const struct spans *spans, double moment);

/* How much of the time from `start` to `end` joined spans cover. O(log n + those within). */
double spans_covered(const struct spans *spans, double start, double end);

void spans_release(struct spans *spans);

#endif
