/* See advisor.h. What the process sees of a strategy are its knobs and a few terms of its plan (SKETCH_COLUMNS), scaled
 * so that ten doublings of a size and the whole of a share are both 1. Columns of one knob share a length scale,
 * because few trials cannot tell one for each column. */
#include "tuner/search/advisor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tuner/search/acquisition.h"
#include "tuner/search/gaussian_process.h"
#include "tuner/search/sketch.h"

static const double LIKE = 0.1; /* squared distance at which likeness has fallen to 1/e */

/* From so many trials on the parameters of the process are fitted: a few dozen are too few for eight length scales. On
 * recorded trials, after 8 to 50 of them, fitted parameters predicted times worse than the prior corrected by its mean
 * error alone; the fixed parameters of `adapt` predicted them better (`make evaluate`, ablation). */
enum { FITTED_FROM = 64 };

struct advisor {
    const struct advisor_options *options;
    size_t n_observed, n;
    double *x_observed, *x; /* rows of SKETCH_COLUMNS */
    double *prior_observed, *prior, *y;
    double *mean, *variance, *likeness, *score;
    bool *taken;
    struct gp *gp;
    double best; /* log of the incumbent's time */
};

struct advisor_options advisor_default_options(void) {
    return (struct advisor_options){.process = true, .diversity = 0.02};
}

static enum status prior_of(const struct advisor_options *o, const struct features *f, double *out, struct error *err) {
    if (o->ranker)
        return ranker_score(o->ranker, f, out, err);
    *out = log(f->timeline_us);
    return ST_OK;
}

static void advisor_release(struct advisor *a) {
    gp_free(a->gp);
    free(a->x_observed);
    free(a->taken);
}

/* Allocate one block for all arrays of numbers. */
static enum status allocate(struct advisor *a, struct error *err) {
    size_t rows = a->n_observed + a->n;
    double *block = calloc(rows * (SKETCH_COLUMNS + 2) + a->n_observed + 4 * a->n, sizeof *block);
    a->taken = calloc(a->n, sizeof *a->taken);
    a->x_observed = block;
    if (!block || !a->taken)
        return error_no_memory(err);
    a->x = a->x_observed + a->n_observed * SKETCH_COLUMNS;
    a->prior_observed = a->x + a->n * SKETCH_COLUMNS;
    a->prior = a->prior_observed + a->n_observed;
    a->y = a->prior + a->n;
    a->mean = a->y + a->n_observed;
    a->variance = a->mean + a->n;
    a->likeness = a->variance + a->n;
    a->score = a->likeness + a->n;
    return ST_OK;
}

/* The time that a trial which did not complete counts as: twice the slowest that did. */
static double failed_us(size_t n, const struct advisor_observation *observed) {
    double slowest = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(observed[i].us))
            slowest = fmax(slowest, observed[i].us);
    return 2 * slowest;
}

static enum status fill(struct advisor *a, const struct advisor_observation *observed,
                        const struct features *const *candidates, struct error *err) {
    double failed = failed_us(a->n_observed, observed);
    enum status st = ST_OK;
    for (size_t i = 0; i < a->n_observed && !st; i++) {
        sketch_of(observed[i].features, a->x_observed + i * SKETCH_COLUMNS);
        a->y[i] = log(isfinite(observed[i].us) ? observed[i].us : failed);
        st = prior_of(a->options, observed[i].features, &a->prior_observed[i], err);
        a->best = fmin(a->best, a->y[i]);
    }
    for (size_t i = 0; i < a->n && !st; i++) {
        sketch_of(candidates[i], a->x + i * SKETCH_COLUMNS);
        st = prior_of(a->options, candidates[i], &a->prior[i], err);
    }
    return st;
}

/* Take row x as tried. A candidate's likeness is its likeness to the nearest row that was tried. */
static void add_likeness(struct advisor *a, const double *x) {
    for (size_t i = 0; i < a->n; i++) {
        double squares = 0;
        for (size_t k = 0; k < SKETCH_COLUMNS; k++)
            squares += (a->x[i * SKETCH_COLUMNS + k] - x[k]) * (a->x[i * SKETCH_COLUMNS + k] - x[k]);
        a->likeness[i] = fmax(a->likeness[i], exp(-squares / LIKE));
    }
}

/* With fewer than FITTED_FROM trials the parameters are fixed: half of the variance of the prior's error depends on the
 * columns, half is noise. */
static enum status adapt(struct gp *gp, const struct gp_data *data, struct error *err) {
    double theta[GP_LENGTH + SKETCH_KNOBS];
    if (data->n >= FITTED_FROM)
        return gp_fit(gp, data, err);
    theta[GP_SIGNAL] = theta[GP_NOISE] = log(0.5);
    for (size_t k = 0; k < SKETCH_KNOBS; k++)
        theta[GP_LENGTH + k] = log(1);
    return gp_condition(gp, theta, data, err);
}

static enum status fit(struct advisor *a, size_t wanted, struct error *err) {
    const struct gp_data data = {
        .n = a->n_observed, .x = a->x_observed, .y = a->y, .prior = a->prior_observed, .room = wanted};
    enum status st = gp_new(SKETCH_COLUMNS, sketch_knobs(), &a->gp, err);
    if (!st)
        st = adapt(a->gp, &data, err);
    if (st)
        return st;
    double *means = malloc(a->n_observed * sizeof *means);
    if (!means)
        return error_no_memory(err);
    gp_observed_means(a->gp, means);
    a->best = INFINITY;
    for (size_t i = 0; i < a->n_observed; i++)
        a->best = fmin(a->best, means[i]);
    free(means);
    return ST_OK;
}

static void judge_by_process(struct advisor *a) {
    gp_predict(a->gp, a->n, a->x, a->prior, a->mean, a->variance);
    for (size_t i = 0; i < a->n; i++)
        a->score[i] = acquisition_log_ei(a->best, a->mean[i], sqrt(fmax(a->variance[i], 0))) -
                      100 * a->options->diversity * a->likeness[i];
}

/* The prior, shifted by the trials' mean error. */
static void judge_by_prior(struct advisor *a) {
    double off = 0;
    for (size_t i = 0; i < a->n_observed; i++)
        off += (a->y[i] - a->prior_observed[i]) / (double)a->n_observed;
    for (size_t i = 0; i < a->n; i++) {
        a->mean[i] = a->prior[i] + off;
        a->variance[i] = NAN;
        a->score[i] = -a->prior[i] - a->options->diversity * a->likeness[i];
    }
}

static size_t best_free(const struct advisor *a) {
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < a->n; i++)
        if (!a->taken[i] && (best == SIZE_MAX || a->score[i] > a->score[best]))
            best = i;
    return best;
}

static double largest_gain(const struct advisor *a) {
    double most = -INFINITY;
    for (size_t i = 0; i < a->n; i++)
        most = fmax(most, acquisition_log_ei(a->best, a->mean[i], sqrt(fmax(a->variance[i], 0))));
    return exp(most);
}

static void report(const struct advisor *a, struct advice *out) {
    for (size_t i = 0; out && i < a->n; i++)
        out[i] = (struct advice){exp(a->mean[i]), sqrt(a->variance[i]), a->score[i]};
}

static enum status choose(struct advisor *a, size_t wanted, size_t *order, struct advice *out, double *gain,
                          struct error *err) {
    enum status st = ST_OK;
    for (size_t chosen = 0; chosen < wanted && !st; chosen++) {
        if (a->gp)
            judge_by_process(a);
        else
            judge_by_prior(a);
        size_t next = best_free(a);
        if (!chosen) {
            report(a, out);
            if (gain)
                *gain = a->gp ? largest_gain(a) : INFINITY;
        }
        order[chosen] = next;
        a->taken[next] = true;
        add_likeness(a, a->x + next * SKETCH_COLUMNS);
        if (a->gp && chosen + 1 < wanted)
            st = gp_believe(a->gp, a->x + next * SKETCH_COLUMNS, err);
    }
    return st;
}

enum status advisor_rank(const struct advisor_options *options, size_t n_observed,
                         const struct advisor_observation *observed, size_t n, const struct features *const *candidates,
                         size_t wanted, size_t *order, struct advice *out, double *gain, struct error *err) {
    struct advisor a = {.options = options, .n_observed = n_observed, .n = n, .best = INFINITY};
    if (!n || !wanted || wanted > n)
        return error_set(err, ST_INVALID, "advisor: %zu wanted of %zu candidates", wanted, n);
    if (n_observed && failed_us(n_observed, observed) <= 0)
        a.n_observed = 0;
    enum status st = allocate(&a, err);
    if (!st)
        st = fill(&a, observed, candidates, err);
    for (size_t i = 0; i < a.n_observed && !st; i++)
        add_likeness(&a, a.x_observed + i * SKETCH_COLUMNS);
    if (!st && options->process && a.n_observed >= ADVISOR_LEAST)
        st = fit(&a, wanted, err);
    if (!st)
        st = choose(&a, wanted, order, out, gain, err);
    advisor_release(&a);
    return st;
}
