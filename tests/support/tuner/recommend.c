/* See recommend.h. */
#include "tests/support/tuner/recommend.h"

#include <math.h>

#include "tuner/search/gaussian_process.h"

static enum status fit(const struct bayes_space *space, const struct bayes_options *options,
                       const struct bayes_history *h, struct gp *gp, struct arena *arena, struct gp_data *data,
                       double *mean, struct error *err) {
    double *x = arena_alloc(arena, h->n * space->columns, sizeof *x);
    double *columns = arena_alloc(arena, 3 * h->n, sizeof *columns);
    if (!x || !columns)
        return error_no_memory(err);
    double *y = columns, *prior = y + h->n, *noise = prior + h->n;
    enum status status = ST_OK;
    for (size_t i = 0; i < h->n && status == ST_OK; i++) {
        const struct bayes_trial *t = &h->trials[i];
        y[i] = t->y;
        prior[i] = options->prior ? options->prior(options->context, t->x) : 0;
        noise[i] = t->noise;
        status = bayes_space_encode(space, t->x, x + i * space->columns, err);
    }
    *data = (struct gp_data){.n = h->n, .x = x, .y = y, .prior = prior, .noise = noise};
    if (status == ST_OK)
        status = gp_fit(gp, data, err);
    if (status == ST_OK)
        gp_observed_means(gp, mean);
    return status;
}

static size_t least_mean(const struct bayes_history *h, const double *mean) {
    size_t best = SIZE_MAX;
    bool all_elsewhere = true;
    for (size_t i = 0; i < h->n; i++)
        all_elsewhere &= h->trials[i].elsewhere;
    for (size_t i = 0; i < h->n; i++)
        if ((all_elsewhere || !h->trials[i].elsewhere) && (best == SIZE_MAX || mean[i] < mean[best]))
            best = i;
    return best;
}

enum status recommend(size_t n, const struct bayes_dimension *dimensions, const struct bayes_options *options,
                      const struct bayes_history *history, struct recommendation *out, struct error *err) {
    struct arena arena = {0};
    struct bayes_space space;
    struct gp_data data;
    struct gp *gp = NULL;
    double *mean = arena_alloc(&arena, history->n, sizeof *mean);
    enum status status = mean ? bayes_space_init(&space, n, dimensions, &arena, err) : error_no_memory(err);
    if (status == ST_OK)
        status = gp_new(space.columns, space.input_of, &gp, err);
    if (status == ST_OK)
        status = fit(&space, options, history, gp, &arena, &data, mean, err);
    if (status == ST_OK) {
        const size_t best = least_mean(history, mean);
        double expected, variance;
        gp_predict(gp, 1, data.x + best * space.columns, &data.prior[best], &expected, &variance);
        *out = (struct recommendation){best, expected, sqrt(variance)};
    }
    gp_free(gp);
    arena_release(&arena);
    return status;
}
