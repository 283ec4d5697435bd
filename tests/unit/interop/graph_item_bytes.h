/* AutoDist's GraphItem messages written by hand. */
#ifndef TESTS_UNIT_INTEROP_GRAPH_ITEM_BYTES_H
#define TESTS_UNIT_INTEROP_GRAPH_ITEM_BYTES_H

#include "tests/unit/interop/proto_bytes.h"

enum { TENSORFLOW_FLOAT = 1, TENSORFLOW_INT64 = 9, TENSORFLOW_BFLOAT16 = 14, TENSORFLOW_HALF = 19 };

/* An entry of a map is a message whose fields may come in either order. */
enum entry_order { KEY_FIRST, VALUE_FIRST };

static inline void put_attribute(struct proto_bytes *node, enum entry_order order, const char *key, uint32_t field,
                                 const struct proto_bytes *message, uint64_t number) {
    struct proto_bytes value = {.n = 0}, entry = {.n = 0};
    if (message)
        put_message(&value, field, message);
    else
        put_number(&value, field, number);
    if (order == VALUE_FIRST)
        put_message(&entry, 2, &value);
    put_text(&entry, 1, key);
    if (order == KEY_FIRST)
        put_message(&entry, 2, &value);
    put_message(node, 5, &entry);
}

/* A node that makes a variable; sizes end with a negative one. */
static inline void put_variable_as(struct proto_bytes *graph, enum entry_order order, const char *name, const char *op,
                                   uint64_t type, const int *sizes) {
    struct proto_bytes node = {.n = 0}, shape = {.n = 0};
    for (; *sizes >= 0; sizes++) {
        struct proto_bytes dimension = {.n = 0};
        put_number(&dimension, 1, (uint64_t)*sizes);
        put_message(&shape, 2, &dimension);
    }
    put_text(&node, 1, name);
    put_text(&node, 2, op);
    put_attribute(&node, order, "dtype", 6, NULL, type);
    put_attribute(&node, order, "shape", 7, &shape, 0);
    put_message(graph, 1, &node);
}

static inline void put_variable(struct proto_bytes *graph, const char *name, const char *op, uint64_t type,
                                const int *sizes) {
    put_variable_as(graph, KEY_FIRST, name, op, type, sizes);
}

static inline void put_pair(struct proto_bytes *item, const char *gradient, const char *variable) {
    struct proto_bytes pair = {.n = 0};
    put_text(&pair, 1, gradient);
    put_text(&pair, 2, variable);
    put_message(item, 2, &pair);
}

static inline struct proto_bytes graph_item(const struct proto_bytes *graph) {
    struct proto_bytes any = {.n = 0}, item = {.n = 0};
    put_text(&any, 1, "type.googleapis.com/tensorflow.GraphDef");
    put_message(&any, 2, graph);
    put_message(&item, 1, &any);
    return item;
}

/* Four variables that are trained, of two layers and a table, and two that are not. */
static inline struct proto_bytes graph_item_small(void) {
    struct proto_bytes graph = {.n = 0};
    put_variable(&graph, "table", "VarHandleOp", TENSORFLOW_FLOAT, (const int[]){50, 8, -1});
    put_variable(&graph, "a/w", "VarHandleOp", TENSORFLOW_HALF, (const int[]){8, 16, -1});
    put_variable(&graph, "a/b", "VarHandleOp", TENSORFLOW_HALF, (const int[]){16, -1});
    put_variable(&graph, "global_step", "VarHandleOp", TENSORFLOW_INT64, (const int[]){-1});
    put_variable(&graph, "b/w", "VariableV2", TENSORFLOW_BFLOAT16, (const int[]){16, 4, -1});
    put_variable(&graph, "b/w/Momentum", "VariableV2", TENSORFLOW_BFLOAT16, (const int[]){16, 4, -1});
    struct proto_bytes item = graph_item(&graph);
    put_pair(&item, "g/indices:0;g/values:0;g/shape:0", "table:0");
    put_pair(&item, "g1:0", "b/w:0");
    put_pair(&item, "g2:0", "a/w:0");
    put_pair(&item, "g3:0", "a/b:0");
    return item;
}

#endif
