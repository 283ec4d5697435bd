/* A sorted permutation, so that positions stay those of the file. */
#include "strategy/names.h"

#include <stdlib.h>
#include <string.h>

static int compare_positions(const void *a, const void *b, void *context) {
    const char **names = context;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    int order = strcmp(names[i], names[j]);
    return order ? order : (i > j) - (i < j);
}

bool names_build(struct names *out, struct arena *arena, uint32_t n, const char **names, int64_t *duplicate) {
    uint32_t *sorted = arena_alloc(arena, n, sizeof *sorted);
    if (!sorted)
        return false;
    for (uint32_t i = 0; i < n; i++)
        sorted[i] = i;
    qsort_r(sorted, n, sizeof *sorted, compare_positions, names);
    *duplicate = -1;
    for (uint32_t i = 1; i < n; i++)
        if (!strcmp(names[sorted[i - 1]], names[sorted[i]]) && (*duplicate < 0 || sorted[i] < *duplicate))
            *duplicate = sorted[i];
    *out = (struct names){n, names, sorted};
    return true;
}

int64_t names_find(const struct names *names, const char *name) {
    uint32_t low = 0, high = names->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = strcmp(names->names[names->sorted[middle]], name);
        if (!order)
            return names->sorted[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}
