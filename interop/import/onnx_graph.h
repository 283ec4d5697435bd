/* The graph of an ONNX file: its nodes in order, and the tensors that it names, with their shapes where it tells them.
 * The data of tensors is skipped, but for short vectors of integers, which may be shapes. Graphs and functions inside
 * of nodes are counted, not read. Threads: one at a time. */
#ifndef INTEROP_IMPORT_ONNX_GRAPH_H
#define INTEROP_IMPORT_ONNX_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "interop/import/model_draft.h"
#include "interop/import/source.h"

/* TensorProto.DataType, as far as gradients and shapes have it */
enum { ONNX_FLOAT = 1, ONNX_INT64 = 7, ONNX_FLOAT16 = 10, ONNX_DOUBLE = 11, ONNX_BFLOAT16 = 16 };

struct onnx_value {
    const char *name;
    size_t at; /* byte of the file, for messages */
    uint64_t type;
    bool initializer, input;
    bool sized; /* `shape` is known, and `elements` its product */
    struct shape shape;
    double elements;
    const char *symbols[MODEL_MAX_RANK]; /* names in place of sizes, or NULL */
    const struct onnx_value *source;     /* the initializer that this is, in another layout; NULL: none */
    uint64_t numbers[MODEL_MAX_RANK];    /* of a short vector of integers whose data are in the file */
    size_t n_numbers;                    /* 0: not known */
    bool made;                           /* an initializer in the form of a ConstantOfShape: its data were left out */
    bool taken;                          /* already given to a layer */
};

struct onnx_node {
    const char *name, *type, *domain; /* name and domain may be empty */
    const char *equation;             /* attribute; NULL: none */
    uint64_t fill_type;               /* of the attribute "value"; 0: none */
    bool transposed[2];               /* attributes transA and transB: the last two axes of that input change places */
    size_t n_inputs, n_outputs;
    const char **input_names, **output_names;
    struct onnx_value **inputs, **outputs; /* NULL: an input left out */
};

struct onnx_graph {
    struct arena *arena;
    size_t n_values, n_nodes;
    struct onnx_value *values; /* by name, each once */
    struct onnx_node *nodes;
    const struct onnx_value *first_input; /* that is no initializer; NULL: none */
    size_t n_inner, n_sparse;             /* graphs and functions inside, sparse initializers: not read */
};

/* Does the file begin like a ModelProto? */
bool onnx_is_model(const struct source *source);

/* Read the graph; *out lives in `arena` and refers to nothing else. In the file a size may be a name. The name of the
 * first size of the first input gets the value `batch`. If there is exactly one other name, it gets the value
 * `positions`. 0: not known.
 * Fails: ST_INVALID with the offset, ST_NO_MEMORY. O(n log n) in the names. */
enum status onnx_graph_read(const struct source *source, double batch, double positions, struct arena *arena,
                            struct onnx_graph *out, struct error *err);

#endif
