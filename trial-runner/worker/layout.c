/* Variables lie one after another, each aligned. */
#include "trial-runner/worker/layout.h"

#include <stdlib.h>

#include "trial-runner/worker/report.h"

/* Give every variable its place; the bytes of all. */
static uint64_t lay_out(const struct layout *layout, const struct plan *plan) {
    for (uint32_t i = 0; i < plan->n_pieces; i++) {
        uint64_t end = plan->pieces[i].offset_bytes + plan->pieces[i].bytes;
        uint64_t *size = &layout->offset[plan->pieces[i].variable];
        *size = end > *size ? end : *size;
    }
    uint64_t total = 0;
    for (uint32_t v = 0; v < plan->model->n_variables; v++) {
        uint64_t size = layout->offset[v];
        layout->offset[v] = total;
        total += (size + LAYOUT_ALIGN - 1) / LAYOUT_ALIGN * LAYOUT_ALIGN;
    }
    return total;
}

/* Where byte `at` of the message lies. */
static uint64_t locate(const struct layout *layout, const struct plan *plan, uint32_t message, uint64_t at) {
    const struct piece *piece = plan->pieces + plan->messages[message].first_piece;
    while (at >= piece->bytes)
        at -= (piece++)->bytes;
    return layout_of_piece(layout, piece) + at;
}

uint32_t layout_sample_count(const struct message *message) {
    uint64_t elements = message->bytes / dtype_bytes(message->dtype);
    return elements < LAYOUT_SAMPLES ? (uint32_t)elements : LAYOUT_SAMPLES;
}

static void choose_samples(const struct layout *layout, const struct plan *plan, uint32_t m) {
    const struct message *message = &plan->messages[m];
    uint64_t width = dtype_bytes(message->dtype), last = message->bytes / width - 1;
    uint32_t n = layout_sample_count(message);
    for (uint32_t k = 0; k < n; k++) {
        uint64_t element = n > 1 ? (uint64_t)((double)last * k / (n - 1)) : 0;
        layout->samples[(size_t)m * LAYOUT_SAMPLES + k] = locate(layout, plan, m, element * width);
    }
}

void layout_init(struct layout *layout, const struct plan *plan) {
    *layout = (struct layout){
        .offset = report_alloc(plan->model->n_variables, sizeof(uint64_t)),
        .samples = report_alloc((size_t)plan->n_messages * LAYOUT_SAMPLES, sizeof(uint64_t)),
    };
    layout->bytes = lay_out(layout, plan);
    for (uint32_t m = 0; m < plan->n_messages; m++)
        if (plan->messages[m].bytes > 0)
            choose_samples(layout, plan, m);
}

void layout_release(struct layout *layout) {
    free(layout->offset);
    free(layout->samples);
    *layout = (struct layout){0};
}
