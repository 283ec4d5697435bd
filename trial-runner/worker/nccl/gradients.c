/* Chunks of at most CHUNK_BYTES, so that a kernel's blocks share long and short runs evenly. Tables are made once. */
#include "trial-runner/worker/nccl/gradients.h"

#include <assert.h>
#include <stdlib.h>

#include "trial-runner/worker/nccl/device.h"
#include "trial-runner/worker/report.h"

enum { CHUNK_BYTES = 65536, BUFFER_ALIGN = 256 };

static_assert((int)KERNEL_SAMPLES == (int)LAYOUT_SAMPLES && (int)KERNEL_TYPES == (int)DTYPE_COUNT &&
                  (int)KERNEL_bf16 == (int)DTYPE_bf16 && (int)KERNEL_i64 == (int)DTYPE_i64 &&
                  (int)KERNEL_u8 == (int)DTYPE_u8,
              "kernels count as the model does");

static bool is_fused(const struct plan *plan, uint32_t message) {
    return plan->messages[message].n_pieces != 1;
}

/* Cut one piece into chunks; where the next one begins. */
static uint32_t cut(const struct gradients *g, const struct piece *piece, uint64_t at, uint32_t n,
                    struct kernel_chunk *out) {
    const uint64_t data = layout_of_piece(&g->layout, piece);
    for (uint64_t done = 0; done < piece->bytes; done += CHUNK_BYTES, n++)
        if (out)
            out[n] = (struct kernel_chunk){data + done, at + done,
                                           piece->bytes - done < CHUNK_BYTES ? piece->bytes - done : CHUNK_BYTES};
    return n;
}

/* Cut all messages into chunks in `out`. With NULL only their number is counted. */
static uint32_t cut_all(const struct gradients *g, struct kernel_chunk *out) {
    const struct plan *plan = g->plan;
    uint32_t n = 0;
    for (uint32_t m = 0; m < plan->n_messages; m++) {
        const struct message *message = &plan->messages[m];
        uint64_t at = 0;
        g->first_chunk[m] = n;
        for (uint32_t i = 0; is_fused(plan, m) && i < message->n_pieces; i++) {
            const struct piece *piece = &plan->pieces[message->first_piece + i];
            n = cut(g, piece, at, n, out);
            at += piece->bytes;
        }
    }
    g->first_chunk[plan->n_messages] = n;
    return n;
}

static void init_buffers(struct gradients *g) {
    uint64_t total = 0;
    g->buffer = report_alloc(g->plan->n_messages, sizeof *g->buffer);
    for (uint32_t m = 0; m < g->plan->n_messages; m++) {
        g->buffer[m] = total;
        if (is_fused(g->plan, m))
            total += (g->plan->messages[m].bytes + BUFFER_ALIGN - 1) / BUFFER_ALIGN * BUFFER_ALIGN;
    }
    g->fused = device_alloc(total);
}

static void init_chunks(struct gradients *g) {
    g->first_chunk = report_alloc(g->plan->n_messages + 1, sizeof *g->first_chunk);
    const uint32_t n = cut_all(g, NULL);
    struct kernel_chunk *chunks = report_alloc(n, sizeof *chunks);
    cut_all(g, chunks);
    g->chunks = device_upload(chunks, n * sizeof *chunks);
    free(chunks);
}

static void init_table(struct gradients *g, uint32_t device) {
    const struct plan *plan = g->plan;
    struct kernel_message *messages = report_alloc(plan->n_messages, sizeof *messages);
    for (uint32_t m = 0; m < plan->n_messages; m++)
        messages[m] = (struct kernel_message){plan->messages[m].dtype, layout_sample_count(&plan->messages[m])};
    g->table = (struct kernel_table){
        .data = device_alloc(g->layout.bytes),
        .messages = device_upload(messages, plan->n_messages * sizeof *messages),
        .samples = device_upload(g->layout.samples, (uint64_t)plan->n_messages * LAYOUT_SAMPLES * sizeof(uint64_t)),
        .device = device,
        .n_devices = plan->cluster->n_devices,
    };
    free(messages);
}

void gradients_init(struct gradients *g, const struct plan *plan, uint32_t device) {
    *g = (struct gradients){.plan = plan};
    layout_init(&g->layout, plan, false);
    init_buffers(g);
    init_chunks(g);
    init_table(g, device);
    g->by_ready = device_upload(plan->by_ready, plan->n_messages * sizeof *plan->by_ready);
    void *pinned = NULL;
    device_check(cudaHostAlloc(&pinned, (size_t)plan->n_messages * KERNEL_SAMPLES + 1, cudaHostAllocDefault),
                 "pinned memory");
    g->verdicts = pinned;
}

void gradients_produce(const struct gradients *g, uint32_t step, uint32_t iteration, bool spoilt,
                       const struct stream *stream) {
    const uint32_t first = g->plan->first_ready[step], n = g->plan->first_ready[step + 1] - first;
    if (n > 0)
        device_check(kernels_produce(&g->table, g->by_ready + first, n, iteration, spoilt, stream->cuda),
                     "making gradients");
}

void *gradients_run(const struct gradients *g, uint32_t message) {
    if (is_fused(g->plan, message))
        return g->fused + g->buffer[message];
    return g->table.data + layout_of_piece(&g->layout, &g->plan->pieces[g->plan->messages[message].first_piece]);
}

static void copy(const struct gradients *g, uint32_t message, bool scatter, const struct stream *stream) {
    const uint32_t first = g->first_chunk[message], n = g->first_chunk[message + 1] - first;
    if (n > 0)
        device_check(
            kernels_copy(g->chunks + first, n, g->table.data, gradients_run(g, message), scatter, stream->cuda),
            scatter ? "scattering" : "gathering");
}

void gradients_gather(const struct gradients *g, uint32_t message, const struct stream *stream) {
    copy(g, message, false, stream);
}

void gradients_scatter(const struct gradients *g, uint32_t message, const struct stream *stream) {
    copy(g, message, true, stream);
}

void gradients_check(const struct gradients *g, uint32_t message, uint32_t iteration, const struct stream *stream) {
    uint8_t *verdict = g->verdicts + (size_t)message * KERNEL_SAMPLES;
    device_check(kernels_check(&g->table, message, iteration, verdict, stream->cuda), "checking");
}

enum status gradients_verdict(struct gradients *g, uint32_t m, uint32_t iteration, struct error *err) {
    const struct message *message = &g->plan->messages[m];
    const uint32_t n = layout_sample_count(message);
    uint8_t *verdict = g->verdicts + (size_t)m * KERNEL_SAMPLES;
    for (uint32_t k = 0; k < n; k++) {
        if (verdict[k] != 1)
            return error_set(err, ST_TRIAL, "wrong sum: message %u (%llu bytes), sample %u of %u, iteration %u", m,
                             (unsigned long long)message->bytes, k, n, iteration);
        verdict[k] = 0;
    }
    g->checked += n;
    return ST_OK;
}

void gradients_release(struct gradients *g) {
    device_check(cudaFreeHost(g->verdicts), "freeing pinned memory");
    device_free(g->by_ready);
    device_free((void *)g->table.samples);
    device_free((void *)g->table.messages);
    device_free(g->table.data);
    device_free(g->chunks);
    device_free(g->fused);
    free(g->first_chunk);
    free(g->buffer);
    layout_release(&g->layout);
    *g = (struct gradients){0};
}
