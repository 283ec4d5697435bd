/* Real runs of some strategies for compare: in turn, so that drift of the machine meets all alike, and round by round
 * in the same weather where the cluster has any. Units: microseconds. */
#ifndef CLI_COMPARE_TRIALS_H
#define CLI_COMPARE_TRIALS_H

#include <cjson/cJSON.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/inputs.h"
#include "tuner/session/outcome.h"
#include "tuner/session/runners.h"

struct compare_measured {
    char name[64], reason[160]; /* reason: why the last one that did not complete did not */
    size_t trials, complete;
    double mean_us;                            /* of an iteration, or a round of updates; NaN: none completed */
    struct outcome_ratio ratio;                /* over the first strategy, trial by trial; of the first itself none */
    bool has_updates;                          /* the strategy has a consistency: then the next are known */
    double delay_mean, delay_largest, dropped; /* dropped: share of its updates */
    size_t pairs;                              /* trials that both completed, as the next two while they run */
    double log_sum, log_squares;
};

/* Run each of the n strategies `trials` times. Fails: as runner_init, runner_check_updates, runner_check_weather
 * (before the first run); ST_CANCELLED. A trial that goes wrong is a row with a reason. */
enum status compare_trials_run(const struct inputs *inputs, const struct runner_options *launch, size_t n,
                               const struct strategy *strategies, uint64_t trials, struct compare_measured *out,
                               struct error *err);

void compare_trials_print(size_t n, const struct compare_measured *measured);

/* Add the member "measured"; false when memory is out. */
bool compare_trials_write(size_t n, const struct compare_measured *measured, cJSON *to);

#endif
