/* See sketch.h. */
#include "tuner/search/sketch.h"

#include <string.h>

static const double DOUBLINGS = 10; /* of a size or count that count as 1 */

#define X(name, knob) FEATURE_GLOBAL_##name,
static const size_t features_of_columns[SKETCH_COLUMNS] = {SKETCH_TABLE(X)};
#undef X
#define X(name, knob) SKETCH_##knob,
static const size_t knobs_of_columns[SKETCH_COLUMNS] = {SKETCH_TABLE(X)};
#undef X
#define X(knob, words) words,
static const char *const knob_words[SKETCH_KNOBS] = {SKETCH_KNOB_TABLE(X)};
#undef X

void sketch_of(const struct features *features, double out[SKETCH_COLUMNS]) {
    for (size_t k = 0; k < SKETCH_COLUMNS; k++) {
        double value = features->global[features_of_columns[k]];
        bool is_size = !strncmp(feature_global_name(features_of_columns[k]), "log2_", 5);
        out[k] = is_size ? value / DOUBLINGS : value;
    }
}

const size_t *sketch_knobs(void) {
    return knobs_of_columns;
}

const char *sketch_knob_label(enum sketch_knob knob) {
    return knob_words[knob];
}
