/* The last step of every baseline, and the one way in which some put a variable on a server. */
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

enum status baseline_serve(struct strategy *strategy, uint32_t v, uint32_t node, struct error *err) {
    uint32_t *server = arena_alloc(&strategy->arena, 1, sizeof *server);
    if (!server)
        return error_no_memory(err);
    *server = node;
    struct variable_sync *sync = &strategy->variables[v];
    sync->kind = SYNC_PARAMETER_SERVER;
    sync->servers = server;
    sync->n_servers = 1;
    sync->local_reduction = true;
    return ST_OK;
}
