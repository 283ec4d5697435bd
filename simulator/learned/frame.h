/* What the networks of shards have in common: the first layers, which turn shards into a vector for each variable (its
 * place), and the last ones, which turn what the network reads out of the places into a score.
 *
 *   shard rows -> two tanh layers -> mean and maximum of a variable's rows -> PLACES (n_variables x FRAME_PLACE)
 *   PLACES -> the network's own layers -> READ-OUT (FRAME_READOUT)
 *   global -> a tanh layer, beside the read-out -> a tanh layer: FRAME_HIDDEN -> a weighted sum
 *   score = that sum + bias + direct . global
 *
 * The direct weights let the global features alone carry a linear model; they and the bias start at 0 and the sum's
 * weights near 0, so that an untrained network says 0, and training begins with what is linear.
 * Mean and maximum, not sum: a variable's shards are counted by a feature of its own, and sums would leave the range of
 * the training data when a variable has more shards than any there. */
#ifndef SIMULATOR_LEARNED_FRAME_H
#define SIMULATOR_LEARNED_FRAME_H

#include <stdbool.h>

#include "simulator/learned/layers.h"
#include "simulator/learned/network.h"

enum {
    FRAME_SHARD = 24,
    FRAME_PLACE = 2 * FRAME_SHARD,
    FRAME_READOUT = 64,
    FRAME_HIDDEN = 16,
    FRAME_GLOBAL = 32,
    FRAME_JOINED = FRAME_READOUT + FRAME_GLOBAL
};

/* Where the frame's parameters begin; a network's own follow at FRAME_PARAMETERS. */
enum {
    FRAME_AT_SHARD_1 = 0,
    FRAME_AT_SHARD_2 = FRAME_AT_SHARD_1 + DENSE_PARAMETERS(FEATURE_SHARD_COUNT, FRAME_SHARD),
    FRAME_AT_GLOBAL = FRAME_AT_SHARD_2 + DENSE_PARAMETERS(FRAME_SHARD, FRAME_SHARD),
    FRAME_AT_HIDDEN = FRAME_AT_GLOBAL + DENSE_PARAMETERS(FEATURE_GLOBAL_COUNT, FRAME_GLOBAL),
    FRAME_AT_SUM = FRAME_AT_HIDDEN + DENSE_PARAMETERS(FRAME_JOINED, FRAME_HIDDEN),
    FRAME_AT_BIAS = FRAME_AT_SUM + FRAME_HIDDEN,
    FRAME_AT_DIRECT = FRAME_AT_BIAS + 1,
    FRAME_PARAMETERS = FRAME_AT_DIRECT + FEATURE_GLOBAL_COUNT
};

/* What forward leaves for backward, and what passes between the frame and the network's own layers. */
struct frame {
    double *shard_1, *shard_2; /* n_shards x FRAME_SHARD: the two layers of the shards */
    struct pooling pooling;
    double *places;              /* n_variables x FRAME_PLACE */
    double joined[FRAME_JOINED]; /* the read-out, which the network fills, then the global layer */
    double hidden[FRAME_HIDDEN];
};

/* The gradients of the loss by these. */
struct frame_slopes {
    double *shard_1, *shard_2;
    double *places; /* the network adds to it; 0 before */
    double joined[FRAME_JOINED];
};

void frame_init(double *parameters, struct rng *rng);

/* Room for an example; false when memory is out. */
bool frame_start(struct frame *frame, const struct network_input *input, struct arena *arena);
bool frame_slopes_start(struct frame_slopes *slopes, const struct network_input *input, struct arena *arena);

/* frame->places. O(n_shards). */
void frame_encode(const double *parameters, const struct network_input *input, struct frame *frame);
/* The score, from the read-out in frame->joined. */
double frame_score(const double *parameters, const struct network_input *input, struct frame *frame);

/* slopes->joined, from d loss / d score. */
void frame_score_backward(const double *parameters, const struct network_input *input, const struct frame *frame,
                          double slope, double *gradient, struct frame_slopes *slopes);
/* From slopes->places. */
void frame_encode_backward(const double *parameters, const struct network_input *input, const struct frame *frame,
                           double *gradient, struct frame_slopes *slopes);

#endif
