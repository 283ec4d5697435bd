/* Finding things by name: an index over the names of a description, built once, searched by bisection. */
#ifndef STRATEGY_NAMES_H
#define STRATEGY_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

struct names {
    uint32_t n;
    const char **names; /* by position */
    uint32_t *sorted;   /* positions in the order of their names */
};

/* The index of names[0..n), which must outlive it. *duplicate is a position whose name occurs before, or -1. Returns
 * false when memory is out. O(n log n). */
bool names_build(struct names *out, struct arena *arena, uint32_t n, const char **names, int64_t *duplicate);

/* The position of `name`, or -1. O(log n). */
int64_t names_find(const struct names *names, const char *name);

#endif
