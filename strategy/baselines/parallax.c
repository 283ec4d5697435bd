/* Parallax: sparse gradients to parameter servers, dense ones to all-reduce. A sparse variable goes whole to the node
 * that holds the fewest bytes so far; as in "ps-load-balanced", all rows of its table count. Dense variables are merged
 * as in "all-reduce", 128 variables a group, where sparse ones count too. A model without sparse variables is
 * all-reduced.
 *
 * Pushes go as their gradients are ready, with no limit on what is in flight, and a strategy has one credit for all; so
 * where something is served, all-reduces may overlap too. Left out: Parallax's own search for the number of partitions
 * of sparse variables. Source: Kim et al., EuroSys 2019 (arXiv 1808.02621); AutoDist, strategy Parallax.
 * O(variables · log nodes). */
#include "strategy/baselines/baselines.h"
#include "strategy/baselines/builder.h"

enum status baseline_parallax(const struct model *model, const struct cost *cost, struct strategy *out,
                              struct error *err) {
    struct strategy s;
    struct balance balance;
    struct chunker chunker = {0};
    enum status st = strategy_init(&s, "parallax", model, model->n_variables, err);
    if (st)
        return st;
    s.credit_bytes = 0;
    st = balance_init(&balance, &s.arena, cost->cluster->n_nodes, err);
    for (uint32_t v = 0; v < s.n_variables && !st; v++) {
        const struct variable *variable = &model->variables[v];
        s.variables[v].group = chunker_next(&chunker, variable->dtype, 1);
        if (!variable->sparse_rows)
            continue;
        s.credit_bytes = CREDIT_UNLIMITED;
        st = baseline_balance(&s, v, 1, (double)variable->bytes, &balance, err);
    }
    return baseline_finish(st, &s, model, cost->cluster, out, err);
}
