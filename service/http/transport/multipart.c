/* A part begins behind "--BOUNDARY" and a line's end, with header lines up to an empty one. It ends before the next
 * line that begins with "--BOUNDARY"; behind the last one stands "--". Of the headers only Content-Disposition counts.
 */
#include "service/http/transport/multipart.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "service/http/transport/problem.h"

enum { BOUNDARY_MOST = 70, NAME_MOST = 255 };

struct reader {
    char mark[BOUNDARY_MOST + 5]; /* "\r\n--BOUNDARY" */
    size_t mark_bytes;
    const char *at, *end;
    struct arena *arena;
};

static enum status fail(struct error *err, const char *what) {
    return problem_fail(err, PROBLEM_BAD_REQUEST, "the body is no multipart/form-data: %s", what);
}

/* The value of a parameter name=value or name="value" of a header's value, into out[room]; false: it is not there, or
 * too long. */
static bool parameter(const char *header, size_t n, const char *name, char *out, size_t room) {
    const char *end = header + n;
    const size_t length = strlen(name);
    bool quoted = false;
    for (const char *at = header; at < end; at++) {
        quoted ^= *at == '"';
        if (quoted || *at != ';')
            continue;
        for (at++; at < end && (*at == ' ' || *at == '\t');)
            at++;
        if ((size_t)(end - at) > length && !strncasecmp(at, name, length) && at[length] == '=') {
            const char *value = at + length + 1;
            const bool in_quotes = value < end && *value == '"';
            value += in_quotes;
            size_t k = 0;
            while (value + k < end && (in_quotes ? value[k] != '"' : !strchr("; \t", value[k])))
                k++;
            return k < room && snprintf(out, room, "%.*s", (int)k, value) == (int)k;
        }
        at--;
    }
    return false;
}

static enum status read_boundary(struct reader *r, const char *content_type, struct error *err) {
    char boundary[BOUNDARY_MOST + 1];
    if (!parameter(content_type, strlen(content_type), "boundary", boundary, sizeof boundary) || !*boundary)
        return fail(err, "its Content-Type names no boundary of 1 to 70 characters");
    r->mark_bytes = (size_t)snprintf(r->mark, sizeof r->mark, "\r\n--%s", boundary);
    return ST_OK;
}

/* Read header lines up to the empty one. */
static enum status read_headers(struct reader *r, struct part *out, struct error *err) {
    static const char wanted[] = "content-disposition:";
    char name[NAME_MOST + 1] = "", file[NAME_MOST + 1] = "";
    for (;;) {
        const char *stop = memmem(r->at, (size_t)(r->end - r->at), "\r\n", 2);
        if (!stop)
            return fail(err, "it ends within a part's headers");
        const char *line = r->at;
        const size_t n = (size_t)(stop - line);
        r->at = stop + 2;
        if (!n)
            break;
        if (n < sizeof wanted || strncasecmp(line, wanted, sizeof wanted - 1))
            continue;
        if (!parameter(line, n, "name", name, sizeof name))
            return fail(err, "a part has no name, or one of more than 255 bytes");
        parameter(line, n, "filename", file, sizeof file);
    }
    out->name = arena_strdup(r->arena, name);
    out->file = arena_strdup(r->arena, file);
    return out->name && out->file ? ST_OK : error_no_memory(err);
}

/* Read a part, behind its boundary's line; *last: none follows. */
static enum status read_part(struct reader *r, struct part *out, bool *last, struct error *err) {
    enum status st = read_headers(r, out, err);
    if (st)
        return st;
    const char *text = r->at; /* an empty part's mark begins with the end of its headers */
    const char *stop = memmem(text - 2, (size_t)(r->end - text) + 2, r->mark, r->mark_bytes);
    if (!stop)
        return fail(err, "it ends within a part; was all of it sent?");
    out->text = text;
    out->n = stop > text ? (size_t)(stop - text) : 0;
    r->at = stop + r->mark_bytes;
    *last = r->end - r->at >= 2 && !memcmp(r->at, "--", 2);
    if (!*last && (r->end - r->at < 2 || memcmp(r->at, "\r\n", 2)))
        return fail(err, "something stands behind a boundary");
    r->at += 2;
    return ST_OK;
}

enum status multipart_read(const char *content_type, const char *body, size_t n, size_t most, struct arena *arena,
                           struct part **parts, size_t *n_parts, struct error *err) {
    struct reader r = {.at = body, .end = body + n, .arena = arena};
    enum status st = read_boundary(&r, content_type, err);
    if (st)
        return st;
    const size_t first = r.mark_bytes - 2; /* no line ends before the first */
    if (n < first + 2 || memcmp(body, r.mark + 2, first) ||
        (memcmp(body + first, "\r\n", 2) && memcmp(body + first, "--", 2)))
        return fail(err, "it does not begin with its boundary");
    bool last = !memcmp(body + first, "--", 2);
    struct part *list = arena_alloc(arena, most, sizeof *list);
    size_t k = 0;
    if (!list)
        return error_no_memory(err);
    r.at = body + first + 2;
    for (; !last && k < most && !st; k++)
        st = read_part(&r, &list[k], &last, err);
    if (!st && !last)
        st = error_set(err, ST_TOO_LARGE, "more than %zu parts", most);
    *parts = list;
    *n_parts = k;
    return st;
}
