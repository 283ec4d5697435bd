/* What a session tries first: the framework defaults, then published systems and exact schedules together, the fastest
 * predicted first. What the simulator finds hopeless is left out, so that a budget of trials is not spent on it. A
 * default is never left out, because it may be what the user has today. Where the space allows it, baselines that shard
 * are there too, with published systems. How many are tried before the search is the
 * session's choice (starts_limit in session.c). */
#ifndef TUNER_SEARCH_STARTS_H
#define TUNER_SEARCH_STARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "strategy/baselines/baselines.h"
#include "strategy/space/space.h"
#include "tuner/predict/predictor.h"

struct start {
    const struct baseline *baseline;
    struct strategy strategy;
    double predicted_us;
};

struct starts {
    size_t n;
    struct start *items; /* malloc'd; no two strategies alike */
    size_t hopeless;     /* baselines left out, because they are predicted to take STARTS_HOPELESS times the fastest */
};

#define STARTS_HOPELESS 1.5

/* List the starts for the predictor's model and cluster, predicted with its present correction. A baseline that cannot
 * be built for them, or is too large to predict, is left out too. "fsdp-optimal" is wrapped for the predictor's memory.
 * `space` says what may be sharded. Fails: ST_NO_MEMORY, and as baselines and predictions for other reasons. */
enum status starts_list(struct predictor *predictor, const struct space *space, struct starts *out, struct error *err);

/* Whether it is tried whatever it is predicted to take: a framework's default that shards nothing. */
bool start_is_default(const struct start *start);

/* Whether any start fits into the predictor's memory. Fails: ST_INFEASIBLE, with the least that anything needs (of
 * what the forms of the predictor's limits can say), and what would have to be sharded where that is not allowed; and
 * as starts_list. */
enum status starts_check_memory(const struct starts *starts, struct predictor *predictor, struct error *err);
void starts_release(struct starts *starts);

#endif
