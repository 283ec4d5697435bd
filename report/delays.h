/* How late updates were, of strategies with a "consistency" (strategy/consistency.h): how many had which delay and how
 * many were dropped, as predicted, as a trial measured it, and as its record keeps it; and what bars show them. */
#ifndef REPORT_DELAYS_H
#define REPORT_DELAYS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "dataset/query.h"
#include "simulator/updates.h"
#include "strategy/strategy.h"
#include "trial-runner/trial_updates.h"
#include "tuner/predict/predictor.h"

/* Of a measured trial TRIAL_DELAYS - 1, of a prediction the last, stands for larger delays too. */
struct delay_counts {
    double of_delay[UPDATES_DELAYS]; /* applied updates */
    double dropped, late;            /* by the scheduler, at the worker; by a server */
    bool measured;
};

/* Add to *sum. delays_add_record is false where the trial says nothing of updates. */
void delays_add_predicted(const struct updates_prediction *updates, struct delay_counts *sum);
void delays_add_measured(const struct trial_updates *updates, struct delay_counts *sum);
bool delays_add_record(const struct record *record, struct delay_counts *sum);

/* Add what a strategy with a "consistency" is predicted to do, in the weather of its cluster where that has any. Fails:
 * as plan_lower and expectation_run_updates. */
enum status delays_predict(struct predictor *predictor, const struct strategy *strategy, struct delay_counts *sum,
                           struct error *err);

/* A strategy as predicted and, where a trial says it, as measured. */
struct delays {
    const char *name;
    struct delay_counts predicted, measured;
    size_t trials; /* that were measured */
};

/* Bars for one or several counts together: each is of `width` delays, the first from 0 on. */
enum { DELAY_BARS = 16, DELAY_BAR_TEXT = 32 };
struct delay_bars {
    size_t n, width;
    bool open; /* the last one is of larger delays too */
};
struct delay_bars delays_bars(size_t n, const struct delay_counts *counts);

/* "3", "4-7", "60+" */
const char *delays_bar_text(const struct delay_bars *bars, size_t bar, char out[DELAY_BAR_TEXT]);

/* Shares of all updates, applied or not: what a bar is, and what was not applied. 0 of none. */
double delays_share(const struct delay_counts *counts, const struct delay_bars *bars, size_t bar);
double delays_share_dropped(const struct delay_counts *counts);

#endif
