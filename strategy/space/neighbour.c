/* One small step from a strategy. A move is drawn by weight and applied to a copy. When it finds nothing to change, or
 * the id stays the same, another move is drawn. Cost O(variables log variables) a draw. */
#include <string.h>

#include "strategy/space/moves.h"
#include "strategy/space/space.h"

static uint32_t some_variable(const struct draft *d) {
    return (uint32_t)rng_below(d->rng, d->strategy.n_variables);
}

/* The variable, or one of its shards if they are synchronized in several ways. */
static struct variable_sync *some_part(const struct draft *d, uint32_t v) {
    struct variable_sync *sync = &d->strategy.variables[v];
    return sync->each ? &sync->each[rng_below(d->rng, sync->shards)] : sync;
}

/* Another size: twice or half as much within [min, max], or any in [min, max], or `off`, a value outside of it that
 * means something else (0 for a whole message; 0 or CREDIT_UNLIMITED for the credit). */
static uint64_t step_size(const struct draft *d, uint64_t bytes, uint64_t off, uint64_t min, uint64_t max) {
    if (bytes == off)
        return draw_size(d->rng, min, max);
    double u = rng_uniform(d->rng);
    if (u < 0.2)
        return off;
    if (u < 0.3)
        return draw_size(d->rng, min, max);
    uint64_t next = u < 0.65 ? bytes / 2 : bytes > max / 2 ? max : bytes * 2;
    return next < min ? min : next > max ? max : next;
}

/* Another partition size, for one group, served variable, shard or push, or for all. */
static bool move_partition(struct draft *d, const struct group_view *view) {
    (void)view;
    const struct space_options *o = &d->space->options;
    if (o->whole_messages)
        return false;
    uint32_t picked = some_variable(d);
    struct variable_sync *sync = some_part(d, picked);
    bool server = sync->kind == SYNC_PARAMETER_SERVER;
    uint64_t *size = server ? &sync->partition_bytes : &d->strategy.groups[sync->group].partition_bytes;
    *size = step_size(d, *size, 0, o->min_partition_bytes, o->max_partition_bytes);
    if (server)
        push_follow(d, picked);
    if (draw_chance(d->rng, 0.5))
        return true;
    uint64_t all = *size;
    for (uint32_t g = 0; g < d->strategy.n_groups; g++)
        d->strategy.groups[g].partition_bytes = all;
    for (uint32_t v = 0; v < d->strategy.n_variables; v++)
        for (uint32_t k = 0; k < sync_parts(&d->strategy.variables[v]); k++)
            if (sync_part(&d->strategy.variables[v], k)->kind == SYNC_PARAMETER_SERVER)
                sync_edit_part(&d->strategy.variables[v], k)->partition_bytes = all;
    return true;
}

static bool move_credit(struct draft *d, const struct group_view *view) {
    (void)view;
    const struct space_options *o = &d->space->options;
    uint64_t *credit = &d->strategy.credit_bytes;
    if (o->usual_credit) {
        *credit = draw_credit(d, 0, 0);
        return true;
    }
    uint64_t off = *credit == 0 || (*credit != CREDIT_UNLIMITED && draw_chance(d->rng, 0.5)) ? 0 : CREDIT_UNLIMITED;
    if (*credit == off && draw_chance(d->rng, 0.3))
        *credit = off ? 0 : CREDIT_UNLIMITED;
    else
        *credit = step_size(d, *credit, off, o->min_credit_bytes, o->max_credit_bytes);
    return true;
}

/* Another policy, or under priority another order of pulls. */
static bool move_policy(struct draft *d, const struct group_view *view) {
    (void)view;
    if (draw_may_order_pulls(d) && draw_chance(d->rng, 0.5)) {
        d->strategy.pulls_by_priority = !d->strategy.pulls_by_priority;
        return true;
    }
    d->strategy.policy = (enum policy)draw_bit(d->rng, d->space->options.policies);
    return true;
}

static bool move_cross_iteration(struct draft *d, const struct group_view *view) {
    (void)view;
    if (!d->space->options.cross_iteration)
        return false;
    d->strategy.cross_iteration = !d->strategy.cross_iteration;
    return true;
}

/* Which variables follow a picked one to the other architecture. */
enum scope { ONLY_IT, ITS_GROUP, AT_LEAST_ITS_SIZE, ITS_SPARSITY, N_SCOPES };

static bool follows(const struct draft *d, uint32_t v, uint32_t picked, const struct variable_sync *was,
                    enum scope scope) {
    const struct variable *variable = &d->space->model->variables[v], *like = &d->space->model->variables[picked];
    const struct variable_sync *sync = &d->strategy.variables[v];
    if (v == picked)
        return true;
    if (sync->each || sync->kind != was->kind || scope == ONLY_IT)
        return false;
    if (scope == ITS_GROUP)
        return was->kind == SYNC_ALL_REDUCE ? sync->group == was->group : was->push && sync->push == was->push;
    if (scope == AT_LEAST_ITS_SIZE)
        return variable->bytes >= like->bytes;
    return !variable->sparse_rows == !like->sparse_rows;
}

static void to_server(const struct draft *d, uint32_t v, uint64_t partition, uint32_t push) {
    struct variable_sync *sync = &d->strategy.variables[v];
    sync->kind = SYNC_PARAMETER_SERVER;
    sync->n_servers = 0; /* servers_balance finds them */
    sync->local_reduction = true;
    sync->partition_bytes = partition;
    sync->push = push;
}

static void to_group(const struct draft *d, uint32_t v, uint32_t group) {
    struct variable_sync *sync = &d->strategy.variables[v];
    sync->kind = SYNC_ALL_REDUCE;
    sync->group = group;
}

uint32_t group_receiving(struct draft *d, const struct group_view *view, uint64_t partition) {
    if (view->n && draw_chance(d->rng, 0.5))
        return view->order[rng_below(d->rng, view->n)];
    struct group like = {.algorithm = (enum algorithm)draw_bit(d->rng, d->space->options.algorithms),
                         .partition_bytes = partition};
    return group_add(d, like);
}

static bool move_architecture(struct draft *d, const struct group_view *view) {
    static const double weights[N_SCOPES] = {0.5, 0.2, 0.2, 0.1};
    const struct space_options *o = &d->space->options;
    uint32_t picked = some_variable(d), group = 0;
    struct variable_sync was = d->strategy.variables[picked];
    bool server = was.kind == SYNC_ALL_REDUCE;
    if (was.each || (server ? !o->parameter_server : !o->all_reduce))
        return false;
    uint64_t partition = server ? d->strategy.groups[was.group].partition_bytes : was.partition_bytes;
    if (!server)
        group = group_receiving(d, view, partition);
    enum scope scope = (enum scope)rng_weighted(d->rng, N_SCOPES, weights);
    bool together = server && scope == ITS_GROUP && o->share_pushes && draw_chance(d->rng, 0.5);
    uint32_t push = together ? push_add(d) : 0;
    for (uint32_t v = 0; v < d->strategy.n_variables && !d->no_memory; v++) {
        if (!follows(d, v, picked, &was, scope))
            continue;
        if (server)
            to_server(d, v, partition, push);
        else
            to_group(d, v, group);
    }
    servers_balance(d);
    return true;
}

/* New servers for one variable, with its push or without, or for a shard: by c_lb, or whatever their load. */
static bool move_servers(struct draft *d, const struct group_view *view) {
    (void)view;
    uint32_t v = some_variable(d);
    struct variable_sync *sync = some_part(d, v);
    if (sync->kind != SYNC_PARAMETER_SERVER)
        return false;
    if (sync->push && draw_chance(d->rng, 0.5))
        sync->push = 0;
    if (draw_chance(d->rng, 0.5)) {
        servers_draw_uniform(d, sync, d->strategy.variables[v].each ? 1 : sync->shards);
        push_follow(d, v);
        return true;
    }
    if (d->strategy.variables[v].each) {
        servers_draw_one(d, sync);
        return true;
    }
    push_unplace(d, v);
    servers_balance(d);
    return true;
}

/* New servers for all served variables by c_lb, over all nodes or over some. */
static bool move_rebalance(struct draft *d, const struct group_view *view) {
    (void)view;
    bool any = false;
    for (uint32_t v = 0; v < d->strategy.n_variables; v++)
        if (d->strategy.variables[v].kind == SYNC_PARAMETER_SERVER) {
            d->strategy.variables[v].n_servers = 0;
            any = true;
        }
    if (any && draw_chance(d->rng, 0.3))
        servers_allow_some(d);
    servers_balance(d);
    return any;
}

/* Another cut for one variable, all of whose shards then go as the first did: drawn anew, or twice or half as many
 * shards. */
static bool move_cut(struct draft *d, const struct group_view *view) {
    (void)view;
    uint32_t v = some_variable(d);
    const struct variable *variable = &d->space->model->variables[v];
    struct variable_sync *sync = &d->strategy.variables[v];
    sync->each = NULL;
    if (sync->shards > 1 && draw_chance(d->rng, 0.5)) {
        uint32_t most = space_max_shards(d->space, variable, sync->axis);
        uint32_t next = draw_chance(d->rng, 0.5) ? sync->shards * 2 : sync->shards / 2;
        sync->shards = next < most ? next : most;
    } else {
        draw_cut(d, v, 0.2);
    }
    if (sync->kind == SYNC_PARAMETER_SERVER && (sync->n_servers > sync->shards || draw_chance(d->rng, 0.5))) {
        sync->n_servers = 0;
        servers_balance(d);
    }
    return true;
}

static bool move_local_reduction(struct draft *d, const struct group_view *view) {
    (void)view;
    uint32_t v = some_variable(d);
    struct variable_sync *picked = some_part(d, v);
    if (!d->space->several_devices || picked->kind != SYNC_PARAMETER_SERVER)
        return false;
    picked->local_reduction = !picked->local_reduction;
    push_follow(d, v);
    bool all = draw_chance(d->rng, 0.5);
    for (v = 0; all && v < d->strategy.n_variables; v++)
        for (uint32_t k = 0; k < sync_parts(&d->strategy.variables[v]); k++)
            sync_edit_part(&d->strategy.variables[v], k)->local_reduction = picked->local_reduction;
    return true;
}

/* Another encoding, for one variable or shard, which then leaves its group, or for all. */
static bool move_encoding(struct draft *d, const struct group_view *view) {
    (void)view;
    uint32_t picked = some_variable(d);
    enum encoding encoding = draw_encoding(d, picked);
    bool all = draw_chance(d->rng, 0.5);
    if (d->space->options.encodings == 1u << ENCODING_none)
        return false;
    if (!all && space_may_encode(&d->space->model->variables[picked]))
        draw_new_figure(some_part(d, picked), encoding);
    for (uint32_t v = 0; all && v < d->strategy.n_variables; v++)
        for (uint32_t k = 0; k < sync_parts(&d->strategy.variables[v]); k++)
            if (space_may_encode(&d->space->model->variables[v]))
                draw_new_figure(sync_edit_part(&d->strategy.variables[v], k), encoding);
    return true;
}

static const struct move {
    bool (*apply)(struct draft *d, const struct group_view *view);
    double weight;
} moves[] = {
    {move_merge, 3},           {move_split, 3},
    {move_boundary, 3},        {move_regroup, 1},
    {move_algorithm, 2},       {move_partition, 3},
    {move_credit, 3},          {move_policy, 1},
    {move_cross_iteration, 1}, {move_architecture, 2},
    {move_servers, 1},         {move_cut, 1},
    {move_rebalance, 1},       {move_local_reduction, 0.5},
    {move_encoding, 1},        {move_share, 1},
    {move_unshare, 1},         {move_shard, 0.5},
    {move_sharded, 2},         {move_kept, 3},
    {move_prefetch, 1},        {move_shard_ranks, 1},
    {move_carried, 1},
};
enum { N_MOVES = sizeof moves / sizeof moves[0], N_WHOLE_MOVES = N_MOVES - 5, N_EXACT_MOVES = N_MOVES - 1 };

static bool apply_some_move(struct draft *d, const struct group_view *view) {
    const bool may_shard = d->space->options.sharded != 1u << SHARDED_none;
    double weights[N_MOVES] = {0};
    for (size_t i = 0; i < (!may_shard ? N_WHOLE_MOVES : sharded_may_round(d->space) ? N_MOVES : N_EXACT_MOVES); i++)
        weights[i] = moves[i].weight;
    return moves[rng_weighted(d->rng, N_MOVES, weights)].apply(d, view);
}

enum policy space_policy_without_slices(const struct space_options *options) {
    return options->policies >> POLICY_priority & 1 ? POLICY_priority : POLICY_fifo;
}

/* A preemptive strategy gets a policy that needs no schedule. True if it was preemptive: that is a change in itself. */
static bool leave_slices(struct strategy *s, const struct space_options *options) {
    if (s->policy != POLICY_preemptive)
        return false;
    s->policy = space_policy_without_slices(options);
    s->n_slices = 0;
    return true;
}

/* One try: *found says whether *out was written. */
static enum status try_move(struct draft *d, const struct group_view *view, const struct strategy *from,
                            struct strategy *out, bool *found, struct error *err) {
    struct strategy candidate;
    *found = false;
    enum status st = strategy_copy(from, "neighbour", &d->strategy, err);
    if (st)
        return st;
    d->group_room = d->strategy.n_groups;
    servers_allow_all(d);
    bool changed = leave_slices(&d->strategy, &d->space->options);
    changed = apply_some_move(d, view) || changed;
    if (!changed && !d->no_memory) {
        strategy_release(&d->strategy);
        return ST_OK;
    }
    st = draft_finish(d, &candidate, err);
    if (st)
        return st;
    *found = strcmp(candidate.id.hex, from->id.hex) != 0;
    if (*found)
        *out = candidate;
    else
        strategy_release(&candidate);
    return ST_OK;
}

enum status space_neighbour(const struct space *space, const struct strategy *from, struct rng *rng,
                            struct strategy *out, struct error *err) {
    struct draft d;
    struct group_view view;
    bool found = false;
    enum status st = draft_open(&d, space, rng, err);
    if (st)
        return st;
    st = group_view_open(&view, space, from, err);
    if (!st) {
        for (int i = 0; i < SPACE_MAX_TRIES && !found && !st; i++)
            st = try_move(&d, &view, from, out, &found, err);
        group_view_close(&view);
    }
    draft_close(&d);
    if (!st && !found)
        st = error_set(err, ST_INFEASIBLE, "no neighbour of the strategy found: the options leave nothing to change");
    return st;
}
