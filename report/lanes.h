/* A strategy's simulated iteration as lanes for chart_timelines: compute of the slowest node and of others that differ
 * from it, all-reduces, and pushes and pulls of each node that is shown. */
#ifndef REPORT_LANES_H
#define REPORT_LANES_H

#include "base/arena.h"
#include "base/error.h"
#include "report/charts.h"
#include "strategy/strategy.h"
#include "tuner/predict/predictor.h"

enum { LANES_NODES = 4, LANES_ITERATIONS = 4 };

/* Make the lanes of one iteration of the steady state, from the slowest node's first forward step to its next one. It
 * shows at most `most` (1 to LANES_NODES) nodes, on the predictor's cluster with its present correction.
 *
 * Of a predictor in weather: LANES_ITERATIONS iterations around the first change of that weather, with the rates of
 * NICs. Of a strategy with a "consistency" (lanes_updates.c): as long as LANES_ITERATIONS iterations of a worker, if
 * there is one on a node that does not serve; with what each node computes, sends and receives. Servers come first.
 *
 * What *out points to lies in `arena` or is the strategy's name. Fails: as predictor_run and updates_run. */
enum status lanes_of(struct predictor *predictor, const struct strategy *strategy, size_t most, struct arena *arena,
                     struct chart_timeline *out, struct error *err);

#endif
