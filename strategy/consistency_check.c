/* The rules of strategy/consistency.h. */
#include <stdlib.h>
#include <string.h>

#include "strategy/consistency.h"
#include "strategy/strategy.h"

/* Servers' updates go whole, so a server has one push; of several element types, one each. */
static enum status check_variable(const struct strategy *strategy, const struct model *model, uint32_t i,
                                  uint32_t *first, struct error *err) {
    const struct variable_sync *sync = &strategy->variables[i];
    const struct variable *v = &model->variables[i];
    const char *wrong = sync->kind != SYNC_PARAMETER_SERVER ? "is not served"
                        : sync->shards > 1                  ? "is cut"
                        : sync->partition_bytes             ? "has \"partition_bytes\""
                        : sync->local_reduction             ? "has \"local_reduction\""
                                                            : NULL;
    if (wrong)
        return error_set(err, ST_INVALID, "variable \"%s\" %s; with \"consistency\" updates go whole to their server",
                         v->name, wrong);
    if (v->sparse_rows && (strategy->consistency.aggregators.n || strategy->consistency.replica_aggregators.n))
        return error_set(err, ST_INVALID, "the gradient of \"%s\" is sparse; aggregators add dense ones", v->name);
    uint32_t *other = &first[sync->servers[0] * DTYPE_COUNT + strategy_wire_dtype(v, sync)];
    if (*other == UINT32_MAX)
        *other = i;
    if (*other != i && (!sync->push || sync->push != strategy->variables[*other].push))
        return error_set(err, ST_INVALID,
                         "\"%s\" and \"%s\" have one server and two pushes; with \"consistency\" they share one",
                         model->variables[*other].name, v->name);
    return ST_OK;
}

static enum status check_variables(const struct strategy *strategy, const struct model *model,
                                   const struct cluster *cluster, struct error *err) {
    const size_t n = (size_t)cluster->n_nodes * DTYPE_COUNT;
    uint32_t *first = malloc(n * sizeof *first); /* variable, by server and element type */
    if (!first)
        return error_no_memory(err);
    memset(first, 0xff, n * sizeof *first);
    enum status st = ST_OK;
    for (uint32_t i = 0; i < strategy->n_variables && !st; i++)
        st = check_variable(strategy, model, i, first, err);
    free(first);
    return st;
}

/* Where every variable has the same server; UINT32_MAX where there are several. */
static uint32_t only_server(const struct strategy *strategy) {
    uint32_t server = strategy->n_variables > 0 ? strategy->variables[0].servers[0] : UINT32_MAX;
    for (uint32_t i = 1; i < strategy->n_variables; i++)
        if (strategy->variables[i].servers[0] != server)
            return UINT32_MAX;
    return server;
}

static enum status check_aggregators(const struct node_list *list, const struct cluster *cluster, uint32_t end,
                                     const char *what, struct error *err) {
    for (uint32_t i = 0; i < list->n; i++)
        if (list->nodes[i] == end)
            return error_set(err, ST_INVALID, "\"%s\" is the %s and cannot be its aggregator", cluster->nodes[end].name,
                             what);
    return ST_OK;
}

static enum status check_parties(const struct strategy *strategy, const struct cluster *cluster, struct error *err) {
    const struct consistency *c = &strategy->consistency;
    uint32_t server = only_server(strategy);
    if (c->replicated && !c->scheduled)
        return error_set(err, ST_INVALID, "a \"replica\" needs the \"scheduler\", which keeps it within its bound");
    if (c->replicated && c->divergence * (1 - c->momentum) < 1 - 1e-9)
        return error_set(err, ST_INVALID,
                         "a replica within %g is never within its bound: with momentum %g one update parts it by %g",
                         c->divergence, c->momentum, 1 / (1 - c->momentum));
    if (server == UINT32_MAX && c->replicated)
        return error_set(err, ST_INVALID, "a \"replica\" follows one server; this strategy has several");
    if (server == UINT32_MAX && (c->aggregators.n > 0 || c->distributors > 0))
        return error_set(err, ST_INVALID, "%s are for one server; this strategy has several",
                         c->distributors ? "\"distributors\"" : "\"aggregators\"");
    enum status st = check_aggregators(&c->aggregators, cluster, server, "server", err);
    return st ? st : check_aggregators(&c->replica_aggregators, cluster, c->replica, "replica", err);
}

enum status consistency_check(const struct strategy *strategy, const struct model *model, const struct cluster *cluster,
                              struct error *err) {
    if (consistency_is_plain(&strategy->consistency))
        return ST_OK;
    if (strategy->policy != POLICY_fifo || strategy->credit_bytes != CREDIT_UNLIMITED || strategy->cross_iteration)
        return error_set(err, ST_INVALID,
                         "with \"consistency\" the schedule is fifo, without credit_bytes or cross_iteration");
    enum status st = check_variables(strategy, model, cluster, err);
    return st ? st : check_parties(strategy, cluster, err);
}
