/* What a trial tells of what its workers learned (trial-runner/training.h), from the worker's lines.
 * Units: microseconds (_us). */
#ifndef TRIAL_RUNNER_TRIAL_TRAINING_H
#define TRIAL_RUNNER_TRIAL_TRAINING_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "trial-runner/training.h"

enum { TRIAL_LOSSES = 256 };

struct trial_loss {
    double update, time_us, loss; /* after so many updates of single workers, so long after the start; NAN: no finite
                                   * number */
};

struct trial_training {
    bool given;
    double first, least, target, last; /* losses; last NAN: no finite number */
    bool reached;
    double reached_update, reached_us; /* the first known version with the target's loss: which, and when */
    size_t n_losses;
    struct trial_loss losses[TRIAL_LOSSES];
};

/* Take the line if its event is one of training; a line that makes no sense changes nothing. */
void trial_training_take(struct trial_training *training, const char *event, const cJSON *line);

/* Add to an object the losses "first", "least", "target" and "last", and where the target was reached "reached_update"
 * and "reached_us". False when memory is out. */
bool trial_training_add_figures(const struct trial_training *training, cJSON *to);

/* What a record keeps of it: add the member "training" with these options and the number of `applied` updates whose
 * loss is "last". False when memory is out. */
bool trial_training_write(const struct trial_training *training, const struct training_options *options, double applied,
                          cJSON *to);

#endif
