/* A walk over the pieces of a message, each of which is a whole variable. */
#include "trial-runner/worker/thin.h"

static uint32_t variable_of(const struct plan *plan, uint32_t m, uint32_t i) {
    return plan->pieces[plan->messages[m].first_piece + i].variable;
}

struct thin_place thin_first(const struct plan *plan, uint32_t m) {
    const uint32_t v = variable_of(plan, m, 0);
    return (struct thin_place){.variable = v, .shape = encoder_matrix(&plan->model->variables[v])};
}

void thin_next(struct thin_place *place, const struct plan *plan, uint32_t m, uint32_t i) {
    const struct variable *v = &plan->model->variables[place->variable];
    place->at += v->elements;
    place->first += encoder_first_elements(v, plan->messages[m].figure);
    place->second += encoder_second_elements(v, plan->messages[m].figure);
    if (i == plan->messages[m].n_pieces)
        return;
    place->variable = variable_of(plan, m, i);
    place->shape = encoder_matrix(&plan->model->variables[place->variable]);
}
