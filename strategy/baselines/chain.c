/* O(variables + operators). */
#include "strategy/baselines/chain.h"

enum status chain_list(const struct model *model, const struct cost *cost, struct arena *arena,
                       struct gradient **gradients, struct error *err) {
    struct gradient *list = arena_alloc(arena, model->n_variables, sizeof *list);
    if (!list)
        return error_no_memory(err);
    enum status st = gradients_list(model, cost->cluster->nodes[cost->slowest].compute_scale, WITH_UPDATES, list, err);
    if (!st)
        *gradients = list;
    return st;
}

void chain_assign(const struct gradient *gradients, const struct merge *merge, struct strategy *strategy) {
    for (uint32_t g = 0, i = 0; g < merge->n_groups; g++)
        for (; i < merge->ends[g]; i++)
            strategy->variables[gradients[i].variable].group = g;
}
