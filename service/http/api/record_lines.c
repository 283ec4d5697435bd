/* Trials that another dataset exported, with what they refer to: teams, sessions and numbers are kept as they are, so
 * only an administrator may send them. All lines go in or none. Trials of a session that is open, here or there, are
 * refused: here the service writes them itself, and there the session will have more. Cost: each line is parsed twice,
 * here for the session that it names and by dataset/import.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/import.h"
#include "service/http/api/api.h"
#include "service/http/api/quotas.h"
#include "service/http/transport/metrics.h"
#include "service/http/transport/server.h"

enum { MOST_LINES = 100000 };

struct lines {
    char *text; /* one after the other, each with its \n; malloc'd */
    size_t n, n_sessions;
    const char **sessions; /* that lines name, in the arena; never twice in a row */
    struct import_counts counts;
    uint64_t reserved; /* of the asker's daily quota */
    bool done;
};

/* ---- reading ---- */

static const char *text_of(const cJSON *json, const char *key) {
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, key));
}

static enum status keep_session(struct request *rq, struct lines *lines, const char *id, struct error *err) {
    if (lines->n_sessions && !strcmp(lines->sessions[lines->n_sessions - 1], id))
        return ST_OK;
    const char *copy = arena_strdup(&rq->arena, id);
    if (!copy)
        return error_no_memory(err);
    lines->sessions[lines->n_sessions++] = copy;
    return ST_OK;
}

/* What is no JSON is refused later, with its line. */
static enum status read_line(struct request *rq, const struct json_at *at, struct lines *lines, struct error *err) {
    const char *text = cJSON_GetStringValue(at->node);
    enum stored_session_state state;
    if (!text || !*text || strpbrk(text, "\r\n"))
        return json_fail(at, err, "must be one line of an export");
    cJSON *json = cJSON_Parse(text);
    const char *schema = text_of(json, "schema"), *word = text_of(json, "state"), *id = text_of(json, "session");
    const bool session = schema && !strcmp(schema, "syncopate.session/1");
    enum status st = ST_OK;
    id = session ? text_of(json, "id") : id;
    if (session && word && stored_session_state_parse(word, &state) && stored_session_is_open(state))
        st = json_fail(at, err, "session %.64s has not ended", id ? id : "");
    else if (id)
        st = keep_session(rq, lines, id, err);
    cJSON_Delete(json);
    return st;
}

static size_t length_of(const struct json_at *list) {
    size_t length = 0;
    for (struct json_at e = json_first(list); e.node; e = json_next(&e))
        length += cJSON_IsString(e.node) ? strlen(e.node->valuestring) + 1 : 0;
    return length;
}

static enum status read_lines(struct request *rq, struct lines *out, struct error *err) {
    static const char *const known[] = {"lines", NULL};
    const struct json_at body = request_body(rq);
    struct json_at list;
    size_t n = 0;
    enum status st = json_expect_object(&body, known, err);
    if (!st)
        st = json_array(&body, "lines", MOST_LINES, &list, &n, err);
    if (!st && !n)
        st = json_fail(&list, err, "needs at least one");
    if (st)
        return st;
    out->sessions = arena_alloc(&rq->arena, n, sizeof *out->sessions);
    out->text = malloc(length_of(&list) + 1);
    if (!out->sessions || !out->text)
        return error_no_memory(err);
    for (struct json_at e = json_first(&list); e.node && !st; e = json_next(&e)) {
        st = read_line(rq, &e, out, err);
        if (!st)
            out->n = (size_t)(stpcpy(stpcpy(out->text + out->n, e.node->valuestring), "\n") - out->text);
    }
    return st;
}

/* ---- adding ---- */

static enum status refuse_open(struct request *rq, struct store *store, const struct lines *lines, struct error *err) {
    for (size_t i = 0; i < lines->n_sessions; i++) {
        struct stored_session here;
        enum status st = store_session_get(store, lines->sessions[i], &rq->arena, &here, err);
        if (!st && stored_session_is_open(here.state))
            return error_set(err, ST_CONFLICT, "session %.64s is open here, and takes its trials from its clients",
                             here.id);
        if (st && st != ST_NOT_FOUND)
            return st;
    }
    return ST_OK;
}

static enum status answer(const struct import_counts *counts, struct response *rs, struct error *err) {
    cJSON *root = cJSON_CreateObject();
    const bool fresh = counts->objects || counts->sessions || counts->trials;
    const bool whole = root && cJSON_AddNumberToObject(root, "objects", (double)counts->objects) &&
                       cJSON_AddNumberToObject(root, "sessions", (double)counts->sessions) &&
                       cJSON_AddNumberToObject(root, "trials", (double)counts->trials) &&
                       cJSON_AddNumberToObject(root, "duplicates", (double)counts->duplicates) &&
                       cJSON_AddNumberToObject(root, "unfinished", (double)counts->unfinished) &&
                       cJSON_AddNumberToObject(root, "skipped", (double)counts->skipped);
    return response_json(rs, fresh ? 201 : 200, root, whole, err);
}

static enum status import_effect(struct request *rq, struct store *store, void *context, struct response *rs,
                                 struct error *err) {
    static const struct import_options keep = {.keep_rows = true, .origin = "records:import"};
    struct lines *lines = context;
    request_settle(rq, lines->reserved, 0); /* of an effect that was undone */
    lines->reserved = 0;
    lines->done = false;
    enum status st = refuse_open(rq, store, lines, err);
    if (st)
        return st;
    FILE *in = fmemopen(lines->text, lines->n, "r");
    if (!in)
        return error_no_memory(err);
    st = import_run(store, in, "", &keep, &lines->counts, err);
    fclose(in);
    const uint64_t added = st ? 0 : lines->counts.trials;
    if (st)
        return err->position ? request_fail_item(rq, "lines", err->position - 1, st, err) : st;
    if (added)
        st = request_reserve(rq, added, added, &lines->reserved, rs, err);
    lines->done = !st;
    return st ? st : answer(&lines->counts, rs, err);
}

enum status api_records_import(struct request *rq, struct response *rs, struct error *err) {
    struct lines lines = {0};
    enum status st = read_lines(rq, &lines, err);
    if (!st)
        st = request_commit(rq, import_effect, &lines, rs, err);
    const uint64_t added = !st && lines.done ? lines.counts.trials : 0;
    request_settle(rq, lines.reserved, added);
    metrics_add_records(server_metrics(rq->server), added);
    free(lines.text);
    return st;
}
