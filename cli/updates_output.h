/* What a trial of a strategy with a "consistency" tells of its updates, in words and as JSON. */
#ifndef CLI_UPDATES_OUTPUT_H
#define CLI_UPDATES_OUTPUT_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "base/statistics.h"
#include "simulator/updates.h"
#include "trial-runner/trial_updates.h"

/* A few lines on standard output. `rounds` are the times of rounds (trial-runner/trial_updates.h); seed 0: no weather;
 * task: what was learned, if anything was; predicted: what simulation says, and of a round. */
void updates_print(const char *strategy, const struct summary *rounds, uint64_t seed, const char *task,
                   const struct trial_updates *updates, double predicted_us,
                   const struct updates_prediction *predicted);

/* Add the member "updates" and, where something was learned, "training". False when memory is out. */
bool updates_add(cJSON *root, const struct trial_updates *updates);

/* Add the member "predicted_updates". False when memory is out. */
bool updates_add_predicted(cJSON *root, const struct updates_prediction *predicted);

#endif
