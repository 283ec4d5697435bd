/* The NCCL worker's single operations, in GPU memory, with the streams, notes and polling of real runs. */
#include "trial-runner/worker/operations.h"

#include <stdlib.h>

#include "strategy/encoder.h"
#include "trial-runner/worker/nccl/kernels.h"
#include "trial-runner/worker/nccl/network.h"
#include "trial-runner/worker/nccl/stream.h"
#include "trial-runner/worker/report.h"

static const enum algorithm algorithms[] = {ALGORITHM_auto, ALGORITHM_ring, ALGORITHM_double_tree};

const struct operations_kind operations_kind = {
    .n_algorithms = sizeof algorithms / sizeof *algorithms,
    .algorithms = algorithms,
    .small = ALGORITHM_auto,
    .halves = false,
    /* Gradients of 16 bits are made in the type in which they travel. */
    .encodings = 1u << ENCODING_int8 | 1u << ENCODING_topk | 1u << ENCODING_powersgd,
    .rate_bytes = UINT64_C(64) << 20, /* beyond the caches, and long beside a launch */
};

enum { CHUNK_BYTES = 65536 };

struct operations {
    const struct world *world;
    struct network *network;
    struct stream stream;
    cudaEvent_t end;
    struct requests requests;
    uint32_t peer;
    char *data, *other;          /* device memory */
    struct kernel_chunk *chunks; /* device memory: of all bytes */
    float *gradients;            /* device memory: numbers that are no zeros; NULL: not yet */
    char *encoded;               /* device memory: what topk makes of them, and needs for that */
    float *thin;                 /* device memory: what powersgd makes of a matrix, and the Q before; NULL: not yet */
    struct kernel_matrix *matrix;
};

static struct kernel_chunk *make_chunks(uint64_t bytes) {
    const uint64_t n = (bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;
    struct kernel_chunk *chunks = report_alloc(n, sizeof *chunks);
    for (uint64_t i = 0; i < n; i++)
        chunks[i] = (struct kernel_chunk){i * CHUNK_BYTES, i * CHUNK_BYTES, CHUNK_BYTES, KERNEL_u8, KERNEL_u8};
    struct kernel_chunk *uploaded = device_upload(chunks, n * sizeof *chunks);
    free(chunks);
    return uploaded;
}

struct operations *operations_new(const struct world *world, uint32_t peer, uint64_t bytes) {
    struct operations *o = report_alloc(1, sizeof *o);
    *o = (struct operations){.world = world, .network = network_of(world), .peer = peer};
    bytes = (bytes + CHUNK_BYTES - 1) / CHUNK_BYTES * CHUNK_BYTES;
    o->data = device_alloc(bytes);
    o->other = device_alloc(bytes);
    o->chunks = make_chunks(bytes);
    o->end = event_new(false);
    stream_init(&o->stream, o->network->device.urgent);
    if (peer != 0) {
        network_connect_pair(o->network, world->worker_rank[0], world->worker_rank[peer], NETWORK_PUSH, o->data);
        network_connect_pair(o->network, world->worker_rank[peer], world->worker_rank[0], NETWORK_PULL, o->data);
    }
    return o;
}

static void wait_all(struct operations *o) {
    struct mark mark;
    stream_mark(&o->stream, o->end, 0, 0);
    while (!stream_reached(&o->stream, &mark)) {
        device_rest(&o->network->device);
        network_watch(o->network);
    }
}

void operations_free(struct operations *o) {
    while (o->requests.n > 0)
        for (int i = requests_poll(&o->requests); i > 0; i--)
            free(o->requests.done[i - 1].buffer);
    requests_release(&o->requests);
    stream_release(&o->stream);
    device_check(cudaEventDestroy(o->end), "ending an event");
    device_free(o->matrix);
    device_free(o->thin);
    device_free(o->encoded);
    device_free(o->gradients);
    device_free(o->chunks);
    device_free(o->other);
    device_free(o->data);
    free(o);
}

void operations_all_reduce(struct operations *o, uint64_t bytes, enum algorithm algorithm) {
    ncclComm_t comm = network_comm(o->network, NETWORK_WORKERS, algorithm);
    network_check(o->network,
                  ncclAllReduce(o->data, o->data, bytes / sizeof(float), ncclFloat32, ncclSum, comm, o->stream.cuda),
                  "ncclAllReduce");
    wait_all(o);
}

/* The sender tells the receiver, as in a run. */
static void send(struct operations *o, enum network_kind kind, uint64_t bytes, uint32_t device) {
    const int rank = o->world->worker_rank[device];
    note_send(&o->requests, o->world, kind == NETWORK_PUSH ? NOTE_PUSH : NOTE_SUM, rank, 0);
    network_check(
        o->network,
        ncclSend(o->data, bytes, ncclUint8, rank, network_comm(o->network, kind, ALGORITHM_auto), o->stream.cuda),
        "ncclSend");
    wait_all(o);
}

static void receive(struct operations *o, enum network_kind kind, uint64_t bytes) {
    struct note note;
    while (!note_take(o->world, &note)) {
        for (int i = requests_poll(&o->requests); i > 0; i--)
            free(o->requests.done[i - 1].buffer);
        device_rest(&o->network->device);
        network_watch(o->network);
    }
    network_check(
        o->network,
        ncclRecv(o->data, bytes, ncclUint8, note.rank, network_comm(o->network, kind, ALGORITHM_auto), o->stream.cuda),
        "ncclRecv");
    wait_all(o);
}

void operations_half(struct operations *o, uint64_t bytes, enum half half) {
    (void)o, (void)bytes, (void)half;
}

void operations_push_and_pull(struct operations *o, uint64_t there, uint64_t back) {
    if (o->world->device == o->peer) {
        receive(o, NETWORK_PUSH, there);
        send(o, NETWORK_PULL, back, 0);
    }
    if (o->world->device == 0) {
        send(o, NETWORK_PUSH, there, o->peer);
        receive(o, NETWORK_PULL, back);
    }
}

void operations_copy(struct operations *o, uint64_t bytes) {
    device_check(kernels_copy(o->chunks, (uint32_t)((bytes + CHUNK_BYTES - 1) / CHUNK_BYTES), o->data, o->other, false,
                              o->stream.cuda),
                 "copying");
    wait_all(o);
}

void operations_sum(struct operations *o, uint64_t bytes) {
    device_check(kernels_sum(o->data, o->other, bytes / sizeof(float), KERNEL_f32, o->stream.cuda), "summing");
    wait_all(o);
}

void operations_encode(struct operations *o, uint64_t bytes) {
    (void)o, (void)bytes;
}

void operations_encode_blocks(struct operations *o, uint64_t bytes) {
    const uint32_t block = (uint32_t)encoder_figure(ENCODING_int8)->usual;
    float *values = (float *)(void *)o->data;
    device_check(kernels_encode_blocks(o->other, values, bytes / sizeof(float), block, o->stream.cuda), "encoding");
    device_check(kernels_sum_blocks(values, o->other, 0, 1, bytes / sizeof(float), block, o->stream.cuda), "decoding");
    wait_all(o);
}

/* Gradients are no zeros: the sizes of these spread over many bins. */
static void make_gradients(struct operations *o, uint64_t n) {
    float *numbers = report_alloc(n, sizeof *numbers);
    for (uint64_t i = 0; i < n; i++)
        numbers[i] = (float)((i * 2654435761u) % 65536) - 32768;
    o->gradients = device_upload(numbers, n * sizeof *numbers);
    free(numbers);
}

void operations_take_largest(struct operations *o, uint64_t bytes) {
    const uint64_t n = bytes / sizeof(float), kept = encoder_kept(encoder_figure(ENCODING_topk)->usual, n);
    if (!o->gradients) {
        make_gradients(o, n);
        o->encoded = device_alloc(sizeof(struct kernel_largest) + kept * sizeof(struct largest));
    }
    struct kernel_largest *work = (struct kernel_largest *)(void *)o->encoded;
    device_check(kernels_take_largest((struct largest *)(void *)(work + 1), work, (float *)(void *)o->other,
                                      o->gradients, n, (uint32_t)kept, o->stream.cuda),
                 "encoding");
    wait_all(o);
}

/* In rows of 4 KiB, with what does not fill one left out. */
void operations_make_thin(struct operations *o, uint64_t bytes) {
    enum { ROW = 1024, RANK = 2 };
    const uint64_t rows = bytes / sizeof(float) / ROW;
    const struct kernel_matrix matrix = {.rows = rows, .columns = ROW};
    if (!o->matrix) {
        o->matrix = device_upload(&matrix, sizeof matrix);
        o->thin = device_alloc((rows + 2 * ROW) * RANK * sizeof *o->thin);
    }
    float *q = o->thin + rows * RANK;
    const struct kernel_thin thin = {
        o->matrix,      1,       RANK, rows, ROW, (float *)(void *)o->data, (float *)(void *)o->other,
        q + ROW * RANK, o->thin, q,    1};
    device_check(kernels_thin_begin(&thin, o->stream.cuda), "multiplying");
    device_check(kernels_thin_turn(&thin, o->stream.cuda), "multiplying");
    device_check(kernels_thin_end(&thin, o->stream.cuda), "multiplying");
    wait_all(o);
}

double operations_eager_bytes(void) {
    return 0;
}
