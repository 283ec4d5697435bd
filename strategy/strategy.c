/* Building a strategy in memory: an empty one, a copy, the sealed form. strategy/strategy_json.c reads and writes
 * descriptions, strategy/strategy_check.c holds the rules. */
#include "strategy/strategy.h"

#include <stdlib.h>
#include <string.h>

#define X(name) #name,
static const char *const policy_names[] = {POLICY_TABLE(X)};
static const char *const encoding_names[] = {ENCODING_TABLE(X)};
#undef X

const char *policy_name(enum policy policy) {
    return policy_names[policy];
}

const char *encoding_name(enum encoding encoding) {
    return encoding_names[encoding];
}

bool strategy_moves_rows(const struct strategy *strategy, const struct variable *v, const struct variable_sync *sync) {
    return v->sparse_rows &&
           (sync->kind == SYNC_PARAMETER_SERVER || strategy->groups[sync->group].algorithm == ALGORITHM_all_gather);
}

enum dtype strategy_wire_dtype(const struct variable *v, const struct variable_sync *sync) {
    return sync->encoding == ENCODING_none ? v->dtype : sync->encoding == ENCODING_f16 ? DTYPE_f16 : DTYPE_bf16;
}

/* ---- building ---- */

enum status strategy_init(struct strategy *out, const char *name, const struct model *model, uint32_t n_groups,
                          struct error *err) {
    struct strategy s = {.credit_bytes = CREDIT_UNLIMITED, .n_groups = n_groups, .n_variables = model->n_variables};
    s.name = arena_strdup(&s.arena, name);
    s.groups = arena_alloc(&s.arena, n_groups, sizeof *s.groups);
    s.variables = arena_alloc(&s.arena, s.n_variables, sizeof *s.variables);
    if (!s.name || !s.groups || !s.variables) {
        strategy_release(&s);
        return error_no_memory(err);
    }
    for (uint32_t i = 0; i < n_groups; i++)
        s.groups[i].id = i;
    for (uint32_t i = 0; i < s.n_variables; i++)
        s.variables[i].shards = 1;
    *out = s;
    return ST_OK;
}

static bool copy_servers(struct strategy *strategy) {
    for (uint32_t i = 0; i < strategy->n_variables; i++) {
        struct variable_sync *sync = &strategy->variables[i];
        uint32_t *servers = arena_alloc(&strategy->arena, sync->n_servers, sizeof *servers);
        if (!servers)
            return false;
        if (sync->n_servers)
            memcpy(servers, sync->servers, sync->n_servers * sizeof *servers);
        sync->servers = servers;
    }
    return true;
}

enum status strategy_copy(const struct strategy *from, const char *name, struct strategy *out, struct error *err) {
    struct strategy s = *from;
    s.arena = (struct arena){0};
    s.name = arena_strdup(&s.arena, name);
    s.groups = arena_alloc(&s.arena, s.n_groups, sizeof *s.groups);
    s.slices = arena_alloc(&s.arena, s.n_slices, sizeof *s.slices);
    s.variables = arena_alloc(&s.arena, s.n_variables, sizeof *s.variables);
    if (s.name && s.groups && s.slices && s.variables) {
        if (s.n_groups)
            memcpy(s.groups, from->groups, s.n_groups * sizeof *s.groups);
        if (s.n_slices)
            memcpy(s.slices, from->slices, s.n_slices * sizeof *s.slices);
        memcpy(s.variables, from->variables, s.n_variables * sizeof *s.variables);
        if (copy_servers(&s) && consistency_copy(&from->consistency, &s.arena, &s.consistency)) {
            *out = s;
            return ST_OK;
        }
    }
    strategy_release(&s);
    return error_no_memory(err);
}

/* Drop groups without members and number the others by their first variable. */
static enum status renumber_groups(struct strategy *strategy, struct error *err) {
    uint32_t n = 0, *position = malloc((strategy->n_groups + 1) * sizeof *position);
    struct group *groups = malloc((strategy->n_groups + 1) * sizeof *groups);
    if (!position || !groups) {
        free(position);
        free(groups);
        return error_no_memory(err);
    }
    memset(position, 0xff, (strategy->n_groups + 1) * sizeof *position);
    for (uint32_t i = 0; i < strategy->n_variables; i++) {
        struct variable_sync *sync = &strategy->variables[i];
        if (sync->kind != SYNC_ALL_REDUCE)
            continue;
        if (position[sync->group] == UINT32_MAX) {
            groups[n] = strategy->groups[sync->group];
            groups[n].id = n;
            position[sync->group] = n++;
        }
        sync->group = position[sync->group];
    }
    for (uint32_t i = 0; i < strategy->n_slices; i++) /* of groups that have members: the others have no bytes */
        strategy->slices[i].group = position[strategy->slices[i].group];
    memcpy(strategy->groups, groups, n * sizeof *groups);
    strategy->n_groups = n;
    free(position);
    free(groups);
    return ST_OK;
}

/* Number pushes by their first variable. One that holds a single variable is none. */
static enum status renumber_pushes(struct strategy *strategy, struct error *err) {
    const size_t n_slots = (size_t)strategy->n_variables + 1;
    uint32_t n = 0, *members = calloc(2 * n_slots, sizeof *members), *number = members + n_slots;
    if (!members)
        return error_no_memory(err);
    for (uint32_t i = 0; i < strategy->n_variables; i++)
        members[strategy->variables[i].push]++;
    for (uint32_t i = 0; i < strategy->n_variables; i++) {
        uint32_t *push = &strategy->variables[i].push;
        if (*push && members[*push] > 1 && !number[*push])
            number[*push] = ++n;
        *push = number[*push];
    }
    free(members);
    return ST_OK;
}

static void clear_other_kind(struct variable_sync *sync) {
    if (sync->shards == 1)
        sync->axis = 0;
    if (sync->kind == SYNC_PARAMETER_SERVER) {
        sync->group = 0;
        return;
    }
    sync->n_servers = 0;
    sync->servers = NULL;
    sync->local_reduction = false;
    sync->partition_bytes = 0;
    sync->push = 0;
}

bool strategy_orders_pulls(const struct strategy *strategy) {
    bool served = false;
    for (uint32_t i = 0; i < strategy->n_variables; i++)
        served |= strategy->variables[i].kind == SYNC_PARAMETER_SERVER;
    return strategy->pulls_by_priority && strategy->policy == POLICY_priority &&
           strategy->credit_bytes != CREDIT_UNLIMITED && served;
}

enum status strategy_seal(struct strategy *strategy, const struct model *model, const struct cluster *cluster,
                          struct error *err) {
    enum status st = strategy_check(strategy, model, cluster, err);
    if (st)
        return st;
    for (uint32_t i = 0; i < strategy->n_variables; i++)
        clear_other_kind(&strategy->variables[i]);
    strategy->pulls_by_priority = strategy_orders_pulls(strategy);
    if (strategy->n_groups && (st = renumber_groups(strategy, err)))
        return st;
    if ((st = renumber_pushes(strategy, err)))
        return st;
    char *text = strategy_canonical(strategy, model, cluster);
    if (!text)
        return error_no_memory(err);
    st = id_of(text, strlen(text), &strategy->id, err);
    free(text);
    return st;
}

void strategy_release(struct strategy *strategy) {
    arena_release(&strategy->arena);
    *strategy = (struct strategy){0};
}
