/* Collecting: trials of strategies drawn over the whole space, for learned rankers to be trained on.
 *
 * A session tries what it believes to be fast. A ranker that saw nothing else has not learned what makes strategies
 * slow. So a collection draws by a fixed recipe (collection_draw). Strategy number i of a seed is always the same: a
 * collection that was interrupted goes on with the next number.
 * Units: microseconds. Threads: one at a time. */
#ifndef TUNER_SESSION_COLLECTION_H
#define TUNER_SESSION_COLLECTION_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "dataset/store.h"
#include "strategy/space/space.h"
#include "tuner/predict/predictor.h"
#include "tuner/search/starts.h"
#include "tuner/session/session.h"
#include "tuner/session/trials.h"

/* The recipe, by number mod 8: X(constant, word that the trial is recorded with, what it draws) */
#define COLLECTION_TABLE(X)                                                                                            \
    X(COLLECTION_GUIDED, "collect-guided", "by AutoSync's constraints c_lb and c_am")                                  \
    X(COLLECTION_UNIFORM, "collect-uniform", "every variable on its own")                                              \
    X(COLLECTION_BASELINE, "collect-baseline", "a baseline; after all of them, 1 to 4 changes from one")               \
    X(COLLECTION_SIZES, "collect-sizes", "guided, then one partition size for all groups and servers, and a credit")   \
    X(COLLECTION_NEAR, "collect-near", "1 to 4 changes from a baseline")                                               \
    X(COLLECTION_GUIDED_2, "collect-guided", "")                                                                       \
    X(COLLECTION_FAST, "collect-fast", "the fastest predicted of 60 guided ones and changes of them")                  \
    X(COLLECTION_SIZES_2, "collect-sizes", "")

/* What no recipe draws; alone, with `only` */
#define COLLECTION_PARTLY_TABLE(X)                                                                                     \
    X(COLLECTION_BALANCED, "collect-balanced", "guided by c_lb alone")                                                 \
    X(COLLECTION_ADJACENT, "collect-adjacent", "guided by c_am alone")                                                 \
    X(COLLECTION_LOOSE, "collect-loose", "the same, guided by neither")

enum collection_way {
#define X(constant, word, words) constant,
    COLLECTION_TABLE(X) COLLECTION_PARTLY_TABLE(X)
#undef X
        COLLECTION_BY_RECIPE
};

/* From a word of the tables without "collect-", or "recipe"; COLLECTION_BY_RECIPE for that. Fails: ST_USAGE. */
enum status collection_way_named(const char *word, enum collection_way *out, struct error *err);

/* A draw that is predicted to take over COLLECTION_SLOWEST times the fastest baseline is drawn again: its trial would
 * cost as much as ten others. */
#define COLLECTION_SLOWEST 8

struct collection {
    const struct model *model;
    const struct cluster *cluster;
    struct space space;
    struct predictor predictor;
    struct starts starts;     /* the baselines that a session would begin with */
    double fastest_us;        /* of them, predicted */
    enum collection_way only; /* every number is drawn in this way; COLLECTION_BY_RECIPE at first */
};

/* Fails: as space_init, predictor_init and starts_list. */
enum status collection_init(struct collection *out, const struct model *model, const struct cluster *cluster,
                            const struct space_options *options, struct error *err);
void collection_release(struct collection *collection);

/* Strategy number `index` (from 0) of this seed, sealed, with its prediction; the caller's to release. *proposer is a
 * word of the table. */
enum status collection_draw(struct collection *collection, uint64_t seed, uint64_t index, struct strategy *out,
                            const char **proposer, double *predicted_us, struct error *err);

struct collect_options {
    uint64_t trials; /* to be had in the end, with those of earlier runs */
    uint64_t seed;
    double trial_us; /* measured time of one; at least COLLECT_LEAST iterations */
    const atomic_int *cancel;
    void (*listen)(void *context, const struct tune_event *event);
    void *context;
};
enum { COLLECT_LEAST = 8, COLLECT_MOST = 30 };

/* Run trials until `trials` of them have ended in this dataset, in the session "WAY-MODEL-CLUSTER-SEED". Models and
 * clusters stand there by name and the first digits of their ids. WAY is "collect" for the recipe. Where gradients may
 * be encoded "16-" stands before all, and then "s1-" to "s7-" where something may be sharded. Fails: ST_CANCELLED, and
 * what runner and store fail with. */
enum status collect_run(struct store *store, struct collection *collection, const struct tune_runner *runner,
                        const struct collect_options *options, struct error *err);

#endif
