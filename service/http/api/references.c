/* See references.h. */
#include "service/http/api/references.h"

#include <string.h>

#include "dataset/describe.h"

static const char *const words[] = {
    [STORE_MODEL] = "model", [STORE_CLUSTER] = "cluster", [STORE_STRATEGY] = "strategy", [STORE_RANKER] = "ranker"};

bool reference_is_id(const char *word) {
    return strlen(word) == ID_LENGTH && strspn(word, "0123456789abcdef") == ID_LENGTH;
}

static enum status find(struct store *store, enum store_kind kind, const char *word, const struct viewer *asker,
                        struct id *out, int64_t *row, struct error *err) {
    *row = 0;
    if (!reference_is_id(word))
        return seen_find(store, kind, word, asker, out, err);
    enum status st = seen_row(store, kind, word, asker, row, err);
    if (!st)
        memcpy(out->hex, word, ID_LENGTH + 1);
    return st;
}

static enum status explain(enum status st, enum store_kind kind, const char *word, struct error *err) {
    if (st == ST_NOT_FOUND)
        return error_set(err, ST_NOT_FOUND, "there is no %s called or numbered \"%.80s\"", words[kind], word);
    if (st == ST_USAGE)
        return error_set(err, ST_USAGE, "several ids begin with \"%.80s\"; give more digits", word);
    return st;
}

enum status reference_row(struct request *rq, enum store_kind kind, const char *word, struct id *out, int64_t *row,
                          struct error *err) {
    struct store *store;
    const struct viewer asker = request_asker(rq);
    enum status st = request_reader(rq, &store, err);
    return st ? st : explain(find(store, kind, word, &asker, out, row, err), kind, word, err);
}

enum status reference_name(struct request *rq, enum store_kind kind, const char *word, struct id *out,
                           const char **name, struct error *err) {
    struct store *store;
    const struct viewer asker = request_asker(rq);
    enum status st = request_reader(rq, &store, err);
    if (st)
        return st;
    if (reference_is_id(word))
        memcpy(out->hex, word, sizeof out->hex);
    else
        st = seen_find(store, kind, word, &asker, out, err);
    if (!st)
        st = seen_name(store, kind, out->hex, &asker, &rq->arena, name, err);
    return explain(st, kind, word, err);
}

enum status reference_id(struct request *rq, enum store_kind kind, const char *word, struct id *out,
                         struct error *err) {
    int64_t row;
    return reference_row(rq, kind, word, out, &row, err);
}

/* Find the id that a member names, which is a string. */
static enum status member_id(struct request *rq, enum store_kind kind, const struct json_at *at, struct id *out,
                             struct error *err) {
    const char *word;
    enum status st = json_string_at(at, &word, err);
    return st ? st : reference_id(rq, kind, word, out, err);
}

/* What was read is a member of the body, and an error says where in that member. */
static enum status read_inside(const char *member, enum status st, struct error *err) {
    return st == ST_INVALID ? error_inside(err, st, "%s", member) : st;
}

static enum status read_model(struct request *rq, const struct json_at *at, struct model *out, struct error *err) {
    struct id id;
    struct store *store;
    if (cJSON_IsObject(at->node))
        return read_inside("/model", model_read(at->node, PROBLEM_BODY, out, err), err);
    enum status st = member_id(rq, STORE_MODEL, at, &id, err);
    if (!st)
        st = request_reader(rq, &store, err);
    return st ? st : store_get_model(store, id.hex, out, err);
}

static enum status read_cluster(struct request *rq, const struct json_at *at, struct cluster *out, struct error *err) {
    struct id id;
    struct store *store;
    if (cJSON_IsObject(at->node))
        return read_inside("/cluster", cluster_read(at->node, PROBLEM_BODY, out, err), err);
    enum status st = member_id(rq, STORE_CLUSTER, at, &id, err);
    if (!st)
        st = request_reader(rq, &store, err);
    return st ? st : store_get_cluster(store, id.hex, out, err);
}

static enum status stored_domain(struct request *rq, const struct json_at *model, const struct json_at *cluster,
                                 struct prepared_domain **out, struct error *err) {
    struct id m, c;
    struct store *store;
    enum status st = member_id(rq, STORE_MODEL, model, &m, err);
    if (!st)
        st = member_id(rq, STORE_CLUSTER, cluster, &c, err);
    if (!st)
        st = request_reader(rq, &store, err);
    if (st)
        return st;
    st = prepared_domains_take(rq->service->domains, store, m.hex, c.hex, out, err);
    return st == ST_NOT_FOUND ? error_set(err, st, "there is no such model or cluster: %.12s, %.12s", m.hex, c.hex)
                              : st;
}

enum status reference_domain(struct request *rq, const struct json_at *at, struct prepared_domain **out,
                             struct error *err) {
    struct json_at model, cluster;
    struct model m;
    struct cluster c;
    enum status st = json_member(at, "model", &model, err);
    if (!st)
        st = json_member(at, "cluster", &cluster, err);
    if (st)
        return st;
    if (cJSON_IsString(model.node) && cJSON_IsString(cluster.node))
        return stored_domain(rq, &model, &cluster, out, err);
    st = read_model(rq, &model, &m, err);
    if (st)
        return st;
    st = read_cluster(rq, &cluster, &c, err);
    if (st) {
        model_release(&m);
        return st;
    }
    return prepared_domain_new(&m, &c, out, err);
}

enum status reference_what_if(const struct what_if *w, struct prepared_domain **domain, struct error *err) {
    struct prepared_domain *was = *domain;
    struct sweep_point point;
    if (!what_if_changes(w, was->model, was->cluster))
        return ST_OK;
    enum status st = what_if_apply(w, was->model, was->cluster, &point, err);
    if (!st)
        st = prepared_domain_new(&point.model, &point.cluster, domain, err);
    if (!st)
        prepared_domain_drop(was);
    return st;
}

enum status reference_stored(struct request *rq, const struct prepared_domain *domain, const struct id *id,
                             const char *name, struct strategy *out, struct error *err) {
    struct store *store;
    enum status st = request_reader(rq, &store, err);
    if (!st)
        st = store_get_strategy(store, id->hex, domain->model, domain->cluster, out, err);
    if (st)
        return st;
    out->name = arena_strdup(&out->arena, name);
    if (out->name)
        return ST_OK;
    strategy_release(out);
    return error_no_memory(err);
}

enum status reference_strategy(struct request *rq, const struct prepared_domain *domain, const struct json_at *at,
                               struct strategy *out, struct error *err) {
    struct id id;
    const char *word, *name;
    if (cJSON_IsObject(at->node))
        return strategy_read(at->node, PROBLEM_BODY, domain->model, domain->cluster, out, err);
    enum status st = json_string_at(at, &word, err);
    if (!st)
        st = reference_name(rq, STORE_STRATEGY, word, &id, &name, err);
    return st ? st : reference_stored(rq, domain, &id, name, out, err);
}
