/* Sharding needs a ring, gradients that are not encoded and, of parameters, policy fifo behind the barrier. A move or a
 * crossover may contradict that. Then a group whose algorithm is another is not sharded any more (groups_settle splits
 * encoded gradients off likewise), but of the schedule sharded parameters take what they need. */
#include "strategy/space/space.h"
#include "strategy/space/space_internal.h"

static bool find_members(struct strategy *s, bool **has_members) {
    bool *has = *has_members = arena_alloc(&s->arena, s->n_groups, sizeof *has);
    for (uint32_t v = 0; v < s->n_variables && has; v++)
        for (uint32_t k = 0; k < sync_parts(&s->variables[v]); k++)
            if (sync_part(&s->variables[v], k)->kind == SYNC_ALL_REDUCE)
                has[sync_part(&s->variables[v], k)->group] = true;
    return has;
}

static bool may_be_sharded(const struct space *space, const struct group *group) {
    const bool fifo = space->options.policies >> POLICY_fifo & 1;
    return (group->algorithm == ALGORITHM_auto || group->algorithm == ALGORITHM_ring) &&
           (group->sharded != SHARDED_parameters || fifo);
}

static uint32_t at_most(uint32_t prefetch, uint32_t n) {
    return prefetch < n ? prefetch : n;
}

/* Groups of a parent without replicas, or with others, have come: what does not agree any more goes. */
static void settle_replicas(const struct space *space, struct strategy *s) {
    bool others = strategy_sharded_parameters(s) == 0;
    for (uint32_t g = 0; g < s->n_groups; g++)
        others |= s->groups[g].sharded == SHARDED_optimizer || s->groups[g].sharded == SHARDED_gradients;
    if (others)
        s->shard_ranks = 0;
    if (s->shard_ranks == 0 && s->synchronize == SYNCHRONIZE_each_all_reduce_last)
        s->synchronize = SYNCHRONIZE_each;
    const uint32_t n = strategy_shard_group(s, space->cluster);
    for (uint32_t g = 0; g < s->n_groups; g++)
        if (s->groups[g].reshard_ranks > 0 && n % s->groups[g].reshard_ranks > 0)
            s->groups[g].reshard_ranks = 0;
}

bool sharded_settle(const struct space *space, struct strategy *s) {
    bool *has_members;
    if (s->n_groups > 0 && !find_members(s, &has_members))
        return false;
    for (uint32_t g = 0; g < s->n_groups; g++)
        if (!has_members[g] || !may_be_sharded(space, &s->groups[g])) { /* sealing drops those without members */
            s->groups[g].sharded = SHARDED_none;
            s->groups[g].keeps_gathered = false;
        }
    settle_replicas(space, s);
    s->forward_prefetch = at_most(s->forward_prefetch, strategy_deepest_prefetch(s));
    s->backward_prefetch = at_most(s->backward_prefetch, strategy_deepest_prefetch(s));
    if (strategy_sharded_parameters(s) > 0) {
        s->policy = POLICY_fifo;
        s->cross_iteration = false;
    }
    return true;
}
