/* What one rank's profiler trace says of where its time went: iterations, when it computed, and its collectives.
 *
 * A trace with kernels of a device is about the device; any other is about the processor, which computes while an
 * operator runs that is not a collective's own.
 * Units: microseconds of the trace's own clock. Threads: one at a time. */
#ifndef INTEROP_TRACES_RANK_TRACE_H
#define INTEROP_TRACES_RANK_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "interop/import/source.h"
#include "interop/import/text_set.h"
#include "interop/traces/spans.h"

struct rank_step {
    int64_t number; /* the profiler's */
    double start, end;
};

struct rank_collective {
    const char *operation; /* "all_reduce", ... */
    bool meets;            /* no rank is done before the last one has begun */
    const char *group;     /* name and ranks of the process group; "": not said */
    uint32_t devices;      /* in the group; 0: not said */
    int64_t sequence;      /* within the group; TRACE_NO_NUMBER: not said */
    uint64_t bytes;        /* the larger of input and output; 0: not said */
    double elements;       /* of the first input; 0: not said */
    double start, end;     /* start: of the call, or when the one before it in the queue was done */
    /* What the other ranks' traces add (meetings.h): */
    double ready;    /* when the last rank had come; NAN: not known */
    size_t late;     /* the trace of that rank */
    double share_us; /* its share, by bytes, of the stretch for which messages moved; NAN: some bytes are not known */
    bool alone;      /* none but its own moved in that stretch */
    size_t number;   /* among alike ones: position in the step, or of the same sequence number */
    int64_t step;    /* of those without a sequence number: the step in which it began */
};

struct rank_trace {
    const char *file;
    const char *host; /* its name; NULL: not said */
    int64_t rank;     /* TRACE_NO_NUMBER: not said */
    uint32_t n_ranks; /* of the job; 0: not said */
    bool on_device;   /* it is about a device */
    struct spans compute;
    struct rank_step *steps; /* in order; at least one; each ends where the next begins */
    size_t n_steps, steps_room;
    struct rank_collective *collectives; /* by their start */
    size_t n_collectives, collectives_room;
    size_t counted_bytes; /* as the memory of the work that read it (base/work.h) */
};

/* When its messages begin to move: once all ranks have come, as far as is known. */
double rank_collective_moves(const struct rank_collective *collective);

enum { RANK_MAX_SPANS = 8 << 20, RANK_MAX_COLLECTIVES = 1 << 20 };

/* Read a trace of any size. Texts are kept in `texts`. Fails: as trace_stream; ST_INVALID (nothing in it takes time);
 * ST_TOO_LARGE (over the limits above); ST_NO_MEMORY, also where it is more than the work may hold. */
enum status rank_trace_read(const struct source *source, struct text_set *texts, struct rank_trace *out,
                            struct error *err);
void rank_trace_release(struct rank_trace *trace);

#endif
