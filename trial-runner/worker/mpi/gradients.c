/* Gather and scatter by piece, converting what is encoded; sums by closed form. Producing and checking touch 16
 * elements a message, so that verification costs microseconds whatever the model's size. */
#include "trial-runner/worker/mpi/gradients.h"

#include <stdlib.h>
#include <string.h>

#include "trial-runner/worker/crossings.h"
#include "trial-runner/worker/elements.h"
#include "trial-runner/worker/mpi/collective.h"
#include "trial-runner/worker/mpi/convert.h"
#include "trial-runner/worker/parts.h"
#include "trial-runner/worker/report.h"

_Static_assert((int)KERNEL_f16 == (int)DTYPE_f16 && (int)KERNEL_bf16 == (int)DTYPE_bf16 &&
                   (int)KERNEL_u8 == (int)DTYPE_u8 && (int)KERNEL_SAMPLES == (int)LAYOUT_SAMPLES,
               "kernels count types and samples as plans do");

static const struct piece *pieces_of(const struct gradients *gradients, uint32_t message) {
    return gradients->plan->pieces + gradients->plan->messages[message].first_piece;
}

char *gradients_piece(const struct gradients *gradients, const struct piece *piece) {
    return gradients->data + layout_of_piece(&gradients->layout, piece);
}

static const uint64_t *samples_of(const struct gradients *gradients, uint32_t message) {
    return gradients->layout.samples + (size_t)message * LAYOUT_SAMPLES;
}

void gradients_init(struct gradients *gradients, const struct plan *plan) {
    *gradients = (struct gradients){.plan = plan};
    layout_init(&gradients->layout, plan, true);
    proof_init(&gradients->proof, plan);
    uint64_t total = gradients->layout.bytes;
    gradients->data = aligned_alloc(LAYOUT_ALIGN, total ? total : LAYOUT_ALIGN);
    if (!gradients->data)
        report_abort(ST_NO_MEMORY, "out of memory for %llu bytes of gradients", (unsigned long long)total);
    memset(gradients->data, 0, total);
}

/* The first sample that is not the owner's. */
static uint32_t first_sample(const struct gradients *gradients, uint32_t m) {
    const struct message *message = &gradients->plan->messages[m];
    const uint32_t n = layout_sample_count(message);
    uint32_t k = 0;
    while (k < n && m == gradients->reserved_message && layout_element(message, k) < gradients->reserved)
        k++;
    return k;
}

static enum dtype sample_type(const struct gradients *gradients, uint32_t message, uint32_t k) {
    return gradients->layout.types[(size_t)message * LAYOUT_SAMPLES + k];
}

uint32_t gradients_sum(const struct gradients *gradients, struct kernel_devices devices, uint32_t iteration, uint32_t m,
                       uint32_t k) {
    const struct plan *plan = gradients->plan;
    return kernel_sum_over(devices, plan->cluster->n_devices, iteration, m, k,
                           layout_narrowest(plan, &plan->messages[m]));
}

uint32_t gradients_value(const struct gradients *gradients, uint32_t device, uint32_t iteration, uint32_t m,
                         uint32_t k) {
    return gradients_sum(gradients, (struct kernel_devices){device, 1, 1}, iteration, m, k);
}

static struct kernel_devices all_devices(const struct gradients *gradients) {
    return (struct kernel_devices){0, 1, gradients->plan->cluster->n_devices};
}

void gradients_store(void *place, enum dtype dtype, uint32_t value) {
    const uint64_t bits = kernel_bits(dtype, value); /* little endian: its first bytes are the narrower types */
    memcpy(place, &bits, dtype_bytes(dtype));
}

/* True when the element is `value`, modulo its range where it is a narrow integer. */
bool gradients_is(const void *place, enum dtype dtype, uint32_t value) {
    char wanted[8];
    gradients_store(wanted, dtype, value);
    return memcmp(place, wanted, dtype_bytes(dtype)) == 0;
}

bool gradients_sample_is(const struct gradients *gradients, uint32_t m, uint32_t k, uint32_t value) {
    return gradients_is(gradients->data + samples_of(gradients, m)[k], sample_type(gradients, m, k), value);
}

void gradients_write_sample(struct gradients *gradients, uint32_t m, uint32_t k, uint32_t value) {
    gradients_store(gradients->data + samples_of(gradients, m)[k], sample_type(gradients, m, k), value);
}

/* powersgd leaves numbers beside the samples, in their rows and columns. */
static void clear_crossings(const struct gradients *gradients, uint32_t m) {
    const size_t own = dtype_bytes(gradients->plan->messages[m].dtype);
    uint64_t places[LAYOUT_SAMPLES][LAYOUT_SAMPLES];
    crossings_find(&gradients->layout, gradients->plan, m, places);
    for (uint32_t j = 0; j < LAYOUT_SAMPLES; j++)
        for (uint32_t k = 0; k < LAYOUT_SAMPLES; k++)
            if (places[j][k] != CROSSINGS_NOWHERE)
                memset(gradients->data + places[j][k], 0, own);
}

void gradients_produce(struct gradients *gradients, uint32_t m, uint32_t device, uint32_t iteration) {
    if (gradients->plan->messages[m].encoder == ENCODING_powersgd)
        clear_crossings(gradients, m);
    for (uint32_t k = 0; k < layout_sample_count(&gradients->plan->messages[m]); k++)
        gradients_write_sample(gradients, m, k, gradients_value(gradients, device, iteration, m, k));
}

static void add_to_sample(struct gradients *gradients, uint32_t m, uint32_t k, uint32_t value) {
    const enum dtype dtype = sample_type(gradients, m, k);
    char more[8];
    gradients_store(more, dtype, value);
    MPI_Reduce_local(more, gradients->data + samples_of(gradients, m)[k], 1, collective_type(dtype),
                     collective_sum(dtype));
}

void gradients_accumulate(struct gradients *gradients, uint32_t m, uint32_t device, uint32_t iteration,
                          uint32_t micro_batch) {
    const uint32_t n = gradients->plan->micro_batches;
    if (micro_batch == 0 && gradients->plan->messages[m].encoder == ENCODING_powersgd)
        clear_crossings(gradients, m);
    for (uint32_t k = 0; k < layout_sample_count(&gradients->plan->messages[m]); k++) {
        const uint32_t value = gradients_value(gradients, device, iteration, m, k);
        const uint32_t part = kernel_share(value, micro_batch, n, iteration, k);
        if (micro_batch == 0)
            gradients_write_sample(gradients, m, k, part);
        else
            add_to_sample(gradients, m, k, part);
    }
}

/* The type of elements that are gathered. */
static enum dtype gathered_type(const struct message *message) {
    return message->encoder ? DTYPE_f32 : message->dtype;
}

static uint64_t gathered_bytes(const struct message *message, uint64_t piece_bytes) {
    return piece_bytes / message_piece_width(message) * dtype_bytes(gathered_type(message));
}

uint64_t gradients_gathered_bytes(const struct message *message) {
    return gathered_bytes(message, message_piece_bytes(message));
}

void *gradients_in_place(const struct gradients *gradients, uint32_t message) {
    const struct message *m = &gradients->plan->messages[message];
    const bool as_is = m->encoder ? m->dtype == DTYPE_f32 : m->encoded_bytes == 0;
    return m->n_pieces == 1 && as_is ? gradients_piece(gradients, pieces_of(gradients, message)) : NULL;
}

/* The type in which this device has what is in the piece. */
static enum dtype type_in_use(const struct gradients *gradients, const struct message *m, const struct piece *piece) {
    return message_dtype_in_use(m, &gradients->plan->model->variables[piece->variable]);
}

void gradients_gather(const struct gradients *gradients, uint32_t message, void *buffer) {
    const struct piece *piece = pieces_of(gradients, message);
    const struct message *m = &gradients->plan->messages[message];
    char *to = buffer;
    for (uint32_t i = 0; i < m->n_pieces; to += gathered_bytes(m, piece[i++].bytes))
        convert_elements(to, gathered_type(m), gradients_piece(gradients, &piece[i]),
                         type_in_use(gradients, m, &piece[i]), piece[i].bytes / message_piece_width(m));
}

void gradients_scatter(struct gradients *gradients, uint32_t message, const void *buffer) {
    const struct piece *piece = pieces_of(gradients, message);
    const struct message *m = &gradients->plan->messages[message];
    const char *from = buffer;
    for (uint32_t i = 0; i < m->n_pieces; from += gathered_bytes(m, piece[i++].bytes))
        convert_elements(gradients_piece(gradients, &piece[i]), type_in_use(gradients, m, &piece[i]), from,
                         gathered_type(m), piece[i].bytes / message_piece_width(m));
}

static bool holds_float(const char *place, enum dtype dtype, float value) {
    const double wide = (double)value;
    return dtype == DTYPE_f64 ? memcmp(place, &wide, sizeof wide) == 0 : memcmp(place, &value, sizeof value) == 0;
}

static double float_at(const char *place, enum dtype dtype) {
    float narrow;
    double wide;
    memcpy(&narrow, place, sizeof narrow);
    if (dtype != DTYPE_f64)
        return (double)narrow;
    memcpy(&wide, place, sizeof wide);
    return wide;
}

static enum status check_matrices(struct gradients *gradients, uint32_t m, uint32_t iteration, struct error *err) {
    const struct message *message = &gradients->plan->messages[m];
    double back[LAYOUT_SAMPLES][LAYOUT_SAMPLES];
    uint64_t places[LAYOUT_SAMPLES][LAYOUT_SAMPLES];
    crossings_find(&gradients->layout, gradients->plan, m, places);
    for (uint32_t j = 0; j < LAYOUT_SAMPLES; j++)
        for (uint32_t k = 0; k < LAYOUT_SAMPLES; k++)
            back[j][k] =
                places[j][k] == CROSSINGS_NOWHERE ? 0 : float_at(gradients->data + places[j][k], message->dtype);
    const uint32_t wrong = proof_find_wrong(&gradients->proof, gradients->plan, m, iteration, back);
    if (wrong < layout_sample_count(message))
        return part_wrong(gradients->plan, m, wrong, all_devices(gradients), iteration, err);
    gradients->checked += layout_sample_count(message);
    return ST_OK;
}

static enum status check_encoded(struct gradients *gradients, uint32_t m, uint32_t iteration, struct error *err) {
    const struct message *message = &gradients->plan->messages[m];
    const uint32_t n = layout_sample_count(message);
    float wanted[LAYOUT_SAMPLES];
    proof_next(&gradients->proof, gradients->plan, m, iteration, wanted);
    for (uint32_t k = 0; k < n; k++)
        if (!holds_float(gradients->data + samples_of(gradients, m)[k], message->dtype, wanted[k]))
            return part_wrong(gradients->plan, m, k, all_devices(gradients), iteration, err);
    gradients->checked += n;
    return ST_OK;
}

enum status gradients_check(struct gradients *gradients, uint32_t m, uint32_t iteration, struct error *err) {
    const uint32_t n = layout_sample_count(&gradients->plan->messages[m]), first = first_sample(gradients, m);
    if (gradients->plan->messages[m].encoder == ENCODING_powersgd)
        return check_matrices(gradients, m, iteration, err);
    if (gradients->plan->messages[m].encoder)
        return check_encoded(gradients, m, iteration, err);
    for (uint32_t k = first; k < n; k++) {
        if (!gradients_sample_is(gradients, m, k, gradients_sum(gradients, all_devices(gradients), iteration, m, k)))
            return part_wrong(gradients->plan, m, k, all_devices(gradients), iteration, err);
    }
    gradients->checked += n - first;
    return ST_OK;
}

void gradients_reserve(struct gradients *gradients, uint32_t message, uint32_t n) {
    gradients->reserved_message = message;
    gradients->reserved = n;
}

/* Where element i of the reserved message lies. */
static char *reserved_place(const struct gradients *gradients, uint32_t i) {
    const struct piece *piece = pieces_of(gradients, gradients->reserved_message);
    uint64_t at = i * dtype_bytes(gradients->plan->messages[gradients->reserved_message].dtype);
    while (at >= piece->bytes)
        at -= (piece++)->bytes;
    return gradients_piece(gradients, piece) + at;
}

static bool is_double(const struct gradients *gradients) {
    return gradients->plan->messages[gradients->reserved_message].dtype == DTYPE_f64;
}

void gradients_put(struct gradients *gradients, const double *numbers) {
    for (uint32_t i = 0; i < gradients->reserved; i++) {
        const float narrow = (float)numbers[i];
        if (is_double(gradients))
            memcpy(reserved_place(gradients, i), &numbers[i], sizeof numbers[i]);
        else
            memcpy(reserved_place(gradients, i), &narrow, sizeof narrow);
    }
}

void gradients_get(const struct gradients *gradients, double *sums) {
    for (uint32_t i = 0; i < gradients->reserved; i++) {
        float narrow;
        memcpy(&narrow, reserved_place(gradients, i), sizeof narrow);
        sums[i] = (double)narrow;
        if (is_double(gradients))
            memcpy(&sums[i], reserved_place(gradients, i), sizeof sums[i]);
    }
}

void gradients_spoil(struct gradients *gradients, uint32_t message) {
    enum { MORE_THAN_ANY_VALUE = 50 };
    const struct message *m = &gradients->plan->messages[message];
    const uint32_t k = first_sample(gradients, message);
    if (layout_sample_count(m) > k)
        gradients_write_sample(gradients, message, k, MORE_THAN_ANY_VALUE);
}

void gradients_release(struct gradients *gradients) {
    free(gradients->data);
    proof_release(&gradients->proof, gradients->plan);
    layout_release(&gradients->layout);
    *gradients = (struct gradients){0};
}
