/* A scorer with parameters and gradients: what training needs of a model, and all it knows of it.
 *
 * A network sees one example at a time, already normalised, and keeps nothing between calls but what is in `scratch`.
 * Parameters and gradients are flat arrays of neural_network.parameters numbers, so that Adam, weight decay,
 * saving and numeric gradient checks need no knowledge of layers.
 * Matrix work is cblas_d* with OpenBLAS held to one thread, which makes it deterministic. */
#ifndef SIMULATOR_LEARNED_NETWORK_H
#define SIMULATOR_LEARNED_NETWORK_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/rng.h"
#include "featurize/features.h"
#include "simulator/learned/ranker_options.h"

/* One example's normalised input, as in struct features. Borrowed. */
struct network_input {
    const double *global; /* [FEATURE_GLOBAL_COUNT] */
    uint32_t n_variables; /* at least 1 */
    size_t n_shards;
    const double *shards;     /* row-major n_shards x FEATURE_SHARD_COUNT */
    const uint32_t *variable; /* [n_shards] */
    const double *weight;     /* [n_shards] */
    size_t n_edges;
    const struct feature_edge *edges;
};

struct neural_network {
    enum ranker_kind kind;
    size_t parameters;
    /* Random start; the network then scores near 0 for every input. */
    void (*init)(double *parameters, struct rng *rng);
    /* What backward needs is left in `scratch`, which the callee clears first: *state is good until the next forward
     * with the same scratch. Fails: ST_NO_MEMORY. */
    enum status (*forward)(const double *parameters, const struct network_input *input, struct arena *scratch,
                           void **state, double *score, struct error *err);
    /* Adds d score / d parameters, times `slope`, to gradient. `state` is what forward left. Fails: ST_NO_MEMORY. */
    enum status (*backward)(const double *parameters, const struct network_input *input, struct arena *scratch,
                            void *state, double slope, double *gradient, struct error *err);
};

extern const struct neural_network network_linear, network_rnn, network_gat;

#endif
