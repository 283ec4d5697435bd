/* The time of an all-reduce as a line in its bytes, as formulas and libraries' models have it. Units: bytes,
 * microseconds. */
#ifndef STRATEGY_COST_ALL_REDUCE_LINE_H
#define STRATEGY_COST_ALL_REDUCE_LINE_H

#include <stdint.h>

/* a + b * bytes */
struct all_reduce_line {
    double startup_us, per_byte_us;
};

/* The least of up to three lines: one for each protocol of a library that has several. */
struct all_reduce_lines {
    uint32_t n;
    struct all_reduce_line line[3];
};

#endif
