/* An operator's inner operators lie within it, so joining now and then keeps the array far smaller than the trace. */
#include "interop/traces/spans.h"

#include <math.h>
#include <stdlib.h>

#include "base/grow.h"

static int compare_starts(const void *a, const void *b) {
    const struct span *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

void spans_join(struct spans *spans) {
    size_t kept = 0;
    if (spans->n)
        qsort(spans->items, spans->n, sizeof *spans->items, compare_starts);
    for (size_t i = 0; i < spans->n; i++) {
        struct span *last = kept ? &spans->items[kept - 1] : NULL;
        if (last && spans->items[i].start <= last->end)
            last->end = fmax(last->end, spans->items[i].end);
        else
            spans->items[kept++] = spans->items[i];
    }
    spans->n = kept;
}

bool spans_add(struct spans *spans, double start, double end) {
    struct span *last = spans->n ? &spans->items[spans->n - 1] : NULL;
    if (end <= start)
        return true;
    if (last && start >= last->start && start <= last->end) {
        last->end = fmax(last->end, end);
        return true;
    }
    if (spans->n == spans->room) {
        spans_join(spans); /* then at least half of the room is free, so that joining is rare */
        if (2 * spans->n >= spans->room && !GROW(&spans->items, &spans->room, spans->room + 1))
            return false;
    }
    spans->items[spans->n++] = (struct span){start, end};
    return true;
}

size_t spans_after(const struct spans *spans, double moment) {
    size_t low = 0, high = spans->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (spans->items[middle].end <= moment)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

double spans_covered(const struct spans *spans, double start, double end) {
    double covered = 0;
    for (size_t i = spans_after(spans, start); i < spans->n && spans->items[i].start < end; i++)
        covered += fmin(spans->items[i].end, end) - fmax(spans->items[i].start, start);
    return fmax(covered, 0);
}

void spans_release(struct spans *spans) {
    free(spans->items);
    *spans = (struct spans){0};
}
