/* All devices have the same P and Q after a sum, and compute the same from them. So nobody needs to send what was made
 * orthogonal, or what Q began with. */
#include "trial-runner/worker/mpi/power.h"

#include <string.h>

#include "strategy/encoder.h"
#include "trial-runner/worker/mpi/low_rank.h"

/* One variable of the message, and the elements before it. */
struct place {
    const struct variable *variable;
    struct encoder_matrix shape;
    uint64_t at, first, second; /* among the gradients, in the first all-reduce, in the second */
};

static struct place first_place(const struct plan *plan, uint32_t m) {
    const struct variable *v = &plan->model->variables[plan->pieces[plan->messages[m].first_piece].variable];
    return (struct place){.variable = v, .shape = encoder_matrix(v)};
}

/* That of the variable behind, which is number i of the message. */
static void go_on(struct place *place, const struct plan *plan, uint32_t m, uint32_t i) {
    const struct message *message = &plan->messages[m];
    place->at += place->variable->elements;
    place->first += encoder_first_elements(place->variable, message->figure);
    place->second += encoder_second_elements(place->variable, message->figure);
    if (i == message->n_pieces)
        return;
    place->variable = &plan->model->variables[plan->pieces[message->first_piece + i].variable];
    place->shape = encoder_matrix(place->variable);
}

static struct low_rank matrix_at(const struct place *place, float *thin, float *kept, const struct message *message) {
    return (struct low_rank){.m = place->shape.rows,
                             .n = place->shape.columns,
                             .r = (size_t)message->figure,
                             .left = kept + place->at,
                             .p = thin + place->first,
                             .q = thin + (message->bytes - message->second_bytes) / sizeof(float) + place->second};
}

static float *kept_q(float *kept, const struct message *message) {
    return kept + message_piece_bytes(message) / dtype_bytes(message->dtype);
}

void power_begin(float *thin, const float *gradients, float *kept, const struct plan *plan, uint32_t m) {
    const struct message *message = &plan->messages[m];
    struct place place = first_place(plan, m);
    for (uint32_t i = 0; i < message->n_pieces; go_on(&place, plan, m, ++i)) {
        const struct low_rank matrix = matrix_at(&place, thin, kept, message);
        if (!place.shape.columns) {
            memcpy(thin + place.first, gradients + place.at, place.variable->elements * sizeof(float));
            continue;
        }
        memcpy(matrix.q, kept_q(kept, message) + place.second, matrix.n * matrix.r * sizeof(float));
        low_rank_draw(&matrix, (uint32_t)(place.variable - plan->model->variables));
        low_rank_run(LOW_RANK_multiply, &matrix, gradients + place.at, NULL, 0);
    }
}

void power_turn(float *thin, float *kept, const struct plan *plan, uint32_t m) {
    const struct message *message = &plan->messages[m];
    struct place place = first_place(plan, m);
    for (uint32_t i = 0; i < message->n_pieces; go_on(&place, plan, m, ++i)) {
        const struct low_rank matrix = matrix_at(&place, thin, kept, message);
        if (!place.shape.columns)
            continue;
        low_rank_orthogonalise(&matrix);
        low_rank_run(LOW_RANK_multiply_back, &matrix, NULL, NULL, 0);
    }
}

void power_end(float *sum, float *thin, float *kept, const struct plan *plan, uint32_t m) {
    const struct message *message = &plan->messages[m];
    const float part = 1 / (float)plan->cluster->n_devices;
    struct place place = first_place(plan, m);
    for (uint32_t i = 0; i < message->n_pieces; go_on(&place, plan, m, ++i)) {
        const struct low_rank matrix = matrix_at(&place, thin, kept, message);
        if (!place.shape.columns) {
            memcpy(sum + place.at, thin + place.first, place.variable->elements * sizeof(float));
            continue;
        }
        low_rank_run(LOW_RANK_restore, &matrix, NULL, sum + place.at, part);
        memcpy(kept_q(kept, message) + place.second, matrix.q, matrix.n * matrix.r * sizeof(float));
    }
}
