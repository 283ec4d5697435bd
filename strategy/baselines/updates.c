/* Baselines whose workers send whole updates to one server (strategy/consistency.h): the first node without devices, or
 * else the first node. What is computed differs from synchronous training, so no session tries them unasked; the family
 * of those that a session may try where it is asked to is at the end (updates.h).
 *
 *   async-ps    asynchronous SGD over a parameter server: each worker pushes, pulls and goes on (MLfabric §2, "Async")
 *   ssp         stale-synchronous with K = 2, the usual one (MLfabric §6; Ho et al., NIPS 2013)
 *   mlfabric-a  asynchronous, in the order of algorithm 2 with a delay bound of one round of all workers (30 for the
 *               paper's 30), added up on the way by any node with workers, models passed on by workers (§7)
 *   mlfabric-s  the same for synchronous training (§6) */
#include "strategy/baselines/updates.h"

#include <math.h>
#include <stdio.h>

#include "strategy/baselines/baselines.h"
#include "strategy/baselines/builder.h"

enum { SSP_STALENESS = 2 };

/* The nodes with workers, but not the server: NULL when memory is out. */
static uint32_t *aggregators(const struct cluster *cluster, uint32_t server, struct arena *arena, uint32_t *n) {
    uint32_t *nodes = arena_alloc(arena, cluster->n_nodes, sizeof *nodes);
    *n = 0;
    for (uint32_t i = 0; nodes && i < cluster->n_nodes; i++)
        if (cluster->nodes[i].devices > 0 && i != server)
            nodes[(*n)++] = i;
    return nodes;
}

static bool dense(const struct model *model) {
    bool all = true;
    for (uint32_t v = 0; v < model->n_variables; v++)
        all = all && model->variables[v].sparse_rows == 0;
    return all;
}

/* Every variable whole on one server; those of one element type share a push. */
static enum status serve_all(struct strategy *s, const struct model *model, uint32_t server, struct error *err) {
    uint32_t push[DTYPE_COUNT] = {0}; /* 1 + the first variable of the type */
    enum status st = ST_OK;
    for (uint32_t v = 0; v < s->n_variables && !st; v++) {
        uint32_t *number = &push[model->variables[v].dtype];
        st = baseline_serve(s, v, server, err);
        *number = *number > 0 ? *number : v + 1;
        s->variables[v].local_reduction = false;
        s->variables[v].push = *number;
    }
    return st;
}

static enum status find_server(const struct cluster *cluster, uint32_t *out, struct error *err) {
    struct arena arena = {0};
    struct servers servers;
    enum status st = baseline_servers(&arena, cluster, &servers, err);
    if (!st)
        *out = servers.nodes[0];
    arena_release(&arena);
    return st;
}

/* With `on_the_way`, which needs the scheduler, updates are added up and models passed on by workers' nodes. */
static enum status build(const char *name, const struct model *model, const struct cluster *cluster,
                         struct consistency consistency, bool on_the_way, struct strategy *out, struct error *err) {
    struct strategy s;
    uint32_t server = 0, n = 0;
    enum status st = find_server(cluster, &server, err);
    if (st || (st = strategy_init(&s, name, model, 0, err)))
        return st;
    st = serve_all(&s, model, server, err);
    s.consistency = consistency;
    if (!st && on_the_way && dense(model)) {
        uint32_t *nodes = aggregators(cluster, server, &s.arena, &n);
        st = nodes ? ST_OK : error_no_memory(err);
        s.consistency.aggregators = (struct node_list){.n = n, .nodes = nodes};
    }
    if (on_the_way)
        s.consistency.distributors = (uint32_t)fmin(ceil(sqrt(cluster->n_devices)), CONSISTENCY_MAX_DISTRIBUTORS);
    return baseline_finish(st, &s, model, cluster, out, err);
}

enum status baseline_async_ps(const struct model *model, const struct cost *cost, struct strategy *out,
                              struct error *err) {
    struct consistency c = {.kind = CONSISTENCY_asynchronous};
    return build("async-ps", model, cost->cluster, c, false, out, err);
}

enum status baseline_ssp(const struct model *model, const struct cost *cost, struct strategy *out, struct error *err) {
    struct consistency c = {.kind = CONSISTENCY_stale_synchronous, .staleness = SSP_STALENESS};
    return build("ssp", model, cost->cluster, c, false, out, err);
}

enum status baseline_mlfabric_a(const struct model *model, const struct cost *cost, struct strategy *out,
                                struct error *err) {
    struct consistency c = {.kind = CONSISTENCY_asynchronous,
                            .delay_bound = cost->cluster->n_devices,
                            .scheduled = true,
                            .batch_us = CONSISTENCY_BATCH_US};
    return build("mlfabric-a", model, cost->cluster, c, true, out, err);
}

enum status baseline_mlfabric_s(const struct model *model, const struct cost *cost, struct strategy *out,
                                struct error *err) {
    struct consistency c = {.kind = CONSISTENCY_synchronous, .scheduled = true, .batch_us = CONSISTENCY_BATCH_US};
    return build("mlfabric-s", model, cost->cluster, c, true, out, err);
}

/* ---- the family of a session ---- */

static const double SHORT_BATCH_US = 1e4;

/* The kinds of the family, each with every bound: "mlfabric-a-4-10ms". */
static const struct kind {
    const char *name, *ending;
    bool stale_synchronous, scheduled, on_the_way;
    double batch_us;
} kinds[] = {
    {"ssp", "", true, false, false, 0},
    {"async", "", false, false, false, 0},
    {"mlfabric-a", "", false, true, true, CONSISTENCY_BATCH_US},
    {"mlfabric-a", "-direct", false, true, false, CONSISTENCY_BATCH_US},
    {"mlfabric-a", "-10ms", false, true, true, SHORT_BATCH_US},
    {"mlfabric-a", "-10ms-direct", false, true, false, SHORT_BATCH_US},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

size_t updates_family_size(uint32_t most) {
    size_t bounds = 1;
    for (uint32_t k = 1; k < most; k *= 2)
        bounds++;
    return bounds * KINDS;
}

enum status updates_family_build(const struct model *model, const struct cluster *cluster, uint32_t most, size_t i,
                                 struct strategy *out, struct error *err) {
    const struct kind *kind = &kinds[i % KINDS];
    const uint32_t power = UINT32_C(1) << i / KINDS, bound = power < most ? power : most;
    const struct consistency c = {.kind = kind->stale_synchronous ? CONSISTENCY_stale_synchronous
                                                                  : CONSISTENCY_asynchronous,
                                  .staleness = kind->stale_synchronous ? bound : 0,
                                  .delay_bound = kind->stale_synchronous ? 0 : bound,
                                  .scheduled = kind->scheduled,
                                  .batch_us = kind->batch_us};
    char name[64];
    snprintf(name, sizeof name, "%s-%u%s", kind->name, bound, kind->ending);
    return build(name, model, cluster, c, kind->on_the_way, out, err);
}

enum status updates_build_synchronous(const struct model *model, const struct cluster *cluster, struct strategy *out,
                                      struct error *err) {
    const struct consistency c = {.kind = CONSISTENCY_synchronous, .scheduled = true, .batch_us = SHORT_BATCH_US};
    return build("synchronous-updates", model, cluster, c, false, out, err);
}
