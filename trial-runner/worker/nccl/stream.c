/* A ring of marks that grows. O(1) a call. */
#include "trial-runner/worker/nccl/stream.h"

#include <stdlib.h>

#include "trial-runner/worker/nccl/device.h"
#include "trial-runner/worker/report.h"

void stream_init(struct stream *stream, int priority) {
    *stream = (struct stream){.capacity = 64};
    stream->marks = report_alloc(stream->capacity, sizeof *stream->marks);
    device_check(cudaStreamCreateWithPriority(&stream->cuda, cudaStreamNonBlocking, priority), "making a stream");
}

static void grow(struct stream *stream) {
    struct mark *marks = report_alloc(stream->capacity * 2, sizeof *marks);
    for (size_t i = 0; i < stream->n; i++)
        marks[i] = stream->marks[(stream->first + i) % stream->capacity];
    free(stream->marks);
    stream->marks = marks;
    stream->first = 0;
    stream->capacity *= 2;
}

void stream_mark(struct stream *stream, cudaEvent_t event, int kind, uint32_t index) {
    if (stream->n == stream->capacity)
        grow(stream);
    device_check(cudaEventRecord(event, stream->cuda), "recording an event");
    stream->marks[(stream->first + stream->n++) % stream->capacity] = (struct mark){event, kind, index};
}

void stream_await(const struct stream *stream, cudaEvent_t event) {
    device_check(cudaStreamWaitEvent(stream->cuda, event, 0), "waiting for an event");
}

bool stream_reached(struct stream *stream, struct mark *out) {
    if (stream->n == 0)
        return false;
    cudaError_t result = cudaEventQuery(stream->marks[stream->first].event);
    if (result == cudaErrorNotReady)
        return false;
    device_check(result, "the GPU");
    *out = stream->marks[stream->first];
    stream->first = (stream->first + 1) % stream->capacity;
    stream->n--;
    return true;
}

void stream_release(struct stream *stream) {
    device_check(cudaStreamDestroy(stream->cuda), "ending a stream");
    free(stream->marks);
    *stream = (struct stream){0};
}

cudaEvent_t event_new(bool timed) {
    cudaEvent_t event;
    device_check(cudaEventCreateWithFlags(&event, timed ? cudaEventDefault : cudaEventDisableTiming),
                 "making an event");
    return event;
}

double event_elapsed_us(cudaEvent_t from, cudaEvent_t to) {
    float ms = 0;
    device_check(cudaEventElapsedTime(&ms, from, to), "reading two events");
    return (double)ms * 1e3;
}
