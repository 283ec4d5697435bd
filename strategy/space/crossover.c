/* Two strategies make a third (the genetic search of AutoSync §3.2).
 *
 * What is good about a strategy lies mostly in stretches of the order of readiness: which neighbours are merged, how
 * the early and the late gradients travel. So a child takes whole runs of that order, from its parents in turn, by
 * multi-point crossover; the number of cuts is log-uniform, so that long runs are common. Group numbers mean nothing
 * across parents: the child starts with the groups of both, and sealing drops those that got no member. If both parents
 * have a group with the same members and settings, the child has it once, so it is never split. The same holds for the
 * pushes that served variables share; behind its groups, a parent's pushes are numbered n_groups + push. */
#include <stdlib.h>
#include <string.h>

#include "strategy/space/space.h"
#include "strategy/space/space_internal.h"

struct parents {
    const struct strategy *of[2];
    uint32_t *number_of[2]; /* by parent and its group or push: the number of it in the child */
};

/* Groups and pushes, numbered together. Parts that go alone are in n_groups + 0. */
static uint32_t merged_with(const struct strategy *s, const struct variable_sync *sync) {
    return sync->kind == SYNC_ALL_REDUCE ? sync->group : s->n_groups + sync->push;
}

static size_t count_numbers(const struct strategy *s) {
    return (size_t)s->n_groups + s->n_variables + 1;
}

static bool is_merged(const struct variable_sync *sync) {
    return sync->kind == SYNC_ALL_REDUCE || sync->push;
}

/* Both are merged with others, and have the settings that are not the group's. */
static bool are_alike(const struct variable_sync *x, const struct variable_sync *y) {
    if (x->kind != y->kind || x->encoding != y->encoding || x->figure != y->figure || !is_merged(x) || !is_merged(y))
        return false;
    return x->kind == SYNC_ALL_REDUCE || (x->servers[0] == y->servers[0] && x->local_reduction == y->local_reduction &&
                                          x->partition_bytes == y->partition_bytes);
}

/* A group or push of b compared with `like`, that of a which its first member is in: how many members that are alike
 * are in both, and how many members each has. */
struct overlap {
    uint32_t like, shared, in_a, in_b;
};

static bool has_same_members(const struct overlap *o) {
    return o->in_a && o->shared == o->in_a && o->shared == o->in_b;
}

static bool has_same_settings(const struct group *g, const struct group *h) {
    return g->algorithm == h->algorithm && g->partition_bytes == h->partition_bytes && g->sharded == h->sharded &&
           g->keeps_gathered == h->keeps_gathered && g->reshard_ranks == h->reshard_ranks &&
           g->gathered_as == h->gathered_as && g->summed_as == h->summed_as;
}

static void compare_members(const struct strategy *a, const struct strategy *b, struct overlap *overlaps,
                            uint32_t *in_a) {
    for (uint32_t v = 0; v < a->n_variables; v++)
        for (uint32_t k = 0; k < sync_parts(&a->variables[v]); k++)
            in_a[merged_with(a, sync_part(&a->variables[v], k))]++;
    for (uint32_t v = 0; v < b->n_variables; v++) {
        const uint32_t n = sync_parts(&b->variables[v]);
        for (uint32_t k = 0; k < n; k++) {
            const struct variable_sync *part = sync_part(&b->variables[v], k);
            const struct variable_sync *other =
                sync_parts(&a->variables[v]) == n ? sync_part(&a->variables[v], k) : NULL;
            struct overlap *o = &overlaps[merged_with(b, part)];
            bool both = other && are_alike(other, part);
            uint32_t like = both ? merged_with(a, other) : 0;
            if (both && !o->in_b)
                *o = (struct overlap){.like = like, .in_a = in_a[like]};
            o->in_b++;
            o->shared += both && o->in_a && like == o->like;
        }
    }
}

/* Fill number_of[1]: a group or push of b that is also one of a has the same number in the child, any other a number of
 * its own. A sealed strategy has at most half as many pushes as variables. O(variables + groups). */
static void match(const struct parents *parents, struct overlap *overlaps, uint32_t *in_a) {
    const struct strategy *a = parents->of[0], *b = parents->of[1];
    compare_members(a, b, overlaps, in_a);
    for (uint32_t h = 0; h < b->n_groups; h++) {
        const struct overlap *o = &overlaps[h];
        bool same = has_same_members(o) && has_same_settings(&a->groups[o->like], &b->groups[h]);
        parents->number_of[1][h] = same ? o->like : a->n_groups + h;
    }
    for (uint32_t push = 1; push <= b->n_variables; push++) {
        const struct overlap *o = &overlaps[b->n_groups + push];
        parents->number_of[1][b->n_groups + push] =
            has_same_members(o) ? o->like - a->n_groups : b->n_variables / 2 + push;
    }
}

static enum status parents_open(struct parents *parents, const struct strategy *a, const struct strategy *b,
                                struct error *err) {
    struct overlap *overlaps = calloc(count_numbers(b), sizeof *overlaps);
    uint32_t *in_a = calloc(count_numbers(a), sizeof *in_a);
    uint32_t *number_of = calloc(count_numbers(a) + count_numbers(b), sizeof *number_of);
    enum status st = overlaps && in_a && number_of ? ST_OK : error_no_memory(err);
    if (st) {
        free(number_of);
    } else {
        *parents = (struct parents){{a, b}, {number_of, number_of + count_numbers(a)}};
        for (uint32_t g = 0; g < a->n_groups; g++)
            number_of[g] = g;
        for (uint32_t push = 1; push <= a->n_variables; push++)
            number_of[a->n_groups + push] = push;
        match(parents, overlaps, in_a);
    }
    free(overlaps);
    free(in_a);
    return st;
}

static void parents_close(struct parents *parents) {
    free(parents->number_of[0]);
}

static enum status take_variable(struct strategy *child, const struct parents *parents, uint32_t from, uint32_t v,
                                 struct error *err) {
    struct variable_sync *sync = &child->variables[v];
    *sync = parents->of[from]->variables[v];
    if (!strategy_own_sync(child, sync))
        return error_no_memory(err);
    for (uint32_t k = 0; k < sync_parts(sync); k++) {
        struct variable_sync *part = sync_edit_part(sync, k);
        if (part->kind == SYNC_ALL_REDUCE)
            part->group = parents->number_of[from][part->group];
        else
            part->push = parents->number_of[from][parents->of[from]->n_groups + part->push];
    }
    return ST_OK;
}

/* The parent whose choice is taken: the given one, or the other where only that one keeps to the options. */
static uint32_t allowed_parent(const struct space *space, const struct parents *parents, uint32_t from, uint32_t v) {
    bool other =
        !space_allows_variable(space, parents->of[from], v) && space_allows_variable(space, parents->of[1 - from], v);
    return other ? 1 - from : from;
}

static enum status take_runs(const struct space *space, const struct parents *parents, struct rng *rng,
                             struct strategy *child, struct error *err) {
    uint32_t n = child->n_variables, cuts = n > 1 ? draw_log_count(rng, n - 1) : 0;
    uint32_t from = (uint32_t)rng_below(rng, 2);
    enum status st = ST_OK;
    for (uint32_t i = 0; i < n && !st; i++) {
        if (i && rng_below(rng, n - i) < cuts) {
            cuts--;
            from = 1 - from;
        }
        uint32_t v = space->ready[i];
        st = take_variable(child, parents, allowed_parent(space, parents, from, v), v, err);
    }
    return st;
}

static void take_schedule(const struct space *space, const struct parents *parents, struct rng *rng,
                          struct strategy *child) {
    uint32_t from = (uint32_t)rng_below(rng, 2);
    if (!space_allows_schedule(space, parents->of[from]) && space_allows_schedule(space, parents->of[1 - from]))
        from = 1 - from;
    const struct strategy *s = parents->of[from];
    child->policy = s->policy == POLICY_preemptive ? space_policy_without_slices(&space->options) : s->policy;
    child->credit_bytes = s->credit_bytes;
    child->cross_iteration = s->cross_iteration;
    child->pulls_by_priority = s->pulls_by_priority;
    child->forward_prefetch = s->forward_prefetch;
    child->backward_prefetch = s->backward_prefetch;
    child->micro_batches = s->micro_batches;
    child->synchronize = s->synchronize;
    child->shard_ranks = s->shard_ranks;
}

static enum status build(const struct space *space, const struct parents *parents, struct rng *rng,
                         struct strategy *child, struct error *err) {
    uint32_t n_a = parents->of[0]->n_groups, n_b = parents->of[1]->n_groups;
    enum status st = strategy_init(child, "crossover", space->model, n_a + n_b, err);
    if (st)
        return st;
    for (uint32_t g = 0; g < n_a + n_b; g++) {
        child->groups[g] = g < n_a ? parents->of[0]->groups[g] : parents->of[1]->groups[g - n_a];
        child->groups[g].id = g;
    }
    st = take_runs(space, parents, rng, child, err);
    take_schedule(space, parents, rng, child);
    if (!st && !sharded_settle(space, child))
        st = error_no_memory(err);
    if (!st)
        st = strategy_seal(child, space->model, space->cluster, err);
    if (st)
        strategy_release(child);
    return st;
}

enum status space_crossover(const struct space *space, const struct strategy *a, const struct strategy *b,
                            struct rng *rng, struct strategy *out, struct error *err) {
    struct parents parents;
    struct strategy child;
    enum status st = parents_open(&parents, a, b, err);
    if (st)
        return st;
    st = build(space, &parents, rng, &child, err);
    if (!st)
        *out = child;
    parents_close(&parents);
    return st;
}
