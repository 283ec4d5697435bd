/* What a report shows of a session: its results (tuner/session/outcome.h), its model and cluster, and the timelines of
 * the best baseline and the best strategy, side by side, and of the fastest whose models may be stale. The session may
 * run, have ended or be a collection. Units: microseconds. */
#ifndef REPORT_FINDINGS_H
#define REPORT_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "dataset/store.h"
#include "report/charts.h"
#include "report/delays.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"
#include "tuner/predict/predictor.h"
#include "tuner/session/outcome.h"
#include "tuner/session/session_options.h"

enum findings_depth {
    FINDINGS_FIGURES, /* what records tell: milliseconds */
    FINDINGS_ALL      /* importance and timelines too: up to a few seconds for large models */
};

struct findings {
    struct arena arena;     /* owns the runner, the options’ texts and the timelines */
    struct outcome outcome; /* with its importance only for FINDINGS_ALL */
    const char *runner;     /* or NULL */
    struct session_options options;
    struct model model;
    struct cluster cluster;
    /* With FINDINGS_ALL: */
    struct correction correction; /* of the simulator, by these trials; of a session in weather 1 */
    size_t n_timelines;           /* 0 without a best; 2: the best baseline, then the best */
    struct chart_timeline timelines[2];
    struct strategy strategies[2]; /* of the timelines */
    bool has_stale;
    struct chart_timeline stale; /* of outcome.stale.best, the fastest whose models may be stale */
    size_t n_delays;
    struct delays delays[3]; /* of those timelines whose strategy has a "consistency" */
};

/* Fails: ST_NOT_FOUND (the session), ST_INVALID (a stored description that is damaged), ST_NO_MEMORY, as the store.
 * What cannot be simulated any more is left out. Release with findings_release. */
enum status findings_gather(struct store *store, const char *session, enum findings_depth depth, struct findings *out,
                            struct error *err);
void findings_release(struct findings *f); /* a zeroed one is allowed */

/* The trials as charts take them; in the findings' arena. NULL when memory is out. */
/* Whether the trial is of a strategy of updates: its mean counts, and it competes with none. */
bool findings_is_of_updates(const struct findings *f, const struct record *record);
const struct chart_trial *findings_trials(struct findings *f);

#endif
