/* The lanes of a strategy with a "consistency": see lanes.h. */
#ifndef REPORT_LANES_UPDATES_INTERNAL_H
#define REPORT_LANES_UPDATES_INTERNAL_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

struct predictor;
struct strategy;
struct chart_timeline;

/* As lanes_of. */
enum status lanes_of_updates(struct predictor *predictor, const struct strategy *strategy, size_t most,
                             struct arena *arena, struct chart_timeline *out, struct error *err);

#endif
