/* The events of a PyTorch profiler's trace (Chrome trace events, JSON) that tell something of a training iteration, in
 * the order in which they began. Moments are microseconds of the trace's clock.
 * Threads: one at a time. */
#ifndef INTEROP_IMPORT_TRACE_EVENTS_H
#define INTEROP_IMPORT_TRACE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "interop/import/model_draft.h"
#include "interop/import/source.h"
#include "strategy/model.h"

enum trace_kind {
    TRACE_OPERATOR,    /* of the processor: of the forward pass, or inside a step of the backward pass */
    TRACE_BACKWARD,    /* one step of autograd */
    TRACE_GRADIENT,    /* the step that puts a gradient where the optimizer finds it */
    TRACE_STEP,        /* an iteration, marked by the profiler's step() */
    TRACE_DEVICE_STEP, /* the same on a device: from the first kernel launched in it to the last */
    TRACE_UPDATE,      /* the optimizer's step */
    TRACE_ASIDE,       /* not part of an iteration's compute: zeroing gradients, loading data */
    TRACE_LAUNCH,      /* a call that starts work on a device */
    TRACE_KERNEL,      /* work on a device */
    TRACE_COLLECTIVE   /* among ranks, on a device or not */
};

enum { TRACE_NO_NUMBER = -1 };

struct trace_event {
    enum trace_kind kind;
    const char *name;
    double start, end;
    int64_t thread;
    int64_t sequence;    /* joins an operator and its backward step; TRACE_NO_NUMBER: none */
    int64_t correlation; /* joins a launch and a kernel; TRACE_NO_NUMBER: none */
    size_t place;        /* in the file's list of events */
    const char *input;   /* what the arguments say of the first input, as JSON; NULL: nothing */
};

/* One event, from its place in the file; *kept tells whether it is of some kind. The name is borrowed from the JSON,
 * and `input` is NULL. Fails: ST_INVALID. */
enum status trace_event_read(const struct json_at *at, struct trace_event *out, bool *kept, struct error *err);

struct trace {
    struct trace_event *events; /* by start; of equal ones the longer first */
    size_t n, room;
    const char *name; /* of the file */
    bool in_object;   /* the list is a member "traceEvents" */
};

enum { TRACE_MAX_EVENTS = 4 << 20 };

/* Read all events; texts live in `arena`, the rest until trace_release. Fails: as trace_stream; ST_TOO_LARGE (more than
 * TRACE_MAX_EVENTS of some kind). */
enum status trace_read(const struct source *source, struct arena *arena, struct trace *out, struct error *err);
void trace_release(struct trace *trace);

/* What an event recorded of its first input: nothing, a tensor, or that there is no tensor, as where autograd hands on
 * an undefined gradient. */
enum trace_input { TRACE_INPUT_NONE, TRACE_INPUT_TENSOR, TRACE_INPUT_UNDEFINED };

/* Shape and type of the first input, if it is a tensor. Fails: ST_INVALID. */
enum status trace_input(const struct trace *trace, const struct trace_event *event, struct shape *shape,
                        enum dtype *dtype, enum trace_input *out, struct error *err);

#endif
