/* Numeric gradients: central differences of a function of an array, against what a backward function says.
 *
 * Each derivative is tried with several steps, the best first: where a maximum or a kink lies within one step, a
 * smaller one shows the side that backward took. A wrong derivative is met by none of them. */
#ifndef TESTS_UNIT_SIMULATOR_GRADIENT_H
#define TESTS_UNIT_SIMULATOR_GRADIENT_H

#include <math.h>

#include "base/rng.h"
#include "tests/support/check.h"

/* The function at the array's present contents. */
typedef double gradient_function(void *context);

static const double GRADIENT_STEPS[] = {1e-5, 1e-4, 1e-6, 1e-7};
static const double GRADIENT_RELATIVE = 1e-6;

/* Derivatives far below the largest are compared with a thousandth of it: rounding of the function hides them. */
static inline double gradient_floor(size_t n, const double *gradient) {
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs(gradient[i]));
    return most / 1000;
}

static inline bool gradient_is_met(double numeric, double want, double floor) {
    return fabs(numeric - want) <= GRADIENT_RELATIVE * fmax(fmax(fabs(numeric), fabs(want)), floor);
}

/* d f / d x[i] is want. */
static inline void check_derivative(gradient_function *f, void *context, double *x, size_t i, double want,
                                    double floor) {
    const double at = x[i];
    double numeric = 0;
    for (size_t s = 0; s < sizeof GRADIENT_STEPS / sizeof *GRADIENT_STEPS; s++) {
        x[i] = at + GRADIENT_STEPS[s];
        double above = f(context);
        x[i] = at - GRADIENT_STEPS[s];
        numeric = (above - f(context)) / (2 * GRADIENT_STEPS[s]);
        x[i] = at;
        if (gradient_is_met(numeric, want, floor))
            return;
    }
    print_error("derivative %zu is %.12g, not %.12g\n", i, numeric, want);
    fail();
}

static inline void check_gradient(gradient_function *f, void *context, size_t n, double *x, const double *want) {
    const double floor = gradient_floor(n, want);
    for (size_t i = 0; i < n; i++)
        check_derivative(f, context, x, i, want[i], floor);
}

static inline void random_numbers(struct rng *rng, size_t n, double *x, double deviation) {
    for (size_t i = 0; i < n; i++)
        x[i] = deviation * rng_normal(rng);
}

#endif
