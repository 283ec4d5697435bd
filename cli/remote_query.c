/* See remote_query.h. */
#include "cli/remote_query.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/stream.h"
#include "base/text.h"
#include "cli/remote.h"
#include "dataset/bundle.h"

/* ---- the filter ---- */

/* Write the text in quotes, with \ before each quote and each \. */
static void put_text(FILE *to, const char *text) {
    putc('"', to);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putc('\\', to);
        putc(*text, to);
    }
    putc('"', to);
}

static void put_condition(FILE *to, const char *column, const char *operation, const char *text) {
    if (!text)
        return;
    fprintf(to, "%s%s %s ", ftell(to) ? " AND " : "", column, operation);
    put_text(to, text);
}

static void put_bound(FILE *to, const char *column, const char *operation, double us) {
    char text[32];
    if (!(us > 0))
        return;
    json_format_number(us, text);
    fprintf(to, "%s%s %s %s", ftell(to) ? " AND " : "", column, operation, text);
}

static void put_query(FILE *to, const struct query *q) {
    put_condition(to, "model", "=", q->model);
    put_condition(to, "cluster", "=", q->cluster);
    put_condition(to, "strategy", "=", q->strategy);
    put_condition(to, "session", "=", q->session);
    put_condition(to, "runner", "=", q->runner);
    put_condition(to, "proposer", "=", q->proposer);
    put_condition(to, "state", "=", q->state ? record_state_word(*q->state) : NULL);
    put_condition(to, "queued", ">=", q->since);
    put_condition(to, "queued", "<", q->until);
    put_bound(to, "predicted_us", ">=", q->min_predicted_us);
    put_bound(to, "predicted_us", "<=", q->max_predicted_us);
    put_bound(to, "measured_us", ">=", q->min_measured_us);
    put_bound(to, "measured_us", "<=", q->max_measured_us);
    if (q->filter)
        fprintf(to, ftell(to) ? " AND (%s)" : "%s", q->filter);
}

enum status remote_query_filter(const struct query *query, struct arena *arena, const char **out, struct error *err) {
    char *text;
    size_t n;
    FILE *to = stream_open(&text, &n);
    if (to)
        put_query(to, query);
    enum status st = stream_close(to, ST_OK, &text, err);
    if (st)
        return st;
    const char *kept = arena_strdup(arena, text);
    free(text);
    if (!kept)
        return error_no_memory(err);
    *out = kept;
    return ST_OK;
}

/* ---- pages ---- */

enum { PAGE_MAX = 1000 };

struct window {
    size_t skip, left; /* left: SIZE_MAX for all */
    remote_visit *visit;
    void *context;
};

static enum status visit_within(void *context, const cJSON *item, bool *done, struct error *err) {
    struct window *w = context;
    if (w->skip) {
        w->skip--;
        return ST_OK;
    }
    enum status st = w->visit(w->context, item, done, err);
    w->left -= w->left != SIZE_MAX;
    *done = *done || !w->left;
    return st;
}

/* Make the path of the query without the parameters of a page: "/api/v1/records?order=recorded...". */
static enum status make_path(struct client *client, const struct query *q, struct arena *arena, const char **out,
                             struct error *err) {
    const char *filter;
    enum status st = remote_query_filter(q, arena, &filter, err);
    if (st)
        return st;
    char *escaped = client_escape(client, filter);
    *out = escaped ? arena_printf(arena, "/api/v1/records?order=%s%s%s%s%s", q->descending ? "-" : "",
                                  query_order_name(q->order), q->iterations ? "&iterations=true" : "",
                                  *filter ? "&filter=" : "", escaped)
                   : NULL;
    free(escaped);
    return *out ? ST_OK : error_no_memory(err);
}

static size_t page_size(const struct query *q) {
    const size_t wanted = q->limit + q->offset;
    return q->limit && wanted < PAGE_MAX ? wanted : PAGE_MAX;
}

enum status remote_query_run(struct client *client, const struct query *query, remote_visit *visit, void *context,
                             struct error *err) {
    struct arena arena = {0};
    struct window window = {query->offset, query->limit ? query->limit : SIZE_MAX, visit, context};
    const char *path;
    enum status st = make_path(client, query, &arena, &path, err);
    if (!st && !(path = arena_printf(&arena, "%s&page_size=%zu", path, page_size(query))))
        st = error_no_memory(err);
    if (!st)
        st = remote_each(client, path, visit_within, &window, err);
    arena_release(&arena);
    return st;
}

/* ---- text ---- */

struct copy {
    FILE *out;
    bool csv, begun;
    size_t skip, left; /* trials; left: SIZE_MAX for all */
    uint64_t n;
    struct line_set seen; /* of what trials refer to */
};

/* The bytes of the first line, its end included. In CSV a quoted field may hold line ends. */
static size_t line_length(const char *text, bool csv) {
    bool quoted = false;
    size_t n = 0;
    for (; text[n] && (quoted || text[n] != '\n'); n++)
        quoted ^= csv && text[n] == '"';
    return n + (text[n] != '\0');
}

static void put_json_line(const char *line, size_t n, FILE *out) {
    n -= n && line[n - 1] == '\n';
    text_print_json(out, line, n);
    putc('\n', out);
}

static bool is_number(const char *text) {
    char *end;
    strtod(text, &end);
    return *text && !*end && strspn(text, "+-0123456789.eE") == strlen(text);
}

/* Take the cell at *at out of its quotes, into the room of `cell`; *at is then at what ends it. */
static void take_cell(const char **at, const char *end, char *cell) {
    bool quoted = false;
    const char *p = *at;
    for (; p < end && (quoted || (*p != ',' && *p != '\n')); p++) {
        const bool doubled = quoted && *p == '"' && p + 1 < end && p[1] == '"';
        if (doubled || *p != '"')
            *cell++ = *p;
        else
            quoted = !quoted;
        p += doubled;
    }
    *cell = '\0';
    *at = p;
}

/* Cell by cell, as export_csv writes them: a service may be older, or be another program, so its text is not trusted.
 * Numbers stay; a ' that stands before a formula's sign already is not written twice. */
static enum status put_csv_line(const char *line, size_t n, FILE *out, struct error *err) {
    const char *end = line + n;
    char *cell = malloc(n + 1);
    if (!cell)
        return error_no_memory(err);
    end -= end > line && end[-1] == '\n';
    end -= end > line && end[-1] == '\r';
    for (const char *at = line;; at++) {
        take_cell(&at, end, cell);
        const bool marked = *cell == '\'' && cell[1] && strchr("=+-@'", cell[1]);
        if (is_number(cell))
            fputs(cell, out);
        else
            text_print_csv(out, cell + marked);
        if (at >= end)
            break;
        putc(',', out);
    }
    fputs("\r\n", out);
    free(cell);
    return ST_OK;
}

static enum status copy_line(struct copy *c, const char *line, size_t n, struct error *err) {
    static const char record[] = "{\"schema\":\"syncopate.record/1\"";
    bool fresh;
    if (!c->csv && strncmp(line, record, sizeof record - 1) != 0) {
        enum status st = line_set_add(&c->seen, line, n, &fresh, err);
        if (!st && fresh)
            put_json_line(line, n, c->out);
        return st;
    }
    if (c->skip) {
        c->skip--;
    } else if (c->left) {
        c->left -= c->left != SIZE_MAX;
        c->n++;
        if (c->csv)
            return put_csv_line(line, n, c->out, err);
        put_json_line(line, n, c->out);
    }
    return ST_OK;
}

/* Every page of CSV has the line of names; it is wanted once. */
static enum status copy_page(struct copy *c, const char *text, struct error *err) {
    enum status st = ST_OK;
    if (c->csv) {
        const size_t n = line_length(text, true);
        st = c->begun ? ST_OK : put_csv_line(text, n, c->out, err);
        text += n;
    }
    c->begun = true;
    while (*text && !st) {
        const size_t n = line_length(text, c->csv);
        st = copy_line(c, text, n, err);
        text += n;
    }
    return st;
}

static enum status copy_pages(struct copy *c, struct remote_pages *pages, struct error *err) {
    enum status st;
    do {
        struct client_text page;
        st = remote_pages_next(pages, &page, err);
        if (st)
            break;
        st = copy_page(c, page.text, err);
        free(page.text);
    } while (!st && c->left && *pages->token);
    return st;
}

enum status remote_query_export(struct client *client, const struct query *query, enum export_format format,
                                bool references, FILE *out, uint64_t *n, struct error *err) {
    const bool csv = format == EXPORT_CSV;
    struct arena arena = {0};
    struct copy copy = {.out = out, .csv = csv, .skip = query->offset, .left = query->limit ? query->limit : SIZE_MAX};
    struct remote_pages pages = {client, NULL, csv ? "text/csv" : "application/jsonl", page_size(query), ""};
    enum status st = make_path(client, query, &arena, &pages.path, err);
    if (!st && !(pages.path = arena_printf(&arena, "%s&format=%s%s", pages.path, csv ? "csv" : "jsonl",
                                           references ? "&references=true" : "")))
        st = error_no_memory(err);
    if (!st)
        st = copy_pages(&copy, &pages, err);
    if (!st && (fflush(out) || ferror(out)))
        st = error_set(err, ST_ENVIRONMENT, "cannot write the export: %s", strerror(errno));
    if (!st && n)
        *n = copy.n;
    line_set_release(&copy.seen);
    arena_release(&arena);
    return st;
}
