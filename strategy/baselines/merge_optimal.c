/* The best merge groups under MG-WFBP's rules: one all-reduce at a time in the order of readiness, groups of adjacent
 * gradients of one dtype, and the next iteration waits for all.
 *
 * Best by the simulator's own costs, not by a fitted line: an all-reduce as `auto` takes it, runtime.message_us for
 * each, gathering before and scattering behind groups of several gradients. So no strategy of that family has a shorter
 * simulated iteration. Where there is one dtype, the cost is one line and copies are free, merging gradients that are
 * not adjacent does not help either.
 * The groups come from one of three programs:
 *   - Copies free and no measured curve: the cost is the least of a few lines, and the linear program is exact.
 *   - Otherwise, up to QUADRATIC_MOST gradients: the quadratic program is exact.
 *   - More gradients: the linear program, without scattering and with a fitted line for each measured curve. Its groups
 *     may then not be the best.
 * Source: our own exact result (strategy/exact/merge.h), against MG-WFBP's algorithm 1. */
#include <math.h>

#include "strategy/baselines/baselines.h"
#include "strategy/baselines/builder.h"
#include "strategy/baselines/chain.h"
#include "strategy/cost/line.h"

enum { QUADRATIC_MOST = 2048 };

static double copy_us(const void *context, uint64_t bytes, uint32_t n) {
    const struct cost *cost = context;
    return n > 1 ? (double)bytes / cost->copy_bytes_per_us : 0;
}

static double group_us(const void *context, uint64_t bytes, uint32_t n) {
    return cost_all_reduce_us(context, bytes) + copy_us(context, bytes, n);
}

static double floor_us(const void *context, uint64_t bytes, uint32_t n) {
    return cost_all_reduce_floor_us(context, bytes) + copy_us(context, bytes, n);
}

static enum status cut(const struct model *model, const struct cost *cost, const struct gradient *gradients,
                       struct arena *arena, struct merge *out, struct error *err) {
    struct cost_line lines[COST_MAX_LINES];
    uint32_t n = model->n_variables, n_lines = cost_all_reduce_lines(cost, lines);
    bool copies = isfinite(cost->copy_bytes_per_us);
    if ((copies || n_lines == 0) && n <= QUADRATIC_MOST)
        return merge_by_cost(n, gradients, &(struct merge_cost){group_us, copies ? copy_us : NULL, floor_us, cost},
                             arena, out, err);
    if (n_lines == 0)
        lines[n_lines++] = cost_line_all_reduce(cost, model->bytes, NULL);
    return merge_by_lines(n, gradients, &(struct merge_lines){n_lines, lines, 1 / cost->copy_bytes_per_us}, arena, out,
                          err);
}

enum status baseline_merge_optimal(const struct model *model, const struct cost *cost, struct strategy *out,
                                   struct error *err) {
    struct strategy s;
    struct gradient *gradients;
    struct merge merge;
    enum status st = strategy_init(&s, "merge-optimal", model, model->n_variables, err);
    if (st)
        return st;
    s.credit_bytes = 0;
    st = chain_list(model, cost, &s.arena, &gradients, err);
    if (!st)
        st = cut(model, cost, gradients, &s.arena, &merge, err);
    if (!st)
        chain_assign(gradients, &merge, &s);
    return baseline_finish(st, &s, model, cost->cluster, out, err);
}
