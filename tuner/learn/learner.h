/* A session's ranker: one that was learned elsewhere, trained on with the session's own trials.
 *
 * Training runs in a thread of its own while a trial runs, so that the cluster waits for it only where training takes
 * longer than a trial: training on all earlier trials begins with a trial and is finished when it ends. The result
 * depends on those trials alone, so a resumed session finds the same ranker again. Threads: begin and end belong to one
 * thread; between them the trials' strategies must stay as they are. */
#ifndef TUNER_LEARN_LEARNER_H
#define TUNER_LEARN_LEARNER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "featurize/features.h"
#include "simulator/learned/ranker.h"
#include "tuner/predict/predictor.h"

struct learner_trial {
    const struct strategy *strategy;
    double us; /* INFINITY: did not complete, nothing to learn */
};

struct learner {
    const struct ranker *from; /* borrowed; NULL: the session has no ranker, and nothing here does anything */
    struct ranker *tuned;      /* NULL until enough was learned */
    struct predictor described;
    uint64_t seed;
    const atomic_int *cancel; /* the session's; NULL: none */
    size_t n_features;        /* of the first trials; n_shards = 0: could not be predicted */
    struct features *features;
    size_t n; /* the job */
    struct learner_trial *trials;
    bool running;
    pthread_t thread;
};

/* Trials before a ranker is trained on: with fewer it ranks no better for it, and a search takes longer (make evaluate,
 * tables transfer and search), since the advisor's process learns from them already. */
enum { LEARNER_LEAST = 24 };

/* Fails: as predictor_init. */
enum status learner_init(struct learner *out, const struct ranker *from, const struct model *model,
                         const struct cluster *cluster, uint64_t seed, struct error *err);
void learner_release(struct learner *learner);

/* Begin to train on with trials[0..n), which begin with those of the last time; what still runs of that time is waited
 * for. Where no thread can be had it trains at once. Fails: ST_NO_MEMORY. */
enum status learner_begin(struct learner *learner, size_t n, const struct learner_trial *trials, struct error *err);

/* Wait for it. What could not be trained leaves the ranker of before. */
void learner_end(struct learner *learner);

/* The ranker to use now; NULL without one. */
const struct ranker *learner_ranker(const struct learner *learner);

#endif
