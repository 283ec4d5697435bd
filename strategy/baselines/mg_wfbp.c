/* MG-WFBP: adjacent gradients are merged by the paper's algorithm 1, which the paper takes for optimal. A gradient
 * whose communication could start at time s is merged with the next one if that is ready before s + a, where a is the
 * start-up time.
 *
 * The paper measures the line a + b * bytes of an all-reduce; here it is the cluster's, fitted up to the model's bytes
 * where the cost is not a line. The paper has no dtypes; here gradients of two dtypes are never merged. One all-reduce
 * runs at a time, in the order of readiness (equation 7): credit 0; the next iteration waits for all.
 * Source: Shi et al., "MG-WFBP: Merging Gradients Wisely for Efficient Communication in Distributed Deep Learning",
 * IEEE TPDS 2021, algorithm 1. O(variables + operators) where the paper's is O(variables²). */
#include "strategy/baselines/baselines.h"
#include "strategy/baselines/builder.h"
#include "strategy/baselines/chain.h"
#include "strategy/cost/line.h"

enum status baseline_mg_wfbp(const struct model *model, const struct cost *cost, struct strategy *out,
                             struct error *err) {
    struct strategy s;
    struct gradient *gradients;
    struct merge merge;
    enum status st = strategy_init(&s, "mg-wfbp", model, model->n_variables, err);
    if (st)
        return st;
    s.credit_bytes = 0;
    struct cost_line line = cost_line_all_reduce(cost, model->bytes, NULL);
    st = chain_list(model, cost, &s.arena, &gradients, err);
    if (!st)
        st = merge_greedy(model->n_variables, gradients, &line, &s.arena, &merge, err);
    if (!st)
        chain_assign(gradients, &merge, &s);
    return baseline_finish(st, &s, model, cost->cluster, out, err);
}
