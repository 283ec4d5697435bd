/* See events.h: the parts that do not need a connection. */
#include "tuner/http/events.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct event_source *event_source_new(const struct event_source *source) {
    struct event_source *copy = malloc(sizeof *copy);
    if (copy)
        *copy = *source;
    return copy;
}

void event_source_free(struct event_source *source) {
    if (source && source->release)
        source->release(source->context);
    free(source);
}

static bool reserve(struct event_text *out, size_t more) {
    if (out->capacity - out->n >= more)
        return true;
    size_t capacity = out->capacity ? out->capacity : 1024;
    while (capacity - out->n < more)
        capacity *= 2;
    char *text = realloc(out->text, capacity);
    if (!text)
        return false;
    out->text = text;
    out->capacity = capacity;
    return true;
}

enum status event_append(struct event_text *out, uint64_t id, const char *kind, const char *data, struct error *err) {
    if (!reserve(out, strlen(kind) + strlen(data) + 64))
        return error_no_memory(err);
    out->n += (size_t)snprintf(out->text + out->n, out->capacity - out->n, "id: %" PRIu64 "\nevent: %s\ndata: %s\n\n",
                               id, kind, data);
    return ST_OK;
}
