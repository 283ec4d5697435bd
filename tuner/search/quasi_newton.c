/* See quasi_newton.h. A coordinate at its bound that the gradient pushes outward stays there for a step. The others
 * take the Newton step, scaled so that no coordinate moves by more than LONGEST, and cut off at the box. While the
 * value does not fall, the step is cut to a quarter. Powell's damping keeps the Hessian positive definite. */
#include "tuner/search/quasi_newton.h"

#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { SHORTENINGS = 6 };
#define LONGEST 1.0
#define DAMPING 0.2

struct walk {
    const struct quasi_newton *problem;
    double *x, *hessian;                                          /* the caller's */
    double *factor;                                               /* n x n */
    double *gradient, *step, *next, *next_gradient, *bent, *held; /* n */
    double value;
    int left; /* evaluations */
};

static double evaluate(struct walk *w, const double *x, double *gradient) {
    w->left--;
    double value = w->problem->value((unsigned)w->problem->n, x, gradient, w->problem->context);
    return isnan(value) ? HUGE_VAL : value;
}

/* Factorise the Hessian without what is held and with `more` on its diagonal; false when it has no Cholesky factor. */
static bool factorise(struct walk *w, double more) {
    size_t n = w->problem->n;
    memcpy(w->factor, w->hessian, n * n * sizeof *w->factor);
    for (size_t j = 0; j < n; j++) {
        w->factor[j * n + j] += more;
        for (size_t i = 0; i < n; i++)
            if (w->held[i] != 0 || w->held[j] != 0)
                w->factor[j * n + i] = i == j;
    }
    return !LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', (lapack_int)n, w->factor, (lapack_int)n);
}

/* Put the Newton step into w->step; returns the decrease that the quadratic model predicts. What is added to the
 * Hessian's diagonal to factor it stays there. */
static double newton_step(struct walk *w) {
    size_t n = w->problem->n;
    double largest = 0, more = 0, longest = 0;
    for (size_t i = 0; i < n; i++) {
        w->held[i] = (w->x[i] <= w->problem->low[i] && w->gradient[i] > 0) ||
                     (w->x[i] >= w->problem->high[i] && w->gradient[i] < 0);
        w->step[i] = w->held[i] != 0 ? 0 : -w->gradient[i];
        largest = fmax(largest, fabs(w->hessian[i * n + i]));
    }
    while (!factorise(w, more) && more < 1e3 * (largest + 1))
        more = more > 0 ? 4 * more : 1e-3 * (largest + 1);
    for (size_t i = 0; i < n; i++)
        w->hessian[i * n + i] += more;
    LAPACKE_dpotrs_work(LAPACK_COL_MAJOR, 'L', (lapack_int)n, 1, w->factor, (lapack_int)n, w->step, (lapack_int)n);
    for (size_t i = 0; i < n; i++)
        longest = fmax(longest, fabs(w->step[i]));
    if (longest > LONGEST)
        cblas_dscal((int)n, LONGEST / longest, w->step, 1);
    return -cblas_ddot((int)n, w->gradient, 1, w->step, 1) / 2;
}

/* Search along w->step for a lower value; the point goes into w->next. False when there is none. */
static bool go(struct walk *w, double *value) {
    const struct quasi_newton *p = w->problem;
    double share = 1;
    for (int k = 0; k < SHORTENINGS && w->left > 0; k++) {
        for (size_t i = 0; i < p->n; i++)
            w->next[i] = fmin(fmax(w->x[i] + share * w->step[i], p->low[i]), p->high[i]);
        *value = evaluate(w, w->next, w->next_gradient);
        if (*value < w->value)
            return true;
        share /= 4;
    }
    return false;
}

/* BFGS, with y drawn toward B s as far as it takes for s'y to stay above a share of s'B s. */
static void learn(struct walk *w) {
    size_t n = w->problem->n;
    double *s = w->step, *y = w->next_gradient;
    for (size_t i = 0; i < n; i++)
        s[i] = w->next[i] - w->x[i];
    cblas_dsymv(CblasColMajor, CblasLower, (int)n, 1, w->hessian, (int)n, s, 1, 0, w->bent, 1);
    double curve = cblas_ddot((int)n, s, 1, w->bent, 1), by_y = 0;
    for (size_t i = 0; i < n; i++)
        by_y += s[i] * (y[i] - w->gradient[i]);
    if (!(curve > 0))
        return;
    double keep = by_y < DAMPING * curve ? (1 - DAMPING) * curve / (curve - by_y) : 1;
    double *change = w->held; /* of the gradient, damped */
    for (size_t i = 0; i < n; i++)
        change[i] = keep * (y[i] - w->gradient[i]) + (1 - keep) * w->bent[i];
    double along = cblas_ddot((int)n, s, 1, change, 1);
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < n; i++)
            w->hessian[j * n + i] += change[i] * change[j] / along - w->bent[i] * w->bent[j] / curve;
}

double quasi_newton_minimise(const struct quasi_newton *problem, double *x, double *hessian, double *scratch) {
    size_t n = problem->n;
    double *at = scratch + n * n, value;
    struct walk w = {.problem = problem, .x = x, .hessian = hessian, .factor = scratch, .left = problem->evaluations};
    w.gradient = at;
    w.step = at + n;
    w.next = at + 2 * n;
    w.next_gradient = at + 3 * n;
    w.bent = at + 4 * n;
    w.held = at + 5 * n;
    w.value = evaluate(&w, x, w.gradient);
    while (w.left > 0 && newton_step(&w) > problem->tolerance && go(&w, &value)) {
        learn(&w);
        memcpy(x, w.next, n * sizeof *x);
        memcpy(w.gradient, w.next_gradient, n * sizeof *w.gradient);
        w.value = value;
    }
    return w.value;
}
