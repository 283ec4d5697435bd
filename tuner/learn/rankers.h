/* Learned rankers in and out of the dataset, with where they come from.
 *
 * One object, schema syncopate.stored-ranker/1: the text of ranker_write, the domains and trials that it was trained
 * on, the program's version, and accuracies. Nothing of it depends on the day, so the same trials, seed and version
 * make the same object on one machine, and what is read back gives the same scores bit for bit. Threads: as the store;
 * a const struct stored_ranker may be shared. */
#ifndef TUNER_LEARN_RANKERS_H
#define TUNER_LEARN_RANKERS_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/id.h"
#include "dataset/holdings.h"
#include "simulator/learned/ranker.h"
#include "tuner/learn/examples.h"

struct ranker_domain {
    const char *model, *cluster; /* ids */
    const char *model_name, *cluster_name;
    const char *runner; /* "" when the trials name none */
    uint64_t trials, strategies;
};

/* Where a ranker comes from. Options, seed and the training's own report are in the ranker (ranker_options_of). */
struct ranker_origin {
    const char *version; /* of the program */
    const char *from;    /* id of the ranker that was trained on; NULL: it began anew */
    size_t n_domains;
    const struct ranker_domain *domains;
    uint64_t n_trials;
    struct id trials;         /* SHA-256 over the sorted uids of the trials, each with a line end */
    uint64_t n_held_out;      /* strategies that were kept from training to judge by */
    double held_out_accuracy; /* on them; NaN without pairs */
    double timeline_accuracy; /* of the uncorrected timeline, on them, or on what was trained on when there are none */
};

/* The origin of a ranker that is trained on n of the examples, those at places[] in any order, without `from` and
 * accuracies (NaN). Memory comes from `arena`, the rest is borrowed from `examples`. Fails: ST_NO_MEMORY.
 * O(trials log trials). */
enum status ranker_origin_of(const struct examples *examples, size_t n, const uint32_t *places, struct arena *arena,
                             struct ranker_origin *out, struct error *err);

struct stored_ranker {
    struct arena arena; /* owns the texts */
    struct id id;
    const char *name, *created;
    struct ranker_origin origin;
    struct ranker *ranker; /* NULL in lists: of other features or another version, not to be used here */
};
void stored_ranker_release(struct stored_ranker *stored); /* a zeroed one is allowed */

/* Keep it, of no team and shared with all, or for a team (holding_put); *id may be NULL. The same ranker put again
 * under another name keeps its first one. Fails: as the store. */
enum status rankers_put(struct store *store, const char *name, const struct ranker *ranker,
                        const struct ranker_origin *origin, struct id *id, struct error *err);

enum status rankers_put_for(struct store *store, const char *team, const char *shared, const char *name,
                            const struct ranker *ranker, const struct ranker_origin *origin, struct id *id,
                            struct error *err);

/* The ranker that `word` names (seen_find), by its name or the beginning of its id. Fails: ST_NOT_FOUND, ST_USAGE
 * (several begin so), ST_INVALID (this version cannot use it). In this function and those below `asker` finds only what
 * it may see; NULL finds all. */
enum status rankers_get(struct store *store, const struct viewer *asker, const char *word, struct stored_ranker *out,
                        struct error *err);

/* The same, but a ranker that this version cannot use is found too, with ranker NULL. Fails: ST_NOT_FOUND, ST_USAGE. */
enum status rankers_look(struct store *store, const struct viewer *asker, const char *word, struct stored_ranker *out,
                         struct error *err);

/* What is known of a ranker, without what it learned: syncopate.trained-ranker/1. NULL when memory is out. */
cJSON *ranker_describe(const struct stored_ranker *stored);

struct stored_rankers {
    size_t n;
    struct stored_ranker *items; /* oldest first; malloc'd */
};
enum status rankers_list(struct store *store, const struct viewer *asker, struct stored_rankers *out,
                         struct error *err);
void stored_rankers_release(struct stored_rankers *list);

/* Find the usable residual ranker that was trained on the domain nearest to `here` (domain_distance). Of equally near
 * rankers the one with most trials is taken, then the newest. *distance may be NULL. Fails: ST_NOT_FOUND when there is
 * none. */
enum status rankers_nearest(struct store *store, const struct viewer *asker, const struct domain *here,
                            struct stored_ranker *out, double *distance, struct error *err);

/* The ranker that a session is to use: `word` is a name or id, "none", or "nearest". *out has ranker NULL for none and
 * where no ranker is near. Fails: ST_USAGE (it ranks and predicts no times), as rankers_get. */
enum status rankers_for_session(struct store *store, const struct viewer *asker, const struct domain *here,
                                const char *word, struct stored_ranker *out, struct error *err);

#endif
