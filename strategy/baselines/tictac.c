/* TicTac: the order of communication and nothing else. Whole tensors, no fusion, no partition, no preemption. Whenever
 * the network is free, it sends one of the ready tensors: the one that the next forward pass needs first.
 *
 * It was published for TensorFlow's parameter servers. It is an all-reduce here, as in PACE's comparison (§VI-B), where
 * all baselines run on all-reduce, so that its distance to them is what order alone is worth. As in PACE's comparison
 * there is no barrier; ByteScheduler (§8) suspects that TensorFlow's barrier took most of TicTac's gain. TicTac ranks
 * transfers in two ways, by operator times and by the graph alone. On one compute stream both give the same order: that
 * of first use.
 * Source: Hashemi et al., MLSys 2019; PACE §VI; ByteScheduler §1 and §8. O(variables). */
#include "strategy/baselines/baselines.h"
#include "strategy/baselines/builder.h"

enum status baseline_tictac(const struct model *model, const struct cost *cost, struct strategy *out,
                            struct error *err) {
    struct strategy s;
    enum status st = strategy_init(&s, "tictac", model, model->n_variables, err);
    if (st)
        return st;
    s.policy = POLICY_priority;
    s.credit_bytes = 0;
    s.cross_iteration = true;
    for (uint32_t v = 0; v < s.n_variables; v++)
        s.variables[v].group = v;
    return baseline_finish(ST_OK, &s, model, cost->cluster, out, err);
}
