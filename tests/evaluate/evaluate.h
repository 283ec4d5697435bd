/* What the tables of `make evaluate` share: the corpus, its noise, and the contenders that are compared.
 *
 * A corpus is a dataset of recorded trials. An example is one strategy on one domain (model, cluster) with its measured
 * time; places name examples. All functions end the program with a message when something fails, since a table with a
 * hole is of no use.
 * Units: microseconds (_us), seconds (_s). Threads: one. */
#ifndef TESTS_EVALUATE_EVALUATE_H
#define TESTS_EVALUATE_EVALUATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "dataset/store.h"
#include "simulator/learned/ranker.h"
#include "tuner/learn/examples.h"

struct corpus {
    struct examples examples;
    double *variance;  /* [examples.n] of log(measured time), were the trial repeated; see noise.c */
    double *closed_us; /* [examples.n] AutoSync's closed form */
    size_t n_drawn;    /* trials of what `collect` drew by constraints; see constraints.c */
    struct drawn_trial *drawn;
    size_t repeated;    /* examples that were tried more than once */
    uint32_t training;  /* trials that train within a domain; a domain is large when it has a fifth more */
    struct arena arena; /* owns these and what the tables allocate for good */
};

enum { LEAST_TRIALS = 25, SPLITS = 5 };

/* Some examples, by place. */
struct places {
    size_t n;
    uint32_t *place;
};

void fail(const struct error *err) __attribute__((noreturn));
void check(enum status status, const struct error *err); /* fails unless ST_OK */
void *allocate(struct arena *arena, size_t n, size_t size);
void *allocate_heap(size_t n, size_t size) __attribute__((returns_nonnull)); /* zeroed; to be freed */

const struct domain *corpus_domain(const struct corpus *corpus, size_t i);
bool domain_is_large(const struct corpus *corpus, size_t i);
bool domain_is_enough(const struct corpus *corpus, size_t i);                         /* for a target: LEAST_TRIALS */
const char *domain_words(const struct corpus *corpus, size_t i, struct arena *arena); /* "decoder on four" */

/* A domain's examples in an order drawn from `seed`. */
struct places domain_shuffled(const struct corpus *corpus, size_t domain, uint64_t seed, struct arena *arena);
/* The first n, all when there are fewer; and the rest. */
struct places places_head(struct places places, size_t n);
struct places places_tail(struct places places, size_t n);
/* `more` behind `places`. */
struct places places_join(struct places places, struct places more, struct arena *arena);

/* ---- accuracy ---- */

/* Pairs that count: all, and those whose times differ by more than 2% and 5%. */
enum { MARGINS = 3 };
extern const double MARGIN[MARGINS];

struct accuracy {
    double of[MARGINS]; /* NaN without pairs */
};
/* score[i] is places.place[i]'s; the examples of one domain. */
struct accuracy accuracy_of(const struct corpus *corpus, struct places places, const double *score);

/* What measurement noise allows on these examples; see noise.c. */
struct ceiling {
    struct accuracy truth, second;
};
void noise_estimate(struct corpus *corpus, struct store *store);
struct ceiling noise_ceiling(const struct corpus *corpus, struct places places);

/* ---- contenders ---- */

enum contender_kind {
    CONTENDER_TIMELINE,
    CONTENDER_CLOSED_FORM,
    CONTENDER_CORRECTED, /* the timeline, its two factors fitted to the training examples of the one domain */
    CONTENDER_RANKER
};
struct contender {
    const char *name;
    enum contender_kind kind;
    enum ranker_kind ranker;
    bool residual;
};

/* The rankers, residual ones first, RANKER_KIND_COUNT of each. */
enum { LEARNED = 2 * RANKER_KIND_COUNT };
extern const struct contender learned[LEARNED];
extern const struct contender timeline, closed_form, corrected;

/* Train on examples->examples[places], which may be of many domains. *report may be NULL. */
struct ranker *contender_train(const struct corpus *corpus, const struct contender *contender, struct places training,
                               uint64_t seed, struct ranker_report *report);
void ranker_scores(const struct corpus *corpus, const struct ranker *ranker, struct places places, double *score);

/* Fills corpus->closed_us. */
void closed_form_all(struct corpus *corpus);

/* Scores of one that is no ranker. `training` matters to CONTENDER_CORRECTED alone. */
void contender_scores(const struct corpus *corpus, const struct contender *contender, struct places training,
                      struct places places, double *score);

/* ---- tables ---- */

void table_accuracy(struct corpus *corpus);
void table_transfer(struct corpus *corpus);
void table_features(struct corpus *corpus);
void table_search(struct corpus *corpus);
void table_ablation(struct corpus *corpus);
void constraints_load(struct corpus *corpus, struct store *store);
void print_constraints(const struct corpus *corpus); /* a part of the table ablation */
void table_bayes(struct corpus *corpus);
void table_bound(struct corpus *corpus);

#endif
