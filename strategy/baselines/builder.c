/* The last step of every baseline, cutting rules, and the ways to assign variables to servers and to groups. */
#include "strategy/baselines/builder.h"

enum status baseline_finish(enum status st, struct strategy *built, const struct model *model,
                            const struct cluster *cluster, struct strategy *out, struct error *err) {
    if (!st)
        st = strategy_seal(built, model, cluster, err);
    if (st)
        strategy_release(built);
    else
        *out = *built;
    return st;
}

uint64_t baseline_bytes_of(const struct model *model, double elements) {
    double all = 0;
    for (uint32_t v = 0; v < model->n_variables; v++)
        all += (double)model->variables[v].elements;
    return (uint64_t)(elements * ((double)model->bytes / all) + 0.5);
}

/* ---- cutting ---- */

uint64_t baseline_least_divisor(uint64_t n) {
    for (uint64_t i = 2; i <= n / i; i++)
        if (n % i == 0)
            return i;
    return n;
}

uint32_t baseline_shards(uint64_t want) {
    return want < 1 ? 1 : want > STRATEGY_MAX_SHARDS ? STRATEGY_MAX_SHARDS : (uint32_t)want;
}

uint32_t baseline_shards_of_at_most(const struct variable *variable, uint64_t elements) {
    if (!variable->rank)
        return 1;
    uint64_t rows = variable->shape[0], row = variable->elements / rows;
    if (row >= elements)
        return baseline_shards(rows);
    uint64_t together = elements / row;
    return baseline_shards((rows + together - 1) / together);
}

/* ---- servers ---- */

enum status baseline_servers(struct arena *arena, const struct cluster *cluster, struct servers *out,
                             struct error *err) {
    uint32_t *nodes = arena_alloc(arena, cluster->n_nodes, sizeof *nodes), n = 0;
    if (!nodes)
        return error_no_memory(err);
    for (uint32_t i = 0; i < cluster->n_nodes; i++)
        if (!cluster->nodes[i].devices)
            nodes[n++] = i;
    if (!n)
        for (; n < cluster->n_nodes; n++)
            nodes[n] = n;
    *out = (struct servers){n, nodes};
    return ST_OK;
}

/* Let min(shards, n) servers serve variable v. Returns the array of them, for the caller to fill in; NULL when memory
 * is out. */
static uint32_t *serve(struct strategy *strategy, uint32_t v, uint32_t shards, uint32_t n, struct error *err) {
    uint32_t n_servers = shards < n ? shards : n;
    uint32_t *servers = arena_alloc(&strategy->arena, n_servers, sizeof *servers);
    if (!servers) {
        error_no_memory(err);
        return NULL;
    }
    struct variable_sync *sync = &strategy->variables[v];
    sync->kind = SYNC_PARAMETER_SERVER;
    sync->shards = shards;
    sync->servers = servers;
    sync->n_servers = n_servers;
    sync->local_reduction = true;
    return servers;
}

enum status baseline_serve(struct strategy *strategy, uint32_t v, uint32_t node, struct error *err) {
    return baseline_spread(strategy, v, 1, &(struct servers){1, &node}, 0, err);
}

enum status baseline_spread(struct strategy *strategy, uint32_t v, uint32_t shards, const struct servers *pool,
                            uint64_t first, struct error *err) {
    uint32_t *servers = serve(strategy, v, shards, pool->n, err);
    if (!servers)
        return ST_NO_MEMORY;
    for (uint32_t k = 0; k < strategy->variables[v].n_servers; k++)
        servers[k] = pool->nodes[(first + k) % pool->n];
    return ST_OK;
}

enum status balance_init(struct balance *balance, struct arena *arena, uint32_t n_nodes, struct error *err) {
    balance->n = n_nodes;
    balance->heap = arena_alloc(arena, n_nodes, sizeof *balance->heap);
    balance->bytes = arena_alloc(arena, n_nodes, sizeof *balance->bytes);
    if (!balance->heap || !balance->bytes)
        return error_no_memory(err);
    for (uint32_t i = 0; i < n_nodes; i++)
        balance->heap[i] = i;
    return ST_OK;
}

static bool is_lighter(const struct balance *balance, uint32_t a, uint32_t b) {
    return balance->bytes[a] < balance->bytes[b] || (balance->bytes[a] <= balance->bytes[b] && a < b);
}

static void balance_push(struct balance *balance, uint32_t node) {
    uint32_t *heap = balance->heap, at = balance->n++;
    for (; at > 0 && is_lighter(balance, node, heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = node;
}

static uint32_t balance_pop(struct balance *balance) {
    uint32_t *heap = balance->heap, top = heap[0], last = heap[--balance->n], n = balance->n, at = 0;
    for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && is_lighter(balance, heap[child + 1], heap[child]))
            child++;
        if (!is_lighter(balance, heap[child], last))
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return top;
}

enum status baseline_balance(struct strategy *strategy, uint32_t v, uint32_t shards, double bytes,
                             struct balance *balance, struct error *err) {
    uint32_t *servers = serve(strategy, v, shards, balance->n, err);
    if (!servers)
        return ST_NO_MEMORY;
    uint32_t n = strategy->variables[v].n_servers;
    for (uint32_t k = 0; k < n; k++)
        servers[k] = balance_pop(balance);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t held = shards / n + (k < shards % n);
        balance->bytes[servers[k]] += held * (bytes / shards);
        balance_push(balance, servers[k]);
    }
    return ST_OK;
}

/* ---- chunks ---- */

uint32_t chunker_next(struct chunker *chunker, enum dtype dtype, uint32_t parts) {
    uint64_t chunk = 1 + chunker->parts / AUTODIST_CHUNK;
    chunker->parts += parts;
    if (chunker->chunk[dtype] != chunk) {
        chunker->chunk[dtype] = chunk;
        chunker->group[dtype] = chunker->n_groups++;
    }
    return chunker->group[dtype];
}
