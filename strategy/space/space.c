/* Making a space: checking its options, the order of readiness, and what a server on each node can carry. */
#include "strategy/space/space.h"

#include "strategy/encoder.h"
#include "strategy/space/ready_order.h"
#include "strategy/space/space_internal.h"

struct space_options space_default_options(void) {
    return (struct space_options){
        .all_reduce = true,
        .parameter_server = true,
        .share_pushes = true,
        .each_shard = true,
        .order_pulls = true,
        .cross_iteration = true,
        .algorithms = (1u << ALGORITHM_COUNT) - 1,
        .policies = 1u << POLICY_fifo | 1u << POLICY_priority,
        .encodings = 1u << ENCODING_none,
        .sharded = 1u << SHARDED_none,
        .max_shards = 64,
        .min_partition_bytes = 64 << 10,
        .max_partition_bytes = 64 << 20,
        .min_credit_bytes = 64 << 10,
        .max_credit_bytes = 64 << 20,
    };
}

uint32_t space_sharded_up_to(enum sharded most) {
    return (2u << most) - 1;
}

uint32_t space_all_reduces(const struct space_options *options) {
    return options->algorithms & ~(1u << ALGORITHM_all_gather);
}

static enum status check_range(uint64_t min, uint64_t max, const char *what, struct error *err) {
    if (min < SPACE_MIN_BYTES || min > max || max > UINT64_C(1) << 40)
        return error_set(err, ST_INVALID, "%s size: the range must rise and lie within 4 KiB and 1 TiB", what);
    return ST_OK;
}

static enum status check_options(const struct space_options *o, struct error *err) {
    if (!o->all_reduce && !o->parameter_server)
        return error_set(err, ST_INVALID, "neither all_reduce nor parameter_server is allowed; allow one");
    if (!space_all_reduces(o) || o->algorithms >> ALGORITHM_COUNT)
        return error_set(err, ST_INVALID, "the set of all-reduce algorithms is empty or has unknown members");
    if (!o->policies || o->policies & ~(1u << POLICY_fifo | 1u << POLICY_priority))
        return error_set(err, ST_INVALID,
                         "policies to search are fifo and priority, at least one of them; preemptive needs an exact "
                         "schedule");
    if (!(o->encodings & 1u << ENCODING_none) || o->encodings >> ENCODING_COUNT)
        return error_set(err, ST_INVALID, "the set of encodings must hold none and no unknown ones");
    if (!(o->sharded & 1u << SHARDED_none) || o->sharded >> SHARDED_COUNT)
        return error_set(err, ST_INVALID, "the set of what may be sharded must hold none and nothing unknown");
    if (o->max_shards < 1 || o->max_shards > SPACE_MAX_SHARDS)
        return error_set(err, ST_INVALID, "max_shards must be within 1 and %d", SPACE_MAX_SHARDS);
    enum status st = check_range(o->min_partition_bytes, o->max_partition_bytes, "partition", err);
    return st ? st : check_range(o->min_credit_bytes, o->max_credit_bytes, "credit", err);
}

/* A server exchanges with every other node at once. So its rate is that of its NIC, or the sum of the others' rates if
 * that is less. In the sum, a narrower link of a peer to or from the server stands in place of the peer's NIC. */
static void fill_rates(const struct cluster *cluster, double *rate, double *in, double *out) {
    double all = 0.0;
    for (uint32_t i = 0; i < cluster->n_nodes; i++)
        all += cluster->nodes[i].nic_gbit_per_s;
    for (uint32_t i = 0; i < cluster->n_nodes; i++)
        in[i] = out[i] = all - cluster->nodes[i].nic_gbit_per_s;
    for (uint32_t i = 0; i < cluster->n_links; i++) {
        const struct link *link = &cluster->links[i];
        double from = cluster->nodes[link->from].nic_gbit_per_s, to = cluster->nodes[link->to].nic_gbit_per_s;
        if (link->gbit_per_s < from)
            in[link->to] += link->gbit_per_s - from;
        if (link->gbit_per_s < to)
            out[link->from] += link->gbit_per_s - to;
    }
    for (uint32_t i = 0; i < cluster->n_nodes; i++) {
        double least = cluster->nodes[i].nic_gbit_per_s;
        if (cluster->n_nodes > 1 && in[i] < least)
            least = in[i];
        if (cluster->n_nodes > 1 && out[i] < least)
            least = out[i];
        rate[i] = 125.0 * least;
    }
}

static enum status fill(struct space *space, struct error *err) {
    uint32_t n = space->model->n_variables, n_nodes = space->cluster->n_nodes;
    uint32_t *ready = arena_alloc(&space->arena, n, sizeof *ready);
    uint32_t *place = arena_alloc(&space->arena, n, sizeof *place);
    double *rate = arena_alloc(&space->arena, 3 * (size_t)n_nodes, sizeof *rate);
    if (!ready || !place || !rate)
        return error_no_memory(err);
    enum status st = ready_order(space->model, ready, err);
    if (st)
        return st;
    for (uint32_t i = 0; i < n; i++) {
        place[ready[i]] = i;
        space->sparse = space->sparse || space->model->variables[i].sparse_rows;
    }
    if (!space->sparse)
        space->options.algorithms = space_all_reduces(&space->options);
    if (!space->options.all_reduce || !space_rings(&space->options))
        space->options.sharded = 1u << SHARDED_none;
    if (!(space->options.policies >> POLICY_fifo & 1))
        space->options.sharded &= ~(1u << SHARDED_parameters);
    fill_rates(space->cluster, rate, rate + n_nodes, rate + 2 * (size_t)n_nodes);
    for (uint32_t i = 0; i < n_nodes; i++)
        space->several_devices = space->several_devices || space->cluster->nodes[i].devices > 1;
    space->ready = ready;
    space->place = place;
    space->rate = rate;
    return ST_OK;
}

enum status space_init(struct space *out, const struct model *model, const struct cluster *cluster,
                       const struct space_options *options, struct error *err) {
    struct space space = {.model = model, .cluster = cluster, .options = *options};
    enum status st = check_options(options, err);
    if (!st)
        st = fill(&space, err);
    if (st)
        space_release(&space);
    else
        *out = space;
    return st;
}

void space_release(struct space *space) {
    arena_release(&space->arena);
}

static bool partition_allowed(const struct space_options *o, uint64_t bytes) {
    return !bytes || (!o->whole_messages && bytes >= o->min_partition_bytes && bytes <= o->max_partition_bytes);
}

static bool credit_allowed(const struct space_options *o, uint64_t bytes) {
    if (o->usual_credit)
        return bytes ? bytes == CREDIT_UNLIMITED && o->parameter_server : o->all_reduce;
    return !bytes || bytes == CREDIT_UNLIMITED || (bytes >= o->min_credit_bytes && bytes <= o->max_credit_bytes);
}

static bool allows_part(const struct space_options *o, const struct strategy *strategy, const struct variable *variable,
                        const struct variable_sync *sync) {
    if (!(o->encodings >> sync->encoding & 1))
        return false;
    if (sync->kind == SYNC_PARAMETER_SERVER)
        return o->parameter_server && partition_allowed(o, sync->partition_bytes) && (o->share_pushes || !sync->push);
    const struct group *group = &strategy->groups[sync->group];
    const bool own_way = encoding_is_encoder(sync->encoding); /* its group has no algorithm */
    return o->all_reduce && o->sharded >> group->sharded & 1 && (own_way || o->algorithms >> group->algorithm & 1) &&
           partition_allowed(o, group->partition_bytes) && space_may_carry(o, group, variable);
}

bool space_allows_variable(const struct space *space, const struct strategy *strategy, uint32_t v) {
    const struct space_options *o = &space->options;
    const struct variable_sync *sync = &strategy->variables[v];
    bool ok = sync->shards <= o->max_shards && (o->each_shard || !sync->each);
    for (uint32_t k = 0; k < sync_parts(sync) && ok; k++)
        ok = allows_part(o, strategy, &space->model->variables[v], sync_part(sync, k));
    return ok;
}

bool space_allows_schedule(const struct space *space, const struct strategy *strategy) {
    const struct space_options *o = &space->options;
    return consistency_is_plain(&strategy->consistency) && o->policies >> strategy->policy & 1 &&
           (o->cross_iteration || !strategy->cross_iteration) && (o->order_pulls || !strategy->pulls_by_priority) &&
           credit_allowed(o, strategy->credit_bytes);
}

bool space_permits(const struct space *space, const struct strategy *strategy) {
    const struct space_options *o = &space->options;
    bool ok = true;
    for (uint32_t g = 0; g < strategy->n_groups && ok; g++)
        ok = o->sharded >> strategy->groups[g].sharded & 1;
    for (uint32_t v = 0; v < strategy->n_variables && ok; v++)
        for (uint32_t k = 0; k < sync_parts(&strategy->variables[v]) && ok; k++) {
            const struct variable_sync *part = sync_part(&strategy->variables[v], k);
            const struct group *group = part->kind == SYNC_ALL_REDUCE ? &strategy->groups[part->group] : NULL;
            ok = o->encodings >> part->encoding & 1 &&
                 (!group || space_may_carry(o, group, &space->model->variables[v]));
        }
    return ok;
}

bool space_contains(const struct space *space, const struct strategy *strategy) {
    bool ok = space_allows_schedule(space, strategy);
    for (uint32_t v = 0; v < strategy->n_variables && ok; v++)
        ok = space_allows_variable(space, strategy, v);
    return ok;
}
