/* Orders by counting: operators have distinct places in the execution order, so the variables are bucketed by their
 * operator's place, keeping the order of positions inside a bucket. */
#include "strategy/space/ready_order.h"

#include <stdlib.h>

static void set_producers(const struct model *model, uint32_t *key) {
    uint32_t *place = key + model->n_variables;
    for (uint32_t i = 0; i < model->n_operators; i++)
        place[model->order[i]] = i;
    for (uint32_t v = 0; v < model->n_variables; v++)
        key[v] = place[model->variables[v].producer];
}

static void set_readers(const struct model *model, uint32_t *key) {
    for (uint32_t v = 0; v < model->n_variables; v++)
        key[v] = model->n_operators;
    for (uint32_t i = model->n_forward; i-- > 0;) {
        const struct operator* op = & model->operators[model->order[i]];
        for (uint32_t r = 0; r < op->n_reads; r++)
            key[op->reads[r]] = i;
    }
}

/* By the keys, at most n_operators, that `set` gives the variables. `key` has n_operators more slots, for `set`. */
static enum status order_by(const struct model *model, void (*set)(const struct model *, uint32_t *), uint32_t *order,
                            struct error *err) {
    const size_t n = model->n_operators;
    uint32_t *key = calloc(model->n_variables + n, sizeof *key), *start = calloc(n + 2, sizeof *start);
    const bool room = key && start;
    if (room) {
        set(model, key);
        for (uint32_t v = 0; v < model->n_variables; v++)
            start[key[v] + 1]++;
        for (size_t i = 0; i < n; i++)
            start[i + 1] += start[i];
        for (uint32_t v = 0; v < model->n_variables; v++)
            order[start[key[v]]++] = v;
    }
    free(key);
    free(start);
    return room ? ST_OK : error_no_memory(err);
}

enum status ready_order(const struct model *model, uint32_t *order, struct error *err) {
    return order_by(model, set_producers, order, err);
}

enum status read_order(const struct model *model, uint32_t *order, struct error *err) {
    return order_by(model, set_readers, order, err);
}
