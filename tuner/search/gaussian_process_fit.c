/* See gaussian_process.h: the likelihood and the choice of theta.
 *
 * The gradient (Rasmussen and Williams, equation 5.9) is half the trace of A dK, A = alpha alpha' - K^-1. Since the
 * trace of A K is y' alpha - n, the signal's entry follows from the diagonal and the sum of A, without K.
 *
 * Priors prevent absurd fits to few points: with a length scale of a thousandth any data would be explained without
 * noise. They are log-normal. Length scales grow with the square root of the number of inputs, because distances do
 * (Hvarfner, Hellsten and Nardi, "Vanilla Bayesian optimization performs great in high dimensions", 2024). */
#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <nlopt.h>
#include <stdlib.h>
#include <string.h>

#include "tuner/search/gaussian_process.h"
#include "tuner/search/gaussian_process_internal.h"
#include "tuner/search/quasi_newton.h"

enum {
    FEW = 48,        /* observations on which the starts compete */
    FEW_STEPS = 30,  /* evaluations a start */
    FULL_STEPS = 60, /* evaluations with more than FEW observations; seldom more than 8 */
    STARTS = 3,
    REFITS = 3
};
#define LOG_2PI     1.83787706640934548356
#define TOLERANCE   1e-2 /* of the log posterior: a smaller difference changes no result */
#define DIFFERENCE  0.03 /* of a parameter, for curvatures */
#define LEAST_NOISE 1e-8
#define MOST_NOISE  1.0

/* Mean and standard deviation of the logarithm of each kind of parameter. */
struct log_normal {
    double mean, sd;
};

static struct log_normal prior_of(const struct gp *gp, size_t parameter) {
    if (parameter == GP_SIGNAL)
        return (struct log_normal){0, 1};
    if (parameter == GP_NOISE)
        return (struct log_normal){-8, 3};
    return (struct log_normal){log(0.3) + 0.5 * log((double)gp->inputs), 1};
}

double gp_log_prior(const struct gp *gp, const double *theta, double *gradient) {
    double sum = 0;
    for (size_t i = 0; i < GP_LENGTH + gp->inputs; i++) {
        struct log_normal p = prior_of(gp, i);
        double z = (theta[i] - p.mean) / p.sd;
        sum -= z * z / 2;
        if (gradient)
            gradient[i] -= z / p.sd;
    }
    return sum;
}

/* ---- likelihood ---- */

/* factor holds K^-1; the first column of cross is scratch. */
static void gradient_of(struct gp *gp, const double *theta, size_t n, double *gradient) {
    double noise = exp(theta[GP_NOISE]), sum = 0, nugget = 0, *aw = gp->cross;
    memset(gradient, 0, (GP_LENGTH + gp->inputs) * sizeof *gradient);
    for (size_t j = 0; j < n; j++) {
        const double *inverse = gp->factor + j * gp->capacity, *w = gp->w + j * gp->capacity;
        double own = gp->alpha[j] * gp->alpha[j] - inverse[j];
        gradient[GP_NOISE] += own * noise / 2;
        nugget += own * (noise + gp->noise[j] + gp->jitter);
        sum += own;
        for (size_t i = j + 1; i < n; i++) {
            double a = gp->alpha[i] * gp->alpha[j] - inverse[i];
            sum += 2 * a;
            aw[i] = a * w[i];
        }
        for (size_t k = 0; k < gp->columns; k++) {
            const double *x = gp->scaled + k * gp->capacity;
            double here = x[j], g = 0;
            for (size_t i = j + 1; i < n; i++)
                g += aw[i] * (x[i] - here) * (x[i] - here);
            gradient[GP_LENGTH + gp->input_of[k]] += g;
        }
    }
    double trace = cblas_ddot((int)n, gp->y, 1, gp->alpha, 1) - (double)n;
    gradient[GP_SIGNAL] = (trace - nugget - GP_CONSTANT * sum) / 2;
}

enum status gp_log_likelihood(struct gp *gp, const double *theta, size_t n, double *value, double *gradient,
                              struct error *err) {
    enum status st = gp_factorise(gp, theta, n, gradient != NULL, err);
    if (st)
        return st;
    double sum = (double)n * LOG_2PI + cblas_ddot((int)n, gp->y, 1, gp->alpha, 1);
    for (size_t i = 0; i < n; i++)
        sum += 2 * log(gp->factor[i * gp->capacity + i]);
    if (gradient) {
        lapack_int ld = (lapack_int)gp->capacity;
        lapack_int info = LAPACKE_dpotri_work(LAPACK_COL_MAJOR, 'L', (lapack_int)n, gp->factor, ld);
        if (info)
            return error_set(err, ST_NUMERIC, "dpotri: info %d", (int)info);
        gradient_of(gp, theta, n, gradient);
    }
    *value = -sum / 2;
    return ST_OK;
}

/* ---- choice of theta ---- */

struct climb {
    struct gp *gp;
    size_t n;
    double best; /* the highest log posterior seen, and where */
    double *at;
    const double *low, *high; /* bounds of theta */
};

/* NLopt minimises. Where the covariance cannot be factored the value is as bad as can be. */
static double descend(unsigned parameters, const double *theta, double *gradient, void *context) {
    struct climb *climb = context;
    double value;
    if (gp_log_likelihood(climb->gp, theta, climb->n, &value, gradient, NULL)) {
        if (gradient)
            memset(gradient, 0, parameters * sizeof *gradient);
        return HUGE_VAL;
    }
    value += gp_log_prior(climb->gp, theta, gradient);
    for (unsigned i = 0; gradient && i < parameters; i++)
        gradient[i] = -gradient[i];
    if (value > climb->best) {
        climb->best = value;
        memcpy(climb->at, theta, parameters * sizeof *theta);
    }
    return -value;
}

static void set_bounds(size_t parameters, double least_noise, double *low, double *high) {
    for (size_t i = 0; i < parameters; i++) {
        low[i] = i == GP_SIGNAL ? log(1e-3) : i == GP_NOISE ? log(least_noise) : log(1e-2);
        high[i] = i == GP_NOISE ? log(MOST_NOISE) : log(1e2);
    }
}

/* Climb from `start`, which is overwritten. Whatever stops the climb, it keeps the best point it saw. */
static void climb_from(nlopt_opt opt, int evaluations, double *start) {
    double value;
    nlopt_set_maxeval(opt, evaluations);
    nlopt_optimize(opt, start, &value);
}

/* Start 0 is the priors' centre; the others lie to both sides of it: rough without noise, smooth with noise. */
static void set_start(const struct gp *gp, int number, double *theta) {
    static const double shift[STARTS][2] = {{0, 0}, {-4, -1}, {3, 1}};
    for (size_t i = 0; i < GP_LENGTH + gp->inputs; i++) {
        theta[i] = prior_of(gp, i).mean;
        if (i != GP_SIGNAL)
            theta[i] += shift[number][i != GP_NOISE];
    }
}

/* Start `number`, then the last optimum if there is one; false when there are no more. */
static bool take_start(const struct gp *gp, int number, double least_noise, double *theta) {
    if (number < STARTS)
        set_start(gp, number, theta);
    else if (number == STARTS && gp->fitted)
        memcpy(theta, gp->optimum, (GP_LENGTH + gp->inputs) * sizeof *theta);
    else
        return false;
    theta[GP_NOISE] = fmin(fmax(theta[GP_NOISE], log(least_noise)), log(MOST_NOISE));
    return true;
}

/* Estimate the Hessian, at climb->at, of what `descend` minimises with all observations. It is computed with the first
 * FEW observations only. Then the likelihood's part is scaled up to all observations; the priors' part is not.
 * gradient, moved and scratch: [parameters]. */
static void estimate_hessian(struct climb *climb, double *gradient, double *moved, double *scratch, double *hessian) {
    const size_t n = GP_LENGTH + climb->gp->inputs;
    const double more = (double)climb->gp->n / FEW;
    climb->n = FEW;
    climb->best = HUGE_VAL; /* at stays */
    memcpy(moved, climb->at, n * sizeof *moved);
    descend((unsigned)n, moved, gradient, climb);
    for (size_t j = 0; j < n; j++) {
        const double step = moved[j] + DIFFERENCE > climb->high[j] ? -DIFFERENCE : DIFFERENCE;
        moved[j] += step;
        descend((unsigned)n, moved, scratch, climb);
        moved[j] = climb->at[j];
        for (size_t i = 0; i < n; i++)
            hessian[j * n + i] = more * (scratch[i] - gradient[i]) / step;
    }
    for (size_t j = 0; j < n; j++) {
        const double sd = prior_of(climb->gp, j).sd;
        for (size_t i = 0; i < j; i++)
            hessian[j * n + i] = hessian[i * n + j] = (hessian[j * n + i] + hessian[i * n + j]) / 2;
        hessian[j * n + j] -= (more - 1) / (sd * sd);
    }
}

/* Climb on from climb->at with all observations. */
static enum status climb_on(struct climb *climb, struct error *err) {
    const size_t n = GP_LENGTH + climb->gp->inputs;
    double *block = calloc(n * n + n + QUASI_NEWTON_SCRATCH(n), sizeof *block);
    if (!block)
        return error_no_memory(err);
    double *x = block + n * n, *scratch = x + n;
    const struct quasi_newton problem = {.n = n,
                                         .value = descend,
                                         .context = climb,
                                         .low = climb->low,
                                         .high = climb->high,
                                         .tolerance = TOLERANCE,
                                         .evaluations = FULL_STEPS};
    estimate_hessian(climb, scratch, scratch + n, scratch + 2 * n, block);
    climb->n = climb->gp->n;
    climb->best = -HUGE_VAL;
    memcpy(x, climb->at, n * sizeof *x);
    quasi_newton_minimise(&problem, x, block, scratch);
    free(block);
    return ST_OK;
}

/* Climb from every start on the first FEW observations. Then take the end that is best for all observations, and climb
 * on from there. start and winner are scratch. */
static enum status climb_all(struct climb *climb, nlopt_opt opt, double least_noise, double *start, double *winner,
                             struct error *err) {
    struct gp *gp = climb->gp;
    size_t bytes = (GP_LENGTH + gp->inputs) * sizeof *start;
    bool few = gp->n > FEW;
    double best = -HUGE_VAL;
    for (int s = 0; take_start(gp, s, least_noise, start); s++) {
        climb->n = few ? FEW : gp->n;
        climb->best = -HUGE_VAL;
        memcpy(climb->at, start, bytes);
        climb_from(opt, FEW_STEPS, start);
        double value = climb->best;
        if (few) {
            climb->n = gp->n;
            climb->best = HUGE_VAL; /* at stays */
            value = -descend((unsigned)(GP_LENGTH + gp->inputs), climb->at, NULL, climb);
        }
        if (s == 0 || value > best) {
            best = value;
            memcpy(winner, climb->at, bytes);
        }
    }
    climb->best = best;
    memcpy(climb->at, winner, bytes);
    return few ? climb_on(climb, err) : ST_OK;
}

/* Choose theta with at least this much noise and condition on it. */
static enum status choose(struct gp *gp, double least_noise, struct error *err) {
    size_t parameters = GP_LENGTH + gp->inputs;
    struct climb climb = {.gp = gp};
    double *scratch = calloc(5 * parameters, sizeof *scratch);
    nlopt_opt opt = nlopt_create(NLOPT_LD_LBFGS, (unsigned)parameters);
    enum status st = ST_OK;
    if (!scratch || !opt) {
        st = error_no_memory(err);
    } else {
        double *low = scratch + 3 * parameters, *high = low + parameters;
        climb.at = scratch + parameters;
        climb.low = low;
        climb.high = high;
        set_bounds(parameters, least_noise, low, high);
        nlopt_set_lower_bounds(opt, low);
        nlopt_set_upper_bounds(opt, high);
        nlopt_set_min_objective(opt, descend, &climb);
        nlopt_set_ftol_abs(opt, TOLERANCE);
        st = climb_all(&climb, opt, least_noise, scratch, scratch + 2 * parameters, err);
        memcpy(gp->theta, climb.at, parameters * sizeof *climb.at);
        if (!st)
            st = gp_factorise(gp, gp->theta, gp->n, false, err);
    }
    nlopt_destroy(opt);
    free(scratch);
    return st;
}

enum status gp_fit(struct gp *gp, const struct gp_data *data, struct error *err) {
    double least_noise = LEAST_NOISE;
    enum status st = gp_load(gp, data, err);
    for (int i = 0; i < REFITS && !st; i++) {
        st = choose(gp, least_noise, err);
        if (st || gp->jitter == 0)
            break;
        least_noise = fmin(10 * gp->jitter, MOST_NOISE);
    }
    if (!st) {
        memcpy(gp->optimum, gp->theta, (GP_LENGTH + gp->inputs) * sizeof *gp->theta);
        gp->fitted = true;
    }
    return st;
}
