/* Shards that are synchronized in ways of their own (AutoSync §2: a sub-strategy for each part of a variable). A draft
 * may make them of any variable that is cut; settling takes back what strategy_check refuses. */
#include "strategy/space/moves.h"
#include "strategy/space/space.h"

bool shards_part(struct draft *d, uint32_t v) {
    struct variable_sync *sync = &d->strategy.variables[v];
    struct variable_sync *each = arena_alloc(&d->strategy.arena, sync->shards, sizeof *each);
    d->no_memory |= !each;
    for (uint32_t k = 0; k < sync->shards && each; k++) {
        each[k] = *sync;
        each[k].servers = sync->n_servers ? &sync->servers[k % sync->n_servers] : NULL;
        each[k].n_servers = sync->n_servers > 0;
    }
    sync->each = each;
    return each;
}

/* Only those of sparse variables may break a rule: that on the shards of axis 0. */
void shards_settle(struct draft *d) {
    for (uint32_t v = 0; v < d->strategy.n_variables && !d->no_memory; v++) {
        const struct variable *variable = &d->space->model->variables[v];
        struct variable_sync *sync = &d->strategy.variables[v];
        if (sync->each && variable->sparse_rows &&
            strategy_check_variable(&d->strategy, variable, sync, d->space->cluster, NULL))
            sync->each = NULL;
    }
}

/* A large one rather than a small one, as there is more to share out. */
static uint32_t some_large_variable(const struct draft *d) {
    const struct model *model = d->space->model;
    uint64_t at = rng_below(d->rng, model->bytes);
    uint32_t v = 0;
    while (at >= model->variables[v].bytes)
        at -= model->variables[v++].bytes;
    return v;
}

/* The largest message that a shard has, or another size. */
static uint64_t some_partition(const struct draft *d, const struct variable_sync *way) {
    if (draw_chance(d->rng, 0.3))
        return draw_partition(d, 0.5);
    return way->kind == SYNC_ALL_REDUCE ? d->strategy.groups[way->group].partition_bytes : way->partition_bytes;
}

static void to_server(const struct draft *d, struct variable_sync *way) {
    way->partition_bytes = some_partition(d, way);
    way->local_reduction = way->kind == SYNC_ALL_REDUCE || way->local_reduction;
    way->kind = SYNC_PARAMETER_SERVER;
    way->n_servers = 0;
}

static void to_group(struct draft *d, const struct group_view *view, struct variable_sync *way) {
    way->group = group_receiving(d, view, some_partition(d, way));
    way->kind = SYNC_ALL_REDUCE;
}

/* Another way for a shard: encoding, server or group. */
static void change_way(struct draft *d, const struct group_view *view, uint32_t v, struct variable_sync *way) {
    const struct space_options *o = &d->space->options;
    if (o->encodings != 1u << ENCODING_none && draw_chance(d->rng, 0.2))
        draw_new_figure(way, draw_encoding(d, v));
    else if (o->parameter_server && (!o->all_reduce || draw_chance(d->rng, 0.5)))
        to_server(d, way);
    else
        to_group(d, view, way);
}

/* Change a shard, or it and all behind it. */
static void change_shards(struct draft *d, const struct group_view *view, uint32_t v) {
    struct variable_sync *sync = &d->strategy.variables[v];
    const uint32_t first = (uint32_t)rng_below(d->rng, sync->shards);
    const uint32_t end = draw_chance(d->rng, 0.5) ? first + 1 : sync->shards;
    const bool balanced = draw_chance(d->rng, 0.7);
    struct variable_sync way = sync->each[first];
    change_way(d, view, v, &way);
    for (uint32_t k = first; k < end && !d->no_memory; k++) {
        sync->each[k] = way;
        if (way.kind != SYNC_PARAMETER_SERVER || way.n_servers)
            continue;
        if (balanced)
            servers_draw_one(d, &sync->each[k]);
        else
            servers_draw_uniform(d, &sync->each[k], 1);
    }
}

/* One way for all shards of a variable that has several: that of some shard. Otherwise a shard gets another way, after
 * a cut where there is none. */
bool move_shard(struct draft *d, const struct group_view *view) {
    const uint32_t v = some_large_variable(d);
    struct variable_sync *sync = &d->strategy.variables[v];
    if (!d->space->options.each_shard)
        return false;
    if (sync->each && draw_chance(d->rng, 0.3)) {
        *sync = sync->each[rng_below(d->rng, sync->shards)];
        return true;
    }
    if (sync->shards == 1)
        draw_cut(d, v, 0);
    if (sync->shards == 1 || (!sync->each && !shards_part(d, v)))
        return d->no_memory;
    sync->push = 0;
    for (uint32_t k = 0; k < sync->shards; k++)
        sync->each[k].push = 0;
    change_shards(d, view, v);
    return true;
}
