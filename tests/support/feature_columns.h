/* The tables of features (featurize/features_table.h) as arrays: what each column says, in which unit, of which kind.
 */
#ifndef TESTS_SUPPORT_FEATURE_COLUMNS_H
#define TESTS_SUPPORT_FEATURE_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

#include "featurize/features_table.h"

/* "log2_timeline_us", "log2 us", "the timeline's iteration time" */
struct feature_column {
    const char *name, *unit, *words;
};

static const struct feature_column GLOBAL_COLUMNS[FEATURE_GLOBAL_COUNT] = {
#define X(name, unit, kind, words) {#name, unit, words},
    FEATURE_GLOBAL_TABLE(X)
#undef X
};

static const enum feature_kind GLOBAL_KINDS[FEATURE_GLOBAL_COUNT] = {
#define X(name, unit, kind, words) FEATURE_KIND_##kind,
    FEATURE_GLOBAL_TABLE(X)
#undef X
};

static const struct feature_column SHARD_COLUMNS[FEATURE_SHARD_COUNT] = {
#define X(name, unit, words) {#name, unit, words},
    FEATURE_SHARD_TABLE(X)
#undef X
};

/* The knobs together describe a strategy, the same for all domains. */
static inline bool is_knob(size_t global) {
    return GLOBAL_KINDS[global] == FEATURE_KIND_knob;
}

#endif
