/* Long work: its state and its result. A team sees only its own. */
#include "service/http/api/operations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "service/http/api/api.h"
#include "service/http/api/lists.h"

enum { PAGE_SIZE = 100, PAGE_MAX = 1000, RETRY_S = 1 };

static bool may_see(const struct request *rq, const struct stored_operation *operation) {
    return rq->principal.role == ROLE_ADMIN || (operation->team && !strcmp(operation->team, rq->principal.team));
}

/* Add the result, or the code and detail of the problem for a failure. */
static bool add_outcome(cJSON *to, const struct stored_operation *o) {
    if (!o->result)
        return true;
    return cJSON_AddRawToObject(to, o->state == OPERATION_FAILED ? "error" : "result", o->result) != NULL;
}

static bool add_operation(cJSON *to, const struct stored_operation *o) {
    char href[96];
    snprintf(href, sizeof href, "/api/v1/operations/%s", o->id);
    return cJSON_AddStringToObject(to, "id", o->id) && cJSON_AddStringToObject(to, "href", href) &&
           cJSON_AddStringToObject(to, "kind", o->kind) &&
           cJSON_AddStringToObject(to, "state", operation_state_word(o->state)) &&
           (!o->team || cJSON_AddStringToObject(to, "team", o->team)) &&
           cJSON_AddRawToObject(to, "request", o->request) && add_outcome(to, o) &&
           cJSON_AddStringToObject(to, "created", o->created) &&
           (!o->ended || cJSON_AddStringToObject(to, "ended", o->ended));
}

enum status operation_answer(struct request *rq, struct store *store, const char *id, unsigned status,
                             struct response *rs, struct error *err) {
    struct stored_operation operation;
    enum status st = operation_get(store, id, &rq->arena, &operation, err);
    if (st == ST_NOT_FOUND || (!st && !may_see(rq, &operation)))
        return error_set(err, ST_NOT_FOUND, "there is no operation %.64s", id);
    if (st)
        return st;
    cJSON *root = cJSON_CreateObject();
    bool whole = root && add_operation(root, &operation);
    if (operation.state == OPERATION_RUNNING) {
        char *after = arena_printf(&rq->arena, "%d", RETRY_S);
        whole = whole && after;
        response_header(rs, HEADER_RETRY_AFTER, after ? after : "");
    }
    return response_json(rs, status, root, whole, err);
}

enum status api_operations_get(struct request *rq, struct response *rs, struct error *err) {
    struct store *store;
    enum status st = request_reader(rq, &store, err);
    return st ? st : operation_answer(rq, store, request_parameter(rq, "operation"), 200, rs, err);
}

/* Tokens of this list are ids of operations. */
static bool is_page_token(const char *text) {
    return strlen(text) == 32 && text[strspn(text, "0123456789abcdef")] == '\0';
}

enum status api_operations_list(struct request *rq, struct response *rs, struct error *err) {
    struct stored_operation *list;
    struct list_answer answer;
    struct store *store;
    struct operation_query query = {.team = rq->principal.role == ROLE_ADMIN ? NULL : rq->principal.team,
                                    .before = request_query(rq, "page_token")};
    uint64_t size = PAGE_SIZE;
    size_t n;
    enum status st = request_query_integer(rq, "page_size", 1, PAGE_MAX, &size, err);
    if (!st && query.before && !is_page_token(query.before))
        st = list_fault(ST_INVALID, query.before, err);
    if (!st)
        st = request_reader(rq, &store, err);
    if (!st)
        st = operation_list(store, &query, (size_t)size + 1, &rq->arena, &n, &list, err);
    if (st)
        return st;
    const bool more = n > size;
    n -= more;
    list_begin(&answer);
    for (size_t i = 0; i < n && answer.whole; i++) {
        cJSON *item = list_add(&answer);
        answer.whole = item && add_operation(item, &list[i]);
    }
    const char *note =
        list_note(query.before, false, "", "your team has begun no long work yet; POST /api/v1/rankers begins some");
    return list_end(&answer, more ? list[n - 1].id : "", note, rs, err);
}
