/* Fetches a service's trials: pages of JSON Lines, each with what its trials refer to, are imported one after the other
 * into a dataset of their own. A file beside it has the place where the next page begins. Pages repeat what they refer
 * to, and an interrupted fetch repeats a page, which costs time and changes nothing. See remote_merge.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/id.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/remote.h"
#include "cli/remote_merge.h"
#include "cli/remote_records.h"
#include "dataset/store.h"

enum { PAGE_SIZE = 1000 };
static const char records[] = "/api/v1/records?format=jsonl&references=true&iterations=true"
                              "&filter=state%20!=%20waiting%20AND%20state%20!=%20running";

struct fetch {
    struct remote_pages pages;
    char *stage, *place; /* the dataset that is filled, and the file that says how far; malloc'd */
    struct store *store;
    uint64_t fetched; /* trials, by this call */
};

/* ---- where it stopped ---- */

static void read_place(struct fetch *f) {
    cJSON *json = NULL;
    if (!access(f->stage, R_OK) && !access(f->place, R_OK) && !json_read_file(f->place, &json, NULL))
        snprintf(f->pages.token, sizeof f->pages.token, "%s", remote_text(json, "page_token"));
    cJSON_Delete(json);
}

static enum status write_place(const struct fetch *f, struct error *err) {
    cJSON *json = cJSON_CreateObject();
    const bool whole = json && cJSON_AddStringToObject(json, "page_token", f->pages.token);
    char *text = whole ? json_line(json) : NULL;
    enum status st = text ? json_write_file(f->place, text, err) : error_no_memory(err);
    free(text);
    cJSON_Delete(json);
    return st;
}

static void forget(const struct fetch *f) {
    char *log = NULL, *index = NULL;
    unlink(f->place); /* first: without the pages before it, it would be wrong */
    if (asprintf(&log, "%s-wal", f->stage) >= 0)
        unlink(log);
    if (asprintf(&index, "%s-shm", f->stage) >= 0)
        unlink(index);
    unlink(f->stage);
    free(log);
    free(index);
}

/* ---- pages ---- */

/* Begins with the first page again when the service no longer knows the place at which an earlier call stopped. */
static enum status get_page(struct fetch *f, struct client_text *out, struct error *err) {
    enum status st = remote_pages_next(&f->pages, out, err);
    if (st != ST_USAGE || !*f->pages.token || f->fetched)
        return st;
    f->pages.token[0] = '\0';
    return remote_pages_next(&f->pages, out, err);
}

static enum status keep_page(struct fetch *f, const struct client_text *page, struct error *err) {
    char origin[300];
    snprintf(origin, sizeof origin, "merge of %.200s", client_url(f->pages.client));
    const struct import_options keep = {.keep_rows = true, .origin = origin};
    struct import_counts counts = {0};
    if (!page->n)
        return ST_OK;
    FILE *in = fmemopen(page->text, page->n, "r");
    enum status st =
        in ? import_run(f->store, in, client_url(f->pages.client), &keep, &counts, err) : error_no_memory(err);
    if (in)
        fclose(in);
    f->fetched += counts.trials;
    return st;
}

static enum status fetch_pages(struct fetch *f, struct error *err) {
    enum status st = ST_OK;
    do {
        struct client_text page;
        st = get_page(f, &page, err);
        if (st)
            break;
        st = keep_page(f, &page, err);
        free(page.text);
        if (!st && *f->pages.token)
            st = write_place(f, err);
    } while (!st && *f->pages.token);
    return st;
}

static enum status fetch_all(struct fetch *f, struct error *err) {
    read_place(f);
    enum status st = store_open(f->stage, STORE_READ_WRITE, &f->store, err);
    if (st)
        return st;
    if (*f->pages.token)
        log_info("going on where an earlier merge of %s stopped", client_url(f->pages.client));
    st = fetch_pages(f, err);
    store_close(f->store);
    if (!st)
        return ST_OK;
    if (*f->pages.token && (st == ST_UNREACHABLE || st == ST_CANCELLED))
        log_info("what was fetched so far is kept in %s; the same command goes on from there", f->stage);
    else
        forget(f);
    return st;
}

/* ---- into the dataset ---- */

/* Merge what was fetched. The fetched file stays where the dataset cannot be opened because another process has it. */
static enum status merge_stage(const struct fetch *f, const char *path, merge_visit *visit, void *context,
                               struct merge_report *out, struct error *err) {
    struct store *store;
    uint64_t n;
    enum status st = store_open(path, STORE_READ_WRITE, &store, err);
    if (st) {
        log_info("what was fetched is kept in %s; the same command goes on from there", f->stage);
        return st;
    }
    st = merge_run(store, f->stage, out, err);
    if (st == ST_CONFLICT && visit)
        (void)merge_conflicts(store, f->stage, visit, context, &n, NULL);
    store_close(store);
    forget(f);
    return st;
}

/* Two services are not one, nor are two datasets. */
static enum status name_stage(struct fetch *f, const char *path, struct error *err) {
    struct id id;
    const char *url = client_url(f->pages.client);
    enum status st = id_of(url, strlen(url), &id, err);
    if (st)
        return st;
    char ending[24], stage[4096];
    snprintf(ending, sizeof ending, "from-%.8s", id.hex);
    st = store_beside(path, ending, stage, sizeof stage, err);
    if (st)
        return st;
    f->stage = strdup(stage);
    if (!f->stage)
        return error_no_memory(err);
    if (asprintf(&f->place, "%s.page", f->stage) < 0) {
        f->place = NULL;
        return error_no_memory(err);
    }
    return ST_OK;
}

enum status remote_pull(struct client *client, const char *path, merge_visit *visit, void *context,
                        struct merge_report *out, struct error *err) {
    struct fetch f = {.pages = {client, records, "application/jsonl", PAGE_SIZE, ""}};
    enum status st = name_stage(&f, path, err);
    if (!st)
        st = fetch_all(&f, err);
    if (!st)
        st = merge_stage(&f, path, visit, context, out, err);
    free(f.stage);
    free(f.place);
    return st;
}
