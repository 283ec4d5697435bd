/* Models, clusters and strategies: put, get, list. The id of an object is the hash of its content. So an object
 * that is put twice is stored once, its id is its entity tag, and clients may cache it for ever. A client that may not
 * see an object gets 404 for it, and may put it as if it were new. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "dataset/pages.h"
#include "dataset/store.h"
#include "service/http/api/api.h"
#include "service/http/api/lists.h"
#include "service/http/api/references.h"
#include "simulator/tuned.h"
#include "strategy/baselines/baselines.h"

enum { PAGE_SIZE = 100, PAGE_MAX = 1000 };

static const char *const folders[] = {[STORE_MODEL] = "models",
                                      [STORE_CLUSTER] = "clusters",
                                      [STORE_STRATEGY] = "strategies",
                                      [STORE_RANKER] = "rankers"};
static const char *const words[] = {
    [STORE_MODEL] = "model", [STORE_CLUSTER] = "cluster", [STORE_STRATEGY] = "strategy", [STORE_RANKER] = "ranker"};

static bool add_object(cJSON *to, enum store_kind kind, const struct stored_object *object) {
    char href[128];
    snprintf(href, sizeof href, "/api/v1/%s/%s", folders[kind], object->id.hex);
    return cJSON_AddStringToObject(to, "id", object->id.hex) && cJSON_AddStringToObject(to, "name", object->name) &&
           cJSON_AddStringToObject(to, "created", object->created) && cJSON_AddStringToObject(to, "href", href);
}

/* Lists. */

static const char *empty_note(const struct request *rq, enum store_kind kind) {
    static const char *const none_yet[] = {
        [STORE_MODEL] = "there are no models yet; put one: POST /api/v1/models",
        [STORE_CLUSTER] = "there are no clusters yet; put one: POST /api/v1/clusters",
        [STORE_STRATEGY] = "there are no strategies yet that you may see; they come from sessions (POST "
                           "/api/v1/sessions), and from POST /api/v1/strategies",
        [STORE_RANKER] = "there are no rankers yet that you may see; train one: POST /api/v1/rankers"};
    return list_note(request_query(rq, "page_token"), request_query(rq, "name") != NULL,
                     "nothing that you may see has this name; ask without name for all there is", none_yet[kind]);
}

static enum status list_options(struct request *rq, struct object_list *list, uint64_t *size, struct error *err) {
    const char *order = request_query(rq, "order");
    list->name = request_query(rq, "name");
    if (order && strcmp(order, "created") && strcmp(order, "-created"))
        return error_set(err, ST_USAGE, "query parameter order: must be created or -created");
    list->descending = order && *order == '-';
    return request_query_integer(rq, "page_size", 1, PAGE_MAX, size, err);
}

static enum status list_objects(struct request *rq, enum store_kind kind, struct response *rs, struct error *err) {
    struct object_list list = {.kind = kind};
    struct stored_object *objects;
    struct list_answer answer;
    struct store *store;
    char next[PAGE_CURSOR_ROOM];
    uint64_t size = PAGE_SIZE;
    size_t n;
    const struct viewer asker = request_asker(rq);
    list.asker = &asker;
    enum status st = list_options(rq, &list, &size, err);
    if (!st)
        st = request_reader(rq, &store, err);
    if (st)
        return st;
    st = page_objects(store, &list, request_query(rq, "page_token"), (size_t)size, &rq->arena, &n, &objects, next, err);
    if (st)
        return list_fault(st, request_query(rq, "page_token"), err);
    list_begin(&answer);
    for (size_t i = 0; i < n && answer.whole; i++) {
        cJSON *item = list_add(&answer);
        answer.whole = item && add_object(item, kind, &objects[i]);
    }
    return list_end(&answer, next, empty_note(rq, kind), rs, err);
}

/* One. */

/* A strategy's text leaves out its name, which stands beside it: put it back as the first member. */
static const char *with_name(struct arena *arena, const struct stored_object *object) {
    cJSON *name = cJSON_CreateString(object->name);
    char *text = name ? json_line(name) : NULL;
    const size_t n = strlen(object->content) - 1;
    char *whole = text ? arena_alloc(arena, strlen(text) + n + sizeof "{\"name\":,", 1) : NULL;
    if (whole)
        memcpy(stpcpy(stpcpy(stpcpy(whole, "{\"name\":"), text), ","), object->content + 1, n);
    free(text);
    cJSON_Delete(name);
    return whole;
}

/* Read the object's text; for a client that has the text already, only whether the object is there. */
static enum status read_object(struct request *rq, struct store *store, enum store_kind kind, const struct id *id,
                               const char **text, struct error *err) {
    const struct viewer asker = request_asker(rq);
    struct stored_object object;
    *text = "";
    if (request_has_etag(rq, id->hex))
        return seen_has(store, kind, id->hex, &asker, err);
    enum status st = seen_get(store, kind, id->hex, &asker, &rq->arena, &object, err);
    if (st)
        return st;
    *text = kind == STORE_STRATEGY ? with_name(&rq->arena, &object) : object.content;
    return *text ? ST_OK : error_no_memory(err);
}

static enum status get_object(struct request *rq, enum store_kind kind, struct response *rs, struct error *err) {
    const char *word = request_parameter(rq, "id"), *text;
    struct id id;
    struct store *store;
    enum status st = request_reader(rq, &store, err);
    if (!st && reference_is_id(word))
        memcpy(id.hex, word, sizeof id.hex); /* whether it is there is seen when it is read */
    else if (!st)
        st = reference_id(rq, kind, word, &id, err);
    if (st)
        return st;
    st = read_object(rq, store, kind, &id, &text, err);
    if (st == ST_NOT_FOUND)
        return error_set(err, ST_NOT_FOUND, "there is no %s %.80s", words[kind], word);
    if (st)
        return st;
    if (!(rs->etag = arena_strdup(&rq->arena, id.hex)))
        return error_no_memory(err);
    /* A name or prefix may come to mean another one; a whole id never does. */
    rs->cache_control = strcmp(word, id.hex) ? "private, no-cache" : "private, max-age=31536000, immutable";
    response_bytes(rs, 200, "application/json", text, strlen(text));
    return ST_OK;
}

/* Putting. */

struct put {
    enum store_kind kind;
    const struct id *id;
    const char *name;
    char *content; /* canonical, malloc'd */
};

static enum status put_effect(struct request *rq, struct store *store, void *context, struct response *rs,
                              struct error *err) {
    const struct put *put = context;
    const struct viewer asker = request_asker(rq);
    struct stored_object object;
    enum status st = seen_has(store, put->kind, put->id->hex, &asker, err);
    const bool fresh = st == ST_NOT_FOUND;
    if (fresh || !st)
        st = holding_make(store, put->kind, put->id, put->content, rq->principal.team, put->name, NULL, err);
    if (!st)
        st = seen_get(store, put->kind, put->id->hex, &asker, &rq->arena, &object, err);
    if (st)
        return st;
    char *location = arena_printf(&rq->arena, "/api/v1/%s/%s", folders[put->kind], put->id->hex);
    if (!location)
        return error_no_memory(err);
    response_header(rs, HEADER_LOCATION, location);
    cJSON *root = cJSON_CreateObject();
    bool whole = root && add_object(root, put->kind, &object);
    return response_json(rs, fresh ? 201 : 200, root, whole, err);
}

/* Takes `json`, which may be NULL. */
static char *canonical(cJSON *json) {
    char *text = json ? json_canonical(json) : NULL;
    cJSON_Delete(json);
    return text;
}

static enum status commit_put(struct request *rq, struct put *put, struct response *rs, struct error *err) {
    return put->content ? request_commit(rq, put_effect, put, rs, err) : error_no_memory(err);
}

enum status api_models_create(struct request *rq, struct response *rs, struct error *err) {
    struct model model;
    enum status st = model_read(rq->json, PROBLEM_BODY, &model, err);
    if (st)
        return st;
    struct put put = {STORE_MODEL, &model.id, model.name, canonical(model_write(&model))};
    st = commit_put(rq, &put, rs, err);
    free(put.content);
    model_release(&model);
    return st;
}

enum status api_clusters_create(struct request *rq, struct response *rs, struct error *err) {
    struct cluster cluster;
    enum status st = cluster_read(rq->json, PROBLEM_BODY, &cluster, err);
    if (st)
        return st;
    struct put put = {STORE_CLUSTER, &cluster.id, cluster.name, canonical(cluster_write(&cluster))};
    st = commit_put(rq, &put, rs, err);
    free(put.content);
    cluster_release(&cluster);
    return st;
}

/* Read the strategy from exactly one of the members "strategy" and "baseline". */
static enum status read_new(struct request *rq, const struct json_at *body, const struct prepared_domain *domain,
                            struct strategy *out, struct error *err) {
    struct json_at at;
    const char *name = NULL;
    const bool given = json_has(body, "strategy", &at);
    enum status st = json_get_string(body, "baseline", JSON_OPTIONAL, &name, err);
    if (st)
        return st;
    if (given == (name != NULL))
        return json_fail(body, err, "needs either strategy or baseline");
    if (given)
        return reference_strategy(rq, domain, &at, out, err);
    const struct baseline *baseline = baselines_find(name);
    if (!baseline)
        return json_fail(body, err, "there is no baseline \"%.64s\"", name);
    return tuned_build(baseline, domain->model, domain->cluster, out, err);
}

static enum status put_strategy(struct request *rq, const struct json_at *body, const struct prepared_domain *domain,
                                struct response *rs, struct error *err) {
    struct strategy strategy;
    enum status st = read_new(rq, body, domain, &strategy, err);
    if (st)
        return st;
    struct put put = {STORE_STRATEGY, &strategy.id, strategy.name,
                      strategy_canonical(&strategy, domain->model, domain->cluster)};
    st = commit_put(rq, &put, rs, err);
    free(put.content);
    strategy_release(&strategy);
    return st;
}

enum status api_strategies_create(struct request *rq, struct response *rs, struct error *err) {
    static const char *const known[] = {"model", "cluster", "strategy", "baseline", NULL};
    const struct json_at body = request_body(rq);
    struct prepared_domain *domain;
    enum status st = json_expect_object(&body, known, err);
    if (!st)
        st = reference_domain(rq, &body, &domain, err);
    if (st)
        return st;
    st = put_strategy(rq, &body, domain, rs, err);
    prepared_domain_drop(domain);
    return st;
}

enum status api_models_list(struct request *rq, struct response *rs, struct error *err) {
    return list_objects(rq, STORE_MODEL, rs, err);
}

enum status api_clusters_list(struct request *rq, struct response *rs, struct error *err) {
    return list_objects(rq, STORE_CLUSTER, rs, err);
}

enum status api_strategies_list(struct request *rq, struct response *rs, struct error *err) {
    return list_objects(rq, STORE_STRATEGY, rs, err);
}

enum status api_rankers_list(struct request *rq, struct response *rs, struct error *err) {
    return list_objects(rq, STORE_RANKER, rs, err);
}

enum status api_models_get(struct request *rq, struct response *rs, struct error *err) {
    return get_object(rq, STORE_MODEL, rs, err);
}

enum status api_clusters_get(struct request *rq, struct response *rs, struct error *err) {
    return get_object(rq, STORE_CLUSTER, rs, err);
}

enum status api_strategies_get(struct request *rq, struct response *rs, struct error *err) {
    return get_object(rq, STORE_STRATEGY, rs, err);
}
