/* The small changes that space_neighbour picks from. Each changes the draft at random and says whether it found
 * something to change; whether the result is a different strategy is for the caller to see from its id. */
#ifndef STRATEGY_SPACE_MOVES_H
#define STRATEGY_SPACE_MOVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "strategy/space/space_internal.h"

/* Groups as they lie along the order of readiness. */
struct group_view {
    uint32_t n;
    uint32_t *order; /* groups with members, which are variables with all of their shards, by their first member */
    uint32_t *first; /* by group: the place (in the order of readiness) of its first member */
    uint32_t *count; /* by group: members */
};

enum status group_view_open(struct group_view *view, const struct space *space, const struct strategy *strategy,
                            struct error *err);
void group_view_close(struct group_view *view);

/* Moves on merge groups (strategy/space/group_moves.c). */
bool move_merge(struct draft *d, const struct group_view *view);
bool move_split(struct draft *d, const struct group_view *view);
bool move_boundary(struct draft *d, const struct group_view *view);
bool move_regroup(struct draft *d, const struct group_view *view);
bool move_algorithm(struct draft *d, const struct group_view *view);

/* Moves on shards that are synchronized in ways of their own (strategy/space/shards.c). */
bool move_shard(struct draft *d, const struct group_view *view);

/* Moves on what is sharded, kept and gathered ahead (strategy/space/sharded.c). */
bool move_sharded(struct draft *d, const struct group_view *view);
bool move_kept(struct draft *d, const struct group_view *view);
bool move_carried(struct draft *d, const struct group_view *view);
bool move_shard_ranks(struct draft *d, const struct group_view *view);
bool move_prefetch(struct draft *d, const struct group_view *view);

/* The group that comes from servers join: any there is, or a new one (strategy/space/neighbour.c). */
uint32_t group_receiving(struct draft *d, const struct group_view *view, uint64_t partition);

/* Moves on pushes that variables share (strategy/space/pushes.c). */
bool move_share(struct draft *d, const struct group_view *view);
bool move_unshare(struct draft *d, const struct group_view *view);

#endif
