/* See wire.h. */
#include "simulator/wire.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/rng.h"
#include "strategy/cluster.h"

static const double NOTHING = 1e-6; /* bytes: what rounding leaves */

/* Class n_nodes * from + to uses the port out of `from` and the port into `to`. */
static bool init_flows(struct wire *w) {
    const uint32_t classes = w->n_nodes * w->n_nodes, uses = 2 * classes, ports = DIRECTION_COUNT * w->n_nodes;
    struct flows *f = &w->flows;
    *f = (struct flows){.n_classes = classes, .n_resources = ports};
    f->capacity = calloc(ports, sizeof *f->capacity);
    f->use = calloc(uses, sizeof *f->use);
    f->members = calloc(uses, sizeof *f->members);
    f->class = calloc(classes, sizeof *f->class);
    f->resource = calloc(ports, sizeof *f->resource);
    f->touched = calloc(classes, sizeof *f->touched);
    f->changed = calloc(classes, sizeof *f->changed);
    f->queue = calloc(ports, sizeof *f->queue);
    f->scratch = calloc(2 * (size_t)classes, sizeof *f->scratch);
    w->first = calloc((size_t)classes + 1, sizeof *w->first);
    w->uses = calloc(uses, sizeof *w->uses);
    if (!f->capacity || !f->use || !f->members || !f->class || !f->resource || !f->touched || !f->changed ||
        !f->queue || !f->scratch || !w->first || !w->uses)
        return false;
    for (uint32_t c = 0; c < classes; c++) {
        w->first[c + 1] = 2 * (c + 1);
        w->uses[2 * c] = c / w->n_nodes * DIRECTION_COUNT + DIRECTION_OUT;
        w->uses[2 * c + 1] = c % w->n_nodes * DIRECTION_COUNT + DIRECTION_IN;
        f->use[2 * c].times = f->use[2 * c + 1].times = 1;
    }
    memcpy(f->capacity, w->rates, ports * sizeof *f->capacity);
    f->first = w->first;
    f->uses = w->uses;
    flows_clear(f);
    return true;
}

enum status wire_init(struct wire *out, uint32_t n_nodes, bool fair, double spread, const double *rates,
                      const double *local, struct error *err) {
    const size_t ports = (size_t)n_nodes * DIRECTION_COUNT;
    struct wire w = {.fair = fair, .spread = spread, .n_nodes = n_nodes, .local = local};
    w.rates = calloc(ports, sizeof *w.rates);
    w.free = calloc(ports, sizeof *w.free);
    bool ok = w.rates && w.free;
    if (ok)
        memcpy(w.rates, rates, ports * sizeof *w.rates);
    if (!ok || (fair && !init_flows(&w))) {
        wire_release(&w);
        return error_no_memory(err);
    }
    *out = w;
    return ST_OK;
}

void wire_release(struct wire *w) {
    struct flows *f = &w->flows;
    void *const all[] = {w->rates,   w->free,  w->first,    w->uses,    w->list,    f->capacity, f->use,
                         f->members, f->class, f->resource, f->touched, f->changed, f->queue,    f->scratch};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    *w = (struct wire){0};
}

static uint32_t class_of(const struct wire *w, const struct wire_transfer *t) {
    return w->n_nodes * t->from + t->to;
}

static double weight_of(const struct wire *w, const struct wire_transfer *t) {
    struct rng rng;
    rng_split(&rng, 1, t->turn);
    return w->spread > 1 ? rng_log_between(&rng, 1 / w->spread, w->spread) : 1;
}

enum status wire_add(struct wire *w, struct wire_transfer transfer, struct error *err) {
    if (!GROW(&w->list, &w->room, w->n + 1))
        return error_no_memory(err);
    size_t at = w->n++;
    for (; at > 0 && w->list[at - 1].turn > transfer.turn; at--)
        w->list[at] = w->list[at - 1];
    transfer.weight = weight_of(w, &transfer);
    w->list[at] = transfer;
    w->changed = true;
    if (w->fair && transfer.from != transfer.to)
        flows_add(&w->flows, class_of(w, &transfer), transfer.weight);
    return ST_OK;
}

void wire_set_rate(struct wire *w, uint32_t port, double rate) {
    if (w->rates[port] == rate)
        return;
    w->rates[port] = rate;
    w->changed = true;
    if (w->fair)
        flows_set_capacity(&w->flows, port, rate);
}

static void share_fairly(struct wire *w) {
    flows_settle(&w->flows);
    for (size_t i = 0; i < w->n; i++)
        w->list[i].rate = w->list[i].weight * w->flows.class[class_of(w, &w->list[i])].rate;
}

static void share_in_turn(struct wire *w) {
    memcpy(w->free, w->rates, (size_t)w->n_nodes * DIRECTION_COUNT * sizeof *w->free);
    for (size_t i = 0; i < w->n; i++) {
        struct wire_transfer *t = &w->list[i];
        double *out = &w->free[t->from * DIRECTION_COUNT + DIRECTION_OUT];
        double *in = &w->free[t->to * DIRECTION_COUNT + DIRECTION_IN];
        if (t->from == t->to)
            continue;
        t->rate = fmin(*out, *in);
        *out -= t->rate;
        *in -= t->rate;
    }
}

static void share(struct wire *w) {
    if (w->fair)
        share_fairly(w);
    else
        share_in_turn(w);
    for (size_t i = 0; i < w->n; i++)
        if (w->list[i].from == w->list[i].to)
            w->list[i].rate = w->local[w->list[i].from];
    w->changed = false;
}

static double end_of(const struct wire *w, const struct wire_transfer *t) {
    return t->left <= NOTHING || isinf(t->rate) ? w->now_us : w->now_us + t->left / t->rate;
}

double wire_next_us(struct wire *w) {
    double next_us = INFINITY;
    if (w->changed)
        share(w);
    for (size_t i = 0; i < w->n; i++)
        next_us = fmin(next_us, end_of(w, &w->list[i]));
    return next_us;
}

void wire_go_on(struct wire *w, double us) {
    for (size_t i = 0; i < w->n; i++) {
        struct wire_transfer *t = &w->list[i];
        t->left = end_of(w, t) <= us ? 0 : t->left - t->rate * (us - w->now_us);
    }
    w->now_us = us;
}

bool wire_pop(struct wire *w, struct wire_transfer *out) {
    for (size_t i = 0; i < w->n; i++) {
        if (w->list[i].left > NOTHING)
            continue;
        *out = w->list[i];
        memmove(w->list + i, w->list + i + 1, (--w->n - i) * sizeof *w->list);
        w->changed = true;
        if (w->fair && out->from != out->to)
            flows_add(&w->flows, class_of(w, out), -out->weight);
        return true;
    }
    return false;
}
