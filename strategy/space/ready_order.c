/* Readiness by counting: operators have distinct places in the execution order, so the variables are bucketed by their
 * producer's place, keeping the order of positions inside a bucket. */
#include "strategy/space/ready_order.h"

#include <stdlib.h>

enum status ready_order(const struct model *model, uint32_t *order, struct error *err) {
    uint32_t n = model->n_operators;
    uint32_t *place = calloc((size_t)n + 1, sizeof *place), *start = calloc((size_t)n + 1, sizeof *start);
    if (!place || !start) {
        free(place);
        free(start);
        return error_no_memory(err);
    }
    for (uint32_t i = 0; i < n; i++)
        place[model->order[i]] = i;
    for (uint32_t v = 0; v < model->n_variables; v++)
        start[place[model->variables[v].producer] + 1]++;
    for (uint32_t i = 0; i < n; i++)
        start[i + 1] += start[i];
    for (uint32_t v = 0; v < model->n_variables; v++)
        order[start[place[model->variables[v].producer]]++] = v;
    free(place);
    free(start);
    return ST_OK;
}
