/* The order in which variables are placed on servers: what comes last sets the imbalance, so the largest come first. */
#ifndef STRATEGY_SPACE_LARGEST_FIRST_H
#define STRATEGY_SPACE_LARGEST_FIRST_H

#include <stddef.h>
#include <stdint.h>

struct sized_variable {
    double bytes; /* of its gradient on the wire */
    uint32_t variable;
};

/* Sort n of them in place by falling bytes, ties by position in the model. O(n log n). */
void largest_first(size_t n, struct sized_variable *list);

#endif
