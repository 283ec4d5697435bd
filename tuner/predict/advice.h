/* Which way of data-parallel training at which memory: plain data parallel, servers, ZeRO or FSDP. Each way is
 * predicted once on the cluster as it is, then FSDP wrapped for each memory, and all of it again at other rates of the
 * NICs. Units: microseconds (_us), bytes. Threads: a struct advice belongs to one thread at a time. */
#ifndef TUNER_PREDICT_ADVICE_H
#define TUNER_PREDICT_ADVICE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"
#include "tuner/predict/simulation.h"

enum { MOST_BUDGETS = 8, MOST_CANDIDATES = 24, ADVICE_RATES = 5 };

struct budgets {
    size_t n;
    uint64_t bytes[MOST_BUDGETS]; /* rising; UINT64_MAX: no limit */
};

struct candidate {
    const char *kind; /* what people call it: "ZeRO-1" */
    struct strategy strategy;
    struct row row;
};

/* All candidates of one model and cluster. */
struct advice {
    struct simulation simulation;
    struct candidate candidates[MOST_CANDIDATES];
    size_t n;
};

struct change {
    double gbit_per_s;
    char kind[MOST_BUDGETS][24];
    double us[MOST_BUDGETS]; /* INFINITY: nothing fits */
};

/* The memories of a list, "24GB,80GB"; NULL: as budgets_complete. Fails: ST_USAGE, ST_INVALID (no size). */
enum status budgets_read(const char *list, const struct cluster *cluster, struct budgets *out, struct error *err);

/* Where none is named: what the cluster's description says, and any. Then in order. */
void budgets_complete(struct budgets *budgets, const struct cluster *cluster);

/* All ways, the fastest first; FSDP also wrapped for each of the memories, and as small as possible. The model and the
 * cluster are borrowed. Release with advice_release. Fails: as simulation_predict; ST_CANCELLED. */
enum status advice_init(struct advice *out, const struct model *model, const struct cluster *cluster,
                        const struct budgets *budgets, struct error *err);
void advice_release(struct advice *advice);

/* The fastest that fits; NULL: none does. */
const struct candidate *advice_best_within(const struct advice *advice, uint64_t bytes);

/* The one that needs least memory. */
const struct candidate *advice_smallest(const struct advice *advice);

/* The most that a device holds at once. */
uint64_t candidate_bytes(const struct candidate *candidate);

/* What limits it, for people: computing, or messages that computing does not hide. */
const char *candidate_limit(const struct candidate *candidate, char *out, size_t room);

/* The answers where NICs are slower and faster, by rising rate. Fails: as sweep_apply and advice_init. */
enum status advice_changes(const struct model *model, const struct cluster *cluster, const struct budgets *budgets,
                           struct change out[ADVICE_RATES], struct error *err);

/* syncopate.advice/1; *whole says that nothing is missing for want of memory. */
cJSON *advice_json(const struct advice *advice, const struct budgets *budgets, const struct change *changes,
                   bool *whole);

#endif
