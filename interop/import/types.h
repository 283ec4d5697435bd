/* The types in which sharded parameters are gathered and their gradients summed, as tools say them: one for all. */
#ifndef INTEROP_IMPORT_TYPES_H
#define INTEROP_IMPORT_TYPES_H

#include <stdbool.h>

#include "interop/import/strategy_kinds.h"

struct types {
    enum carried gathered, summed; /* CARRIED_own: it says nothing */
};

/* The type that a tool calls so: float32, fp32, bfloat16, bf16, bfp16, float16 or fp16. False: none. */
bool types_named(const char *word, enum carried *out);

/* Give them to all sharded parameters of a strategy that has been built. It is released where that fails. Fails:
 * ST_INVALID (parameters that are no floats), ST_NO_MEMORY. */
enum status types_apply(const struct types *types, const struct strategy_for *wanted, struct strategy *strategy,
                        struct error *err);

#endif
