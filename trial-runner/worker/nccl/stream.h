/* A CUDA stream, and what the events on it mean.
 *
 * Events complete in the order in which they were recorded, so it is enough to query the oldest event to know whether
 * anything has happened. */
#ifndef TRIAL_RUNNER_WORKER_NCCL_STREAM_H
#define TRIAL_RUNNER_WORKER_NCCL_STREAM_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mark {
    cudaEvent_t event;
    int kind;
    uint32_t index;
};

struct stream {
    cudaStream_t cuda;
    struct mark *marks; /* ring */
    size_t n, first, capacity;
};

void stream_init(struct stream *stream, int priority);

/* Record the event behind all that is on the stream; `kind` and `index` are the caller's. */
void stream_mark(struct stream *stream, cudaEvent_t event, int kind, uint32_t index);

/* All that comes after on the stream waits for what the event was last recorded behind. */
void stream_await(const struct stream *stream, cudaEvent_t event);

/* The oldest mark, once it is reached; it is forgotten then. A failure of the GPU ends the job. */
bool stream_reached(struct stream *stream, struct mark *out);

void stream_release(struct stream *stream);

/* With `timed` the event knows when it was reached. */
cudaEvent_t event_new(bool timed);
double event_elapsed_us(cudaEvent_t from, cudaEvent_t to);

#endif
