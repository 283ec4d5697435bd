/* See strategy/space/largest_first.h. */
#include "strategy/space/largest_first.h"

#include <stdlib.h>

static int compare_sized(const void *a, const void *b) {
    const struct sized_variable *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return (x->variable > y->variable) - (x->variable < y->variable);
}

void largest_first(size_t n, struct sized_variable *list) {
    if (n)
        qsort(list, n, sizeof *list, compare_sized);
}
