/* CUDA's runtime on threads, with one lock for a process: what matters here is order, not speed. */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tests/support/nccl/double.h"

struct work {
    struct work *next;
    void (*run)(void *context);
    void *context;
};

struct CUstream_st {
    pthread_t thread;
    pthread_cond_t more;
    struct work *first, **last;
    bool ending;
};

/* `asked` counts the records that were put on streams, `reached` those that their stream has come to. */
struct CUevent_st {
    uint64_t asked, reached;
    double time_us;
};

struct ticket {
    cudaEvent_t event;
    uint64_t number;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t reached = PTHREAD_COND_INITIALIZER; /* an event */
static cudaStream_t default_stream;
static int n_streams; /* without the default one */

void *double_copy(const void *data, size_t bytes) {
    void *copy = malloc(bytes);
    if (!copy)
        abort();
    memcpy(copy, data, bytes);
    return copy;
}

static void *serve_stream(void *argument) {
    cudaStream_t stream = argument;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!stream->first && !stream->ending)
            pthread_cond_wait(&stream->more, &lock);
        struct work *work = stream->first;
        if (!work)
            break;
        pthread_mutex_unlock(&lock);
        work->run(work->context);
        pthread_mutex_lock(&lock);
        stream->first = work->next;
        if (!stream->first)
            stream->last = &stream->first;
        free(work);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static cudaStream_t stream_new(void) {
    cudaStream_t stream = calloc(1, sizeof *stream);
    if (!stream)
        abort();
    stream->last = &stream->first;
    pthread_cond_init(&stream->more, NULL);
    if (pthread_create(&stream->thread, NULL, serve_stream, stream) != 0)
        abort();
    return stream;
}

void double_enqueue(cudaStream_t stream, void (*run)(void *context), void *context) {
    struct work *work = malloc(sizeof *work);
    if (!work)
        abort();
    *work = (struct work){NULL, run, context};
    pthread_mutex_lock(&lock);
    if (!stream && !default_stream)
        default_stream = stream_new();
    if (!stream)
        stream = default_stream;
    *stream->last = work;
    stream->last = &work->next;
    pthread_cond_signal(&stream->more);
    pthread_mutex_unlock(&lock);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority) {
    (void)flags, (void)priority;
    const char *queues = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    if (n_streams + 2 > (queues ? atoi(queues) : 1)) {
        fprintf(stderr, "double of CUDA: more streams than CUDA_DEVICE_MAX_CONNECTIONS: they might share a queue\n");
        return cudaErrorNotSupported;
    }
    n_streams++;
    *stream = stream_new();
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    pthread_mutex_lock(&lock);
    n_streams--;
    stream->ending = true;
    pthread_cond_signal(&stream->more);
    pthread_mutex_unlock(&lock);
    pthread_join(stream->thread, NULL);
    pthread_cond_destroy(&stream->more);
    free(stream);
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
    (void)flags;
    *event = calloc(1, sizeof **event);
    return *event ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    free(event);
    return cudaSuccess;
}

static void reach(void *context) {
    struct ticket *ticket = context;
    pthread_mutex_lock(&lock);
    ticket->event->reached = ticket->number;
    ticket->event->time_us = clock_now_us();
    pthread_cond_broadcast(&reached);
    pthread_mutex_unlock(&lock);
    free(ticket);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    pthread_mutex_lock(&lock);
    const struct ticket ticket = {event, ++event->asked};
    pthread_mutex_unlock(&lock);
    double_enqueue(stream, reach, double_copy(&ticket, sizeof ticket));
    return cudaSuccess;
}

static void await(void *context) {
    struct ticket *ticket = context;
    pthread_mutex_lock(&lock);
    while (ticket->event->reached < ticket->number)
        pthread_cond_wait(&reached, &lock);
    pthread_mutex_unlock(&lock);
    free(ticket);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    (void)flags;
    pthread_mutex_lock(&lock);
    const struct ticket ticket = {event, event->asked};
    pthread_mutex_unlock(&lock);
    double_enqueue(stream, await, double_copy(&ticket, sizeof ticket));
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    pthread_mutex_lock(&lock);
    const bool done = event->reached == event->asked;
    pthread_mutex_unlock(&lock);
    return done ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    struct CUevent_st end = {0};
    cudaEventRecord(&end, stream);
    pthread_mutex_lock(&lock);
    while (end.reached < end.asked)
        pthread_cond_wait(&reached, &lock);
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to) {
    if (cudaEventQuery(from) != cudaSuccess || cudaEventQuery(to) != cudaSuccess)
        return cudaErrorNotReady;
    if (from->asked == 0 || to->asked == 0)
        return cudaErrorInvalidResourceHandle;
    *ms = (float)((to->time_us - from->time_us) / 1e3);
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count) {
    const char *set = getenv("SYNCOPATE_DOUBLE_GPUS");
    *count = set ? atoi(set) : 8;
    return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaSetDevice(int device) {
    int count;
    return cudaGetDeviceCount(&count) == cudaSuccess && device < count ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device) {
    memset(properties, 0, sizeof *properties);
    snprintf(properties->name, sizeof properties->name, "double of a GPU");
    properties->uuid.bytes[0] = (char)(device + 1);
    const char *set = getenv("SYNCOPATE_DOUBLE_MULTIPROCESSORS");
    properties->multiProcessorCount = set ? atoi(set) : 132;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

enum { MEMORY_GIB = 16 };

static size_t in_use; /* of device memory; by the host's thread alone */

/* Larger than any vector that a kernel loads. */
static void *allocate(size_t bytes) {
    return aligned_alloc(256, (bytes + 255) / 256 * 256);
}

cudaError_t cudaMalloc(void **memory, size_t bytes) {
    *memory = allocate(bytes);
    in_use += malloc_usable_size(*memory);
    return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *memory) {
    in_use -= malloc_usable_size(memory);
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *all) {
    *all = (size_t)MEMORY_GIB << 30;
    *left = *all - in_use;
    return cudaSuccess;
}

/* Bytes on their way to `to`; behind this. */
struct filling {
    void *to;
    size_t n;
    char bytes[];
};

/* Late enough for whoever does not wait to see what was there before. */
static void fill(void *context) {
    struct filling *filling = context;
    clock_sleep_us(500);
    memcpy(filling->to, filling->bytes, filling->n);
    free(filling);
}

/* NULL `from`: all bytes are `value`. */
static cudaError_t enqueue_filling(void *to, const void *from, int value, size_t bytes) {
    struct filling *filling = malloc(sizeof *filling + bytes);
    if (!filling)
        return cudaErrorMemoryAllocation;
    filling->to = to;
    filling->n = bytes;
    if (from)
        memcpy(filling->bytes, from, bytes);
    else
        memset(filling->bytes, value, bytes);
    double_enqueue(NULL, fill, filling);
    return cudaSuccess;
}

cudaError_t cudaMemset(void *memory, int value, size_t bytes) {
    return enqueue_filling(memory, NULL, value, bytes);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
    return kind == cudaMemcpyHostToDevice ? enqueue_filling(to, from, 0, bytes) : cudaErrorNotSupported;
}

struct copying {
    void *to;
    const void *from;
    size_t bytes;
};

static void copy(void *context) {
    const struct copying *c = context;
    memcpy(c->to, c->from, c->bytes);
    free(context);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream) {
    if (kind != cudaMemcpyDeviceToDevice)
        return cudaErrorNotSupported;
    double_enqueue(stream, copy, double_copy(&(struct copying){to, from, bytes}, sizeof(struct copying)));
    return cudaSuccess;
}

struct clearing {
    void *memory;
    int value;
    size_t bytes;
};

static void clear(void *context) {
    const struct clearing *c = context;
    memset(c->memory, c->value, c->bytes);
    free(context);
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream) {
    double_enqueue(stream, clear, double_copy(&(struct clearing){memory, value, bytes}, sizeof(struct clearing)));
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags) {
    (void)flags;
    *memory = allocate(bytes);
    return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost(void *memory) {
    free(memory);
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t error) {
    return error == cudaSuccess         ? "no error"
           : error == cudaErrorNoDevice ? "no CUDA-capable device is detected"
                                        : "an error of the double";
}
