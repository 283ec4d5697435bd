/* What a ranker is made of. */
#ifndef SIMULATOR_LEARNED_RANKER_INTERNAL_H
#define SIMULATOR_LEARNED_RANKER_INTERNAL_H

#include "simulator/learned/forest.h"
#include "simulator/learned/network.h"
#include "simulator/learned/normalise.h"
#include "simulator/learned/ranker_options.h"

/* score = [log timeline_us] + shift + network(parameters, normalised features)
 *       = [log timeline_us] + shift + leaf_scale * forest(features) for trees; [...] when residual */
struct ranker {
    struct normalisation normalisation; /* of everything but trees, which have no use for it */
    struct ranker_options options;      /* kind and residual too; cancel is NULL */
    struct ranker_report report;        /* as much as writing keeps: not the seconds */
    double shift;
    double *parameters; /* [ranker_network(kind)->parameters]; NULL for trees */
    struct forest forest;
    double leaf_scale;
};

/* The network of a kind; NULL for trees. */
const struct neural_network *ranker_network(enum ranker_kind kind);

/* A ranker with zeroed parameters; NULL when memory is out. */
struct ranker *ranker_new(enum ranker_kind kind);

/* OpenBLAS to one thread, once: more would make sums depend on the machine's load, and these products are small. */
void ranker_hold_blas(void);

#endif
