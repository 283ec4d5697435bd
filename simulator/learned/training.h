/* Fitting: what the kinds share, and the loop for those that have gradients.
 *
 * Threads: a struct training belongs to one thread at a time. */
#ifndef SIMULATOR_LEARNED_TRAINING_H
#define SIMULATOR_LEARNED_TRAINING_H

#include <stdbool.h>

#include "base/error.h"
#include "simulator/learned/loss.h"
#include "simulator/learned/network.h"
#include "simulator/learned/normalise.h"
#include "simulator/learned/ranker_options.h"
#include "simulator/learned/sample.h"

struct training {
    const struct ranker_options *options;
    struct loss loss;
    double rate; /* the learning rate to use */
    struct sample sample;
    uint32_t epochs, best_epoch; /* of the fit; best_epoch 0: the start was best */
};

/* Is what the validation examples say now the best so far? Where they say nothing (NaN), the latest is the best. */
struct judge {
    double best;
};
bool judge_is_better(struct judge *judge, double error);

bool training_is_cancelled(const struct training *training);

/* Fit parameters[network->parameters], which hold the start. Scores are fold.base plus the network's. With
 * `stay_near`, decay draws to the start instead of to zero. Fails: ST_NUMERIC, ST_CANCELLED, ST_NO_MEMORY. */
enum status network_fit(const struct neural_network *network, const struct normalisation *normalisation,
                        struct training *training, bool stay_near, double *parameters, struct error *err);

#endif
