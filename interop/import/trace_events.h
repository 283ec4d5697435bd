/* The events of a PyTorch profiler's trace (Chrome trace events, JSON) that tell something of a training iteration, in
 * the order in which they began. Moments are microseconds of the trace's clock.
 * Threads: one at a time. */
#ifndef INTEROP_IMPORT_TRACE_EVENTS_H
#define INTEROP_IMPORT_TRACE_EVENTS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "interop/import/model_draft.h"
#include "interop/import/source.h"
#include "strategy/model.h"

enum trace_kind {
    TRACE_OPERATOR, /* of the processor: of the forward pass, or inside a step of the backward pass */
    TRACE_BACKWARD, /* one step of autograd */
    TRACE_GRADIENT, /* the step that puts a gradient where the optimizer finds it */
    TRACE_STEP,     /* an iteration, marked by the profiler's step() */
    TRACE_UPDATE,   /* the optimizer's step */
    TRACE_ASIDE,    /* not part of an iteration's compute: zeroing gradients, loading data */
    TRACE_LAUNCH,   /* a call that starts work on a device */
    TRACE_KERNEL,   /* work on a device */
    TRACE_COLLECTIVE
};

enum { TRACE_NO_NUMBER = -1 };

struct trace_event {
    enum trace_kind kind;
    const char *name; /* borrowed from the JSON */
    double start, end;
    int64_t thread;
    int64_t sequence;    /* joins an operator and its backward step; TRACE_NO_NUMBER: none */
    int64_t correlation; /* joins a launch and a kernel; TRACE_NO_NUMBER: none */
    size_t place;        /* in the file's list of events */
    const cJSON *node;
};

struct trace {
    struct trace_event *events; /* by start; of equal ones the longer first */
    size_t n;
    const char *name; /* of the file */
    bool in_object;   /* the list is a member "traceEvents" */
};

/* Read all events; names and nodes are borrowed from `json`. Fails: ST_INVALID with the place, ST_NO_MEMORY. */
enum status trace_read(const cJSON *json, const char *name, struct arena *arena, struct trace *out, struct error *err);

/* What an event recorded of its first input: nothing, a tensor, or that there is no tensor, as where autograd hands on
 * an undefined gradient. */
enum trace_input { TRACE_INPUT_NONE, TRACE_INPUT_TENSOR, TRACE_INPUT_UNDEFINED };

/* Shape and type of the first input, if it is a tensor. Fails: ST_INVALID. */
enum status trace_input(const struct trace *trace, const struct trace_event *event, struct shape *shape,
                        enum dtype *dtype, enum trace_input *out, struct error *err);

#endif
