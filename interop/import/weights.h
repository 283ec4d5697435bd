/* A model of which only the weights are known: its layers, with times estimated from the arithmetic.
 *
 * Forward, each element of a tensor of two or more axes costs 2 operations for every position (token, pixel) of every
 * sample. Backward costs twice that: once for the gradient of the input and once for that of the tensor. --tflops says
 * how many operations the device sustains and --positions how many positions a sample has. Vectors and look-ups cost
 * nothing. Threads: one at a time. */
#ifndef INTEROP_IMPORT_WEIGHTS_H
#define INTEROP_IMPORT_WEIGHTS_H

#include "interop/import/import.h"
#include "interop/import/model_draft.h"

struct weight {
    const char *name;
    struct shape shape;
    enum dtype dtype;
    bool lookup; /* its rows are looked up */
};

/* Are the settings there that the estimate needs? Fails: ST_USAGE with their options. */
enum status weights_check(const struct source *source, const struct import_settings *settings, struct error *err);

/* What was assumed; false when memory is out. */
bool weights_note(const struct source *source, const struct import_settings *settings, struct notes *notes);

/* One layer for each run of weights whose names agree up to the last `separator`, in the order given. */
void weights_draft(struct model_draft *draft, const struct weight *weights, size_t n, char separator,
                   const struct import_settings *settings);

#endif
