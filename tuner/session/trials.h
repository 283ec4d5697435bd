/* The order for a trial, its outcome, and recording both in the dataset.
 *
 * Between trial_record_start and trial_record_end the dataset has the trial as waiting or running. A process that is
 * killed leaves it so; store_session_reconcile ends it when the session is resumed. Units: microseconds. */
#ifndef TUNER_SESSION_TRIALS_H
#define TUNER_SESSION_TRIALS_H

#include <stdbool.h>

#include "base/error.h"
#include "dataset/query.h"
#include "dataset/store.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"

/* A trial to be run. */
struct tune_order {
    const struct strategy *strategy;
    uint64_t iterations, warmup;
    double expected_us; /* an iteration; 0 = unknown */
    double give_up_us;  /* end early when clearly slower than this; 0 = never */
    uint64_t number;    /* within its session; 0 = none */
    uint64_t weather;   /* run in the weather of this seed; 0 = none */
    bool learns;        /* workers learn meanwhile; only of a strategy with a "consistency" */
};

/* How a trial went. */
struct tune_outcome {
    enum record_state state; /* complete, failed, infeasible or cancelled */
    bool early;              /* complete, but ended after a few iterations, being too slow to matter */
    size_t n;                /* iterations */
    const double *iterations_us;
    const char *environment; /* JSON, or NULL */
    const char *reason;      /* when not complete */
};

/* What runs trials: a launcher or the user's own command (runners.h), or a simulated cluster in tests. */
struct tune_runner {
    const char *name;
    void *context;
    /* *out is valid until the next call. An error (no permission, cancelled) ends the session; a trial that goes wrong
     * is an outcome. */
    enum status (*run)(void *context, const struct tune_order *order, struct tune_outcome *out, struct error *err);
};

struct trial_start {
    const struct model *model;
    const struct cluster *cluster;
    const struct strategy *strategy;
    const char *session; /* NULL: a trial on its own */
    uint64_t number;     /* within the session; 0: the next one */
    bool waiting;        /* queue it; else it runs from now */
    const char *proposer, *runner;
    uint64_t round, seed;
    double predicted_us;
};

/* Record the strategy and the trial, waiting or running. For a trial without a session, model and cluster are recorded
 * too (a session has recorded them when it began). Fails: as the store. */
enum status trial_record_start(struct store *store, const struct trial_start *start, int64_t *trial, struct error *err);

/* Every iteration with its median and interval, or the reason of failure. Fails: as the store. */
enum status trial_record_end(struct store *store, int64_t trial, const struct tune_outcome *outcome, struct error *err);

/* How the reason of a cancelled trial begins when every client that took it was lost: a resumed session does not run it
 * again. */
#define TRIAL_LOST "lost: "
bool trial_reason_is_lost(const char *reason); /* NULL is not */

/* Whether it was ended early. The environment that is recorded with a trial says so ("ended_early": true). */
bool trial_ended_early(const struct record *record);

/* The seed of the weather that it ran in, which its environment says ("weather": 3); 0: none. Trials of different
 * weather cannot be compared. */
uint64_t trial_weather(const struct record *record);
uint64_t trial_weather_said(const char *environment); /* the same of an environment, a JSON text or NULL */

/* What the environment of a trial of updates says of them (trial-runner/trial_updates.h). What it does not say is NaN.
 */
struct trial_figures {
    double delay_mean, delay_variance, delay_largest, dropped_share;
    /* Where workers learned: losses, the last one after so many `updates`, and when the target was reached. */
    double rate, momentum, first, least, target, last, updates, reached_update, reached_us;
};

/* False where the record is of no such trial. */
bool trial_figures_read(const struct record *record, struct trial_figures *out);

#endif
