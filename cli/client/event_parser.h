/* Server-sent events from the bytes of a stream (WHATWG HTML, "text/event-stream"), however they are cut.
 * Threads: one at a time. */
#ifndef CLI_CLIENT_EVENT_PARSER_H
#define CLI_CLIENT_EVENT_PARSER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Texts live until the listener returns. */
struct client_event {
    const char *id;   /* the last that the stream gave, "" before the first */
    const char *kind; /* "message" where the stream says none */
    const char *data; /* lines with \n between */
};

/* Called for each event; returns false to end the stream. */
typedef bool client_listener(void *context, const struct client_event *event);

struct event_text_buffer {
    char *text;
    size_t n, capacity;
};

struct event_parser {
    struct event_text_buffer line, data;   /* malloc'd */
    char id[128], next_id[128], kind[128]; /* next_id: of the event that is not whole yet */
    bool after_return, begun, stopped;
    client_listener *listener;
    void *context;
};

enum { EVENT_MOST_BYTES = 4 << 20 }; /* of a line, and of an event */

void event_parser_init(struct event_parser *parser, const char *last_id, client_listener *listener, void *context);

/* The next n bytes; a listener that said that it is enough is not called again. Fails: ST_TOO_LARGE, ST_NO_MEMORY. */
enum status event_parser_feed(struct event_parser *parser, const char *bytes, size_t n, struct error *err);

/* The stream was cut: what is not whole is forgotten, the last id stays. */
void event_parser_cut(struct event_parser *parser);
void event_parser_release(struct event_parser *parser);

#endif
