/* Reading, writing and copying a strategy's consistency (strategy/consistency.h). */
#include "strategy/consistency.h"

#include <string.h>

#define X(name) #name,
static const char *const kind_words[] = {CONSISTENCY_TABLE(X) NULL};
static const char *const order_words[] = {UPDATE_ORDER_TABLE(X) NULL};
#undef X
static const char *const copies_words[] = {"early", "due", NULL};

static const double MAX_BATCH_US = 1e9, MAX_DIVERGENCE = 1e12, MAX_MOMENTUM = 0.9999;

const char *consistency_name(enum consistency_kind kind) {
    return kind_words[kind];
}

bool consistency_is_plain(const struct consistency *c) {
    return c->kind == CONSISTENCY_synchronous && !c->scheduled;
}

/* ---- reading ---- */

static enum status read_node(const struct json_at *at, const struct cluster *cluster, uint32_t *out,
                             struct error *err) {
    const char *name;
    enum status st = json_string_at(at, &name, err);
    if (st)
        return st;
    int64_t node = cluster_find_node(cluster, name);
    if (node < 0)
        return json_fail(at, err, "cluster \"%s\" has no node \"%s\"", cluster->name, name);
    *out = (uint32_t)node;
    return ST_OK;
}

static enum status read_aggregators(const struct json_at *at, const struct cluster *cluster, struct arena *arena,
                                    struct node_list *out, struct error *err) {
    struct json_at array;
    size_t n;
    if (!json_has(at, "aggregators", &array))
        return ST_OK;
    enum status st = json_array(at, "aggregators", CLUSTER_MAX_NODES, &array, &n, err);
    uint32_t *nodes = st ? NULL : arena_alloc(arena, n, sizeof *nodes);
    if (st || !nodes)
        return st ? st : error_no_memory(err);
    for (struct json_at e = json_first(&array); e.node && !st; e = json_next(&e)) {
        st = read_node(&e, cluster, &nodes[e.index], err);
        for (size_t k = 0; k < e.index && !st; k++)
            if (nodes[k] == nodes[e.index])
                st = json_fail(&e, err, "\"%s\" is named twice", cluster->nodes[nodes[k]].name);
    }
    *out = (struct node_list){.n = (uint32_t)n, .nodes = nodes};
    return st;
}

static enum status read_scheduler(const struct json_at *at, const struct cluster *cluster, struct arena *arena,
                                  struct consistency *out, struct error *err) {
    static const char *const known[] = {"batch_us", "order", "aggregators", "distributors", NULL};
    struct json_at scheduler;
    size_t order = UPDATE_ORDER_mlfabric;
    uint64_t distributors = 0;
    if (!json_has(at, "scheduler", &scheduler))
        return ST_OK;
    out->scheduled = true;
    out->batch_us = CONSISTENCY_BATCH_US;
    enum status st = json_expect_object(&scheduler, known, err);
    if (!st)
        st = json_get_number(&scheduler, "batch_us", JSON_OPTIONAL, 1, MAX_BATCH_US, &out->batch_us, err);
    if (!st)
        st = json_get_word(&scheduler, "order", JSON_OPTIONAL, order_words, &order, err);
    if (!st)
        st = read_aggregators(&scheduler, cluster, arena, &out->aggregators, err);
    if (!st)
        st = json_get_integer(&scheduler, "distributors", JSON_OPTIONAL, 0, CONSISTENCY_MAX_DISTRIBUTORS, &distributors,
                              err);
    out->order = (enum update_order_rule)order;
    out->distributors = (uint32_t)distributors;
    return st;
}

static enum status read_replica(const struct json_at *at, const struct cluster *cluster, struct arena *arena,
                                struct consistency *out, struct error *err) {
    static const char *const known[] = {"node", "divergence", "momentum", "copies", "aggregators", NULL};
    struct json_at replica, node;
    size_t copies = 0;
    if (!json_has(at, "replica", &replica))
        return ST_OK;
    out->replicated = true;
    enum status st = json_expect_object(&replica, known, err);
    if (!st)
        st = json_member(&replica, "node", &node, err);
    if (!st)
        st = read_node(&node, cluster, &out->replica, err);
    if (!st)
        st = json_get_number(&replica, "divergence", JSON_REQUIRED, 1e-9, MAX_DIVERGENCE, &out->divergence, err);
    if (!st)
        st = json_get_number(&replica, "momentum", JSON_OPTIONAL, 0, MAX_MOMENTUM, &out->momentum, err);
    if (!st)
        st = json_get_word(&replica, "copies", JSON_OPTIONAL, copies_words, &copies, err);
    out->copies_when_due = copies;
    return st ? st : read_aggregators(&replica, cluster, arena, &out->replica_aggregators, err);
}

/* A number that only one kind has. */
static enum status read_bound_of(const struct json_at *at, const char *key, enum consistency_kind only,
                                 enum json_need need, uint64_t min, uint64_t max, const struct consistency *c,
                                 uint32_t *out, struct error *err) {
    struct json_at member;
    uint64_t value = 0;
    if (c->kind != only)
        return json_has(at, key, &member) ? json_fail(&member, err, "only %s has a \"%s\"; this one is %s",
                                                      kind_words[only], key, kind_words[c->kind])
                                          : ST_OK;
    enum status st = json_get_integer(at, key, need, min, max, &value, err);
    *out = (uint32_t)value;
    return st;
}

enum status consistency_read(const struct json_at *root, const struct cluster *cluster, struct arena *arena,
                             struct consistency *out, struct error *err) {
    static const char *const known[] = {"kind", "staleness", "delay_bound", "scheduler", "replica", NULL};
    struct json_at at;
    size_t kind;
    *out = (struct consistency){0};
    if (!json_has(root, "consistency", &at))
        return ST_OK;
    enum status st = json_expect_object(&at, known, err);
    if (!st)
        st = json_get_word(&at, "kind", JSON_REQUIRED, kind_words, &kind, err);
    if (st)
        return st;
    out->kind = (enum consistency_kind)kind;
    st = read_bound_of(&at, "staleness", CONSISTENCY_stale_synchronous, JSON_REQUIRED, 0, CONSISTENCY_MAX_STALENESS,
                       out, &out->staleness, err);
    if (!st)
        st = read_bound_of(&at, "delay_bound", CONSISTENCY_asynchronous, JSON_OPTIONAL, 1, CONSISTENCY_MAX_DELAY, out,
                           &out->delay_bound, err);
    if (!st)
        st = read_scheduler(&at, cluster, arena, out, err);
    if (!st)
        st = read_replica(&at, cluster, arena, out, err);
    if (!st && consistency_is_plain(out))
        st = json_fail(&at, err, "synchronous without a \"scheduler\" is what a strategy without \"consistency\" is");
    return st;
}

/* ---- writing ---- */

static bool write_nodes(const struct node_list *list, const struct cluster *cluster, cJSON *object) {
    cJSON *array = list->n > 0 ? cJSON_AddArrayToObject(object, "aggregators") : NULL;
    bool ok = list->n == 0 || array;
    for (uint32_t i = 0; i < list->n && ok; i++)
        ok = cJSON_AddItemToArray(array, cJSON_CreateString(cluster->nodes[list->nodes[i]].name));
    return ok;
}

static bool write_scheduler(const struct consistency *c, const struct cluster *cluster, cJSON *object) {
    return object && cJSON_AddNumberToObject(object, "batch_us", c->batch_us) &&
           cJSON_AddStringToObject(object, "order", order_words[c->order]) &&
           write_nodes(&c->aggregators, cluster, object) &&
           (c->distributors == 0 || cJSON_AddNumberToObject(object, "distributors", c->distributors));
}

static bool write_replica(const struct consistency *c, const struct cluster *cluster, cJSON *object) {
    return object && cJSON_AddStringToObject(object, "node", cluster->nodes[c->replica].name) &&
           cJSON_AddNumberToObject(object, "divergence", c->divergence) &&
           cJSON_AddNumberToObject(object, "momentum", c->momentum) &&
           cJSON_AddStringToObject(object, "copies", copies_words[c->copies_when_due]) &&
           write_nodes(&c->replica_aggregators, cluster, object);
}

bool consistency_write(const struct consistency *c, const struct cluster *cluster, cJSON *root) {
    if (consistency_is_plain(c))
        return true;
    cJSON *object = cJSON_AddObjectToObject(root, "consistency");
    return object && cJSON_AddStringToObject(object, "kind", kind_words[c->kind]) &&
           (c->kind != CONSISTENCY_stale_synchronous || cJSON_AddNumberToObject(object, "staleness", c->staleness)) &&
           (c->delay_bound == 0 || cJSON_AddNumberToObject(object, "delay_bound", c->delay_bound)) &&
           (!c->scheduled || write_scheduler(c, cluster, cJSON_AddObjectToObject(object, "scheduler"))) &&
           (!c->replicated || write_replica(c, cluster, cJSON_AddObjectToObject(object, "replica")));
}

/* ---- copying ---- */

static bool copy_nodes(struct node_list *list, struct arena *arena) {
    uint32_t *nodes = arena_alloc(arena, list->n, sizeof *nodes);
    if (!nodes)
        return false;
    if (list->n > 0)
        memcpy(nodes, list->nodes, list->n * sizeof *nodes);
    list->nodes = nodes;
    return true;
}

bool consistency_copy(const struct consistency *from, struct arena *arena, struct consistency *out) {
    *out = *from;
    return copy_nodes(&out->aggregators, arena) && copy_nodes(&out->replica_aggregators, arena);
}
