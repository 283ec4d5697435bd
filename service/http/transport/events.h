/* Server-sent events (WHATWG HTML, "text/event-stream"): a handler gives an event source, and the server does the rest.
 *
 * A handler answers with an event source. The server asks it for what is new at once, and again whenever
 * events_publish() was called for the source's topic; in between, the connection sleeps and needs no thread. Every
 * EVENTS_HEARTBEAT_S without an event a comment goes out, which keeps proxies from cutting in and finds dead clients. A
 * client that reconnects says the last id it has (Last-Event-ID, request.last_event_id): ids are durable, so the source
 * begins after it and nothing is lost. */
#ifndef SERVICE_HTTP_TRANSPORT_EVENTS_H
#define SERVICE_HTTP_TRANSPORT_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { EVENTS_HEARTBEAT_S = 15 };

/* Text that grows. */
struct event_text {
    char *text;
    size_t n, capacity;
};

struct event_source {
    char topic[128]; /* "" : only heartbeats and the first read; usually a session's id */
    void *context;
    /* Append what is new, with event_append, at most some 64 KiB a call; the rest at the next call, for which *more is
     * set. *end: the stream is over after this. Called by the server's threads, so it must not take long: an indexed
     * read of the dataset. An error ends the stream. */
    enum status (*read)(void *context, struct event_text *out, bool *more, bool *end, struct error *err);
    /* May whoever opened the stream still hear it? Asked before every read and once a second; false ends the stream.
     * NULL: always. Called and quick as `read`. */
    bool (*allowed)(void *context);
    void (*release)(void *context); /* also frees `context`; may be NULL */
};

/* A heap copy. NULL when memory is out; then `context` is still the caller's. */
struct event_source *event_source_new(const struct event_source *source);
void event_source_free(struct event_source *source); /* and its context; NULL is allowed */

/* "id: ID\nevent: KIND\ndata: DATA\n\n"; kind and data are of one line. Fails: ST_NO_MEMORY. */
enum status event_append(struct event_text *out, uint64_t id, const char *kind, const char *data, struct error *err);

/* Tell every stream of this topic that there is something new. Any thread, also while it holds the service's write
 * lock; cheap when nobody listens. */
struct event_streams;
void events_publish(struct event_streams *streams, const char *topic);

#endif
