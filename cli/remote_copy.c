/* See remote_copy.h. The pages are those that "dataset import" reads. The file goes into a folder of its own, which is
 * removed as soon as the dataset is open for reading. */
#include "cli/remote_copy.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/remote_records.h"
#include "cli/remote_session.h"
#include "dataset/import.h"
#include "trial-runner/scratch.h"

enum { PAGE_SIZE = 1000 };

static enum status import_page(struct store *store, const struct client *client, const struct client_text *page,
                               struct error *err) {
    static const struct import_options keep = {.keep_rows = true};
    struct import_counts counts;
    if (!page->n)
        return ST_OK;
    FILE *in = fmemopen(page->text, page->n, "r");
    if (!in)
        return error_no_memory(err);
    enum status st = import_run(store, in, client_url(client), &keep, &counts, err);
    fclose(in);
    return st;
}

static enum status import_pages(struct store *store, struct client *client, const char *session, struct error *err) {
    char path[256];
    char *escaped = client_escape(client, session);
    struct remote_pages pages = {client, path, "application/jsonl", PAGE_SIZE, ""};
    snprintf(path, sizeof path, "/api/v1/sessions/%.200s/export?format=jsonl", escaped ? escaped : "");
    enum status st = escaped ? ST_OK : error_no_memory(err);
    free(escaped);
    if (st)
        return st;
    do {
        struct client_text page;
        st = remote_pages_next(&pages, &page, err);
        if (st)
            return st;
        st = import_page(store, client, &page, err);
        free(page.text);
    } while (!st && *pages.token);
    return st;
}

static enum status fill(const char *file, struct client *client, const char *session, struct error *err) {
    struct store *store;
    enum status st = store_open(file, STORE_READ_WRITE, &store, err);
    if (st)
        return st;
    st = import_pages(store, client, session, err);
    store_close(store);
    return st;
}

/* Check that the session has come with its trials. */
static enum status check(struct store *store, const struct remote_session *session, struct error *err) {
    struct arena arena = {0};
    struct stored_session stored;
    enum status st = store_session_get(store, session->id, &arena, &stored, err);
    arena_release(&arena);
    return st == ST_NOT_FOUND
               ? error_set(err, st, "session %s is %s, and has no trial yet", session->id, session->state)
               : st;
}

enum status remote_session_copy(struct client *client, const char *session, struct store **out, struct error *err) {
    struct scratch scratch;
    char file[SCRATCH_FILE];
    struct remote_session found;
    enum status st = remote_session_find(client, session, &found, err);
    if (!st)
        st = scratch_init(&scratch, NULL, err);
    if (st)
        return st;
    snprintf(file, sizeof file, "%s/session.db", scratch.folder);
    struct store *store = NULL;
    st = fill(file, client, found.id, err);
    if (!st)
        st = store_open(file, STORE_READ_ONLY, &store, err);
    if (!st)
        st = check(store, &found, err);
    if (!st)
        *out = store;
    else
        store_close(store);
    scratch_release(&scratch);
    return st;
}
