/* A session as files that are taken elsewhere: the best strategy as `syncopate strategy export` writes it, byte for
 * byte; its trials as CSV; or as JSON Lines, where each page brings the model, cluster, strategies, session and
 * calibrations that its trials refer to, so that every page, and all of them in a row, can be read by
 * `syncopate dataset import`. Cost: the strategy as /best, a page O(page). */
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "dataset/export.h"
#include "tuner/http/api.h"
#include "tuner/http/lists.h"
#include "tuner/http/sessions.h"

enum { PAGE_SIZE = 100, PAGE_MAX = 1000 };

enum form { FORM_STRATEGY, FORM_CSV, FORM_JSON_LINES, FORMS };

static const struct {
    const char *word, *media, *suffix;
} forms[FORMS] = {[FORM_STRATEGY] = {"strategy", "application/json", "best.json"},
                  [FORM_CSV] = {"csv", "text/csv; charset=utf-8; header=present", "trials.csv"},
                  [FORM_JSON_LINES] = {"jsonl", "application/jsonl", "trials.jsonl"}};

static enum status read_form(const struct request *rq, enum form *out, struct error *err) {
    const char *word = request_query(rq, "format");
    *out = FORM_STRATEGY;
    for (size_t i = 0; word && i < FORMS; i++)
        if (!strcmp(word, forms[i].word)) {
            *out = (enum form)i;
            return ST_OK;
        }
    return word ? error_set(err, ST_USAGE, "query parameter format: must be strategy, csv or jsonl") : ST_OK;
}

/* Answer with `text`, which is taken, as a file that browsers save. */
static enum status answer_file(struct request *rq, const char *session, enum form form, char *text, size_t n,
                               struct response *rs, struct error *err) {
    const char *name =
        arena_printf(&rq->arena, "attachment; filename=\"syncopate-%s-%s\"", session, forms[form].suffix);
    free(rs->owned);
    rs->owned = text;
    if (!name)
        return error_no_memory(err);
    response_bytes(rs, 200, forms[form].media, text, n);
    response_header(rs, "Content-Disposition", name);
    return ST_OK;
}

/* ---- the strategy ---- */

static enum status write_strategy(struct served *served, const struct tuning *tuning, cJSON *root, struct error *err) {
    cJSON *strategy = strategy_write(&tuning->strategy, hub_model(served), hub_cluster(served));
    if (strategy && cJSON_AddItemToObject(root, "strategy", strategy))
        return ST_OK;
    cJSON_Delete(strategy);
    return error_no_memory(err);
}

static enum status answer_strategy(struct request *rq, const char *session, struct response *rs, struct error *err) {
    cJSON *root;
    enum status st = request_outcome(rq, write_strategy, &root, rs, err);
    if (st || !root)
        return st;
    char *text = json_pretty(cJSON_GetObjectItemCaseSensitive(root, "strategy"));
    const size_t n = text ? strlen(text) : 0;
    char *line = text ? realloc(text, n + 2) : NULL;
    cJSON_Delete(root);
    if (!line) {
        free(text);
        return error_no_memory(err);
    }
    memcpy(line + n, "\n", 2);
    return answer_file(rq, session, FORM_STRATEGY, line, n + 1, rs, err);
}

/* ---- the trials ---- */

/* What the records of the page refer to; they are in the order of their numbers. */
static enum status write_references(struct store *store, const char *session, size_t n, const struct record *records,
                                    FILE *to, struct error *err) {
    char filter[96];
    const struct query query = {.session = session, .filter = filter};
    if (!n)
        return ST_OK;
    snprintf(filter, sizeof filter, "number >= %lu AND number <= %lu", (unsigned long)records[0].number,
             (unsigned long)records[n - 1].number);
    return export_references(store, &query, to, err);
}

static void write_records(enum form form, size_t n, const struct record *records, FILE *to) {
    if (form == FORM_CSV)
        export_csv_header(to);
    for (size_t i = 0; i < n; i++) {
        (form == FORM_CSV ? export_csv : export_json)(&records[i], to);
        if (form == FORM_JSON_LINES)
            putc('\n', to);
    }
}

static enum status answer_page(struct request *rq, struct store *store, const char *session, enum form form, size_t n,
                               const struct record *records, struct response *rs, struct error *err) {
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    if (!to)
        return error_no_memory(err);
    __fsetlocking(to, FSETLOCKING_BYCALLER);
    enum status st = form == FORM_JSON_LINES ? write_references(store, session, n, records, to, err) : ST_OK;
    write_records(form, n, records, to);
    const bool failed = ferror(to);
    if (fclose(to) || failed)
        st = st ? st : error_no_memory(err);
    if (!st)
        return answer_file(rq, session, form, text, length, rs, err);
    free(text);
    return st;
}

static enum status answer_trials(struct request *rq, const char *session, enum form form, struct response *rs,
                                 struct error *err) {
    struct query query = {
        .session = session, .order = QUERY_BY_number, .iterations = true, .after = request_query(rq, "page_token")};
    struct store *store;
    struct record *records;
    uint64_t size = PAGE_SIZE;
    size_t n;
    char *next = arena_alloc(&rq->arena, QUERY_CURSOR_ROOM, 1);
    enum status st = next ? request_query_integer(rq, "page_size", 1, PAGE_MAX, &size, err) : error_no_memory(err);
    query.limit = (size_t)size;
    if (!st)
        st = request_reader(rq, &store, err);
    if (!st)
        st = list_fault(query_page(store, &query, &rq->arena, &n, &records, next, err), query.after, err);
    if (st)
        return st;
    if (*next)
        response_header(rs, "Next-Page-Token", next);
    return answer_page(rq, store, session, form, n, records, rs, err);
}

enum status api_sessions_export(struct request *rq, struct response *rs, struct error *err) {
    struct stored_session stored;
    enum form form;
    bool refused;
    enum status st = read_form(rq, &form, err);
    if (!st)
        st = request_session(rq, false, &stored, rs, &refused, err);
    if (st)
        return st;
    return form == FORM_STRATEGY ? answer_strategy(rq, stored.id, rs, err)
                                 : answer_trials(rq, stored.id, form, rs, err);
}
