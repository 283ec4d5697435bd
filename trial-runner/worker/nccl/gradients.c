/* Chunks of at most CHUNK_BYTES, so that a kernel's blocks share long and short runs evenly. Tables are made once. */
#include "trial-runner/worker/nccl/gradients.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "trial-runner/worker/crossings.h"
#include "trial-runner/worker/nccl/device.h"
#include "trial-runner/worker/parts.h"
#include "trial-runner/worker/report.h"

enum { CHUNK_BYTES = 65536, BUFFER_ALIGN = 256 };

static_assert((int)KERNEL_SAMPLES == (int)LAYOUT_SAMPLES && (int)KERNEL_TYPES == (int)DTYPE_COUNT &&
                  (int)KERNEL_bf16 == (int)DTYPE_bf16 && (int)KERNEL_i64 == (int)DTYPE_i64 &&
                  (int)KERNEL_u8 == (int)DTYPE_u8 && KERNEL_NOWHERE == CROSSINGS_NOWHERE,
              "kernels count as the model does");

/* Both halves of an all-reduce are made, moved and checked as the first. */
static uint32_t first_of(const struct plan *plan, uint32_t m) {
    return message_is_second_half(&plan->messages[m]) ? plan->messages[m].other : m;
}

static uint64_t part_bytes(const struct plan *plan, const struct message *message) {
    return part_elements(message, plan->cluster->n_devices) * dtype_bytes(message->dtype);
}

/* The type of elements in its run: encoders read and leave f32. */
static enum dtype run_type(const struct message *message) {
    return message->encoder ? DTYPE_f32 : message->dtype;
}

/* Of its run: halves and messages of shards are padded to equal parts. */
static uint64_t run_bytes(const struct plan *plan, const struct message *message) {
    if (message->encoder)
        return message_elements(message) * dtype_bytes(run_type(message));
    return message->half ? part_bytes(plan, message) * part_count(message, plan->cluster->n_devices) : message->bytes;
}

/* The type in which the device has what goes into the message. */
static enum dtype type_in_use(const struct plan *plan, const struct message *message) {
    return message->half ? carried_dtype(message->in_use, layout_own_type(plan, message)) : message->dtype;
}

/* Whether this device's part is in the model's type too, in a place of its own: its shard. */
static bool has_shard(const struct message *message) {
    return message->converted_bytes > 0;
}

/* Replicas add a part where it lies. */
static bool is_fused(const struct plan *plan, uint32_t m) {
    const struct message *message = &plan->messages[m];
    const bool is_padded = message->half && run_bytes(plan, message) != message->bytes;
    return !message_is_of_replicas(message) &&
           (message->n_pieces != 1 || is_padded || type_in_use(plan, message) != run_type(message));
}

/* Which elements a message moves, and how. */
struct moved {
    uint32_t message, ready;
    uint64_t key[4];
};

static int by_elements(const void *a, const void *b) {
    const struct moved *x = a, *y = b;
    for (int i = 0; i < 4; i++)
        if (x->key[i] != y->key[i])
            return x->key[i] < y->key[i] ? -1 : 1;
    return x->ready < y->ready ? -1 : x->ready > y->ready;
}

static uint32_t list_moved(const struct plan *plan, struct moved *out) {
    uint32_t n = 0;
    for (uint32_t m = 0; m < plan->n_messages; m++) {
        const struct message *message = &plan->messages[m];
        const struct piece *piece = &plan->pieces[message->first_piece];
        if (!message_is_second_half(message) && !message_is_of_replicas(message) && message->n_pieces > 0)
            out[n++] = (struct moved){
                m, message->ready, {piece->variable, piece->offset_bytes, message->half, message->ranks}};
    }
    return n;
}

/* Find for each message those that move the same elements in the same way in an iteration: the first of them to be
 * ready, and the one before it, which of the first is the last one, of the iteration before. O(messages log messages).
 */
static void find_same(struct gradients *g) {
    const struct plan *plan = g->plan;
    struct moved *moved = report_alloc(plan->n_messages, sizeof *moved);
    const uint32_t n = list_moved(plan, moved);
    g->first = report_alloc(plan->n_messages, sizeof *g->first);
    g->before = report_alloc(plan->n_messages, sizeof *g->before);
    for (uint32_t m = 0; m < plan->n_messages; m++)
        g->first[m] = g->before[m] = m;
    qsort(moved, n, sizeof *moved, by_elements);
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && memcmp(moved[i].key, moved[end].key, sizeof moved[i].key) == 0; end++) {
            g->first[moved[end].message] = moved[i].message;
            g->before[moved[end].message] = moved[end - 1].message;
        }
        g->before[moved[i].message] = moved[end - 1].message;
    }
    free(moved);
}

/* A collective that needs its buffer no more when the next one on the stream begins. */
static bool shares_buffer(const struct message *message) {
    return message->kind == SYNC_ALL_REDUCE && message->other == NO_MESSAGE;
}

/* The message in whose buffer m is moved, if both have one of their own. */
static uint32_t owner_of_buffer(const struct gradients *g, uint32_t m) {
    const uint32_t first = g->first[first_of(g->plan, m)];
    return first == m || shares_buffer(&g->plan->messages[first]) ? first_of(g->plan, m) : first;
}

/* Where in data what the message moves begins: the gradients or, behind them, the variables as they are gathered. */
static uint64_t place_of(const struct gradients *g, const struct message *message) {
    return message_gathers_parameters(message) ? g->layout.bytes : 0;
}

static uint64_t align(uint64_t bytes) {
    return (bytes + BUFFER_ALIGN - 1) / BUFFER_ALIGN * BUFFER_ALIGN;
}

/* Cut a run that lies at `run->data` and `run->buffer` into chunks, of which there are n before; how many there are
 * then. */
static uint32_t cut(const struct kernel_chunk *run, uint32_t n, struct kernel_chunk *out) {
    const uint64_t in_data = kernel_width(run->data_type), in_buffer = kernel_width(run->buffer_type);
    for (uint64_t done = 0; done < run->bytes; done += CHUNK_BYTES, n++)
        if (out)
            out[n] = (struct kernel_chunk){run->data + done / in_buffer * in_data, run->buffer + done,
                                           run->bytes - done < CHUNK_BYTES ? run->bytes - done : CHUNK_BYTES,
                                           run->data_type, run->buffer_type};
    return n;
}

/* The same for all pieces of a message. */
static uint32_t cut_pieces(const struct gradients *g, uint32_t m, uint32_t n, struct kernel_chunk *out) {
    const struct message *message = &g->plan->messages[m];
    const enum dtype in_use = type_in_use(g->plan, message);
    struct kernel_chunk run = {.data_type = in_use, .buffer_type = run_type(message)};
    for (uint32_t i = 0; is_fused(g->plan, m) && i < message->n_pieces; i++) {
        const struct piece *piece = &g->plan->pieces[message->first_piece + i];
        run.data = place_of(g, message) + layout_of_piece(&g->layout, piece);
        run.bytes = piece->bytes / message_piece_width(message) * dtype_bytes(run_type(message)) +
                    piece->bytes % message_piece_width(message);
        n = cut(&run, n, out);
        run.buffer += run.bytes;
    }
    return n;
}

/* Cut all messages into chunks in `out`. With NULL only their number is counted. */
static uint32_t cut_all(const struct gradients *g, struct kernel_chunk *out) {
    const struct plan *plan = g->plan;
    uint32_t n = 0;
    for (uint32_t m = 0; m < plan->n_messages; m++) {
        g->first_chunk[m] = n;
        n = cut_pieces(g, m, n, out);
    }
    for (uint32_t m = 0; m < plan->n_messages; m++) {
        const struct message *message = &plan->messages[m];
        const struct kernel_chunk run = {g->shard[m], g->part[m], part_bytes(plan, message),
                                         (uint32_t)layout_own_type(plan, message), message->dtype};
        g->first_chunk[plan->n_messages + m] = n;
        n = has_shard(message) ? cut(&run, n, out) : n;
    }
    g->first_chunk[2 * plan->n_messages] = n;
    return n;
}

static void init_buffers(struct gradients *g) {
    const struct plan *plan = g->plan;
    uint64_t largest = 0; /* of those that share the buffer at the front */
    g->buffer = report_alloc(plan->n_messages, sizeof *g->buffer);
    for (uint32_t m = 0; m < plan->n_messages; m++)
        if (is_fused(plan, m) && shares_buffer(&plan->messages[m]) && run_bytes(plan, &plan->messages[m]) > largest)
            largest = run_bytes(plan, &plan->messages[m]);
    g->fused_bytes = align(largest);
    for (uint32_t m = 0; m < plan->n_messages; m++) {
        if (!is_fused(plan, m) || shares_buffer(&plan->messages[m]) || owner_of_buffer(g, m) != m)
            continue;
        g->buffer[m] = g->fused_bytes;
        g->fused_bytes += align(run_bytes(plan, &plan->messages[m]));
    }
    for (uint32_t m = 0; m < plan->n_messages; m++)
        if (!shares_buffer(&plan->messages[m]))
            g->buffer[m] = g->buffer[owner_of_buffer(g, m)];
    g->fused = device_alloc(g->fused_bytes);
}

/* Lay out data. */
static void init_data(struct gradients *g) {
    const struct plan *plan = g->plan;
    g->part = report_alloc(plan->n_messages, sizeof *g->part);
    g->shard = report_alloc(plan->n_messages, sizeof *g->shard);
    g->data_bytes = align(plan->ends_in_update ? 2 * g->layout.bytes : g->layout.bytes);
    for (uint32_t m = 0; m < plan->n_messages; m++) {
        g->part[m] = g->data_bytes;
        if (message_is_of_shards(&plan->messages[m]) && g->first[m] == m)
            g->data_bytes += align(part_bytes(plan, &plan->messages[m]));
        g->shard[m] = g->data_bytes;
        if (has_shard(&plan->messages[m]) && g->first[m] == m)
            g->data_bytes += align(part_elements(&plan->messages[m], plan->cluster->n_devices) *
                                   dtype_bytes(layout_own_type(plan, &plan->messages[m])));
    }
    for (uint32_t m = 0; m < plan->n_messages; m++)
        g->shard[m] = g->shard[g->first[m]];
    for (uint32_t m = 0; m < plan->n_messages; m++)
        g->part[m] = g->part[g->first[message_is_of_replicas(&plan->messages[m]) ? plan->messages[m].other : m]];
}

static void init_chunks(struct gradients *g) {
    g->first_chunk = report_alloc(2 * (size_t)g->plan->n_messages + 1, sizeof *g->first_chunk);
    const uint32_t n = cut_all(g, NULL);
    struct kernel_chunk *chunks = report_alloc(n, sizeof *chunks);
    cut_all(g, chunks);
    g->chunks = device_upload(chunks, n * sizeof *chunks);
    free(chunks);
}

/* Whether the message has this device's part in a place of its own. */
static bool lies_in_part(const struct message *message) {
    return message_is_of_shards(message) || message_is_of_replicas(message);
}

/* Sample k of message m on this device. What is brought to an all-gather is written in the part, and what a
 * reduce-scatter leaves is found there. */
static struct kernel_sample sample_of(const struct gradients *g, uint32_t m, uint32_t k, uint32_t device) {
    const struct message *message = &g->plan->messages[m];
    const uint32_t n = g->plan->cluster->n_devices;
    const struct kernel_devices wanted = part_wanted(message, k, device, n);
    const bool brought = part_is_brought(message, k, device, n);
    const uint64_t lies = place_of(g, message) + g->layout.samples[(size_t)m * LAYOUT_SAMPLES + k];
    if (!lies_in_part(message))
        return (struct kernel_sample){.written = lies, .found = lies, .wanted = wanted};
    const uint64_t from = part_of_device(message, device, n).begin, element = layout_element(message, k);
    const uint64_t in_part = has_shard(message)
                                 ? g->shard[m] + (element - from) * dtype_bytes(layout_own_type(g->plan, message))
                                 : g->part[m] + (element - from) * dtype_bytes(message->dtype);
    if (message->half == HALF_gather)
        return (struct kernel_sample){.written = brought ? in_part : KERNEL_NOWHERE, .found = lies, .wanted = wanted};
    return (struct kernel_sample){
        .written = message_is_of_replicas(message) ? KERNEL_NOWHERE : lies, .found = in_part, .wanted = wanted};
}

static void describe(const struct gradients *g, uint32_t m, uint32_t device, struct kernel_message *message,
                     struct kernel_sample *samples) {
    const struct plan *plan = g->plan;
    const struct message *of = &plan->messages[m];
    const uint32_t n = layout_sample_count(of);
    const enum dtype lies = type_in_use(plan, of), part = has_shard(of) ? layout_own_type(plan, of) : of->dtype;
    const bool gathers = message_gathers_parameters(of);
    *message = (struct kernel_message){.type = layout_narrowest(plan, of),
                                       .written = gathers ? part : lies,
                                       .found = lies_in_part(of) && !gathers ? part : lies,
                                       .n_samples = n,
                                       .first = n,
                                       .made_as = message_is_of_replicas(of) ? of->other : m,
                                       .adds_up = !plan->sums_each && message_brings_gradients(of)};
    for (uint32_t k = n; k-- > 0;) {
        samples[k] = sample_of(g, m, k, device);
        if (samples[k].written != KERNEL_NOWHERE)
            message->first = k;
    }
}

static void init_table(struct gradients *g, uint32_t device) {
    const struct plan *plan = g->plan;
    const size_t n_samples = (size_t)plan->n_messages * LAYOUT_SAMPLES;
    struct kernel_message *messages = report_alloc(plan->n_messages, sizeof *messages);
    struct kernel_sample *samples = report_alloc(n_samples, sizeof *samples);
    for (uint32_t m = 0; m < plan->n_messages; m++)
        describe(g, m, device, &messages[m], samples + (size_t)m * LAYOUT_SAMPLES);
    g->table = (struct kernel_table){
        .data = device_alloc(g->data_bytes),
        .messages = device_upload(messages, plan->n_messages * sizeof *messages),
        .samples = device_upload(samples, n_samples * sizeof *samples),
        .device = device,
        .n_devices = plan->cluster->n_devices,
        .micro_batches = plan->micro_batches,
    };
    free(samples);
    free(messages);
}

static void *pinned(uint64_t bytes) {
    void *memory = NULL;
    device_check(cudaHostAlloc(&memory, bytes + 1, cudaHostAllocDefault), "pinned memory");
    return memory;
}

typedef uint64_t crossings[LAYOUT_SAMPLES][LAYOUT_SAMPLES];

/* What the host reads of a message with an encoder: its samples, and of powersgd all that crosses them. How many. */
static uint32_t list_places(const struct gradients *g, uint32_t m, uint64_t *out) {
    const struct message *message = &g->plan->messages[m];
    const uint32_t n = layout_sample_count(message);
    crossings places;
    if (!message->encoder)
        return 0;
    if (message->encoder == ENCODING_powersgd) {
        crossings_find(&g->layout, g->plan, m, places);
        memcpy(out, places, sizeof places);
        return sizeof places / sizeof places[0][0];
    }
    memcpy(out, g->layout.samples + (size_t)m * LAYOUT_SAMPLES, n * sizeof *out);
    return n;
}

static void init_places(struct gradients *g) {
    const struct plan *plan = g->plan;
    uint64_t *places = report_alloc(plan->n_messages, sizeof(crossings));
    uint32_t n = 0;
    g->first_place = report_alloc(plan->n_messages + 1, sizeof *g->first_place);
    for (uint32_t m = 0; m < plan->n_messages; m++) {
        g->first_place[m] = n;
        n += list_places(g, m, places + n);
    }
    g->first_place[plan->n_messages] = n;
    g->places = device_upload(places, n * sizeof *places);
    g->numbers = pinned(n * sizeof *g->numbers);
    free(places);
    proof_init(&g->proof, plan);
}

void gradients_init(struct gradients *g, const struct plan *plan, uint32_t device) {
    *g = (struct gradients){.plan = plan};
    layout_init(&g->layout, plan, false);
    find_same(g);
    init_data(g);
    init_buffers(g);
    init_chunks(g);
    init_table(g, device);
    g->by_ready = device_upload(plan->by_ready, plan->n_messages * sizeof *plan->by_ready);
    g->verdicts = pinned((size_t)plan->n_messages * KERNEL_SAMPLES);
    init_places(g);
}

/* powersgd leaves numbers beside the samples, in their rows and columns. */
static void clear_crossings(const struct gradients *g, uint32_t m, const struct stream *stream) {
    const struct message *message = &g->plan->messages[m];
    const uint32_t first = g->first_place[m], n = g->first_place[m + 1] - first;
    if (message->encoder == ENCODING_powersgd)
        device_check(
            kernels_clear(g->table.data, g->places + first, n, (uint32_t)dtype_bytes(message->dtype), stream->cuda),
            "clearing");
}

void gradients_produce(const struct gradients *g, uint32_t step, uint32_t iteration, uint32_t micro_batch, bool spoilt,
                       const struct stream *stream) {
    const uint32_t first = g->plan->first_ready[step], n = g->plan->first_ready[step + 1] - first;
    for (uint32_t i = 0; i < n && micro_batch == 0; i++)
        clear_crossings(g, g->plan->by_ready[first + i], stream);
    if (n > 0)
        device_check(kernels_produce(&g->table, g->by_ready + first, n, iteration, micro_batch, spoilt, stream->cuda),
                     "making gradients");
}

void *gradients_run(const struct gradients *g, uint32_t m) {
    const struct message *message = &g->plan->messages[m];
    if (is_fused(g->plan, m))
        return g->fused + g->buffer[first_of(g->plan, m)];
    return g->table.data + place_of(g, message) + layout_of_piece(&g->layout, &g->plan->pieces[message->first_piece]);
}

void *gradients_part(const struct gradients *g, uint32_t m) {
    const struct message *message = &g->plan->messages[m];
    if (lies_in_part(message))
        return g->table.data + g->part[m];
    return (char *)gradients_run(g, m) + g->table.device * part_bytes(g->plan, message);
}

static void copy(const struct gradients *g, uint32_t list, char *buffer, bool scatter, const struct stream *stream) {
    const uint32_t first = g->first_chunk[list], n = g->first_chunk[list + 1] - first;
    if (n > 0)
        device_check(kernels_copy(g->chunks + first, n, g->table.data, buffer, scatter, stream->cuda),
                     scatter ? "scattering" : "gathering");
}

void gradients_gather(const struct gradients *g, uint32_t message, const struct stream *stream) {
    copy(g, message, gradients_run(g, message), false, stream);
}

void gradients_scatter(const struct gradients *g, uint32_t message, const struct stream *stream) {
    copy(g, message, gradients_run(g, message), true, stream);
}

void gradients_convert_part(const struct gradients *g, uint32_t message, const struct stream *stream) {
    const bool keeps = g->plan->messages[message].half != HALF_gather;
    copy(g, g->plan->n_messages + message, g->table.data, keeps, stream);
}

void gradients_check(const struct gradients *g, uint32_t message, uint32_t iteration, const struct stream *stream) {
    const uint32_t m = first_of(g->plan, message), first = g->first_place[m];
    uint8_t *verdict = g->verdicts + (size_t)m * KERNEL_SAMPLES;
    if (g->plan->messages[m].encoder)
        device_check(kernels_read(g->numbers + first, g->table.data, g->places + first, g->first_place[m + 1] - first,
                                  (enum kernel_type)g->plan->messages[m].dtype, stream->cuda),
                     "reading");
    else
        device_check(kernels_check(&g->table, m, iteration, verdict, stream->cuda), "checking");
}

/* The first sample that is not what the encoder leaves of it, or how many there are. */
static uint32_t find_wrong(struct gradients *g, uint32_t m, uint32_t iteration) {
    const double *numbers = g->numbers + g->first_place[m];
    const uint32_t n = layout_sample_count(&g->plan->messages[m]);
    double back[LAYOUT_SAMPLES][LAYOUT_SAMPLES];
    float wanted[LAYOUT_SAMPLES];
    if (g->plan->messages[m].encoder == ENCODING_powersgd) {
        memcpy(back, numbers, sizeof back);
        return proof_find_wrong(&g->proof, g->plan, m, iteration, back);
    }
    proof_next(&g->proof, g->plan, m, iteration, wanted);
    for (uint32_t k = 0; k < n; k++) {
        const double wide = (double)wanted[k];
        if (memcmp(&numbers[k], &wide, sizeof wide) != 0)
            return k;
    }
    return n;
}

static enum status encoded_verdict(struct gradients *g, uint32_t m, uint32_t iteration, struct error *err) {
    const uint32_t n = layout_sample_count(&g->plan->messages[m]), wrong = find_wrong(g, m, iteration);
    if (wrong < n)
        return part_wrong(g->plan, m, wrong, (struct kernel_devices){0, 1, g->table.n_devices}, iteration, err);
    g->checked += n;
    return ST_OK;
}

enum status gradients_verdict(struct gradients *g, uint32_t message, uint32_t iteration, struct error *err) {
    const uint32_t m = first_of(g->plan, message);
    const struct message *of = &g->plan->messages[m];
    uint8_t *verdict = g->verdicts + (size_t)m * KERNEL_SAMPLES;
    if (of->encoder)
        return encoded_verdict(g, m, iteration, err);
    for (uint32_t k = 0; k < layout_sample_count(of); k++) {
        const struct kernel_devices wanted = part_wanted(of, k, g->table.device, g->table.n_devices);
        if (verdict[k] != 1)
            return part_wrong(g->plan, m, k, wanted, iteration, err);
        verdict[k] = 0;
        g->checked += wanted.n > 0;
    }
    return ST_OK;
}

void gradients_release(struct gradients *g) {
    device_check(cudaFreeHost(g->verdicts), "freeing pinned memory");
    device_check(cudaFreeHost(g->numbers), "freeing pinned memory");
    proof_release(&g->proof, g->plan);
    device_free(g->places);
    free(g->first_place);
    device_free(g->by_ready);
    device_free((void *)g->table.samples);
    device_free((void *)g->table.messages);
    device_free(g->table.data);
    device_free(g->chunks);
    device_free(g->fused);
    free(g->first);
    free(g->before);
    free(g->first_chunk);
    free(g->buffer);
    free(g->shard);
    free(g->part);
    layout_release(&g->layout);
    *g = (struct gradients){0};
}
