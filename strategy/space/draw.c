/* The single draws that every sampler is made of, and the draft that they fill.
 *
 * Sizes are log-uniform, because what matters about a partition or credit is its order of magnitude, and whole
 * multiples of 4 KiB, because no machine can tell finer ones apart. */
#include <math.h>
#include <stdlib.h>

#include "strategy/space/space.h"
#include "strategy/space/space_internal.h"

enum { QUANTUM = SPACE_MIN_BYTES };

enum status draft_open(struct draft *d, const struct space *space, struct rng *rng, struct error *err) {
    uint32_t n = space->cluster->n_nodes;
    *d = (struct draft){.space = space, .rng = rng};
    d->nodes = calloc(n, sizeof *d->nodes);
    d->weight = calloc(n, sizeof *d->weight);
    d->load = calloc(n, sizeof *d->load);
    d->allowed = calloc(n, sizeof *d->allowed);
    if (!d->nodes || !d->weight || !d->load || !d->allowed) {
        draft_close(d);
        return error_no_memory(err);
    }
    for (uint32_t i = 0; i < n; i++)
        d->nodes[i] = i;
    servers_allow_all(d);
    return ST_OK;
}

void draft_close(struct draft *d) {
    free(d->nodes);
    free(d->weight);
    free(d->load);
    free(d->allowed);
}

enum status draft_finish(struct draft *d, struct strategy *out, struct error *err) {
    shards_settle(d);
    encoders_settle(d);
    groups_settle(d);
    encoders_settle_groups(d);
    pushes_settle(d);
    d->no_memory = d->no_memory || !sharded_settle(d->space, &d->strategy);
    enum status st = d->no_memory ? error_no_memory(err) : ST_OK;
    if (!st)
        st = strategy_seal(&d->strategy, d->space->model, d->space->cluster, err);
    if (st)
        strategy_release(&d->strategy);
    else
        *out = d->strategy;
    return st;
}

bool draw_chance(struct rng *rng, double p) {
    return rng_uniform(rng) < p;
}

uint32_t draw_bit(struct rng *rng, uint32_t set) {
    uint32_t skip = (uint32_t)rng_below(rng, (uint64_t)__builtin_popcount(set));
    for (; skip; skip--)
        set &= set - 1;
    return (uint32_t)__builtin_ctz(set);
}

uint64_t draw_size(struct rng *rng, uint64_t min, uint64_t max) {
    uint64_t bytes = (uint64_t)rng_log_between(rng, (double)min, (double)max + 1.0) / QUANTUM * QUANTUM;
    return bytes < min ? min : bytes > max ? max : bytes;
}

uint64_t draw_partition(const struct draft *d, double whole) {
    const struct space_options *o = &d->space->options;
    return o->whole_messages || draw_chance(d->rng, whole)
               ? 0
               : draw_size(d->rng, o->min_partition_bytes, o->max_partition_bytes);
}

uint64_t draw_credit(const struct draft *d, double none, double unlimited) {
    const struct space_options *o = &d->space->options;
    if (o->usual_credit)
        return o->all_reduce && (!o->parameter_server || draw_chance(d->rng, 0.5)) ? 0 : CREDIT_UNLIMITED;
    double u = rng_uniform(d->rng);
    if (u < none)
        return 0;
    return u < none + unlimited ? CREDIT_UNLIMITED : draw_size(d->rng, o->min_credit_bytes, o->max_credit_bytes);
}

bool draw_may_order_pulls(const struct draft *d) {
    const struct space_options *o = &d->space->options;
    return o->order_pulls && o->parameter_server && d->strategy.policy == POLICY_priority &&
           d->strategy.credit_bytes != CREDIT_UNLIMITED;
}

uint32_t draw_log_count(struct rng *rng, uint32_t max) {
    uint32_t count = (uint32_t)rng_log_between(rng, 1.0, (double)max + 1.0);
    return count > max ? max : count;
}

bool space_may_encode(const struct variable *variable) {
    return variable->dtype == DTYPE_f32 || variable->dtype == DTYPE_f64;
}

enum encoding draw_encoding(const struct draft *d, uint32_t variable) {
    if (!space_may_encode(&d->space->model->variables[variable]))
        return ENCODING_none;
    return (enum encoding)draw_bit(d->rng, d->space->options.encodings);
}

void draw_new_figure(struct variable_sync *part, enum encoding encoding) {
    part->encoding = encoding;
    part->figure = 0;
}

uint32_t space_max_shards(const struct space *space, const struct variable *variable, uint32_t axis) {
    uint64_t dim = variable->shape[axis];
    return dim < space->options.max_shards ? (uint32_t)dim : space->options.max_shards;
}

void draw_cut(const struct draft *d, uint32_t variable, double whole) {
    const struct variable *v = &d->space->model->variables[variable];
    struct variable_sync *sync = &d->strategy.variables[variable];
    uint32_t axes = 0;
    for (uint32_t a = 0; a < v->rank; a++)
        if (space_max_shards(d->space, v, a) > 1)
            axes |= 1u << a;
    sync->axis = 0;
    sync->shards = 1;
    if (!axes || draw_chance(d->rng, whole))
        return;
    sync->axis = draw_bit(d->rng, axes);
    sync->shards = 1 + draw_log_count(d->rng, space_max_shards(d->space, v, sync->axis) - 1);
}
