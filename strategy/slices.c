/* Reading, writing and checking slices (strategy/slices.h). The sum is checked by taking each slice off what its group
 * has left, so that the message names the slice that goes too far and no sum can overflow. */
#include "strategy/slices.h"

#include <stdlib.h>

/* ---- reading and writing ---- */

static enum status read_slice(const struct json_at *at, const struct strategy *strategy, struct slice *out,
                              struct error *err) {
    static const char *const known[] = {"group", "bytes", NULL};
    enum status st = json_expect_object(at, known, err);
    if (!st)
        st = strategy_read_group(at, strategy, &out->group, err);
    if (!st)
        st = json_get_integer(at, "bytes", JSON_REQUIRED, 1, STRATEGY_MAX_BYTES, &out->bytes, err);
    return st;
}

static enum status read_array(const struct json_at *schedule, struct strategy *strategy, struct json_at *array,
                              struct error *err) {
    size_t n;
    enum status st = json_array(schedule, "slices", STRATEGY_MAX_SLICES, array, &n, err);
    if (st)
        return st;
    strategy->slices = arena_alloc(&strategy->arena, n, sizeof *strategy->slices);
    if (!strategy->slices)
        return error_no_memory(err);
    for (struct json_at e = json_first(array); e.node && !st; e = json_next(&e))
        st = read_slice(&e, strategy, &strategy->slices[e.index], err);
    strategy->n_slices = (uint32_t)n;
    return st;
}

enum status slices_read(const struct json_at *root, const struct model *model, struct strategy *strategy,
                        struct error *err) {
    struct json_at schedule, array;
    struct error found;
    bool preemptive = strategy->policy == POLICY_preemptive;
    enum status st = json_member(root, "schedule", &schedule, err);
    if (st)
        return st;
    if (json_has(&schedule, "slices", &array) && !preemptive)
        return json_fail(&array, err, "only policy preemptive has slices; this one is %s",
                         policy_name(strategy->policy));
    if (!preemptive)
        return ST_OK;
    st = read_array(&schedule, strategy, &array, err);
    if (st)
        return st;
    st = slices_check(strategy, model, &found);
    return st == ST_INVALID ? json_fail(&array, err, "%s", found.message) : st ? error_no_memory(err) : ST_OK;
}

/* cJSON adds to the end of an array in constant time. */
bool slices_write(const struct strategy *strategy, cJSON *schedule) {
    if (strategy->policy != POLICY_preemptive)
        return true;
    cJSON *array = cJSON_AddArrayToObject(schedule, "slices");
    bool ok = array;
    for (uint32_t i = 0; i < strategy->n_slices && ok; i++) {
        const struct slice *slice = &strategy->slices[i];
        cJSON *object = cJSON_CreateObject();
        ok = object && cJSON_AddItemToArray(array, object) &&
             cJSON_AddNumberToObject(object, "group", (double)strategy->groups[slice->group].id) &&
             cJSON_AddNumberToObject(object, "bytes", (double)slice->bytes);
    }
    return ok;
}

/* ---- checking ---- */

enum status slices_check_group(const struct strategy *strategy, const struct group *group, struct error *err) {
    if (strategy->policy == POLICY_preemptive && group->partition_bytes)
        return error_set(err, ST_INVALID, "group %lu has \"partition_bytes\", but under policy preemptive slices cut",
                         (unsigned long)group->id);
    if (strategy->policy == POLICY_preemptive && group->sharded)
        return error_set(err, ST_INVALID, "group %lu has \"sharded\": policy preemptive orders whole all-reduces only",
                         (unsigned long)group->id);
    if (strategy->policy == POLICY_preemptive && group->algorithm == ALGORITHM_all_gather)
        return error_set(err, ST_INVALID, "group %lu is gathered: policy preemptive orders all-reduces only",
                         (unsigned long)group->id);
    return ST_OK;
}

enum status slices_check_variable(const struct strategy *strategy, const struct variable *variable,
                                  const struct variable_sync *sync, struct error *err) {
    if (strategy->policy != POLICY_preemptive)
        return ST_OK;
    if (sync->kind != SYNC_ALL_REDUCE)
        return error_set(err, ST_INVALID, "variable \"%s\" is served: policy preemptive orders all-reduces only",
                         variable->name);
    if (sync->shards != 1)
        return error_set(err, ST_INVALID,
                         "variable \"%s\" is cut into %u shards, but under policy preemptive slices cut",
                         variable->name, sync->shards);
    return ST_OK;
}

/* The bytes of one merge group, which slices send. */
struct stream {
    uint64_t left;  /* bytes that are in no slice yet */
    uint64_t bytes; /* all */
    uint64_t width; /* of an element, in bytes */
};

static void measure(const struct strategy *strategy, const struct model *model, struct stream *streams) {
    for (uint32_t v = 0; v < strategy->n_variables; v++) {
        const struct variable_sync *sync = &strategy->variables[v];
        struct stream *stream = &streams[sync->group];
        stream->width = dtype_bytes(strategy_wire_dtype(&model->variables[v], sync));
        stream->left = stream->bytes += model->variables[v].elements * stream->width;
    }
}

static enum status take(const struct strategy *strategy, uint32_t i, struct stream *streams, struct error *err) {
    const struct slice *slice = &strategy->slices[i];
    if (slice->group >= strategy->n_groups)
        return error_set(err, ST_INVALID, "slice %u is of group %u of %u", i, slice->group, strategy->n_groups);
    struct stream *stream = &streams[slice->group];
    unsigned long id = (unsigned long)strategy->groups[slice->group].id;
    if (!slice->bytes)
        return error_set(err, ST_INVALID, "slice %u of group %lu is empty", i, id);
    if (slice->bytes > stream->left)
        return error_set(err, ST_INVALID, "slice %u takes %lu bytes of group %lu, which has %lu of its %lu left", i,
                         (unsigned long)slice->bytes, id, (unsigned long)stream->left, (unsigned long)stream->bytes);
    if (slice->bytes % stream->width)
        return error_set(err, ST_INVALID, "slice %u takes %lu bytes of group %lu, whose elements have %lu: none is cut",
                         i, (unsigned long)slice->bytes, id, (unsigned long)stream->width);
    stream->left -= slice->bytes;
    return ST_OK;
}

static enum status check_sums(const struct strategy *strategy, const struct stream *streams, struct error *err) {
    for (uint32_t g = 0; g < strategy->n_groups; g++)
        if (streams[g].left)
            return error_set(err, ST_INVALID, "the slices of group %lu leave %lu of its %lu bytes",
                             (unsigned long)strategy->groups[g].id, (unsigned long)streams[g].left,
                             (unsigned long)streams[g].bytes);
    return ST_OK;
}

enum status slices_check(const struct strategy *strategy, const struct model *model, struct error *err) {
    if (strategy->policy != POLICY_preemptive && strategy->n_slices)
        return error_set(err, ST_INVALID, "%u slices under policy %s; only preemptive has them", strategy->n_slices,
                         policy_name(strategy->policy));
    if (strategy->policy != POLICY_preemptive)
        return ST_OK;
    if (strategy->n_slices > STRATEGY_MAX_SLICES)
        return error_set(err, ST_INVALID, "%u slices; at most %d", strategy->n_slices, STRATEGY_MAX_SLICES);
    struct stream *streams = calloc(strategy->n_groups + 1u, sizeof *streams);
    if (!streams)
        return error_no_memory(err);
    enum status st = ST_OK;
    measure(strategy, model, streams);
    for (uint32_t i = 0; i < strategy->n_slices && !st; i++)
        st = take(strategy, i, streams, err);
    if (!st)
        st = check_sums(strategy, streams, err);
    free(streams);
    return st;
}
