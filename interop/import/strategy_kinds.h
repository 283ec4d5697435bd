/* The readers of strategies in other tools' words, for interop/import/import.c: the way back from the forms of
 * interop/export. Each works out the settings and lets the baseline's own code build what they make, sealed under
 * `name` (fsdp2 reads the groups themselves); `is` functions look at the contents and never fail. What is said beside
 * the settings is noted. Errors as import_strategy. */
#ifndef INTEROP_IMPORT_STRATEGY_KINDS_H
#define INTEROP_IMPORT_STRATEGY_KINDS_H

#include <stdbool.h>

#include "base/error.h"
#include "interop/import/notes.h"
#include "interop/import/source.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"

/* What a strategy is for, and its name. */
struct strategy_for {
    const struct model *model;
    const struct cluster *cluster;
    const char *name;
};

typedef bool import_recognise_strategy(const struct source *source);
typedef enum status import_strategy_reader(const struct source *source, const struct strategy_for *wanted,
                                           struct notes *notes, struct strategy *out, struct error *err);

import_recognise_strategy deepspeed_is, megatron_is, torchtitan_is, accelerate_is, xla_is, fsdp2_is;
import_strategy_reader deepspeed_read, megatron_read, torchtitan_read, accelerate_read, xla_read, fsdp2_read;

#endif
