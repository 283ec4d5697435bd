/* Everybody's trials: found by a filter, page by page, and one by its uid. A page costs the same wherever it lies
 * (dataset/query.h), and is written as text straight from the records. A team sees what is its own or shared with it.
 */
#include "service/http/api/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/stream.h"
#include "dataset/bundle.h"
#include "dataset/export.h"
#include "dataset/ingest.h"
#include "service/http/api/api.h"
#include "service/http/api/lists.h"

enum { PAGE_SIZE = 100, PAGE_MAX = 1000 };
static const double QUICK_US = 0.2e6, PATIENCE_US = 10e6;

/* ---- a page ---- */

enum format { FORMAT_JSON, FORMAT_CSV, FORMAT_JSON_LINES, FORMATS };

static const struct {
    const char *word, *media;
} formats[FORMATS] = {
    {"json", "application/json"}, {"csv", "text/csv; charset=utf-8; header=present"}, {"jsonl", "application/jsonl"}};

static enum status read_format(const struct request *rq, enum format *out, struct error *err) {
    const char *word = request_query(rq, "format");
    *out = FORMAT_JSON;
    for (size_t i = 0; word && i < FORMATS; i++)
        if (!strcmp(word, formats[i].word)) {
            *out = (enum format)i;
            return ST_OK;
        }
    return word ? error_set(err, ST_USAGE, "query parameter format: must be json, csv or jsonl") : ST_OK;
}

static enum status read_order(const struct request *rq, struct query *query, struct error *err) {
    const char *word = request_query(rq, "order");
    if (!word)
        return ST_OK;
    query->descending = *word == '-';
    if (!query_order_parse(word + query->descending, &query->order))
        return error_set(err, ST_USAGE,
                         "query parameter order: must be recorded, number, predicted or measured, with - before it "
                         "for the other way round");
    return ST_OK;
}

static enum status read_query(const struct request *rq, struct query *out, struct error *err) {
    uint64_t size = PAGE_SIZE;
    *out = (struct query){
        .filter = request_query(rq, "filter"), .after = request_query(rq, "page_token"), .viewer = request_viewer(rq)};
    enum status st = read_order(rq, out, err);
    if (!st)
        st = request_query_integer(rq, "page_size", 1, PAGE_MAX, &size, err);
    if (!st)
        st = request_query_bool(rq, "iterations", &out->iterations, err);
    out->limit = (size_t)size;
    return st;
}

enum { MOST_ENVIRONMENT = 64 << 10 };

enum status record_environment(struct request *rq, const struct json_at *at, const char *key, const char **out,
                               struct error *err) {
    struct json_at environment;
    *out = NULL;
    if (!json_has(at, key, &environment))
        return ST_OK;
    if (!cJSON_IsObject(environment.node))
        return json_fail(&environment, err, "must be an object");
    char *text = json_canonical(environment.node);
    const bool too_long = text && strlen(text) > MOST_ENVIRONMENT;
    *out = text && !too_long ? arena_strdup(&rq->arena, text) : NULL;
    free(text);
    return too_long ? json_fail(&environment, err, "must be no longer than 64 KiB")
           : *out   ? ST_OK
                    : error_no_memory(err);
}

struct page {
    enum format format;
    size_t n;
    const struct record *records;
    const char *next, *note; /* note: said where there are no records */
    struct store *referring; /* whose objects and sessions come before the records that need them; NULL: without */
};

static enum status write_page(const struct page *page, FILE *to, struct error *err) {
    struct line_set seen = {0};
    const enum status st =
        page->referring ? bundle_references(page->referring, page->n, page->records, &seen, to, err) : ST_OK;
    line_set_release(&seen);
    if (page->format == FORMAT_CSV)
        export_csv_header(to);
    if (page->format == FORMAT_JSON)
        fputs("{\"items\":[", to);
    for (size_t i = 0; i < page->n && !st; i++) {
        if (page->format == FORMAT_JSON && i)
            putc(',', to);
        (page->format == FORMAT_CSV ? export_csv : export_json)(&page->records[i], to);
        if (page->format == FORMAT_JSON_LINES)
            putc('\n', to);
    }
    if (page->format == FORMAT_JSON)
        fprintf(to, "],\"next_page_token\":\"%s\"", page->next);
    if (page->format == FORMAT_JSON && !page->n)
        fprintf(to, ",\"note\":\"%s\"", page->note);
    if (page->format == FORMAT_JSON)
        putc('}', to);
    return st;
}

/* Answer with what write_page writes. */
static enum status answer(const struct page *page, struct response *rs, struct error *err) {
    char *text;
    size_t length;
    FILE *to = stream_open(&text, &length);
    enum status st = to ? write_page(page, to, err) : ST_OK;
    st = stream_close(to, st, &text, err);
    if (st)
        return st;
    rs->owned = text;
    response_bytes(rs, 200, formats[page->format].media, text, length);
    return ST_OK;
}

/* Read whether references are wanted. Only JSON Lines can hold them. */
static enum status read_references(const struct request *rq, enum format format, bool *out, struct error *err) {
    *out = false;
    enum status st = request_query_bool(rq, "references", out, err);
    if (!st && *out && format != FORMAT_JSON_LINES)
        return error_set(err, ST_USAGE, "query parameter references: only with format=jsonl");
    return st;
}

enum status records_page(struct request *rq, struct store *store, struct query *query, size_t *n, struct record **out,
                         char next[QUERY_CURSOR_ROOM], bool *again, struct error *err) {
    query->patience_us = rq->heavy ? PATIENCE_US : QUICK_US;
    const enum status st = query_page(store, query, &rq->arena, n, out, next, err);
    *again = rq->wants_heavy = st == ST_TIMEOUT && !rq->heavy;
    return *again ? ST_OK : st;
}

static const char *empty_note(const struct query *query) {
    return list_note(query->after, query->filter && *query->filter,
                     "no trial that you may see fits the filter; ask without filter for all there are",
                     "there are no trials yet that you may see; they come from sessions (POST /api/v1/sessions), and "
                     "from POST /api/v1/records:batchCreate");
}

enum status api_records_list(struct request *rq, struct response *rs, struct error *err) {
    struct query query;
    enum format format;
    struct store *store;
    struct record *records;
    size_t n;
    bool references, again = false;
    char *next = arena_alloc(&rq->arena, QUERY_CURSOR_ROOM, 1);
    enum status st = next ? read_format(rq, &format, err) : error_no_memory(err);
    if (!st)
        st = read_references(rq, format, &references, err);
    if (!st)
        st = read_query(rq, &query, err);
    if (!st)
        st = request_reader(rq, &store, err);
    if (!st)
        st = records_page(rq, store, &query, &n, &records, next, &again, err);
    st = list_fault(st, query.after, err);
    if (st == ST_TIMEOUT)
        return problem_fail(err, PROBLEM_TIMEOUT, RECORDS_NO_INDEX);
    if (st || again)
        return st;
    if (format != FORMAT_JSON && *next)
        response_header(rs, HEADER_NEXT_PAGE_TOKEN, next);
    const char *note = empty_note(&query);
    if (format != FORMAT_JSON && !n)
        response_header(rs, HEADER_NOTE, note);
    const struct page page = {format, n, records, next, note, references ? store : NULL};
    return answer(&page, rs, err);
}

/* ---- one ---- */

enum status record_find(struct request *rq, struct store *store, const char *uid, const char *viewer,
                        struct record **out, struct error *err) {
    size_t n = 0;
    const struct query query = {.uid = uid, .viewer = viewer, .iterations = true};
    enum status st = query_collect(store, &query, &rq->arena, &n, out, err);
    return st || n ? st : error_set(err, ST_NOT_FOUND, "there is no trial %.80s", uid);
}

enum status api_records_get(struct request *rq, struct response *rs, struct error *err) {
    struct store *store;
    struct record *record;
    enum status st = request_reader(rq, &store, err);
    if (!st)
        st = record_find(rq, store, request_parameter(rq, "uid"), request_viewer(rq), &record, err);
    return st ? st : record_answer_tagged(rq, record, rs, err);
}
