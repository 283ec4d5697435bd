/* A strategy's description, read and written: the fields of strategy/strategy.h. Rules are checked as soon as the part
 * that they are about is read, so that a message names the place in the file. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "strategy/encoder.h"
#include "strategy/slices.h"
#include "strategy/strategy.h"

static const char STRATEGY_SCHEMA[] = "syncopate.strategy/1";

#define X(name) #name,
static const char *const policy_words[] = {POLICY_TABLE(X) NULL};
static const char *const algorithm_words[] = {ALGORITHM_TABLE(X) NULL};
static const char *const synchronize_words[] = {SYNCHRONIZE_TABLE(X) NULL};
#undef X
static const char *const pulls_words[] = {"at_once", "priority", NULL};

enum { MOST_RANKS = CLUSTER_MAX_NODES * CLUSTER_MAX_DEVICES_PER_NODE };

/* ---- reading ---- */

static enum status read_prefetch(const struct json_at *at, const char *member, uint32_t *out, struct error *err) {
    uint64_t groups = 1;
    enum status st = json_get_integer(at, member, JSON_OPTIONAL, 0, MODEL_MAX_VARIABLES, &groups, err);
    *out = (uint32_t)groups;
    return st;
}

static enum status read_accumulation(const struct json_at *schedule, struct strategy *out, struct error *err) {
    static const char *const known[] = {"micro_batches", "synchronize", NULL};
    struct json_at at;
    uint64_t micro_batches = 1;
    size_t synchronize = SYNCHRONIZE_last;
    enum status st = ST_OK;
    if (json_has(schedule, "accumulation", &at)) {
        st = json_expect_object(&at, known, err);
        if (!st)
            st = json_get_integer(&at, "micro_batches", JSON_REQUIRED, 1, STRATEGY_MAX_MICRO_BATCHES, &micro_batches,
                                  err);
        if (!st)
            st = json_get_word(&at, "synchronize", JSON_OPTIONAL, synchronize_words, &synchronize, err);
    }
    out->micro_batches = (uint32_t)micro_batches;
    out->synchronize = (enum synchronize)synchronize;
    return st;
}

static enum status read_shard_ranks(const struct json_at *at, uint32_t *out, struct error *err) {
    uint64_t ranks = 0;
    enum status st = json_get_integer(at, "shard_ranks", JSON_OPTIONAL, 2, MOST_RANKS, &ranks, err);
    *out = (uint32_t)ranks;
    return st;
}

static enum status read_schedule(const struct json_at *root, struct strategy *out, struct error *err) {
    static const char *const known[] = {
        "policy",      "credit_bytes", "cross_iteration", "pulls", "forward_prefetch", "backward_prefetch",
        "shard_ranks", "accumulation", "slices",          NULL};
    struct json_at at;
    size_t policy = POLICY_fifo, pulls = 0;
    enum status st = json_member(root, "schedule", &at, err);
    if (!st)
        st = json_expect_object(&at, known, err);
    if (!st)
        st = json_get_word(&at, "policy", JSON_REQUIRED, policy_words, &policy, err);
    if (!st)
        st = json_get_integer(&at, "credit_bytes", JSON_OPTIONAL, 0, STRATEGY_MAX_BYTES, &out->credit_bytes, err);
    if (!st)
        st = json_get_bool(&at, "cross_iteration", JSON_OPTIONAL, &out->cross_iteration, err);
    if (!st)
        st = json_get_word(&at, "pulls", JSON_OPTIONAL, pulls_words, &pulls, err);
    if (!st && pulls && policy != POLICY_priority)
        st = json_fail(&at, err, "\"pulls\" by priority need \"policy\" priority, not %s", policy_words[policy]);
    if (!st)
        st = read_prefetch(&at, "forward_prefetch", &out->forward_prefetch, err);
    if (!st)
        st = read_prefetch(&at, "backward_prefetch", &out->backward_prefetch, err);
    if (!st)
        st = read_shard_ranks(&at, &out->shard_ranks, err);
    if (!st)
        st = read_accumulation(&at, out, err);
    out->policy = (enum policy)policy;
    out->pulls_by_priority = pulls;
    return st;
}

/* 0 (absent: whole) or at least STRATEGY_MIN_PARTITION_BYTES. */
static enum status read_partition_bytes(const struct json_at *at, uint64_t *out, struct error *err) {
    return json_get_integer(at, "partition_bytes", JSON_OPTIONAL, STRATEGY_MIN_PARTITION_BYTES, STRATEGY_MAX_BYTES, out,
                            err);
}

static enum status check_group_at(const struct json_at *at, const struct strategy *strategy, const struct group *group,
                                  struct error *err) {
    struct error found;
    if (!strategy_check_group(strategy, group, &found))
        return ST_OK;
    return json_fail(at, err, "%s", found.message);
}

/* true, false or a number of devices. */
static enum status read_reshard(const struct json_at *at, struct group *out, struct error *err) {
    static const char name[] = "reshard_after_forward";
    bool reshards = true;
    uint64_t ranks = 0;
    struct json_at member;
    const bool is_there = json_has(at, name, &member), counts = is_there && cJSON_IsNumber(member.node);
    if (is_there && !counts && !cJSON_IsBool(member.node))
        return json_fail(&member, err, "must be true, false or a number of devices");
    enum status st = counts ? json_get_integer(at, name, JSON_OPTIONAL, 1, MOST_RANKS, &ranks, err)
                            : json_get_bool(at, name, JSON_OPTIONAL, &reshards, err);
    out->keeps_gathered = !reshards;
    out->reshard_ranks = (uint32_t)ranks;
    return st;
}

static enum status read_carried(const struct json_at *at, const char *name, enum carried *out, struct error *err) {
    struct json_at member;
    size_t word = 0;
    if (!json_has(at, name, &member))
        return ST_OK;
    enum status st = json_get_word(at, name, JSON_REQUIRED, carried_words, &word, err);
    *out = (enum carried)(word + 1);
    return st;
}

static enum status read_sharded(const struct json_at *at, struct group *out, struct error *err) {
    size_t sharded = SHARDED_none;
    struct json_at member;
    enum status st = json_get_word(at, "sharded", JSON_OPTIONAL, sharded_words, &sharded, err);
    if (!st)
        st = read_reshard(at, out, err);
    if (!st)
        st = read_carried(at, "gathered_as", &out->gathered_as, err);
    if (!st)
        st = read_carried(at, "summed_as", &out->summed_as, err);
    out->sharded = (enum sharded)sharded;
    if (!st && sharded != SHARDED_parameters && json_has(at, "reshard_after_forward", &member))
        st = json_fail(&member, err, "it says when gathered parameters are freed; \"sharded\" is %s",
                       sharded_words[sharded]);
    return st;
}

static enum status read_groups(const struct json_at *root, struct strategy *out, struct error *err) {
    static const char *const known[] = {
        "id", "algorithm", "partition_bytes", "sharded", "reshard_after_forward", "gathered_as", "summed_as", NULL};
    struct json_at array;
    size_t n = 0;
    if (!json_has(root, "groups", &array))
        return ST_OK;
    enum status st = json_array(root, "groups", MODEL_MAX_VARIABLES, &array, &n, err);
    if (st)
        return st;
    out->groups = arena_alloc(&out->arena, n, sizeof *out->groups);
    if (!out->groups)
        return error_no_memory(err);
    for (struct json_at e = json_first(&array); e.node; e = json_next(&e)) {
        struct group *group = &out->groups[e.index];
        size_t algorithm = ALGORITHM_auto;
        st = json_expect_object(&e, known, err);
        if (!st)
            st = json_get_integer(&e, "id", JSON_REQUIRED, 0, UINT32_MAX, &group->id, err);
        if (!st)
            st = json_get_word(&e, "algorithm", JSON_OPTIONAL, algorithm_words, &algorithm, err);
        if (!st)
            st = read_partition_bytes(&e, &group->partition_bytes, err);
        if (!st)
            st = read_sharded(&e, group, err);
        if (!st && e.index && group->id <= group[-1].id)
            st = json_fail(&e, err, "group ids must rise: %lu comes after %lu", (unsigned long)group->id,
                           (unsigned long)group[-1].id);
        group->algorithm = (enum algorithm)algorithm;
        if (!st)
            st = check_group_at(&e, out, group, err);
        if (st)
            return st;
    }
    out->n_groups = (uint32_t)n;
    return ST_OK;
}

static int compare_group_id(const void *key, const void *group) {
    uint64_t id = *(const uint64_t *)key, other = ((const struct group *)group)->id;
    return (id > other) - (id < other);
}

enum status strategy_read_group(const struct json_at *at, const struct strategy *strategy, uint32_t *out,
                                struct error *err) {
    uint64_t id;
    enum status st = json_get_integer(at, "group", JSON_REQUIRED, 0, UINT32_MAX, &id, err);
    if (st)
        return st;
    const struct group *group = strategy->n_groups ? bsearch(&id, strategy->groups, strategy->n_groups,
                                                             sizeof *strategy->groups, compare_group_id)
                                                   : NULL;
    if (!group)
        return json_fail(at, err, "group %lu is not in \"groups\"", (unsigned long)id);
    *out = (uint32_t)(group - strategy->groups);
    return ST_OK;
}

static enum status read_servers(const struct json_at *at, const struct cluster *cluster, struct arena *arena,
                                struct variable_sync *out, struct error *err) {
    struct json_at array;
    size_t n;
    enum status st = json_array(at, "servers", CLUSTER_MAX_NODES, &array, &n, err);
    if (st)
        return st;
    if (!n)
        return json_fail(&array, err, "a parameter server needs at least one node");
    uint32_t *servers = arena_alloc(arena, n, sizeof *servers);
    if (!servers)
        return error_no_memory(err);
    for (struct json_at e = json_first(&array); e.node; e = json_next(&e)) {
        const char *name;
        if ((st = json_string_at(&e, &name, err)))
            return st;
        int64_t node = cluster_find_node(cluster, name);
        if (node < 0)
            return json_fail(&e, err, "cluster \"%s\" has no node \"%s\"", cluster->name, name);
        servers[e.index] = (uint32_t)node;
    }
    out->servers = servers;
    out->n_servers = (uint32_t)n;
    return ST_OK;
}

static enum status read_push(const struct json_at *at, uint32_t *out, struct error *err) {
    uint64_t push = 0;
    enum status st = json_get_integer(at, "push", JSON_OPTIONAL, 1, MODEL_MAX_VARIABLES, &push, err);
    *out = (uint32_t)push;
    return st;
}

/* "encoding" and "sync", which are members of a variable or of an entry of "each_shard". */
static enum status read_sync(const struct json_at *owner, const struct strategy *strategy,
                             const struct cluster *cluster, struct arena *arena, struct variable_sync *out,
                             struct error *err) {
    static const char *const kinds[] = {"all_reduce", "parameter_server", NULL};
    static const char *const known[2][6] = {{"kind", "group", NULL},
                                            {"kind", "servers", "local_reduction", "partition_bytes", "push", NULL}};
    struct json_at at;
    size_t kind = 0;
    enum status st = encoder_read(owner, out, err);
    if (!st)
        st = json_member(owner, "sync", &at, err);
    if (!st)
        st = json_get_word(&at, "kind", JSON_REQUIRED, kinds, &kind, err);
    if (!st)
        st = json_expect_object(&at, known[kind], err);
    if (st)
        return st;
    out->kind = (enum sync_kind)kind;
    if (out->kind == SYNC_ALL_REDUCE)
        return strategy_read_group(&at, strategy, &out->group, err);
    out->local_reduction = true;
    st = read_servers(&at, cluster, arena, out, err);
    if (!st)
        st = json_get_bool(&at, "local_reduction", JSON_OPTIONAL, &out->local_reduction, err);
    if (!st)
        st = read_push(&at, &out->push, err);
    return st ? st : read_partition_bytes(&at, &out->partition_bytes, err);
}

static enum status read_partition(const struct json_at *variable, struct variable_sync *out, struct error *err) {
    static const char *const known[] = {"axis", "shards", NULL};
    struct json_at at;
    uint64_t axis = 0, shards = 1;
    enum status st = ST_OK;
    if (json_has(variable, "partition", &at)) {
        st = json_expect_object(&at, known, err);
        if (!st)
            st = json_get_integer(&at, "axis", JSON_OPTIONAL, 0, MODEL_MAX_RANK - 1, &axis, err);
        if (!st)
            st = json_get_integer(&at, "shards", JSON_REQUIRED, 1, STRATEGY_MAX_SHARDS, &shards, err);
    }
    out->axis = (uint32_t)axis;
    out->shards = (uint32_t)shards;
    return st;
}

static enum status read_each_shard(const struct json_at *array, size_t n, struct strategy *out,
                                   const struct cluster *cluster, struct variable_sync *sync, struct error *err) {
    static const char *const known[] = {"encoding", "sync", NULL};
    enum status st = ST_OK;
    if (n != sync->shards)
        return json_fail(array, err, "%zu entries for %u shards: \"partition\" says how many there are", n,
                         sync->shards);
    sync->each = arena_alloc(&out->arena, n, sizeof *sync->each);
    if (!sync->each)
        return error_no_memory(err);
    for (struct json_at e = json_first(array); e.node && !st; e = json_next(&e)) {
        struct variable_sync *part = &sync->each[e.index];
        *part = (struct variable_sync){.axis = sync->axis, .shards = sync->shards};
        st = json_expect_object(&e, known, err);
        if (!st)
            st = read_sync(&e, out, cluster, &out->arena, part, err);
    }
    return st;
}

/* How a variable is synchronized, once its cut is known: one way for all shards, or each with its own. */
static enum status read_ways(const struct json_at *variable, struct strategy *out, const struct cluster *cluster,
                             struct variable_sync *sync, struct error *err) {
    struct json_at array, other;
    size_t n;
    if (!json_has(variable, "each_shard", &array))
        return read_sync(variable, out, cluster, &out->arena, sync, err);
    if (json_has(variable, "sync", &other) || json_has(variable, "encoding", &other))
        return json_fail(&other, err, "it stands beside \"each_shard\", which says it for every shard");
    enum status st = json_array(variable, "each_shard", STRATEGY_MAX_SHARDS, &array, &n, err);
    return st ? st : read_each_shard(&array, n, out, cluster, sync, err);
}

/* The rules of one variable, checked here too, where the place is known. */
static enum status check_variable_at(const struct json_at *at, const struct strategy *strategy,
                                     const struct variable *v, const struct variable_sync *sync,
                                     const struct cluster *cluster, struct error *err) {
    struct error found;
    if (!strategy_check_variable(strategy, v, sync, cluster, &found))
        return ST_OK;
    return json_fail(at, err, "%s", found.message);
}

static enum status check_push_at(const struct json_at *at, const struct strategy *strategy, const struct model *model,
                                 uint32_t v, uint32_t *first_of_push, struct error *err) {
    struct error found;
    if (!strategy_check_push(strategy, model, v, first_of_push, &found))
        return ST_OK;
    return json_fail(at, err, "%s", found.message);
}

/* *v is the variable that was read. */
static enum status read_variable(const struct json_at *at, struct strategy *out, const struct model *model,
                                 const struct cluster *cluster, uint32_t *v, struct error *err) {
    static const char *const known[] = {"name", "partition", "encoding", "sync", "each_shard", NULL};
    const char *name;
    enum status st = json_expect_object(at, known, err);
    if (!st)
        st = json_get_string(at, "name", JSON_REQUIRED, &name, err);
    if (st)
        return st;
    int64_t position = model_find_variable(model, name);
    if (position < 0)
        return json_fail(at, err, "model \"%s\" has no variable \"%s\"; is this a strategy for another model?",
                         model->name, name);
    *v = (uint32_t)position;
    struct variable_sync *sync = &out->variables[*v];
    if (sync->shards)
        return json_fail(at, err, "variable \"%s\" is described twice", name);
    st = read_partition(at, sync, err);
    if (!st)
        st = read_ways(at, out, cluster, sync, err);
    return st ? st : check_variable_at(at, out, &model->variables[*v], sync, cluster, err);
}

static enum status read_variables(const struct json_at *root, struct strategy *out, const struct model *model,
                                  const struct cluster *cluster, struct error *err) {
    struct json_at array;
    size_t n;
    enum status st = json_array(root, "variables", MODEL_MAX_VARIABLES, &array, &n, err);
    if (st)
        return st;
    out->n_variables = model->n_variables;
    out->variables = arena_alloc(&out->arena, model->n_variables, sizeof *out->variables);
    uint32_t v = 0, *first_of_push = arena_alloc(&out->arena, model->n_variables + 1, sizeof *first_of_push);
    if (!out->variables || !first_of_push)
        return error_no_memory(err);
    memset(first_of_push, 0xff, (model->n_variables + 1) * sizeof *first_of_push);
    for (struct json_at e = json_first(&array); e.node; e = json_next(&e)) {
        st = read_variable(&e, out, model, cluster, &v, err);
        if (!st)
            st = check_push_at(&e, out, model, v, first_of_push, err);
        if (st)
            return st;
    }
    for (uint32_t i = 0; i < model->n_variables; i++)
        if (!out->variables[i].shards)
            return json_fail(&array, err, "variable \"%s\" of model \"%s\" is missing", model->variables[i].name,
                             model->name);
    return ST_OK;
}

static enum status read_whole(const struct json_at *root, const struct model *model, const struct cluster *cluster,
                              struct strategy *out, struct error *err) {
    static const char *const known[] = {"schema", "name", "schedule", "consistency", "groups", "variables", NULL};
    const char *name;
    enum status st = json_expect_schema(root, STRATEGY_SCHEMA, err);
    if (!st)
        st = json_expect_object(root, known, err);
    if (!st)
        st = json_get_string(root, "name", JSON_REQUIRED, &name, err);
    if (!st)
        st = read_schedule(root, out, err);
    if (!st)
        st = consistency_read(root, cluster, &out->arena, &out->consistency, err);
    if (!st)
        st = read_groups(root, out, err);
    if (!st)
        st = read_variables(root, out, model, cluster, err);
    if (!st)
        st = slices_read(root, model, out, err);
    if (st)
        return st;
    if (!(out->name = arena_strdup(&out->arena, name)))
        return error_no_memory(err);
    st = strategy_seal(out, model, cluster, err);
    return st == ST_INVALID ? error_prefix(err, st, "%s", root->key) : st;
}

enum status strategy_read(const cJSON *json, const char *name, const struct model *model, const struct cluster *cluster,
                          struct strategy *out, struct error *err) {
    struct strategy strategy = {.credit_bytes = CREDIT_UNLIMITED};
    struct json_at root = json_root(json, name);
    enum status st = read_whole(&root, model, cluster, &strategy, err);
    if (st)
        strategy_release(&strategy);
    else
        *out = strategy;
    return st;
}

enum status strategy_read_file(const char *path, const struct model *model, const struct cluster *cluster,
                               struct strategy *out, struct error *err) {
    cJSON *json;
    enum status st = json_read_file(path, &json, err);
    if (st)
        return st;
    st = strategy_read(json, path, model, cluster, out, err);
    cJSON_Delete(json);
    return st;
}

/* ---- writing ---- */

static bool write_accumulation(const struct strategy *strategy, cJSON *schedule) {
    if (strategy->micro_batches == 1)
        return true;
    cJSON *object = cJSON_AddObjectToObject(schedule, "accumulation");
    return object && cJSON_AddNumberToObject(object, "micro_batches", strategy->micro_batches) &&
           cJSON_AddStringToObject(object, "synchronize", synchronize_name(strategy->synchronize));
}

static bool write_schedule(const struct strategy *strategy, cJSON *object) {
    return object && cJSON_AddStringToObject(object, "policy", policy_name(strategy->policy)) &&
           (strategy->credit_bytes == CREDIT_UNLIMITED ||
            cJSON_AddNumberToObject(object, "credit_bytes", (double)strategy->credit_bytes)) &&
           cJSON_AddBoolToObject(object, "cross_iteration", strategy->cross_iteration) &&
           (!strategy->pulls_by_priority || cJSON_AddStringToObject(object, "pulls", pulls_words[1])) &&
           (strategy->forward_prefetch == 1 ||
            cJSON_AddNumberToObject(object, "forward_prefetch", strategy->forward_prefetch)) &&
           (strategy->backward_prefetch == 1 ||
            cJSON_AddNumberToObject(object, "backward_prefetch", strategy->backward_prefetch)) &&
           (!strategy->shard_ranks || cJSON_AddNumberToObject(object, "shard_ranks", strategy->shard_ranks)) &&
           write_accumulation(strategy, object) && slices_write(strategy, object);
}

static bool write_groups(const struct strategy *strategy, cJSON *array) {
    bool ok = array;
    for (uint32_t i = 0; i < strategy->n_groups && ok; i++) {
        const struct group *group = &strategy->groups[i];
        cJSON *object = cJSON_CreateObject();
        ok =
            object && cJSON_AddItemToArray(array, object) && cJSON_AddNumberToObject(object, "id", (double)group->id) &&
            cJSON_AddStringToObject(object, "algorithm", algorithm_name(group->algorithm)) &&
            (!group->partition_bytes ||
             cJSON_AddNumberToObject(object, "partition_bytes", (double)group->partition_bytes)) &&
            (!group->sharded || cJSON_AddStringToObject(object, "sharded", sharded_name(group->sharded))) &&
            (!group->keeps_gathered || cJSON_AddBoolToObject(object, "reshard_after_forward", false)) &&
            (!group->reshard_ranks || cJSON_AddNumberToObject(object, "reshard_after_forward", group->reshard_ranks)) &&
            (!group->gathered_as || cJSON_AddStringToObject(object, "gathered_as", carried_name(group->gathered_as))) &&
            (!group->summed_as || cJSON_AddStringToObject(object, "summed_as", carried_name(group->summed_as)));
    }
    return ok;
}

static bool write_server_sync(const struct variable_sync *sync, const struct cluster *cluster, cJSON *object) {
    cJSON *servers = object && cJSON_AddStringToObject(object, "kind", "parameter_server")
                         ? cJSON_AddArrayToObject(object, "servers")
                         : NULL;
    bool ok = servers;
    for (uint32_t i = 0; i < sync->n_servers && ok; i++)
        ok = cJSON_AddItemToArray(servers, cJSON_CreateString(cluster->nodes[sync->servers[i]].name));
    return ok && cJSON_AddBoolToObject(object, "local_reduction", sync->local_reduction) &&
           (!sync->partition_bytes ||
            cJSON_AddNumberToObject(object, "partition_bytes", (double)sync->partition_bytes)) &&
           (!sync->push || cJSON_AddNumberToObject(object, "push", sync->push));
}

static bool write_sync(const struct strategy *strategy, const struct variable_sync *sync, const struct cluster *cluster,
                       cJSON *owner) {
    if (!encoder_write(sync, owner))
        return false;
    cJSON *object = cJSON_AddObjectToObject(owner, "sync");
    if (sync->kind == SYNC_PARAMETER_SERVER)
        return write_server_sync(sync, cluster, object);
    return object && cJSON_AddStringToObject(object, "kind", "all_reduce") &&
           cJSON_AddNumberToObject(object, "group", (double)strategy->groups[sync->group].id);
}

static bool write_ways(const struct strategy *strategy, const struct variable_sync *sync, const struct cluster *cluster,
                       cJSON *variable) {
    if (!sync->each)
        return write_sync(strategy, sync, cluster, variable);
    cJSON *array = cJSON_AddArrayToObject(variable, "each_shard");
    bool ok = array;
    for (uint32_t k = 0; k < sync->shards && ok; k++) {
        cJSON *entry = cJSON_CreateObject();
        ok = entry && cJSON_AddItemToArray(array, entry) && write_sync(strategy, &sync->each[k], cluster, entry);
    }
    return ok;
}

static bool write_partition(const struct variable_sync *sync, cJSON *object) {
    if (sync->shards == 1)
        return true;
    cJSON *partition = cJSON_AddObjectToObject(object, "partition");
    return partition && cJSON_AddNumberToObject(partition, "axis", sync->axis) &&
           cJSON_AddNumberToObject(partition, "shards", sync->shards);
}

static bool write_variables(const struct strategy *strategy, const struct model *model, const struct cluster *cluster,
                            cJSON *array) {
    bool ok = array;
    for (uint32_t i = 0; i < strategy->n_variables && ok; i++) {
        const struct variable_sync *sync = &strategy->variables[i];
        cJSON *object = cJSON_CreateObject();
        ok = object && cJSON_AddItemToArray(array, object) &&
             cJSON_AddStringToObject(object, "name", model->variables[i].name) && write_partition(sync, object) &&
             write_ways(strategy, sync, cluster, object);
    }
    return ok;
}

/* Write the description. Without `name` it is the text that the id is the hash of. */
static cJSON *write_named(const struct strategy *strategy, const char *name, const struct model *model,
                          const struct cluster *cluster) {
    cJSON *root = cJSON_CreateObject();
    if (root && cJSON_AddStringToObject(root, "schema", STRATEGY_SCHEMA) &&
        (!name || cJSON_AddStringToObject(root, "name", name)) &&
        write_schedule(strategy, cJSON_AddObjectToObject(root, "schedule")) &&
        consistency_write(&strategy->consistency, cluster, root) &&
        write_groups(strategy, cJSON_AddArrayToObject(root, "groups")) &&
        write_variables(strategy, model, cluster, cJSON_AddArrayToObject(root, "variables")))
        return root;
    cJSON_Delete(root);
    return NULL;
}

cJSON *strategy_write(const struct strategy *strategy, const struct model *model, const struct cluster *cluster) {
    return write_named(strategy, strategy->name, model, cluster);
}

char *strategy_canonical(const struct strategy *strategy, const struct model *model, const struct cluster *cluster) {
    cJSON *json = write_named(strategy, NULL, model, cluster);
    char *text = json ? json_canonical(json) : NULL;
    cJSON_Delete(json);
    return text;
}
