/* What a session found, read from the dataset alone, whether it runs, has ended or was a collection: a row for each
 * strategy, the best of them and the best baseline, how good predictions were, what mattered, and the two timelines to
 * compare. What it says of the best agrees with session_answer.
 * Units: microseconds. */
#ifndef REPORT_FINDINGS_H
#define REPORT_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/statistics.h"
#include "dataset/query.h"
#include "dataset/store.h"
#include "report/charts.h"
#include "strategy/baselines/baselines.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"
#include "tuner/predict/predictor.h"
#include "tuner/search/candidates.h"
#include "tuner/search/sketch.h"

/* A strategy and all that the session measured of it. */
struct finding {
    const char *strategy, *name, *proposer; /* its id, its name, who proposed it first */
    const struct baseline *baseline;        /* NULL when it is none (an exact schedule is none) */
    size_t trials, complete;
    bool final, early; /* repeated in the final; its only trial was ended early */
    enum record_state state;
    const char *reason; /* of the last trial; or NULL */
    double predicted_us;
    double first_us;         /* median of its first complete trial; INFINITY without one */
    struct summary measured; /* of the final where it was in it; n = 0 without a complete trial */
};

/* How well trials were predicted before they ran. */
struct finding_accuracy {
    size_t n;
    double off;     /* median of |predicted / measured - 1|; NaN for n = 0 */
    double ordered; /* share of pairs that were measured in the order predicted; NaN for n < 2 */
};

enum findings_depth {
    FINDINGS_FIGURES, /* what records tell: milliseconds */
    FINDINGS_ALL      /* importance and timelines too: up to a few seconds for large models */
};

struct findings {
    struct arena arena; /* owns what the pointers show */
    struct stored_session session;
    const char *runner;     /* or NULL */
    uint64_t budget_trials; /* 0: none */
    double budget_us;       /* 0: none */
    bool collection;        /* no budget: its strategies were drawn, and nothing was searched for */
    struct model model;
    struct cluster cluster;
    size_t n_trials, ended, under_way, failed; /* ended: with a result or failed, which costs budget */
    struct record *trials;                     /* by number, with their iterations */
    size_t n;
    struct finding *items;                     /* in the order of their first trials */
    size_t best, baseline;                     /* SIZE_MAX: none completed */
    double bound_us;                           /* no strategy is faster, by the description of the cluster */
    double gap;                                /* best over bound, minus 1; NaN without a best */
    double speedup, speedup_low, speedup_high; /* best baseline over best; NaN without both */
    bool overlap;                              /* their intervals overlap: no measurable difference */
    struct finding_accuracy accuracy;
    struct proposer_score proposers[PROPOSER_COUNT];
    /* With FINDINGS_ALL: */
    bool has_importance;
    double importance[SKETCH_KNOBS];
    struct correction correction; /* of the simulator, by these trials */
    size_t n_timelines;           /* 0 without a best; 2: the best baseline, then the best */
    struct chart_timeline timelines[2];
    struct strategy strategies[2]; /* of the timelines */
};

/* Fails: ST_NOT_FOUND (the session), ST_INVALID (a stored description that is damaged), ST_NO_MEMORY, as the store.
 * What cannot be simulated any more is left out. Release with findings_release. */
enum status findings_gather(struct store *store, const char *session, enum findings_depth depth, struct findings *out,
                            struct error *err);
void findings_release(struct findings *f); /* a zeroed one is allowed */

/* The trials as charts take them; in the findings' arena. NULL when memory is out. */
const struct chart_trial *findings_trials(struct findings *f);

#endif
