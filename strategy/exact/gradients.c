/* One walk over the backward operators for readiness, one over the forward operators from the last to the first for
 * tails. Operators of one device run one after another in model->order. */
#include "strategy/exact/gradients.h"

#include <math.h>
#include <stdlib.h>

#include "strategy/space/ready_order.h"

/* tail_us[v] < 0: no operator reads v. Returns the tail of the last operator that reads any, which may be 0; the whole
 * forward pass when none reads. */
static double fill_tails(const struct model *model, double *tail_us) {
    double time = 0, last = -1;
    for (uint32_t v = 0; v < model->n_variables; v++)
        tail_us[v] = -1;
    for (uint32_t i = model->n_forward; i-- > 0;) {
        const struct operator* op = & model->operators[model->order[i]];
        time += op->time_us;
        if (op->n_reads && last < 0)
            last = time;
        for (uint32_t r = 0; r < op->n_reads; r++)
            tail_us[op->reads[r]] = time;
    }
    return last < 0 ? time : last;
}

static void fill_gradients(const struct model *model, double scale, const uint32_t *order, const double *tail_us,
                           double last_us, struct gradient *out) {
    double now_us = 0;
    uint32_t next = 0;
    for (uint32_t i = model->n_forward; i < model->n_operators; i++) {
        uint32_t at = model->order[i];
        now_us += model->operators[at].time_us;
        for (; next < model->n_variables && model->variables[order[next]].producer == at; next++) {
            uint32_t v = order[next];
            double tail = tail_us[v] < 0 ? last_us : tail_us[v];
            out[next] = (struct gradient){v, model->variables[v].dtype, model->variables[v].bytes, scale * now_us,
                                          scale * tail};
        }
    }
}

enum status gradients_list(const struct model *model, double scale, struct gradient *out, struct error *err) {
    uint32_t n = model->n_variables;
    uint32_t *order = calloc((size_t)n + 1, sizeof *order);
    double *tail_us = calloc((size_t)n + 1, sizeof *tail_us);
    enum status st = order && tail_us ? ready_order(model, order, err) : error_no_memory(err);
    if (!st)
        fill_gradients(model, scale, order, tail_us, fill_tails(model, tail_us), out);
    free(order);
    free(tail_us);
    return st;
}
