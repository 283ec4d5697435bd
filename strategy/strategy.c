/* Building a strategy in memory: an empty one, a copy, the sealed form. strategy/strategy_json.c reads and writes
 * descriptions, strategy/strategy_check.c holds the rules. */
#include "strategy/strategy.h"

#include <stdlib.h>
#include <string.h>

#define X(name) #name,
static const char *const policy_names[] = {POLICY_TABLE(X)};
static const char *const encoding_names[] = {ENCODING_TABLE(X)};
const char *const sharded_words[] = {SHARDED_TABLE(X) NULL};
const char *const carried_words[] = {CARRIED_TABLE(X) NULL};
static const char *const synchronize_names[] = {SYNCHRONIZE_TABLE(X)};
#undef X

const char *policy_name(enum policy policy) {
    return policy_names[policy];
}

const char *encoding_name(enum encoding encoding) {
    return encoding_names[encoding];
}

enum lossiness encoding_lossiness(enum encoding encoding) {
    static const enum lossiness lossiness[] = {
        [ENCODING_none] = LOSSY_none, [ENCODING_f16] = LOSSY_half, [ENCODING_bf16] = LOSSY_half,
        [ENCODING_int8] = LOSSY_byte, [ENCODING_topk] = LOSSY_any, [ENCODING_powersgd] = LOSSY_any};
    return lossiness[encoding];
}

const char *carried_name(enum carried carried) {
    return carried ? carried_words[carried - 1] : NULL;
}

enum dtype carried_dtype(enum carried carried, enum dtype own) {
    static const enum dtype dtypes[] = {
        [CARRIED_f32] = DTYPE_f32, [CARRIED_f16] = DTYPE_f16, [CARRIED_bf16] = DTYPE_bf16};
    return carried ? dtypes[carried] : own;
}

bool carried_rounds(enum carried carried, enum dtype own) {
    const enum dtype to = carried_dtype(carried, own);
    return to != own && (to != DTYPE_f32 || own == DTYPE_f64);
}

const char *sharded_name(enum sharded sharded) {
    return sharded_words[sharded];
}

enum status sharded_named(const char *word, enum sharded *out, struct error *err) {
    for (int i = 0; i < SHARDED_COUNT; i++)
        if (!strcmp(sharded_words[i], word)) {
            *out = (enum sharded)i;
            return ST_OK;
        }
    return error_set(err, ST_USAGE,
                     "\"%s\" is nothing that can be sharded: say optimizer, gradients, parameters or none", word);
}

const char *synchronize_name(enum synchronize synchronize) {
    return synchronize_names[synchronize];
}

bool strategy_moves_rows(const struct strategy *strategy, const struct variable *v, const struct variable_sync *sync) {
    return v->sparse_rows &&
           (sync->kind == SYNC_PARAMETER_SERVER || strategy->groups[sync->group].algorithm == ALGORITHM_all_gather);
}

enum dtype strategy_wire_dtype(const struct variable *v, const struct variable_sync *sync) {
    return sync->encoding == ENCODING_f16 ? DTYPE_f16 : sync->encoding == ENCODING_bf16 ? DTYPE_bf16 : v->dtype;
}

enum dtype strategy_sum_dtype(const struct strategy *strategy, const struct variable *v,
                              const struct variable_sync *sync) {
    if (sync->kind != SYNC_ALL_REDUCE || sync->group >= strategy->n_groups)
        return strategy_wire_dtype(v, sync);
    return carried_dtype(strategy->groups[sync->group].summed_as, strategy_wire_dtype(v, sync));
}

enum encoding strategy_sum_encoding(const struct strategy *strategy, const struct variable_sync *sync) {
    const enum carried summed = sync->kind == SYNC_ALL_REDUCE ? strategy->groups[sync->group].summed_as : CARRIED_own;
    return summed == CARRIED_f16 ? ENCODING_f16 : summed == CARRIED_bf16 ? ENCODING_bf16 : sync->encoding;
}

/* ---- building ---- */

enum status strategy_init(struct strategy *out, const char *name, const struct model *model, uint32_t n_groups,
                          struct error *err) {
    struct strategy s = {.credit_bytes = CREDIT_UNLIMITED,
                         .forward_prefetch = 1,
                         .backward_prefetch = 1,
                         .micro_batches = 1,
                         .n_groups = n_groups,
                         .n_variables = model->n_variables};
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

static bool own_servers(struct strategy *strategy, struct variable_sync *sync) {
    uint32_t *servers = arena_alloc(&strategy->arena, sync->n_servers, sizeof *servers);
    if (servers && sync->n_servers)
        memcpy(servers, sync->servers, sync->n_servers * sizeof *servers);
    sync->servers = servers;
    return servers;
}

bool strategy_own_sync(struct strategy *strategy, struct variable_sync *sync) {
    const struct variable_sync *each = sync->each;
    bool ok = own_servers(strategy, sync);
    if (!each || !ok)
        return ok;
    sync->each = arena_alloc(&strategy->arena, sync->shards, sizeof *sync->each);
    for (uint32_t k = 0; k < sync->shards && sync->each && ok; k++) {
        sync->each[k] = each[k];
        ok = own_servers(strategy, &sync->each[k]);
    }
    return sync->each && ok;
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
        bool ok = consistency_copy(&from->consistency, &s.arena, &s.consistency);
        for (uint32_t i = 0; i < s.n_variables && ok; i++)
            ok = strategy_own_sync(&s, &s.variables[i]);
        if (ok) {
            *out = s;
            return ST_OK;
        }
    }
    strategy_release(&s);
    return error_no_memory(err);
}

/* Take over what the first shard says. */
static void follow_first_shard(struct variable_sync *sync) {
    struct variable_sync *each = sync->each;
    if (each) {
        *sync = each[0];
        sync->each = each;
    }
}

/* The groups in the order of their first members: position[g] is where group g comes, UINT32_MAX where it has none. */
static uint32_t place_groups(struct strategy *strategy, uint32_t *position) {
    uint32_t n = 0;
    memset(position, 0xff, strategy->n_groups * sizeof *position);
    for (uint32_t i = 0; i < strategy->n_variables; i++)
        for (uint32_t k = 0; k < sync_parts(&strategy->variables[i]); k++) {
            const struct variable_sync *part = sync_part(&strategy->variables[i], k);
            if (part->kind == SYNC_ALL_REDUCE && position[part->group] == UINT32_MAX)
                position[part->group] = n++;
        }
    return n;
}

/* Drop groups without members and number the others by their first variable. */
static enum status renumber_groups(struct strategy *strategy, struct error *err) {
    uint32_t *position = malloc((strategy->n_groups + 1) * sizeof *position);
    struct group *groups = malloc((strategy->n_groups + 1) * sizeof *groups);
    if (!position || !groups) {
        free(position);
        free(groups);
        return error_no_memory(err);
    }
    const uint32_t n = place_groups(strategy, position);
    for (uint32_t g = 0; g < strategy->n_groups; g++)
        if (position[g] != UINT32_MAX) {
            groups[position[g]] = strategy->groups[g];
            groups[position[g]].id = position[g];
        }
    for (uint32_t i = 0; i < strategy->n_variables; i++) {
        for (uint32_t k = 0; k < sync_parts(&strategy->variables[i]); k++) {
            struct variable_sync *part = sync_edit_part(&strategy->variables[i], k);
            if (part->kind == SYNC_ALL_REDUCE)
                part->group = position[part->group];
        }
        follow_first_shard(&strategy->variables[i]);
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
    if (!encoding_is_encoder(sync->encoding))
        sync->figure = 0;
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

/* Whether the shards of a variable do what `like` says of all but the server. */
static bool are_alike(const struct variable_sync *sync, const struct variable_sync *like) {
    for (uint32_t k = 0; k < sync->shards; k++) {
        const struct variable_sync *part = &sync->each[k];
        if (part->kind != like->kind || part->encoding != like->encoding || part->figure != like->figure ||
            part->group != like->group || part->local_reduction != like->local_reduction ||
            part->partition_bytes != like->partition_bytes)
            return false;
    }
    return true;
}

/* Write the servers of the shards as a list that the shards take in turn, and count it. */
static uint32_t list_servers(const struct variable_sync *sync, uint32_t *servers) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < sync->shards; k++) {
        servers[k] = sync->each[k].servers[0];
        if (!n && k && servers[k] == servers[0])
            n = k;
        if (n && servers[k] != servers[k % n])
            return 0;
    }
    return n ? n : sync->shards;
}

/* Say once what all shards do, where one entry can say it. */
static enum status join_shards(struct strategy *strategy, const struct variable *variable, struct variable_sync *sync,
                               const struct cluster *cluster, struct error *err) {
    struct variable_sync whole = sync->each[0];
    if (!are_alike(sync, &whole))
        return ST_OK;
    if (whole.kind == SYNC_PARAMETER_SERVER) {
        uint32_t *servers = arena_alloc(&strategy->arena, sync->shards, sizeof *servers);
        if (!servers)
            return error_no_memory(err);
        whole.servers = servers;
        whole.n_servers = list_servers(sync, servers);
    }
    if (!strategy_check_variable(strategy, variable, &whole, cluster, NULL)) /* a list names no server twice */
        *sync = whole;
    return ST_OK;
}

/* Each variable in its one form, but for the numbers of groups and pushes. */
static enum status settle_variable(struct strategy *strategy, const struct variable *variable,
                                   struct variable_sync *sync, const struct cluster *cluster, struct error *err) {
    for (uint32_t k = 0; k < sync_parts(sync); k++)
        clear_other_kind(sync_edit_part(sync, k));
    follow_first_shard(sync);
    return sync->each ? join_shards(strategy, variable, sync, cluster, err) : ST_OK;
}

uint32_t strategy_sharded_parameters(const struct strategy *strategy) {
    uint32_t n = 0;
    for (uint32_t g = 0; g < strategy->n_groups; g++)
        n += strategy->groups[g].sharded == SHARDED_parameters;
    return n;
}

uint32_t strategy_shard_group(const struct strategy *strategy, const struct cluster *cluster) {
    return strategy->shard_ranks ? strategy->shard_ranks : cluster->n_devices;
}

uint32_t strategy_deepest_prefetch(const struct strategy *strategy) {
    const uint32_t n = strategy_sharded_parameters(strategy);
    return n > 1 ? n : 1;
}

bool strategy_orders_pulls(const struct strategy *strategy) {
    bool served = false;
    for (uint32_t i = 0; i < strategy->n_variables; i++)
        for (uint32_t k = 0; k < sync_parts(&strategy->variables[i]); k++)
            served |= sync_part(&strategy->variables[i], k)->kind == SYNC_PARAMETER_SERVER;
    return strategy->pulls_by_priority && strategy->policy == POLICY_priority &&
           strategy->credit_bytes != CREDIT_UNLIMITED && served;
}

void strategy_leave_matrices_whole(struct strategy *strategy) {
    for (uint32_t v = 0; v < strategy->n_variables; v++)
        for (uint32_t k = 0; k < sync_parts(&strategy->variables[v]); k++) {
            const struct variable_sync *part = sync_part(&strategy->variables[v], k);
            if (part->encoding == ENCODING_powersgd)
                strategy->groups[part->group].partition_bytes = 0;
        }
}

/* At most as far ahead as there are groups with sharded parameters, now that those without members are dropped. */
static void limit_prefetch(uint32_t *prefetch, uint32_t n_groups) {
    if (n_groups == 0)
        *prefetch = 1;
    else if (*prefetch > n_groups)
        *prefetch = n_groups;
}

/* A type that is the model's is not said. A group has variables of one type. */
static void settle_carried(struct strategy *strategy, const struct model *model) {
    for (uint32_t v = 0; v < strategy->n_variables; v++)
        for (uint32_t k = 0; k < sync_parts(&strategy->variables[v]); k++) {
            const struct variable_sync *part = sync_part(&strategy->variables[v], k);
            struct group *group = part->kind == SYNC_ALL_REDUCE ? &strategy->groups[part->group] : NULL;
            const enum dtype own = model->variables[v].dtype;
            if (group && carried_dtype(group->gathered_as, own) == own)
                group->gathered_as = CARRIED_own;
            if (group && carried_dtype(group->summed_as, own) == own)
                group->summed_as = CARRIED_own;
        }
}

/* Say in one way what is kept of each group between the passes, and among how many devices. */
static void settle_shards(struct strategy *strategy, const struct cluster *cluster) {
    const uint32_t n = strategy_shard_group(strategy, cluster);
    for (uint32_t g = 0; g < strategy->n_groups; g++) {
        struct group *group = &strategy->groups[g];
        group->keeps_gathered |= group->reshard_ranks == 1 && n > 1;
        group->keeps_gathered &= group->sharded == SHARDED_parameters;
        if (group->sharded != SHARDED_parameters || group->keeps_gathered || group->reshard_ranks == n)
            group->reshard_ranks = 0;
    }
    if (strategy->shard_ranks == cluster->n_devices || strategy_sharded_parameters(strategy) == 0)
        strategy->shard_ranks = 0;
}

enum status strategy_seal(struct strategy *strategy, const struct model *model, const struct cluster *cluster,
                          struct error *err) {
    enum status st = strategy_check(strategy, model, cluster, err);
    for (uint32_t i = 0; i < strategy->n_variables && !st; i++)
        st = settle_variable(strategy, &model->variables[i], &strategy->variables[i], cluster, err);
    if (st)
        return st;
    strategy->pulls_by_priority = strategy_orders_pulls(strategy);
    if (strategy->n_groups && (st = renumber_groups(strategy, err)))
        return st;
    if ((st = renumber_pushes(strategy, err)))
        return st;
    settle_shards(strategy, cluster);
    settle_carried(strategy, model);
    const uint32_t n_sharded = strategy_sharded_parameters(strategy);
    limit_prefetch(&strategy->forward_prefetch, n_sharded);
    limit_prefetch(&strategy->backward_prefetch, n_sharded);
    if (strategy->micro_batches == 1)
        strategy->synchronize = SYNCHRONIZE_last;
    else if (strategy->synchronize == SYNCHRONIZE_each_all_reduce_last && strategy->shard_ranks == 0)
        strategy->synchronize = SYNCHRONIZE_each;
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
