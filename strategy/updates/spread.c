/* See spread.h. */
#include "strategy/updates/spread.h"

#include "base/arena.h"
#include "strategy/updates/aggregate.h"

struct spreading {
    uint32_t n, k;           /* nodes; how many may pass the model on */
    struct update *updates;  /* as if one came from every node */
    uint32_t *order, *group; /* [n] */
    uint32_t *distributors;  /* [n] the first k may pass it on */
    double *arrival_us, *sum_us, *applied_us;
    uint32_t *nodes; /* what comes out */
    bool *first;
    uint32_t out;
};

static bool has_members(const struct spreading *s, uint32_t group) {
    bool has = false;
    for (uint32_t i = 0; i < s->n; i++)
        has = has || s->group[i] == group;
    return has;
}

static bool passes_on(const struct spreading *s, uint32_t node) {
    bool passes = false;
    for (uint32_t g = 0; g < s->k; g++)
        passes = passes || (s->distributors[g] == node && has_members(s, g));
    return passes;
}

static void put(struct spreading *s, uint32_t node, bool first) {
    s->nodes[s->out] = node;
    s->first[s->out++] = first;
}

/* The members of a group, or of TO_SERVER, that pass nothing on. */
static void put_members(struct spreading *s, uint32_t group, bool first) {
    for (uint32_t i = 0; i < s->n; i++)
        if (s->group[i] == group && !passes_on(s, s->updates[i].node))
            put(s, s->updates[i].node, first);
}

static void put_all(struct spreading *s) {
    for (uint32_t g = s->k; g-- > 0;) {
        if (!has_members(s, g))
            continue;
        put(s, s->distributors[g], true);
        put_members(s, g, false);
    }
    put_members(s, TO_SERVER, true);
}

static bool take_memory(struct spreading *s, struct arena *arena) {
    s->updates = arena_alloc(arena, s->n, sizeof *s->updates);
    s->order = arena_alloc(arena, s->n, sizeof *s->order);
    s->group = arena_alloc(arena, s->n, sizeof *s->group);
    s->distributors = arena_alloc(arena, s->n, sizeof *s->distributors);
    s->arrival_us = arena_alloc(arena, s->n, sizeof *s->arrival_us);
    s->sum_us = arena_alloc(arena, s->n, sizeof *s->sum_us);
    s->applied_us = arena_alloc(arena, s->n, sizeof *s->applied_us);
    return s->updates && s->order && s->group && s->distributors && s->arrival_us && s->sum_us && s->applied_us;
}

enum status spread_model(struct calendar *reversed, uint32_t server, double bytes, uint32_t n, uint32_t *nodes,
                         bool *first, uint32_t distributors, const double *rates, struct error *err) {
    struct arena arena = {0};
    struct spreading s = {.n = n, .k = n < distributors ? n : distributors, .nodes = nodes, .first = first};
    enum status st = take_memory(&s, &arena) ? ST_OK : error_no_memory(err);
    for (uint32_t i = 0; i < n && !st; i++) {
        s.updates[i] = (struct update){.node = nodes[i], .bytes = bytes, .available_us = reversed->now_us};
        s.order[i] = i;
        s.distributors[i] = nodes[i];
    }
    if (!st) {
        struct aggregation groups = {
            .group = s.group, .arrival_us = s.arrival_us, .sum_us = s.sum_us, .applied_us = s.applied_us};
        nodes_fastest_first(n, s.distributors, rates);
        st = aggregate_updates(reversed, server, n, s.order, s.updates, s.k, s.distributors, &groups, err);
    }
    if (!st)
        put_all(&s);
    arena_release(&arena);
    return st;
}
