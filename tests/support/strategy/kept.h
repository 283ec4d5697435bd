/* All ways in which the groups of a wrapping may keep what they gathered, for brute force. */
#ifndef TESTS_SUPPORT_STRATEGY_KEPT_H
#define TESTS_SUPPORT_STRATEGY_KEPT_H

#include <stdbool.h>
#include <stdint.h>

/* From keeps[n] of zeros on, the next of the ways^n; false after the last, when all are zeros again. */
static inline bool kept_next(uint32_t n, uint8_t ways, uint8_t *keeps) {
    uint32_t g = 0;
    while (g < n && ++keeps[g] == ways)
        keeps[g++] = 0;
    return g < n;
}

#endif
