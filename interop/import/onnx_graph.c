/* Two passes over the graph's fields: one counts, one reads into arrays of that length. Then names are sorted, a tensor
 * that occurs in several places (as a node's output, in value_info) becomes one, and the nodes' inputs and outputs are
 * looked up. Files without their weights (onnx.tools.replace_constants; the light models of ONNX's tests) have a
 * ConstantOfShape of a stored shape in place of each initializer: its output is an initializer here. Source: onnx.proto
 * of ONNX 1.12 (IR version 8); fields of later versions are skipped. */
#include "interop/import/onnx_graph.h"

#include <stdlib.h>
#include <string.h>

#include "interop/import/proto_reader.h"

enum { MODEL_IR = 1, MODEL_GRAPH = 7, MODEL_FUNCTIONS = 25 };
enum { GRAPH_NODE = 1, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12, GRAPH_INFO = 13, GRAPH_SPARSE = 15 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_TYPE = 4, NODE_ATTRIBUTE = 5, NODE_DOMAIN = 7 };
enum {
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_INTEGER = 3,
    ATTRIBUTE_TEXT = 4,
    ATTRIBUTE_TENSOR = 5,
    ATTRIBUTE_GRAPH = 6,
    ATTRIBUTE_GRAPHS = 11
};
enum { TENSOR_DIMS = 1, TENSOR_TYPE = 2, TENSOR_INTEGERS = 7, TENSOR_NAME = 8, TENSOR_RAW = 9 };
enum {
    INFO_NAME = 1,
    INFO_TYPE = 2,
    TYPE_TENSOR = 1,
    ELEMENT_TYPE = 1,
    SHAPE = 2,
    DIMENSION = 1,
    SIZE = 1,
    SYMBOL = 2
};

static const uint64_t MAX_SIZE = UINT64_C(1) << 40;

bool onnx_is_model(const struct source *source) {
    struct proto_message model = proto_root(source);
    struct proto_value field;
    bool more;
    if (source->n < 2 || source->text[0] != MODEL_IR << 3)
        return false;
    /* Where only the beginning of a file was read, the graph may go on beyond it: the graph's key is enough. */
    while (model.at < model.end && source->text[model.at] != (MODEL_GRAPH << 3 | PROTO_TYPE_LENGTH))
        if (proto_next(&model, &field, &more, NULL) || (field.number > 8 && field.number != 14))
            return false;
    return model.at < model.end;
}

/* ---- one pass over the fields, counting ---- */

struct counts {
    size_t nodes, values;
};

/* Fields of `number` in a message. */
static enum status count_fields(struct proto_message message, uint32_t number, size_t *n, struct error *err) {
    struct proto_value field;
    bool more = true;
    enum status st = ST_OK;
    while (!st && !(st = proto_next(&message, &field, &more, err)) && more)
        *n += field.number == number;
    return st;
}

static enum status count_graph(struct proto_message graph, struct counts *out, struct error *err) {
    struct proto_value field;
    struct proto_message node;
    bool more = true;
    enum status st = ST_OK;
    *out = (struct counts){0};
    while (!st && !(st = proto_next(&graph, &field, &more, err)) && more) {
        out->nodes += field.number == GRAPH_NODE;
        out->values += field.number == GRAPH_INITIALIZER || (field.number >= GRAPH_INPUT && field.number <= GRAPH_INFO);
        if (field.number == GRAPH_NODE && !(st = proto_inside(&graph, &field, &node, err)))
            st = count_fields(node, NODE_OUTPUT, &out->values, err);
    }
    return st;
}

/* ---- tensors ---- */

static enum status check_sizes(const struct proto_message *message, const struct proto_value *field,
                               struct onnx_value *out, size_t rank, struct error *err) {
    if (rank > MODEL_MAX_RANK)
        return proto_fail(message, field, err, "tensor \"%.100s\" has %zu axes; at most %d are possible", out->name,
                          rank, MODEL_MAX_RANK);
    out->shape.rank = (uint32_t)rank;
    out->sized = true;
    for (size_t i = 0; i < rank; i++)
        if (out->shape.sizes[i] > MAX_SIZE)
            return proto_fail(message, field, err, "size %zu of tensor \"%.100s\" is out of range", i, out->name);
    return ST_OK;
}

/* The data of integers as little-endian bytes; as many of them as there is room for. */
static void read_raw(const struct proto_value *raw, uint64_t numbers[MODEL_MAX_RANK], size_t *n) {
    for (*n = 0; *n < MODEL_MAX_RANK && 8 * *n + 8 <= raw->n; ++*n) {
        numbers[*n] = 0;
        for (size_t i = 8; i--;)
            numbers[*n] = numbers[*n] << 8 | (unsigned char)raw->bytes[8 * *n + i];
    }
}

static enum status read_initializer(const struct proto_message *graph, const struct proto_value *at,
                                    struct arena *arena, struct onnx_value *out, struct error *err) {
    struct proto_message tensor;
    struct proto_value field;
    bool more = true;
    size_t rank = 0, n_numbers = 0;
    *out = (struct onnx_value){.name = "", .at = at->at, .initializer = true};
    enum status st = proto_inside(graph, at, &tensor, err);
    while (!st && !(st = proto_next(&tensor, &field, &more, err)) && more) {
        if (field.number == TENSOR_DIMS)
            st = proto_integers(&tensor, &field, MODEL_MAX_RANK, out->shape.sizes, &rank, err);
        else if (field.number == TENSOR_TYPE)
            st = proto_integer(&tensor, &field, &out->type, err);
        else if (field.number == TENSOR_NAME)
            st = proto_text(&tensor, &field, arena, &out->name, err);
        else if (field.number == TENSOR_INTEGERS)
            st = proto_integers(&tensor, &field, MODEL_MAX_RANK, out->numbers, &n_numbers, err);
        else if (field.number == TENSOR_RAW && field.type == PROTO_TYPE_LENGTH)
            read_raw(&field, out->numbers, &n_numbers);
    }
    if (out->type == ONNX_INT64 && rank == 1 && n_numbers == out->shape.sizes[0] && n_numbers <= MODEL_MAX_RANK)
        out->n_numbers = n_numbers;
    if (!st && (!*out->name || !out->type))
        st = proto_fail(graph, at, err, "an initializer without %s", *out->name ? "a type" : "a name");
    return st ? st : check_sizes(graph, at, out, rank, err);
}

/* One size of a shape: a number, a name, or nothing. */
static enum status read_dimension(const struct proto_message *shape, const struct proto_value *at, struct arena *arena,
                                  size_t axis, struct onnx_value *out, struct error *err) {
    struct proto_message dimension;
    struct proto_value field;
    bool more = true;
    enum status st = proto_inside(shape, at, &dimension, err);
    while (!st && !(st = proto_next(&dimension, &field, &more, err)) && more && axis < MODEL_MAX_RANK) {
        if (field.number == SIZE)
            st = proto_integer(&dimension, &field, &out->shape.sizes[axis], err);
        else if (field.number == SYMBOL)
            st = proto_text(&dimension, &field, arena, &out->symbols[axis], err);
    }
    return st;
}

static enum status read_shape(const struct proto_message *tensor, const struct proto_value *at, struct arena *arena,
                              struct onnx_value *out, struct error *err) {
    struct proto_message shape;
    struct proto_value field;
    bool more = true;
    size_t rank = 0;
    enum status st = proto_inside(tensor, at, &shape, err);
    while (!st && !(st = proto_next(&shape, &field, &more, err)) && more)
        if (field.number == DIMENSION)
            st = read_dimension(&shape, &field, arena, rank++, out, err);
    out->shape.rank = rank <= MODEL_MAX_RANK ? (uint32_t)rank : 0;
    out->sized = rank <= MODEL_MAX_RANK;
    return st;
}

/* Read the shape and type of a TypeProto; sequences, maps and the like have no shape. */
static enum status read_type(const struct proto_message *info, const struct proto_value *at, struct arena *arena,
                             struct onnx_value *out, struct error *err) {
    struct proto_message type, tensor;
    struct proto_value field, part;
    bool more = true, parts = true;
    enum status st = proto_inside(info, at, &type, err);
    while (!st && !(st = proto_next(&type, &field, &more, err)) && more) {
        if (field.number != TYPE_TENSOR)
            continue;
        st = proto_inside(&type, &field, &tensor, err);
        while (!st && !(st = proto_next(&tensor, &part, &parts, err)) && parts) {
            if (part.number == ELEMENT_TYPE)
                st = proto_integer(&tensor, &part, &out->type, err);
            else if (part.number == SHAPE)
                st = read_shape(&tensor, &part, arena, out, err);
        }
    }
    return st;
}

static enum status read_info(const struct proto_message *graph, const struct proto_value *at, struct arena *arena,
                             struct onnx_value *out, struct error *err) {
    struct proto_message info;
    struct proto_value field;
    bool more = true;
    *out = (struct onnx_value){.name = "", .at = at->at, .input = at->number == GRAPH_INPUT};
    enum status st = proto_inside(graph, at, &info, err);
    while (!st && !(st = proto_next(&info, &field, &more, err)) && more) {
        if (field.number == INFO_NAME)
            st = proto_text(&info, &field, arena, &out->name, err);
        else if (field.number == INFO_TYPE)
            st = read_type(&info, &field, arena, out, err);
    }
    return st;
}

/* ---- nodes ---- */

static enum status read_fill_type(const struct proto_message *attribute, const struct proto_value *at, uint64_t *out,
                                  struct error *err) {
    struct proto_message tensor;
    struct proto_value field;
    bool more = true;
    enum status st = proto_inside(attribute, at, &tensor, err);
    while (!st && !(st = proto_next(&tensor, &field, &more, err)) && more)
        if (field.number == TENSOR_TYPE)
            st = proto_integer(&tensor, &field, out, err);
    return st;
}

/* The fields of a message may come in any order, its name last. */
static enum status read_attribute(const struct proto_message *node, const struct proto_value *at,
                                  struct onnx_graph *graph, struct onnx_node *out, struct error *err) {
    struct proto_message attribute;
    struct proto_value field, text = {0}, tensor = {0};
    const char *name = "";
    uint64_t integer = 0;
    bool more = true;
    enum status st = proto_inside(node, at, &attribute, err);
    while (!st && !(st = proto_next(&attribute, &field, &more, err)) && more) {
        graph->n_inner += field.number == ATTRIBUTE_GRAPH || field.number == ATTRIBUTE_GRAPHS;
        if (field.number == ATTRIBUTE_NAME)
            st = proto_text(&attribute, &field, graph->arena, &name, err);
        else if (field.number == ATTRIBUTE_INTEGER)
            st = proto_integer(&attribute, &field, &integer, err);
        else if (field.number == ATTRIBUTE_TEXT)
            text = field;
        else if (field.number == ATTRIBUTE_TENSOR)
            tensor = field;
    }
    if (!st && text.number && !strcmp(name, "equation"))
        st = proto_text(&attribute, &text, graph->arena, &out->equation, err);
    if (!st && tensor.number && !strcmp(name, "value"))
        st = read_fill_type(&attribute, &tensor, &out->fill_type, err);
    out->transposed[0] |= !strcmp(name, "transA") && integer;
    out->transposed[1] |= !strcmp(name, "transB") && integer;
    return st;
}

static enum status node_room(struct proto_message message, struct arena *arena, struct onnx_node *out,
                             struct error *err) {
    size_t n_inputs = 0, n_outputs = 0;
    enum status st = count_fields(message, NODE_INPUT, &n_inputs, err);
    if (!st)
        st = count_fields(message, NODE_OUTPUT, &n_outputs, err);
    if (st)
        return st;
    out->input_names = arena_alloc(arena, n_inputs, sizeof *out->input_names);
    out->output_names = arena_alloc(arena, n_outputs, sizeof *out->output_names);
    out->inputs = arena_alloc(arena, n_inputs, sizeof(struct onnx_value *));
    out->outputs = arena_alloc(arena, n_outputs, sizeof(struct onnx_value *));
    return out->input_names && out->output_names && out->inputs && out->outputs ? ST_OK : error_no_memory(err);
}

static enum status read_node(const struct proto_message *parent, const struct proto_value *at, struct onnx_graph *graph,
                             struct onnx_node *out, struct error *err) {
    struct proto_message node;
    struct proto_value field;
    bool more = true;
    *out = (struct onnx_node){.name = "", .type = "", .domain = ""};
    enum status st = proto_inside(parent, at, &node, err);
    if (!st)
        st = node_room(node, graph->arena, out, err);
    while (!st && !(st = proto_next(&node, &field, &more, err)) && more) {
        if (field.number == NODE_INPUT)
            st = proto_text(&node, &field, graph->arena, &out->input_names[out->n_inputs++], err);
        else if (field.number == NODE_OUTPUT)
            st = proto_text(&node, &field, graph->arena, &out->output_names[out->n_outputs++], err);
        else if (field.number == NODE_NAME)
            st = proto_text(&node, &field, graph->arena, &out->name, err);
        else if (field.number == NODE_TYPE)
            st = proto_text(&node, &field, graph->arena, &out->type, err);
        else if (field.number == NODE_ATTRIBUTE)
            st = read_attribute(&node, &field, graph, out, err);
        else if (field.number == NODE_DOMAIN)
            st = proto_text(&node, &field, graph->arena, &out->domain, err);
    }
    if (!st)
        for (size_t i = 0; i < out->n_outputs; i++)
            graph->values[graph->n_values++] = (struct onnx_value){.name = out->output_names[i], .at = at->at};
    return st;
}

/* ---- the graph ---- */

static enum status read_graph(struct proto_message message, struct onnx_graph *graph, struct error *err) {
    struct proto_value field;
    bool more = true;
    enum status st = ST_OK;
    while (!st && !(st = proto_next(&message, &field, &more, err)) && more) {
        struct onnx_value *value = &graph->values[graph->n_values];
        if (field.number == GRAPH_NODE) {
            st = read_node(&message, &field, graph, &graph->nodes[graph->n_nodes++], err);
        } else if (field.number == GRAPH_INITIALIZER) {
            st = read_initializer(&message, &field, graph->arena, value, err);
            graph->n_values++;
        } else if (field.number >= GRAPH_INPUT && field.number <= GRAPH_INFO) {
            st = read_info(&message, &field, graph->arena, value, err);
            graph->n_values++;
        }
        graph->n_sparse += field.number == GRAPH_SPARSE;
    }
    return st;
}

/* Of several entries for one tensor, the one that says most comes first: an initializer, then one that has a shape. */
static int compare_values(const void *a, const void *b) {
    const struct onnx_value *x = a, *y = b;
    const int order = strcmp(x->name, y->name);
    if (order || x->initializer != y->initializer)
        return order ? order : y->initializer - x->initializer;
    return x->sized != y->sized ? y->sized - x->sized : (x->at > y->at) - (x->at < y->at);
}

static int compare_names(const void *a, const void *b) {
    const struct onnx_value *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static enum status merge_values(const struct source *source, struct onnx_graph *graph, struct error *err) {
    size_t n = 0;
    qsort(graph->values, graph->n_values, sizeof *graph->values, compare_values);
    for (size_t i = 0; i < graph->n_values; i++) {
        const struct onnx_value *value = &graph->values[i];
        if (!n || strcmp(graph->values[n - 1].name, value->name) != 0)
            graph->values[n++] = *value;
        else if (graph->values[n - 1].initializer && value->initializer)
            return error_at(err, ST_INVALID, source->name,
                            "byte %zu: initializer \"%.100s\" again; it stands at byte %zu", value->at, value->name,
                            graph->values[n - 1].at);
        else
            graph->values[n - 1].input |= value->input;
    }
    graph->n_values = n;
    return ST_OK;
}

static void find_first_input(struct onnx_graph *graph) {
    for (size_t i = 0; i < graph->n_values; i++) {
        const struct onnx_value *value = &graph->values[i], *first = graph->first_input;
        if (value->input && !value->initializer && (!first || value->at < first->at))
            graph->first_input = value;
    }
}

static struct onnx_value *find_value(const struct onnx_graph *graph, const char *name) {
    const struct onnx_value key = {.name = name};
    return *name && graph->n_values ? bsearch(&key, graph->values, graph->n_values, sizeof key, compare_names) : NULL;
}

static void link_nodes(struct onnx_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct onnx_node *node = &graph->nodes[i];
        for (size_t k = 0; k < node->n_inputs; k++)
            node->inputs[k] = find_value(graph, node->input_names[k]);
        for (size_t k = 0; k < node->n_outputs; k++)
            node->outputs[k] = find_value(graph, node->output_names[k]);
    }
}

/* ---- sizes that are names ---- */

struct symbols {
    const char *batch, *other;
    bool several; /* of others */
};

static void find_symbols(const struct onnx_graph *graph, struct symbols *out) {
    const struct onnx_value *first = graph->first_input;
    *out = (struct symbols){.batch = first && first->shape.rank ? first->symbols[0] : NULL};
    for (size_t i = 0; i < graph->n_values; i++)
        for (uint32_t a = 0; a < MODEL_MAX_RANK && graph->values[i].input; a++) {
            const char *symbol = graph->values[i].symbols[a];
            if (!symbol || (out->batch && !strcmp(symbol, out->batch)))
                continue;
            out->several = out->several || (out->other && strcmp(symbol, out->other) != 0);
            out->other = symbol;
        }
}

static uint64_t size_of_symbol(const struct symbols *symbols, const char *symbol, double batch, double positions) {
    double size = 0;
    if (symbol && symbols->batch && !strcmp(symbol, symbols->batch))
        size = batch;
    else if (symbol && symbols->other && !symbols->several && !strcmp(symbol, symbols->other))
        size = positions;
    return size >= 1 && size <= (double)MAX_SIZE ? (uint64_t)size : 0;
}

static void resolve_sizes(struct onnx_graph *graph, double batch, double positions) {
    struct symbols symbols;
    find_symbols(graph, &symbols);
    for (size_t i = 0; i < graph->n_values; i++) {
        struct onnx_value *value = &graph->values[i];
        value->elements = 1;
        for (uint32_t a = 0; a < value->shape.rank; a++) {
            uint64_t *size = &value->shape.sizes[a];
            if (!value->initializer && (!*size || *size > MAX_SIZE))
                *size = size_of_symbol(&symbols, value->symbols[a], batch, positions);
            value->sized = value->sized && (*size || value->initializer);
            value->elements *= (double)*size;
        }
    }
}

/* Does the node make a tensor of a shape that the file has, of floating-point zeros unless it says otherwise? */
static bool makes_initializer(const struct onnx_node *node) {
    const struct onnx_value *shape = node->n_inputs == 1 ? node->inputs[0] : NULL;
    bool known = !strcmp(node->type, "ConstantOfShape") && node->n_outputs == 1 && node->outputs[0] &&
                 !node->outputs[0]->initializer && shape && shape->n_numbers;
    for (size_t i = 0; known && i < shape->n_numbers; i++)
        known = shape->numbers[i] && shape->numbers[i] <= MAX_SIZE;
    return known;
}

static void make_initializers(struct onnx_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct onnx_node *node = &graph->nodes[i];
        if (!makes_initializer(node))
            continue;
        struct onnx_value *out = node->outputs[0];
        const struct onnx_value *shape = node->inputs[0];
        out->initializer = out->made = out->sized = true;
        out->type = node->fill_type ? node->fill_type : ONNX_FLOAT;
        out->shape.rank = (uint32_t)shape->n_numbers;
        out->elements = 1;
        for (size_t k = 0; k < shape->n_numbers; k++)
            out->elements *= (double)(out->shape.sizes[k] = shape->numbers[k]);
    }
}

static enum status read_fields(struct proto_message model, struct onnx_graph *graph, struct error *err) {
    struct proto_value field;
    struct proto_message inside;
    struct counts counts;
    bool more = true, seen = false;
    enum status st = ST_OK;
    while (!st && !(st = proto_next(&model, &field, &more, err)) && more) {
        graph->n_inner += field.number == MODEL_FUNCTIONS;
        if (field.number != MODEL_GRAPH)
            continue;
        if (seen)
            return proto_fail(&model, &field, err, "a second graph");
        seen = true;
        if ((st = proto_inside(&model, &field, &inside, err)) || (st = count_graph(inside, &counts, err)))
            break;
        graph->values = arena_alloc(graph->arena, counts.values, sizeof *graph->values);
        graph->nodes = arena_alloc(graph->arena, counts.nodes, sizeof *graph->nodes);
        st = graph->values && graph->nodes ? read_graph(inside, graph, err) : error_no_memory(err);
    }
    return st || seen ? st : error_at(err, ST_INVALID, model.source->name, "byte 0: no graph in it");
}

enum status onnx_graph_read(const struct source *source, double batch, double positions, struct arena *arena,
                            struct onnx_graph *out, struct error *err) {
    struct onnx_graph graph = {.arena = arena};
    enum status st = read_fields(proto_root(source), &graph, err);
    if (!st)
        st = merge_values(source, &graph, err);
    if (st)
        return st;
    find_first_input(&graph);
    resolve_sizes(&graph, batch, positions);
    link_nodes(&graph);
    make_initializers(&graph);
    *out = graph;
    return ST_OK;
}
