/* A sum of regression trees in one flat array: what is kept of a boosted model, and what scores with it.
 *
 * XGBoost is needed only to grow trees. Walking the trees here takes a fraction of the time that XGBoost needs for a
 * single row, and needs no lock (a booster is not safe to share). Saved trees are read by our own strict reader.
 * Threads: a const struct forest may be shared. */
#ifndef SIMULATOR_LEARNED_FOREST_H
#define SIMULATOR_LEARNED_FOREST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "simulator/learned/ranker_options.h"

struct forest_node {
    float value;          /* of a leaf; else x[feature] < value goes left */
    uint32_t left, right; /* nodes of the forest, after this one; 0 and 0: a leaf */
    uint32_t feature;
    bool default_left; /* where NaN goes */
};

struct forest {
    size_t n_trees, n_nodes;
    uint32_t *root; /* [n_trees] */
    struct forest_node *nodes;
};

/* Append to *forest the first n_trees trees of a model that XGBoost 1.7 saved as JSON. On failure *forest is as it was.
 * Fails: ST_INVALID, ST_NO_MEMORY. */
enum status forest_append_xgboost(struct forest *forest, const char *json, size_t n, size_t n_trees,
                                  uint32_t n_features, struct error *err);
enum status forest_copy(const struct forest *from, struct forest *out, struct error *err);

/* Append to *forest the trees of `from` from place `first` on, with all leaves multiplied by `scale`. On failure
 * *forest is as it was. Fails: ST_NO_MEMORY. */
enum status forest_append_scaled(struct forest *forest, const struct forest *from, size_t first, float scale,
                                 struct error *err);
void forest_release(struct forest *forest); /* zeroed ones are allowed */

/* The sum of the leaves that x[n_features] falls into, in single precision and in the order of the trees, as XGBoost
 * sums them: the result is that of XGBoost, bit for bit. */
float forest_score(const struct forest *forest, const float *x);

/* An array of trees, each {"feature": [], "left": [], ...} with nodes numbered from its root; NULL when memory is
 * out. */
cJSON *forest_write(const struct forest *forest);
/* `at` is what forest_write wrote. Fails: ST_INVALID, ST_NO_MEMORY. */
enum status forest_read(const struct json_at *at, uint32_t n_features, struct forest *out, struct error *err);

#endif
