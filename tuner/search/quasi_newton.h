/* A smooth function's least value in a box, given an estimate of its Hessian to begin with.
 *
 * BFGS with the Hessian kept as a matrix (Nocedal and Wright, Numerical Optimization, 2006, sections 6.1 and 18.3), so
 * that a caller who has an estimate of it can begin with it: near the minimum a few evaluations are then enough; a
 * method that begins without curvature takes a dozen. O(n^3) an evaluation. Threads: none of its own. */
#ifndef TUNER_SEARCH_QUASI_NEWTON_H
#define TUNER_SEARCH_QUASI_NEWTON_H

#include <stddef.h>

struct quasi_newton {
    size_t n;
    /* Value at x [n] and its gradient [n]; HUGE_VAL where there is none. */
    double (*value)(unsigned n, const double *x, double *gradient, void *context);
    void *context;
    const double *low, *high; /* [n] */
    double tolerance;         /* ends when a step promises less */
    int evaluations;          /* at most; >= 1 */
};

/* Doubles of scratch for n unknowns. */
#define QUASI_NEWTON_SCRATCH(n) ((n) * ((n) + 6))

/* Minimise from x, which lies in the box. x becomes the best point seen; returns its value. hessian [column-major n x
 * n] is the estimate at x, symmetric, and is overwritten; where it is not positive definite it is made so. */
double quasi_newton_minimise(const struct quasi_newton *problem, double *x, double *hessian, double *scratch);

#endif
