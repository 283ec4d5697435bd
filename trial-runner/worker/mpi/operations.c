/* The MPI worker's single operations, in host memory, with the event loop that real runs use. */
#include "trial-runner/worker/operations.h"

#include <stdlib.h>
#include <string.h>

#include "strategy/encoder.h"
#include "trial-runner/worker/mpi/blocks.h"
#include "trial-runner/worker/mpi/collective.h"
#include "trial-runner/worker/mpi/convert.h"
#include "trial-runner/worker/mpi/largest.h"
#include "trial-runner/worker/mpi/low_rank.h"
#include "trial-runner/worker/mpi/pool.h"
#include "trial-runner/worker/mpi/ring.h"
#include "trial-runner/worker/pause.h"
#include "trial-runner/worker/report.h"
#include "trial-runner/worker/requests.h"

static const enum algorithm algorithms[] = {ALGORITHM_ring, ALGORITHM_tree, ALGORITHM_halving_doubling,
                                            ALGORITHM_recursive_doubling, ALGORITHM_auto};

const struct operations_kind operations_kind = {
    .n_algorithms = sizeof algorithms / sizeof *algorithms,
    .algorithms = algorithms,
    .small = ALGORITHM_recursive_doubling,
    .halves = true,
    .encodings = (1u << ENCODING_COUNT) - 1,
    .rate_bytes = UINT64_C(8) << 20, /* beyond the caches of one core, as gradients are */
};

struct operations {
    const struct world *world;
    struct requests requests;
    struct pool pool;
    uint64_t eager_bytes; /* what a message of halves may have that needs no answer (ring_begin) */
    char *data, *other;
    uint32_t peer;
};

struct operations *operations_new(const struct world *world, uint32_t peer, uint64_t bytes) {
    struct operations *o = report_alloc(1, sizeof *o);
    *o = (struct operations){.world = world, .peer = peer, .eager_bytes = (uint64_t)operations_eager_bytes()};
    o->data = report_alloc(bytes, 1);
    o->other = report_alloc(bytes, 1);
    memset(o->data, 0, bytes);
    memset(o->other, 0, bytes);
    return o;
}

void operations_free(struct operations *o) {
    pool_release(&o->pool);
    requests_release(&o->requests);
    free(o->other);
    free(o->data);
    free(o);
}

static void wait_all(struct operations *o) {
    while (o->requests.n > 0)
        if (requests_poll(&o->requests) == 0)
            pause_once();
}

void operations_all_reduce(struct operations *o, uint64_t bytes, enum algorithm algorithm) {
    collective_start(o->data, (int)(bytes / sizeof(float)), DTYPE_f32, algorithm, o->world->workers,
                     requests_add(&o->requests, (struct completion){.kind = DONE_ALL_REDUCE}));
    wait_all(o);
}

/* The ring of a plan that has this one message. */
void operations_half(struct operations *o, uint64_t bytes, enum half half) {
    const struct message message = {.bytes = bytes, .half = half, .other = NO_MESSAGE, .dtype = DTYPE_f32};
    const struct plan plan = {.n_messages = 1, .messages = &message};
    struct ring ring;
    ring_begin(&ring, o->world, &message, o->data, o->eager_bytes);
    while (ring_goes_on(&ring, &message)) {
        ring_post(&ring, o->world, &plan, 0, &o->pool, &o->requests);
        for (uint32_t step = ring.step; ring.step == step;) {
            const int n = requests_poll(&o->requests);
            for (int i = 0; i < n; i++)
                ring_came(&ring, o->world, &plan, 0, &o->pool);
            if (n == 0)
                pause_once();
        }
    }
}

static void serve_one(struct operations *o, uint64_t there, uint64_t back) {
    int found = 0;
    MPI_Message handle;
    for (;;) {
        MPI_Improbe(0, 0, o->world->pushes, &found, &handle, MPI_STATUS_IGNORE);
        if (found)
            break;
        pause_once();
    }
    MPI_Imrecv(o->data, (int)there, MPI_BYTE, &handle,
               requests_add(&o->requests, (struct completion){.kind = DONE_ARRIVAL}));
    wait_all(o);
    MPI_Isend(o->data, (int)back, MPI_BYTE, 0, 0, o->world->pushes,
              requests_add(&o->requests, (struct completion){.kind = DONE_ANSWER}));
    wait_all(o);
}

void operations_push_and_pull(struct operations *o, uint64_t there, uint64_t back) {
    if (o->world->device == o->peer)
        serve_one(o, there, back);
    if (o->world->device != 0)
        return;
    MPI_Issend(o->data, (int)there, MPI_BYTE, (int)o->peer, 0, o->world->pushes,
               requests_add(&o->requests, (struct completion){.kind = DONE_PUSH}));
    wait_all(o);
    MPI_Irecv(o->data, (int)back, MPI_BYTE, (int)o->peer, 0, o->world->pushes,
              requests_add(&o->requests, (struct completion){.kind = DONE_PULL}));
    wait_all(o);
}

void operations_copy(struct operations *o, uint64_t bytes) {
    memcpy(o->other, o->data, bytes);
}

void operations_sum(struct operations *o, uint64_t bytes) {
    MPI_Reduce_local(o->other, o->data, (int)(bytes / sizeof(float)), MPI_FLOAT, MPI_SUM);
}

void operations_encode(struct operations *o, uint64_t bytes) {
    convert_encode((uint16_t *)(void *)o->other, DTYPE_f16, o->data, DTYPE_f32, bytes / sizeof(float));
    convert_decode(o->data, DTYPE_f32, (const uint16_t *)(const void *)o->other, DTYPE_f16, bytes / sizeof(float));
}

void operations_encode_blocks(struct operations *o, uint64_t bytes) {
    const size_t block = (size_t)encoder_figure(ENCODING_int8)->usual;
    blocks_encode(o->other, (const float *)(const void *)o->data, bytes / sizeof(float), block);
    blocks_decode((float *)(void *)o->data, o->other, bytes / sizeof(float), block);
}

/* Gradients are no zeros: the sizes of these spread over many bins. */
void operations_take_largest(struct operations *o, uint64_t bytes) {
    const uint64_t n = bytes / sizeof(float), kept = encoder_kept(encoder_figure(ENCODING_topk)->usual, n);
    float *values = (float *)(void *)o->data;
    for (uint64_t i = 0; i < n; i++)
        values[i] += (float)((i * 2654435761u) % 65536) - 32768;
    largest_take((struct largest *)(void *)o->other, values, n, kept);
}

/* In rows of 4 KiB, with what does not fill a matrix left out. */
void operations_make_thin(struct operations *o, uint64_t bytes) {
    enum { ROW = 1024, RANK = 2 };
    float *values = (float *)(void *)o->data, *other = (float *)(void *)o->other;
    const size_t m = (bytes / sizeof(float) - RANK * ROW) / (ROW + RANK);
    float *p = values + m * ROW;
    const struct low_rank matrix = {.m = m, .n = ROW, .r = RANK, .left = values, .p = p, .q = p + m * RANK};
    low_rank_draw(&matrix, 0);
    low_rank_run(LOW_RANK_multiply, &matrix, other, NULL, 0);
    low_rank_orthogonalise(&matrix);
    low_rank_run(LOW_RANK_multiply_back, &matrix, NULL, NULL, 0);
    low_rank_run(LOW_RANK_restore, &matrix, NULL, other, 1);
}

/* sizeof(mca_pml_ob1_hdr_t) in Open MPI 4.1, whose ob1 takes it off the setting: an MPI_Isend of 65,480 bytes over TCP
 * is complete before it is received, one of 65,484 is not. */
enum { MESSAGE_HEADER_BYTES = 56 };

/* How large a message Open MPI's TCP transport sends before the receiver has answered; 0 where the MPI has no such
 * setting. */
double operations_eager_bytes(void) {
    MPI_T_cvar_handle handle;
    int provided, place, n;
    size_t bytes = 0; /* the type that Open MPI gives it */
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS)
        return 0;
    if (MPI_T_cvar_get_index("btl_tcp_rndv_eager_limit", &place) == MPI_SUCCESS &&
        MPI_T_cvar_handle_alloc(place, NULL, &handle, &n) == MPI_SUCCESS) {
        if (n == 1)
            MPI_T_cvar_read(handle, &bytes);
        MPI_T_cvar_handle_free(&handle);
    }
    MPI_T_finalize();
    return bytes > MESSAGE_HEADER_BYTES ? (double)(bytes - MESSAGE_HEADER_BYTES) : 0;
}
