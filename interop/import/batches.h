/* Micro-batches, as tools say them: how many, or by the samples of one and of all. */
#ifndef INTEROP_IMPORT_BATCHES_H
#define INTEROP_IMPORT_BATCHES_H

#include <stdint.h>

#include "interop/import/strategy_kinds.h"

/* What a file says; 0: nothing. */
struct batches {
    uint64_t micro_batches; /* of an iteration */
    uint64_t micro_batch;   /* samples of one, on a device */
    uint64_t global_batch;  /* samples of an iteration, on all devices */
};

/* Give a strategy that has been built what the file `name` says, and note samples that are not those of the model's
 * times. The strategy is released where that fails. Fails: ST_INVALID, ST_NO_MEMORY. */
enum status batches_apply(const struct batches *batches, enum synchronize synchronize, const char *name,
                          const struct strategy_for *wanted, struct notes *notes, struct strategy *strategy,
                          struct error *err);

#endif
