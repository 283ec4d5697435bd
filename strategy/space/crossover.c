/* Two strategies make a third (the genetic search of AutoSync §3.2).
 *
 * What is good about a strategy lies mostly in stretches of the order of readiness: which neighbours are merged, how
 * the early and the late gradients travel. So a child takes whole runs of that order, from its parents in turn, by
 * multi-point crossover; the number of cuts is log-uniform, so that long runs are common. Group numbers mean nothing
 * across parents: the child starts with the groups of both, and sealing drops those that got no member. If both parents
 * have a group with the same members and settings, the child has it once, so it is never split. */
#include <stdlib.h>
#include <string.h>

#include "strategy/space/space.h"
#include "strategy/space/space_internal.h"

struct parents {
    const struct strategy *of[2];
    uint32_t *group_of[2]; /* by parent and its group: the child's */
};

/* Is group h of b the same as group g of a? `shared` members are in both groups, so the members are the same if neither
 * group has more. */
static bool is_same_group(const struct group *g, const struct group *h, uint32_t shared, uint32_t in_a, uint32_t in_b) {
    return shared == in_a && shared == in_b && g->algorithm == h->algorithm && g->partition_bytes == h->partition_bytes;
}

/* A group of b compared with `like`, the group of a that its first member is in: how many members with the same
 * encoding are in both, and how many members each has. */
struct overlap {
    uint32_t like, shared, in_a, in_b;
};

/* Fill group_of[1]: a group of b that is also one of a has the same number in the child, any other a number of its own.
 * O(variables + groups). */
static void match_groups(const struct parents *parents, struct overlap *overlaps, uint32_t *in_a) {
    const struct strategy *a = parents->of[0], *b = parents->of[1];
    for (uint32_t v = 0; v < a->n_variables; v++)
        if (a->variables[v].kind == SYNC_ALL_REDUCE)
            in_a[a->variables[v].group]++;
    for (uint32_t v = 0; v < b->n_variables; v++) {
        const struct variable_sync *x = &a->variables[v], *y = &b->variables[v];
        if (y->kind != SYNC_ALL_REDUCE)
            continue;
        struct overlap *o = &overlaps[y->group];
        bool both = x->kind == SYNC_ALL_REDUCE && x->encoding == y->encoding;
        if (both && !o->in_b)
            *o = (struct overlap){.like = x->group, .in_a = in_a[x->group]};
        o->in_b++;
        o->shared += both && o->in_a && x->group == o->like;
    }
    for (uint32_t h = 0; h < b->n_groups; h++) {
        const struct overlap *o = &overlaps[h];
        bool same = o->in_a && is_same_group(&a->groups[o->like], &b->groups[h], o->shared, o->in_a, o->in_b);
        parents->group_of[1][h] = same ? o->like : a->n_groups + h;
    }
}

static enum status parents_open(struct parents *parents, const struct strategy *a, const struct strategy *b,
                                struct error *err) {
    struct overlap *overlaps = calloc((size_t)b->n_groups + 1, sizeof *overlaps);
    uint32_t *in_a = calloc((size_t)a->n_groups + 1, sizeof *in_a);
    uint32_t *group_of = calloc((size_t)a->n_groups + b->n_groups + 1, sizeof *group_of);
    enum status st = overlaps && in_a && group_of ? ST_OK : error_no_memory(err);
    if (st) {
        free(group_of);
    } else {
        *parents = (struct parents){{a, b}, {group_of, group_of + a->n_groups}};
        for (uint32_t g = 0; g < a->n_groups; g++)
            group_of[g] = g;
        match_groups(parents, overlaps, in_a);
    }
    free(overlaps);
    free(in_a);
    return st;
}

static void parents_close(struct parents *parents) {
    free(parents->group_of[0]);
}

static enum status take_variable(struct strategy *child, const struct parents *parents, uint32_t from, uint32_t v,
                                 struct error *err) {
    struct variable_sync *sync = &child->variables[v];
    *sync = parents->of[from]->variables[v];
    if (sync->kind == SYNC_ALL_REDUCE) {
        sync->group = parents->group_of[from][sync->group];
        return ST_OK;
    }
    uint32_t *servers = arena_alloc(&child->arena, sync->n_servers, sizeof *servers);
    if (!servers)
        return error_no_memory(err);
    memcpy(servers, sync->servers, sync->n_servers * sizeof *servers);
    sync->servers = servers;
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
