/* The descriptions that most commands begin with. */
#ifndef CLI_INPUTS_H
#define CLI_INPUTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"

struct inputs {
    char model_path[4096], cluster_path[4096];
    struct model model;
    struct cluster cluster;
};

/* Read both. A word without '/' that is no file here names one of the descriptions shipped with syncopate:
 * "resnet50", "lab-4x1g". */
enum status inputs_read(const char *model, const char *cluster, struct inputs *out, struct error *err);
void inputs_release(struct inputs *inputs);

/* The path of `word` as above; kind is "models" or "clusters". */
enum status inputs_find(const char *word, const char *kind, char *out, size_t n, struct error *err);

/* The names of all shipped descriptions of a kind, in order, with commas between. */
enum status inputs_shipped(const char *kind, char *out, size_t n, struct error *err);

/* A strategy from a file or from a baseline's name: exactly one of the two is not NULL. memory_bytes: what a device may
 * hold, 0: not said; the baseline is built for it (simulator/tuned.h). Fails: ST_INFEASIBLE (it needs more). */
enum status inputs_strategy(const struct inputs *inputs, const char *path, const char *baseline, uint64_t memory_bytes,
                            struct strategy *out, struct error *err);

/* The same from one word: a baseline's name, or else a file. */
enum status inputs_strategy_word(const struct inputs *inputs, const char *word, uint64_t memory_bytes,
                                 struct strategy *out, struct error *err);

/* The option that says memory_bytes. */
#define STRATEGY_MEMORY_OPTION(bytes)                                                                                  \
    {                                                                                                                  \
        "memory", OPTION_MEMORY, &(bytes), "SIZE",                                                                     \
            "what a device may hold, 24GB: fsdp-optimal is wrapped for it, and a strategy that needs more is refused"  \
    }

#endif
