/* All devices have the same P and Q after a sum, and compute the same from them. So nobody needs to send what was made
 * orthogonal, or what Q began with. */
#include "trial-runner/worker/mpi/power.h"

#include <string.h>

#include "trial-runner/worker/mpi/low_rank.h"
#include "trial-runner/worker/thin.h"

static struct low_rank matrix_at(const struct thin_place *place, float *thin, float *kept,
                                 const struct message *message) {
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
    struct thin_place place = thin_first(plan, m);
    for (uint32_t i = 0; i < message->n_pieces; thin_next(&place, plan, m, ++i)) {
        const struct low_rank matrix = matrix_at(&place, thin, kept, message);
        if (!place.shape.columns) {
            memcpy(thin + place.first, gradients + place.at, place.shape.rows * sizeof(float));
            continue;
        }
        memcpy(matrix.q, kept_q(kept, message) + place.second, matrix.n * matrix.r * sizeof(float));
        low_rank_draw(&matrix, place.variable);
        low_rank_run(LOW_RANK_multiply, &matrix, gradients + place.at, NULL, 0);
    }
}

void power_turn(float *thin, float *kept, const struct plan *plan, uint32_t m) {
    const struct message *message = &plan->messages[m];
    struct thin_place place = thin_first(plan, m);
    for (uint32_t i = 0; i < message->n_pieces; thin_next(&place, plan, m, ++i)) {
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
    struct thin_place place = thin_first(plan, m);
    for (uint32_t i = 0; i < message->n_pieces; thin_next(&place, plan, m, ++i)) {
        const struct low_rank matrix = matrix_at(&place, thin, kept, message);
        if (!place.shape.columns) {
            memcpy(sum + place.at, thin + place.first, place.shape.rows * sizeof(float));
            continue;
        }
        low_rank_run(LOW_RANK_restore, &matrix, NULL, sum + place.at, part);
        memcpy(kept_q(kept, message) + place.second, matrix.q, matrix.n * matrix.r * sizeof(float));
    }
}
