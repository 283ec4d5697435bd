/* A session's ranker: one that was learned elsewhere and is trained further with the session's own trials.
 *
 * Training runs in a thread of its own while a trial runs, so the cluster waits only if training takes longer than the
 * trial. Training on all earlier trials begins when a trial begins; its result is used when the trial has ended. The
 * result depends on those trials alone, so a resumed session finds the same ranker again. Threads: begin and end belong
 * to one thread; between them the trials' strategies must stay as they are. */
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
    const struct ranker *from; /* borrowed; NULL: the session has no ranker, and all functions here do nothing */
    struct ranker *tuned;      /* NULL until enough was learned */
    struct predictor described;
    uint64_t seed;
    const atomic_int *cancel; /* the session's; NULL: none */
    size_t n_features;        /* of the first trials; one with n_shards = 0 could not be predicted */
    struct features *features;
    size_t n; /* the job */
    struct learner_trial *trials;
    bool running;
    pthread_t thread;
};

/* So many trials must be there before a ranker is trained further. With fewer it ranks no better, and a search takes
 * longer (make evaluate, tables transfer and search), because the advisor's Gaussian process has learned from them
 * already. */
enum { LEARNER_LEAST = 24 };

/* Fails: as predictor_init. */
enum status learner_init(struct learner *out, const struct ranker *from, const struct model *model,
                         const struct cluster *cluster, uint64_t seed, struct error *err);
void learner_release(struct learner *learner);

/* Begin to train further with trials[0..n), which begin with the trials of the last call. Waits for a training of that
 * call that still runs. Where no thread can be started it trains at once. Fails: ST_NO_MEMORY. */
enum status learner_begin(struct learner *learner, size_t n, const struct learner_trial *trials, struct error *err);

/* Wait for the training. If it failed, the ranker stays what it was. */
void learner_end(struct learner *learner);

/* The ranker to use now; NULL without one. */
const struct ranker *learner_ranker(const struct learner *learner);

#endif
