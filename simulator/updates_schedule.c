/* The scheduler of simulator/updates.h: what MLfabric's does for each batch (§5 and §10.3), on reported rates. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "simulator/updates.h"
#include "simulator/updates_internal.h"
#include "strategy/updates/aggregate.h"
#include "strategy/updates/calendar.h"
#include "strategy/updates/order.h"
#include "strategy/updates/replicate.h"
#include "strategy/updates/spread.h"

/* One batch: updates that wait, and room for what comes out. */
struct batch {
    uint32_t n;
    uint32_t *workers; /* or nodes that wait for the model */
    struct update *updates;
    uint32_t *order, *group, *aggregators;
    double *end_us, *arrival_us, *sum_us, *applied_us;
    bool *dropped;
    bool *first; /* of nodes: the server sends it the model (strategy/updates/spread.h) */
};

static bool take_batch(struct batch *b, size_t most, size_t nodes, struct arena *arena) {
    *b = (struct batch){.workers = arena_alloc(arena, most, sizeof *b->workers),
                        .updates = arena_alloc(arena, most, sizeof *b->updates),
                        .order = arena_alloc(arena, most, sizeof *b->order),
                        .group = arena_alloc(arena, most, sizeof *b->group),
                        .aggregators = arena_alloc(arena, nodes, sizeof *b->aggregators),
                        .end_us = arena_alloc(arena, most, sizeof *b->end_us),
                        .arrival_us = arena_alloc(arena, most, sizeof *b->arrival_us),
                        .sum_us = arena_alloc(arena, nodes, sizeof *b->sum_us),
                        .applied_us = arena_alloc(arena, most, sizeof *b->applied_us),
                        .dropped = arena_alloc(arena, most, sizeof *b->dropped),
                        .first = arena_alloc(arena, most, sizeof *b->first)};
    return b->workers && b->updates && b->order && b->group && b->aggregators && b->end_us && b->arrival_us &&
           b->sum_us && b->applied_us && b->dropped && b->first;
}

static double reserve(struct calendar *c, bool back, uint32_t from, uint32_t to, double bytes, double available_us) {
    return back ? calendar_reserve(c, to, from, bytes, available_us)
                : calendar_reserve(c, from, to, bytes, available_us);
}

/* ---- turns ---- */

static struct turn *due(struct updates *u, uint32_t s) {
    return u->due + (size_t)s * u->n_workers;
}

static void add_due(struct updates *u, uint32_t s, struct turn turn) {
    due(u, s)[u->n_due[s]++] = turn;
}

static struct turn *find_due(struct updates *u, uint32_t s, enum transfer_kind kind, uint32_t what) {
    struct turn *turn = due(u, s);
    while (turn->kind != kind || turn->what != what)
        turn++;
    return turn;
}

void updates_sum_is_ready(struct updates *u, uint32_t group) {
    find_due(u, 0, TRANSFER_SUM, group)->ready = true;
}

void updates_came(struct updates *u, uint32_t s, enum transfer_kind kind, uint32_t what) {
    struct turn *turn = find_due(u, s, kind, what), *end = due(u, s) + --u->n_due[s];
    memmove(turn, turn + 1, (size_t)(end - turn) * sizeof *turn);
}

enum status updates_set_out(struct updates *u, struct error *err) {
    enum status st = ST_OK;
    for (uint32_t s = 0; s < u->n_servers && !st; s++) {
        const uint32_t n = u->n_due[s];
        for (uint32_t t; !st && (t = turns_next(n, due(u, s), u->servers[s], u->version[s], u->reported_rates)) < n;) {
            struct turn *turn = &due(u, s)[t];
            turn->goes = true;
            st = updates_send(u, turn->kind, turn->what, turn->node, u->servers[s], u->bytes[s], u->turns++, err);
        }
    }
    return st;
}

/* What has not set out, in its order. */
static void reserve_due(struct updates *u, uint32_t s, struct calendar *calendar, bool back) {
    for (uint32_t i = 0; i < u->n_due[s]; i++) {
        const struct turn *turn = &due(u, s)[i];
        const double ready_us = turn->ready ? u->now_us : u->groups[turn->what].ready_us;
        if (!turn->goes)
            reserve(calendar, back, turn->node, u->servers[s], u->bytes[s], ready_us);
    }
}

/* The last version of server s to which an update may be added after `before` others of its sum. With a replica
 * updates are added in their order, whenever they come. */
static uint64_t last_version(const struct updates *u, uint32_t w, uint32_t s, uint32_t before) {
    const uint32_t bound = u->consistency->delay_bound;
    return bound == 0 || u->consistency->replicated ? TURN_ANY_VERSION : u->workers[w].versions[s] + bound - before;
}

/* The calendar begins with what is on its way, in its turn, and with the sums that will follow. `back` reverses all
 * directions. */
static enum status begin_calendar(struct updates *u, bool back, struct calendar *out, struct arena *arena,
                                  struct error *err) {
    const uint32_t ports = u->cost->cluster->n_nodes * DIRECTION_COUNT;
    double *rates = arena_alloc(arena, ports, sizeof *rates);
    if (!rates)
        return error_no_memory(err);
    for (uint32_t p = 0; p < ports; p++)
        rates[p] = u->reported_rates[back ? p ^ 1u : p];
    enum status st = calendar_init(out, u->cost->cluster->n_nodes, rates, u->now_us, err);
    if (st)
        return st;
    while (u->first_group < u->n_groups && !u->groups[u->first_group].waits)
        u->first_group++;
    for (size_t g = u->first_group; g < u->n_groups; g++)
        u->groups[g].ready_us = u->now_us;
    for (size_t i = 0; i < u->wire.n; i++) {
        const struct wire_transfer *t = &u->wire.list[i];
        double end_us = reserve(out, back, t->from, t->to, t->left, u->now_us);
        if (t->kind == TRANSFER_TO_AGGREGATOR)
            u->groups[t->what].ready_us = fmax(u->groups[t->what].ready_us, end_us);
    }
    for (uint32_t s = 0; s < u->n_servers; s++)
        reserve_due(u, s, out, back);
    for (size_t g = u->first_group; g < u->n_groups; g++)
        if (u->groups[g].waits && u->groups[g].copies)
            reserve(out, back, u->groups[g].node, u->groups[g].to, u->all_bytes, u->groups[g].ready_us);
    return ST_OK;
}

/* A new group of `n` members, whose places are to be filled. Fails: ST_NO_MEMORY. */
static enum status add_group(struct updates *u, uint32_t node, uint32_t to, uint32_t n, struct error *err) {
    if (!GROW(&u->groups, &u->group_room, u->n_groups + 1) || !GROW(&u->members, &u->member_room, u->n_members + n + 1))
        return error_no_memory(err);
    u->groups[u->n_groups++] = (struct update_group){.node = node, .to = to, .first = (uint32_t)u->n_members};
    u->n_members += n;
    return ST_OK;
}

static void add_member(struct updates *u, size_t group, uint32_t member) {
    struct update_group *g = &u->groups[group];
    u->members[g->first + g->n++] = member;
}

/* All members of the group that was added last are sent; its sum has the next turn. */
static void close_group(struct updates *u) {
    struct update_group *g = &u->groups[u->n_groups - 1];
    g->missing = g->n;
    g->waits = true;
    g->turn = u->turns++;
}

static uint32_t members_of(const struct batch *b, uint32_t n, uint32_t group) {
    uint32_t members = 0;
    for (uint32_t i = 0; i < n; i++)
        members += b->group[i] == group;
    return members;
}

/* ---- updates ---- */

/* By the oldest of the parts of the model that the worker computed from; all servers have the same turns. */
static uint32_t deadline(const struct updates *u, const struct worker *worker) {
    uint64_t oldest = worker->versions[0];
    for (uint32_t s = 1; s < u->n_servers; s++)
        oldest = worker->versions[s] < oldest ? worker->versions[s] : oldest;
    return update_deadline(oldest, u->consistency->delay_bound, u->version[0] + u->committed);
}

static void gather_updates(struct updates *u, struct batch *b) {
    for (uint32_t w = 0; w < u->n_workers; w++) {
        const struct worker *worker = &u->workers[w];
        if (worker->state != WORKER_WAITS)
            continue;
        b->updates[b->n] = (struct update){
            .node = worker->node, .bytes = u->all_bytes, .available_us = u->now_us, .deadline = deadline(u, worker)};
        b->workers[b->n++] = w;
    }
}

static enum status drop_at_worker(struct updates *u, uint32_t w, struct error *err) {
    u->out->dropped += isfinite(u->counts_from_us) ? 1 : 0;
    return updates_end(u, w, err);
}

/* Every part of every update straight to its server, in order. */
static void send_directly(struct updates *u, const struct batch *b, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        uint32_t w = b->workers[b->order[i]];
        for (uint32_t s = 0; s < u->n_servers; s++)
            add_due(u, s,
                    (struct turn){.node = u->workers[w].node,
                                  .n = 1,
                                  .last = last_version(u, w, s, 0),
                                  .ready = true,
                                  .kind = TRANSFER_PUSH,
                                  .what = w * u->n_servers + s});
    }
}

static enum status send_group(struct updates *u, const struct batch *b, uint32_t n, uint32_t k, struct error *err) {
    const uint32_t members = members_of(b, n, k), node = b->aggregators[k];
    enum status st = members > 0 ? add_group(u, node, u->servers[0], members, err) : ST_OK;
    if (st || members == 0)
        return st;
    const size_t g = u->n_groups - 1;
    uint64_t last = TURN_ANY_VERSION;
    for (uint32_t i = 0; i < n && !st; i++) {
        uint32_t w = b->workers[b->order[i]];
        if (b->group[i] != k)
            continue;
        const uint64_t its = last_version(u, w, 0, u->groups[g].n);
        last = its < last ? its : last;
        add_member(u, g, w);
        st = updates_send(u, TRANSFER_TO_AGGREGATOR, (uint32_t)g, u->workers[w].node, node, u->all_bytes, u->turns++,
                          err);
    }
    close_group(u);
    add_due(u, 0, (struct turn){.node = node, .n = members, .last = last, .kind = TRANSFER_SUM, .what = (uint32_t)g});
    return st;
}

static enum status send_in_groups(struct updates *u, struct batch *b, uint32_t n, struct calendar *calendar,
                                  double *end_us, struct error *err) {
    const struct node_list *list = &u->consistency->aggregators;
    struct aggregation groups = {
        .group = b->group, .arrival_us = b->arrival_us, .sum_us = b->sum_us, .applied_us = b->applied_us};
    memcpy(b->aggregators, list->nodes, list->n * sizeof *list->nodes);
    nodes_fastest_first(list->n, b->aggregators, u->reported_rates);
    enum status st =
        aggregate_updates(calendar, u->servers[0], n, b->order, b->updates, list->n, b->aggregators, &groups, err);
    *end_us = groups.end_us;
    if (!st)
        send_directly(u, b, groups.direct);
    for (uint32_t k = 0; k < list->n && !st; k++)
        st = send_group(u, b, n, k, err);
    return st;
}

/* ---- a replica ---- */

/* The scheduled updates have the next places of the sequence, in order. Fails: ST_NO_MEMORY. */
static enum status add_to_sequence(struct updates *u, const struct batch *b, uint32_t n, struct error *err) {
    if (!GROW(&u->sequence, &u->sequence_room, u->n_sequence + n) || !GROW(&u->norms, &u->norm_room, u->n_sequence + n))
        return error_no_memory(err);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t w = b->workers[b->order[i]];
        u->workers[w].place = (uint32_t)u->n_sequence;
        u->norms[u->n_sequence] = 1;
        u->sequence[u->n_sequence++] = (struct sequel){.worker = w};
    }
    return ST_OK;
}

static enum status copy_to(struct updates *u, uint32_t place, enum transfer_kind kind, uint32_t what, uint32_t to,
                           struct error *err) {
    return updates_send(u, kind, what, u->workers[u->sequence[place].worker].node, to, u->all_bytes, u->turns++, err);
}

static enum status send_group_of_copies(struct updates *u, const struct batch *b, uint32_t sent, uint32_t k,
                                        struct error *err) {
    const uint32_t first = (uint32_t)u->replica_sent, members = members_of(b, sent, k);
    enum status st = members > 0 ? add_group(u, b->aggregators[k], u->consistency->replica, members, err) : ST_OK;
    if (st || members == 0)
        return st;
    const uint32_t g = (uint32_t)u->n_groups - 1;
    u->groups[g].copies = true;
    for (uint32_t i = 0; i < sent && !st; i++) {
        if (b->group[i] != k)
            continue;
        add_member(u, g, first + i);
        st = copy_to(u, first + i, TRANSFER_TO_AGGREGATOR, g, b->aggregators[k], err);
    }
    close_group(u);
    return st;
}

/* Copies of sequence[replica_sent ..]: the first `sent` of them, in the batch's groups. */
static enum status send_copies(struct updates *u, const struct batch *b, uint32_t sent, uint32_t n_groups,
                               struct error *err) {
    const uint32_t first = (uint32_t)u->replica_sent;
    enum status st = ST_OK;
    for (uint32_t i = 0; i < sent && !st; i++)
        if (b->group[i] == TO_SERVER)
            st = copy_to(u, first + i, TRANSFER_COPY, first + i, u->consistency->replica, err);
    for (uint32_t k = 0; k < n_groups && !st; k++)
        st = send_group_of_copies(u, b, sent, k, err);
    u->replica_sent += sent;
    return st;
}

static enum status schedule_copies(struct updates *u, struct calendar *calendar, double last_us, struct arena *arena,
                                   struct error *err) {
    const struct consistency *c = u->consistency;
    const uint32_t n = (uint32_t)(u->n_sequence - u->replica_sent);
    struct batch b;
    if (!take_batch(&b, (size_t)n + 1, u->cost->cluster->n_nodes, arena))
        return error_no_memory(err);
    for (uint32_t i = 0; i < n; i++) {
        const struct worker *worker = &u->workers[u->sequence[u->replica_sent + i].worker];
        b.order[i] = i;
        b.updates[i] = (struct update){.node = worker->node, .bytes = u->all_bytes, .available_us = u->now_us};
    }
    for (uint32_t k = 0; k < c->replica_aggregators.n; k++)
        b.aggregators[k] = c->replica_aggregators.nodes[k];
    nodes_fastest_first(c->replica_aggregators.n, b.aggregators, u->reported_rates);
    struct replication r = {
        .aggregation = {.group = b.group, .arrival_us = b.arrival_us, .sum_us = b.sum_us, .applied_us = b.applied_us}};
    enum status st = replicate_updates(calendar, c->replica, n, b.order, b.updates, u->norms + u->replica_sent,
                                       1 / (1 - c->momentum), c->momentum, c->divergence, c->copies_when_due, last_us,
                                       c->replica_aggregators.n, b.aggregators, &r, err);
    return st ? st : send_copies(u, &b, r.sent, c->replica_aggregators.n, err);
}

/* ---- a batch of updates ---- */

static enum status commit(struct updates *u, const struct batch *b, uint32_t n, struct error *err) {
    for (uint32_t i = 0; i < n; i++) {
        struct worker *worker = &u->workers[b->workers[b->order[i]]];
        worker->state = WORKER_PUSHES;
        worker->parts = u->n_servers;
    }
    u->committed += n;
    return u->consistency->replicated ? add_to_sequence(u, b, n, err) : ST_OK;
}

/* Order the batch, drop what is to be dropped, commit the rest. */
static enum status order_batch(struct updates *u, struct batch *b, struct calendar *calendar,
                               struct update_order *order, struct error *err) {
    const struct update_servers servers = {u->n_servers, u->servers, u->share};
    enum status st = order_updates(calendar, &servers, b->n, b->updates, u->consistency->order, order, err);
    for (uint32_t i = 0; i < b->n && !st; i++)
        if (b->dropped[i])
            st = drop_at_worker(u, b->workers[i], err);
    return st ? st : commit(u, b, order->n, err);
}

static enum status send_batch(struct updates *u, struct batch *b, const struct update_order *order, size_t mark,
                              struct calendar *calendar, double *end_us, struct error *err) {
    *end_us = order->n > 0 ? order->end_us[order->n - 1] : u->now_us;
    if (u->consistency->aggregators.n == 0) {
        send_directly(u, b, order->n);
        return ST_OK;
    }
    calendar_back_to(calendar, mark);
    return send_in_groups(u, b, order->n, calendar, end_us, err);
}

static enum status schedule_updates(struct updates *u, struct batch *b, struct arena *arena, struct error *err) {
    struct update_order order = {.order = b->order, .end_us = b->end_us, .dropped = b->dropped};
    struct calendar calendar = {0};
    double end_us = 0;
    b->n = 0;
    gather_updates(u, b);
    if (b->n == 0)
        return ST_OK;
    enum status st = begin_calendar(u, false, &calendar, arena, err);
    size_t mark = calendar_mark(&calendar);
    if (!st)
        st = order_batch(u, b, &calendar, &order, err);
    if (!st)
        st = send_batch(u, b, &order, mark, &calendar, &end_us, err);
    if (!st && u->consistency->replicated)
        st = schedule_copies(u, &calendar, end_us, arena, err);
    calendar_release(&calendar);
    return st;
}

/* ---- models ---- */

/* The nodes whose workers ask and may have the model, but the server's own, and whether that one has such workers too.
 * They take the server's version of now. */
static bool gather_nodes(struct updates *u, struct batch *b) {
    bool here = false;
    b->n = 0;
    for (uint32_t w = 0; w < u->n_workers; w++) {
        uint32_t node = u->workers[w].node;
        if (u->workers[w].state != WORKER_ASKS || !updates_may_have_model(u, w))
            continue;
        updates_take_versions(u, w);
        here = here || node == u->servers[0];
        if (node != u->servers[0] && (b->n == 0 || b->workers[b->n - 1] != node)) /* they are numbered node by node */
            b->workers[b->n++] = node;
    }
    return here;
}

/* To nodes[0], which passes it on to the other n - 1. */
static enum status send_along(struct updates *u, const uint32_t *nodes, uint32_t n, struct error *err) {
    if (n == 1)
        return updates_send_model(u, TRANSFER_TO_NODE, nodes[0], u->servers[0], nodes[0], u->version[0], u->turns++,
                                  err);
    enum status st = add_group(u, nodes[0], nodes[0], n - 1, err);
    if (st)
        return st;
    const size_t g = u->n_groups - 1;
    for (uint32_t i = 1; i < n; i++)
        add_member(u, g, nodes[i]);
    u->groups[g].version = u->version[0];
    st = updates_send_model(u, TRANSFER_TO_DISTRIBUTOR, (uint32_t)g, u->servers[0], nodes[0], u->version[0], u->turns++,
                            err);
    u->groups[g].turn = u->turns++;
    return st;
}

/* §10.3. */
static enum status schedule_models(struct updates *u, struct batch *b, struct arena *arena, struct error *err) {
    struct calendar calendar = {0};
    enum status st = gather_nodes(u, b) ? send_along(u, u->servers, 1, err) : ST_OK;
    if (st || b->n == 0)
        return st;
    st = begin_calendar(u, true, &calendar, arena, err);
    if (!st)
        st = spread_model(&calendar, u->servers[0], u->all_bytes, b->n, b->workers, b->first,
                          u->consistency->distributors, u->reported_rates, err);
    for (uint32_t i = 0, end; i < b->n && !st; i = end) {
        for (end = i + 1; end < b->n && !b->first[end]; end++)
            ;
        st = send_along(u, b->workers + i, end - i, err);
    }
    calendar_release(&calendar);
    return st;
}

enum status updates_schedule(struct updates *u, struct error *err) {
    struct arena arena = {0};
    struct batch batch;
    enum status st = take_batch(&batch, u->n_workers, u->cost->cluster->n_nodes, &arena) ? ST_OK : error_no_memory(err);
    if (!st)
        st = schedule_updates(u, &batch, &arena, err);
    if (!st && u->consistency->distributors > 0)
        st = schedule_models(u, &batch, &arena, err);
    arena_release(&arena);
    return st;
}
