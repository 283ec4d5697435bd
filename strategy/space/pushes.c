/* Pushes that several served variables share. They are drawn as merge groups are: runs in the order of readiness, up to
 * a size. A push has one server and one of each setting, so its variables take them from one of them. Moves may change
 * a single variable without looking at the others; settling then sends it alone. */
#include <stdlib.h>

#include "strategy/plan.h"
#include "strategy/space/moves.h"
#include "strategy/space/space.h"

static bool may_share(const struct draft *d, uint32_t v) {
    const struct variable_sync *sync = &d->strategy.variables[v];
    return sync->kind == SYNC_PARAMETER_SERVER && sync->shards == 1;
}

static enum dtype type_of(const struct draft *d, uint32_t v) {
    return strategy_wire_dtype(&d->space->model->variables[v], &d->strategy.variables[v]);
}

/* Variable v travels with `with`, and as that one does. `number` is for the push where there is none yet. */
static void share(struct draft *d, uint32_t v, uint32_t with, uint32_t number) {
    struct variable_sync *sync = &d->strategy.variables[v], *like = &d->strategy.variables[with];
    if (!like->push)
        like->push = number;
    sync->push = like->push;
    sync->servers = like->servers;
    sync->n_servers = like->n_servers;
    sync->local_reduction = like->local_reduction;
    sync->partition_bytes = like->partition_bytes;
}

/* ---- drawing ---- */

void pushes_draw_uniform(struct draft *d) {
    if (!d->space->options.share_pushes || d->no_memory)
        return;
    for (uint32_t v = 1; v < d->strategy.n_variables; v++) {
        if (!may_share(d, v) || draw_chance(d->rng, 0.5))
            continue;
        uint32_t with = (uint32_t)rng_below(d->rng, v);
        if (may_share(d, with) && type_of(d, with) == type_of(d, v))
            share(d, v, with, with + 1);
    }
}

static double gradient_bytes(const struct draft *d, uint32_t v) {
    return (double)plan_gradient_bytes(&d->strategy, &d->space->model->variables[v], &d->strategy.variables[v]);
}

/* The bytes that a push may hold, about; 0: variables go alone. */
static double draw_push_size(const struct draft *d) {
    double bytes = 0.0;
    for (uint32_t v = 0; v < d->strategy.n_variables; v++)
        bytes += may_share(d, v) ? gradient_bytes(d, v) : 0.0;
    if (!d->space->options.share_pushes || bytes <= SPACE_MIN_BYTES || draw_chance(d->rng, 0.5))
        return 0.0;
    return rng_log_between(d->rng, SPACE_MIN_BYTES, bytes);
}

void pushes_merge(struct draft *d, const uint32_t *order) {
    double size = draw_push_size(d), room[DTYPE_COUNT] = {0};
    uint32_t first[DTYPE_COUNT] = {0};
    for (uint32_t i = 0; i < d->strategy.n_variables && size > 0.0; i++) {
        uint32_t v = order[i];
        if (!may_share(d, v))
            continue;
        enum dtype type = type_of(d, v);
        double bytes = gradient_bytes(d, v);
        if (bytes <= room[type]) {
            share(d, v, first[type], first[type] + 1);
        } else {
            first[type] = v;
            room[type] = size;
        }
        room[type] -= bytes;
    }
}

void pushes_settle(struct draft *d) {
    struct strategy *s = &d->strategy;
    uint32_t *first = calloc((size_t)s->n_variables + 1, sizeof *first); /* by push: its first variable + 1 */
    d->no_memory |= !first;
    for (uint32_t v = 0; v < s->n_variables && !d->no_memory; v++) {
        uint32_t *push = &s->variables[v].push;
        if (!*push || s->variables[v].kind != SYNC_PARAMETER_SERVER)
            continue;
        if (!may_share(d, v) || (first[*push] && strategy_push_difference(s, d->space->model, v, first[*push] - 1)))
            *push = 0;
        else if (!first[*push])
            first[*push] = v + 1;
    }
    free(first);
}

/* ---- moves ---- */

static bool in_push(const struct draft *d, uint32_t v, uint32_t push) {
    return push && d->strategy.variables[v].kind == SYNC_PARAMETER_SERVER && d->strategy.variables[v].push == push;
}

/* A number that no push has. Sealed pushes hold two variables or more, so there are at most half as many. */
uint32_t push_add(const struct draft *d) {
    uint32_t most = 0;
    for (uint32_t v = 0; v < d->strategy.n_variables; v++)
        if (in_push(d, v, d->strategy.variables[v].push) && d->strategy.variables[v].push > most)
            most = d->strategy.variables[v].push;
    return most + 1;
}

void push_follow(struct draft *d, uint32_t v) {
    for (uint32_t u = 0; u < d->strategy.n_variables; u++)
        if (u != v && in_push(d, u, d->strategy.variables[v].push))
            share(d, u, v, 0);
}

void push_unplace(struct draft *d, uint32_t v) {
    d->strategy.variables[v].n_servers = 0;
    push_follow(d, v);
}

/* The next variable by readiness that has the same server and may share; n_variables where there is none. */
static uint32_t next_of_server(const struct draft *d, uint32_t v) {
    const struct variable_sync *sync = d->strategy.variables;
    for (uint32_t i = d->space->place[v] + 1; i < d->strategy.n_variables; i++) {
        uint32_t u = d->space->ready[i];
        if (may_share(d, u) && sync[u].servers[0] == sync[v].servers[0] && type_of(d, u) == type_of(d, v))
            return u;
    }
    return d->strategy.n_variables;
}

/* The variables of one push join another one: mostly the next of the same server, sometimes any. */
bool move_share(struct draft *d, const struct group_view *view) {
    (void)view;
    uint32_t n = d->strategy.n_variables, to = (uint32_t)rng_below(d->rng, n);
    if (!d->space->options.share_pushes || !may_share(d, to))
        return false;
    uint32_t from = draw_chance(d->rng, 0.8) ? next_of_server(d, to) : (uint32_t)rng_below(d->rng, n);
    if (from == n || from == to || !may_share(d, from) || type_of(d, from) != type_of(d, to))
        return false;
    uint32_t joining = d->strategy.variables[from].push, number = push_add(d);
    if (in_push(d, to, joining))
        return false;
    for (uint32_t v = 0; v < n; v++)
        if (v == from || in_push(d, v, joining))
            share(d, v, to, number);
    return true;
}

/* The last variables of a push, in the order of readiness, leave for one of their own. */
bool move_unshare(struct draft *d, const struct group_view *view) {
    (void)view;
    uint32_t n = d->strategy.n_variables, members = 0;
    uint32_t push = d->strategy.variables[rng_below(d->rng, n)].push, added = push_add(d);
    for (uint32_t v = 0; v < n; v++)
        members += in_push(d, v, push);
    if (members < 2)
        return false;
    uint32_t stay = 1 + (uint32_t)rng_below(d->rng, members - 1);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = d->space->ready[i];
        if (in_push(d, v, push) && !(stay && stay--))
            d->strategy.variables[v].push = added;
    }
    return true;
}
