/* O(n_shards) with some 2,000 multiplications a row. */
#include "simulator/learned/frame.h"

#include <string.h>

/* Deviation of the last layer's weights at the start. */
static const double NEAR_ZERO = 0.01;

void frame_init(double *parameters, struct rng *rng) {
    memset(parameters, 0, FRAME_PARAMETERS * sizeof *parameters);
    dense_init(parameters + FRAME_AT_SHARD_1, FEATURE_SHARD_COUNT, FRAME_SHARD, rng);
    dense_init(parameters + FRAME_AT_SHARD_2, FRAME_SHARD, FRAME_SHARD, rng);
    dense_init(parameters + FRAME_AT_GLOBAL, FEATURE_GLOBAL_COUNT, FRAME_GLOBAL, rng);
    dense_init(parameters + FRAME_AT_HIDDEN, FRAME_JOINED, FRAME_HIDDEN, rng);
    for (size_t k = 0; k < FRAME_HIDDEN; k++)
        parameters[FRAME_AT_SUM + k] = NEAR_ZERO * rng_normal(rng);
}

/* ---- forward ---- */

bool frame_start(struct frame *f, const struct network_input *input, struct arena *arena) {
    f->shard_1 = arena_alloc(arena, input->n_shards * FRAME_SHARD, sizeof *f->shard_1);
    f->shard_2 = arena_alloc(arena, input->n_shards * FRAME_SHARD, sizeof *f->shard_2);
    f->places = arena_alloc(arena, (size_t)input->n_variables * FRAME_PLACE, sizeof *f->places);
    f->pooling =
        (struct pooling){.n = input->n_shards,
                         .width = FRAME_SHARD,
                         .n_places = input->n_variables,
                         .place = input->variable,
                         .weight = input->weight,
                         .share = arena_alloc(arena, input->n_shards, sizeof *f->pooling.share),
                         .top = arena_alloc(arena, (size_t)input->n_variables * FRAME_SHARD, sizeof *f->pooling.top)};
    return f->shard_1 && f->shard_2 && f->places && f->pooling.share && f->pooling.top;
}

void frame_encode(const double *parameters, const struct network_input *input, struct frame *f) {
    const size_t n = input->n_shards;
    dense_forward(parameters + FRAME_AT_SHARD_1, n, FEATURE_SHARD_COUNT, FRAME_SHARD, input->shards, f->shard_1);
    tanh_forward(n * FRAME_SHARD, f->shard_1);
    dense_forward(parameters + FRAME_AT_SHARD_2, n, FRAME_SHARD, FRAME_SHARD, f->shard_1, f->shard_2);
    tanh_forward(n * FRAME_SHARD, f->shard_2);
    pooling_forward(&f->pooling, f->shard_2, f->places);
}

double frame_score(const double *parameters, const struct network_input *input, struct frame *f) {
    double *global = f->joined + FRAME_READOUT, score = parameters[FRAME_AT_BIAS];
    dense_forward(parameters + FRAME_AT_GLOBAL, 1, FEATURE_GLOBAL_COUNT, FRAME_GLOBAL, input->global, global);
    tanh_forward(FRAME_GLOBAL, global);
    dense_forward(parameters + FRAME_AT_HIDDEN, 1, FRAME_JOINED, FRAME_HIDDEN, f->joined, f->hidden);
    tanh_forward(FRAME_HIDDEN, f->hidden);
    for (size_t k = 0; k < FRAME_HIDDEN; k++)
        score += parameters[FRAME_AT_SUM + k] * f->hidden[k];
    for (size_t k = 0; k < FEATURE_GLOBAL_COUNT; k++)
        score += parameters[FRAME_AT_DIRECT + k] * input->global[k];
    return score;
}

/* ---- backward ---- */

bool frame_slopes_start(struct frame_slopes *s, const struct network_input *input, struct arena *arena) {
    s->shard_1 = arena_alloc(arena, input->n_shards * FRAME_SHARD, sizeof *s->shard_1);
    s->shard_2 = arena_alloc(arena, input->n_shards * FRAME_SHARD, sizeof *s->shard_2);
    s->places = arena_alloc(arena, (size_t)input->n_variables * FRAME_PLACE, sizeof *s->places);
    memset(s->joined, 0, sizeof s->joined);
    return s->shard_1 && s->shard_2 && s->places;
}

void frame_score_backward(const double *parameters, const struct network_input *input, const struct frame *f,
                          double slope, double *gradient, struct frame_slopes *s) {
    double hidden[FRAME_HIDDEN], *global = s->joined + FRAME_READOUT;
    gradient[FRAME_AT_BIAS] += slope;
    for (size_t k = 0; k < FEATURE_GLOBAL_COUNT; k++)
        gradient[FRAME_AT_DIRECT + k] += slope * input->global[k];
    for (size_t k = 0; k < FRAME_HIDDEN; k++) {
        gradient[FRAME_AT_SUM + k] += slope * f->hidden[k];
        hidden[k] = slope * parameters[FRAME_AT_SUM + k];
    }
    tanh_backward(FRAME_HIDDEN, f->hidden, hidden);
    dense_backward(parameters + FRAME_AT_HIDDEN, 1, FRAME_JOINED, FRAME_HIDDEN, f->joined, hidden,
                   gradient + FRAME_AT_HIDDEN, s->joined);
    tanh_backward(FRAME_GLOBAL, f->joined + FRAME_READOUT, global);
    dense_backward(parameters + FRAME_AT_GLOBAL, 1, FEATURE_GLOBAL_COUNT, FRAME_GLOBAL, input->global, global,
                   gradient + FRAME_AT_GLOBAL, NULL);
}

void frame_encode_backward(const double *parameters, const struct network_input *input, const struct frame *f,
                           double *gradient, struct frame_slopes *s) {
    const size_t n = input->n_shards;
    pooling_backward(&f->pooling, s->places, s->shard_2);
    tanh_backward(n * FRAME_SHARD, f->shard_2, s->shard_2);
    dense_backward(parameters + FRAME_AT_SHARD_2, n, FRAME_SHARD, FRAME_SHARD, f->shard_1, s->shard_2,
                   gradient + FRAME_AT_SHARD_2, s->shard_1);
    tanh_backward(n * FRAME_SHARD, f->shard_1, s->shard_1);
    dense_backward(parameters + FRAME_AT_SHARD_1, n, FEATURE_SHARD_COUNT, FRAME_SHARD, input->shards, s->shard_1,
                   gradient + FRAME_AT_SHARD_1, NULL);
}
