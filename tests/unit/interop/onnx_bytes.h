/* ONNX files written by hand. */
#ifndef TESTS_UNIT_INTEROP_ONNX_BYTES_H
#define TESTS_UNIT_INTEROP_ONNX_BYTES_H

#include "interop/import/onnx_graph.h"
#include "tests/unit/interop/proto_bytes.h"

enum { ONNX_BYTES_INPUT = 11, ONNX_BYTES_OUTPUT = 12, ONNX_BYTES_INFO = 13, ONNX_BYTES_INT64 = 7 };

/* Sizes end with a negative one. */
static inline void put_initializer(struct proto_bytes *graph, const char *name, uint64_t type, const int *sizes) {
    struct proto_bytes tensor = {.n = 0};
    for (; *sizes >= 0; sizes++)
        put_number(&tensor, 1, (uint64_t)*sizes);
    put_number(&tensor, 2, type);
    put_text(&tensor, 8, name);
    put_data(&tensor, 9, "\1\2\3", 3);
    put_message(graph, 5, &tensor);
}

/* A vector of 64-bit integers, such as a shape: as numbers, or `raw` as their bytes. Sizes end with a negative one. */
static inline void put_integers(struct proto_bytes *graph, const char *name, bool raw, const int *sizes) {
    struct proto_bytes tensor = {.n = 0}, data = {.n = 0};
    size_t n = 0;
    for (; sizes[n] >= 0; n++)
        for (size_t i = 0; i < 8 && raw; i++)
            put_byte(&data, i < 4 ? (unsigned)sizes[n] >> 8 * i & 0xff : 0);
    put_number(&tensor, 1, n);
    put_number(&tensor, 2, ONNX_INT64);
    for (size_t i = 0; i < n && !raw; i++)
        put_number(&tensor, 7, (uint64_t)sizes[i]);
    put_text(&tensor, 8, name);
    if (raw)
        put_data(&tensor, 9, data.data, data.n);
    put_message(graph, 5, &tensor);
}

/* A tensor's shape, as an input, an output or in between; size 0 takes the name `symbol`. */
static inline void put_shape(struct proto_bytes *graph, uint32_t field, const char *name, const char *symbol,
                             const int *sizes) {
    struct proto_bytes shape = {.n = 0}, tensor = {.n = 0}, type = {.n = 0}, info = {.n = 0};
    for (; *sizes >= 0; sizes++) {
        struct proto_bytes dimension = {.n = 0};
        if (*sizes)
            put_number(&dimension, 1, (uint64_t)*sizes);
        else
            put_text(&dimension, 2, symbol);
        put_message(&shape, 1, &dimension);
    }
    put_number(&tensor, 1, ONNX_FLOAT);
    put_message(&tensor, 2, &shape);
    put_message(&type, 1, &tensor);
    put_text(&info, 1, name);
    put_message(&info, 2, &type);
    put_message(graph, field, &info);
}

/* Inputs are separated by commas; one output. */
static inline void put_node(struct proto_bytes *graph, const char *type, const char *name, const char *inputs,
                            const char *output) {
    struct proto_bytes node = {.n = 0};
    for (const char *at = inputs; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        put_data(&node, 1, at, strcspn(at, ","));
    put_text(&node, 2, output);
    put_text(&node, 3, name);
    put_text(&node, 4, type);
    put_message(graph, 1, &node);
}

static inline struct proto_bytes onnx_file(const struct proto_bytes *graph) {
    struct proto_bytes file = {.n = 0};
    put_number(&file, 1, 8);
    put_text(&file, 2, "test");
    put_message(&file, 7, graph);
    return file;
}

#define SIZES(...) ((const int[]){__VA_ARGS__, -1})

/* A convolution, its normalization, and a product of matrices: 3 layers, 6 variables of 8 initializers. */
static inline struct proto_bytes onnx_small(void) {
    struct proto_bytes graph = {.n = 0};
    put_node(&graph, "Conv", "c", "x,c.w", "h1");
    put_node(&graph, "BatchNormalization", "n", "h1,n.w,n.b,n.mean,n.var", "h2");
    put_node(&graph, "Relu", "r", "h2", "h3");
    put_node(&graph, "Flatten", "f", "h3", "h4");
    put_node(&graph, "Gemm", "g", "h4,g.w,g.b", "y");
    put_initializer(&graph, "c.w", ONNX_FLOAT16, SIZES(4, 3, 3, 3));
    put_initializer(&graph, "n.w", ONNX_FLOAT, SIZES(4));
    put_initializer(&graph, "n.b", ONNX_FLOAT, SIZES(4));
    put_initializer(&graph, "n.mean", ONNX_FLOAT, SIZES(4));
    put_initializer(&graph, "n.var", ONNX_FLOAT, SIZES(4));
    put_initializer(&graph, "g.w", ONNX_BFLOAT16, SIZES(10, 256));
    put_initializer(&graph, "g.b", ONNX_DOUBLE, SIZES(10));
    put_initializer(&graph, "shape", ONNX_BYTES_INT64, SIZES(2));
    put_shape(&graph, ONNX_BYTES_INPUT, "x", "", SIZES(2, 3, 8, 8));
    put_shape(&graph, ONNX_BYTES_OUTPUT, "y", "", SIZES(2, 10));
    put_shape(&graph, ONNX_BYTES_INFO, "h1", "", SIZES(2, 4, 8, 8));
    return onnx_file(&graph);
}

#endif
