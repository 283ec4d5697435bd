/* NCCL on a shared file: a mailbox for each ordered pair of ranks, of one chunk that is full or empty. Sums are made at
 * rank 0. Whoever waits looks again every POLL_US. */
#include <fcntl.h>
#include <nccl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/support/nccl/double.h"
#include "trial-runner/worker/nccl/kernel_bodies.h"

/* nccl.h declares them without a prototype. */
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

enum { CHUNK_BYTES = 32768, POLL_US = 50, GROUP_MAX = 64 };

/* What a chunk belongs to; both sides must mean the same. */
enum operation_kind { ALL_REDUCE, REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, POINT_TO_POINT };

struct mailbox {
    atomic_uint full;
    uint32_t kind, length;
    uint64_t bytes; /* of the whole */
    char data[CHUNK_BYTES];
};

struct shared {
    atomic_int attached;
    struct mailbox boxes[]; /* [n * n] from row to column */
};

struct ncclComm {
    int rank, n;
    size_t size;
    struct shared *shared;
    atomic_int failure; /* an ncclResult_t */
    atomic_bool aborted;
    int all_reduces, fails_at; /* count; the one that fails, or -1 */
    int max_ctas;
};

/* One side of a transfer. */
struct side {
    enum operation_kind kind;
    bool sends, over;
    int peer;
    char *data;
    uint64_t bytes, done;
};

struct operation {
    ncclComm_t comm;
    cudaStream_t stream;
    enum operation_kind kind;
    const void *from;
    void *to;
    uint64_t count;
    ncclDataType_t type;
    int root;
    int n_sides; /* POINT_TO_POINT */
    struct side sides[GROUP_MAX];
};

static _Thread_local struct operation group;
static _Thread_local int group_depth;

static uint64_t width_of(ncclDataType_t type) {
    return type == ncclFloat64 || type == ncclInt64 || type == ncclUint64   ? 8
           : type == ncclFloat32 || type == ncclInt32 || type == ncclUint32 ? 4
           : type == ncclFloat16 || type == ncclBfloat16                    ? 2
                                                                            : 1;
}

static uint32_t kernel_type_of(ncclDataType_t type) {
    switch (type) {
    case ncclFloat32:
        return KERNEL_f32;
    case ncclFloat64:
        return KERNEL_f64;
    case ncclFloat16:
        return KERNEL_f16;
    case ncclBfloat16:
        return KERNEL_bf16;
    case ncclInt32:
        return KERNEL_i32;
    case ncclInt64:
        return KERNEL_i64;
    default:
        return KERNEL_u8;
    }
}

static bool is_wrong(const char *kind) {
    const char *word = getenv("SYNCOPATE_DOUBLE_WRONG");
    return word && strcmp(word, kind) == 0;
}

static void wait_for_the_end(ncclComm_t comm) {
    while (!atomic_load(&comm->aborted))
        clock_sleep_us(1000);
}

/* One chunk further if the mailbox allows it. */
static bool step(ncclComm_t comm, struct side *side) {
    struct mailbox *box = side->sends ? &comm->shared->boxes[comm->rank * comm->n + side->peer]
                                      : &comm->shared->boxes[side->peer * comm->n + comm->rank];
    if (side->over || atomic_load(&box->full) == side->sends)
        return false;
    if (side->sends) {
        box->kind = side->kind;
        box->bytes = side->bytes;
        box->length = (uint32_t)(side->bytes - side->done < CHUNK_BYTES ? side->bytes - side->done : CHUNK_BYTES);
        memcpy(box->data, side->data + side->done, box->length);
    } else if (box->kind != side->kind || box->bytes != side->bytes) {
        fprintf(stderr, "double of NCCL: rank %d expects %llu bytes, rank %d sends %llu of another call\n", comm->rank,
                (unsigned long long)side->bytes, side->peer, (unsigned long long)box->bytes);
        atomic_store(&comm->failure, ncclInvalidUsage);
        wait_for_the_end(comm);
        return false;
    } else if (side->kind != POINT_TO_POINT || side->peer != comm->n - 1 || !is_wrong("send")) {
        memcpy(side->data + side->done, box->data, box->length);
    }
    side->done += box->length;
    side->over = side->done == side->bytes;
    atomic_store(&box->full, side->sends);
    return true;
}

static void transfer(ncclComm_t comm, struct side *sides, int n) {
    for (int left = n; left > 0 && !atomic_load(&comm->aborted);) {
        bool any = false;
        left = 0;
        for (int i = 0; i < n; i++) {
            any |= step(comm, &sides[i]);
            left += !sides[i].over;
        }
        if (!any)
            clock_sleep_us(POLL_US);
    }
}

static void move(const struct operation *o, bool sends, int peer, void *data) {
    struct side side = {o->kind, sends, false, peer, data, o->count * width_of(o->type), 0};
    transfer(o->comm, &side, 1);
}

static void sum_at(const struct operation *o, int root) {
    void *other = malloc(o->count * width_of(o->type) + 1);
    if (!other)
        abort();
    for (int peer = 0; peer < o->comm->n; peer++) {
        if (peer == root)
            continue;
        move(o, false, peer, other);
        if (peer != o->comm->n - 1 || o->kind != ALL_REDUCE || !is_wrong("all-reduce"))
            kernel_sum(o->to, other, o->count, kernel_type_of(o->type), 0, 1);
    }
    free(other);
}

static void run_collective(struct operation *o) {
    const int root = o->kind == ALL_REDUCE ? 0 : o->root;
    const bool is_root = o->comm->rank == root;
    if (o->to != o->from && (is_root || o->kind == ALL_REDUCE))
        memcpy(o->to, o->from, o->count * width_of(o->type));
    if (o->kind != BROADCAST && is_root)
        sum_at(o, root);
    else if (o->kind != BROADCAST)
        move(o, true, root, (void *)o->from);
    for (int peer = 0; o->kind != REDUCE && is_root && peer < o->comm->n; peer++)
        if (peer != root)
            move(o, true, peer, o->to);
    if (o->kind != REDUCE && !is_root)
        move(o, false, root, o->to);
}

/* In turn, each rank sends its slice to all others. */
static void run_all_gather(struct operation *o) {
    const uint64_t bytes = o->count * width_of(o->type);
    const int rank = o->comm->rank, n = o->comm->n;
    char *to = o->to, *lost = malloc(bytes + 1);
    if (!lost)
        abort();
    if (o->from != to + (uint64_t)rank * bytes)
        memcpy(to + (uint64_t)rank * bytes, o->from, bytes);
    for (int sender = 0; sender < n; sender++)
        for (int peer = 0; peer < n; peer++)
            if (peer != sender && rank == sender)
                move(o, true, peer, to + (uint64_t)sender * bytes);
            else if (peer != sender && rank == peer)
                move(o, false, sender,
                     sender == n - 1 && is_wrong("all-gather") ? lost : to + (uint64_t)sender * bytes);
    free(lost);
}

/* In turn, each rank gets its slice from all others, and adds. */
static void run_reduce_scatter(struct operation *o) {
    const uint64_t bytes = o->count * width_of(o->type);
    const int rank = o->comm->rank, n = o->comm->n;
    char *from = (char *)o->from, *other = malloc(bytes + 1);
    if (!other)
        abort();
    if (o->to != from + (uint64_t)rank * bytes)
        memcpy(o->to, from + (uint64_t)rank * bytes, bytes);
    for (int owner = 0; owner < n; owner++)
        for (int peer = 0; peer < n; peer++) {
            if (peer != owner && rank == peer)
                move(o, true, owner, from + (uint64_t)owner * bytes);
            if (peer == owner || rank != owner)
                continue;
            move(o, false, peer, other);
            if (peer != n - 1 || !is_wrong("reduce-scatter"))
                kernel_sum(o->to, other, o->count, kernel_type_of(o->type), 0, 1);
        }
    free(other);
}

static void run(void *context) {
    struct operation *o = context;
    if (o->kind == POINT_TO_POINT) {
        transfer(o->comm, o->sides, o->n_sides);
    } else if (o->kind == ALL_REDUCE && o->comm->all_reduces++ == o->comm->fails_at) {
        atomic_store(&o->comm->failure, ncclRemoteError);
        wait_for_the_end(o->comm);
    } else if (o->kind == ALL_GATHER) {
        run_all_gather(o);
    } else if (o->kind == REDUCE_SCATTER) {
        run_reduce_scatter(o);
    } else {
        run_collective(o);
    }
    free(o);
}

static ncclResult_t enqueue(const struct operation *o) {
    double_enqueue(o->stream, run, double_copy(o, sizeof *o));
    return ncclSuccess;
}

/* The run of all slices and a slice lie apart, or the slice is this rank's in the run: nothing else is in place. */
static ncclResult_t enqueue_apart(const struct operation *o, const void *run, const void *slice) {
    const uint64_t bytes = o->count * width_of(o->type);
    const char *begin = run, *at = slice, *end = begin + (uint64_t)o->comm->n * bytes;
    const bool apart = at + bytes <= begin || at >= end;
    return apart || at == begin + (uint64_t)o->comm->rank * bytes ? enqueue(o) : ncclInvalidArgument;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
    const struct operation o = {comm, stream, ALL_REDUCE, from, to, count, type, .root = 0};
    return op == ncclSum ? enqueue(&o) : ncclInvalidArgument;
}

ncclResult_t ncclReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream) {
    const struct operation o = {comm, stream, REDUCE, from, to, count, type, .root = root};
    return op == ncclSum ? enqueue(&o) : ncclInvalidArgument;
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
    const struct operation o = {comm, stream, BROADCAST, from, to, count, type, .root = root};
    return enqueue(&o);
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
    const struct operation o = {comm, stream, ALL_GATHER, from, to, count, type, .root = 0};
    return enqueue_apart(&o, to, from);
}

ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
    const struct operation o = {comm, stream, REDUCE_SCATTER, from, to, count, type, .root = 0};
    return op == ncclSum ? enqueue_apart(&o, from, to) : ncclInvalidArgument;
}

static ncclResult_t add_side(bool sends, void *data, uint64_t bytes, int peer, ncclComm_t comm, cudaStream_t stream) {
    if (group.n_sides == GROUP_MAX || peer < 0 || peer >= comm->n || peer == comm->rank)
        return ncclInvalidArgument;
    if (comm->max_ctas & (comm->max_ctas - 1))
        return ncclInvalidUsage;
    if (group.n_sides > 0 && (group.comm != comm || group.stream != stream))
        return ncclInvalidUsage;
    group.comm = comm;
    group.stream = stream;
    group.kind = POINT_TO_POINT;
    group.sides[group.n_sides++] = (struct side){POINT_TO_POINT, sends, false, peer, data, bytes, 0};
    return group_depth > 0 ? ncclSuccess : ncclGroupEnd();
}

ncclResult_t ncclSend(const void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    return add_side(true, (void *)data, count * width_of(type), peer, comm, stream);
}

ncclResult_t ncclRecv(void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
    return add_side(false, data, count * width_of(type), peer, comm, stream);
}

ncclResult_t ncclGroupStart(void) {
    group_depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
    group_depth -= group_depth > 0;
    if (group_depth > 0 || group.n_sides == 0)
        return ncclSuccess;
    const ncclResult_t result = enqueue(&group);
    group = (struct operation){0};
    return result;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    const char *folder = getenv("TMPDIR");
    static const char name[] = "/nccl-double-XXXXXX";
    if (!folder || strlen(folder) + sizeof name > sizeof id->internal)
        folder = "/tmp";
    snprintf(id->internal, sizeof id->internal, "%s%s", folder, name);
    const int file = mkstemp(id->internal);
    if (file < 0)
        return ncclSystemError;
    close(file);
    return ncclSuccess;
}

static int failing_operation(int rank) {
    int which, at;
    const char *word = getenv("SYNCOPATE_DOUBLE_ASYNC");
    return word && sscanf(word, "%d:%d", &which, &at) == 2 && which == rank ? at : -1;
}

/* Returns when all ranks have come, as NCCL does. */
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int n, ncclUniqueId id, int rank, ncclConfig_t *config) {
    const char *blocking = getenv("NCCL_COMM_BLOCKING");
    if (blocking && strcmp(blocking, "0") == 0)
        return ncclInvalidUsage;
    struct ncclComm *new = calloc(1, sizeof *new);
    if (!new)
        return ncclSystemError;
    new->rank = rank;
    new->n = n;
    new->size = sizeof(struct shared) + (size_t)(n * n) * sizeof(struct mailbox);
    new->fails_at = failing_operation(rank);
    new->max_ctas = config->maxCTAs;
    const int file = open(id.internal, O_RDWR);
    void *memory = MAP_FAILED;
    if (file >= 0 && ftruncate(file, (off_t) new->size) == 0)
        memory = mmap(NULL, new->size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) {
        free(new);
        return ncclSystemError;
    }
    new->shared = memory;
    for (atomic_fetch_add(&new->shared->attached, 1); atomic_load(&new->shared->attached) < n;)
        clock_sleep_us(POLL_US);
    if (rank == 0)
        unlink(id.internal);
    *comm = new;
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    munmap(comm->shared, comm->size);
    free(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
    atomic_store(&comm->aborted, true);
    return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *result) {
    *result = (ncclResult_t)atomic_load(&comm->failure);
    return ncclSuccess;
}

ncclResult_t ncclGetVersion(int *version) {
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
    return result == ncclRemoteError    ? "remote process exited or there was a network error"
           : result == ncclInvalidUsage ? "invalid usage"
                                        : "an error of the double";
}

const char *ncclGetLastError(ncclComm_t comm) {
    (void)comm;
    return "";
}
