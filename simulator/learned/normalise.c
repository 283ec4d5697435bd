/* Two passes, means and then squares about them, so that a large mean costs no digits. */
#include "simulator/learned/normalise.h"

#include <math.h>
#include <string.h>

/* Adds weight * x to mean, or weight * (x - mean)^2 to square when there is one. */
static void add_row(size_t d, const double *x, double weight, double *mean, double *square) {
    for (size_t k = 0; k < d; k++) {
        if (square)
            square[k] += weight * (x[k] - mean[k]) * (x[k] - mean[k]);
        else
            mean[k] += weight * x[k];
    }
}

static void divide(size_t d, double *x, double by) {
    for (size_t k = 0; k < d; k++)
        x[k] = by > 0 ? x[k] / by : 0;
}

/* Variances to factors. By rounding, a constant feature has a deviation of a few last digits of its mean; its factor is
 * 0. */
static void invert(size_t d, const double *mean, double *scale) {
    for (size_t k = 0; k < d; k++) {
        const double deviation = sqrt(scale[k]);
        scale[k] = deviation > 1e-9 * (1 + fabs(mean[k])) ? 1 / deviation : 0;
    }
}

static double add_all(size_t n, const struct features *const features[], struct normalisation *out, bool squares) {
    double shards = 0;
    for (size_t i = 0; i < n; i++) {
        const struct features *f = features[i];
        add_row(FEATURE_GLOBAL_COUNT, f->global, 1, out->global_mean, squares ? out->global_scale : NULL);
        for (size_t s = 0; s < f->n_shards; s++) {
            add_row(FEATURE_SHARD_COUNT, f->shards + s * FEATURE_SHARD_COUNT, f->weight[s], out->shard_mean,
                    squares ? out->shard_scale : NULL);
            shards += f->weight[s];
        }
    }
    return shards;
}

void normalisation_fit(size_t n, const struct features *const features[], struct normalisation *out) {
    *out = (struct normalisation){0};
    const double shards = add_all(n, features, out, false);
    divide(FEATURE_GLOBAL_COUNT, out->global_mean, (double)n);
    divide(FEATURE_SHARD_COUNT, out->shard_mean, shards);
    add_all(n, features, out, true);
    divide(FEATURE_GLOBAL_COUNT, out->global_scale, (double)n);
    divide(FEATURE_SHARD_COUNT, out->shard_scale, shards);
    invert(FEATURE_GLOBAL_COUNT, out->global_mean, out->global_scale);
    invert(FEATURE_SHARD_COUNT, out->shard_mean, out->shard_scale);
}

static void normalise_row(size_t d, const double *x, const double *mean, const double *scale, double *out) {
    for (size_t k = 0; k < d; k++)
        out[k] = fmax(-NORMALISE_MOST, fmin(NORMALISE_MOST, (x[k] - mean[k]) * scale[k]));
}

enum status normalise(const struct normalisation *normalisation, const struct features *features, bool whole,
                      struct arena *arena, struct network_input *out, struct error *err) {
    const size_t rows = whole ? features->n_shards : 0;
    double *global = arena_alloc(arena, FEATURE_GLOBAL_COUNT, sizeof *global);
    double *shards = arena_alloc(arena, rows, FEATURE_SHARD_COUNT * sizeof *shards);
    if (!global || !shards)
        return error_no_memory(err);
    normalise_row(FEATURE_GLOBAL_COUNT, features->global, normalisation->global_mean, normalisation->global_scale,
                  global);
    for (size_t s = 0; s < rows; s++)
        normalise_row(FEATURE_SHARD_COUNT, features->shards + s * FEATURE_SHARD_COUNT, normalisation->shard_mean,
                      normalisation->shard_scale, shards + s * FEATURE_SHARD_COUNT);
    *out = (struct network_input){.global = global,
                                  .n_variables = features->n_variables,
                                  .n_shards = rows,
                                  .shards = shards,
                                  .variable = features->variable,
                                  .weight = features->weight,
                                  .n_edges = whole ? features->n_edges : 0,
                                  .edges = features->edges};
    return ST_OK;
}
