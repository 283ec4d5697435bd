/* What the baselines share in building. */
#ifndef STRATEGY_BASELINES_BUILDER_H
#define STRATEGY_BASELINES_BUILDER_H

#include <stdint.h>

#include "base/error.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"

/* Seal *built and move it to *out; on failure release it. `st` is the status so far, passed on when it is not ST_OK. */
enum status baseline_finish(enum status st, struct strategy *built, const struct model *model,
                            const struct cluster *cluster, struct strategy *out, struct error *err);

/* Put variable v on one server, a node, with local reduction. Fails: ST_NO_MEMORY. */
enum status baseline_serve(struct strategy *strategy, uint32_t v, uint32_t node, struct error *err);

#endif
