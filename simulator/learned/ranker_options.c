/* See simulator/learned/ranker_options.h. */
#include "simulator/learned/ranker_options.h"

#include <math.h>
#include <string.h>

static const char *const KINDS[RANKER_KIND_COUNT] = {
#define X(name) [RANKER_##name] = #name,
    RANKER_KIND_TABLE(X)
#undef X
};

const char *ranker_kind_name(enum ranker_kind kind) {
    return KINDS[kind];
}

bool ranker_kind_parse(const char *word, enum ranker_kind *out) {
    for (int kind = 0; kind < RANKER_KIND_COUNT; kind++) {
        if (strcmp(word, KINDS[kind]) == 0) {
            *out = (enum ranker_kind)kind;
            return true;
        }
    }
    return false;
}

struct ranker_options ranker_default_options(enum ranker_kind kind) {
    struct ranker_options options = {.kind = kind,
                                     .residual = true,
                                     .seed = 1,
                                     .validation = 0.2,
                                     .members = 1,
                                     .epochs = 150,
                                     .patience = 40,
                                     .learning_rate = 0.01,
                                     .weight_decay = 0.01};
    if (kind == RANKER_trees) {
        options.members = 8;
        options.epochs = 500;
        options.learning_rate = 0.1;
        options.weight_decay = 1;
    } else if (kind == RANKER_linear) {
        options.learning_rate = 0.002;
    } else {
        options.epochs = 80;
        options.patience = 20;
        options.learning_rate = 0.003;
    }
    return options;
}

enum status ranker_check_options(const struct ranker_options *o, struct error *err) {
    if (!(o->validation >= 0 && o->validation <= 0.5))
        return error_set(err, ST_INVALID, "validation is %g; it must be from 0 to 0.5", o->validation);
    if (!(o->sigma_us >= 0) || !isfinite(o->sigma_us))
        return error_set(err, ST_INVALID, "sigma is %g us; it must be 0 or more", o->sigma_us);
    if (o->epochs == 0 || o->patience == 0 || o->members == 0)
        return error_set(err, ST_INVALID, "epochs, patience and members must be at least 1");
    if (!(o->learning_rate > 0) || !isfinite(o->learning_rate))
        return error_set(err, ST_INVALID, "the learning rate is %g; it must be positive", o->learning_rate);
    if (!(o->weight_decay >= 0) || !isfinite(o->weight_decay))
        return error_set(err, ST_INVALID, "the weight decay is %g; it must be 0 or more", o->weight_decay);
    return ST_OK;
}
