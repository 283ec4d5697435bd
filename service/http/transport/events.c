/* See events.h: the parts that do not need a connection. */
#include "service/http/transport/events.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

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

enum status event_append(struct event_text *out, uint64_t id, const char *kind, const char *data, struct error *err) {
    if (!GROW(&out->text, &out->capacity, out->n + strlen(kind) + strlen(data) + 64))
        return error_no_memory(err);
    out->n += (size_t)snprintf(out->text + out->n, out->capacity - out->n, "id: %" PRIu64 "\nevent: %s\ndata: %s\n\n",
                               id, kind, data);
    return ST_OK;
}
