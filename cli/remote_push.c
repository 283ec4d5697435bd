/* Sending a dataset's trials to a service, as lines in batches. What was sent is not sent again, so models and clusters
 * go once. A batch is one transaction of the service. It is as large as a request may be, so only a large dataset needs
 * several. Trials are sent in their order, so that they have the same order there. See remote_merge.h. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/stream.h"
#include "cli/remote.h"
#include "cli/remote_merge.h"
#include "dataset/bundle.h"
#include "dataset/export.h"

enum { MOST_BYTES = 15 << 20, MOST_LINES = 100000, PAGE = 1000 }; /* of a batch, and of what is read at once */

struct outbox {
    struct client *client;
    struct import_counts counts;
    cJSON *lines;            /* of the batch */
    size_t n_bytes, n_lines; /* bytes as JSON texts */
    uint64_t first, n_read;  /* lines of the file: of the batch's first, and read so far */
};

/* ---- batches ---- */

static enum status send_batch(struct outbox *box, struct error *err) {
    cJSON *answer = NULL, *body = cJSON_CreateObject();
    if (!box->n_lines) {
        cJSON_Delete(body);
        return ST_OK;
    }
    const bool whole = body && cJSON_AddItemToObject(body, "lines", box->lines);
    if (whole)
        box->lines = NULL;
    enum status st = remote_post(box->client, "/api/v1/records:import", body, whole, &answer, err);
    if (st)
        return st;
    box->counts.objects += remote_count(answer, "objects");
    box->counts.sessions += remote_count(answer, "sessions");
    box->counts.trials += remote_count(answer, "trials");
    box->counts.duplicates += remote_count(answer, "duplicates");
    box->counts.unfinished += remote_count(answer, "unfinished");
    box->counts.skipped += remote_count(answer, "skipped");
    cJSON_Delete(answer);
    box->lines = cJSON_CreateArray();
    box->n_bytes = box->n_lines = 0;
    return box->lines ? ST_OK : error_no_memory(err);
}

/* The bytes of a line as a JSON string, with the comma behind it. A line of JSON has no control characters. */
static size_t size_as_text(const char *line, size_t n) {
    size_t size = n + 3;
    for (size_t i = 0; i < n; i++)
        size += line[i] == '"' || line[i] == '\\';
    return size;
}

/* Add a line, given without its end. */
static enum status add_line(struct outbox *box, char *line, size_t n, struct error *err) {
    const size_t size = size_as_text(line, n);
    enum status st = ST_OK;
    if (box->n_lines == MOST_LINES || (box->n_lines && box->n_bytes + size > MOST_BYTES))
        st = send_batch(box, err);
    if (st)
        return st;
    line[n] = '\0';
    box->first = box->n_lines ? box->first : box->n_read;
    cJSON *text = cJSON_CreateString(line);
    if (!text || !cJSON_AddItemToArray(box->lines, text)) {
        cJSON_Delete(text);
        return error_no_memory(err);
    }
    box->n_bytes += size;
    box->n_lines++;
    return ST_OK;
}

static enum status add_lines(struct outbox *box, char *text, struct error *err) {
    enum status st = ST_OK;
    while (*text && !st) {
        const size_t n = strcspn(text, "\n");
        const bool last = !text[n];
        st = n ? add_line(box, text, n, err) : ST_OK;
        text += n + !last;
    }
    return st;
}

/* ---- a dataset ---- */

struct push {
    struct outbox *box;
    struct store *store;
    struct line_set references;     /* that were sent */
    struct line_set sessions, open; /* ids that were met, and of these the sessions that have not ended */
};

static enum status meet_session(struct push *p, const char *id, struct error *err) {
    struct arena arena = {0};
    struct stored_session session;
    bool fresh;
    enum status st = line_set_add(&p->sessions, id, strlen(id), &fresh, err);
    if (st || !fresh)
        return st;
    st = store_session_get(p->store, id, &arena, &session, err);
    if (!st && stored_session_is_open(session.state))
        st = line_set_add(&p->open, id, strlen(id), &fresh, err);
    arena_release(&arena);
    return st;
}

/* Moves those that stay out behind the others; *n is then how many go. */
static enum status choose_records(struct push *p, size_t *n, struct record *records, struct error *err) {
    size_t kept = 0;
    enum status st = ST_OK;
    for (size_t i = 0; i < *n && !st; i++) {
        const char *session = records[i].session;
        st = session ? meet_session(p, session, err) : ST_OK;
        if (!session || !line_set_has(&p->open, session, strlen(session)))
            records[kept++] = records[i];
    }
    p->box->counts.unfinished += *n - kept;
    *n = kept;
    return st;
}

static enum status add_records(struct push *p, size_t n, const struct record *records, struct error *err) {
    char *text;
    size_t size;
    FILE *to = stream_open(&text, &size);
    if (!to)
        return error_no_memory(err);
    enum status st = bundle_references(p->store, n, records, &p->references, to, err);
    for (size_t i = 0; i < n && !st; i++) {
        export_json(&records[i], to);
        putc('\n', to);
    }
    st = stream_close(to, st, &text, err);
    if (!st)
        st = add_lines(p->box, text, err);
    free(text);
    return st;
}

static enum status push_pages(struct push *p, struct error *err) {
    char next[QUERY_CURSOR_ROOM] = "", after[QUERY_CURSOR_ROOM];
    enum status st;
    do {
        struct arena arena = {0};
        struct record *records;
        size_t n;
        memcpy(after, next, sizeof after);
        const struct query query = {.limit = PAGE, .iterations = true, .after = *after ? after : NULL};
        st = query_page(p->store, &query, &arena, &n, &records, next, err);
        if (!st)
            st = choose_records(p, &n, records, err);
        if (!st)
            st = add_records(p, n, records, err);
        arena_release(&arena);
    } while (!st && *next);
    return st ? st : send_batch(p->box, err);
}

static enum status open_outbox(struct client *client, struct outbox *out, struct error *err) {
    *out = (struct outbox){.client = client, .lines = cJSON_CreateArray()};
    return out->lines ? ST_OK : error_no_memory(err);
}

enum status remote_push(struct client *client, struct store *store, struct import_counts *out, struct error *err) {
    struct outbox box;
    struct push push = {.box = &box, .store = store};
    enum status st = open_outbox(client, &box, err);
    if (!st)
        st = push_pages(&push, err);
    *out = box.counts;
    line_set_release(&push.references);
    line_set_release(&push.sessions);
    line_set_release(&push.open);
    cJSON_Delete(box.lines);
    return st;
}

/* ---- a file ---- */

enum status remote_import(struct client *client, FILE *in, const char *name, struct import_counts *out,
                          struct error *err) {
    struct outbox box;
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    enum status st = open_outbox(client, &box, err);
    while (!st && (n = getline(&line, &room, in)) >= 0) {
        box.n_read++;
        while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r'))
            n--;
        if (n > 0)
            st = add_line(&box, line, (size_t)n, err);
    }
    if (!st && ferror(in))
        st = error_at(err, ST_ENVIRONMENT, name, "cannot be read");
    if (!st)
        st = send_batch(&box, err);
    if (st && st != ST_CANCELLED && st != ST_NO_MEMORY)
        error_prefix(err, st, "%.80s, counted from line %lu", name, (unsigned long)box.first);
    *out = box.counts;
    free(line);
    cJSON_Delete(box.lines);
    return st;
}
