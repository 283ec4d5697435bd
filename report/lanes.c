/* The timeline is run for a few iterations, and what the shown nodes do is kept. The iteration whose time is nearest to
 * that of the steady state is cut out and shown. O(intervals log intervals).
 *
 * In weather there is no steady state. What is shown there begins one iteration before that in which a rate changes for
 * the first time; where none does, before the first one with a slow worker. A first run finds that iteration, and a
 * second one, which goes on for a few iterations more, is kept from there on. */
#include "report/lanes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "base/units.h"
#include "report/lanes_updates_internal.h"
#include "report/rates.h"
#include "strategy/weather.h"

enum { PASSES = 4, MOST_PASSES = 8, KINDS = INTERVAL_PULL + 1, FIRST_SLOW = 64, FARTHEST = 1000 };
static const double LEAST_WAIT_US = 0.5;

struct item {
    struct interval at;
    bool slow; /* computation of a worker that the weather slows down */
};

struct kept {
    struct item *items;
    size_t n, room;
    uint32_t nodes[LANES_NODES]; /* the slowest first */
    size_t n_nodes;
    bool no_memory;
    /* In weather: */
    const struct cluster *cluster;
    uint64_t seed;               /* 0: none */
    double from_us;              /* what ends before is not kept */
    uint32_t home;               /* the step with which the timeline's iterations begin */
    uint32_t begun[LANES_NODES]; /* iterations of each node */
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

/* Whether it computes slowly; to be told every interval of a run. */
static bool is_slow(struct kept *kept, const struct interval *interval) {
    size_t i = 0;
    if (!kept->seed || interval->kind != INTERVAL_COMPUTE)
        return false;
    while (kept->nodes[i] != interval->node)
        i++;
    kept->begun[i] += interval->index == kept->home;
    return kept->begun[i] > 0 && weather_slowness(kept->cluster, kept->seed, interval->node, kept->begun[i] - 1) > 1;
}

static void keep(void *context, const struct interval *interval) {
    struct kept *kept = context;
    if (kept->no_memory || !is_shown(kept, interval->node))
        return;
    const bool slow = is_slow(kept, interval);
    if (interval->end_us <= kept->from_us && kept->from_us > 0)
        return;
    if (GROW(&kept->items, &kept->room, kept->n + 1))
        kept->items[kept->n++] = (struct item){*interval, slow};
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

/* Whether the weather slows a node down in one of n iterations. */
static bool is_slowed(const struct kept *kept, uint32_t node, uint32_t first, uint32_t n) {
    for (uint32_t k = first; k < first + n && kept->seed; k++)
        if (weather_slowness(kept->cluster, kept->seed, node, k) > 1)
            return true;
    return false;
}

/* The slowest, then those that the weather slows down in the iterations that are shown, then others that differ. */
static void choose_nodes(const struct cost *cost, const struct plan *plan, uint32_t first, size_t most,
                         struct kept *kept) {
    kept->nodes[0] = cost->slowest;
    kept->n_nodes = 1;
    for (uint32_t w = 0; w < cost->n_workers && kept->n_nodes < most; w++)
        if (!is_shown(kept, cost->workers[w]) && is_slowed(kept, cost->workers[w], first, LANES_ITERATIONS))
            kept->nodes[kept->n_nodes++] = cost->workers[w];
    for (uint32_t w = 0; w < cost->n_workers && kept->n_nodes < most; w++)
        if (looks_new(kept, cost->cluster, plan, cost->workers[w]))
            kept->nodes[kept->n_nodes++] = cost->workers[w];
}

static int by_start(const void *a, const void *b) {
    const struct interval *x = &((const struct item *)a)->at, *y = &((const struct item *)b)->at;
    if (x->start_us != y->start_us)
        return x->start_us < y->start_us ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* ---- the iteration that is shown ---- */

/* Whether the first node begins an iteration with it. */
static bool is_start(const struct kept *kept, const struct interval *at) {
    return at->kind == INTERVAL_COMPUTE && at->index == 0 && at->node == kept->nodes[0];
}

/* Choose the part of the timeline to show: between two starts of the first step on the first node, nearest to one
 * iteration in length. False where there are not two starts. */
static bool choose_window(struct cut *cut, double iteration_us) {
    double last = NAN;
    bool found = false;
    for (size_t i = 0; i < cut->kept->n; i++) {
        const struct interval *at = &cut->kept->items[i].at;
        if (!is_start(cut->kept, at))
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
    const struct message *message = &cut->plan->messages[interval->index];
    const char *verb = interval->kind == INTERVAL_ALL_REDUCE ? message_way(message)
                       : interval->kind == INTERVAL_PUSH     ? "push to"
                                                             : "pull from";
    const struct piece *piece = &cut->plan->pieces[message->first_piece];
    const char *name = cut->plan->model->variables[piece->variable].name;
    const char *server = message->kind == SYNC_PARAMETER_SERVER ? cut->cluster->nodes[message->server].name : "";
    char bytes[32], others[32] = "";
    if (message->n_pieces > 1)
        snprintf(others, sizeof others, " + %u", message->n_pieces - 1);
    return arena_printf(cut->arena, "%s%s%s, %.60s%s, %s", verb, *server ? " " : "", server, name, others,
                        units_format_bytes(message->bytes, bytes, sizeof bytes));
}

/* The shade by which gradients are needed: those of the first layers come last in the backward pass and are needed
 * first in the next forward pass. What is gathered before a pass has the shade of the step that waits for it. */
static unsigned shade_of(const struct plan *plan, const struct interval *interval) {
    const struct message *message = &plan->messages[interval->index];
    const uint32_t forward = plan->n_forward_steps, backward = plan_pass_steps(plan) - forward;
    const uint32_t step = plan_step_in_pass(plan, message_gathers_parameters(message) ? message->gate : message->ready);
    if (step < forward)
        return (unsigned)((uint64_t)step * CHART_SHADES / forward);
    return backward ? CHART_SHADES - 1 - (unsigned)((uint64_t)(step - forward) * CHART_SHADES / (backward + 1)) : 0;
}

static enum chart_span_kind kind_of_step(const struct plan *plan, const struct item *item) {
    if (item->slow)
        return CHART_SLOW;
    if (plan_is_update(plan, item->at.index))
        return CHART_UPDATING;
    return plan_step_in_pass(plan, item->at.index) < plan->n_forward_steps ? CHART_FORWARD : CHART_BACKWARD;
}

/* Adjacent steps of a phase are one span, gaps are waiting. The end of a micro-batch takes no time and is no span.
 * *waiting_us may be NULL. */
static bool add_compute(const struct cut *cut, uint32_t node, struct chart_lane *lane, double *waiting_us) {
    struct chart_span *spans = arena_alloc(cut->arena, 2 * cut->kept->n + 2, sizeof *spans);
    double free_us = cut->from_us, waiting = 0;
    size_t n = 0;
    for (size_t i = 0; spans && i <= cut->kept->n; i++) {
        const struct interval *at = i < cut->kept->n ? &cut->kept->items[i].at : NULL;
        if (at && (at->kind != INTERVAL_COMPUTE || at->node != node || !is_within(cut, at)))
            continue;
        if (at && plan_ends_pass(cut->plan, at->index) && cut->plan->step_us[at->index] <= 0)
            continue;
        const double start_us = at ? at->start_us : cut->to_us;
        if (start_us - free_us > LEAST_WAIT_US) {
            spans[n++] = clip(cut, CHART_WAITING, free_us, start_us);
            waiting += start_us - free_us;
        }
        if (!at)
            break;
        const enum chart_span_kind kind = kind_of_step(cut->plan, &cut->kept->items[i]);
        const struct chart_span span = clip(cut, kind, at->start_us, at->end_us);
        if (n && spans[n - 1].kind == span.kind && start_us - free_us <= LEAST_WAIT_US)
            spans[n - 1].end_us = span.end_us;
        else
            spans[n++] = span;
        free_us = at->end_us;
    }
    *lane = (struct chart_lane){cut->cluster->nodes[node].name, "compute", n, spans, 0};
    if (waiting_us)
        *waiting_us = waiting;
    return spans != NULL;
}

/* What all of them are: "all-reduce" where nothing else is among them. */
static const char *collectives_word(const struct plan *plan) {
    for (uint32_t i = 0; i < plan->n_messages; i++) {
        const struct message *m = &plan->messages[i];
        const bool added_up = !m->encoder || m->encoder == ENCODING_powersgd;
        if (m->kind == SYNC_ALL_REDUCE && (m->half != HALF_none || m->algorithm == ALGORITHM_all_gather || !added_up))
            return "collectives";
    }
    return "all-reduce";
}

static bool add_messages(const struct cut *cut, uint32_t node, enum interval_kind kind, struct chart_lane *lane) {
    const char *const words[KINDS] = {"compute", collectives_word(cut->plan), "push", "pull"};
    size_t n = 0, at = 0, begun = 0;
    for (size_t i = 0; i < cut->kept->n; i++) {
        const struct interval *interval = &cut->kept->items[i].at;
        if (interval->kind != kind || interval->node != node || !is_within(cut, interval))
            continue;
        n++;
        begun += interval->start_us >= cut->from_us;
    }
    struct chart_span *spans = arena_alloc(cut->arena, n, sizeof *spans);
    for (size_t i = 0; spans && i < cut->kept->n; i++) {
        const struct interval *interval = &cut->kept->items[i].at;
        if (interval->kind != kind || interval->node != node || !is_within(cut, interval))
            continue;
        spans[at] = clip(cut, CHART_MESSAGE, interval->start_us, interval->end_us);
        spans[at].shade = shade_of(cut->plan, interval);
        if (!(spans[at].label = label_of(cut, interval)))
            return false;
        at++;
    }
    *lane = (struct chart_lane){node == UINT32_MAX ? "all nodes" : cut->cluster->nodes[node].name, words[kind], n,
                                spans, .before = n - begun};
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

static enum status sort(struct kept *kept, struct error *err) {
    if (kept->no_memory)
        return error_no_memory(err);
    if (kept->n)
        qsort(kept->items, kept->n, sizeof *kept->items, by_start);
    return ST_OK;
}

static enum status simulate(struct predictor *p, struct kept *kept, struct error *err) {
    const struct timeline_options options = {
        .record = keep, .context = kept, .passes = PASSES, .max_passes = MOST_PASSES, .every_node = true};
    struct prediction prediction;
    if (p->plan.n_messages == 0)
        keep_steps(&p->plan, &p->cost, kept);
    else {
        enum status st = timeline_run(p->timeline, &p->plan, &p->cost, &options, &prediction, err);
        if (st)
            return st;
    }
    return sort(kept, err);
}

/* `iteration_us` is that of the steady state. */
static enum status lanes_in_quiet(struct predictor *p, const struct strategy *strategy, size_t most,
                                  double iteration_us, struct cut *cut, struct kept *kept, struct chart_timeline *made,
                                  struct error *err) {
    choose_nodes(&p->cost, &p->plan, 0, most, kept);
    enum status st = simulate(p, kept, err);
    if (st)
        return st;
    if (!choose_window(cut, iteration_us))
        return error_set(err, ST_INVALID, "%s has no whole iteration to show", strategy->name);
    made->iteration_us = made->window_us = cut->to_us - cut->from_us;
    return add_lanes(cut, made) ? ST_OK : error_no_memory(err);
}

/* ---- in weather ---- */

/* Starts of iterations on the first node. */
struct starts {
    const struct kept *kept;
    double *us; /* malloc'd */
    size_t n, room;
    bool no_memory;
};

static void note_start(void *context, const struct interval *interval) {
    struct starts *starts = context;
    if (!is_start(starts->kept, interval) || starts->no_memory)
        return;
    if (GROW(&starts->us, &starts->room, starts->n + 1))
        starts->us[starts->n++] = interval->start_us;
    else
        starts->no_memory = true;
}

/* The first iteration in which a worker is slow; 0 where none is soon. */
static uint32_t first_slow(const struct kept *kept, const struct cost *cost) {
    for (uint32_t k = 0; k < FIRST_SLOW; k++)
        for (uint32_t w = 0; w < cost->n_workers; w++)
            if (is_slowed(kept, cost->workers[w], k, 1))
                return k;
    return 0;
}

static enum status run_in_weather(struct predictor *p, uint32_t passes, double until_us,
                                  void (*record)(void *, const struct interval *), void *context, struct error *err) {
    const struct timeline_options options = {.record = record,
                                             .context = context,
                                             .passes = passes,
                                             .until_us = until_us,
                                             .every_node = true,
                                             .weather = true,
                                             .seed = p->weather};
    struct prediction prediction;
    return timeline_run(p->timeline, &p->plan, &p->cost, &options, &prediction, err);
}

/* The iteration that what is shown begins with, and when the first node begins it. */
static enum status find_first(struct predictor *p, const struct kept *kept, uint32_t *first, double *from_us,
                              struct error *err) {
    struct starts starts = {.kept = kept};
    double change_us;
    enum status st = rates_first_change(p->cluster, p->weather, &change_us, err);
    if (st)
        return st;
    const bool far = change_us > FARTHEST * (p->model->forward_us + p->model->backward_us);
    uint32_t k = far ? first_slow(kept, &p->cost) : 0;
    st = run_in_weather(p, k + 1, far ? 0 : change_us, note_start, &starts, err);
    if (!st && starts.no_memory)
        st = error_no_memory(err);
    while (!st && !far && k + 1 < starts.n && starts.us[k + 1] <= change_us)
        k++;
    *first = k > 0 ? k - 1 : 0;
    *from_us = !st && *first < starts.n ? starts.us[*first] : 0;
    free(starts.us);
    return st;
}

/* Cut after LANES_ITERATIONS iterations, and list where they begin. False when memory is out. */
static bool cut_iterations(struct cut *cut, struct chart_timeline *made) {
    double *starts = arena_alloc(cut->arena, LANES_ITERATIONS, sizeof *starts);
    size_t n = 0;
    for (size_t i = 0; starts && i < cut->kept->n && n < LANES_ITERATIONS; i++) {
        const struct interval *at = &cut->kept->items[i].at;
        if (is_start(cut->kept, at) && at->start_us > cut->from_us)
            starts[n++] = at->start_us - cut->from_us;
    }
    made->window_us = n ? starts[n - 1] : 0;
    made->iteration_us = n ? made->window_us / (double)n : 0;
    made->starts_us = starts;
    made->n_starts = n ? n - 1 : 0;
    cut->to_us = cut->from_us + made->window_us;
    return starts != NULL;
}

static uint32_t last_gate(const struct plan *plan) {
    uint32_t gate = 0;
    for (uint32_t m = 0; m < plan->n_messages; m++)
        gate = plan->messages[m].gate > gate ? plan->messages[m].gate : gate;
    return gate;
}

static enum status lanes_in_weather(struct predictor *p, const struct strategy *strategy, size_t most, struct cut *cut,
                                    struct kept *kept, struct chart_timeline *made, struct error *err) {
    uint32_t first = 0;
    choose_nodes(&p->cost, &p->plan, 0, 1, kept); /* whose iterations are counted */
    kept->home = last_gate(&p->plan);
    enum status st = find_first(p, kept, &first, &kept->from_us, err);
    cut->from_us = kept->from_us;
    choose_nodes(&p->cost, &p->plan, first, most, kept);
    if (!st)
        st = run_in_weather(p, first + LANES_ITERATIONS + 2, 0, keep, kept, err);
    if (!st)
        st = sort(kept, err);
    if (!st && !cut_iterations(cut, made))
        st = error_no_memory(err);
    if (!st && made->window_us <= 0)
        st = error_set(err, ST_INVALID, "%s has no whole iteration to show", strategy->name);
    if (!st && !add_lanes(cut, made))
        st = error_no_memory(err);
    made->waiting_us /= (double)(made->n_starts + 1);
    return st ? st : rates_add(p->cluster, p->weather, cut->from_us, cut->arena, made, err);
}

enum status lanes_of(struct predictor *p, const struct strategy *strategy, size_t most, struct arena *arena,
                     struct chart_timeline *out, struct error *err) {
    struct kept kept = {.cluster = p->cluster, .seed = p->weather};
    struct prediction quiet = {0};
    struct chart_timeline made = {.name = strategy->name};
    struct cut cut = {&p->plan, p->cluster, &kept, arena, 0, 0};
    if (!consistency_is_plain(&strategy->consistency))
        return lanes_of_updates(p, strategy, most, arena, out, err);
    enum status st = p->weather ? plan_relower(&p->plan, p->model, &p->corrected, strategy, err)
                                : predictor_run(p, strategy, &quiet, err);
    if (st)
        return st;
    if (p->plan.n_messages == 0) /* nothing for a NIC to do, and one iteration like the other */
        kept.seed = 0;
    most = most < LANES_NODES ? most : LANES_NODES;
    if (kept.seed)
        st = lanes_in_weather(p, strategy, most, &cut, &kept, &made, err);
    else
        st = lanes_in_quiet(p, strategy, most, quiet.iteration_us, &cut, &kept, &made, err);
    free(kept.items);
    if (st)
        return st;
    made.predicted_us = quiet.iteration_us;
    made.hidden = p->cost.n_workers - kept.n_nodes;
    *out = made;
    return ST_OK;
}
