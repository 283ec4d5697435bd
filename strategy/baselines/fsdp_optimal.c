/* The best wrapping of a model whose parameters are all sharded: which layers FSDP gathers together, so that the
 * iteration is shortest. Groups free what they gather after the forward pass. Messages go one at a time, gathered one
 * group ahead.
 *
 * Best by the simulator's own costs, among all wrappings whose groups are runs of layers; where the chain is longer than
 * EXACT_MOST layers, or has element types that do not go into one message, near it.
 * Source: our own exact result (strategy/exact/wrapping.h). */
#include <stdlib.h>
#include <string.h>

#include "strategy/baselines/baselines.h"
#include "strategy/baselines/builder.h"
#include "strategy/baselines/layers.h"

enum { EXACT_MOST = 40, EXACT_LABELS = 1024 };

/* Each group of the wrapping is a merge group, one for each element type in it. */
static enum status assign(const struct model *model, const struct layers *layers, const struct wrapping *wrapping,
                          struct strategy *s, struct error *err) {
    uint32_t *group_of = arena_alloc(&s->arena, layers->chain.n, sizeof *group_of);
    uint32_t *slots = arena_alloc(&s->arena, (size_t)wrapping->n_groups * DTYPE_COUNT, sizeof *slots);
    if (!group_of || !slots)
        return error_no_memory(err);
    for (uint32_t g = 0, i = 0; g < wrapping->n_groups; g++)
        for (; i < wrapping->ends[g]; i++)
            group_of[i] = g;
    uint32_t n = 0;
    for (uint32_t v = 0; v < model->n_variables; v++) {
        uint32_t *slot = &slots[group_of[layers->layer_of[v]] * DTYPE_COUNT + model->variables[v].dtype];
        if (!*slot)
            *slot = ++n;
        s->variables[v].group = *slot - 1;
    }
    for (uint32_t g = 0; g < n; g++)
        s->groups[g].sharded = SHARDED_parameters;
    return ST_OK;
}

enum status baseline_fsdp_optimal(const struct model *model, const struct cost *cost, struct strategy *out,
                                  struct error *err) {
    struct strategy s;
    struct layers layers;
    struct wrapping wrapping;
    const struct wrapping_cost costs = layers_cost(cost);
    enum status st = strategy_init(&s, "fsdp-optimal", model, model->n_variables, err);
    if (st)
        return st;
    s.credit_bytes = 0;
    st = layers_list(model, cost, &s.arena, &layers, err);
    if (!st)
        st = wrapping_best(&layers.chain, &costs, layers.chain.n <= EXACT_MOST ? EXACT_LABELS : WRAPPING_FEW_LABELS,
                           &s.arena, &wrapping, err);
    if (!st)
        st = assign(model, &layers, &wrapping, &s, err);
    return baseline_finish(st, &s, model, cost->cluster, out, err);
}
