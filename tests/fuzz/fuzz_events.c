/* Server-sent events: however the bytes are cut, the same events come out, and the last id is that of a whole one. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/client/event_parser.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct heard {
    uint64_t hash, n;
    char id[128];
};

static void add(struct heard *h, const char *text) {
    for (; *text; text++)
        h->hash = (h->hash ^ (unsigned char)*text) * 0x100000001b3u;
    h->hash = (h->hash ^ 0xff) * 0x100000001b3u;
}

static bool hear(void *context, const struct client_event *event) {
    struct heard *h = context;
    require(*event->kind != 0, "an event has a kind");
    add(h, event->id);
    add(h, event->kind);
    add(h, event->data);
    h->n++;
    snprintf(h->id, sizeof h->id, "%s", event->id);
    return h->n < 1000;
}

/* Cut where a byte of the input says so. */
static struct heard feed(const uint8_t *data, size_t n, int cut) {
    struct event_parser parser;
    struct heard heard = {.hash = 0xcbf29ce484222325u};
    struct error err;
    event_parser_init(&parser, NULL, hear, &heard);
    for (size_t i = 0; i < n;) {
        size_t piece = cut ? 1 + (data[i] & 7u) : n;
        piece = piece < n - i ? piece : n - i;
        if (i == 0 && piece < 3 && n >= 3)
            piece = 3; /* a byte order mark comes in one piece */
        require(event_parser_feed(&parser, (const char *)data + i, piece, &err) == ST_OK, "short input is no error");
        i += piece;
    }
    event_parser_cut(&parser);
    require(strlen(parser.id) < sizeof parser.id, "an id has an end");
    event_parser_release(&parser);
    return heard;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    const struct heard whole = feed(data, n, 0), cut = feed(data, n, 1);
    require(whole.n == cut.n && whole.hash == cut.hash, "cutting changes nothing");
    return 0;
}
