/* A cache of predicted iteration times, by strategy and correction.
 *
 * A correction is fitted anew after every trial, over much the same points of much the same grid, so most predictions
 * are in the cache already. What is cached changes no result. Units: microseconds. Threads: one at a time. */
#ifndef TUNER_PREDICT_PREDICTIONS_H
#define TUNER_PREDICT_PREDICTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/id.h"

struct predictions {
    size_t n, room; /* room: slots, a power of two, at least twice n; 0 to begin with */
    struct known_prediction *slots;
};
void predictions_release(struct predictions *predictions); /* a zeroed one is allowed */

/* Whether it is known; *us is written only then. O(1). */
bool predictions_find(const struct predictions *predictions, const struct id *strategy, const double factors[2],
                      double *us);

/* Remember it, unless memory is out. It must not be known yet. O(1) on average. */
void predictions_keep(struct predictions *predictions, const struct id *strategy, const double factors[2], double us);

#endif
