/* See event_parser.h. Lines end with \n, \r or \r\n; a field is "name: value", a line that begins with a colon is a
 * comment, and an empty line gives the event out. */
#include "cli/client/event_parser.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

void event_parser_init(struct event_parser *p, const char *last_id, client_listener *listener, void *context) {
    *p = (struct event_parser){.listener = listener, .context = context};
    snprintf(p->id, sizeof p->id, "%s", last_id ? last_id : "");
    memcpy(p->next_id, p->id, sizeof p->id);
}

void event_parser_cut(struct event_parser *p) {
    p->line.n = p->data.n = 0;
    p->kind[0] = 0;
    memcpy(p->next_id, p->id, sizeof p->id);
    p->after_return = p->begun = false;
}

void event_parser_release(struct event_parser *p) {
    free(p->line.text);
    free(p->data.text);
    *p = (struct event_parser){0};
}

/* Room for the text and a NUL behind it. */
static enum status append(struct event_text_buffer *b, const char *bytes, size_t n, struct error *err) {
    if (b->n + n > EVENT_MOST_BYTES)
        return error_set(err, ST_TOO_LARGE, "an event has over %d bytes", EVENT_MOST_BYTES);
    if (!GROW(&b->text, &b->capacity, b->n + n + 1))
        return error_no_memory(err);
    memcpy(b->text + b->n, bytes, n);
    b->n += n;
    b->text[b->n] = 0;
    return ST_OK;
}

static void give_out(struct event_parser *p) {
    memcpy(p->id, p->next_id, sizeof p->id);
    if (p->data.n) {
        p->data.text[p->data.n - 1] = 0; /* the last line's end */
        const struct client_event event = {p->id, *p->kind ? p->kind : "message", p->data.text};
        p->stopped = !p->listener(p->context, &event);
    }
    p->data.n = 0;
    p->kind[0] = 0;
}

static enum status take_field(struct event_parser *p, const char *name, size_t n, const char *value,
                              struct error *err) {
    enum status st = ST_OK;
    if (n == 4 && !memcmp(name, "data", n)) {
        st = append(&p->data, value, strlen(value), err);
        if (!st)
            st = append(&p->data, "\n", 1, err);
    } else if (n == 5 && !memcmp(name, "event", n)) {
        snprintf(p->kind, sizeof p->kind, "%s", value);
    } else if (n == 2 && !memcmp(name, "id", n) && strlen(value) < sizeof p->next_id) {
        snprintf(p->next_id, sizeof p->next_id, "%s", value);
    }
    return st;
}

static enum status end_line(struct event_parser *p, struct error *err) {
    const char *line = p->line.n ? p->line.text : "";
    const size_t n = strcspn(line, ":");
    enum status st = ST_OK;
    if (!*line)
        give_out(p);
    else if (n)
        st = take_field(p, line, n, line[n] ? line + n + 1 + (line[n + 1] == ' ') : "", err);
    p->line.n = 0;
    return st;
}

/* A byte order mark may stand before the first line. */
static size_t skip_mark(struct event_parser *p, const char *bytes, size_t n) {
    const bool mark = !p->begun && n >= 3 && !memcmp(bytes, "\xef\xbb\xbf", 3);
    p->begun = true;
    return mark ? 3 : 0;
}

enum status event_parser_feed(struct event_parser *p, const char *bytes, size_t n, struct error *err) {
    enum status st = ST_OK;
    for (size_t i = skip_mark(p, bytes, n); i < n && !st && !p->stopped;) {
        if (p->after_return && bytes[i] == '\n') {
            p->after_return = false;
            i++;
            continue;
        }
        size_t end = i;
        while (end < n && bytes[end] != '\n' && bytes[end] != '\r')
            end++;
        p->after_return = end < n && bytes[end] == '\r';
        st = append(&p->line, bytes + i, end - i, err);
        if (!st && end < n)
            st = end_line(p, err);
        i = end + 1;
    }
    return st;
}
