/* What a trial tells of updates, where the strategy has a "consistency", and of training, in words and as JSON. */
#ifndef CLI_UPDATES_OUTPUT_H
#define CLI_UPDATES_OUTPUT_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "base/statistics.h"
#include "simulator/updates.h"
#include "trial-runner/trial_training.h"
#include "trial-runner/trial_updates.h"

/* A few lines on standard output. `rounds` are the times of rounds (trial-runner/trial_updates.h); seed 0: no weather;
 * predicted: what simulation says, and of a round. */
void updates_print(const char *strategy, const struct summary *rounds, uint64_t seed,
                   const struct trial_updates *updates, double predicted_us,
                   const struct updates_prediction *predicted);

/* A line on standard output of what was learned. */
void training_print(const char *task, const struct trial_training *training);

/* Add the member "updates", or "training". False when memory is out. */
bool updates_add(cJSON *root, const struct trial_updates *updates);
bool training_add(cJSON *root, const struct trial_training *training);

/* Add the dropped share and the delays' mean, variance and largest; the member "predicted_updates" with these and how
 * many updates had each delay. False when memory is out. */
bool updates_add_figures(cJSON *to, const struct updates_prediction *predicted);
bool updates_add_predicted(cJSON *root, const struct updates_prediction *predicted);

#endif
