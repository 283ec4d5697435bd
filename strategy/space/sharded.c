/* What is sharded: drawing it, stepping from it, and its rules. Sharding needs a ring, gradients that are not encoded
 * and, of parameters, policy fifo behind the barrier. A move or a crossover may contradict that. Then a group whose
 * algorithm is another is not sharded any more (groups_settle splits encoded gradients off likewise), but of the
 * schedule sharded parameters take what they need. */
#include "strategy/space/moves.h"
#include "strategy/space/space.h"

static const uint32_t RINGS = 1u << ALGORITHM_auto | 1u << ALGORITHM_ring;

uint32_t space_rings(const struct space_options *options) {
    return options->algorithms & RINGS;
}

/* ---- draws ---- */

static void shard_group(const struct draft *d, uint32_t g, enum sharded sharded) {
    struct group *group = &d->strategy.groups[g];
    if (group->algorithm == ALGORITHM_all_gather)
        return;
    group->sharded = sharded;
    group->reshard_ranks = 0;
    if (sharded && !(RINGS >> group->algorithm & 1))
        group->algorithm = (enum algorithm)draw_bit(d->rng, space_rings(&d->space->options));
}

static uint32_t draw_prefetch(const struct draft *d) {
    return draw_chance(d->rng, 0.1) ? 0 : draw_log_count(d->rng, strategy_deepest_prefetch(&d->strategy));
}

/* Types of their own are tried where gradients may be encoded. */
bool sharded_may_round(const struct space *space) {
    return space->options.encodings & (1u << ENCODING_f16 | 1u << ENCODING_bf16);
}

static enum carried draw_carried(const struct draft *d) {
    const uint32_t halves = d->space->options.encodings & (1u << ENCODING_f16 | 1u << ENCODING_bf16);
    if (draw_chance(d->rng, 0.4))
        return CARRIED_own;
    return draw_bit(d->rng, halves) == ENCODING_f16 ? CARRIED_f16 : CARRIED_bf16;
}

/* Among how many devices parts may be kept between the passes, so that their second gather stays in nodes; 0: not. */
static uint32_t ranks_in_nodes(const struct draft *d) {
    const struct cluster *cluster = d->space->cluster;
    return cluster_ranks_in_nodes(cluster, strategy_shard_group(&d->strategy, cluster));
}

/* Most people gather one group ahead, and keep what was gathered for all groups or for none. */
static void draw_parameters(struct draft *d) {
    struct strategy *s = &d->strategy;
    const double kept = (double)rng_below(d->rng, 3) / 2;
    s->policy = POLICY_fifo;
    s->cross_iteration = false;
    for (uint32_t g = 0; g < s->n_groups; g++)
        s->groups[g].keeps_gathered = s->groups[g].sharded == SHARDED_parameters && draw_chance(d->rng, kept);
    const uint32_t in_nodes = ranks_in_nodes(d);
    if (in_nodes && draw_chance(d->rng, 0.25))
        for (uint32_t g = 0; g < s->n_groups; g++)
            s->groups[g].reshard_ranks =
                s->groups[g].sharded == SHARDED_parameters && !s->groups[g].keeps_gathered ? in_nodes : 0;
    if (draw_chance(d->rng, 0.5)) {
        s->forward_prefetch = draw_prefetch(d);
        s->backward_prefetch = draw_prefetch(d);
    }
    if (!sharded_may_round(d->space) || draw_chance(d->rng, 0.5))
        return;
    const enum carried gathered = draw_carried(d), summed = draw_carried(d);
    for (uint32_t g = 0; g < s->n_groups; g++) {
        s->groups[g].gathered_as = gathered;
        s->groups[g].summed_as = summed;
    }
}

void sharded_draw(struct draft *d, bool each_its_own) {
    struct strategy *s = &d->strategy;
    uint32_t set = d->space->options.sharded;
    if (set == 1u << SHARDED_none || d->no_memory)
        return;
    const enum sharded most = (enum sharded)draw_bit(d->rng, set);
    set &= space_sharded_up_to(most);
    for (uint32_t g = 0; g < s->n_groups; g++)
        shard_group(d, g, each_its_own ? (enum sharded)draw_bit(d->rng, set) : most);
    if (strategy_sharded_parameters(s) > 0)
        draw_parameters(d);
}

/* ---- moves ---- */

/* Groups that change alike: picked[0..n). One that is anywhere, or those from one on to either end of the order. */
struct picked {
    uint32_t n, one;
    const uint32_t *groups;
};

static bool pick_groups(const struct draft *d, const struct group_view *view, struct picked *out) {
    if (!d->strategy.n_groups)
        return false;
    *out = (struct picked){.n = 1, .one = (uint32_t)rng_below(d->rng, d->strategy.n_groups)};
    if (!view->n || draw_chance(d->rng, 0.5))
        return true;
    const uint32_t at = (uint32_t)rng_below(d->rng, view->n);
    const bool up = draw_chance(d->rng, 0.5);
    out->groups = view->order + (up ? at : 0);
    out->n = up ? view->n - at : at + 1;
    return true;
}

static uint32_t picked_at(const struct picked *picked, uint32_t i) {
    return picked->groups ? picked->groups[i] : picked->one;
}

bool move_sharded(struct draft *d, const struct group_view *view) {
    struct picked picked;
    const enum sharded sharded = (enum sharded)draw_bit(d->rng, d->space->options.sharded);
    if (!pick_groups(d, view, &picked))
        return false;
    for (uint32_t i = 0; i < picked.n; i++)
        shard_group(d, picked_at(&picked, i), sharded);
    return true;
}

/* All of what was gathered, a node's devices their parts of it, or nothing. */
bool move_kept(struct draft *d, const struct group_view *view) {
    struct picked picked;
    if (!strategy_sharded_parameters(&d->strategy) || !pick_groups(d, view, &picked))
        return false;
    const bool kept = draw_chance(d->rng, 0.5);
    const uint32_t in_nodes = kept ? 0 : ranks_in_nodes(d), ranks = in_nodes && draw_chance(d->rng, 0.5) ? in_nodes : 0;
    for (uint32_t i = 0; i < picked.n; i++) {
        struct group *group = &d->strategy.groups[picked_at(&picked, i)];
        group->keeps_gathered = kept;
        group->reshard_ranks = group->sharded == SHARDED_parameters ? ranks : 0;
    }
    return true;
}

bool move_carried(struct draft *d, const struct group_view *view) {
    struct picked picked;
    if (!strategy_sharded_parameters(&d->strategy) || !pick_groups(d, view, &picked))
        return false;
    const bool gathers = draw_chance(d->rng, 0.5);
    const enum carried carried = draw_carried(d);
    for (uint32_t i = 0; i < picked.n; i++) {
        struct group *group = &d->strategy.groups[picked_at(&picked, i)];
        *(gathers ? &group->gathered_as : &group->summed_as) = carried;
    }
    return true;
}

bool move_prefetch(struct draft *d, const struct group_view *view) {
    (void)view;
    if (!strategy_sharded_parameters(&d->strategy))
        return false;
    uint32_t *ahead = draw_chance(d->rng, 0.5) ? &d->strategy.forward_prefetch : &d->strategy.backward_prefetch;
    const uint32_t before = *ahead;
    *ahead = draw_chance(d->rng, 0.3)                 ? draw_prefetch(d)
             : draw_chance(d->rng, 0.5) && before > 0 ? before - 1
                                                      : before + 1; /* sharded_settle knows the most */
    return true;
}

/* Another size of shard groups (HSDP), or all devices. */
bool move_shard_ranks(struct draft *d, const struct group_view *view) {
    (void)view;
    const uint32_t n = d->space->cluster->n_devices;
    const uint32_t ranks = 1 + (uint32_t)rng_below(d->rng, n);
    if (!strategy_sharded_parameters(&d->strategy) || ranks < 2 || n % ranks > 0)
        return false;
    d->strategy.shard_ranks = ranks;
    return true;
}

/* ---- rules ---- */

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
    return RINGS >> group->algorithm & 1 && (group->sharded != SHARDED_parameters || fifo);
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

/* What is kept back cannot go with the next micro-batch's sum, and replicas have a way of their own to sum each. */
static void settle_sums(struct strategy *s) {
    if (s->synchronize == (s->shard_ranks ? SYNCHRONIZE_each : SYNCHRONIZE_each_all_reduce_last))
        s->synchronize = SYNCHRONIZE_last;
    for (uint32_t v = 0; v < s->n_variables; v++)
        for (uint32_t k = 0; k < sync_parts(&s->variables[v]); k++)
            if (encoding_keeps_back(sync_part(&s->variables[v], k)->encoding))
                s->synchronize = SYNCHRONIZE_last;
}

static bool may_be(const struct space_options *options, enum carried carried, const struct variable *variable) {
    if (!carried_rounds(carried, variable->dtype))
        return !carried || dtype_is_float(variable->dtype);
    return dtype_is_float(variable->dtype) && (carried == CARRIED_f16    ? options->encodings >> ENCODING_f16 & 1
                                               : carried == CARRIED_bf16 ? options->encodings >> ENCODING_bf16 & 1
                                                                         : options->encodings != 1u << ENCODING_none);
}

bool space_may_carry(const struct space_options *options, const struct group *group, const struct variable *variable) {
    return may_be(options, group->gathered_as, variable) && may_be(options, group->summed_as, variable);
}

/* Of sharded parameters alone, and of these only floats, may a type be another one. */
static void settle_carried(const struct space *space, struct strategy *s) {
    for (uint32_t g = 0; g < s->n_groups; g++)
        if (s->groups[g].sharded != SHARDED_parameters)
            s->groups[g].gathered_as = s->groups[g].summed_as = CARRIED_own;
    for (uint32_t v = 0; v < s->n_variables; v++)
        for (uint32_t k = 0; k < sync_parts(&s->variables[v]) && !dtype_is_float(space->model->variables[v].dtype);
             k++) {
            const struct variable_sync *part = sync_part(&s->variables[v], k);
            if (part->kind == SYNC_ALL_REDUCE)
                s->groups[part->group].gathered_as = s->groups[part->group].summed_as = CARRIED_own;
        }
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
    settle_carried(space, s);
    settle_replicas(space, s);
    settle_sums(s);
    s->forward_prefetch = at_most(s->forward_prefetch, strategy_deepest_prefetch(s));
    s->backward_prefetch = at_most(s->backward_prefetch, strategy_deepest_prefetch(s));
    if (strategy_sharded_parameters(s) > 0) {
        s->policy = POLICY_fifo;
        s->cross_iteration = false;
    }
    return true;
}
