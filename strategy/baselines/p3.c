/* P3, priority-based parameter propagation: every tensor in slices of at most 40,000 elements (160 KB in f32,
 * MXNET_KVSTORE_SLICE_THRESHOLD), pushed one at a time by priority, the layer nearest the input first, and pulled in
 * the same way; the next forward pass waits layer by layer.
 *
 * Slices take the servers in turn through the whole model, as its store does; servers are the nodes without devices
 * where there are any, else all. ByteScheduler §2.3 and §4.2 describe it as stop-and-wait: credit 0. A slice here is
 * whole rows of axis 0 where a row fits; a longer row is cut too, but all its pieces go to one server.
 * Source: Jayarajan et al., MLSys 2019; MXNet's kvstore dist_p3; ByteScheduler §2.3. O(slices). */
#include "strategy/baselines/baselines.h"
#include "strategy/baselines/builder.h"

enum { SLICE = 40000 };

enum status baseline_p3(const struct model *model, const struct cost *cost, struct strategy *out, struct error *err) {
    struct strategy s;
    struct servers servers;
    uint64_t next = 0;
    enum status st = strategy_init(&s, "p3", model, 0, err);
    if (st)
        return st;
    s.policy = POLICY_priority;
    s.credit_bytes = 0;
    s.cross_iteration = s.pulls_by_priority = true;
    st = baseline_servers(&s.arena, cost->cluster, &servers, err);
    for (uint32_t v = 0; v < s.n_variables && !st; v++) {
        uint32_t slices = baseline_shards_of_at_most(&model->variables[v], SLICE);
        st = baseline_spread(&s, v, slices, &servers, next, err);
        s.variables[v].partition_bytes = SLICE * dtype_bytes(model->variables[v].dtype);
        next += slices;
    }
    return baseline_finish(st, &s, model, cost->cluster, out, err);
}
