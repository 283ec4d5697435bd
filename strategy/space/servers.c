/* Where the variables of the parameter-server kind live.
 *
 * c_lb (AutoSync §3.2) draws each placement from a multinomial over nodes, weighted by the bandwidth that is still
 * available on each. Here that is exact: with B bytes to place in all, node j's fair share is B·rate_j / Σ rate, and
 * its weight is what of that share is left. A node over its share weighs nothing until all nodes are over theirs. So
 * loads end in proportion to bandwidth, as far as whole variables allow, and are random within that. The largest
 * variables are placed first, because the last ones placed decide the imbalance. Cost O(variables · nodes) for uncut
 * variables. */
#include <stdlib.h>

#include "strategy/plan.h"
#include "strategy/space/largest_first.h"
#include "strategy/space/space.h"
#include "strategy/space/space_internal.h"

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static double gradient_bytes(const struct draft *d, uint32_t v) {
    return (double)plan_gradient_bytes(&d->strategy, &d->space->model->variables[v], &d->strategy.variables[v]);
}

/* Memory for n servers of a variable; NULL and no_memory when there is none. */
static uint32_t *new_servers(struct draft *d, uint32_t variable, uint32_t n) {
    uint32_t *servers = arena_alloc(&d->strategy.arena, n, sizeof *servers);
    if (!servers) {
        d->no_memory = true;
        return NULL;
    }
    d->strategy.variables[variable].servers = servers;
    d->strategy.variables[variable].n_servers = n;
    return servers;
}

/* Bring k random nodes to the front of the permutation (Fisher and Yates, cut short). */
static void shuffle_front(struct draft *d, uint32_t k) {
    uint32_t n = d->space->cluster->n_nodes;
    for (uint32_t i = 0; i < k; i++) {
        uint32_t j = i + (uint32_t)rng_below(d->rng, n - i), node = d->nodes[i];
        d->nodes[i] = d->nodes[j];
        d->nodes[j] = node;
    }
}

void servers_draw_uniform(struct draft *d, uint32_t variable) {
    uint32_t most = least(d->strategy.variables[variable].shards, d->space->cluster->n_nodes);
    uint32_t n = 1 + (uint32_t)rng_below(d->rng, most);
    shuffle_front(d, n);
    uint32_t *servers = new_servers(d, variable, n);
    for (uint32_t i = 0; servers && i < n; i++)
        servers[i] = d->nodes[i];
}

void servers_allow_all(struct draft *d) {
    for (uint32_t i = 0; i < d->space->cluster->n_nodes; i++)
        d->allowed[i] = true;
}

void servers_allow_some(struct draft *d) {
    uint32_t n = d->space->cluster->n_nodes, k = draw_log_count(d->rng, n);
    shuffle_front(d, k);
    for (uint32_t i = 0; i < n; i++)
        d->allowed[d->nodes[i]] = i < k;
}

static void add_load(struct draft *d, uint32_t v) {
    const struct variable_sync *sync = &d->strategy.variables[v];
    double shard = gradient_bytes(d, v) / sync->shards;
    for (uint32_t k = 0; k < sync->n_servers; k++)
        d->load[sync->servers[k]] += shard * ((sync->shards - k - 1) / sync->n_servers + 1);
}

/* One more server by c_lb; nodes already taken by this variable have allowed = false for the moment. */
static uint32_t draw_server(struct draft *d, double share) {
    uint32_t n = d->space->cluster->n_nodes;
    double sum = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        double left = share * d->space->rate[i] - d->load[i];
        d->weight[i] = d->allowed[i] && left > 0.0 ? left : 0.0;
        sum += d->weight[i];
    }
    for (uint32_t i = 0; i < n && sum <= 0.0; i++)
        d->weight[i] = d->allowed[i] ? d->space->rate[i] : 0.0;
    return (uint32_t)rng_weighted(d->rng, n, d->weight);
}

static void place(struct draft *d, uint32_t v, uint32_t n_allowed, double share) {
    uint32_t n = least(d->strategy.variables[v].shards, n_allowed);
    uint32_t *servers = new_servers(d, v, n);
    if (!servers)
        return;
    for (uint32_t k = 0; k < n; k++) {
        servers[k] = draw_server(d, share);
        d->allowed[servers[k]] = false;
    }
    for (uint32_t k = 0; k < n; k++)
        d->allowed[servers[k]] = true;
    add_load(d, v);
}

/* Lists the variables to place, sums what is to be carried in all, and counts the load of those already placed. */
static uint32_t collect(struct draft *d, struct sized_variable *list, double *total) {
    uint32_t n = 0;
    *total = 0.0;
    for (uint32_t v = 0; v < d->strategy.n_variables; v++) {
        const struct variable_sync *sync = &d->strategy.variables[v];
        if (sync->kind != SYNC_PARAMETER_SERVER)
            continue;
        double bytes = gradient_bytes(d, v);
        *total += bytes;
        if (sync->n_servers)
            add_load(d, v);
        else
            list[n++] = (struct sized_variable){bytes, v};
    }
    return n;
}

void servers_balance(struct draft *d) {
    double total, rates = 0.0;
    uint32_t n_allowed = 0;
    struct sized_variable *list = calloc(d->strategy.n_variables, sizeof *list);
    if (!list) {
        d->no_memory = true;
        return;
    }
    for (uint32_t i = 0; i < d->space->cluster->n_nodes; i++) {
        d->load[i] = 0.0;
        n_allowed += d->allowed[i];
        rates += d->allowed[i] ? d->space->rate[i] : 0.0;
    }
    uint32_t n = collect(d, list, &total);
    largest_first(n, list);
    for (uint32_t i = 0; i < n && !d->no_memory; i++)
        place(d, list[i].variable, n_allowed, total / rates);
    free(list);
}

void servers_scatter(struct draft *d) {
    uint32_t n_nodes = d->space->cluster->n_nodes, n_allowed = 0;
    for (uint32_t i = 0; i < n_nodes; i++)
        n_allowed += d->allowed[i];
    for (uint32_t v = 0; v < d->strategy.n_variables && !d->no_memory; v++) {
        const struct variable_sync *sync = &d->strategy.variables[v];
        if (sync->kind != SYNC_PARAMETER_SERVER || sync->n_servers)
            continue;
        uint32_t n = least(sync->shards, n_allowed), *servers = new_servers(d, v, n);
        shuffle_front(d, n_nodes);
        for (uint32_t i = 0, k = 0; servers && k < n; i++)
            if (d->allowed[d->nodes[i]])
                servers[k++] = d->nodes[i];
    }
}
