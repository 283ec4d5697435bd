/* The tensors of a layer, from how PyTorch prints the module: "Conv2d(3, 64, kernel_size=(7, 7), bias=False)". */
#ifndef INTEROP_IMPORT_LAYER_SHAPES_H
#define INTEROP_IMPORT_LAYER_SHAPES_H

#include <stddef.h>
#include <stdint.h>

#include "interop/import/model_draft.h"

struct layer_tensor {
    const char *name; /* "weight", "bias", ... */
    struct shape shape;
};

enum { LAYER_MAX_TENSORS = 4 };

/* The tensors of a layer that has `elements` parameters in all. Where the words do not lead to exactly as many, there
 * is one tensor of that many elements, called "parameters". Returns how many tensors; 0 for elements 0. */
size_t layer_tensors(const char *words, uint64_t elements, struct layer_tensor out[LAYER_MAX_TENSORS]);

#endif
