/* A domain of the corpus with its lab: where methods play for real.
 *
 * Model and cluster are those of the corpus, the cluster as it was benched. What may be tried is every strategy that
 * the lab's workers can run. Functions end the program when something fails (evaluate.h). Units: microseconds.
 * Threads: one, but that a const struct stage may be read by others. */
#ifndef TESTS_EVALUATE_LIVE_STAGE_H
#define TESTS_EVALUATE_LIVE_STAGE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "dataset/store.h"
#include "simulator/learned/ranker.h"
#include "strategy/space/space.h"
#include "tests/evaluate/optuna_functions.h"
#include "tuner/learn/examples.h"
#include "tuner/predict/predictor.h"
#include "tuner/session/runners.h"

struct stage {
    const struct domain *domain;
    char words[64];  /* "decoder-four" */
    uint64_t number; /* of the domain in the corpus, for random streams */
    struct runner runner;
    struct space space;
    struct predictor predictor; /* brief, uncorrected */
    struct ranker *ranker;      /* a session's kind, trained on all domains but this one */
    double bound_us;
    struct optuna *optuna; /* NULL: there is none */
};

/* `words` is MODEL-CLUSTER by their names. Needs root and the worker program. Release with stage_release. */
void stage_init(struct stage *stage, const struct examples *corpus, const char *words, struct optuna *optuna,
                const atomic_int *cancel);
void stage_release(struct stage *stage);

/* How a trial is run, and beside whom. */
struct stage_trial {
    const struct strategy *strategy;
    double measured_us;  /* wanted; iterations follow from the prediction, within LEAST and MOST */
    double give_up_us;   /* a trial whose first iterations are all slower is ended; 0: never */
    const char *lock;    /* a file that is locked meanwhile, for other programs that measure here; NULL: none */
    struct store *store; /* where it is recorded too, with the next three; NULL: nowhere */
    const char *method;
    uint64_t seed, round;
};
enum { STAGE_LEAST = 8, STAGE_MOST = 20 };

struct stage_result {
    double us; /* median; INFINITY when it did not complete */
    size_t n;  /* iterations */
};

/* False when the user interrupted. */
bool stage_run(struct stage *stage, const struct stage_trial *trial, struct stage_result *out);

#endif
