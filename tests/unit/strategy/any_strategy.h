/* Any valid strategy at all, good or silly: for properties that hold whatever is chosen. */
#ifndef TESTS_UNIT_STRATEGY_ANY_STRATEGY_H
#define TESTS_UNIT_STRATEGY_ANY_STRATEGY_H

#include "base/rng.h"
#include "strategy/strategy.h"
#include "tests/support/strategy/random_instances.h"

static inline bool coin(struct rng *rng, double p) {
    return rng_uniform(rng) < p;
}

/* 0 (whole) or any size from the least that is allowed; most divide nothing. */
static inline uint64_t any_partition(struct rng *rng) {
    return coin(rng, 0.4) ? 0 : (uint64_t)rng_log_between(rng, 1024, 1e7);
}

static inline void any_cut(struct rng *rng, const struct variable *v, struct variable_sync *sync) {
    if (!v->rank || coin(rng, 0.5))
        return;
    sync->axis = (uint32_t)rng_below(rng, v->rank);
    uint64_t dim = v->shape[sync->axis], most = coin(rng, 0.1) ? 300 : 9;
    sync->shards = 1 + (uint32_t)rng_below(rng, dim < most ? dim : most);
}

static inline enum status any_servers(struct rng *rng, struct strategy *s, uint32_t n_nodes,
                                      struct variable_sync *sync) {
    uint32_t n = 1 + (uint32_t)rng_below(rng, n_nodes < sync->shards ? n_nodes : sync->shards);
    uint32_t *nodes = arena_alloc(&s->arena, n_nodes, sizeof *nodes);
    if (!nodes)
        return ST_NO_MEMORY;
    for (uint32_t i = 0; i < n_nodes; i++)
        nodes[i] = i;
    rng_shuffle(rng, n_nodes, nodes);
    sync->servers = nodes;
    sync->n_servers = n;
    sync->local_reduction = coin(rng, 0.5);
    sync->partition_bytes = any_partition(rng);
    return ST_OK;
}

/* Variable v may travel with an earlier served one, and then as that one does. */
static inline void any_push(struct rng *rng, const struct model *model, struct strategy *s, uint32_t v) {
    uint32_t w = (uint32_t)rng_below(rng, (uint64_t)v + 1);
    struct variable_sync *sync = &s->variables[v], *other = &s->variables[w];
    if (w == v || other->kind != SYNC_PARAMETER_SERVER || other->shards > 1 || sync->shards > 1)
        return;
    *sync = (struct variable_sync){.shards = 1,
                                   .kind = SYNC_PARAMETER_SERVER,
                                   .encoding = sync->encoding,
                                   .group = sync->group,
                                   .n_servers = 1,
                                   .servers = other->servers,
                                   .local_reduction = other->local_reduction,
                                   .partition_bytes = other->partition_bytes};
    if (strategy_push_difference(s, model, v, w))
        return;
    other->push = other->push ? other->push : w + 1;
    sync->push = other->push;
}

/* Groups 0..n-1 are free for all, each for the element type of its first member; the last DTYPE_COUNT take what fits
 * nowhere else. */
struct any_groups {
    uint32_t n_free;
    enum dtype *of_group; /* DTYPE_COUNT: no member yet */
    double served;        /* the share of what is served */
};

/* Encoding and synchronizer of a variable that is cut, or of a shard, which has one server. */
static inline enum status any_way(struct rng *rng, const struct variable *variable, struct any_groups *groups,
                                  struct strategy *s, uint32_t n_nodes, struct variable_sync *sync) {
    enum dtype wire = variable->dtype;
    if ((wire == DTYPE_f32 || wire == DTYPE_f64) && coin(rng, 0.2)) {
        sync->encoding = coin(rng, 0.5) ? ENCODING_f16 : ENCODING_bf16;
        wire = sync->encoding == ENCODING_f16 ? DTYPE_f16 : DTYPE_bf16;
    }
    sync->group = (uint32_t)rng_below(rng, groups->n_free);
    if (s->groups[sync->group].algorithm == ALGORITHM_all_gather && !variable->sparse_rows)
        sync->group = groups->n_free + wire;
    else if (groups->of_group[sync->group] == DTYPE_COUNT)
        groups->of_group[sync->group] = wire;
    else if (groups->of_group[sync->group] != wire)
        sync->group = groups->n_free + wire;
    if (!coin(rng, groups->served))
        return ST_OK;
    sync->kind = SYNC_PARAMETER_SERVER;
    return any_servers(rng, s, n_nodes, sync);
}

/* A way for each shard; of sparse variables only along other axes than the first, where ways mix freely. */
static inline enum status any_shards(struct rng *rng, const struct variable *variable, struct any_groups *groups,
                                     struct strategy *s, uint32_t n_nodes, struct variable_sync *sync) {
    enum status st = ST_OK;
    if (sync->shards == 1 || (variable->sparse_rows && !sync->axis) || coin(rng, 0.7))
        return ST_OK;
    sync->each = arena_alloc(&s->arena, sync->shards, sizeof *sync->each);
    if (!sync->each)
        return ST_NO_MEMORY;
    for (uint32_t k = 0; k < sync->shards && !st; k++) {
        struct variable_sync *way = &sync->each[k];
        *way = (struct variable_sync){.axis = sync->axis, .shards = sync->shards};
        if (k && coin(rng, 0.3)) {
            *way = way[-1];
            continue;
        }
        st = any_way(rng, variable, groups, s, n_nodes, way);
        way->n_servers = way->n_servers > 0;
    }
    return st;
}

static inline bool is_reduced_in(const struct variable_sync *part, uint32_t g) {
    return part->kind == SYNC_ALL_REDUCE && part->group == g;
}

/* The highest rank that a variable may have by powersgd; 0: it may not be encoded so. */
static inline uint64_t most_rank(const struct variable *v, const struct variable_sync *part) {
    uint64_t columns = 1;
    for (uint32_t axis = 1; axis < v->rank; axis++)
        columns *= v->shape[axis];
    if (v->sparse_rows || part->shards > 1)
        return 0;
    return v->rank < 2 ? 256 : v->shape[0] < columns ? v->shape[0] : columns;
}

/* Give a group powersgd, if its members may have that, or leave it. */
static inline void any_powersgd(struct rng *rng, const struct model *model, struct strategy *s, uint32_t g) {
    uint64_t most = 256;
    for (uint32_t v = 0; v < s->n_variables; v++)
        for (uint32_t k = 0; k < sync_parts(&s->variables[v]); k++) {
            const struct variable_sync *part = sync_part(&s->variables[v], k);
            const uint64_t own = most_rank(&model->variables[v], part);
            most = is_reduced_in(part, g) && own < most ? own : most;
        }
    if (!most)
        return;
    const double rank = 1 + (double)rng_below(rng, most < 5 ? most : 5);
    s->groups[g].partition_bytes = 0;
    for (uint32_t v = 0; v < s->n_variables; v++)
        if (is_reduced_in(&s->variables[v], g) && !s->variables[v].each) {
            s->variables[v].encoding = ENCODING_powersgd;
            s->variables[v].figure = rank;
        }
}

/* Some groups by an encoder, of those without an algorithm whose members are floats that are not cast. */
static inline void any_encoders(struct rng *rng, const struct model *model, struct strategy *s) {
    for (uint32_t g = 0; g < s->n_groups; g++) {
        const bool picks = coin(rng, 0.5);
        const double figure = picks ? rng_log_between(rng, 1e-4, 0.5) : (double)(8 + rng_below(rng, 600));
        bool may = s->groups[g].algorithm == ALGORITHM_auto && coin(rng, 0.5);
        for (uint32_t v = 0; v < s->n_variables; v++)
            for (uint32_t k = 0; k < sync_parts(&s->variables[v]); k++) {
                const enum dtype own = model->variables[v].dtype;
                const struct variable_sync *part = sync_part(&s->variables[v], k);
                may &= !is_reduced_in(part, g) ||
                       (part->encoding == ENCODING_none && (own == DTYPE_f32 || own == DTYPE_f64));
            }
        if (may && coin(rng, 0.3)) {
            any_powersgd(rng, model, s, g);
            continue;
        }
        for (uint32_t v = 0; v < s->n_variables && may; v++)
            for (uint32_t k = 0; k < sync_parts(&s->variables[v]); k++) {
                struct variable_sync *part = sync_edit_part(&s->variables[v], k);
                if (is_reduced_in(part, g)) {
                    part->encoding = picks ? ENCODING_topk : ENCODING_int8;
                    part->figure = figure;
                }
            }
    }
}

/* Whether the group has members, and they may be sharded. */
static inline bool may_shard(const struct strategy *s, uint32_t g) {
    const enum algorithm algorithm = s->groups[g].algorithm;
    bool any = false, all = algorithm == ALGORITHM_auto || algorithm == ALGORITHM_ring;
    for (uint32_t v = 0; v < s->n_variables; v++)
        for (uint32_t k = 0; k < sync_parts(&s->variables[v]); k++) {
            const struct variable_sync *part = sync_part(&s->variables[v], k);
            if (part->kind != SYNC_ALL_REDUCE || part->group != g)
                continue;
            any = true;
            all &= part->encoding == ENCODING_none;
        }
    return any && all;
}

static inline uint32_t any_divisor(struct rng *rng, uint32_t n) {
    uint32_t divisor = n > 1 ? 1 + (uint32_t)rng_below(rng, n) : 1;
    while (n % divisor > 0)
        divisor--;
    return divisor;
}

/* Replicas and parts among fewer devices, where they may be. */
static inline void any_replicas(struct rng *rng, const struct cluster *cluster, struct strategy *s) {
    bool others = strategy_sharded_parameters(s) == 0;
    for (uint32_t g = 0; g < s->n_groups; g++)
        others |= s->groups[g].sharded == SHARDED_optimizer || s->groups[g].sharded == SHARDED_gradients;
    const uint32_t ranks = any_divisor(rng, cluster->n_devices);
    s->shard_ranks = !others && ranks > 1 && coin(rng, 0.7) ? ranks : 0;
    for (uint32_t g = 0; g < s->n_groups; g++)
        if (s->groups[g].sharded == SHARDED_parameters && coin(rng, 0.3))
            s->groups[g].reshard_ranks = any_divisor(rng, strategy_shard_group(s, cluster));
}

/* Some groups sharded, of those that may be. */
static inline void any_sharded(struct rng *rng, const struct cluster *cluster, struct strategy *s, bool parameters) {
    const bool alone = parameters && coin(rng, 0.5);
    for (uint32_t g = 0; g < s->n_groups; g++) {
        if (!may_shard(s, g) || coin(rng, 0.4))
            continue;
        s->groups[g].sharded = alone ? SHARDED_none : coin(rng, 0.5) ? SHARDED_optimizer : SHARDED_gradients;
        if (parameters && coin(rng, 0.7))
            s->groups[g].sharded = SHARDED_parameters;
        s->groups[g].keeps_gathered = coin(rng, 0.3);
    }
    const uint32_t n = strategy_sharded_parameters(s), deepest = n > 1 ? n : 1;
    s->forward_prefetch = (uint32_t)rng_below(rng, deepest + 1);
    s->backward_prefetch = (uint32_t)rng_below(rng, deepest + 1);
    any_replicas(rng, cluster, s);
}

/* Some groups with sharded parameters in other types, of those whose members are floats. */
static inline void any_carried(struct rng *rng, const struct model *model, struct strategy *s) {
    for (uint32_t g = 0; g < s->n_groups; g++) {
        bool floats = s->groups[g].sharded == SHARDED_parameters && coin(rng, 0.5);
        for (uint32_t v = 0; v < s->n_variables && floats; v++)
            for (uint32_t k = 0; k < sync_parts(&s->variables[v]); k++)
                floats &= !is_reduced_in(sync_part(&s->variables[v], k), g) || model->variables[v].dtype <= DTYPE_f64;
        if (!floats)
            continue;
        s->groups[g].gathered_as = (enum carried)rng_below(rng, CARRIED_COUNT);
        s->groups[g].summed_as = (enum carried)rng_below(rng, CARRIED_COUNT);
    }
}

/* Not sealed. */
static inline enum status any_strategy(struct rng *rng, const struct model *model, const struct cluster *cluster,
                                       struct strategy *out, struct error *err) {
    struct any_groups groups = {.n_free = 1 + (uint32_t)rng_below(rng, model->n_variables + 2u)};
    enum status st = strategy_init(out, "any", model, groups.n_free + DTYPE_COUNT, err);
    if (st)
        return st;
    groups.of_group = arena_alloc(&out->arena, groups.n_free, sizeof *groups.of_group);
    if (!groups.of_group)
        return ST_NO_MEMORY;
    for (uint32_t g = 0; g < groups.n_free; g++)
        groups.of_group[g] = DTYPE_COUNT;
    const bool parameters = coin(rng, 0.2);
    for (uint32_t g = 0; g < out->n_groups; g++) {
        out->groups[g].algorithm =
            (enum algorithm)rng_below(rng, g < groups.n_free ? ALGORITHM_COUNT : ALL_REDUCE_COUNT);
        if (parameters && coin(rng, 0.7))
            out->groups[g].algorithm = coin(rng, 0.5) ? ALGORITHM_auto : ALGORITHM_ring;
        out->groups[g].partition_bytes = any_partition(rng);
    }
    groups.served = rng_uniform(rng);
    out->policy = parameters || coin(rng, 0.5) ? POLICY_fifo : POLICY_priority;
    out->cross_iteration = !parameters && coin(rng, 0.7);
    out->pulls_by_priority = coin(rng, 0.5);
    out->credit_bytes = coin(rng, 0.3) ? CREDIT_UNLIMITED : rng_below(rng, 1 << 24);
    for (uint32_t v = 0; v < model->n_variables && !st; v++) {
        const struct variable *variable = &model->variables[v];
        struct variable_sync *sync = &out->variables[v];
        any_cut(rng, variable, sync);
        st = any_way(rng, variable, &groups, out, cluster->n_nodes, sync);
        if (!st && sync->kind == SYNC_PARAMETER_SERVER && coin(rng, 0.5))
            any_push(rng, model, out, v);
        if (!st)
            st = any_shards(rng, variable, &groups, out, cluster->n_nodes, sync);
    }
    if (!st && !parameters && coin(rng, 0.2))
        return random_slices(rng, model, out, err);
    any_encoders(rng, model, out);
    any_sharded(rng, cluster, out, parameters);
    any_carried(rng, model, out);
    return st;
}

/* Several micro-batches. What an encoder keeps back has no way into the next one's sum, and replicas add once. */
static inline void any_accumulation(struct rng *rng, struct strategy *s) {
    bool each = coin(rng, 0.5);
    for (uint32_t v = 0; v < s->n_variables; v++)
        for (uint32_t k = 0; k < sync_parts(&s->variables[v]); k++)
            each &= !encoding_keeps_back(sync_part(&s->variables[v], k)->encoding);
    s->micro_batches = 2 + (uint32_t)rng_below(rng, 3);
    s->synchronize = !each ? SYNCHRONIZE_last : s->shard_ranks ? SYNCHRONIZE_each_all_reduce_last : SYNCHRONIZE_each;
}

#endif
