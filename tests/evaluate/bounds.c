/* Is any measured time below the lower bound, and how tight is it: every strategy of the corpus over the bound of its
 * domain, of lossy strategies over the bound for these. The bound rests on the cluster as it was described, so a time
 * below it may also mean that a description gives a NIC too little. */
#include <math.h>
#include <stdlib.h>

#include "base/statistics.h"
#include "cli/table.h"
#include "simulator/bound.h"
#include "tests/evaluate/evaluate.h"

static const double ROUNDING = 1e-9;

/* Measured and simulated times over the bound. */
struct over {
    size_t n, below, simulated_below;
    double *measured, least_simulated;
};

static enum lossiness lossiness_of(const struct strategy *strategy) {
    enum lossiness most = LOSSY_none;
    for (uint32_t v = 0; v < strategy->n_variables; v++)
        for (uint32_t k = 0; k < sync_parts(&strategy->variables[v]); k++) {
            const enum lossiness own = encoding_lossiness(sync_part(&strategy->variables[v], k)->encoding);
            most = own > most ? own : most;
        }
    return most;
}

static struct over over_of(const struct corpus *corpus, const struct domain *domain, struct arena *arena) {
    struct error err;
    struct cost cost;
    struct bound bound[LOSSINESS_COUNT];
    struct over over = {.n = domain->n, .least_simulated = INFINITY};
    over.measured = allocate(arena, domain->n, sizeof *over.measured);
    check(cost_init(&cost, &domain->cluster, &err), &err);
    for (int lossy = 0; lossy < LOSSINESS_COUNT; lossy++)
        check(bound_iteration(&domain->model, &cost, (enum lossiness)lossy, IN_PARTS_none, &bound[lossy], &err), &err);
    for (size_t i = 0; i < domain->n; i++) {
        size_t place = domain->first + i;
        double bound_us = bound[lossiness_of(&corpus->examples.strategies[place])].iteration_us;
        over.measured[i] = corpus->examples.examples[place].us / bound_us;
        over.below += over.measured[i] < 1 - ROUNDING;
        double simulated = corpus->examples.features[place].timeline_us / bound_us;
        over.simulated_below += simulated < 1 - ROUNDING;
        over.least_simulated = fmin(over.least_simulated, simulated);
    }
    cost_release(&cost);
    return over;
}

static double least_of(const struct over *over) {
    double least = INFINITY;
    for (size_t i = 0; i < over->n; i++)
        least = fmin(least, over->measured[i]);
    return least;
}

void table_bound(struct corpus *corpus) {
    static const char *const heads[] = {
        "domain",  ">strategies",      ">below the bound",       ">least measured/bound",
        ">median", ">simulated below", ">least simulated/bound", NULL};
    struct arena arena = {0};
    struct table table;
    size_t all = 0, below = 0, simulated_below = 0;
    table_init(&table, heads);
    for (size_t d = 0; d < corpus->examples.n_domains; d++) {
        struct over over = over_of(corpus, corpus_domain(corpus, d), &arena);
        all += over.n;
        below += over.below;
        simulated_below += over.simulated_below;
        table_cell(&table, "%s", domain_words(corpus, d, &arena));
        table_cell(&table, "%zu", over.n);
        table_cell(&table, "%zu", over.below);
        table_cell(&table, "%.3f", least_of(&over));
        table_cell(&table, "%.3f", median_of(over.n, over.measured));
        table_cell(&table, "%zu", over.simulated_below);
        table_cell(&table, "%.3f", over.least_simulated);
    }
    table_print(&table, stdout);
    table_release(&table);
    arena_release(&arena);
    printf("%zu measured and %zu simulated times of %zu strategies are below the bound.\n", below, simulated_below,
           all);
}
