/* PipeDream's profiles (graph.txt): a line a layer with its times in milliseconds and its parameters in bytes, then a
 * line an edge of the graph.
 *
 *     node2 -- Conv2d(3, 64, kernel_size=(3, 3)) -- forward_compute_time=2.316, backward_compute_time=6.405, ...
 *         node1 -- node2
 *
 * A layer becomes a forward operator, which runs after those of the layers that feed it, and a backward operator, which
 * runs after those of the layers that it feeds (Narayanan et al., PipeDream, SOSP 2019, section 3.1). The Input nodes'
 * forward time is the wait for data, which no strategy changes, so they are left out. Operators are written in the
 * order of the nodes' numbers, which is that of the profiler. O(n log n). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "interop/import/layer_shapes.h"
#include "interop/import/model_draft.h"
#include "interop/import/model_kinds.h"

static const double MAX_MS = 1e9, MAX_BYTES = 9e15;

struct layer {
    const char *id, *words;
    const char *forward, *backward; /* operator names */
    const char *variables[LAYER_MAX_TENSORS];
    size_t n_variables, line;
    double forward_ms, backward_ms, bytes;
    bool input, fed; /* fed: an edge leads to it */
};

struct edge {
    const char *from, *to;
    size_t line;
    struct layer *source, *target;
};

struct graph {
    struct arena *arena;
    struct layer *layers;
    struct edge *edges;
    size_t n_layers, n_edges;
};

bool pipedream_is(const struct source *source) {
    return strstr(source->text, "forward_compute_time=") && strstr(source->text, " -- ");
}

static bool is_input(const char *words) {
    return !strncmp(words, "Input", 5) && !words[5 + strspn(words + 5, "0123456789")];
}

/* "activation_size=[1.0; 2.0]" is skipped; any other name that is not known is an error. */
static enum status read_figure(const struct lines *lines, char *field, struct layer *out, struct error *err) {
    char *equals = strchr(field, '=');
    if (!equals)
        return lines_fail(lines, err, "\"%.60s\" is no NAME=NUMBER", field);
    *equals = 0;
    const char *name = text_trim(field), *value = text_trim(equals + 1);
    if (!strcmp(name, "forward_compute_time"))
        return lines_number(lines, name, value, 0, MAX_MS, &out->forward_ms, err);
    if (!strcmp(name, "backward_compute_time"))
        return lines_number(lines, name, value, 0, MAX_MS, &out->backward_ms, err);
    if (!strcmp(name, "parameter_size"))
        return lines_number(lines, name, value, 0, MAX_BYTES, &out->bytes, err);
    return !strcmp(name, "activation_size") ? ST_OK : lines_fail(lines, err, "there is no figure \"%.60s\"", name);
}

static enum status read_figures(const struct lines *lines, char *figures, struct layer *out, struct error *err) {
    char *rest = NULL;
    enum status st = ST_OK;
    out->forward_ms = out->backward_ms = out->bytes = NAN;
    for (char *field = strtok_r(figures, ",", &rest); field && !st; field = strtok_r(NULL, ",", &rest))
        st = read_figure(lines, field, out, err);
    if (!st && (isnan(out->forward_ms) || isnan(out->backward_ms) || isnan(out->bytes)))
        return lines_fail(lines, err, "a layer needs forward_compute_time, backward_compute_time and parameter_size");
    if (!st && fmod(out->bytes, 4) != 0)
        return lines_fail(lines, err, "parameter_size %.0f is not a multiple of 4 bytes, as 32-bit floats are",
                          out->bytes);
    return st;
}

/* Cut `text` at its first " -- "; the part behind it, or NULL. */
static char *cut_dashes(char *text) {
    char *dashes = strstr(text, " -- ");
    if (!dashes)
        return NULL;
    *dashes = 0;
    return dashes + 4;
}

static enum status read_layer(const struct lines *lines, char *line, struct graph *graph, struct error *err) {
    struct layer *out = &graph->layers[graph->n_layers];
    char *words = cut_dashes(line), *figures = words ? cut_dashes(words) : NULL;
    if (!figures)
        return lines_fail(lines, err, "a layer is \"NODE -- WORDS -- figures\", an edge \"    NODE -- NODE\"");
    cut_dashes(figures); /* a stage may follow */
    *out = (struct layer){.id = text_trim(line), .words = text_trim(words), .line = lines->line};
    out->input = is_input(out->words);
    if (!*out->id)
        return lines_fail(lines, err, "a layer without a name");
    graph->n_layers++;
    return read_figures(lines, figures, out, err);
}

static enum status read_edge(const struct lines *lines, char *line, struct graph *graph, struct error *err) {
    char *to = cut_dashes(line);
    if (!to)
        return lines_fail(lines, err, "an edge is \"    NODE -- NODE\"");
    graph->edges[graph->n_edges++] = (struct edge){.from = text_trim(line), .to = text_trim(to), .line = lines->line};
    return ST_OK;
}

static enum status read_lines(struct lines *lines, struct graph *graph, struct error *err) {
    enum status st = ST_OK;
    for (char *line; !st && (line = lines_next(lines));) {
        if (!line[strspn(line, " \t")])
            continue;
        st = *line == '\t' || *line == ' ' ? read_edge(lines, line, graph, err) : read_layer(lines, line, graph, err);
    }
    return st;
}

static int compare_layers(const void *a, const void *b) {
    const struct layer *x = a, *y = b;
    return strverscmp(x->id, y->id);
}

static enum status find_layer(const struct lines *lines, const struct graph *graph, const char *id, struct layer **out,
                              struct error *err) {
    const struct layer key = {.id = id};
    *out =
        graph->n_layers ? bsearch(&key, graph->layers, graph->n_layers, sizeof *graph->layers, compare_layers) : NULL;
    return *out ? ST_OK : lines_fail(lines, err, "an edge of \"%.60s\", which no line describes", id);
}

static enum status link_edges(struct lines *lines, struct graph *graph, struct error *err) {
    qsort(graph->layers, graph->n_layers, sizeof *graph->layers, compare_layers);
    for (size_t i = 1; i < graph->n_layers; i++) {
        lines->line = graph->layers[i].line;
        if (!compare_layers(&graph->layers[i - 1], &graph->layers[i]))
            return lines_fail(lines, err, "\"%.60s\" again; lines %zu and %zu", graph->layers[i].id,
                              graph->layers[i - 1].line, graph->layers[i].line);
    }
    for (size_t i = 0; i < graph->n_edges; i++) {
        struct edge *edge = &graph->edges[i];
        lines->line = edge->line;
        enum status st = find_layer(lines, graph, edge->from, &edge->source, err);
        if (!st)
            st = find_layer(lines, graph, edge->to, &edge->target, err);
        if (!st && edge->target->input)
            st = lines_fail(lines, err, "an edge into \"%.60s\", which is an input", edge->to);
        if (!st && edge->source == edge->target)
            st = lines_fail(lines, err, "an edge from \"%.60s\" to itself", edge->to);
        if (st)
            return st;
        edge->target->fed = true;
    }
    return ST_OK;
}

/* A file that was cut before or among its edges has layers that nothing feeds. In a whole one these are the inputs,
 * what only hands something on and computes nothing, and, where no inputs are listed, one first layer. */
static enum status check_fed(struct lines *lines, const struct graph *graph, struct error *err) {
    size_t n_firsts = 1;
    for (size_t i = 0; i < graph->n_layers; i++)
        if (graph->layers[i].input)
            n_firsts = 0;
    for (size_t i = 0; i < graph->n_layers; i++) {
        const struct layer *layer = &graph->layers[i];
        if (layer->input || layer->fed || (layer->forward_ms <= 0 && layer->backward_ms <= 0 && layer->bytes <= 0))
            continue;
        lines->line = layer->line;
        if (!n_firsts--)
            return lines_fail(lines, err,
                              "of %zu edges none leads to \"%.60s\", which is no input; the end of the file may be "
                              "missing: fetch it again",
                              graph->n_edges, layer->id);
    }
    return ST_OK;
}

/* The tensors of a layer, as variables "NODE.weight" and so on. */
static void draft_variables(struct model_draft *draft, struct layer *layer) {
    struct layer_tensor tensors[LAYER_MAX_TENSORS];
    const uint64_t elements = (uint64_t)(layer->bytes / 4);
    layer->n_variables = elements ? layer_tensors(layer->words, elements, tensors) : 0;
    for (size_t i = 0; i < layer->n_variables && draft->ok; i++) {
        layer->variables[i] = arena_printf(draft->arena, "%s.%s", layer->id, tensors[i].name);
        draft->ok = layer->variables[i];
        if (draft->ok)
            model_draft_variable(draft, layer->variables[i], &tensors[i].shape, DTYPE_f32, layer->line);
    }
}

static double us_of_ms(double ms) {
    return round(ms * 1e6) / 1e3; /* the profile has microseconds; a product of doubles would add a rounding error */
}

static int compare_targets(const void *a, const void *b) {
    const struct edge *x = a, *y = b;
    return (x->target > y->target) - (x->target < y->target);
}

/* The last first: the order of the backward pass. */
static int compare_sources(const void *a, const void *b) {
    const struct edge *x = a, *y = b;
    return (x->source < y->source) - (x->source > y->source);
}

/* A layer's operator after those at the other ends of its edges, which stand from *e on; `after` has room for all. */
static void draft_operator(struct model_draft *draft, const struct graph *graph, const struct layer *layer,
                           bool backward, size_t *e, const char **after) {
    size_t n_after = 0;
    for (; *e < graph->n_edges; ++*e) {
        const struct edge *edge = &graph->edges[*e];
        if ((backward ? edge->source : edge->target) != layer)
            break;
        const struct layer *other = backward ? edge->target : edge->source;
        if (!other->input)
            after[n_after++] = backward ? other->backward : other->forward;
    }
    if (!layer->input)
        model_draft_operator(draft, backward ? layer->backward : layer->forward, backward,
                             us_of_ms(backward ? layer->backward_ms : layer->forward_ms), n_after, after,
                             layer->n_variables, layer->variables);
}

static void draft_layer(struct model_draft *draft, struct layer *layer) {
    layer->forward = arena_printf(draft->arena, "%s %s", layer->id, layer->words);
    layer->backward = arena_printf(draft->arena, "%s.grad", layer->id);
    draft->ok = layer->forward && layer->backward;
    if (!layer->input)
        draft_variables(draft, layer);
}

static void draft_graph(struct model_draft *draft, struct graph *graph) {
    const char **after = arena_alloc(draft->arena, graph->n_edges, sizeof *after);
    draft->ok = draft->ok && after;
    for (size_t i = 0; i < graph->n_layers && draft->ok; i++)
        draft_layer(draft, &graph->layers[i]);
    qsort(graph->edges, graph->n_edges, sizeof *graph->edges, compare_targets);
    for (size_t i = 0, e = 0; i < graph->n_layers && draft->ok; i++)
        draft_operator(draft, graph, &graph->layers[i], false, &e, after);
    qsort(graph->edges, graph->n_edges, sizeof *graph->edges, compare_sources);
    for (size_t i = graph->n_layers, e = 0; i-- && draft->ok;)
        draft_operator(draft, graph, &graph->layers[i], true, &e, after);
}

static enum status add_notes(const struct graph *graph, const struct source *source,
                             const struct import_settings *settings, struct notes *notes, struct error *err) {
    double waited_ms = 0;
    for (size_t i = 0; i < graph->n_layers; i++)
        waited_ms += graph->layers[i].input ? graph->layers[i].forward_ms : 0;
    if (waited_ms > 0 && !notes_add(notes, "%s: %g ms of waiting for input data are left out", source->name, waited_ms))
        return error_no_memory(err);
    if (settings->batch <= 0 &&
        !notes_add(notes, "%s: a profile does not tell the batch size; give --batch", source->name))
        return error_no_memory(err);
    return ST_OK;
}

enum status pipedream_read(const struct source *source, const struct import_settings *settings, struct notes *notes,
                           cJSON **out, struct error *err) {
    struct arena *arena = notes->arena;
    struct graph graph = {.arena = arena};
    struct lines lines;
    struct model_draft draft;
    const size_t n = source_count_lines(source);
    graph.layers = arena_alloc(arena, n, sizeof *graph.layers);
    graph.edges = arena_alloc(arena, n, sizeof *graph.edges);
    const char *name = import_name(source, settings, false, arena);
    if (!graph.layers || !graph.edges || !name || !lines_init(&lines, source, arena))
        return error_no_memory(err);
    enum status st = read_lines(&lines, &graph, err);
    if (!st)
        st = link_edges(&lines, &graph, err);
    if (!st)
        st = check_fed(&lines, &graph, err);
    if (!st)
        st = add_notes(&graph, source, settings, notes, err);
    if (st)
        return st;
    model_draft_init(&draft, arena, name, settings->batch, DRAFT_OPERATORS);
    draft_graph(&draft, &graph);
    return model_draft_finish(&draft, source, out, err);
}
