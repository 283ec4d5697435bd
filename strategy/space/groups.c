/* Merge groups of a draft. A message has one element type on the wire, so a group may not mix types. Samplers and moves
 * merge groups without looking at types. Settling then splits the groups that mix types, in one pass: each group heads
 * a chain of the groups that were split off it, one a type. Dense gradients are also split off a group that is
 * gathered, and all-reduced by any algorithm of the space. */
#include <stdlib.h>
#include <string.h>

#include "strategy/space/space.h"
#include "strategy/space/space_internal.h"

struct chain {
    uint32_t next;   /* 0 ends it: group 0 is never split off another */
    enum dtype type; /* DTYPE_COUNT: no member yet */
    bool reduced;    /* split off a gathered group */
};

enum dtype space_wire_type(const struct variable *variable, enum encoding encoding) {
    return encoding == ENCODING_none ? variable->dtype : encoding == ENCODING_f16 ? DTYPE_f16 : DTYPE_bf16;
}

uint32_t group_add(struct draft *d, struct group like) {
    struct strategy *s = &d->strategy;
    if (s->n_groups >= d->group_room) {
        uint32_t room = 2 * s->n_groups + 8;
        struct group *groups = arena_alloc(&s->arena, room, sizeof *groups);
        if (!groups) {
            d->no_memory = true;
            return 0;
        }
        if (s->n_groups)
            memcpy(groups, s->groups, s->n_groups * sizeof *groups);
        s->groups = groups;
        d->group_room = room;
    }
    like.id = s->n_groups ? s->groups[s->n_groups - 1].id + 1 : 0;
    s->groups[s->n_groups] = like;
    return s->n_groups++;
}

/* The group of variable v's type in the chain of its present group, made if it is not there. */
static uint32_t group_of_type(struct draft *d, struct chain *chains, uint32_t v) {
    const struct variable *variable = &d->space->model->variables[v];
    enum dtype type = space_wire_type(variable, d->strategy.variables[v].encoding);
    uint32_t head = d->strategy.variables[v].group, g = head;
    struct group like = d->strategy.groups[head];
    bool reduced = like.algorithm == ALGORITHM_all_gather && !variable->sparse_rows;
    if (chains[g].type == DTYPE_COUNT && !reduced)
        chains[g].type = type;
    while ((chains[g].type != type || chains[g].reduced != reduced) && chains[g].next)
        g = chains[g].next;
    if (chains[g].type == type && chains[g].reduced == reduced)
        return g;
    if (reduced)
        like.algorithm = (enum algorithm)draw_bit(d->rng, space_all_reduces(&d->space->options));
    uint32_t added = group_add(d, like);
    if (d->no_memory)
        return head;
    chains[added] = (struct chain){0, type, reduced};
    chains[g].next = added;
    return added;
}

void groups_settle(struct draft *d) {
    struct strategy *s = &d->strategy;
    size_t most = (size_t)s->n_groups + s->n_variables;
    struct chain *chains = calloc(most ? most : 1, sizeof *chains);
    if (!chains) {
        d->no_memory = true;
        return;
    }
    for (size_t g = 0; g < most; g++)
        chains[g].type = DTYPE_COUNT;
    for (uint32_t v = 0; v < s->n_variables && !d->no_memory; v++)
        if (s->variables[v].kind == SYNC_ALL_REDUCE)
            s->variables[v].group = group_of_type(d, chains, v);
    free(chains);
}
