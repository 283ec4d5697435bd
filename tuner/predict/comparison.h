/* Every baseline and exact schedule on one model and cluster, next to what is possible at all, and other strategies
 * that are given, which may have a "consistency". Where the cluster has weather, also what to expect in it: over the
 * same seeds for all. Units: microseconds. */
#ifndef TUNER_PREDICT_COMPARISON_H
#define TUNER_PREDICT_COMPARISON_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "simulator/expectation.h"
#include "strategy/baselines/baselines.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "tuner/predict/front.h"

struct comparison_row {
    const struct baseline *baseline; /* NULL: a strategy that was given */
    char name[64];
    double iteration_us; /* NaN: impossible on this model and cluster, too large to predict, or over the memory */
    struct id id;        /* empty: it cannot be built */
    uint32_t n_groups;
    uint64_t peak_bytes;         /* needed on a device; 0: not known */
    bool over;                   /* that, or what its server needs, is more than there is */
    struct expectation expected; /* where the cluster has weather; zeros elsewhere, and where impossible */
    bool has_updates; /* it has a consistency: iteration_us is that of a round, in weather the expected one */
    struct updates_prediction updates;
};

struct comparison {
    size_t n;
    struct comparison_row *rows; /* a row for each of baselines_list, in its order, and each given strategy; malloc'd */
    bool in_weather;             /* the cluster has weather: rows say what to expect in it, and `fastest` is in it */
    uint64_t memory_bytes;       /* that a device may have; 0: no budget */
    size_t fastest;              /* row without updates; SIZE_MAX when none could be predicted */
    /* No schedule of dense all-reduces is faster. It is the optimum of one machine with preemption, without start-ups
     * and copies, and at least lower_bound_us. */
    double all_reduce_us;
    /* No strategy is faster (simulator/bound.h) that does no more than some given one does: without any, nothing is
     * encoded, and there are no replicas. */
    double lower_bound_us;
};

/* `more`: n_more strategies of this model and cluster beside the baselines. memory_bytes: what a device may have; 0:
 * what the cluster says, and no budget if it says nothing. Fails: ST_NO_MEMORY, and as baselines and
 * predictions do, except where one is impossible here (its row is NaN). */
enum status comparison_run(const struct model *model, const struct cluster *cluster, size_t n_more,
                           const struct strategy *more, uint64_t memory_bytes, struct comparison *out,
                           struct error *err);
void comparison_release(struct comparison *comparison);

/* What counts of a row: the time to expect in weather, or without weather the iteration time; NaN: impossible. */
double comparison_us(const struct comparison *comparison, size_t row);

/* The rows of which time and memory are known, but for those over the memory or with updates, as sorted points
 * (tuner/predict/front.h). out[n of the comparison]; returns how many. The texts are the comparison's. */
size_t comparison_points(const struct comparison *comparison, struct front_point *out);

/* The quiet time of the fastest row over the lower bound, minus 1; NaN without one. */
double comparison_gap(const struct comparison *comparison);

#endif
