/* Moves on merge groups and the variables that are in them with all of their shards. Groups that lie next to each other
 * in the order of readiness merge, split, and hand over members at their common boundary; regrouping sends one variable
 * anywhere, so that the moves connect the whole space and not only its contiguous part. */
#include <stdlib.h>

#include "strategy/space/moves.h"
#include "strategy/space/space.h"

static void count_members(struct group_view *view, const struct space *space, const struct strategy *s) {
    for (uint32_t i = 0; i < s->n_variables; i++) {
        const struct variable_sync *sync = &s->variables[space->ready[i]];
        if (sync->kind != SYNC_ALL_REDUCE || sync->each)
            continue;
        if (!view->count[sync->group]++) {
            view->first[sync->group] = i;
            view->order[view->n++] = sync->group;
        }
    }
}

enum status group_view_open(struct group_view *view, const struct space *space, const struct strategy *strategy,
                            struct error *err) {
    size_t n = (size_t)strategy->n_groups + 1;
    *view = (struct group_view){0};
    view->order = calloc(n, sizeof *view->order);
    view->first = calloc(n, sizeof *view->first);
    view->count = calloc(n, sizeof *view->count);
    if (!view->order || !view->first || !view->count) {
        group_view_close(view);
        return error_no_memory(err);
    }
    count_members(view, space, strategy);
    return ST_OK;
}

void group_view_close(struct group_view *view) {
    free(view->order);
    free(view->first);
    free(view->count);
}

static bool in_group(const struct draft *d, uint32_t v, uint32_t group) {
    const struct variable_sync *sync = &d->strategy.variables[v];
    return sync->kind == SYNC_ALL_REDUCE && sync->group == group && !sync->each;
}

static enum dtype type_of(const struct draft *d, uint32_t v) {
    return space_wire_type(&d->space->model->variables[v], d->strategy.variables[v].encoding);
}

static enum dtype type_of_group(const struct draft *d, const struct group_view *view, uint32_t group) {
    return type_of(d, d->space->ready[view->first[group]]);
}

/* A random group and the next one of the same type; false when there is none after it. */
static bool pick_neighbours(const struct draft *d, const struct group_view *view, uint32_t *a, uint32_t *b) {
    if (view->n < 2)
        return false;
    uint32_t i = (uint32_t)rng_below(d->rng, view->n - 1);
    *a = view->order[i];
    for (i++; i < view->n; i++)
        if (type_of_group(d, view, view->order[i]) == type_of_group(d, view, *a)) {
            *b = view->order[i];
            return true;
        }
    return false;
}

bool move_merge(struct draft *d, const struct group_view *view) {
    uint32_t a, b;
    if (!pick_neighbours(d, view, &a, &b))
        return false;
    for (uint32_t v = 0; v < d->strategy.n_variables; v++)
        if (in_group(d, v, b))
            d->strategy.variables[v].group = a;
    return true;
}

/* Send the members from the skip-th on, in the order of readiness, to a new group. */
bool move_split(struct draft *d, const struct group_view *view) {
    if (!view->n)
        return false;
    uint32_t group = view->order[rng_below(d->rng, view->n)];
    if (view->count[group] < 2)
        return false;
    uint32_t skip = 1 + (uint32_t)rng_below(d->rng, view->count[group] - 1);
    uint32_t added = group_add(d, d->strategy.groups[group]);
    for (uint32_t i = 0; i < d->strategy.n_variables && !d->no_memory; i++) {
        uint32_t v = d->space->ready[i];
        if (in_group(d, v, group) && !(skip && skip--))
            d->strategy.variables[v].group = added;
    }
    return true;
}

/* The last members of one group join the next, or the first ones of that join this: few more often than many. */
bool move_boundary(struct draft *d, const struct group_view *view) {
    uint32_t a, b, n = d->strategy.n_variables;
    if (!pick_neighbours(d, view, &a, &b))
        return false;
    bool forward = draw_chance(d->rng, 0.5);
    uint32_t from = forward ? a : b, to = forward ? b : a;
    if (view->count[from] < 2)
        return false;
    uint32_t left = draw_log_count(d->rng, view->count[from] - 1);
    for (uint32_t i = 0; i < n && left; i++) {
        uint32_t v = d->space->ready[forward ? n - 1 - i : i];
        if (in_group(d, v, from)) {
            d->strategy.variables[v].group = to;
            left--;
        }
    }
    return true;
}

/* One variable leaves for any group of its type, or for one of its own with the old one's settings. */
bool move_regroup(struct draft *d, const struct group_view *view) {
    uint32_t v = (uint32_t)rng_below(d->rng, d->strategy.n_variables);
    struct variable_sync *sync = &d->strategy.variables[v];
    if (sync->kind != SYNC_ALL_REDUCE || sync->each)
        return false;
    uint32_t pick = (uint32_t)rng_below(d->rng, view->n + 1);
    if (pick == view->n) {
        uint32_t added = group_add(d, d->strategy.groups[sync->group]);
        sync->group = d->no_memory ? sync->group : added;
        return true;
    }
    if (type_of_group(d, view, view->order[pick]) != type_of(d, v))
        return false;
    sync->group = view->order[pick];
    return true;
}

/* The sparse members of one group, or of all, leave for a gathered group of their own. */
static bool gather(struct draft *d, const struct group_view *view) {
    bool any = false, all = draw_chance(d->rng, 0.5);
    uint32_t picked = view->order[rng_below(d->rng, view->n)];
    struct group like = d->strategy.groups[picked];
    like.algorithm = ALGORITHM_all_gather;
    uint32_t added = group_add(d, like);
    for (uint32_t v = 0; v < d->strategy.n_variables && !d->no_memory; v++) {
        struct variable_sync *sync = &d->strategy.variables[v];
        if (sync->kind != SYNC_ALL_REDUCE || sync->each || !d->space->model->variables[v].sparse_rows ||
            (!all && sync->group != picked))
            continue;
        sync->group = added;
        any = true;
    }
    return any;
}

bool move_algorithm(struct draft *d, const struct group_view *view) {
    if (!view->n)
        return false;
    enum algorithm algorithm = (enum algorithm)draw_bit(d->rng, d->space->options.algorithms);
    if (algorithm == ALGORITHM_all_gather)
        return gather(d, view);
    if (draw_chance(d->rng, 0.5)) {
        d->strategy.groups[view->order[rng_below(d->rng, view->n)]].algorithm = algorithm;
        return true;
    }
    for (uint32_t i = 0; i < view->n; i++)
        d->strategy.groups[view->order[i]].algorithm = algorithm;
    return true;
}
