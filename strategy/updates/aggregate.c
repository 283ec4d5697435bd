/* See aggregate.h. */
#include "strategy/updates/aggregate.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "strategy/cluster.h"

static const double EQUAL = 1e-9;

struct aggregating {
    struct calendar *calendar;
    uint32_t server, n, n_aggregators;
    const uint32_t *order, *aggregators;
    const struct update *updates;
    uint32_t directs;  /* transfers straight to the server that stand in the calendar */
    size_t *mark;      /* n + 1: before transfer i straight to the server */
    double *direct_us; /* n + 1: when the first i are all there */
    double *rest_us;   /* n + 1: no sooner are the others in the model, if the first i go straight */
    double best_us;
    uint32_t best;
};

/* A case that is worked out: which group is being filled, and with what. */
struct filling {
    uint32_t group, members;
    double bytes, ready_us; /* of its sum */
    double end_us;          /* of all that the server has been sent */
};

static bool later(double a, double b) {
    return a - b > EQUAL * fmax(fabs(a), fabs(b));
}

static const struct update *at(const struct aggregating *a, uint32_t i) {
    return &a->updates[a->order[i]];
}

static void send_sum(struct aggregating *a, struct filling *f, struct aggregation *out) {
    if (f->members > 0) {
        double end_us = calendar_reserve(a->calendar, a->aggregators[f->group], a->server, f->bytes, f->ready_us);
        f->end_us = fmax(f->end_us, end_us);
    }
    if (out)
        out->sum_us[f->group] = f->members > 0 ? f->end_us : 0;
    f->members = 0;
    f->bytes = f->ready_us = 0;
}

static void put_into_group(struct aggregating *a, uint32_t i, struct filling *f, struct aggregation *out) {
    const struct update *u = at(a, i);
    double arrival_us = calendar_reserve(a->calendar, u->node, a->aggregators[f->group], u->bytes, u->available_us);
    f->members++;
    f->bytes = fmax(f->bytes, u->bytes);
    f->ready_us = fmax(f->ready_us, arrival_us);
    if (out) {
        out->group[i] = f->group;
        out->arrival_us[i] = arrival_us;
    }
}

/* DetAgg, after the first `direct` updates are reserved: the others into groups. Stops when the end is later than
 * enough_us. Returns the end. */
static double fill_groups(struct aggregating *a, uint32_t direct, double enough_us, struct aggregation *out) {
    struct filling f = {.end_us = a->direct_us[direct]};
    for (uint32_t i = direct; i < a->n && !later(f.end_us, enough_us);) {
        const struct update *u = at(a, i);
        bool last = f.group + 1 == a->n_aggregators;
        if (!last && later(calendar_end_us(a->calendar, u->node, a->aggregators[f.group], u->bytes, u->available_us),
                           f.end_us)) {
            send_sum(a, &f, out);
            f.group++;
            continue;
        }
        put_into_group(a, i++, &f, out);
    }
    if (a->n_aggregators > 0)
        send_sum(a, &f, out);
    return f.end_us;
}

/* ---- transfers straight to the server ---- */

/* Let exactly the first n of them stand. */
static void set_directs(struct aggregating *a, uint32_t n) {
    if (n < a->directs)
        calendar_back_to(a->calendar, a->mark[n]);
    for (uint32_t i = a->directs; i < n; i++) {
        const struct update *u = at(a, i);
        a->mark[i] = calendar_mark(a->calendar);
        double end_us = calendar_reserve(a->calendar, u->node, a->server, u->bytes, u->available_us);
        a->direct_us[i + 1] = fmax(a->direct_us[i], end_us);
    }
    a->directs = n;
}

static double most_free(const struct calendar *c, uint32_t node, enum direction direction) {
    const struct calendar_port *port = &c->ports[node * DIRECTION_COUNT + direction];
    double most = 0;
    for (size_t i = 0; i < port->n; i++)
        most = fmax(most, port->steps[i].rate);
    return most;
}

/* What does not go straight to the server goes through the aggregators' ports, and at least one sum follows. */
static void bound_rest(struct aggregating *a, bool *aggregates) {
    double into = 0, least = INFINITY, bytes = 0;
    double server = most_free(a->calendar, a->server, DIRECTION_IN);
    for (uint32_t g = 0; g < a->n_aggregators; g++) {
        into += most_free(a->calendar, a->aggregators[g], DIRECTION_IN);
        aggregates[a->aggregators[g]] = true;
    }
    a->rest_us[a->n] = 0;
    for (uint32_t i = a->n; i-- > 0;) {
        const struct update *u = at(a, i);
        bytes += aggregates[u->node] ? 0 : u->bytes;
        least = fmin(least, u->bytes);
        a->rest_us[i] = a->calendar->now_us + bytes / into + least / server;
    }
}

/* ---- all cases ---- */

/* Whether a case that ends no sooner than at_least_us cannot be the best. */
static bool hopeless(const struct aggregating *a, uint32_t n, double at_least_us) {
    return later(at_least_us, a->best_us) || (n > a->best && !later(a->best_us, at_least_us));
}

static void try_case(struct aggregating *a, uint32_t n) {
    set_directs(a, n);
    size_t mark = calendar_mark(a->calendar);
    double end_us = fill_groups(a, n, a->best_us, NULL);
    calendar_back_to(a->calendar, mark);
    if (later(a->best_us, end_us) || (n < a->best && !later(end_us, a->best_us))) {
        a->best_us = end_us;
        a->best = n;
    }
}

static void find_best(struct aggregating *a) {
    uint32_t n = 0;
    a->best_us = a->direct_us[a->n];
    a->best = a->n;
    while (n < a->n && a->direct_us[n] < a->rest_us[n])
        n++;
    for (uint32_t down = n; down-- > 0 && !hopeless(a, down, a->rest_us[down]);)
        try_case(a, down);
    for (; n < a->n && !hopeless(a, n, a->direct_us[n]); n++)
        try_case(a, n);
}

static void note_directs(const struct aggregating *a, struct aggregation *out) {
    out->direct = a->best;
    for (uint32_t i = 0; i < a->best; i++) {
        out->group[i] = TO_SERVER;
        out->arrival_us[i] = a->direct_us[i + 1];
    }
}

static void note_applied(const struct aggregating *a, struct aggregation *out) {
    double applied_us = a->calendar->now_us;
    for (uint32_t i = 0; i < a->n; i++) {
        applied_us = fmax(applied_us, out->group[i] == TO_SERVER ? out->arrival_us[i] : out->sum_us[out->group[i]]);
        out->applied_us[i] = applied_us;
    }
    out->end_us = applied_us;
}

enum status aggregate_updates(struct calendar *calendar, uint32_t server, uint32_t n, const uint32_t *order,
                              const struct update *updates, uint32_t n_aggregators, const uint32_t *aggregators,
                              struct aggregation *out, struct error *err) {
    struct arena arena = {0};
    struct aggregating a = {.calendar = calendar,
                            .server = server,
                            .n = n,
                            .n_aggregators = n_aggregators,
                            .order = order,
                            .aggregators = aggregators,
                            .updates = updates};
    bool *aggregates = arena_alloc(&arena, calendar->n_nodes, sizeof *aggregates);
    a.mark = arena_alloc(&arena, (size_t)n + 1, sizeof *a.mark);
    a.direct_us = arena_alloc(&arena, (size_t)n + 1, sizeof *a.direct_us);
    a.rest_us = arena_alloc(&arena, (size_t)n + 1, sizeof *a.rest_us);
    bool ok = aggregates && a.mark && a.direct_us && a.rest_us;
    if (ok) {
        a.direct_us[0] = calendar->now_us;
        memset(out->sum_us, 0, n_aggregators * sizeof *out->sum_us);
        if (n_aggregators > 0)
            bound_rest(&a, aggregates);
        set_directs(&a, n);
        if (n_aggregators > 0)
            find_best(&a);
        else
            a.best = n;
        set_directs(&a, a.best);
        note_directs(&a, out);
        fill_groups(&a, a.best, INFINITY, out);
        note_applied(&a, out);
    }
    arena_release(&arena);
    return ok && !calendar->no_memory ? ST_OK : error_no_memory(err);
}

static double narrower(uint32_t node, const double *rates) {
    return fmin(rates[node * DIRECTION_COUNT + DIRECTION_OUT], rates[node * DIRECTION_COUNT + DIRECTION_IN]);
}

void nodes_fastest_first(uint32_t n, uint32_t *nodes, const double *rates) {
    for (uint32_t i = 1; i < n; i++) {
        uint32_t node = nodes[i], k = i;
        for (; k > 0 && narrower(nodes[k - 1], rates) < narrower(node, rates); k--)
            nodes[k] = nodes[k - 1];
        nodes[k] = node;
    }
}
