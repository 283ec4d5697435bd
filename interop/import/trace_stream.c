/* The bytes of one value are gathered up to the bracket that closes it, checked and parsed by base/json.h, visited and
 * forgotten. Only the frame around the values, two levels deep, is read here. O(bytes). */
#include "interop/import/trace_stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/work.h"

enum { CHUNK = 1 << 16, ENDED = -1, CHECKED = 64 /* events between two checks of the work */ };

struct stream {
    const struct source *source;
    const char *at, *end; /* bytes that are here and not taken yet */
    FILE *more;           /* what follows them; NULL: nothing */
    size_t line;
    char *item; /* the value that is gathered */
    size_t n, room;
    struct json_at root;
    bool listed; /* "traceEvents" was there */
    trace_visitor *visit;
    void *context;
    char chunk[CHUNK];
};

/* ---- bytes ---- */

static int peek(struct stream *s) {
    if (s->at == s->end && s->more) {
        s->at = s->chunk;
        s->end = s->chunk + fread(s->chunk, 1, CHUNK, s->more);
    }
    return s->at < s->end ? (unsigned char)*s->at : ENDED;
}

static int take(struct stream *s) {
    const int c = peek(s);
    if (c == ENDED)
        return c;
    s->at++;
    s->line += c == '\n';
    return c;
}

static bool is_blank(int c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The first byte that is no blank, which is not taken yet. */
static int peek_word(struct stream *s) {
    while (is_blank(peek(s)))
        take(s);
    return peek(s);
}

static enum status fail(struct stream *s, const char *what, struct error *err) {
    if (s->more && ferror(s->more))
        return error_at(err, ST_ENVIRONMENT, s->source->name, "cannot be read: %s", strerror(errno));
    return error_at(err, ST_INVALID, s->source->name, "line %zu: %s", s->line,
                    peek(s) == ENDED ? "the text ends inside the trace; is the file complete?" : what);
}

/* ---- values ---- */

static enum status keep(struct stream *s, struct error *err) {
    if (s->n == TRACE_MAX_ITEM)
        return error_at(err, ST_TOO_LARGE, s->source->name, "line %zu: a value of more than %d bytes", s->line,
                        TRACE_MAX_ITEM);
    if (!GROW(&s->item, &s->room, s->n + 1))
        return error_no_memory(err);
    s->item[s->n++] = (char)take(s);
    return ST_OK;
}

/* Gather a string with its quotes; peek is the first. */
static enum status gather_string(struct stream *s, struct error *err) {
    enum status st = keep(s, err);
    for (bool escaped = false; !st && (peek(s) != '"' || escaped);) {
        escaped = !escaped && peek(s) == '\\';
        st = peek(s) == ENDED ? fail(s, "", err) : keep(s, err);
    }
    return st ? st : keep(s, err);
}

/* Gather the bytes of a value, whatever stands between its brackets or up to the end of a word. */
static enum status gather(struct stream *s, struct error *err) {
    size_t depth = 0;
    enum status st = ST_OK;
    s->n = 0;
    do {
        const int c = peek(s);
        if (c == ENDED)
            return fail(s, "", err);
        depth += c == '{' || c == '[';
        depth -= depth && (c == '}' || c == ']');
        st = c == '"' ? gather_string(s, err) : keep(s, err);
        if (!depth && strchr("}]\"", c))
            return st;
    } while (!st && (depth || (!is_blank(peek(s)) && peek(s) != ENDED && !strchr(",:]}", peek(s)))));
    return st;
}

/* Read the next value. */
static enum status read_value(struct stream *s, cJSON **out, struct error *err) {
    peek_word(s);
    const size_t line = s->line;
    enum status st = gather(s, err);
    if (st)
        return st;
    st = json_parse(s->item, s->n, s->source->name, out, err);
    if (st == ST_INVALID && err && !*err->pointer) {
        char what[sizeof err->message];
        memcpy(what, err->message, sizeof what);
        error_at(err, ST_INVALID, s->source->name, "counted from line %zu on, %s", line, what);
    }
    return st;
}

/* ---- the frame ---- */

/* After an element or member: whether another follows; `close` ends the list or object. */
static enum status read_comma(struct stream *s, int close, bool *more, struct error *err) {
    const int c = peek_word(s);
    *more = c == ',';
    if (c != ',' && c != close)
        return fail(s, "expected a comma or a closing bracket", err);
    take(s);
    return *more && peek_word(s) == close ? fail(s, "a comma before a closing bracket; remove it", err) : ST_OK;
}

/* What follows an opening bracket: whether there is anything before the closing one. */
static bool read_open(struct stream *s, int close) {
    take(s);
    if (peek_word(s) != close)
        return true;
    take(s);
    return false;
}

static enum status read_events(struct stream *s, const struct json_at *list, struct error *err) {
    struct json_at at = {.parent = list};
    bool more = true;
    enum status st = ST_OK;
    if (peek_word(s) != '[')
        return error_at(err, ST_INVALID, s->source->name, "line %zu: the events of a trace are a list", s->line);
    for (more = read_open(s, ']'); more && !st; at.index++) {
        cJSON *event;
        st = at.index % CHECKED ? ST_OK : work_check(err);
        if (st)
            return st;
        st = read_value(s, &event, err);
        if (st)
            return st == ST_INVALID ? error_inside(err, st, "/traceEvents/%zu", at.index) : st;
        at.node = event;
        st = s->visit(s->context, NULL, &at, err);
        cJSON_Delete(event);
        if (!st)
            st = read_comma(s, ']', &more, err);
    }
    return st;
}

static enum status read_member(struct stream *s, const char *name, struct error *err) {
    struct json_at at = {.parent = &s->root, .key = name};
    cJSON *value;
    if (!strcmp(name, "traceEvents")) {
        if (s->listed)
            return fail(s, "\"traceEvents\" stands twice", err);
        s->listed = true;
        return read_events(s, &at, err);
    }
    enum status st = read_value(s, &value, err);
    if (st)
        return st;
    at.node = value;
    st = s->visit(s->context, name, &at, err);
    cJSON_Delete(value);
    return st;
}

static enum status read_members(struct stream *s, struct error *err) {
    bool more;
    enum status st = ST_OK;
    for (more = read_open(s, '}'); more && !st;) {
        cJSON *name = NULL;
        if (peek_word(s) != '"')
            return fail(s, "expected a member name in double quotes", err);
        st = work_check(err);
        if (!st)
            st = read_value(s, &name, err);
        if (!st && peek_word(s) != ':')
            st = fail(s, "expected ':' after a member name", err);
        if (!st) {
            take(s);
            st = read_member(s, name->valuestring, err);
        }
        cJSON_Delete(name);
        if (!st)
            st = read_comma(s, '}', &more, err);
    }
    return st || s->listed ? st
                           : error_at(err, ST_INVALID, s->source->name, "line %zu: no list \"traceEvents\"", s->line);
}

static enum status read_frame(struct stream *s, struct error *err) {
    if (s->source->n >= 3 || s->more) { /* the byte order mark that some editors write */
        for (const char *mark = "\xef\xbb\xbf"; *mark && peek(s) == (unsigned char)*mark; mark++)
            take(s);
    }
    const int first = peek_word(s);
    if (first == 0x1f)
        return error_at(err, ST_INVALID, s->source->name,
                        "compressed; gunzip it first, or give it as <(gunzip -c FILE)");
    if (first != '{' && first != '[')
        return fail(s, "a trace is an object or a list", err);
    enum status st = first == '{' ? read_members(s, err) : read_events(s, &s->root, err);
    if (!st && peek_word(s) != ENDED)
        st = fail(s, "text after the end of the trace; remove it", err);
    return st;
}

struct source trace_source(const char *path) {
    return (struct source){strcmp(path, "-") ? path : SOURCE_STANDARD_INPUT, "", 0, true};
}

static enum status open_rest(const struct source *source, FILE **out, struct error *err) {
    *out = NULL;
    if (!source->cut)
        return ST_OK;
    FILE *f = source_is_standard_input(source) ? stdin : fopen(source->name, "rb");
    if (!f)
        return error_at(err, errno == ENOENT ? ST_NOT_FOUND : ST_ENVIRONMENT, source->name, "%s", strerror(errno));
    *out = f;
    if (f == stdin || !source->n || !fseeko(f, (off_t)source->n, SEEK_SET))
        return ST_OK;
    const int why = errno;
    fclose(f);
    if (why == ESPIPE)
        return error_at(err, ST_INVALID, source->name, "a pipe of more than %d MiB; give it as standard input, -",
                        SOURCE_MAX_BYTES >> 20);
    return error_at(err, ST_ENVIRONMENT, source->name, "%s", strerror(why));
}

enum status trace_stream(const struct source *source, trace_visitor *visit, void *context, struct error *err) {
    FILE *more;
    enum status st = open_rest(source, &more, err);
    if (st)
        return st;
    struct stream *s = malloc(sizeof *s);
    if (s) {
        *s = (struct stream){.source = source,
                             .at = source->text,
                             .end = source->text + source->n,
                             .more = more,
                             .line = 1,
                             .root = json_root(NULL, source->name),
                             .visit = visit,
                             .context = context};
        st = read_frame(s, err);
        free(s->item);
        free(s);
    } else {
        st = error_no_memory(err);
    }
    if (more && more != stdin)
        fclose(more);
    return st;
}
