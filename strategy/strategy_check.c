/* The rules that every strategy keeps. Those of slices are in strategy/slices.c. */
#include <stdlib.h>
#include <string.h>

#include "strategy/encoder.h"
#include "strategy/slices.h"
#include "strategy/strategy.h"

/* A builder may set any number; but a file must be able to give the same number, so the limits are the reader's. */
static enum status check_partition_bytes(uint64_t bytes, struct error *err) {
    if (!bytes || (bytes >= STRATEGY_MIN_PARTITION_BYTES && bytes <= STRATEGY_MAX_BYTES))
        return ST_OK;
    return error_set(err, ST_INVALID, "\"partition_bytes\" is %lu; it must be 0 (whole) or from %lu to %lu",
                     (unsigned long)bytes, (unsigned long)STRATEGY_MIN_PARTITION_BYTES,
                     (unsigned long)STRATEGY_MAX_BYTES);
}

static enum status check_partition(const struct variable *v, const struct variable_sync *sync, struct error *err) {
    if (sync->shards == 1)
        return ST_OK;
    if (sync->shards < 1 || sync->shards > STRATEGY_MAX_SHARDS)
        return error_set(err, ST_INVALID, "variable \"%s\" is cut into %u shards; it must be from 1 (whole) to %d",
                         v->name, sync->shards, STRATEGY_MAX_SHARDS);
    if (sync->axis >= v->rank)
        return error_set(err, ST_INVALID, "variable \"%s\" is cut along axis %u but has %u axes", v->name, sync->axis,
                         v->rank);
    if (sync->shards > v->shape[sync->axis])
        return error_set(err, ST_INVALID, "variable \"%s\" is cut into %u shards but axis %u has %lu rows", v->name,
                         sync->shards, sync->axis, (unsigned long)v->shape[sync->axis]);
    return ST_OK;
}

static enum status check_servers(const struct variable *v, const struct variable_sync *sync,
                                 const struct cluster *cluster, struct error *err) {
    uint32_t shards = sync->shards;
    if (!sync->n_servers)
        return error_set(err, ST_INVALID, "variable \"%s\" has no server", v->name);
    if (sync->n_servers > shards)
        return error_set(err, ST_INVALID,
                         "variable \"%s\" has %u servers but %u shard%s: each server needs a shard; cut it into %u",
                         v->name, sync->n_servers, shards, shards == 1 ? "" : "s", sync->n_servers);
    uint64_t seen[CLUSTER_MAX_NODES / 64] = {0}; /* a bit a node */
    for (uint32_t i = 0; i < sync->n_servers; i++) {
        if (sync->servers[i] >= cluster->n_nodes)
            return error_set(err, ST_INVALID, "variable \"%s\" has server %u but the cluster has %u nodes", v->name,
                             sync->servers[i], cluster->n_nodes);
        uint64_t bit = UINT64_C(1) << sync->servers[i] % 64, *word = &seen[sync->servers[i] / 64];
        if (*word & bit)
            return error_set(err, ST_INVALID, "variable \"%s\" names server \"%s\" twice", v->name,
                             cluster->nodes[sync->servers[i]].name);
        *word |= bit;
    }
    return ST_OK;
}

static enum status check_encoding(const struct variable *v, const struct variable_sync *sync, struct error *err) {
    if (sync->encoding != ENCODING_none && v->dtype != DTYPE_f32 && v->dtype != DTYPE_f64)
        return error_set(err, ST_INVALID, "variable \"%s\" is %s: only f32 and f64 can be encoded", v->name,
                         dtype_name(v->dtype));
    return ST_OK;
}

static enum status check_carried(const struct strategy *strategy, const struct variable *v,
                                 const struct variable_sync *sync, struct error *err) {
    const struct group *group = sync->group < strategy->n_groups ? &strategy->groups[sync->group] : NULL;
    if (!group || (!group->gathered_as && !group->summed_as) || dtype_is_float(v->dtype))
        return ST_OK;
    return error_set(err, ST_INVALID, "variable \"%s\" is %s, but group %lu has \"%s\", which is of floats", v->name,
                     dtype_name(v->dtype), (unsigned long)group->id, group->gathered_as ? "gathered_as" : "summed_as");
}

static enum status check_sharded(const struct strategy *strategy, const struct variable *v,
                                 const struct variable_sync *sync, struct error *err) {
    if (sync->group >= strategy->n_groups || !strategy->groups[sync->group].sharded || sync->encoding == ENCODING_none)
        return ST_OK;
    return error_set(err, ST_INVALID, "variable \"%s\" is encoded, but group %lu has \"sharded\": %s", v->name,
                     (unsigned long)strategy->groups[sync->group].id,
                     strategy->groups[sync->group].sharded == SHARDED_parameters && !encoding_is_encoder(sync->encoding)
                         ? "say \"summed_as\" in the group instead"
                         : "leave one of them away");
}

static enum status check_gathered(const struct strategy *strategy, const struct variable *v,
                                  const struct variable_sync *sync, struct error *err) {
    if (sync->group >= strategy->n_groups || v->sparse_rows ||
        strategy->groups[sync->group].algorithm != ALGORITHM_all_gather)
        return ST_OK;
    return error_set(err, ST_INVALID, "variable \"%s\" is dense, but group %lu is gathered: give it another group",
                     v->name, (unsigned long)strategy->groups[sync->group].id);
}

static enum status check_push_number(const struct strategy *strategy, const struct variable *v,
                                     const struct variable_sync *sync, struct error *err) {
    if (sync->push > strategy->n_variables)
        return error_set(err, ST_INVALID, "variable \"%s\" is in push %u; it must be from 1 to %u, or 0 (alone)",
                         v->name, sync->push, strategy->n_variables);
    if (sync->push && sync->shards > 1)
        return error_set(err, ST_INVALID, "variable \"%s\" is cut into %u shards: only whole variables share a push",
                         v->name, sync->shards);
    return ST_OK;
}

static enum status check_part(const struct strategy *strategy, const struct variable *v,
                              const struct variable_sync *sync, const struct cluster *cluster, struct error *err) {
    enum status st = check_encoding(v, sync, err);
    if (!st && sync->kind == SYNC_ALL_REDUCE) {
        st = check_sharded(strategy, v, sync, err);
        if (!st)
            st = check_carried(strategy, v, sync, err);
        if (!st)
            st = check_gathered(strategy, v, sync, err);
        return st ? st : encoder_check(strategy, v, sync, err);
    }
    if (!st)
        st = encoder_check(strategy, v, sync, err);
    if (st)
        return st;
    st = check_partition_bytes(sync->partition_bytes, err);
    if (!st)
        st = check_push_number(strategy, v, sync, err);
    return st ? st : check_servers(v, sync, cluster, err);
}

/* What holds for a shard with an entry of its own, beside the rules of any part. */
static enum status check_entry(const struct variable *v, const struct variable_sync *sync, uint32_t k,
                               struct error *err) {
    const struct variable_sync *part = &sync->each[k];
    if (part->each || part->axis != sync->axis || part->shards != sync->shards)
        return error_set(err, ST_INVALID, "variable \"%s\" is cut in one way, and its entry in another", v->name);
    if (part->kind == SYNC_PARAMETER_SERVER && part->n_servers > 1)
        return error_set(err, ST_INVALID, "variable \"%s\" has %u servers for one shard", v->name, part->n_servers);
    if (part->kind == SYNC_PARAMETER_SERVER && part->push)
        return error_set(err, ST_INVALID, "variable \"%s\" is cut: only whole variables share a push", v->name);
    return ST_OK;
}

/* Whether a part sends touched rows; a group that does not exist is refused later. */
static bool moves_rows(const struct strategy *strategy, const struct variable *v, const struct variable_sync *part) {
    return part->kind == SYNC_PARAMETER_SERVER ||
           (part->group < strategy->n_groups && strategy_moves_rows(strategy, v, part));
}

/* Touched rows are taken to be spread evenly over the shards of axis 0, in whole numbers. Shards with fewer of them
 * would be served, and the others all-reduced, as if somebody knew which they are. */
static enum status check_rows(const struct strategy *strategy, const struct variable *v,
                              const struct variable_sync *sync, uint32_t k, struct error *err) {
    if (!v->sparse_rows || sync->axis ||
        moves_rows(strategy, v, &sync->each[k]) == moves_rows(strategy, v, &sync->each[0]))
        return ST_OK;
    return error_set(err, ST_INVALID,
                     "variable \"%s\" is sparse and cut along axis 0: all of its shards send their touched rows, or "
                     "none; cut another axis",
                     v->name);
}

static enum status check_shard(const struct strategy *strategy, const struct variable *v,
                               const struct variable_sync *sync, uint32_t k, const struct cluster *cluster,
                               struct error *err) {
    struct error found;
    enum status st = check_entry(v, sync, k, &found);
    if (!st)
        st = check_part(strategy, v, &sync->each[k], cluster, &found);
    if (!st)
        st = check_rows(strategy, v, sync, k, &found);
    return st ? error_set(err, st, "shard %u: %s", k, found.message) : ST_OK;
}

enum status strategy_check_variable(const struct strategy *strategy, const struct variable *v,
                                    const struct variable_sync *sync, const struct cluster *cluster,
                                    struct error *err) {
    enum status st = slices_check_variable(strategy, v, sync, err);
    if (!st)
        st = check_partition(v, sync, err);
    if (st || !sync->each)
        return st ? st : check_part(strategy, v, sync, cluster, err);
    if (sync->shards == 1)
        return error_set(err, ST_INVALID, "variable \"%s\" is not cut, and has an entry for each shard", v->name);
    for (uint32_t k = 0; k < sync->shards && !st; k++)
        st = check_shard(strategy, v, sync, k, cluster, err);
    return st;
}

uint32_t strategy_algorithms(const struct strategy *strategy) {
    uint32_t set = 0;
    for (uint32_t g = 0; g < strategy->n_groups; g++)
        set |= 1u << strategy->groups[g].algorithm;
    return set & ~(1u << ALGORITHM_auto);
}

const char *strategy_push_difference(const struct strategy *strategy, const struct model *model, uint32_t a,
                                     uint32_t b) {
    const struct variable_sync *x = &strategy->variables[a], *y = &strategy->variables[b];
    if (x->shards > 1 || y->shards > 1)
        return "shards";
    if (x->servers[0] != y->servers[0])
        return "server";
    if (x->local_reduction != y->local_reduction)
        return "local_reduction";
    if (x->partition_bytes != y->partition_bytes)
        return "partition_bytes";
    return strategy_wire_dtype(&model->variables[a], x) == strategy_wire_dtype(&model->variables[b], y)
               ? NULL
               : "element type";
}

enum status strategy_check_push(const struct strategy *strategy, const struct model *model, uint32_t i,
                                uint32_t *first_of_push, struct error *err) {
    const struct variable_sync *sync = &strategy->variables[i];
    if (sync->each || sync->kind != SYNC_PARAMETER_SERVER || !sync->push)
        return ST_OK;
    uint32_t *first = &first_of_push[sync->push];
    if (*first == UINT32_MAX)
        *first = i;
    const char *difference = strategy_push_difference(strategy, model, i, *first);
    if (!difference)
        return ST_OK;
    return error_set(err, ST_INVALID, "push %u holds \"%s\" and \"%s\", which differ in %s: give them two pushes",
                     sync->push, model->variables[*first].name, model->variables[i].name, difference);
}

/* One dtype on the wire a merge group. `first` has a slot a group: its first member times DTYPE_COUNT, plus that one's
 * type, or UINT32_MAX when no member was seen yet. */
static enum status check_group(const struct strategy *strategy, const struct model *model, uint32_t i,
                               const struct variable_sync *part, uint32_t *first, struct error *err) {
    if (part->group >= strategy->n_groups)
        return error_set(err, ST_INVALID, "variable \"%s\" is in group %u of %u", model->variables[i].name, part->group,
                         strategy->n_groups);
    uint32_t *slot = &first[part->group];
    enum dtype mine = strategy_wire_dtype(&model->variables[i], part);
    if (*slot == UINT32_MAX)
        *slot = i * DTYPE_COUNT + mine;
    enum dtype theirs = (enum dtype)(*slot % DTYPE_COUNT);
    if (mine != theirs)
        return error_set(err, ST_INVALID, "group %lu mixes \"%s\" (%s) and \"%s\" (%s): one dtype a merge group",
                         (unsigned long)strategy->groups[part->group].id, model->variables[*slot / DTYPE_COUNT].name,
                         dtype_name(theirs), model->variables[i].name, dtype_name(mine));
    return ST_OK;
}

static enum status check_groups(const struct strategy *strategy, const struct model *model, uint32_t i, uint32_t *first,
                                struct error *err) {
    const struct variable_sync *sync = &strategy->variables[i];
    enum status st = ST_OK;
    for (uint32_t k = 0; k < sync_parts(sync) && !st; k++)
        if (sync_part(sync, k)->kind == SYNC_ALL_REDUCE)
            st = check_group(strategy, model, i, sync_part(sync, k), first, err);
    return st;
}

enum status strategy_check_group(const struct strategy *strategy, const struct group *group, struct error *err) {
    if (group->sharded && group->algorithm != ALGORITHM_auto && group->algorithm != ALGORITHM_ring)
        return error_set(err, ST_INVALID,
                         "group %lu has \"sharded\" %s, whose halves are a ring's, but \"algorithm\" %s: leave it away",
                         (unsigned long)group->id, sharded_name(group->sharded), algorithm_name(group->algorithm));
    if (group->sharded != SHARDED_parameters && (group->gathered_as || group->summed_as))
        return error_set(
            err, ST_INVALID, "group %lu has \"%s\", which is of \"sharded\" parameters, but \"sharded\" %s",
            (unsigned long)group->id, group->gathered_as ? "gathered_as" : "summed_as", sharded_name(group->sharded));
    if (group->sharded == SHARDED_parameters && strategy->policy != POLICY_fifo)
        return error_set(err, ST_INVALID,
                         "group %lu has \"sharded\" parameters, which are gathered in order: policy fifo, not %s",
                         (unsigned long)group->id, policy_name(strategy->policy));
    if (group->sharded == SHARDED_parameters && strategy->cross_iteration)
        return error_set(err, ST_INVALID,
                         "group %lu has \"sharded\" parameters, which are gathered after the update: "
                         "\"cross_iteration\" false",
                         (unsigned long)group->id);
    return slices_check_group(strategy, group, err);
}

static enum status check_prefetch(const struct strategy *strategy, struct error *err) {
    const uint32_t n = strategy_sharded_parameters(strategy), forward = strategy->forward_prefetch;
    const uint32_t deepest = forward > strategy->backward_prefetch ? forward : strategy->backward_prefetch;
    if (deepest <= strategy_deepest_prefetch(strategy))
        return ST_OK;
    return error_set(err, ST_INVALID, "\"%s\" is %u, and %u group%s \"sharded\" parameters",
                     deepest == forward ? "forward_prefetch" : "backward_prefetch", deepest, n,
                     n == 1 ? " has" : "s have");
}

/* What does not travel in one micro-batch has no way into the next one's sum, which is of other gradients. */
static enum status check_each_encoding(const struct variable_sync *sync, const char *name, struct error *err) {
    for (uint32_t k = 0; k < sync_parts(sync); k++) {
        const enum encoding encoding = sync_part(sync, k)->encoding;
        if (encoding_keeps_back(encoding))
            return error_set(err, ST_INVALID,
                             "variable \"%s\" is encoded as %s, which keeps back what does not travel: "
                             "\"synchronize\" last, not each",
                             name, encoding_name(encoding));
    }
    return ST_OK;
}

static enum status check_each(const struct strategy *strategy, const struct model *model, const struct cluster *cluster,
                              struct error *err) {
    enum status st = ST_OK;
    const bool among_replicas = strategy->synchronize == SYNCHRONIZE_each_all_reduce_last;
    if (among_replicas && strategy->shard_ranks == 0)
        return error_set(err, ST_INVALID,
                         "\"synchronize\" is each_all_reduce_last, which tells replicas of shards when to all-reduce, "
                         "and there are none: each, or \"shard_ranks\"");
    if (!among_replicas && strategy->micro_batches > 1 && strategy->shard_ranks > 0 &&
        strategy->shard_ranks < cluster->n_devices)
        return error_set(err, ST_INVALID,
                         "\"synchronize\" is each, and with \"shard_ranks\" %u replicas add their sums up once an "
                         "iteration: it must be each_all_reduce_last, or last",
                         strategy->shard_ranks);
    for (uint32_t v = 0; v < strategy->n_variables && !st; v++)
        st = check_each_encoding(&strategy->variables[v], model->variables[v].name, err);
    return st;
}

static enum status check_accumulation(const struct strategy *strategy, const struct model *model,
                                      const struct cluster *cluster, struct error *err) {
    if (strategy->micro_batches < 1 || strategy->micro_batches > STRATEGY_MAX_MICRO_BATCHES)
        return error_set(err, ST_INVALID, "\"micro_batches\" is %u; it must be from 1 to %d", strategy->micro_batches,
                         STRATEGY_MAX_MICRO_BATCHES);
    if (strategy->micro_batches > 1 && !consistency_is_plain(&strategy->consistency))
        return error_set(err, ST_INVALID,
                         "%u \"micro_batches\", but workers with a \"consistency\" (%s) send whole updates: leave one "
                         "of them away",
                         strategy->micro_batches, consistency_name(strategy->consistency.kind));
    return strategy->synchronize != SYNCHRONIZE_last ? check_each(strategy, model, cluster, err) : ST_OK;
}

/* Replicas are of parameters: of the other ways to shard, none is known that leaves a part with several devices. */
static enum status check_replicas(const struct strategy *strategy, const struct cluster *cluster, struct error *err) {
    const uint32_t ranks = strategy->shard_ranks;
    if (ranks == 0)
        return ST_OK;
    if (ranks < 2 || cluster->n_devices % ranks > 0)
        return error_set(err, ST_INVALID,
                         "\"shard_ranks\" is %u, and cluster \"%s\" has %u devices: it must divide them and be at "
                         "least 2",
                         ranks, cluster->name, cluster->n_devices);
    for (uint32_t g = 0; g < strategy->n_groups; g++) {
        const enum sharded sharded = strategy->groups[g].sharded;
        if (sharded != SHARDED_none && sharded != SHARDED_parameters)
            return error_set(err, ST_INVALID,
                             "\"shard_ranks\" is of \"sharded\" parameters, but group %lu has %s: leave one of them "
                             "away",
                             (unsigned long)strategy->groups[g].id, sharded_name(sharded));
    }
    if (strategy_sharded_parameters(strategy) == 0)
        return error_set(err, ST_INVALID, "\"shard_ranks\" is %u, and no group has \"sharded\" parameters", ranks);
    return ST_OK;
}

static enum status check_reshard(const struct strategy *strategy, const struct group *group,
                                 const struct cluster *cluster, struct error *err) {
    const uint32_t n = strategy_shard_group(strategy, cluster), ranks = group->reshard_ranks;
    if (group->sharded != SHARDED_parameters || ranks == 0 || (ranks <= n && n % ranks == 0))
        return ST_OK;
    return error_set(err, ST_INVALID,
                     "group %lu has \"reshard_after_forward\" %u, and %u devices share the shards: it must divide them",
                     (unsigned long)group->id, ranks, n);
}

enum status strategy_check(const struct strategy *strategy, const struct model *model, const struct cluster *cluster,
                           struct error *err) {
    if (strategy->n_variables != model->n_variables)
        return error_set(err, ST_INVALID, "a strategy for %u variables, but model \"%s\" has %u", strategy->n_variables,
                         model->name, model->n_variables);
    if (strategy->credit_bytes > STRATEGY_MAX_BYTES && strategy->credit_bytes != CREDIT_UNLIMITED)
        return error_set(err, ST_INVALID, "a credit of %lu bytes; at most %lu, or no limit",
                         (unsigned long)strategy->credit_bytes, (unsigned long)STRATEGY_MAX_BYTES);
    enum status st = check_prefetch(strategy, err);
    if (!st)
        st = check_replicas(strategy, cluster, err);
    if (!st)
        st = check_accumulation(strategy, model, cluster, err);
    for (uint32_t i = 0; i < strategy->n_groups && !st; i++) {
        st = check_partition_bytes(strategy->groups[i].partition_bytes, err);
        if (!st)
            st = strategy_check_group(strategy, &strategy->groups[i], err);
        if (!st)
            st = check_reshard(strategy, &strategy->groups[i], cluster, err);
    }
    if (st)
        return st;
    const size_t n_slots = (size_t)strategy->n_groups + strategy->n_variables + 1;
    uint32_t *first = malloc(n_slots * sizeof *first); /* by group, then by push */
    if (!first)
        return error_no_memory(err);
    memset(first, 0xff, n_slots * sizeof *first);
    for (uint32_t i = 0; i < strategy->n_variables && !st; i++) {
        st = strategy_check_variable(strategy, &model->variables[i], &strategy->variables[i], cluster, err);
        if (!st)
            st = check_groups(strategy, model, i, first, err);
        if (!st)
            st = strategy_check_push(strategy, model, i, first + strategy->n_groups, err);
    }
    free(first);
    if (!st)
        st = encoder_check_groups(strategy, model, err);
    if (!st)
        st = slices_check(strategy, model, err);
    return st ? st : consistency_check(strategy, model, cluster, err);
}
