/* Variables lie one after another, each aligned. */
#include "trial-runner/worker/layout.h"

#include <stdlib.h>

#include "trial-runner/worker/elements.h"
#include "trial-runner/worker/report.h"

/* The type in memory of an element of variable v that travels in this message. */
static enum dtype type_of(const struct layout *layout, const struct plan *plan, const struct message *message,
                          uint32_t v) {
    return layout->wide || message->half ? message_dtype_in_use(message, &plan->model->variables[v]) : message->dtype;
}

/* Shards of one variable may travel in several types. Each byte gets the room that the widest element in memory needs
 * where the narrowest travels, so that no two shards meet and every element is aligned. */
static void find_widening(struct layout *layout, const struct plan *plan) {
    uint8_t *narrowest = report_alloc(plan->model->n_variables, 1);
    for (uint32_t m = 0; m < plan->n_messages; m++) {
        const struct message *message = &plan->messages[m];
        const uint8_t travels = (uint8_t)message_piece_width(message);
        for (uint32_t i = 0; i < message->n_pieces; i++) {
            const uint32_t v = plan->pieces[message->first_piece + i].variable;
            const uint8_t width = (uint8_t)dtype_bytes(type_of(layout, plan, message, v));
            layout->widening[v] = width > layout->widening[v] ? width : layout->widening[v];
            narrowest[v] = !narrowest[v] || travels < narrowest[v] ? travels : narrowest[v];
        }
    }
    for (uint32_t v = 0; v < plan->model->n_variables; v++)
        if (narrowest[v])
            layout->widening[v] = (uint8_t)((layout->widening[v] + narrowest[v] - 1) / narrowest[v]);
    free(narrowest);
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
    const struct message *of = &plan->messages[message];
    const struct piece *piece = plan->pieces + of->first_piece;
    size_t sample = (size_t)message * LAYOUT_SAMPLES + k;
    while (at >= piece->bytes)
        at -= (piece++)->bytes;
    enum dtype type = type_of(layout, plan, of, piece->variable);
    layout->samples[sample] = layout_of_piece(layout, piece) + at / message_piece_width(of) * dtype_bytes(type);
    layout->types[sample] = (uint8_t)type;
}

uint32_t layout_sample_count(const struct message *message) {
    uint64_t elements = message_elements(message);
    return elements < LAYOUT_SAMPLES ? (uint32_t)elements : LAYOUT_SAMPLES;
}

uint64_t layout_element(const struct message *message, uint32_t k) {
    const uint64_t elements = message_elements(message);
    const uint32_t n = layout_sample_count(message);
    return n > 1 ? (uint64_t)((double)(elements - 1) * k / (n - 1)) : 0;
}

uint64_t layout_kept_bytes(const struct message *message) {
    const bool keeps = message->encoder == ENCODING_topk || message->encoder == ENCODING_powersgd;
    return keeps ? message_elements(message) * sizeof(float) + message->second_bytes : 0;
}

static uint64_t block_of(const struct message *message, uint32_t k) {
    return layout_element(message, k) / (uint64_t)message->figure;
}

struct layout_run layout_same_block(const struct message *message, uint32_t k) {
    struct layout_run run = {k, k + 1};
    while (run.first > 0 && block_of(message, run.first - 1) == block_of(message, k))
        run.first--;
    while (run.end < layout_sample_count(message) && block_of(message, run.end) == block_of(message, k))
        run.end++;
    return run;
}

enum dtype layout_own_type(const struct plan *plan, const struct message *message) {
    return plan->model->variables[plan->pieces[message->first_piece].variable].dtype;
}

enum dtype layout_narrowest(const struct plan *plan, const struct message *message) {
    const enum dtype own = layout_own_type(plan, message), others[] = {own, carried_dtype(message->in_use, own)};
    enum dtype narrowest = message->dtype;
    for (size_t i = 0; i < (message->half ? 2 : 0); i++)
        if (kernel_exact_limit(others[i]) < kernel_exact_limit(narrowest))
            narrowest = others[i];
    return narrowest;
}

static void choose_samples(const struct layout *layout, const struct plan *plan, uint32_t m) {
    const struct message *message = &plan->messages[m];
    for (uint32_t k = 0; k < layout_sample_count(message); k++)
        locate(layout, plan, m, layout_element(message, k) * message_piece_width(message), k);
}

void layout_init(struct layout *layout, const struct plan *plan, bool wide) {
    *layout = (struct layout){
        .wide = wide,
        .offset = report_alloc(plan->model->n_variables, sizeof(uint64_t)),
        .widening = report_alloc(plan->model->n_variables, 1),
        .samples = report_alloc((size_t)plan->n_messages * LAYOUT_SAMPLES, sizeof(uint64_t)),
        .types = report_alloc((size_t)plan->n_messages * LAYOUT_SAMPLES, 1),
    };
    find_widening(layout, plan);
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
