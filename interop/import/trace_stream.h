/* A profiler's trace of any size, event by event: an object with a list "traceEvents", or the list alone. One event is
 * in memory at a time, so memory does not grow with the file.
 * Threads: one at a time. */
#ifndef INTEROP_IMPORT_TRACE_STREAM_H
#define INTEROP_IMPORT_TRACE_STREAM_H

#include "base/error.h"
#include "base/json.h"
#include "interop/import/source.h"

enum { TRACE_MAX_ITEM = 4 << 20 }; /* bytes of an event, or of another member of the object */

/* An event, whose place is `at` and its position at->index; or, if `member` is not NULL, another member of the object,
 * of that name. Borrowed: good during the visit. */
typedef enum status trace_visitor(void *context, const char *member, const struct json_at *at, struct error *err);

/* Visit all events and members in the order of the file. Of a source that is cut, the rest is read from the file of its
 * name, or from standard input. Fails: ST_INVALID (with the place), ST_TOO_LARGE, ST_NOT_FOUND, ST_ENVIRONMENT,
 * ST_NO_MEMORY, ST_CANCELLED (base/work.h), and as the visitor. */
enum status trace_stream(const struct source *source, trace_visitor *visit, void *context, struct error *err);

/* A source of which nothing is read yet: trace_stream reads all of it from the file ("-": standard input). */
struct source trace_source(const char *path);

#endif
