/* What a ranker is trained from and how: kinds, examples, options, and the report of a training. */
#ifndef SIMULATOR_LEARNED_RANKER_OPTIONS_H
#define SIMULATOR_LEARNED_RANKER_OPTIONS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "featurize/features.h"

#define RANKER_KIND_TABLE(X)                                                                                           \
    X(linear) /* a linear model of the global features */                                                              \
    X(rnn)    /* a bidirectional LSTM over the variables */                                                            \
    X(gat)    /* graph attention over the variable graph */                                                            \
    X(trees)  /* boosted trees on the global features */

enum ranker_kind {
#define X(name) RANKER_##name,
    RANKER_KIND_TABLE(X)
#undef X
        RANKER_KIND_COUNT
};
const char *ranker_kind_name(enum ranker_kind kind);
bool ranker_kind_parse(const char *word, enum ranker_kind *out);

struct ranker_example {
    const struct features *features; /* borrowed */
    double us;                       /* measured, > 0 */
    uint32_t domain;                 /* any number: pairs are drawn between examples of the same */
};

struct ranker_options {
    enum ranker_kind kind;
    bool residual;
    uint64_t seed;
    double sigma_us;   /* equation 3's penalty for more partitions; 0: none */
    double validation; /* share of the examples that decides when to stop; never trained on. At most 0.5; 0: none.
                          Whole domains where there are several (simulator/learned/sample.h) */
    uint32_t members;  /* trees: it is the mean of so many, each with its own validation share; others: 1 */
    uint32_t epochs;   /* at most */
    uint32_t patience; /* epochs without a better validation before it stops */
    double learning_rate, weight_decay;
    const atomic_int *cancel; /* NULL: none. Checked once an epoch */
};

/* Options that are good for `kind` with a few hundred examples. */
struct ranker_options ranker_default_options(enum ranker_kind kind);

/* Check that every option lies in its range. Fails: ST_INVALID. */
enum status ranker_check_options(const struct ranker_options *options, struct error *err);

struct ranker_report {
    uint32_t epochs, best_epoch; /* boosting rounds for trees, of the member with most */
    size_t n_training, n_validation;
    double training_accuracy, validation_accuracy; /* pairwise, the mean over members; NaN without pairs */
    double seconds;
};

#endif
