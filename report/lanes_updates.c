/* Workers that send whole updates (simulator/updates.h) are never all at the same place, so a few iterations of one
 * worker are cut out: after some that fill the network, and in weather around the first change of a rate. A first run
 * finds when these are, a second one is kept. O(events log events). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/units.h"
#include "report/lanes.h"
#include "report/lanes_updates_internal.h"
#include "report/rates.h"
#include "simulator/updates.h"
#include "strategy/weather.h"

enum { ROUNDS = 12, FILLED = 6, DEVICES = 2, FARTHEST = 1000, LANES_OF_NODE = DEVICES + 2, LONGER = 3 };
static const double LEAST_WAIT_US = 0.5;

struct noted {
    struct updates_event event;
    bool slow;
};

struct view {
    const struct predictor *p;
    struct arena *arena;
    uint32_t nodes[LANES_NODES]; /* servers first */
    size_t n_nodes;
    uint32_t node, worker; /* whose iterations are cut out */
    uint32_t *iterations;  /* that each worker has computed */
    double from_us;
    struct noted *events; /* malloc'd */
    size_t n, room;
    double *starts; /* of the first worker's iterations; malloc'd */
    size_t n_starts, starts_room;
    bool no_memory;
};

/* ---- what is kept ---- */

static bool is_shown(const struct view *v, uint32_t node) {
    for (size_t i = 0; i < v->n_nodes; i++)
        if (v->nodes[i] == node)
            return true;
    return false;
}

static void show(struct view *v, size_t most, uint32_t node) {
    if (v->n_nodes < most && !is_shown(v, node))
        v->nodes[v->n_nodes++] = node;
}

static void choose_nodes(struct view *v, size_t most) {
    const struct plan *plan = &v->p->plan;
    const struct cost *cost = &v->p->cost;
    for (uint32_t m = 0; m < plan->n_messages; m++)
        show(v, most > 1 ? most - 1 : 1, plan->messages[m].server);
    for (uint32_t w = 0; w < cost->n_workers; w++)
        show(v, most, cost->workers[w]);
    bool found = false;
    for (size_t i = 0; i < v->n_nodes; i++) /* the first that does not serve, if there is one */
        if (cost->cluster->nodes[v->nodes[i]].devices > 0 && (!found || plan_serves(plan, v->node))) {
            found = true;
            v->node = v->nodes[i];
            v->worker = cost->cluster->nodes[v->nodes[i]].first_device;
        }
}

static void note_start(void *context, const struct updates_event *event) {
    struct view *v = context;
    if (event->kind != UPDATES_COMPUTE || event->worker != v->worker || v->no_memory)
        return;
    if (GROW(&v->starts, &v->starts_room, v->n_starts + 1))
        v->starts[v->n_starts++] = event->start_us;
    else
        v->no_memory = true;
}

static void keep(void *context, const struct updates_event *event) {
    struct view *v = context;
    const struct predictor *p = v->p;
    bool slow = false;
    if (event->kind == UPDATES_COMPUTE && p->weather)
        slow = weather_device_slowness(p->cluster, p->weather, event->worker, v->iterations[event->worker]++) > 1;
    const bool there = is_shown(v, event->from) || (event->kind == UPDATES_TRANSFER && is_shown(v, event->to));
    if (event->kind == UPDATES_RATE || event->end_us <= v->from_us || !there)
        return;
    if (!v->no_memory && GROW(&v->events, &v->room, v->n + 1))
        v->events[v->n++] = (struct noted){*event, slow};
    else
        v->no_memory = true;
}

static int by_start(const void *a, const void *b) {
    const struct updates_event *x = &((const struct noted *)a)->event, *y = &((const struct noted *)b)->event;
    return (x->start_us > y->start_us) - (x->start_us < y->start_us);
}

static enum status run(struct view *v, double until_us, void (*record)(void *, const struct updates_event *),
                       struct updates_prediction *out, struct error *err) {
    const struct updates_options options = {.weather = v->p->weather > 0,
                                            .seed = v->p->weather,
                                            .rounds = ROUNDS,
                                            .until_us = until_us,
                                            .record = record,
                                            .context = v};
    enum status st = updates_run(&v->p->plan, &v->p->cost, &options, out, err);
    return !st && v->no_memory ? error_no_memory(err) : st;
}

/* Whether it comes within so many iterations that the first run may go on until then. */
static bool is_soon(const struct view *v, double us) {
    return us <= FARTHEST * (v->p->model->forward_us + v->p->model->backward_us);
}

/* The iteration before that in which a rate changes, or, where none soon does, before a slow one; else one of those
 * after the network has filled. */
static size_t first_shown(const struct view *v, double change_us) {
    size_t k = 0;
    if (is_soon(v, change_us)) {
        while (k + 1 < v->n_starts && v->starts[k + 1] <= change_us)
            k++;
        return k > 0 ? k - 1 : 0;
    }
    for (k = 1; k < v->n_starts && v->p->weather; k++)
        if (weather_device_slowness(v->p->cluster, v->p->weather, v->worker, k) > 1)
            return k - 1;
    return FILLED < v->n_starts ? FILLED : v->n_starts - 1;
}

/* Find when what is shown begins, and how long an iteration is. */
static enum status find_window(struct view *v, double *iteration_us, struct error *err) {
    struct updates_prediction prediction;
    double change_us = INFINITY;
    enum status st = v->p->weather ? rates_first_change(v->p->cluster, v->p->weather, &change_us, err) : ST_OK;
    if (!st)
        st = run(v, is_soon(v, change_us) ? change_us : 0, note_start, &prediction, err);
    if (st)
        return st;
    if (v->n_starts < 2)
        return error_set(err, ST_INVALID, "worker %u has no whole iteration to show", v->worker);
    v->from_us = v->starts[first_shown(v, change_us)];
    *iteration_us = (v->starts[v->n_starts - 1] - v->starts[0]) / (double)(v->n_starts - 1);
    return ST_OK;
}

/* ---- spans ---- */

static struct chart_span clip(const struct view *v, const struct chart_timeline *t, enum chart_span_kind kind,
                              double start_us, double end_us) {
    return (struct chart_span){
        .start_us = fmax(start_us - v->from_us, 0), .end_us = fmin(end_us - v->from_us, t->window_us), .kind = kind};
}

static bool is_within(const struct view *v, const struct chart_timeline *t, const struct updates_event *e) {
    return e->end_us > v->from_us && e->start_us < v->from_us + t->window_us;
}

/* What a worker computes, and when it waits for it; *waiting_us may be NULL. */
static bool add_computing(const struct view *v, const struct chart_timeline *t, uint32_t worker,
                          struct chart_lane *lane, double *waiting_us) {
    struct chart_span *spans = arena_alloc(v->arena, 2 * v->n + 2, sizeof *spans);
    double free_us = v->from_us;
    size_t n = 0;
    for (size_t i = 0; spans && i <= v->n; i++) {
        const struct updates_event *e = i < v->n ? &v->events[i].event : NULL;
        if (e && (e->kind != UPDATES_COMPUTE || e->worker != worker || !is_within(v, t, e)))
            continue;
        const double start_us = e ? e->start_us : v->from_us + t->window_us;
        if (start_us - free_us > LEAST_WAIT_US) {
            spans[n++] = clip(v, t, CHART_WAITING, free_us, start_us);
            if (waiting_us)
                *waiting_us += start_us - free_us;
        }
        if (e) {
            spans[n++] = clip(v, t, v->events[i].slow ? CHART_SLOW : CHART_WHOLE, e->start_us, e->end_us);
            free_us = e->end_us;
        }
    }
    const struct node *node = &v->p->cluster->nodes[cluster_node_of_device(v->p->cluster, worker)];
    const char *what = node->devices > 1 ? arena_printf(v->arena, "worker %u", worker) : "compute";
    *lane = (struct chart_lane){node->name, what, n, spans, 0};
    return spans && what;
}

static unsigned shade_of(const struct updates_event *e) {
    static const char *const words[] = {
        [CHART_UPDATE] = "update", [CHART_SUM] = "sum of updates", [CHART_MODEL] = "model"};
    for (unsigned k = 0; k < CHART_COPY; k++)
        if (!strcmp(e->what, words[k]))
            return k;
    return CHART_COPY;
}

static const char *label_of(const struct view *v, const struct updates_event *e, bool sends) {
    char bytes[32], whose[32] = "";
    if (e->worker != UINT32_MAX)
        snprintf(whose, sizeof whose, " of worker %u", e->worker);
    return arena_printf(v->arena, "%s%s, %s, %s %s", e->what, whose,
                        units_format_bytes((uint64_t)e->bytes, bytes, sizeof bytes), sends ? "to" : "from",
                        v->p->cluster->nodes[sends ? e->to : e->from].name);
}

static bool add_transfers(const struct view *v, const struct chart_timeline *t, uint32_t node, bool sends,
                          struct chart_lane *lane) {
    struct chart_span *spans = arena_alloc(v->arena, v->n + 1, sizeof *spans);
    size_t n = 0, before = 0;
    bool ok = spans != NULL;
    for (size_t i = 0; ok && i < v->n; i++) {
        const struct updates_event *e = &v->events[i].event;
        if (e->kind != UPDATES_TRANSFER || (sends ? e->from : e->to) != node || e->from == e->to || !is_within(v, t, e))
            continue;
        spans[n] = clip(v, t, CHART_MESSAGE, e->start_us, e->end_us);
        spans[n].shade = shade_of(e);
        before += e->start_us < v->from_us;
        ok = (spans[n++].label = label_of(v, e, sends)) != NULL;
    }
    *lane =
        (struct chart_lane){v->p->cluster->nodes[node].name, sends ? "sends" : "receives", n, spans, .before = before};
    return ok;
}

static bool add_lanes(const struct view *v, struct chart_timeline *t) {
    struct chart_lane *lanes = arena_alloc(v->arena, LANES_NODES * LANES_OF_NODE, sizeof *lanes);
    size_t n = 0;
    bool ok = lanes != NULL;
    for (size_t i = 0; i < v->n_nodes; i++) {
        const struct node *node = &v->p->cluster->nodes[v->nodes[i]];
        for (uint32_t d = 0; ok && d < node->devices && d < DEVICES; d++)
            ok = add_computing(v, t, node->first_device + d, &lanes[n++],
                               node->first_device + d == v->worker ? &t->waiting_us : NULL);
        for (int sends = 1; ok && sends >= 0; sends--) {
            ok = add_transfers(v, t, v->nodes[i], sends, &lanes[n]);
            n += ok && lanes[n].n > 0;
        }
    }
    t->lanes = lanes;
    t->n_lanes = n;
    return ok;
}

static bool add_starts(const struct view *v, struct chart_timeline *t) {
    double *starts = arena_alloc(v->arena, v->n + 1, sizeof *starts);
    for (size_t i = 0; starts && i < v->n; i++) {
        const struct updates_event *e = &v->events[i].event;
        if (e->kind == UPDATES_COMPUTE && e->worker == v->worker && e->start_us > v->from_us && is_within(v, t, e))
            starts[t->n_starts++] = e->start_us - v->from_us;
    }
    t->starts_us = starts;
    return starts != NULL;
}

static enum status fill(struct view *v, struct chart_timeline *t, struct error *err) {
    struct updates_prediction prediction;
    double iteration_us = 0;
    enum status st = find_window(v, &iteration_us, err);
    t->window_us = LANES_ITERATIONS * iteration_us;
    if (!st) /* what a slow worker begins is recorded when it ends */
        st = run(v, v->from_us + LONGER * t->window_us, keep, &prediction, err);
    if (st)
        return st;
    if (v->n)
        qsort(v->events, v->n, sizeof *v->events, by_start);
    if (!add_lanes(v, t) || !add_starts(v, t))
        return error_no_memory(err);
    t->iteration_us = iteration_us;
    t->waiting_us /= LANES_ITERATIONS;
    return v->p->weather ? rates_add(v->p->cluster, v->p->weather, v->from_us, v->arena, t, err) : ST_OK;
}

enum status lanes_of_updates(struct predictor *p, const struct strategy *strategy, size_t most, struct arena *arena,
                             struct chart_timeline *out, struct error *err) {
    struct view v = {.p = p, .arena = arena};
    struct chart_timeline made = {
        .name = strategy->name,
    };
    enum status st = plan_relower(&p->plan, p->model, &p->corrected, strategy, err);
    if (st)
        return st;
    choose_nodes(&v, most < LANES_NODES ? most : LANES_NODES);
    v.iterations = calloc(p->cluster->n_devices + 1, sizeof *v.iterations);
    st = v.iterations ? fill(&v, &made, err) : error_no_memory(err);
    free(v.iterations);
    free(v.events);
    free(v.starts);
    if (st)
        return st;
    made.updates_of = p->cluster->nodes[v.node].name;
    for (uint32_t w = 0; w < p->cost.n_workers; w++)
        made.hidden += !is_shown(&v, p->cost.workers[w]);
    *out = made;
    return ST_OK;
}
