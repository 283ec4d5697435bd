/* ONNX files: the parameters are the graph's initializers, the layers its nodes in their order, which the format wants
 * sorted topologically. There are no times.
 *
 * Forward times are estimated from the operations of each node (interop/import/onnx_work.h) at --tflops. Where the file
 * does not give the activations' shapes, a node needs 2 operations for each element of its weights and each position
 * (--positions), as for safetensors files. Backward takes twice as long, since it multiplies by the weights and by the
 * inputs. The batch is the first size of the first input. If that is a name, --batch gives it; if it is a number, no
 * other batch can be had from this file, as no one knows which sizes would change with it. An initializer is a variable
 * when it has floating-point numbers and a node reads it as a parameter; statistics of normalization and constants of
 * operators are none. A parameter behind Identity, Cast or Transpose is still that parameter. If several nodes read a
 * parameter, its gradient is ready with the first of them. O(n log n). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "interop/import/model_draft.h"
#include "interop/import/model_kinds.h"
#include "interop/import/onnx_graph.h"
#include "interop/import/onnx_work.h"
#include "strategy/names.h"

struct layer {
    const char *name;
    double work; /* operations of the batch, forward */
    size_t n;
    struct onnx_value **variables;
};

struct layers {
    struct layer *items;
    size_t n, n_estimated, n_unknown, n_variables, n_left_out; /* n_unknown: products without shapes or weights */
    size_t n_made;                                             /* variables without data: a ConstantOfShape */
    double batch, scale, work; /* scale: of the whole samples that the shapes have to the batch; work: of all */
};

bool onnx_is(const struct source *source) {
    return onnx_is_model(source);
}

static bool dtype_of(uint64_t type, enum dtype *out) {
    *out = type == ONNX_FLOAT16 ? DTYPE_f16 : type == ONNX_DOUBLE ? DTYPE_f64 : DTYPE_f32;
    *out = type == ONNX_BFLOAT16 ? DTYPE_bf16 : *out;
    return type == ONNX_FLOAT || type == ONNX_FLOAT16 || type == ONNX_DOUBLE || type == ONNX_BFLOAT16;
}

/* Inputs that are no parameters: statistics, and constants that say how the operator works. */
static bool is_constant_input(const struct onnx_node *node, size_t i) {
    static const struct {
        const char *type;
        size_t first, last;
    } constants[] = {{"BatchNormalization", 3, 4},
                     {"Clip", 1, 2},
                     {"Dropout", 1, 2},
                     {"Resize", 1, 3},
                     {"Upsample", 1, 1},
                     {"Pad", 1, 3},
                     {"QuantizeLinear", 1, 2},
                     {"DequantizeLinear", 1, 2},
                     {"DynamicQuantizeMatMul", 2, 3},
                     {"MatMulIntegerToFloat", 2, 5},
                     {"QGemm", 1, 5},
                     {"QGemm", 7, 8},
                     {"Pow", 1, 1},
                     {"OneHot", 1, 2},
                     {"Range", 0, 2},
                     {"TopK", 1, 1}};
    if (!strncmp(node->type, "QLinear", strlen("QLinear"))) /* their only floating-point inputs are scales */
        return true;
    for (size_t k = 0; k < sizeof constants / sizeof *constants; k++)
        if (!strcmp(node->type, constants[k].type) && i >= constants[k].first && i <= constants[k].last)
            return true;
    return false;
}

/* Exporters make a recurrent layer's initial state of zeros. */
static bool is_initial_state(const struct onnx_node *node, size_t i) {
    const bool lstm = !strcmp(node->type, "LSTM"), other = !strcmp(node->type, "GRU") || !strcmp(node->type, "RNN");
    return (i == 5 && (lstm || other)) || (i == 6 && lstm);
}

/* The parameter that input i is, directly or in another layout; NULL: none. */
static struct onnx_value *parameter(const struct onnx_node *node, size_t i) {
    struct onnx_value *value = node->inputs[i];
    enum dtype dtype;
    if (value && value->source)
        value = (struct onnx_value *)(uintptr_t)value->source;
    if (!value || !value->initializer || !value->shape.rank || value->elements < 1 || is_constant_input(node, i))
        return NULL;
    if (value->made && is_initial_state(node, i))
        return NULL;
    return dtype_of(value->type, &dtype) ? value : NULL;
}

/* The initializer whose layout a node changes. For a Concat: the one initializer that all of its inputs come from. For
 * any other node: its first input. NULL: none. */
static const struct onnx_value *source_of(const struct onnx_node *node) {
    const bool all = !strcmp(node->type, "Concat");
    const struct onnx_value *source = NULL;
    for (size_t i = 0; i < (all || !node->n_inputs ? node->n_inputs : 1); i++) {
        const struct onnx_value *value = node->inputs[i];
        const struct onnx_value *one = value && value->source ? value->source : value;
        if (!one || !one->initializer || (i && one != source))
            return NULL;
        source = one;
    }
    return source;
}

/* Does the node only give a parameter another layout? Its output is then that parameter. */
static bool passes_on(const struct onnx_node *node) {
    static const char *const types[] = {"Identity", "Cast",    "Transpose", "Unsqueeze", "Squeeze",
                                        "Reshape",  "Flatten", "Slice",     "Concat"};
    enum { SAME_SHAPE = 2, TRANSPOSE = 2 };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const struct onnx_value *source = strcmp(node->type, types[i]) ? NULL : source_of(node);
        struct onnx_value *to = node->n_outputs ? node->outputs[0] : NULL;
        if (!source || !to || to->initializer)
            continue;
        const struct onnx_value *from = node->inputs[0];
        to->source = source;
        if (!to->sized && from->sized && (i < SAME_SHAPE || (i == TRANSPOSE && from->shape.rank == 2))) {
            to->shape = from->shape;
            to->shape.sizes[0] = from->shape.sizes[i == TRANSPOSE];
            if (i == TRANSPOSE)
                to->shape.sizes[1] = from->shape.sizes[0];
            to->elements = from->elements;
            to->sized = true;
        }
        return true;
    }
    return false;
}

/* The parameters that no node before has read. */
static enum status take_variables(const struct onnx_node *node, struct arena *arena, struct layer *layer,
                                  struct error *err) {
    layer->variables = arena_alloc(arena, node->n_inputs, sizeof(struct onnx_value *));
    if (!layer->variables)
        return error_no_memory(err);
    for (size_t i = 0; i < node->n_inputs; i++) {
        struct onnx_value *value = parameter(node, i);
        if (!value || value->taken)
            continue;
        value->taken = true;
        layer->variables[layer->n++] = value;
    }
    return ST_OK;
}

static double work_of(const struct onnx_node *node, const struct import_settings *settings, struct layers *layers) {
    const double work = onnx_work(node), elements = onnx_weight_elements(node);
    if (!isnan(work))
        return work * layers->scale;
    if (elements <= 0) {
        layers->n_unknown++;
        return 0;
    }
    layers->n_estimated++;
    return 2 * elements * layers->batch * settings->positions;
}

static enum status read_layers(const struct onnx_graph *graph, const struct import_settings *settings,
                               struct layers *layers, struct error *err) {
    layers->items = arena_alloc(graph->arena, graph->n_nodes, sizeof *layers->items);
    if (!layers->items)
        return error_no_memory(err);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct onnx_node *node = &graph->nodes[i];
        struct layer *layer = &layers->items[layers->n];
        if (passes_on(node))
            continue;
        *layer = (struct layer){.name = *node->name ? node->name : node->type};
        enum status st = take_variables(node, graph->arena, layer, err);
        if (st)
            return st;
        layer->work = work_of(node, settings, layers);
        layers->work += layer->work;
        layers->n_variables += layer->n;
        for (size_t k = 0; k < layer->n; k++)
            layers->n_made += layer->variables[k]->made;
        layers->n += layer->n || layer->work > 0;
    }
    for (size_t i = 0; i < graph->n_values; i++)
        layers->n_left_out += graph->values[i].initializer && !graph->values[i].taken;
    return ST_OK;
}

/* Nodes may have no name, or share a name. If two layers share a name, all get numbers. */
static enum status name_layers(struct layers *layers, struct arena *arena, struct error *err) {
    struct names index;
    int64_t duplicate = -1;
    const char **names = arena_alloc(arena, layers->n, sizeof *names);
    if (!names)
        return error_no_memory(err);
    for (size_t i = 0; i < layers->n; i++)
        names[i] = layers->items[i].name = *layers->items[i].name ? layers->items[i].name : "node";
    if (!names_build(&index, arena, (uint32_t)layers->n, names, &duplicate))
        return error_no_memory(err);
    for (size_t i = 0; i < layers->n && duplicate >= 0; i++)
        if (!(layers->items[i].name = arena_printf(arena, "%s #%zu", names[i], i + 1)))
            return error_no_memory(err);
    return ST_OK;
}

static void draft_layers(struct model_draft *draft, const struct layers *layers, double tflops) {
    for (size_t i = 0; i < layers->n && draft->ok; i++) {
        const struct layer *layer = &layers->items[i];
        const char **names = arena_alloc(draft->arena, layer->n, sizeof *names);
        draft->ok = names;
        for (size_t k = 0; k < layer->n && draft->ok; k++) {
            enum dtype dtype;
            dtype_of(layer->variables[k]->type, &dtype);
            names[k] = layer->variables[k]->name;
            model_draft_variable(draft, names[k], &layer->variables[k]->shape, dtype, 0);
        }
        const double forward_us = round(layer->work / tflops / 1e3) / 1e3;
        if (draft->ok)
            model_draft_layer(draft, layer->name, forward_us, 2 * forward_us, layer->n, names);
    }
}

static int compare_types(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Nodes that may multiply much, but are taken to need no time: one line that counts and names them. */
static bool note_unknown_kinds(const struct source *source, const struct onnx_graph *graph, struct notes *notes) {
    enum { NAMED = 8 };
    size_t n = 0, kinds = 0;
    const char *words = "", **types = arena_alloc(graph->arena, graph->n_nodes, sizeof *types);
    for (size_t i = 0; types && i < graph->n_nodes; i++)
        if (!onnx_is_known(&graph->nodes[i]))
            types[n++] = graph->nodes[i].type;
    if (types && n)
        qsort(types, n, sizeof *types, compare_types);
    for (size_t i = 0, k; types && words && i < n; i = k) {
        for (k = i; k < n && !strcmp(types[i], types[k]);)
            k++;
        if (kinds++ < NAMED)
            words = arena_printf(graph->arena, "%s%s%.40s (%zu)", words, i ? ", " : "", types[i], k - i);
        else if (k == n)
            words = arena_printf(graph->arena, "%s and %zu more", words, kinds - NAMED);
    }
    if (!types || !words)
        return false;
    return !n || notes_add(notes, "%s: %zu of %zu nodes are of kinds that are not known here and take no time: %s",
                           source->name, n, graph->n_nodes, words);
}

static bool add_notes(const struct source *source, const struct onnx_graph *graph, const struct layers *layers,
                      const struct import_settings *settings, struct notes *notes) {
    bool ok = notes_add(notes,
                        "%s: an ONNX file has no times: operations of products and convolutions at %g TFLOP/s, batch "
                        "%g, backward twice as long as forward; all else takes none",
                        source->name, settings->tflops, layers->batch);
    if (layers->n_estimated)
        ok = ok && notes_add(notes,
                             "%s: %zu nodes with activations of unknown size: 2 operations an element of the weights "
                             "and position, %g positions; onnx.shape_inference with data_prop=True would add the sizes",
                             source->name, layers->n_estimated, settings->positions);
    if (layers->n_unknown)
        ok = ok && notes_add(notes, "%s: products of activations of unknown size, which take no time: %zu",
                             source->name, layers->n_unknown);
    if (layers->n_made)
        ok = ok && notes_add(notes,
                             "%s: %zu of %zu parameters are a ConstantOfShape: their shapes are there, which is enough",
                             source->name, layers->n_made, layers->n_variables);
    ok = ok && note_unknown_kinds(source, graph, notes);
    if (layers->n_left_out || graph->n_sparse)
        ok = ok &&
             notes_add(notes, "%s: %zu of %zu initializers are no parameters: constants, statistics, unused or sparse",
                       source->name, layers->n_left_out + graph->n_sparse,
                       layers->n_left_out + graph->n_sparse + layers->n_variables);
    if (graph->n_inner)
        ok = ok && notes_add(notes, "%s: %zu graphs and functions inside are not looked into; inline them",
                             source->name, graph->n_inner);
    return ok;
}

/* The batch of the file's shapes, and the batch of the description. */
static enum status find_batch(const struct source *source, const struct onnx_graph *graph,
                              const struct import_settings *settings, struct layers *layers, struct error *err) {
    const struct onnx_value *first = graph->first_input;
    const double stored = first && first->shape.rank ? (double)first->shape.sizes[0] : 0;
    const bool fixed = stored > 0 && !first->symbols[0];
    if (fixed && settings->batch > 0 && settings->batch != stored)
        return error_at(
            err, ST_USAGE, source->name,
            "its shapes are of a batch of %g (the first size of \"%.60s\"), which --batch cannot change; leave "
            "--batch out, or export the file for a batch of %g",
            stored, first->name, settings->batch);
    layers->batch = settings->batch > 0 ? settings->batch : stored;
    layers->scale = stored > 0 ? layers->batch / stored : 1;
    return layers->batch > 0
               ? ST_OK
               : error_at(err, ST_USAGE, source->name, "the file does not tell the batch size; give --batch");
}

static enum status check(const struct source *source, const struct onnx_graph *graph,
                         const struct import_settings *settings, const struct layers *layers, struct error *err) {
    if (!layers->n_variables)
        return error_at(err, ST_INVALID, source->name,
                        "byte 0: no node reads an initializer of floating-point numbers%s",
                        graph->n_inner ? "; graphs and functions inside are not looked into: inline them" : "");
    if (layers->n_estimated && settings->positions <= 0)
        return error_at(err, ST_USAGE, source->name,
                        "of %zu nodes the file does not tell the activations' sizes; give --positions to estimate "
                        "their times, or add them with onnx.shape_inference (data_prop=True)",
                        layers->n_estimated);
    if (layers->n_unknown && layers->work <= 0)
        return error_at(err, ST_INVALID, source->name,
                        "byte 0: of none of %zu products the file tells the sizes, so all times would be 0; add them "
                        "with onnx.shape_inference (data_prop=True)",
                        layers->n_unknown);
    return ST_OK;
}

static enum status read_whole(const struct source *source, const struct import_settings *settings, struct notes *notes,
                              cJSON **out, struct error *err) {
    struct onnx_graph graph;
    struct layers layers = {.n = 0};
    struct model_draft draft;
    const char *name = import_name(source, settings, true, notes->arena);
    if (!name)
        return error_no_memory(err);
    enum status st = onnx_graph_read(source, settings->batch, settings->positions, notes->arena, &graph, err);
    if (!st)
        st = find_batch(source, &graph, settings, &layers, err);
    if (!st)
        st = read_layers(&graph, settings, &layers, err);
    if (!st)
        st = check(source, &graph, settings, &layers, err);
    if (!st)
        st = name_layers(&layers, notes->arena, err);
    if (!st && !add_notes(source, &graph, &layers, settings, notes))
        st = error_no_memory(err);
    if (st)
        return st;
    model_draft_init(&draft, notes->arena, name, layers.batch, DRAFT_LAYERS);
    draft_layers(&draft, &layers, settings->tflops);
    return model_draft_finish(&draft, source, out, err);
}

enum status onnx_read(const struct source *source, const struct import_settings *settings, struct notes *notes,
                      cJSON **out, struct error *err) {
    struct source whole;
    if (settings->tflops <= 0)
        return error_at(err, ST_USAGE, source->name, "an ONNX file has no times; give --tflops to estimate them");
    if (!source->cut)
        return read_whole(source, settings, notes, out, err);
    enum status st = source_map(source, &whole, err);
    if (st)
        return st;
    st = read_whole(&whole, settings, notes, out, err);
    source_unmap(&whole);
    return st;
}
