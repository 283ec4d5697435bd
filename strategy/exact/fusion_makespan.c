/* The cut whose preemptive schedule is the best; see strategy/exact/fusion.h.
 *
 * By Carlier's formula a cut is worth at most C if and only if for every group g and every tail q up to g's
 *     release(g) + q + (work of the groups from g on whose tail is at least q) <= C.
 * So a cut can be built from the last group to the first. Let W(q) be the work of a suffix whose tail is at least q.
 * The groups before need to know W alone, and only up to the longest tail of the gradients before.
 *
 * A partial cut is a label: W as a step function. A label is dropped when its W is nowhere below that of another at the
 * same place, since it cannot do better. If tails rise with readiness, no gradient before reaches a tail in the suffix.
 * Then W is one number, each place keeps one label, and the decision is O(n * n). Otherwise the steps are the groups
 * that some gradient before overtakes.
 *
 * The least C is found by bisection. No fusion beats the gradients on their own without start-up: that is the lower
 * end. The upper end is PACE's balanced fusion. A C that a cut meets is replaced by the value of that cut. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/work.h"
#include "strategy/exact/fusion.h"

/* Work of groups with this tail. */
struct step {
    double tail, work;
};

/* One way to cut the gradients from some place on into groups. W(q) is base plus the work of every step whose tail is q
 * or longer. */
struct label {
    struct label *next;       /* at the same place */
    const struct label *rest; /* the cut without its first group; NULL: that was all */
    uint32_t end;             /* of its first group */
    uint32_t n_steps;         /* falling tails */
    double base;
    double total; /* W(0): base and all steps, added in their order */
    struct step steps[];
};

struct search {
    uint32_t n;
    const struct gradient *gradients;
    const struct cost_line *line;
    double *highest;      /* n + 1: the longest tail before gradient i */
    struct label **heads; /* n + 1 */
    uint32_t *counts;     /* n + 1 */
    struct arena arena;   /* labels */
    struct label *room;   /* of n steps: the next label while it is made */
    bool capped;
    uint32_t *heap;
    struct machine_job *jobs;
};

/* Does the label stay within C when a group with this window is put before it? */
static bool fits(const struct label *label, double release, double work, double tail, double limit) {
    double sum = label->base + work;
    uint32_t k = 0;
    for (; k < label->n_steps && label->steps[k].tail >= tail; k++)
        sum += label->steps[k].work;
    if (release + tail + sum > limit)
        return false;
    for (; k < label->n_steps; k++) {
        sum += label->steps[k].work;
        if (release + label->steps[k].tail + sum > limit)
            return false;
    }
    return true;
}

static void add_step(struct label *label, double highest, double tail, double work) {
    if (tail >= highest)
        label->base += work;
    else if (label->n_steps > 0 && label->steps[label->n_steps - 1].tail == tail)
        label->steps[label->n_steps - 1].work += work;
    else
        label->steps[label->n_steps++] = (struct step){tail, work};
}

/* room = the label with the group [at, end) before it. */
static void extend(struct search *s, const struct label *label, uint32_t at, uint32_t end, double work, double tail) {
    struct label *room = s->room;
    const double highest = s->highest[at];
    bool added = false;
    room->rest = label;
    room->end = end;
    room->n_steps = 0;
    room->base = label->base;
    for (uint32_t k = 0; k < label->n_steps; k++) {
        if (!added && label->steps[k].tail <= tail) {
            add_step(room, highest, tail, work);
            added = true;
        }
        add_step(room, highest, label->steps[k].tail, label->steps[k].work);
    }
    if (!added)
        add_step(room, highest, tail, work);
    room->total = room->base;
    for (uint32_t k = 0; k < room->n_steps; k++)
        room->total += room->steps[k].work;
}

/* Is a's W nowhere above b's? Most pairs are decided at one of the two ends. */
static bool no_worse(const struct label *a, const struct label *b) {
    double x = a->base, y = b->base;
    uint32_t i = 0, j = 0;
    if (a->total > b->total)
        return false;
    while (x <= y) {
        double p = i < a->n_steps ? a->steps[i].tail : -1, q = j < b->n_steps ? b->steps[j].tail : -1;
        if (p < 0 && q < 0)
            return true;
        if (p >= q)
            x += a->steps[i++].work;
        if (q >= p)
            y += b->steps[j++].work;
    }
    return false;
}

/* Put a copy of room at its place, unless a label there is as good. Labels there that are no better than room go. */
static enum status offer(struct search *s, uint32_t at, struct error *err) {
    struct label *room = s->room;
    for (const struct label *l = s->heads[at]; l; l = l->next)
        if (no_worse(l, room))
            return ST_OK;
    for (struct label **link = &s->heads[at]; *link;) {
        if (!no_worse(room, *link)) {
            link = &(*link)->next;
            continue;
        }
        *link = (*link)->next;
        s->counts[at]--;
    }
    if (s->counts[at] >= FUSION_LABELS) {
        s->capped = true;
        return ST_OK;
    }
    size_t bytes = sizeof *room + room->n_steps * sizeof *room->steps;
    struct label *label = arena_alloc(&s->arena, 1, bytes);
    if (!label)
        return error_no_memory(err);
    memcpy(label, room, bytes);
    label->next = s->heads[at];
    s->heads[at] = label;
    s->counts[at]++;
    return ST_OK;
}

/* Every group that may end at `end` before this label. A longer one needs more in every respect, so the first that does
 * not fit is the last to be tried. */
static enum status extend_all(struct search *s, const struct label *label, uint32_t end, double limit,
                              struct error *err) {
    const struct gradient *gradients = s->gradients;
    double work = s->line->startup_us, tail = 0;
    for (uint32_t at = end; at-- > 0;) {
        if (at + 1 < end && gradients[at].dtype != gradients[at + 1].dtype)
            break;
        work += s->line->per_byte_us * (double)gradients[at].bytes;
        tail = fmax(tail, gradients[at].tail_us);
        if (!fits(label, gradients[end - 1].ready_us, work, tail, limit))
            break;
        extend(s, label, at, end, work, tail);
        enum status st = offer(s, at, err);
        if (st)
            return st;
    }
    return ST_OK;
}

/* Is there a cut of at most `limit`? Then heads[0] is one, and its chain ends in `none`, the empty label. */
static enum status decide(struct search *s, struct label *none, double limit, struct error *err) {
    enum status st = ST_OK;
    arena_clear(&s->arena);
    memset(s->heads, 0, (s->n + (size_t)1) * sizeof(struct label *));
    memset(s->counts, 0, (s->n + (size_t)1) * sizeof *s->counts);
    s->heads[s->n] = none;
    for (uint32_t end = s->n; end > 0 && !st; end--) {
        st = work_check(err);
        for (const struct label *l = s->heads[end]; l && !st; l = l->next)
            st = extend_all(s, l, end, limit, err);
    }
    s->heads[s->n] = NULL;
    return st;
}

static double value_of(const struct search *s, uint32_t n_groups, const uint32_t *ends) {
    fusion_jobs(s->gradients, s->line, n_groups, ends, s->jobs);
    return one_machine_value(n_groups, s->jobs, s->heap);
}

/* What no fusion beats: every gradient on its own and no start-up. */
static double floor_of(const struct search *s) {
    for (uint32_t i = 0; i < s->n; i++)
        s->jobs[i] = (struct machine_job){
            s->gradients[i].ready_us, s->line->per_byte_us * (double)s->gradients[i].bytes, s->gradients[i].tail_us};
    return one_machine_value(s->n, s->jobs, s->heap);
}

static void take(const struct search *s, struct fusion *best) {
    uint32_t k = 0;
    for (const struct label *l = s->heads[0]; l->rest; l = l->rest)
        best->ends[k++] = l->end;
    best->n_groups = k;
    best->value_us = value_of(s, k, best->ends);
}

static enum status bisect(struct search *s, struct fusion *best, struct error *err) {
    double low = floor_of(s), high = best->value_us;
    struct label none = {0};
    bool proved = true;
    while (high - low > 1e-10 * high) {
        double middle = low + (high - low) / 2;
        s->capped = false;
        enum status st = decide(s, &none, middle, err);
        if (st)
            return st;
        if (s->heads[0]) {
            take(s, best);
            high = fmin(middle, best->value_us);
        } else {
            proved = proved && !s->capped;
            low = middle;
        }
    }
    best->proved = proved;
    return ST_OK;
}

static enum status search_init(struct search *s, uint32_t n, const struct gradient *gradients,
                               const struct cost_line *line, struct error *err) {
    size_t places = (size_t)n + 1;
    *s = (struct search){.n = n,
                         .gradients = gradients,
                         .line = line,
                         .highest = calloc(places, sizeof *s->highest),
                         .heads = calloc(places, sizeof(struct label *)),
                         .counts = calloc(places, sizeof *s->counts),
                         .room = calloc(1, sizeof *s->room + places * sizeof *s->room->steps),
                         .heap = calloc(places, sizeof *s->heap),
                         .jobs = calloc(places, sizeof *s->jobs)};
    if (!s->highest || !s->heads || !s->counts || !s->room || !s->heap || !s->jobs)
        return error_no_memory(err);
    for (uint32_t i = 0; i < n; i++)
        s->highest[i + 1] = fmax(s->highest[i], gradients[i].tail_us);
    return ST_OK;
}

static void search_release(struct search *s) {
    free(s->highest);
    free(s->heads);
    free(s->counts);
    free(s->room);
    free(s->heap);
    free(s->jobs);
    arena_release(&s->arena);
}

/* Replace *best by a better cut, if there is one. */
static enum status solve(uint32_t n, const struct gradient *gradients, const struct cost_line *line,
                         struct fusion *best, struct error *err) {
    struct search s;
    enum status st = search_init(&s, n, gradients, line, err);
    if (!st)
        st = bisect(&s, best, err);
    search_release(&s);
    return st;
}

/* Neighbours of one dtype together until they hold at least `bytes`; ends[k] is the end of piece k. Returns how many.
 */
static uint32_t coarsen(uint32_t n, const struct gradient *gradients, uint64_t bytes, struct gradient *pieces,
                        uint32_t *ends) {
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct gradient *g = &gradients[i];
        if (k > 0 && pieces[k - 1].bytes < bytes && pieces[k - 1].dtype == g->dtype) {
            struct gradient *last = &pieces[k - 1];
            last->bytes += g->bytes;
            last->ready_us = g->ready_us;
            last->tail_us = fmax(last->tail_us, g->tail_us);
        } else {
            pieces[k++] = *g;
        }
        ends[k - 1] = i + 1;
    }
    return k;
}

static void refine(const struct fusion *coarse, const uint32_t *ends, struct fusion *best) {
    if (coarse->value_us >= best->value_us)
        return;
    best->n_groups = coarse->n_groups;
    best->value_us = coarse->value_us;
    for (uint32_t k = 0; k < coarse->n_groups; k++)
        best->ends[k] = ends[coarse->ends[k] - 1];
}

static enum status solve_coarse(uint32_t n, const struct gradient *gradients, const struct cost_line *line,
                                struct fusion *best, struct error *err) {
    struct arena arena = {0};
    struct gradient *pieces = arena_alloc(&arena, n, sizeof *pieces);
    uint32_t *ends = arena_alloc(&arena, n, sizeof *ends);
    struct fusion coarse = {.ends = arena_alloc(&arena, n, sizeof *coarse.ends)};
    uint64_t bytes = 0;
    enum status st = pieces && ends && coarse.ends ? ST_OK : error_no_memory(err);
    for (uint32_t i = 0; i < n; i++)
        bytes += gradients[i].bytes;
    if (!st) {
        uint32_t k = coarsen(n, gradients, 2 * bytes / FUSION_CHAIN, pieces, ends);
        st = fusion_balanced(k, pieces, line, &coarse, err);
        if (!st)
            st = solve(k, pieces, line, &coarse, err);
    }
    if (!st)
        refine(&coarse, ends, best);
    arena_release(&arena);
    return st;
}

enum status fusion_makespan(uint32_t n, const struct gradient *gradients, const struct cost_line *line,
                            struct fusion *out, struct error *err) {
    enum status st = fusion_balanced(n, gradients, line, out, err);
    if (st)
        return st;
    return n > FUSION_CHAIN ? solve_coarse(n, gradients, line, out, err) : solve(n, gradients, line, out, err);
}
