/* Parameter servers on every node: each variable, in the order of the model, goes whole to the server that holds the
 * fewest bytes so far, the first one on ties. Bandwidth does not count. Otherwise as "ps".
 * Source: AutoDist, strategy PSLoadBalancing, its default. O(variables · nodes). */
#include "strategy/baselines/baselines.h"
#include "strategy/baselines/builder.h"

static uint32_t least_loaded(const uint64_t *load, uint32_t n) {
    uint32_t least = 0;
    for (uint32_t i = 1; i < n; i++)
        if (load[i] < load[least])
            least = i;
    return least;
}

enum status baseline_ps_load_balanced(const struct model *model, const struct cost *cost, struct strategy *out,
                                      struct error *err) {
    struct strategy s;
    enum status st = strategy_init(&s, "ps-load-balanced", model, 0, err);
    if (st)
        return st;
    uint64_t *load = arena_alloc(&s.arena, cost->cluster->n_nodes, sizeof *load);
    if (!load)
        st = error_no_memory(err);
    for (uint32_t v = 0; v < s.n_variables && !st; v++) {
        uint32_t node = least_loaded(load, cost->cluster->n_nodes);
        load[node] += model->variables[v].bytes;
        st = baseline_serve(&s, v, node, err);
    }
    return baseline_finish(st, &s, model, cost->cluster, out, err);
}
