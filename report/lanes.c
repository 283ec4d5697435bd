/* The timeline is run for a few iterations, and what the shown nodes do is kept. The iteration whose time is nearest to
 * that of the steady state is cut out and shown. O(intervals log intervals). */
#include "report/lanes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "base/units.h"

enum { PASSES = 4, MOST_PASSES = 8, KINDS = INTERVAL_PULL + 1 };
static const double LEAST_WAIT_US = 0.5;

struct kept {
    struct interval *items;
    size_t n, room;
    uint32_t nodes[LANES_NODES]; /* the slowest first */
    size_t n_nodes;
    bool no_memory;
};

struct cut {
    const struct plan *plan;
    const struct cluster *cluster;
    const struct kept *kept;
    struct arena *arena;
    double from_us, to_us;
};

/* ---- what is kept ---- */

static bool is_shown(const struct kept *kept, uint32_t node) {
    for (size_t i = 0; i < kept->n_nodes; i++)
        if (kept->nodes[i] == node)
            return true;
    return node == UINT32_MAX;
}

static void keep(void *context, const struct interval *interval) {
    struct kept *kept = context;
    if (kept->no_memory || !is_shown(kept, interval->node))
        return;
    if (GROW(&kept->items, &kept->room, kept->n + 1))
        kept->items[kept->n++] = *interval;
    else
        kept->no_memory = true;
}

/* Where all gradients are all-reduced, nodes of one speed do the same. */
static bool looks_new(const struct kept *kept, const struct cluster *cluster, const struct plan *plan, uint32_t node) {
    for (size_t i = 0; i < kept->n_nodes && !plan->any_server; i++)
        if (cluster->nodes[kept->nodes[i]].compute_scale == cluster->nodes[node].compute_scale)
            return false;
    return !is_shown(kept, node);
}

static void choose_nodes(const struct cost *cost, const struct plan *plan, size_t most, struct kept *kept) {
    kept->nodes[kept->n_nodes++] = cost->slowest;
    for (uint32_t w = 0; w < cost->n_workers && kept->n_nodes < most; w++)
        if (looks_new(kept, cost->cluster, plan, cost->workers[w]))
            kept->nodes[kept->n_nodes++] = cost->workers[w];
}

static int by_start(const void *a, const void *b) {
    const struct interval *x = a, *y = b;
    if (x->start_us != y->start_us)
        return x->start_us < y->start_us ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* ---- the iteration that is shown ---- */

/* Choose the part of the timeline to show: between two starts of the first step on the first node, nearest to one
 * iteration in length. False where there are not two starts. */
static bool choose_window(struct cut *cut, double iteration_us) {
    double last = NAN;
    bool found = false;
    for (size_t i = 0; i < cut->kept->n; i++) {
        const struct interval *at = &cut->kept->items[i];
        if (at->kind != INTERVAL_COMPUTE || at->index != 0 || at->node != cut->kept->nodes[0])
            continue;
        if (!isnan(last) &&
            (!found || fabs(at->start_us - last - iteration_us) <= fabs(cut->to_us - cut->from_us - iteration_us))) {
            cut->from_us = last;
            cut->to_us = at->start_us;
            found = true;
        }
        last = at->start_us;
    }
    return found;
}

static bool is_within(const struct cut *cut, const struct interval *interval) {
    return interval->end_us > cut->from_us && interval->start_us < cut->to_us;
}

static struct chart_span clip(const struct cut *cut, enum chart_span_kind kind, double start_us, double end_us) {
    return (struct chart_span){.start_us = fmax(start_us, cut->from_us) - cut->from_us,
                               .end_us = fmin(end_us, cut->to_us) - cut->from_us,
                               .kind = kind};
}

/* ---- spans ---- */

static const char *label_of(const struct cut *cut, const struct interval *interval) {
    static const char *const verbs[KINDS] = {"", "all-reduce", "push to", "pull from"};
    const struct message *message = &cut->plan->messages[interval->index];
    const struct piece *piece = &cut->plan->pieces[message->first_piece];
    const char *name = cut->plan->model->variables[piece->variable].name;
    const char *server = message->kind == SYNC_PARAMETER_SERVER ? cut->cluster->nodes[message->server].name : "";
    char bytes[32], others[32] = "";
    if (message->n_pieces > 1)
        snprintf(others, sizeof others, " + %u", message->n_pieces - 1);
    return arena_printf(cut->arena, "%s%s%s, %.60s%s, %s", verbs[interval->kind], *server ? " " : "", server, name,
                        others, units_format_bytes(message->bytes, bytes, sizeof bytes));
}

/* The shade by which gradients are needed: those of the first layers come last in the backward pass and are needed
 * first in the next forward pass. */
static unsigned shade_of(const struct plan *plan, const struct interval *interval) {
    const uint32_t backward = plan->n_steps - plan->n_forward_steps;
    const uint32_t at = plan->messages[interval->index].ready - plan->n_forward_steps;
    return backward ? CHART_SHADES - 1 - (unsigned)((uint64_t)at * CHART_SHADES / (backward + 1)) : 0;
}

/* Adjacent steps of a phase are one span, gaps are waiting. *waiting_us may be NULL. */
static bool add_compute(const struct cut *cut, uint32_t node, struct chart_lane *lane, double *waiting_us) {
    struct chart_span *spans = arena_alloc(cut->arena, 2 * cut->kept->n + 2, sizeof *spans);
    double free_us = cut->from_us, waiting = 0;
    size_t n = 0;
    for (size_t i = 0; spans && i <= cut->kept->n; i++) {
        const struct interval *at = i < cut->kept->n ? &cut->kept->items[i] : NULL;
        if (at && (at->kind != INTERVAL_COMPUTE || at->node != node || !is_within(cut, at)))
            continue;
        const double start_us = at ? at->start_us : cut->to_us;
        if (start_us - free_us > LEAST_WAIT_US) {
            spans[n++] = clip(cut, CHART_WAITING, free_us, start_us);
            waiting += start_us - free_us;
        }
        if (!at)
            break;
        const struct chart_span span = clip(
            cut, at->index < cut->plan->n_forward_steps ? CHART_FORWARD : CHART_BACKWARD, at->start_us, at->end_us);
        if (n && spans[n - 1].kind == span.kind && start_us - free_us <= LEAST_WAIT_US)
            spans[n - 1].end_us = span.end_us;
        else
            spans[n++] = span;
        free_us = at->end_us;
    }
    *lane = (struct chart_lane){cut->cluster->nodes[node].name, "compute", n, spans};
    if (waiting_us)
        *waiting_us = waiting;
    return spans != NULL;
}

static bool add_messages(const struct cut *cut, uint32_t node, enum interval_kind kind, struct chart_lane *lane) {
    static const char *const words[KINDS] = {"compute", "all-reduce", "push", "pull"};
    size_t n = 0, at = 0;
    for (size_t i = 0; i < cut->kept->n; i++)
        n += cut->kept->items[i].kind == kind && cut->kept->items[i].node == node &&
             is_within(cut, &cut->kept->items[i]);
    struct chart_span *spans = arena_alloc(cut->arena, n, sizeof *spans);
    for (size_t i = 0; spans && i < cut->kept->n; i++) {
        const struct interval *interval = &cut->kept->items[i];
        if (interval->kind != kind || interval->node != node || !is_within(cut, interval))
            continue;
        spans[at] = clip(cut, CHART_MESSAGE, interval->start_us, interval->end_us);
        spans[at].shade = shade_of(cut->plan, interval);
        if (!(spans[at].label = label_of(cut, interval)))
            return false;
        at++;
    }
    *lane =
        (struct chart_lane){node == UINT32_MAX ? "all nodes" : cut->cluster->nodes[node].name, words[kind], n, spans};
    return spans != NULL;
}

/* Lanes without anything in them are left out. */
static bool add_lane(const struct cut *cut, uint32_t node, enum interval_kind kind, struct chart_lane *lanes,
                     size_t *n) {
    bool ok = add_messages(cut, node, kind, &lanes[*n]);
    *n += ok && lanes[*n].n;
    return ok;
}

static bool add_lanes(const struct cut *cut, struct chart_timeline *out) {
    struct chart_lane *lanes = arena_alloc(cut->arena, LANES_NODES * 3 + 1, sizeof *lanes);
    size_t n = 0;
    bool ok = lanes != NULL;
    for (size_t i = 0; ok && i < cut->kept->n_nodes; i++) {
        const uint32_t node = cut->kept->nodes[i];
        ok = add_compute(cut, node, &lanes[n], i ? NULL : &out->waiting_us);
        n++;
        ok = ok && add_lane(cut, node, INTERVAL_PUSH, lanes, &n) && add_lane(cut, node, INTERVAL_PULL, lanes, &n);
        if (ok && !i)
            ok = add_lane(cut, UINT32_MAX, INTERVAL_ALL_REDUCE, lanes, &n);
    }
    out->lanes = lanes;
    out->n_lanes = n;
    return ok;
}

/* A plan without messages is not simulated: its steps follow each other. */
static void keep_steps(const struct plan *plan, const struct cost *cost, struct kept *kept) {
    double at = 0;
    for (uint32_t k = 0; k <= plan->n_steps; k++) {
        const uint32_t step = k < plan->n_steps ? k : 0;
        const double us = plan->step_us[step] * cost->cluster->nodes[cost->slowest].compute_scale;
        keep(kept, &(struct interval){INTERVAL_COMPUTE, cost->slowest, step, at, at + us});
        at += us;
    }
}

static enum status simulate(struct predictor *p, size_t most, struct kept *kept, struct error *err) {
    const struct timeline_options options = {
        .record = keep, .context = kept, .passes = PASSES, .max_passes = MOST_PASSES, .every_node = true};
    struct prediction prediction;
    choose_nodes(&p->cost, &p->plan, most < LANES_NODES ? most : LANES_NODES, kept);
    if (p->plan.n_messages == 0)
        keep_steps(&p->plan, &p->cost, kept);
    else {
        enum status st = timeline_run(p->timeline, &p->plan, &p->cost, &options, &prediction, err);
        if (st)
            return st;
    }
    if (kept->no_memory)
        return error_no_memory(err);
    qsort(kept->items, kept->n, sizeof *kept->items, by_start);
    return ST_OK;
}

enum status lanes_of(struct predictor *predictor, const struct strategy *strategy, size_t most, struct arena *arena,
                     struct chart_timeline *out, struct error *err) {
    struct kept kept = {0};
    struct prediction prediction;
    struct chart_timeline made = {.name = strategy->name};
    enum status st = predictor_run(predictor, strategy, &prediction, err);
    if (!st)
        st = simulate(predictor, most, &kept, err);
    struct cut cut = {&predictor->plan, predictor->cluster, &kept, arena, 0, 0};
    if (!st && !choose_window(&cut, prediction.iteration_us))
        st = error_set(err, ST_INVALID, "%s has no whole iteration to show", strategy->name);
    if (!st && !add_lanes(&cut, &made))
        st = error_no_memory(err);
    free(kept.items);
    if (st)
        return st;
    made.iteration_us = made.window_us = cut.to_us - cut.from_us;
    made.hidden = predictor->cost.n_workers - kept.n_nodes;
    *out = made;
    return ST_OK;
}
