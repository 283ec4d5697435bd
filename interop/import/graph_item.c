/* AutoDist's GraphItem, which its strategy builders and AutoSync's simulator read: a TensorFlow graph, and which
 * gradient belongs to which variable.
 *
 * A variable is a node that makes one (VarHandleOp, VariableV2, Variable) and that a gradient is for; its attributes
 * tell shape and type. Nodes stand in the order in which they were made, so variables follow the forward pass. A
 * gradient of several tensors (indices, values, shape) is sparse: its variable is looked up. Times are estimated
 * (interop/import/weights.h). O(n log n).
 * Source: AutoDist, autodist/proto/graphitem.proto and graph_item.py; TensorFlow, core/framework: graph.proto,
 * node_def.proto, attr_value.proto, tensor_shape.proto, types.proto. */
#include <stdlib.h>
#include <string.h>

#include "interop/import/model_kinds.h"
#include "interop/import/proto_reader.h"
#include "interop/import/weights.h"

enum { ITEM_GRAPH = 1, ITEM_PAIR = 2, ANY_VALUE = 2, MAP_KEY = 1, MAP_VALUE = 2 };
enum { GRAPH_NODE = 1, NODE_NAME = 1, NODE_TYPE = 2, NODE_ATTRIBUTE = 5, VALUE_TYPE = 6, VALUE_SHAPE = 7 };
enum { SHAPE_DIMENSION = 2, SHAPE_UNKNOWN = 3, DIMENSION_SIZE = 1 };

static const char GRAPH_TYPE[] = "type.googleapis.com/tensorflow.GraphDef";

/* A gradient's variable. */
struct target {
    const char *name;
    bool sparse, found;
};

struct item {
    const struct source *source;
    struct arena *arena;
    struct target *targets; /* by name */
    struct weight *weights;
    size_t n_targets, n_weights;
};

bool graph_item_is(const struct source *source) {
    const size_t n = source->n < 256 ? source->n : 256;
    return n && source->text[0] == (ITEM_GRAPH << 3 | PROTO_TYPE_LENGTH) &&
           memmem(source->text, n, GRAPH_TYPE, strlen(GRAPH_TYPE));
}

/* Cut off the number of the output: "w:0" becomes "w". */
static void cut_output(char *name) {
    char *colon = strrchr(name, ':');
    if (colon && colon[1] && !colon[1 + strspn(colon + 1, "0123456789")])
        *colon = 0;
}

/* ---- gradients ---- */

static enum status read_pair(const struct proto_message *item, const struct proto_value *at, struct arena *arena,
                             struct target *out, struct error *err) {
    struct proto_message pair;
    struct proto_value field;
    const char *gradient = "", *name = "";
    bool more = true;
    enum status st = proto_inside(item, at, &pair, err);
    while (!st && !(st = proto_next(&pair, &field, &more, err)) && more) {
        if (field.number == MAP_KEY)
            st = proto_text(&pair, &field, arena, &gradient, err);
        else if (field.number == MAP_VALUE)
            st = proto_text(&pair, &field, arena, &name, err);
    }
    if (st)
        return st;
    char *copy = arena_strdup(arena, name);
    if (!copy)
        return error_no_memory(err);
    cut_output(copy);
    *out = (struct target){.name = copy, .sparse = strchr(gradient, ';')};
    return ST_OK;
}

static int compare_targets(const void *a, const void *b) {
    const struct target *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* Each variable once. */
static void sort_targets(struct item *item) {
    size_t n = 0;
    qsort(item->targets, item->n_targets, sizeof *item->targets, compare_targets);
    for (size_t i = 0; i < item->n_targets; i++) {
        if (n && !strcmp(item->targets[n - 1].name, item->targets[i].name))
            item->targets[n - 1].sparse |= item->targets[i].sparse;
        else
            item->targets[n++] = item->targets[i];
    }
    item->n_targets = n;
}

static enum status read_targets(struct item *item, struct error *err) {
    struct proto_message message = proto_root(item->source);
    struct proto_value field;
    bool more = true;
    size_t n = 0;
    enum status st = ST_OK;
    while (!st && !(st = proto_next(&message, &field, &more, err)) && more)
        n += field.number == ITEM_PAIR;
    if (!st && !(item->targets = arena_alloc(item->arena, n, sizeof *item->targets)))
        return error_no_memory(err);
    message = proto_root(item->source);
    more = true;
    while (!st && !(st = proto_next(&message, &field, &more, err)) && more)
        if (field.number == ITEM_PAIR)
            st = read_pair(&message, &field, item->arena, &item->targets[item->n_targets++], err);
    if (!st)
        sort_targets(item);
    return st;
}

/* ---- variables ---- */

struct node {
    const char *name, *type;
    uint64_t dtype;
    struct shape shape;
    bool has_shape;
};

static enum status read_shape(const struct proto_message *value, const struct proto_value *at, struct node *out,
                              struct error *err) {
    struct proto_message shape, dimension;
    struct proto_value field, part;
    bool more = true, parts = true;
    enum status st = proto_inside(value, at, &shape, err);
    out->shape = (struct shape){0};
    out->has_shape = true;
    while (!st && !(st = proto_next(&shape, &field, &more, err)) && more) {
        if (field.number == SHAPE_UNKNOWN)
            out->has_shape = false;
        if (field.number != SHAPE_DIMENSION)
            continue;
        if (out->shape.rank == MODEL_MAX_RANK)
            return proto_fail(&shape, &field, err, "more than %d axes", MODEL_MAX_RANK);
        st = proto_inside(&shape, &field, &dimension, err);
        while (!st && !(st = proto_next(&dimension, &part, &parts, err)) && parts)
            if (part.number == DIMENSION_SIZE)
                st = proto_integer(&dimension, &part, &out->shape.sizes[out->shape.rank], err);
        out->shape.rank++;
    }
    return st;
}

/* "dtype" and "shape" matter. In an entry of a map the value may stand before its key. */
static enum status read_attribute(const struct proto_message *node, const struct proto_value *at, struct arena *arena,
                                  struct node *out, struct error *err) {
    struct proto_message entry, value;
    struct proto_value field, content = {0};
    const char *key = "";
    bool more = true;
    enum status st = proto_inside(node, at, &entry, err);
    while (!st && !(st = proto_next(&entry, &field, &more, err)) && more) {
        if (field.number == MAP_KEY)
            st = proto_text(&entry, &field, arena, &key, err);
        else if (field.number == MAP_VALUE)
            content = field;
    }
    if (!st && content.number)
        st = proto_inside(&entry, &content, &value, err);
    more = content.number;
    while (!st && more && !(st = proto_next(&value, &field, &more, err)) && more) {
        if (field.number == VALUE_TYPE && !strcmp(key, "dtype"))
            st = proto_integer(&value, &field, &out->dtype, err);
        else if (field.number == VALUE_SHAPE && !strcmp(key, "shape"))
            st = read_shape(&value, &field, out, err);
    }
    return st;
}

static enum status check_variable(const struct proto_message *graph, const struct proto_value *at,
                                  const struct node *node, enum dtype *out, struct error *err) {
    static const struct {
        uint64_t type;
        enum dtype dtype;
    } types[] = {{1, DTYPE_f32}, {2, DTYPE_f64}, {14, DTYPE_bf16}, {19, DTYPE_f16}};
    size_t t = 0;
    if (!node->has_shape)
        return proto_fail(graph, at, err, "variable \"%.100s\" has no shape", node->name);
    for (uint32_t i = 0; i < node->shape.rank; i++)
        if (!node->shape.sizes[i] || node->shape.sizes[i] > UINT64_C(1) << 40)
            return proto_fail(graph, at, err, "size %u of variable \"%.100s\" is not known", i, node->name);
    while (t < sizeof types / sizeof *types && types[t].type != node->dtype)
        t++;
    if (t == sizeof types / sizeof *types)
        return proto_fail(graph, at, err, "variable \"%.100s\" is of TensorFlow's type %llu, which no gradient has",
                          node->name, (unsigned long long)node->dtype);
    *out = types[t].dtype;
    return ST_OK;
}

static bool makes_variable(const char *type) {
    return !strcmp(type, "VarHandleOp") || !strcmp(type, "VariableV2") || !strcmp(type, "Variable");
}

static enum status read_node(const struct proto_message *graph, const struct proto_value *at, struct item *item,
                             struct error *err) {
    struct proto_message message;
    struct proto_value field;
    struct node node = {.name = "", .type = ""};
    enum dtype dtype = DTYPE_f32;
    bool more = true;
    enum status st = proto_inside(graph, at, &message, err);
    while (!st && !(st = proto_next(&message, &field, &more, err)) && more) {
        if (field.number == NODE_NAME)
            st = proto_text(&message, &field, item->arena, &node.name, err);
        else if (field.number == NODE_TYPE)
            st = proto_text(&message, &field, item->arena, &node.type, err);
        else if (field.number == NODE_ATTRIBUTE)
            st = read_attribute(&message, &field, item->arena, &node, err);
    }
    const struct target key = {.name = node.name};
    struct target *target = st || !item->n_targets || !makes_variable(node.type)
                                ? NULL
                                : bsearch(&key, item->targets, item->n_targets, sizeof key, compare_targets);
    if (!target || target->found)
        return st;
    target->found = true;
    st = check_variable(graph, at, &node, &dtype, err);
    if (!st)
        item->weights[item->n_weights++] = (struct weight){node.name, node.shape, dtype, target->sparse};
    return st;
}

static enum status read_graph(struct item *item, struct error *err) {
    struct proto_message message = proto_root(item->source), any, graph;
    struct proto_value field, part, node;
    bool more = true, parts = true, nodes = true;
    enum status st = ST_OK;
    if (!(item->weights = arena_alloc(item->arena, item->n_targets, sizeof *item->weights)))
        return error_no_memory(err);
    while (!st && !(st = proto_next(&message, &field, &more, err)) && more) {
        if (field.number != ITEM_GRAPH || (st = proto_inside(&message, &field, &any, err)))
            continue;
        while (!st && !(st = proto_next(&any, &part, &parts, err)) && parts) {
            if (part.number != ANY_VALUE || (st = proto_inside(&any, &part, &graph, err)))
                continue;
            while (!st && !(st = proto_next(&graph, &node, &nodes, err)) && nodes)
                if (node.number == GRAPH_NODE)
                    st = read_node(&graph, &node, item, err);
        }
    }
    return st;
}

static enum status check_item(const struct item *item, struct error *err) {
    for (size_t i = 0; i < item->n_targets; i++)
        if (!item->targets[i].found)
            return error_at(err, ST_INVALID, item->source->name,
                            "byte 0: a gradient is for \"%.100s\", which no node makes", item->targets[i].name);
    return item->n_weights ? ST_OK
                           : error_at(err, ST_INVALID, item->source->name,
                                      "byte 0: no gradients in it; make the GraphItem after the optimizer");
}

enum status graph_item_read(const struct source *source, const struct import_settings *settings, struct notes *notes,
                            cJSON **out, struct error *err) {
    struct item item = {.source = source, .arena = notes->arena};
    struct model_draft draft;
    const char *name = import_name(source, settings, true, notes->arena);
    if (!name)
        return error_no_memory(err);
    if (source->cut)
        return error_at(err, ST_TOO_LARGE, source->name, "more than %d bytes", SOURCE_MAX_BYTES);
    enum status st = weights_check(source, settings, err);
    if (!st)
        st = read_targets(&item, err);
    if (!st)
        st = read_graph(&item, err);
    if (!st)
        st = check_item(&item, err);
    if (!st && !weights_note(source, settings, notes))
        st = error_no_memory(err);
    if (st)
        return st;
    model_draft_init(&draft, notes->arena, name, settings->batch, DRAFT_LAYERS);
    weights_draft(&draft, item.weights, item.n_weights, '/', settings);
    return model_draft_finish(&draft, source, out, err);
}
