/* XLA, and so JAX, on GPUs. A program has one collective a variable, and the compiler combines those of a kind in the
 * order of the program up to a threshold and 256 of them; one larger than the threshold stays alone. The bytes that
 * count are those of the output:
 *   all-reduce      the gradient; where parameters have replicas, a device's part of it
 *   reduce-scatter  a device's part of the gradient, padded to equal parts
 *   all-gather      the whole variable, padded likewise
 *
 * Gradients come in the order of readiness. Sharded parameters are gathered in the order of their first use, and what
 * is updated in parts in the order of readiness. All-reduces and reduce-scatters of different types are not combined;
 * all-gathers are. One before the forward pass and one after the update depend on each other, so these two stay apart.
 *
 * A program gathers a parameter once for both passes unless it says otherwise (jax.checkpoint), so it stays gathered.
 *
 * What is not imitated: XLA's scheduler decides when a message starts. Here one message is in flight at a time, and
 * parameters are gathered one group ahead. */
#include "strategy/baselines/xla.h"

#include <stdlib.h>

#include "strategy/baselines/builder.h"
#include "strategy/space/ready_order.h"

const char *xla_collective_name(enum xla_collective collective) {
    static const char *const names[XLA_COLLECTIVES] = {"all_reduce", "all_gather", "reduce_scatter"};
    return names[collective];
}

/* The elements of a device's part. */
static uint64_t part_of(const struct variable *v, uint32_t ranks) {
    return (v->elements + ranks - 1) / ranks;
}

static bool item_of(enum xla_collective collective, const struct strategy *s, const struct model *model,
                    const struct cluster *cluster, uint32_t v, struct bucket_item *out) {
    const struct variable *variable = &model->variables[v];
    const struct variable_sync *sync = &s->variables[v];
    const bool served = sync->kind == SYNC_PARAMETER_SERVER;
    const struct group *group = served ? NULL : &s->groups[sync->group];
    if (!group || !group->sharded) {
        *out = (struct bucket_item){variable->dtype, served ? BUCKET_ANY : sync->group, variable->bytes};
        return collective == XLA_ALL_REDUCE;
    }
    const bool parameters = group->sharded == SHARDED_parameters;
    const uint32_t ranks = parameters ? strategy_shard_group(s, cluster) : cluster->n_devices;
    const enum dtype summed = carried_dtype(group->summed_as, variable->dtype);
    const uint64_t part = part_of(variable, ranks);
    if (collective == XLA_ALL_GATHER) {
        const enum dtype gathered = carried_dtype(group->gathered_as, variable->dtype);
        *out = (struct bucket_item){parameters ? 0 : 1, sync->group, part * ranks * dtype_bytes(gathered)};
        return true;
    }
    *out = (struct bucket_item){summed, sync->group, part * dtype_bytes(summed)};
    if (collective == XLA_REDUCE_SCATTER)
        return true;
    out->kind += DTYPE_COUNT; /* among replicas: other devices than those of whole gradients */
    return ranks < cluster->n_devices;
}

static bool gathers_parameters(const struct strategy *s, uint32_t v) {
    const struct variable_sync *sync = &s->variables[v];
    return sync->kind == SYNC_ALL_REDUCE && s->groups[sync->group].sharded == SHARDED_parameters;
}

uint32_t xla_items(enum xla_collective collective, const struct strategy *s, const struct model *model,
                   const struct cluster *cluster, const uint32_t *ready, const uint32_t *read,
                   struct bucket_item *items, uint32_t *variables) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_variables && collective == XLA_ALL_GATHER; i++) {
        variables[n] = read[i];
        n += gathers_parameters(s, read[i]) && item_of(collective, s, model, cluster, read[i], &items[n]);
    }
    for (uint32_t i = 0; i < s->n_variables; i++) {
        if (collective == XLA_ALL_GATHER && gathers_parameters(s, ready[i]))
            continue;
        variables[n] = ready[i];
        n += item_of(collective, s, model, cluster, ready[i], &items[n]);
    }
    return n;
}

/* ---- from thresholds to groups ---- */

/* Where a variable goes by two of the combiners. */
struct place {
    uint32_t variable, first, second;
};

static int compare_places(const void *a, const void *b) {
    const struct place *x = a, *y = b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return (x->second > y->second) - (x->second < y->second);
}

/* The messages of each variable by one combiner, [n_variables]. */
struct combining {
    const struct model *model;
    const struct cluster *cluster;
    uint32_t *ready, *read, *variables;
    struct bucket_item *items;
};

static void combine(const struct combining *c, enum xla_collective collective, uint64_t threshold,
                    const struct strategy *s, uint32_t *label) {
    const uint32_t n = xla_items(collective, s, c->model, c->cluster, c->ready, c->read, c->items, c->variables);
    buckets_fill(BUCKET_COMBINED, n, c->items, 1, &threshold);
    for (uint32_t i = 0; i < n; i++)
        label[c->variables[i]] = c->items[i].label;
}

static enum status fill(const struct model *model, const struct cluster *cluster, const struct xla_settings *settings,
                        struct strategy *s, struct error *err) {
    const uint32_t n = s->n_variables;
    struct combining c = {model,
                          cluster,
                          arena_alloc(&s->arena, n, sizeof *c.ready),
                          arena_alloc(&s->arena, n, sizeof *c.read),
                          arena_alloc(&s->arena, n, sizeof *c.variables),
                          arena_alloc(&s->arena, n, sizeof *c.items)};
    uint32_t *first = arena_alloc(&s->arena, n, sizeof *first), *second = arena_alloc(&s->arena, n, sizeof *second);
    struct place *places = arena_alloc(&s->arena, n, sizeof *places);
    if (!c.ready || !c.read || !c.variables || !c.items || !first || !second || !places)
        return error_no_memory(err);
    enum status st = ready_order(model, c.ready, err);
    if (!st)
        st = read_order(model, c.read, err);
    if (st)
        return st;
    const enum xla_collective sum = settings->sharded ? XLA_REDUCE_SCATTER : XLA_ALL_REDUCE;
    const enum xla_collective other = settings->sharded ? XLA_ALL_GATHER : XLA_ALL_REDUCE;
    combine(&c, sum, settings->threshold_bytes[sum], s, first);
    combine(&c, other, settings->threshold_bytes[other], s, second);
    for (uint32_t v = 0; v < n; v++)
        places[v] = (struct place){v, first[v], second[v]};
    qsort(places, n, sizeof *places, compare_places);
    for (uint32_t i = 0, group = 0; i < n; i++) {
        group += i > 0 && compare_places(&places[i - 1], &places[i]) != 0;
        s->variables[places[i].variable].group = group;
    }
    return ST_OK;
}

enum status xla_build(const struct model *model, const struct cluster *cluster, const struct xla_settings *settings,
                      const char *name, struct strategy *out, struct error *err) {
    struct strategy s;
    enum status st = strategy_init(&s, name, model, model->n_variables, err);
    if (st)
        return st;
    for (uint32_t g = 0; g < s.n_groups; g++) {
        s.groups[g].sharded = settings->sharded;
        s.groups[g].keeps_gathered = settings->sharded == SHARDED_parameters;
    }
    s.credit_bytes = 0;
    return baseline_finish(fill(model, cluster, settings, &s, err), &s, model, cluster, out, err);
}
