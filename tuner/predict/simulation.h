/* Predictions of several strategies for one model on one cluster: what commands and the service share.
 * Units: microseconds (_us). */
#ifndef TUNER_PREDICT_SIMULATION_H
#define TUNER_PREDICT_SIMULATION_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/id.h"
#include "simulator/bound.h"
#include "simulator/expectation.h"
#include "simulator/timeline.h"
#include "strategy/baselines/baselines.h"
#include "strategy/cost/cost.h"
#include "strategy/memory.h"

struct simulation {
    const struct model *model; /* borrowed, both */
    const struct cluster *cluster;
    bool autosync; /* AutoSync's closed form instead of the timeline */
    struct cost cost;
    struct timeline *timeline;
    struct expectation_options weather;
    double bound_us;       /* of strategies without "sharded", encodings and replicas */
    struct bounds bounds;  /* by what strategies may do */
    uint64_t memory_bytes; /* that a device may have; 0: no budget. "fsdp-optimal" is wrapped for it */
};

enum { MAX_CONTENDERS = 48 };

/* Who is compared: a baseline, or a strategy that is given. */
struct contender {
    const char *name;
    const struct baseline *baseline;
    const struct strategy *strategy; /* when baseline is NULL */
};

struct row {
    struct id id;
    char name[64];
    struct prediction prediction;
    double bound_us;             /* of what the strategy may do */
    struct expectation expected; /* where the cluster has weather; zeros elsewhere */
    bool replicated;             /* its consistency has a replica */
    bool has_updates;            /* its consistency is not plain: prediction is empty but for iteration_us, a round's */
    struct updates_prediction updates;
    bool has_memory; /* false: its consistency is not plain, or somebody else predicted the row and did not say */
    struct memory memory;
    bool over; /* it does not fit: `too_much` says what into what */
    char too_much[ERROR_TEXT_ROOM];
};

/* Whether rows say what to expect in weather. AutoSync's closed form knows none. */
bool simulation_expects(const struct simulation *simulation);

/* Note the memory that a row needs, and whether it fits into what the simulation says. */
void simulation_note_memory(const struct simulation *simulation, const struct memory *memory, struct row *out);

/* Whether memory is told: there is a budget for it, or the model describes what only memory is predicted from. */
bool simulation_tells_memory(const struct simulation *simulation);

/* It stays where it is until it is released. Fails: ST_INVALID, ST_NO_MEMORY. A failed one holds nothing; release is
 * allowed. */
enum status simulation_init(struct simulation *out, const struct model *model, const struct cluster *cluster,
                            bool autosync, struct error *err);
void simulation_release(struct simulation *simulation);

/* Predict one contender; a Chrome trace goes to the file `trace` unless NULL. Fails: as baselines_build, plan_lower and
 * timeline_run; ST_ENVIRONMENT (the trace cannot be written). */
enum status simulation_predict(struct simulation *simulation, const struct contender *contender, const char *trace,
                               struct row *out, struct error *err);

/* syncopate.prediction/1, to be printed by output_line; *whole says that nothing is missing for want of memory. */
cJSON *simulation_json(const struct simulation *simulation, const struct row *row, bool *whole);

#endif
