/* Ways to tell a time between the points of one table, for comparison with the model, which is the last.
 *
 * In bytes or in log-log; straight, or cubic and monotone (Fritsch and Carlson, SIAM Journal on Numerical Analysis 17,
 * 1980, with the weights of Fritsch and Butland, SIAM Journal on Scientific and Statistical Computing 5, 1984); through
 * the points as they were measured, through their running maximum, or through their isotonic regression; and one line
 * for the whole table by least squares, of times or of relative errors. */
#ifndef TESTS_CURVES_METHODS_H
#define TESTS_CURVES_METHODS_H

#include "tests/support/strategy/measured_tables.h"

enum { N_METHODS = 9 };

struct method {
    const char *name;
    struct guess guess;
    bool in_short; /* also where only the main ones are compared */
};
extern const struct method methods[N_METHODS];

#endif
