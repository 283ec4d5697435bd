/* Where the variables of the parameter-server kind live.
 *
 * c_lb (AutoSync §3.2) draws each placement from a multinomial over nodes, weighted by the bandwidth that is still
 * available on each. Here that is exact: with B bytes to place in all, node j's fair share is B·rate_j / Σ rate, and
 * its weight is what of that share is left. A node over its share weighs nothing until all nodes are over theirs. So
 * loads end in proportion to bandwidth, as far as whole variables allow, and are random within that. The largest
 * variables are placed first, because the last ones placed decide the imbalance. Cost O(variables · nodes) for uncut
 * variables. */
#include <stdlib.h>
#include <string.h>

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

/* Memory for n servers; NULL and no_memory when there is none. */
static uint32_t *new_servers(struct draft *d, struct variable_sync *sync, uint32_t n) {
    uint32_t *servers = arena_alloc(&d->strategy.arena, n, sizeof *servers);
    if (!servers) {
        d->no_memory = true;
        return NULL;
    }
    sync->servers = servers;
    sync->n_servers = n;
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

void servers_draw_uniform(struct draft *d, struct variable_sync *sync, uint32_t most) {
    uint32_t n = 1 + (uint32_t)rng_below(d->rng, least(most, d->space->cluster->n_nodes));
    shuffle_front(d, n);
    uint32_t *servers = new_servers(d, sync, n);
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

/* The bytes of `shards` shards, on servers in turn. */
static void add_load(struct draft *d, const struct variable_sync *sync, uint32_t shards, double bytes) {
    double shard = bytes / shards;
    for (uint32_t k = 0; k < sync->n_servers; k++)
        d->load[sync->servers[k]] += shard * ((shards - k - 1) / sync->n_servers + 1);
}

/* Count what all servers load that are chosen already, and return all bytes that servers carry or will carry. */
static double count_load(struct draft *d) {
    double total = 0.0;
    for (uint32_t i = 0; i < d->space->cluster->n_nodes; i++)
        d->load[i] = 0.0;
    for (uint32_t v = 0; v < d->strategy.n_variables; v++) {
        const struct variable_sync *sync = &d->strategy.variables[v];
        for (uint32_t k = 0; k < sync_parts(sync); k++) {
            const struct variable_sync *part = sync_part(sync, k);
            if (part->kind != SYNC_PARAMETER_SERVER)
                continue;
            double bytes = (double)plan_part_bytes(&d->strategy, &d->space->model->variables[v], sync, k);
            add_load(d, part, sync->each ? 1 : sync->shards, bytes);
            total += bytes;
        }
    }
    return total;
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

void servers_draw_one(struct draft *d, struct variable_sync *sync) {
    uint32_t *server = new_servers(d, sync, 1);
    double rates = 0.0;
    if (!server)
        return;
    for (uint32_t i = 0; i < d->space->cluster->n_nodes; i++)
        rates += d->space->rate[i];
    sync->n_servers = 0;
    *server = draw_server(d, count_load(d) / rates);
    sync->n_servers = 1;
}

static void place(struct draft *d, const struct sized_variable *item, uint32_t n_allowed, double share) {
    uint32_t v = item->variable;
    struct variable_sync *sync = &d->strategy.variables[v];
    uint32_t n = least(sync->shards, n_allowed);
    uint32_t *servers = new_servers(d, sync, n);
    if (!servers)
        return;
    for (uint32_t k = 0; k < n; k++) {
        servers[k] = draw_server(d, share);
        d->allowed[servers[k]] = false;
    }
    for (uint32_t k = 0; k < n; k++)
        d->allowed[servers[k]] = true;
    add_load(d, sync, sync->shards, item->bytes);
}

static bool is_unplaced(const struct variable_sync *sync) {
    return sync->kind == SYNC_PARAMETER_SERVER && !sync->n_servers && !sync->each;
}

/* By variable: the first unplaced one that shares its push, or itself; malloc'd. NULL and no_memory. */
static uint32_t *find_heads(struct draft *d) {
    uint32_t n = d->strategy.n_variables;
    uint32_t *heads = malloc((2 * (size_t)n + 1) * sizeof *heads), *of_push = heads + n;
    if (!heads) {
        d->no_memory = true;
        return NULL;
    }
    memset(of_push, 0xff, ((size_t)n + 1) * sizeof *of_push);
    for (uint32_t v = 0; v < n; v++) {
        const struct variable_sync *sync = &d->strategy.variables[v];
        bool shared = is_unplaced(sync) && sync->push && sync->shards == 1;
        if (shared && of_push[sync->push] == UINT32_MAX)
            of_push[sync->push] = v;
        heads[v] = shared ? of_push[sync->push] : v;
    }
    return heads;
}

/* Those that share a push have the server of the first. */
static void follow_heads(struct draft *d, const uint32_t *heads) {
    for (uint32_t v = 0; v < d->strategy.n_variables; v++)
        if (heads[v] != v) {
            d->strategy.variables[v].servers = d->strategy.variables[heads[v]].servers;
            d->strategy.variables[v].n_servers = d->strategy.variables[heads[v]].n_servers;
        }
}

/* Lists the variables to place, the first of a push with the bytes of all. `list` has a place for each variable. */
static uint32_t collect(struct draft *d, const uint32_t *heads, struct sized_variable *list) {
    uint32_t n = 0;
    for (uint32_t v = 0; v < d->strategy.n_variables; v++)
        if (is_unplaced(&d->strategy.variables[v]))
            list[heads[v]].bytes += gradient_bytes(d, v);
    for (uint32_t v = 0; v < d->strategy.n_variables; v++)
        if (is_unplaced(&d->strategy.variables[v]) && heads[v] == v)
            list[n++] = (struct sized_variable){list[v].bytes, v};
    return n;
}

void servers_balance(struct draft *d) {
    double rates = 0.0;
    uint32_t n_allowed = 0;
    struct sized_variable *list = calloc(d->strategy.n_variables, sizeof *list);
    uint32_t *heads = find_heads(d);
    if (!list || !heads) {
        d->no_memory = true;
        free(list);
        free(heads);
        return;
    }
    for (uint32_t i = 0; i < d->space->cluster->n_nodes; i++) {
        n_allowed += d->allowed[i];
        rates += d->allowed[i] ? d->space->rate[i] : 0.0;
    }
    const double total = count_load(d);
    uint32_t n = collect(d, heads, list);
    largest_first(n, list);
    for (uint32_t i = 0; i < n && !d->no_memory; i++)
        place(d, &list[i], n_allowed, total / rates);
    follow_heads(d, heads);
    free(list);
    free(heads);
}

void servers_scatter(struct draft *d) {
    uint32_t n_nodes = d->space->cluster->n_nodes, n_allowed = 0;
    for (uint32_t i = 0; i < n_nodes; i++)
        n_allowed += d->allowed[i];
    uint32_t *heads = find_heads(d);
    for (uint32_t v = 0; v < d->strategy.n_variables && !d->no_memory; v++) {
        struct variable_sync *sync = &d->strategy.variables[v];
        if (!is_unplaced(sync) || heads[v] != v)
            continue;
        uint32_t n = least(sync->shards, n_allowed), *servers = new_servers(d, sync, n);
        shuffle_front(d, n_nodes);
        for (uint32_t i = 0, k = 0; servers && k < n; i++)
            if (d->allowed[d->nodes[i]])
                servers[k++] = d->nodes[i];
    }
    if (heads)
        follow_heads(d, heads);
    free(heads);
}
