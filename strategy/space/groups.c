/* Merge groups of a draft. A message has one element type on the wire, so a group may not mix types. Samplers and moves
 * merge groups without looking at types. Settling then splits the groups that mix types, in one pass: each group heads
 * a chain of the groups that were split off it, one a type and encoder. Dense gradients are also split off a group that
 * is gathered, and all-reduced by any algorithm of the space; encoded ones are split off a group that is sharded. */
#include <stdlib.h>
#include <string.h>

#include "strategy/encoder.h"
#include "strategy/space/space.h"
#include "strategy/space/space_internal.h"

struct chain {
    uint32_t next;   /* 0 ends it: group 0 is never split off another */
    enum dtype type; /* DTYPE_COUNT: no member yet */
    bool apart;      /* split off a gathered or a sharded group, since it may not be that */
    enum encoding encoder;
    double figure;
};

static bool is_like(const struct chain *a, const struct chain *b) {
    return a->type == b->type && a->apart == b->apart && a->encoder == b->encoder && a->figure == b->figure;
}

enum dtype space_wire_type(const struct variable *variable, enum encoding encoding) {
    return encoding == ENCODING_f16 ? DTYPE_f16 : encoding == ENCODING_bf16 ? DTYPE_bf16 : variable->dtype;
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

/* The group for the type of a part of variable v in the chain of its present group, made if it is not there. */
static uint32_t group_of_type(struct draft *d, struct chain *chains, uint32_t v, const struct variable_sync *part) {
    const struct variable *variable = &d->space->model->variables[v];
    uint32_t head = part->group, g = head;
    struct group like = d->strategy.groups[head];
    const bool reduced = like.algorithm == ALGORITHM_all_gather && !variable->sparse_rows;
    const bool apart = reduced || (like.sharded && part->encoding != ENCODING_none);
    const bool encoded = encoding_is_encoder(part->encoding);
    const struct chain own = {0, space_wire_type(variable, part->encoding), apart,
                              encoded ? part->encoding : ENCODING_none, encoded ? part->figure : 0};
    if (chains[g].type == DTYPE_COUNT && !apart)
        chains[g] = (struct chain){chains[g].next, own.type, apart, own.encoder, own.figure};
    while (!is_like(&chains[g], &own) && chains[g].next)
        g = chains[g].next;
    if (is_like(&chains[g], &own))
        return g;
    if (reduced)
        like.algorithm = (enum algorithm)draw_bit(d->rng, space_all_reduces(&d->space->options));
    if (apart)
        like.sharded = SHARDED_none;
    uint32_t added = group_add(d, like);
    if (d->no_memory)
        return head;
    chains[added] = own;
    chains[g].next = added;
    return added;
}

void groups_settle(struct draft *d) {
    struct strategy *s = &d->strategy;
    size_t most = s->n_groups;
    for (uint32_t v = 0; v < s->n_variables; v++)
        most += sync_parts(&s->variables[v]);
    struct chain *chains = calloc(most ? most : 1, sizeof *chains);
    if (!chains) {
        d->no_memory = true;
        return;
    }
    for (size_t g = 0; g < most; g++)
        chains[g].type = DTYPE_COUNT;
    for (uint32_t v = 0; v < s->n_variables; v++)
        for (uint32_t k = 0; k < sync_parts(&s->variables[v]) && !d->no_memory; k++) {
            struct variable_sync *part = sync_edit_part(&s->variables[v], k);
            if (part->kind == SYNC_ALL_REDUCE)
                part->group = group_of_type(d, chains, v, part);
        }
    free(chains);
}
