/* Variables are sorted by their first reader. A layer's forward pass is what is computed from its first reader to that
 * of the next layer, and its backward pass what is computed after the gradients of the layer before are there. */
#include "strategy/baselines/layers.h"

#include <math.h>
#include <stdlib.h>

#include "strategy/exact/gradients.h"
#include "strategy/plan.h"

/* From the start of either pass. */
struct layer {
    double start_us;
    double first_us, last_us; /* when the first and the last of its gradients is there */
};

static int compare_start(const void *a, const void *b) {
    const struct gradient *x = a, *y = b;
    if (x->tail_us != y->tail_us) /* a long tail is an early reader */
        return x->tail_us > y->tail_us ? -1 : 1;
    return (x->variable > y->variable) - (x->variable < y->variable);
}

/* Join the last two layers as long as they overlap in the backward pass. Returns how many are left. */
static uint32_t join_overlapping(struct layer *layers, uint32_t n) {
    for (; n > 1 && layers[n - 2].first_us <= layers[n - 1].last_us; n--) {
        layers[n - 2].first_us = fmin(layers[n - 2].first_us, layers[n - 1].first_us);
        layers[n - 2].last_us = fmax(layers[n - 2].last_us, layers[n - 1].last_us);
    }
    return n;
}

static uint32_t find_layers(const struct model *model, const struct gradient *gradients, double forward_us,
                            struct layer *layers) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < model->n_variables; i++) {
        const struct gradient *g = &gradients[i];
        if (i == 0 || g->tail_us < gradients[i - 1].tail_us)
            layers[n++] = (struct layer){forward_us - g->tail_us, g->ready_us, g->ready_us};
        layers[n - 1].first_us = fmin(layers[n - 1].first_us, g->ready_us);
        layers[n - 1].last_us = fmax(layers[n - 1].last_us, g->ready_us);
        n = join_overlapping(layers, n);
    }
    return n;
}

static void fill_units(uint32_t n, const struct layer *layers, double forward_us, double backward_us,
                       struct wrapping_unit *units, struct wrapping_chain *out) {
    for (uint32_t i = 0; i < n; i++) {
        const bool last = i + 1 == n;
        units[i].forward_us = (last ? forward_us : layers[i + 1].start_us) - layers[i].start_us;
        units[i].backward_us = layers[i].last_us - (last ? 0 : layers[i + 1].last_us);
    }
    *out = (struct wrapping_chain){.n = n,
                                   .units = units,
                                   .head_us = layers[0].start_us,
                                   .tail_us = backward_us - layers[0].last_us,
                                   .budget = UINT64_MAX};
}

enum status layers_list(const struct model *model, const struct cost *cost, struct arena *arena, struct layers *out,
                        struct error *err) {
    const double scale = cost->cluster->nodes[cost->slowest].compute_scale;
    const double forward_us = scale * model->forward_us, backward_us = scale * model->backward_us;
    struct gradient *gradients = arena_alloc(arena, model->n_variables, sizeof *gradients);
    struct layer *layers = arena_alloc(arena, model->n_variables, sizeof *layers);
    struct wrapping_unit *units = arena_alloc(arena, model->n_variables, sizeof *units);
    uint32_t *layer_of = arena_alloc(arena, model->n_variables, sizeof *layer_of);
    if (!gradients || !layers || !units || !layer_of)
        return error_no_memory(err);
    enum status st = gradients_list(model, scale, WITHOUT_UPDATES, gradients, err);
    if (st)
        return st;
    qsort(gradients, model->n_variables, sizeof *gradients, compare_start);
    const uint32_t n = find_layers(model, gradients, forward_us, layers);
    for (uint32_t i = 0, at = 0; i < model->n_variables; i++) {
        while (at + 1 < n && forward_us - gradients[i].tail_us >= layers[at + 1].start_us)
            at++;
        layer_of[gradients[i].variable] = at;
        units[at].bytes += gradients[i].bytes;
        units[at].n_pieces++;
    }
    fill_units(n, layers, forward_us, backward_us, units, &out->chain);
    out->n_variables = model->n_variables;
    out->layer_of = layer_of;
    return ST_OK;
}

static void join(struct wrapping_unit *to, const struct wrapping_unit *unit) {
    to->forward_us += unit->forward_us;
    to->backward_us += unit->backward_us;
    to->bytes += unit->bytes;
    to->kept += unit->kept;
    to->n_pieces += unit->n_pieces;
}

enum status layers_coarsen(struct layers *layers, uint32_t most, struct arena *arena, struct error *err) {
    const struct wrapping_chain *chain = &layers->chain;
    struct wrapping_unit *units = arena_alloc(arena, chain->n, sizeof *units);
    uint32_t *joined = arena_alloc(arena, chain->n, sizeof *joined), n = 0;
    uint64_t bytes = 0;
    if (!units || !joined)
        return error_no_memory(err);
    for (uint32_t i = 0; i < chain->n; i++)
        bytes += chain->units[i].bytes;
    for (uint32_t i = 0; i < chain->n; i++) {
        const uint64_t share = bytes / most;
        const bool is_full = n > 0 && units[n - 1].bytes > share, is_large = chain->units[i].bytes > share;
        if (n == 0 || is_full || (is_large && n < most))
            n++;
        join(&units[n - 1], &chain->units[i]);
        joined[i] = n - 1;
    }
    for (uint32_t v = 0; v < layers->n_variables; v++)
        layers->layer_of[v] = joined[layers->layer_of[v]];
    layers->chain.n = n;
    layers->chain.units = units;
    return ST_OK;
}

/* ---- costs ---- */

/* Among `ranks` devices of a node; 0: among all. */
static double half_us(const struct cost *cost, enum half half, uint64_t bytes, uint32_t ranks) {
    const struct message message = {.bytes = bytes, .half = half, .ranks = ranks, .stride = ranks > 0};
    const struct all_reduce_cost c = cost_all_reduce(cost, &message);
    return cost->runtime.message_us + c.startup_us + c.transfer_us;
}

static double gather_us(const void *context, uint64_t bytes, uint32_t ranks) {
    return half_us(context, HALF_gather, bytes, ranks);
}

static double copy_us(const void *context, uint64_t bytes, uint32_t n_pieces) {
    const struct cost *cost = context;
    return n_pieces > 1 ? (double)bytes / cost->copy_bytes_per_us : 0;
}

static double sum_us(const void *context, uint64_t bytes, uint32_t n_pieces) {
    return half_us(context, HALF_scatter, bytes, 0) + copy_us(context, bytes, n_pieces);
}

/* ---- memory, as strategy/memory.h counts it at the end of a group's backward pass ---- */

static uint64_t part_of(const struct cost *cost, uint64_t bytes) {
    return bytes / cost->cluster->n_devices;
}

/* Gathered parameters, gradients, what several gradients are packed into, and what comes in to be added. */
static uint64_t own_bytes(const void *context, uint64_t bytes, uint32_t n_pieces) {
    return (n_pieces > 1 ? 3 : 2) * bytes + part_of(context, bytes);
}

static uint64_t summed_bytes(const void *context, uint64_t bytes, uint32_t n_pieces) {
    (void)n_pieces;
    return bytes + part_of(context, bytes);
}

struct wrapping_cost layers_cost(const struct cost *cost) {
    const struct cost_line floor = cost_line_half_floor(cost);
    const uint32_t parts = cluster_ranks_in_nodes(cost->cluster, cost->cluster->n_devices);
    return (struct wrapping_cost){gather_us, copy_us, sum_us, own_bytes, summed_bytes, parts, cost, floor, floor};
}
