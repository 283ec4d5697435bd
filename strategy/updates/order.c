/* See order.h. */
#include "strategy/updates/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "strategy/cluster.h"

static const double EQUAL = 1e-9;
enum { NOBODY = UINT32_MAX };

uint32_t update_deadline(uint64_t from, uint32_t bound, uint64_t next) {
    const uint64_t then = from + bound + 1;
    return bound == 0 ? UPDATE_ANY_PLACE : then > next ? (uint32_t)(then - next) : 0;
}

/* A lower bound that was raised while the reservation before it was still in question. */
struct raised {
    uint32_t update;
    double bound_us;
};

struct ordering {
    struct calendar *calendar;
    const struct update_servers *servers;
    const struct update *updates;
    uint32_t *left; /* not yet ordered or dropped, by rising bytes, then by number */
    uint32_t n_left;
    double *bound_us; /* of each update's end */
    struct raised *raised;
    uint32_t n_raised;
    struct update_order *out;
};

/* Who goes next, and when it would end. */
struct choice {
    uint32_t update;
    double end_us;
};

static double reserve(struct ordering *o, uint32_t i) {
    const struct update *u = &o->updates[i];
    double end_us = 0;
    for (uint32_t s = 0; s < o->servers->n; s++)
        end_us = fmax(end_us, calendar_reserve(o->calendar, u->node, o->servers->nodes[s],
                                               u->bytes * o->servers->share[s], u->available_us));
    return end_us;
}

/* With several servers a part takes what the part after it would take: try it. */
static double end_of(struct ordering *o, uint32_t i) {
    const struct update *u = &o->updates[i];
    if (o->servers->n == 1)
        return calendar_end_us(o->calendar, u->node, o->servers->nodes[0], u->bytes, u->available_us);
    size_t mark = calendar_mark(o->calendar);
    double end_us = reserve(o, i);
    calendar_back_to(o->calendar, mark);
    return end_us;
}

/* ---- bounds ---- */

/* What the server's port alone allows, for rising bytes. */
struct server_bound {
    const struct calendar_step *step, *last;
    double before; /* bytes that the port lets through before the step */
};

static struct server_bound server_bound(const struct ordering *o) {
    const struct calendar_port *in = &o->calendar->ports[o->servers->nodes[0] * DIRECTION_COUNT + DIRECTION_IN];
    return (struct server_bound){.step = in->steps, .last = in->steps + in->n - 1};
}

static double server_end_us(struct server_bound *b, double bytes) {
    for (; b->step < b->last; b->step++) {
        double through = b->step->rate * (b->step[1].from_us - b->step->from_us);
        if (b->before + through >= bytes)
            break;
        b->before += through;
    }
    return b->step->rate > 0 ? b->step->from_us + (bytes - b->before) / b->step->rate : b->step->from_us;
}

static bool same(double a, double b) {
    return fabs(a - b) <= EQUAL * fmax(fabs(a), fabs(b));
}

/* Whether an update that ends at `end_us` at the earliest cannot take the place of the best so far. */
static bool hopeless(const struct choice *best, uint32_t i, double end_us) {
    return best->update != NOBODY && (same(end_us, best->end_us) ? i > best->update : end_us > best->end_us);
}

static void raise_bound(struct ordering *o, uint32_t i, double end_us, bool in_question) {
    if (in_question)
        o->raised[o->n_raised++] = (struct raised){i, o->bound_us[i]};
    o->bound_us[i] = end_us;
}

/* Of the updates that are left, with deadlines from `first` to `last`, the one that ends first. While a reservation is
 * in question, bounds are remembered as they were. */
static struct choice shortest(struct ordering *o, uint32_t first, uint32_t last, bool in_question) {
    const bool bounded = o->servers->n == 1;
    struct choice best = {.update = NOBODY};
    struct server_bound server = server_bound(o);
    for (uint32_t k = 0; k < o->n_left; k++) {
        uint32_t i = o->left[k];
        const struct update *u = &o->updates[i];
        if (u->deadline < first || u->deadline > last)
            continue;
        double least_us = o->bound_us[i];
        if (bounded && u->node != o->servers->nodes[0])
            least_us = fmax(least_us, server_end_us(&server, u->bytes));
        if (bounded && hopeless(&best, i, least_us))
            continue;
        double end_us = end_of(o, i);
        if (bounded)
            raise_bound(o, i, end_us, in_question);
        if (!hopeless(&best, i, end_us))
            best = (struct choice){i, end_us};
    }
    return best;
}

static void forget(struct ordering *o, uint32_t i) {
    uint32_t k = 0;
    while (o->left[k] != i)
        k++;
    memmove(o->left + k, o->left + k + 1, (--o->n_left - k) * sizeof *o->left);
}

static void drop(struct ordering *o, uint32_t i) {
    o->out->dropped[i] = true;
}

static void apply(struct ordering *o, uint32_t i, double end_us) {
    struct update_order *out = o->out;
    out->end_us[out->n] = out->n > 0 ? fmax(end_us, out->end_us[out->n - 1]) : end_us;
    out->order[out->n++] = i;
}

/* ---- algorithm 2 ---- */

/* ShrtDLine: the update with this deadline, the shortest of several, else the shortest of those that are not late. */
static struct choice due_or_shortest(struct ordering *o, uint32_t place, bool in_question) {
    struct choice due = shortest(o, place, place, in_question);
    return due.update != NOBODY ? due : shortest(o, place, UPDATE_ANY_PLACE, in_question);
}

static void drop_late(struct ordering *o, uint32_t place) {
    for (uint32_t k = o->n_left; k-- > 0;) {
        uint32_t i = o->left[k];
        if (o->updates[i].deadline >= place)
            continue;
        drop(o, i);
        forget(o, i);
    }
}

/* The next update's end is known when this one is reserved, so the look ahead is also the next choice. */
static void order_mlfabric(struct ordering *o) {
    struct choice next = {.update = NOBODY};
    bool known = false;
    for (uint32_t place = 1; o->n_left > 0; place++) {
        drop_late(o, place);
        struct choice now = known ? next : due_or_shortest(o, place, false);
        if (now.update == NOBODY)
            continue;
        forget(o, now.update);
        o->n_raised = 0;
        size_t mark = calendar_mark(o->calendar);
        double end_us = reserve(o, now.update);
        next = due_or_shortest(o, place + 1, true);
        known = next.update == NOBODY || end_us <= next.end_us || same(end_us, next.end_us);
        if (known) {
            apply(o, now.update, end_us);
            continue;
        }
        calendar_back_to(o->calendar, mark);
        while (o->n_raised > 0) {
            const struct raised *r = &o->raised[--o->n_raised];
            o->bound_us[r->update] = r->bound_us;
        }
        drop(o, now.update);
    }
}

/* ---- slots ---- */

/* Updates with deadline d are in counts[d]; later ones than there are updates do not count. */
static void count_deadlines(const struct ordering *o, uint32_t n, uint32_t *counts) {
    memset(counts, 0, (n + 1) * sizeof *counts);
    for (uint32_t k = 0; k < o->n_left; k++)
        if (o->updates[o->left[k]].deadline <= n)
            counts[o->updates[o->left[k]].deadline]++;
}

/* Of the updates with a deadline of at most `last` the one that would end last by itself; of equals the last. */
static uint32_t slowest(const struct ordering *o, uint32_t last) {
    uint32_t worst = NOBODY;
    for (uint32_t k = 0; k < o->n_left; k++) {
        uint32_t i = o->left[k];
        if (o->updates[i].deadline <= last && (worst == NOBODY || o->bound_us[i] >= o->bound_us[worst]))
            worst = i;
    }
    return worst;
}

static void drop_too_many(struct ordering *o, uint32_t n, uint32_t *counts) {
    for (uint32_t i = 0; i < n; i++)
        o->bound_us[i] = end_of(o, i);
    count_deadlines(o, n, counts);
    for (uint32_t d = 0, so_far = 0; d <= n; d++) {
        for (so_far += counts[d]; so_far > d; so_far--) {
            uint32_t i = slowest(o, d);
            drop(o, i);
            forget(o, i);
        }
    }
}

/* The first deadline up to which the updates that are left fill all places from `place` on. */
static uint32_t first_full(const struct ordering *o, uint32_t n, uint32_t place, uint32_t *counts) {
    count_deadlines(o, n, counts);
    for (uint32_t d = place, so_far = 0; d <= n; d++)
        if ((so_far += counts[d]) == d - place + 1)
            return d;
    return UPDATE_ANY_PLACE;
}

static void order_slots(struct ordering *o, uint32_t n, uint32_t *counts) {
    drop_too_many(o, n, counts);
    for (uint32_t place = 1; o->n_left > 0; place++) {
        struct choice now = shortest(o, 0, first_full(o, n, place, counts), false);
        forget(o, now.update);
        apply(o, now.update, reserve(o, now.update));
    }
}

/* ---- setting out ---- */

struct sized {
    double bytes;
    uint32_t update;
};

static int compare_sized(const void *a, const void *b) {
    const struct sized *x = a, *y = b;
    return x->bytes != y->bytes ? (x->bytes > y->bytes) - (x->bytes < y->bytes)
                                : (x->update > y->update) - (x->update < y->update);
}

static bool sort_by_bytes(struct ordering *o, uint32_t n, struct arena *arena) {
    struct sized *sized = arena_alloc(arena, n, sizeof *sized);
    if (!sized)
        return false;
    for (uint32_t i = 0; i < n; i++)
        sized[i] = (struct sized){o->updates[i].bytes, i};
    qsort(sized, n, sizeof *sized, compare_sized);
    for (uint32_t i = 0; i < n; i++)
        o->left[i] = sized[i].update;
    return true;
}

enum status order_updates(struct calendar *calendar, const struct update_servers *servers, uint32_t n,
                          const struct update *updates, enum update_order_rule rule, struct update_order *out,
                          struct error *err) {
    struct arena arena = {0};
    struct ordering o = {.calendar = calendar, .servers = servers, .updates = updates, .n_left = n, .out = out};
    uint32_t *counts = arena_alloc(&arena, (size_t)n + 1, sizeof *counts);
    o.left = arena_alloc(&arena, n, sizeof *o.left);
    o.bound_us = arena_alloc(&arena, n, sizeof *o.bound_us);
    o.raised = arena_alloc(&arena, 2 * (size_t)n, sizeof *o.raised);
    bool ok = counts && o.left && o.bound_us && o.raised && sort_by_bytes(&o, n, &arena);
    if (ok) {
        out->n = 0;
        memset(out->dropped, 0, n * sizeof *out->dropped);
        if (rule == UPDATE_ORDER_mlfabric)
            order_mlfabric(&o);
        else
            order_slots(&o, n, counts);
    }
    arena_release(&arena);
    return ok && !calendar->no_memory ? ST_OK : error_no_memory(err);
}
