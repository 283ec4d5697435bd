/* Variables lie one after another, each aligned. */
#include "trial-runner/worker/layout.h"

#include <stdlib.h>

#include "trial-runner/worker/report.h"

static void find_widening(struct layout *layout, const struct plan *plan, bool wide) {
    for (uint32_t m = 0; m < plan->n_messages; m++) {
        const struct message *message = &plan->messages[m];
        for (uint32_t i = 0; i < message->n_pieces; i++) {
            uint32_t v = plan->pieces[message->first_piece + i].variable;
            uint64_t own = dtype_bytes(plan->model->variables[v].dtype), travels = dtype_bytes(message->dtype);
            layout->widening[v] = (uint8_t)(wide ? own / travels : 1);
        }
    }
}

/* Give every variable its place; the bytes of all. */
static uint64_t lay_out(const struct layout *layout, const struct plan *plan) {
    for (uint32_t i = 0; i < plan->n_pieces; i++) {
        uint64_t end = plan->pieces[i].offset_bytes + plan->pieces[i].bytes;
        uint64_t *size = &layout->offset[plan->pieces[i].variable];
        *size = end > *size ? end : *size;
    }
    uint64_t total = 0;
    for (uint32_t v = 0; v < plan->model->n_variables; v++) {
        uint64_t size = layout->offset[v] * layout->widening[v];
        layout->offset[v] = total;
        total += (size + LAYOUT_ALIGN - 1) / LAYOUT_ALIGN * LAYOUT_ALIGN;
    }
    return total;
}

/* Note where the element at byte `at` of the message lies, as sample k. */
static void locate(const struct layout *layout, const struct plan *plan, uint32_t message, uint64_t at, uint32_t k) {
    const struct piece *piece = plan->pieces + plan->messages[message].first_piece;
    size_t sample = (size_t)message * LAYOUT_SAMPLES + k;
    while (at >= piece->bytes)
        at -= (piece++)->bytes;
    uint8_t widening = layout->widening[piece->variable];
    layout->samples[sample] = layout_of_piece(layout, piece) + at * widening;
    layout->types[sample] =
        (uint8_t)(widening > 1 ? plan->model->variables[piece->variable].dtype : plan->messages[message].dtype);
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
        locate(layout, plan, m, element * width, k);
    }
}

void layout_init(struct layout *layout, const struct plan *plan, bool wide) {
    *layout = (struct layout){
        .offset = report_alloc(plan->model->n_variables, sizeof(uint64_t)),
        .widening = report_alloc(plan->model->n_variables, 1),
        .samples = report_alloc((size_t)plan->n_messages * LAYOUT_SAMPLES, sizeof(uint64_t)),
        .types = report_alloc((size_t)plan->n_messages * LAYOUT_SAMPLES, 1),
    };
    find_widening(layout, plan, wide);
    layout->bytes = lay_out(layout, plan);
    for (uint32_t m = 0; m < plan->n_messages; m++)
        if (plan->messages[m].bytes > 0)
            choose_samples(layout, plan, m);
}

void layout_release(struct layout *layout) {
    free(layout->offset);
    free(layout->widening);
    free(layout->samples);
    free(layout->types);
    *layout = (struct layout){0};
}
