/* A model description under construction: what a reader of another tool's file adds, in order.
 *
 * Adding never fails by itself: model_draft_finish tells what went wrong. Times are microseconds.
 * Threads: one at a time. */
#ifndef INTEROP_IMPORT_MODEL_DRAFT_H
#define INTEROP_IMPORT_MODEL_DRAFT_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "interop/import/source.h"
#include "strategy/model.h"

struct draft_variable {
    const char *name;
    size_t line, index; /* its line in the file, and its position among the variables */
};

struct model_draft {
    struct arena *arena;             /* the caller's */
    cJSON *root, *variables, *items; /* items: layers, or operators */
    bool ok;                         /* memory was never out */
    size_t n_variables, room;
    struct draft_variable *index;
};

struct shape {
    uint32_t rank;
    uint64_t sizes[MODEL_MAX_RANK];
};

enum draft_form { DRAFT_LAYERS, DRAFT_OPERATORS };

/* batch 0: not known, left out of the description. */
void model_draft_init(struct model_draft *draft, struct arena *arena, const char *name, double batch,
                      enum draft_form form);

/* If the name comes twice, the error of model_draft_finish says `line`. */
void model_draft_variable(struct model_draft *draft, const char *name, const struct shape *shape, enum dtype dtype,
                          size_t line);

/* A layer, in forward order, and the variables whose gradients its backward step produces; names are arena text or
 * constant. */
void model_draft_layer(struct model_draft *draft, const char *name, double forward_us, double backward_us, size_t n,
                       const char *const *variables);

/* An operator; `backward` decides whether `variables` are produced or read. */
void model_draft_operator(struct model_draft *draft, const char *name, bool backward, double time_us, size_t n_after,
                          const char *const *after, size_t n, const char *const *variables);

/* The description, checked as every model is; *out is the caller's. The draft is released either way. Fails:
 * ST_INVALID, ST_NO_MEMORY. */
enum status model_draft_finish(struct model_draft *draft, const struct source *source, cJSON **out, struct error *err);
void model_draft_release(struct model_draft *draft);

#endif
