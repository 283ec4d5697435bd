/* Samples rise with their elements, so those of a piece are a run. O(samples^2 + pieces). */
#include "trial-runner/worker/crossings.h"

#include "strategy/encoder.h"

/* Those of samples first .. end - 1, which are of one piece; `elements` are their numbers within its variable. */
static void cross_piece(const struct layout *layout, const struct plan *plan, const struct piece *piece,
                        const uint64_t *elements, uint32_t first, uint32_t end,
                        uint64_t places[LAYOUT_SAMPLES][LAYOUT_SAMPLES]) {
    const struct variable *v = &plan->model->variables[piece->variable];
    const uint64_t columns = encoder_matrix(v).columns;
    for (uint32_t j = first; j < end; j++)
        for (uint32_t k = first; k < end; k++) {
            const uint64_t at = columns ? elements[j] / columns * columns + elements[k] % columns : elements[j];
            if (columns || j == k)
                places[j][k] = layout_of_piece(layout, piece) + at * dtype_bytes(v->dtype);
        }
}

void crossings_find(const struct layout *layout, const struct plan *plan, uint32_t m,
                    uint64_t places[LAYOUT_SAMPLES][LAYOUT_SAMPLES]) {
    const struct message *message = &plan->messages[m];
    const uint64_t width = dtype_bytes(message->dtype);
    const uint32_t n = layout_sample_count(message);
    uint64_t before = 0, elements[LAYOUT_SAMPLES] = {0};
    for (uint32_t j = 0; j < LAYOUT_SAMPLES; j++)
        for (uint32_t k = 0; k < LAYOUT_SAMPLES; k++)
            places[j][k] = CROSSINGS_NOWHERE;
    for (uint32_t i = 0, first = 0, end = 0; i < message->n_pieces; i++, first = end) {
        const struct piece *piece = &plan->pieces[message->first_piece + i];
        const uint64_t size = piece->bytes / width;
        for (; end < n && layout_element(message, end) < before + size; end++)
            elements[end] = layout_element(message, end) - before;
        cross_piece(layout, plan, piece, elements, first, end, places);
        before += size;
    }
}
