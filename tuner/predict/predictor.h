/* Predictions for one (model, cluster), corrected by what was measured there.
 *
 * The timeline uses the cluster's figures, which are never quite right: a NIC gives less than its nominal rate, and a
 * launch costs more when the cores are busy. Two factors correct this. `startup` multiplies every fixed cost (latency,
 * launch, coordination), `transfer` every cost that grows with bytes. Both are fitted to the session's own trials. A
 * prior keeps them near 1, so that a few trials do not overfit.
 *
 * In weather (strategy/weather.h) a strategy's time is the mean that is expected of an iteration. All strategies meet
 * the same weather, so they are compared in pairs. How much of it is simulated depends on what the time is for:
 *   a glance   PREDICTOR_GLANCE iterations, for the thousands that a search draws
 *   brief      PREDICTOR_BRIEF iterations, for the hundred of which one is chosen
 *   else       eight seeds (simulator/expectation.h), for what people are told
 * The first two see a weather that changes faster than the described one, each few iterations, or they would see one
 * state of the network only: the rates and their shares are the described ones.
 * Units: microseconds. Threads: one at a time. */
#ifndef TUNER_PREDICT_PREDICTOR_H
#define TUNER_PREDICT_PREDICTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "featurize/features.h"
#include "interop/export/limits.h"
#include "simulator/expectation.h"
#include "simulator/timeline.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/plan.h"
#include "strategy/strategy.h"
#include "tuner/predict/predictions.h"

struct correction {
    double startup, transfer;
};

struct predictor {
    const struct model *model;     /* borrowed */
    const struct cluster *cluster; /* borrowed; as described */
    struct correction correction;
    struct cluster corrected; /* a shallow copy with corrected figures, its changed arrays in `arena` */
    struct arena arena;
    struct cost cost;
    struct timeline *timeline;
    struct plan plan;                   /* of the last prediction */
    struct predictions known;           /* predictions of earlier fits */
    const struct export_limits *limits; /* what these forms cannot say is infeasible; borrowed; NULL: none */
    uint64_t memory_bytes; /* a strategy that needs more on a device is infeasible (strategy/memory.h); 0: no budget. Of
                              strategies with a "consistency" nothing is known */
    /* With such a budget: what the last strategy that was lowered needs (0: not known), whether that is too much for it
     * or for its server, and the least that any needed which was too much (0: none was). */
    uint64_t peak_bytes, least_bytes;
    bool over;
    bool brief;                 /* few passes of the timeline: to rank many strategies, not to report a time */
    bool glance;                /* in weather, with `brief`: fewer still */
    uint64_t weather;           /* the first seed of the weather in which times are expected; 0: none */
    struct variability hurried; /* the weather of brief predictions; its changes are in `trace` */
    struct arena trace;
    double enough_us; /* as in struct timeline_options, as the next: how far to go into a run */
    uint64_t most_events;
};

enum { PREDICTOR_GLANCE = 12, PREDICTOR_BRIEF = 48 };

/* Fails: ST_INVALID (the cluster has weather), ST_NO_MEMORY. */
enum status predictor_init(struct predictor *out, const struct model *model, const struct cluster *cluster,
                           struct error *err);

/* Predict what to expect in the cluster's weather, from seed `weather` on. Fails: ST_INVALID (the cluster has no
 * weather, or the seed is 0), ST_NO_MEMORY. */
enum status predictor_init_in_weather(struct predictor *out, const struct model *model, const struct cluster *cluster,
                                      uint64_t weather, struct error *err);
void predictor_release(struct predictor *predictor);

/* Set the budget: memory_bytes, or where that is 0 what the cluster says of its devices. */
void predictor_set_memory(struct predictor *predictor, uint64_t memory_bytes);

/* How much memory it keeps for the next prediction. */
size_t predictor_bytes(const struct predictor *predictor);

/* One prediction. Fails: as work_check, plan_lower and timeline_run, ST_INFEASIBLE (beyond the limits, or the memory).
 */
enum status predictor_run(struct predictor *predictor, const struct strategy *strategy, struct prediction *out,
                          struct error *err);

/* Of a predictor in weather: what a strategy takes on the quiet network, and what to expect in weather. Fails: as
 * predictor_run. */
struct outlook {
    struct prediction quiet;
    struct expectation expected;
};
enum status predictor_outlook(struct predictor *predictor, const struct strategy *strategy, struct outlook *out,
                              struct error *err);

/* What a round of a strategy with a "consistency" takes (simulator/updates.h): the mean that is expected in weather, of
 * a predictor in weather. predictor_run knows no such strategy. Fails: as plan_lower and updates_run, ST_INFEASIBLE
 * (beyond the limits, or the memory). */
enum status predictor_round(struct predictor *predictor, const struct strategy *strategy, struct expectation *out,
                            struct updates_prediction *updates, struct error *err);

/* As predictor_run, and get the strategy's features for a ranker; *prediction may be NULL. Release with
 * features_release. */
enum status predictor_features(struct predictor *predictor, const struct strategy *strategy, struct features *out,
                               struct prediction *prediction, struct error *err);

/* Use other factors from now on. Fails: ST_NO_MEMORY. */
enum status predictor_correct(struct predictor *predictor, struct correction correction, struct error *err);

/* Fit the factors to n measured strategies by least squares of log(predicted / measured), each factor's logarithm
 * having a normal prior of deviation PREDICTOR_PRIOR around 0, and use them from now on. Deterministic: a coordinate
 * search on a shrinking grid. Predictions of earlier fits are reused. In weather a trial is predicted in the very
 * weather that it met, that of the predictor's first seed. For that its first PREDICTOR_MEASURED iterations are enough,
 * since each is predicted dozens of times. */
#define PREDICTOR_PRIOR 0.3
enum { PREDICTOR_MEASURED = 24 };
struct measured {
    const struct strategy *strategy;
    double us;                   /* in weather the mean of those iterations */
    uint32_t warmup, iterations; /* in weather: how many were run before them, and how many they are */
};
enum status predictor_fit(struct predictor *predictor, size_t n, const struct measured *measured, struct error *err);

#endif
