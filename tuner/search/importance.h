/* Which knobs mattered, by the trials alone.
 *
 * A Gaussian process is fitted to the logarithms of the measured times over the strategies' sketches, without the
 * simulator's predictions. Columns of SKETCH_TIMELINE are left out, because nobody sets them; their share is 0. A
 * knob's importance is its total effect: how much the fitted times vary when the knob's columns are swapped between
 * trials and all else stays, as a share of their variance (Jansen 1999, the total Sobol index, over the trials' own
 * distribution). Every swap of two trials is made, so nothing is random. Shares add up to more than 1 where knobs work
 * together. With few trials they are a hint, not a finding. */
#ifndef TUNER_SEARCH_IMPORTANCE_H
#define TUNER_SEARCH_IMPORTANCE_H

#include <stddef.h>

#include "base/error.h"
#include "tuner/search/advisor.h"
#include "tuner/search/sketch.h"

enum { IMPORTANCE_LEAST = 8 }; /* with fewer completed trials importance_of fails */

/* out[SKETCH_KNOBS] in [0, 1]. Observations that did not complete are left out. Fails: ST_NOT_FOUND
 * (too few trials, or all alike), ST_NUMERIC, ST_NO_MEMORY. O(n^3 + knobs n^4) for n trials, of which the first
 * IMPORTANCE_MOST count. */
enum { IMPORTANCE_MOST = 60 };
enum status importance_of(size_t n, const struct advisor_observation *observed, double out[SKETCH_KNOBS],
                          struct error *err);

#endif
