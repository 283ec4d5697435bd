/* Trials into the dataset: before they run and after.
 *
 * Between the two calls the trial stands in the dataset as running; what a killed process left so is reconciled when
 * its session is resumed. */
#ifndef TUNER_TRIALS_H
#define TUNER_TRIALS_H

#include "base/error.h"
#include "dataset/store.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"

/* How a trial went. */
struct tune_outcome {
    enum record_state state; /* complete, failed or infeasible */
    size_t n;                /* iterations */
    const double *iterations_us;
    const char *environment; /* JSON, or NULL */
    const char *reason;      /* when not complete */
};

struct trial_start {
    const struct model *model;
    const struct cluster *cluster;
    const struct strategy *strategy;
    const char *session; /* NULL: a trial on its own */
    const char *proposer, *runner;
    uint64_t round, seed;
    double predicted_us;
};

/* Put what it is about and the trial itself, running. Fails: as the store. */
enum status trial_record_start(struct store *store, const struct trial_start *start, int64_t *trial, struct error *err);

/* Every iteration with its median and interval, or the reason of failure. Fails: as the store. */
enum status trial_record_end(struct store *store, int64_t trial, const struct tune_outcome *outcome, struct error *err);

#endif
