/* One walk over the backward operators for readiness, two over the forward operators for tails. Operators of one device
 * run one after another in model->order. */
#include "strategy/exact/gradients.h"

#include <math.h>
#include <stdlib.h>

#include "strategy/space/ready_order.h"

/* By variable the place of the forward operator before which it is updated: the first that reads it; if none does, the
 * last that reads any; without such a one the first of all. */
static void fill_readers(const struct model *model, uint32_t *reader) {
    uint32_t last = 0;
    for (uint32_t v = 0; v < model->n_variables; v++)
        reader[v] = UINT32_MAX;
    for (uint32_t i = 0; i < model->n_forward; i++) {
        const struct operator* op = & model->operators[model->order[i]];
        for (uint32_t r = 0; r < op->n_reads; r++)
            if (reader[op->reads[r]] == UINT32_MAX)
                reader[op->reads[r]] = i;
        if (op->n_reads)
            last = i;
    }
    for (uint32_t v = 0; v < model->n_variables; v++)
        if (reader[v] == UINT32_MAX)
            reader[v] = last;
}

/* from_us[i]: from the start of forward operator i, or of the updates before it, to the end of the forward pass. */
static void fill_tails(const struct model *model, const uint32_t *reader, enum with_updates with, double *from_us) {
    for (uint32_t i = 0; i < model->n_forward; i++)
        from_us[i] = model->operators[model->order[i]].time_us;
    for (uint32_t v = 0; v < model->n_variables && with == WITH_UPDATES; v++)
        from_us[reader[v]] += model_update_us(model, &model->variables[v]);
    for (uint32_t i = model->n_forward; i-- > 1;)
        from_us[i - 1] += from_us[i];
}

static void fill_gradients(const struct model *model, double scale, const uint32_t *order, const uint32_t *reader,
                           const double *from_us, struct gradient *out) {
    double now_us = 0;
    uint32_t next = 0;
    for (uint32_t i = model->n_forward; i < model->n_operators; i++) {
        uint32_t at = model->order[i];
        now_us += model->operators[at].time_us;
        for (; next < model->n_variables && model->variables[order[next]].producer == at; next++) {
            uint32_t v = order[next];
            out[next] = (struct gradient){v, model->variables[v].dtype, model->variables[v].bytes, scale * now_us,
                                          scale * from_us[reader[v]]};
        }
    }
}

enum status gradients_list(const struct model *model, double scale, enum with_updates with, struct gradient *out,
                           struct error *err) {
    uint32_t *order = calloc((size_t)model->n_variables + 1, sizeof *order);
    uint32_t *reader = calloc((size_t)model->n_variables + 1, sizeof *reader);
    double *from_us = calloc((size_t)model->n_forward + 1, sizeof *from_us);
    enum status st = order && reader && from_us ? ready_order(model, order, err) : error_no_memory(err);
    if (!st) {
        fill_readers(model, reader);
        fill_tails(model, reader, with, from_us);
        fill_gradients(model, scale, order, reader, from_us, out);
    }
    free(order);
    free(reader);
    free(from_us);
    return st;
}
