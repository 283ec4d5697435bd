/* What is stored is the text that the id is the hash of, so that anybody can check it with sha256sum. For a strategy
 * that text has no name; its name comes from the column beside it. */
#include "dataset/describe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "dataset/store_internal.h"

/* A strategy comes with a trial: whoever sees the trial sees the strategy. A model and a cluster are shared with
 * all. */
static enum status put(struct store *store, enum store_kind kind, const struct id *id, const char *name,
                       const char *text, struct error *err) {
    if (kind != STORE_STRATEGY)
        return object_put_for_all(store, kind, id, name, text, err);
    enum status status = store_begin(store, err);
    if (status)
        return status;
    return store_end(store, object_put(store, kind, id, name, text, NULL, NULL, err), err);
}

/* Takes `text`; NULL stands for no memory. */
static enum status put_text(struct store *store, enum store_kind kind, const char *name, char *text,
                            const struct id *expected, struct error *err) {
    if (!text)
        return error_no_memory(err);
    struct id id;
    enum status status = id_of(text, strlen(text), &id, err);
    if (!status && strcmp(id.hex, expected->hex) != 0)
        status = error_set(err, ST_INVALID, "%s %s: changed after its id was computed", object_word(kind), name);
    if (!status)
        status = put(store, kind, &id, name, text, err);
    free(text);
    return status;
}

/* Takes `json`. */
static char *canonical(cJSON *json) {
    char *text = json ? json_canonical(json) : NULL;
    cJSON_Delete(json);
    return text;
}

enum status store_put_model(struct store *store, const struct model *model, struct error *err) {
    return put_text(store, STORE_MODEL, model->name, canonical(model_write(model)), &model->id, err);
}

enum status store_put_cluster(struct store *store, const struct cluster *cluster, struct error *err) {
    return put_text(store, STORE_CLUSTER, cluster->name, canonical(cluster_write(cluster)), &cluster->id, err);
}

enum status store_put_strategy(struct store *store, const struct strategy *strategy, const struct model *model,
                               const struct cluster *cluster, struct error *err) {
    return put_text(store, STORE_STRATEGY, strategy->name, strategy_canonical(strategy, model, cluster), &strategy->id,
                    err);
}

/* The stored text as a tree; `object` borrows from `arena`. Errors name the object by the first digits of its id,
 * because its name may be known to another team only. */
static enum status get_json(struct store *store, enum store_kind kind, const char *id, struct arena *arena,
                            struct stored_object *object, cJSON **out, struct error *err) {
    char digits[ID_SHORT + 1];
    snprintf(digits, sizeof digits, "%s", id);
    enum status status = store_get(store, kind, id, arena, object, err);
    return !status ? json_parse(object->content, strlen(object->content), digits, out, err) : status;
}

enum status store_get_model(struct store *store, const char *id, struct model *out, struct error *err) {
    struct arena arena = {0};
    struct stored_object object;
    cJSON *json = NULL;
    enum status status = get_json(store, STORE_MODEL, id, &arena, &object, &json, err);
    if (!status)
        status = model_read(json, object.name, out, err);
    cJSON_Delete(json);
    arena_release(&arena);
    return status;
}

enum status store_get_cluster(struct store *store, const char *id, struct cluster *out, struct error *err) {
    struct arena arena = {0};
    struct stored_object object;
    cJSON *json = NULL;
    enum status status = get_json(store, STORE_CLUSTER, id, &arena, &object, &json, err);
    if (!status)
        status = cluster_read(json, object.name, out, err);
    cJSON_Delete(json);
    arena_release(&arena);
    return status;
}

enum status store_get_strategy(struct store *store, const char *id, const struct model *model,
                               const struct cluster *cluster, struct strategy *out, struct error *err) {
    struct arena arena = {0};
    struct stored_object object;
    cJSON *json = NULL;
    char digits[ID_SHORT + 1];
    snprintf(digits, sizeof digits, "%s", id);
    enum status status = get_json(store, STORE_STRATEGY, id, &arena, &object, &json, err);
    if (!status && !cJSON_AddStringToObject(json, "name", object.name))
        status = error_no_memory(err);
    if (!status)
        status = strategy_read(json, digits, model, cluster, out, err); /* digits for its errors, as in get_json */
    cJSON_Delete(json);
    arena_release(&arena);
    return status;
}
