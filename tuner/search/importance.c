/* See importance.h. */
#include "tuner/search/importance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tuner/search/gaussian_process.h"

static const double ALIKE = 1e-12; /* variance of logarithms of times */

struct fitted {
    size_t n;
    double *x, *y, *mean; /* rows of SKETCH_COLUMNS; log times; fitted log times */
    double *swapped, *swapped_mean, *variance;
    struct gp *gp;
};

static void fitted_release(struct fitted *f) {
    gp_free(f->gp);
    free(f->x);
}

static double variance_of(size_t n, const double *values) {
    double mean = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        mean += values[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (values[i] - mean) * (values[i] - mean) / (double)n;
    return squares;
}

static enum status fit(struct fitted *f, size_t n, const struct advisor_observation *observed, struct error *err) {
    size_t most = n < IMPORTANCE_MOST ? n : IMPORTANCE_MOST;
    f->x = calloc(most * (2 * SKETCH_COLUMNS + 4) + 1, sizeof *f->x);
    if (!f->x)
        return error_no_memory(err);
    f->swapped = f->x + most * SKETCH_COLUMNS;
    f->y = f->swapped + most * SKETCH_COLUMNS;
    f->mean = f->y + most;
    f->swapped_mean = f->mean + most;
    f->variance = f->swapped_mean + most;
    for (size_t i = 0; i < n && f->n < most; i++) {
        if (!isfinite(observed[i].us))
            continue;
        double *x = f->x + f->n * SKETCH_COLUMNS;
        sketch_of(observed[i].features, x);
        for (size_t k = 0; k < SKETCH_COLUMNS; k++)
            x[k] = sketch_knobs()[k] == SKETCH_TIMELINE ? 0 : x[k];
        f->y[f->n++] = log(observed[i].us);
    }
    if (f->n < IMPORTANCE_LEAST)
        return error_set(err, ST_NOT_FOUND, "%zu completed trials are too few to find out which knobs mattered", f->n);
    if (!(variance_of(f->n, f->y) > ALIKE))
        return error_set(err, ST_NOT_FOUND, "all trials took about the same time");
    const struct gp_data data = {.n = f->n, .x = f->x, .y = f->y};
    enum status st = gp_new(SKETCH_COLUMNS, sketch_knobs(), &f->gp, err);
    if (!st)
        st = gp_fit(f->gp, &data, err);
    if (!st)
        gp_predict(f->gp, f->n, f->x, NULL, f->mean, f->variance);
    return st;
}

/* Half the mean squared change of the fitted value when a trial gets the knob's columns of another trial. */
static double total_effect(struct fitted *f, size_t knob) {
    const size_t *knobs = sketch_knobs();
    double squares = 0;
    for (size_t shift = 1; shift < f->n; shift++) {
        memcpy(f->swapped, f->x, f->n * SKETCH_COLUMNS * sizeof *f->x);
        for (size_t i = 0; i < f->n; i++)
            for (size_t k = 0; k < SKETCH_COLUMNS; k++)
                if (knobs[k] == knob)
                    f->swapped[i * SKETCH_COLUMNS + k] = f->x[(i + shift) % f->n * SKETCH_COLUMNS + k];
        gp_predict(f->gp, f->n, f->swapped, NULL, f->swapped_mean, f->variance);
        for (size_t i = 0; i < f->n; i++)
            squares += (f->swapped_mean[i] - f->mean[i]) * (f->swapped_mean[i] - f->mean[i]);
    }
    return squares / 2 / (double)(f->n * (f->n - 1));
}

enum status importance_of(size_t n, const struct advisor_observation *observed, double out[SKETCH_KNOBS],
                          struct error *err) {
    struct fitted f = {0};
    enum status st = fit(&f, n, observed, err);
    double variance = st ? 0 : variance_of(f.n, f.mean);
    if (!st && !(variance > 0))
        st = error_set(err, ST_NOT_FOUND, "the trials differ by noise alone");
    for (size_t knob = 0; knob < SKETCH_KNOBS && !st; knob++)
        out[knob] = fmin(total_effect(&f, knob) / variance, 1); /* an estimate of a share may be above 1 */
    fitted_release(&f);
    return st;
}
