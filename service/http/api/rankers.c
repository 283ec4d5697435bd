/* Learned rankers: to read, and to train. Training takes minutes, so it is an operation: the answer is 202, and its
 * Location is to be polled. A team trains on the trials that it may see. The ranker is the team's own; sessions of
 * other teams use it only where it is shared with them. */
#include "tuner/learn/rankers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "dataset/filter.h"
#include "service/http/api/api.h"
#include "service/http/api/operations.h"
#include "service/http/api/sessions.h"
#include "service/operation_queue.h"
#include "service/training.h"

enum { MOST_DOMAINS = 16 }; /* three comparisons each: within what a filter may have */

/* ---- looking ---- */

enum status api_rankers_get(struct request *rq, struct response *rs, struct error *err) {
    const char *word = request_parameter(rq, "id");
    const struct viewer asker = request_asker(rq);
    struct store *store;
    struct stored_ranker ranker;
    enum status st = request_reader(rq, &store, err);
    if (!st)
        st = rankers_look(store, &asker, word, &ranker, err);
    if (st == ST_NOT_FOUND)
        return error_set(err, ST_NOT_FOUND, "there is no ranker %.80s", word);
    if (st)
        return st;
    rs->etag = arena_strdup(&rq->arena, ranker.id.hex);
    rs->cache_control = "private, no-cache"; /* a newer version may say more of it */
    cJSON *root = ranker_describe(&ranker);
    bool whole = rs->etag && root && cJSON_AddStringToObject(root, "created", ranker.created);
    stored_ranker_release(&ranker);
    return response_json(rs, 200, root, whole, err);
}

/* ---- training ---- */

/* " = " and the text in quotes, as a filter has it. NULL: no memory. */
static char *quoted(struct arena *arena, const char *text) {
    char *out = arena_alloc(arena, 2 * strlen(text) + 3, 1), *to = out;
    if (!out)
        return NULL;
    *to++ = '"';
    for (; *text; *to++ = *text++)
        if (*text == '"' || *text == '\\')
            *to++ = '\\';
    *to = '"';
    return out;
}

/* (model = "..." AND cluster = "..." AND runner = "...") */
static enum status domain_filter(struct request *rq, const struct json_at *at, const char **filter, struct error *err) {
    static const char *const known[] = {"model", "cluster", "runner", NULL};
    const char *text = "";
    enum status st = json_expect_object(at, known, err);
    for (size_t i = 0; known[i] && !st; i++) {
        const char *word = NULL;
        st = json_get_string(at, known[i], JSON_OPTIONAL, &word, err);
        if (st || !word)
            continue;
        const char *value = quoted(&rq->arena, word);
        text = value ? arena_printf(&rq->arena, "%s%s%s = %s", text, *text ? " AND " : "", known[i], value) : NULL;
        if (!text)
            return error_no_memory(err);
    }
    if (!st && !*text)
        return json_fail(at, err, "needs model, cluster or runner");
    if (!st)
        *filter = arena_printf(&rq->arena, "%s%s(%s)", *filter, **filter ? " OR " : "", text);
    return st || *filter ? st : error_no_memory(err);
}

static enum status read_domains(struct request *rq, const struct json_at *body, const char **filter,
                                struct error *err) {
    struct json_at list;
    size_t n;
    enum status st = json_array(body, "domains", MOST_DOMAINS, &list, &n, err);
    if (!st && !n)
        st = json_fail(&list, err, "needs at least one; leave it out to mean all trials");
    *filter = "";
    if (!st)
        for (struct json_at e = json_first(&list); e.node && !st; e = json_next(&e))
            st = domain_filter(rq, &e, filter, err);
    return st;
}

/* Read the member "domains" or the member "filter"; both may be absent. */
static enum status read_trials(struct request *rq, const struct json_at *body, struct query *query, struct error *err) {
    struct json_at at;
    const bool domains = json_has(body, "domains", &at), filter = json_has(body, "filter", &at);
    struct error why = {0};
    if (domains && filter)
        return json_fail(body, err, "needs domains or filter, not both");
    enum status st = domains  ? read_domains(rq, body, &query->filter, err)
                     : filter ? json_string_at(&at, &query->filter, err)
                              : ST_OK;
    if (!st && query->filter && filter_check(query->filter, &why))
        st = json_fail(domains ? body : &at, err, "%s", ERROR_TEXT(&why));
    query->viewer = request_viewer(rq);
    return st;
}

static enum status read_new(struct request *rq, struct training_request *out, struct error *err) {
    static const char *const known[] = {"kind",     "residual", "domains", "filter", "from",
                                        "held_out", "name",     "seed",    "shared", NULL};
    const struct json_at body = request_body(rq);
    const char *kind = NULL;
    struct json_at unused;
    *out = (struct training_request){.kind = RANKER_trees, .residual = true, .seed = 1, .shared = ""};
    enum status st = json_expect_object(&body, known, err);
    if (!st)
        st = json_get_string(&body, "kind", JSON_OPTIONAL, &kind, err);
    if (!st && kind && !ranker_kind_parse(kind, &out->kind))
        st = json_fail(&body, err, "kind must be trees, linear, rnn or gat");
    if (!st)
        st = json_get_bool(&body, "residual", JSON_OPTIONAL, &out->residual, err);
    if (!st)
        st = json_get_string(&body, "from", JSON_OPTIONAL, &out->from, err);
    if (!st && out->from && (kind || json_has(&body, "residual", &unused)))
        st = json_fail(&body, err,
                       "\"from\" goes on with a ranker, which keeps its kind and form: leave out kind and residual");
    if (!st)
        st = json_get_number(&body, "held_out", JSON_OPTIONAL, 0, 0.99, &out->held_out, err);
    if (!st)
        st = json_get_string(&body, "name", JSON_OPTIONAL, &out->name, err);
    if (!st)
        st = json_get_integer(&body, "seed", JSON_OPTIONAL, 0, 1ull << 53, &out->seed, err);
    out->team = rq->principal.team;
    out->sees_all = rq->principal.role == ROLE_ADMIN;
    if (!st && json_has(&body, "shared", &unused))
        st = request_shared(rq, &body, &out->shared, err);
    return st ? st : read_trials(rq, &body, &out->query, err);
}

static enum status begin_effect(struct request *rq, struct store *store, void *context, struct response *rs,
                                struct error *err) {
    struct operation_work *work = context;
    char *request = json_canonical(rq->json);
    enum status st = request ? operation_begin(store, "train-ranker", rq->principal.team, request, work->id, err)
                             : error_no_memory(err);
    free(request);
    if (!st)
        st = operation_answer(rq, store, work->id, 202, rs, err);
    char *location = st ? NULL : arena_printf(&rq->arena, "/api/v1/operations/%s", work->id);
    if (!st && !location)
        return error_no_memory(err);
    if (!st)
        response_header(rs, HEADER_LOCATION, location);
    return st;
}

enum status api_rankers_create(struct request *rq, struct response *rs, struct error *err) {
    struct training_request wanted;
    struct operation_queue *operations = rq->service->operations;
    struct operation_work *work;
    enum status st = read_new(rq, &wanted, err);
    if (!st && !operation_queue_have_room(operations, rq->principal.team)) {
        response_header(rs, HEADER_RETRY_AFTER, "60");
        return problem_fail(err, PROBLEM_OVERLOADED, "too many operations of your team, or of all, wait already");
    }
    if (!st)
        st = training_new(&wanted, &work, err);
    if (st)
        return st;
    snprintf(work->team, sizeof work->team, "%s", rq->principal.team);
    st = request_commit(rq, begin_effect, work, rs, err);
    if (st || !*work->id) /* it failed, or the answer to an earlier request was repeated */
        work->release(work);
    else
        operation_queue_submit(operations, work);
    return st;
}
