/* The linear ranker: score = w . x + b over the normalised global features x. Parameters: w, then b. */
#include <string.h>

#include "simulator/learned/network.h"

static void linear_init(double *parameters, struct rng *rng) {
    (void)rng; /* the loss is convex in w: any start leads to the same end */
    memset(parameters, 0, (FEATURE_GLOBAL_COUNT + 1) * sizeof *parameters);
}

static enum status linear_forward(const double *parameters, const struct network_input *input, struct arena *scratch,
                                  void **state, double *score, struct error *err) {
    (void)err;
    arena_clear(scratch);
    *state = NULL;
    double sum = parameters[FEATURE_GLOBAL_COUNT];
    for (size_t k = 0; k < FEATURE_GLOBAL_COUNT; k++)
        sum += parameters[k] * input->global[k];
    *score = sum;
    return ST_OK;
}

static enum status linear_backward(const double *parameters, const struct network_input *input, struct arena *scratch,
                                   void *state, double slope, double *gradient, struct error *err) {
    (void)parameters, (void)scratch, (void)state, (void)err;
    for (size_t k = 0; k < FEATURE_GLOBAL_COUNT; k++)
        gradient[k] += slope * input->global[k];
    gradient[FEATURE_GLOBAL_COUNT] += slope;
    return ST_OK;
}

const struct neural_network network_linear = {
    .kind = RANKER_linear,
    .parameters = FEATURE_GLOBAL_COUNT + 1,
    .init = linear_init,
    .forward = linear_forward,
    .backward = linear_backward,
};
