/* See calendar.h. */
#include "strategy/updates/calendar.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "strategy/cluster.h"

enum status calendar_init(struct calendar *out, uint32_t n_nodes, const double *rates, double now_us,
                          struct error *err) {
    struct calendar c = {.n_nodes = n_nodes, .now_us = now_us};
    c.ports = calloc((size_t)n_nodes * DIRECTION_COUNT, sizeof *c.ports);
    bool ok = c.ports;
    for (size_t p = 0; ok && p < (size_t)n_nodes * DIRECTION_COUNT; p++) {
        struct calendar_port *port = &c.ports[p];
        ok = GROW(&port->steps, &port->room, 4);
        if (ok)
            port->steps[port->n++] = (struct calendar_step){now_us, rates[p]};
    }
    if (!ok) {
        calendar_release(&c);
        return error_no_memory(err);
    }
    *out = c;
    return ST_OK;
}

void calendar_release(struct calendar *c) {
    for (size_t p = 0; c->ports && p < (size_t)c->n_nodes * DIRECTION_COUNT; p++)
        free(c->ports[p].steps);
    free(c->ports);
    free(c->taken);
    free(c->built);
    free(c->saved);
    free(c->undo);
    *c = (struct calendar){0};
}

/* A transfer's walk over the steps of its two ports. */
struct walk {
    const struct calendar_step *out, *in; /* the steps at `us` */
    size_t left_out, left_in;             /* steps behind them */
    double us, rate, until_us;            /* now, what is free, and until when */
    double nothing;                       /* bytes */
};

static void look(struct walk *w) {
    while (w->left_out > 0 && w->out[1].from_us <= w->us) {
        w->out++;
        w->left_out--;
    }
    while (w->left_in > 0 && w->in[1].from_us <= w->us) {
        w->in++;
        w->left_in--;
    }
    w->rate = fmin(w->out->rate, w->in->rate);
    w->until_us = fmin(w->left_out > 0 ? w->out[1].from_us : INFINITY, w->left_in > 0 ? w->in[1].from_us : INFINITY);
}

static struct walk begin(const struct calendar *c, uint32_t from, uint32_t to, double bytes, double available_us) {
    const struct calendar_port *out = &c->ports[from * DIRECTION_COUNT + DIRECTION_OUT];
    const struct calendar_port *in = &c->ports[to * DIRECTION_COUNT + DIRECTION_IN];
    struct walk w = {.out = out->steps, .in = in->steps, .left_out = out->n - 1, .left_in = in->n - 1};
    w.nothing = 1e-12 * bytes;
    w.us = fmax(available_us, fmax(out->steps->from_us, in->steps->from_us));
    look(&w);
    return w;
}

/* When so many bytes are through at the present rate: never, where nothing is free. What rounding leaves is nothing. */
static double end_of(const struct walk *w, double left) {
    return left > w->nothing ? w->us + left / w->rate : w->us;
}

/* On to the next step; returns what is left of the bytes. */
static double go_on(struct walk *w, double left) {
    left -= w->rate * (w->until_us - w->us);
    w->us = w->until_us;
    look(w);
    return left;
}

double calendar_end_us(const struct calendar *c, uint32_t from, uint32_t to, double bytes, double available_us) {
    if (from == to || bytes <= 0)
        return fmax(available_us, c->now_us);
    struct walk w = begin(c, from, to, bytes, available_us);
    double left = bytes;
    while (end_of(&w, left) > w.until_us)
        left = go_on(&w, left);
    return end_of(&w, left);
}

/* ---- reserving ---- */

static bool save(struct calendar *c, uint32_t port) {
    const struct calendar_port *p = &c->ports[port];
    if (!c->undoes)
        return true;
    if (!GROW(&c->saved, &c->saved_room, c->n_saved + p->n) || !GROW(&c->undo, &c->undo_room, c->n_undo + 1))
        return false;
    memcpy(c->saved + c->n_saved, p->steps, p->n * sizeof *p->steps);
    c->undo[c->n_undo++] = (struct calendar_undo){.port = port, .first = c->n_saved, .n = p->n};
    c->n_saved += p->n;
    return true;
}

/* One step more of the port that is built. Nothing is kept of before the first free step, and of equal steps one. */
static void put(struct calendar_step *built, size_t *n, double from_us, double rate) {
    if (*n > 0 && built[*n - 1].from_us >= from_us)
        (*n)--;
    if ((*n > 0 && built[*n - 1].rate == rate) || (*n == 0 && rate <= 0))
        return;
    built[(*n)++] = (struct calendar_step){from_us, rate};
}

/* Take taken[0 .. n), whose last entry only says when the one before it ends, off a port. Every entry lies within one
 * step of the port. */
static bool take_off(struct calendar *c, uint32_t port, size_t n) {
    struct calendar_port *p = &c->ports[port];
    size_t k = 0, n_built = 0;
    if (!GROW(&c->built, &c->built_room, p->n + 2 * n + 1) || !save(c, port))
        return false;
    for (size_t i = 0; i < p->n; i++) {
        double rate = p->steps[i].rate, end_us = i + 1 < p->n ? p->steps[i + 1].from_us : INFINITY;
        put(c->built, &n_built, p->steps[i].from_us, rate);
        for (; k + 1 < n && c->taken[k].from_us < end_us; k++) {
            put(c->built, &n_built, c->taken[k].from_us, rate - c->taken[k].rate);
            if (c->taken[k + 1].from_us < end_us)
                put(c->built, &n_built, c->taken[k + 1].from_us, rate);
        }
    }
    if (!GROW(&p->steps, &p->room, n_built))
        return false;
    memcpy(p->steps, c->built, n_built * sizeof *p->steps);
    p->n = n_built;
    return true;
}

/* List what the transfer takes, step by step, and an entry for its end. */
static size_t list_taken(struct calendar *c, struct walk w, double bytes, double *end_us) {
    size_t n = 0;
    double left = bytes;
    for (bool through = false; !through;) {
        if (!GROW(&c->taken, &c->taken_room, n + 2))
            return 0;
        c->taken[n++] = (struct calendar_step){w.us, w.rate};
        through = end_of(&w, left) <= w.until_us;
        if (!through)
            left = go_on(&w, left);
    }
    *end_us = end_of(&w, left);
    c->taken[n++] = (struct calendar_step){*end_us, 0};
    return n;
}

double calendar_reserve(struct calendar *c, uint32_t from, uint32_t to, double bytes, double available_us) {
    double end_us = fmax(available_us, c->now_us);
    if (from == to || bytes <= 0 || c->no_memory)
        return end_us;
    size_t n = list_taken(c, begin(c, from, to, bytes, available_us), bytes, &end_us);
    if (n == 0 || !take_off(c, from * DIRECTION_COUNT + DIRECTION_OUT, n) ||
        !take_off(c, to * DIRECTION_COUNT + DIRECTION_IN, n))
        c->no_memory = true;
    return end_us;
}

/* ---- taking back ---- */

size_t calendar_mark(struct calendar *c) {
    c->undoes = true;
    return c->n_undo;
}

void calendar_back_to(struct calendar *c, size_t mark) {
    while (c->n_undo > mark) {
        const struct calendar_undo *u = &c->undo[--c->n_undo];
        struct calendar_port *p = &c->ports[u->port]; /* has held as many steps before */
        memcpy(p->steps, c->saved + u->first, u->n * sizeof *p->steps);
        p->n = u->n;
        c->n_saved = u->first;
    }
}
