/* Clocks. Ranks on one host share its clock, unless they contradict each other: hosts of one name may be several. Of
 * the matched collectives of a group, the ends by one clock are compared with those by another: the offset of a clock
 * at a collective is the median difference over the WINDOW around it. So clocks may drift, and one late end moves
 * nothing. If a host's ranks are done later than others on average, that counts as its clock's offset: ends are all
 * that is known of clocks. */
#include "interop/traces/meetings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/work.h"
#include "interop/import/trace_events.h"

enum { WINDOW = 31 };

/* Moments since 1970 are rounded to less than this. */
static const double SLACK_US = 0.5;

/* A collective of one trace, on its way to its meeting. */
struct part {
    struct rank_collective *c;
    size_t trace;
    double offset; /* of the trace's clock against that of the group's reference */
};

/* Parts that belong together. */
struct slice {
    struct part *parts; /* by trace */
    size_t n;
    size_t last;   /* the trace that came last */
    double gap_us; /* after the last but one */
};

/* How much later, by the clocks, one trace has the end of a collective than the group's reference has. */
struct lag {
    struct part *part;
    size_t clock; /* the first trace that goes by the same clock */
    double us;
};

struct search {
    size_t n_traces;
    struct rank_trace *traces;
    struct part *parts;
    size_t n;
    struct slice *slices;
    size_t n_slices;
    struct lag *lags;  /* of one group */
    double *residuals; /* how far ends are from a common end */
    size_t n_residuals;
    struct meetings out;
};

/* ---- matching ---- */

static int compare_texts(const char *a, const char *b) {
    return a == b ? 0 : strcmp(a, b);
}

/* By what alike collectives have in common. */
static int compare_alike(const struct rank_collective *x, const struct rank_collective *y) {
    int order = compare_texts(x->group, y->group);
    if (!order)
        order = (x->sequence > y->sequence) - (x->sequence < y->sequence);
    if (!order)
        order = (x->step > y->step) - (x->step < y->step);
    if (!order)
        order = compare_texts(x->operation, y->operation);
    if (!order && x->sequence == TRACE_NO_NUMBER)
        order = (x->bytes > y->bytes) - (x->bytes < y->bytes);
    return order;
}

static int compare_in_trace(const void *a, const void *b) {
    const struct part *x = a, *y = b;
    const int order = compare_alike(x->c, y->c);
    return order ? order : (x->c->start > y->c->start) - (x->c->start < y->c->start);
}

static int compare_parts(const void *a, const void *b) {
    const struct part *x = a, *y = b;
    int order = compare_alike(x->c, y->c);
    if (!order)
        order = (x->c->number > y->c->number) - (x->c->number < y->c->number);
    return order ? order : (x->trace > y->trace) - (x->trace < y->trace);
}

static int64_t step_at(const struct rank_trace *trace, double moment) {
    size_t low = 0, high = trace->n_steps;
    while (low < high) { /* the first that begins later */
        const size_t middle = low + (high - low) / 2;
        if (trace->steps[middle].start <= moment)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? trace->steps[low - 1].number : -1;
}

/* Number the collectives of one trace among alike ones; `parts` has room for them. Returns how many meet. */
static size_t list_parts(struct rank_trace *trace, size_t which, struct part *parts) {
    size_t n = 0;
    for (size_t i = 0; i < trace->n_collectives; i++) {
        struct rank_collective *c = &trace->collectives[i];
        c->step = c->sequence == TRACE_NO_NUMBER ? step_at(trace, c->start) : 0;
        if (c->meets && c->devices != 1)
            parts[n++] = (struct part){c, which, 0};
    }
    if (n)
        qsort(parts, n, sizeof *parts, compare_in_trace);
    for (size_t i = 0; i < n; i++)
        parts[i].c->number = i && !compare_alike(parts[i - 1].c, parts[i].c) ? parts[i - 1].c->number + 1 : 0;
    return n;
}

static enum status list_slices(struct search *s, struct error *err) {
    size_t n = 1;
    for (size_t i = 0; i < s->n_traces; i++)
        n += s->traces[i].n_collectives;
    s->parts = calloc(n, sizeof *s->parts);
    s->slices = calloc(n, sizeof *s->slices);
    s->lags = calloc(n, sizeof *s->lags);
    s->residuals = calloc(n, sizeof *s->residuals);
    s->out.items = calloc(n, sizeof *s->out.items);
    if (!s->parts || !s->slices || !s->lags || !s->residuals || !s->out.items)
        return error_no_memory(err);
    for (size_t i = 0; i < s->n_traces; i++)
        s->n += list_parts(&s->traces[i], i, s->parts + s->n);
    if (s->n)
        qsort(s->parts, s->n, sizeof *s->parts, compare_parts);
    for (size_t i = 0, k; i < s->n; i = k) {
        for (k = i + 1; k < s->n && !compare_alike(s->parts[i].c, s->parts[k].c) &&
                        s->parts[i].c->number == s->parts[k].c->number;)
            k++;
        if (k - i > 1)
            s->slices[s->n_slices++] = (struct slice){.parts = &s->parts[i], .n = k - i};
        else
            s->out.n_unmatched += s->n_traces > 1;
    }
    return ST_OK;
}

/* ---- clocks ---- */

static const struct part *part_of(const struct slice *slice, size_t trace) {
    size_t low = 0, high = slice->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (slice->parts[middle].trace < trace)
            low = middle + 1;
        else
            high = middle;
    }
    return low < slice->n && slice->parts[low].trace == trace ? &slice->parts[low] : NULL;
}

/* The trace that has most of these collectives. */
static size_t reference_of(const struct slice *slices, size_t n, size_t n_traces, size_t *counts) {
    size_t best = 0;
    memset(counts, 0, n_traces * sizeof *counts);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < slices[i].n; k++)
            counts[slices[i].parts[k].trace]++;
    for (size_t t = 1; t < n_traces; t++)
        best = counts[t] > counts[best] ? t : best;
    return best;
}

static int compare_lags(const void *a, const void *b) {
    const struct lag *x = a, *y = b;
    if (x->clock != y->clock)
        return x->clock < y->clock ? -1 : 1;
    return (x->part > y->part) - (x->part < y->part);
}

/* The offsets of one clock, from its n lags in the order of the collectives. */
static void settle_offsets(struct search *s, const struct lag *lags, size_t n, bool same) {
    for (size_t k = 0; k < n; k++) {
        const size_t from = k > WINDOW / 2 ? k - WINDOW / 2 : 0, to = k + WINDOW / 2 + 1 < n ? k + WINDOW / 2 + 1 : n;
        double window[WINDOW];
        for (size_t i = from; i < to; i++)
            window[i - from] = lags[i].us;
        lags[k].part->offset = same ? 0 : median_of(to - from, window);
        s->residuals[s->n_residuals++] = fabs(lags[k].us - lags[k].part->offset);
    }
}

/* By one clock no rank is done with a collective before the other has begun. */
static bool agree(const struct slice *slices, size_t n_slices, size_t a, size_t b) {
    for (size_t i = 0; i < n_slices; i++) {
        const struct part *x = part_of(&slices[i], a), *y = part_of(&slices[i], b);
        if (x && y && (x->c->end < y->c->start - SLACK_US || y->c->end < x->c->start - SLACK_US))
            return false;
    }
    return true;
}

/* clocks[t], so far how many of these collectives trace t has, becomes the first trace that has some and goes by the
 * clock of trace t; SIZE_MAX of a trace that has none. */
static enum status find_clocks(const struct search *s, const struct slice *slices, size_t n_slices, size_t *clocks,
                               struct error *err) {
    enum status st = ST_OK;
    for (size_t t = 0; t < s->n_traces && !st; t++) {
        const char *host = s->traces[t].host;
        const bool has_some = clocks[t] > 0;
        clocks[t] = !has_some ? SIZE_MAX : host ? 0 : t;
        while (clocks[t] < t &&
               (clocks[clocks[t]] != clocks[t] || !s->traces[clocks[t]].host ||
                compare_texts(host, s->traces[clocks[t]].host) != 0 || !agree(slices, n_slices, t, clocks[t])))
            clocks[t]++;
        st = has_some ? work_check(err) : ST_OK;
    }
    return st;
}

/* Compare the clocks of one group's traces. Slices that the reference does not have count as unmatched. `clocks` is
 * scratch, of one entry a trace. */
static enum status compare_clocks(struct search *s, struct slice *slices, size_t n_slices, size_t *clocks,
                                  struct error *err) {
    const size_t reference = reference_of(slices, n_slices, s->n_traces, clocks);
    size_t n = 0;
    enum status st = find_clocks(s, slices, n_slices, clocks, err);
    if (st)
        return st;
    for (size_t i = 0; i < n_slices; i++) {
        const struct part *base = part_of(&slices[i], reference);
        for (size_t k = 0; k < slices[i].n && base; k++) {
            struct part *part = &slices[i].parts[k];
            if (part != base)
                s->lags[n++] = (struct lag){part, clocks[part->trace], part->c->end - base->c->end};
        }
        s->out.n_unmatched += base ? 0 : slices[i].n;
        slices[i].n = base ? slices[i].n : 0;
    }
    if (n)
        qsort(s->lags, n, sizeof *s->lags, compare_lags);
    for (size_t i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && s->lags[k].clock == s->lags[i].clock;)
            k++;
        const bool same = s->lags[i].clock == clocks[reference];
        settle_offsets(s, s->lags + i, k - i, same);
        s->out.one_clock = s->out.one_clock && same;
    }
    return ST_OK;
}

static enum status compare_all_clocks(struct search *s, struct error *err) {
    size_t *clocks = calloc(s->n_traces + 1, sizeof *clocks);
    enum status st = clocks ? ST_OK : error_no_memory(err);
    s->out.one_clock = true;
    for (size_t i = 0, k; i < s->n_slices && !st; i = k) {
        for (k = i + 1; k < s->n_slices && !compare_texts(s->slices[k].parts->c->group, s->slices[i].parts->c->group);)
            k++;
        st = compare_clocks(s, s->slices + i, k - i, clocks, err);
    }
    free(clocks);
    s->out.clock_us = s->n_residuals ? median_of(s->n_residuals, s->residuals) : 0;
    return st;
}

/* ---- who came last ---- */

/* Complete `ready` and `late` of the parts. */
static void find_last(struct slice *slice) {
    double latest = -INFINITY, second = -INFINITY; /* by the reference's clock */
    for (size_t k = 0; k < slice->n; k++) {
        const double start = slice->parts[k].c->start - slice->parts[k].offset;
        second = fmax(second, fmin(start, latest));
        if (start > latest) {
            latest = start;
            slice->last = slice->parts[k].trace;
        }
    }
    slice->gap_us = latest - second;
    for (size_t k = 0; k < slice->n; k++) {
        slice->parts[k].c->ready = latest + slice->parts[k].offset;
        slice->parts[k].c->late = slice->last;
    }
}

/* ---- messages side by side ---- */

static int compare_moves(const void *a, const void *b) {
    const struct rank_collective *x = *(struct rank_collective *const *)a, *y = *(struct rank_collective *const *)b;
    const double from = rank_collective_moves(x), others = rank_collective_moves(y);
    return from != others ? (from > others) - (from < others) : (x > y) - (x < y);
}

/* n collectives whose messages move one beside the other. */
static void share_stretch(struct rank_collective **c, size_t n, double us) {
    double bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += c[i]->bytes ? (double)c[i]->bytes : NAN;
    for (size_t i = 0; i < n; i++) {
        c[i]->alone = n == 1;
        c[i]->share_us = n == 1 ? us : us * (double)c[i]->bytes / bytes;
    }
}

static enum status share_out(struct rank_trace *trace, struct error *err) {
    const size_t n = trace->n_collectives;
    struct rank_collective **c = calloc(n + 1, sizeof *c);
    if (!c)
        return error_no_memory(err);
    for (size_t i = 0; i < n; i++)
        c[i] = &trace->collectives[i];
    if (n)
        qsort(c, n, sizeof *c, compare_moves);
    for (size_t i = 0, k; i < n; i = k) {
        double end = c[i]->end;
        for (k = i + 1; k < n && rank_collective_moves(c[k]) < end - SLACK_US; k++)
            end = fmax(end, c[k]->end);
        share_stretch(c + i, k - i, end - rank_collective_moves(c[i]));
    }
    free(c);
    return ST_OK;
}

/* ---- meetings ---- */

static uint32_t devices_of(const struct search *s, const struct part *part) {
    const uint32_t job = s->traces[part->trace].n_ranks;
    return part->c->devices ? part->c->devices : job ? job : (uint32_t)s->n_traces;
}

/* The share of a part's time from the last rank's coming to the end for which its rank computes. */
static double beside_of(const struct search *s, const struct part *part) {
    const double us = part->c->end - part->c->ready;
    return us > 0 ? spans_covered(&s->traces[part->trace].compute, part->c->ready, part->c->end) / us : 0;
}

/* `shares` has room for the slice. */
static void meet(struct search *s, const struct slice *slice, double *shares) {
    struct meeting m = {.first = slice->parts->c,
                        .devices = devices_of(s, slice->parts),
                        .n = slice->n,
                        .last = slice->last,
                        .gap_us = slice->gap_us,
                        .alone = true};
    bool known = true;
    for (size_t k = 0; k < slice->n; k++) {
        const struct part *part = &slice->parts[k];
        shares[k] = part->c->share_us;
        known = known && !isnan(shares[k]);
        m.alone = m.alone && part->c->alone;
        m.beside += beside_of(s, part) / (double)slice->n;
    }
    m.cost_us = known ? median_of(slice->n, shares) : NAN;
    s->out.n_partial += m.n < m.devices;
    s->out.items[s->out.n++] = m;
}

static enum status meet_all(struct search *s, struct error *err) {
    enum status st = ST_OK;
    for (size_t i = 0; i < s->n_slices; i++)
        if (s->slices[i].n)
            find_last(&s->slices[i]);
    for (size_t t = 0; t < s->n_traces && !st; t++)
        st = share_out(&s->traces[t], err);
    double *shares = calloc(s->n_traces + 1, sizeof *shares);
    if (!shares && !st)
        st = error_no_memory(err);
    for (size_t i = 0; i < s->n_slices && !st; i++)
        if (s->slices[i].n)
            meet(s, &s->slices[i], shares);
    free(shares);
    return st;
}

/* ---- costs ---- */

/* Those that can be a point of a curve come first, by operation, devices and bytes. */
static bool is_point(const struct meeting *m) {
    return m->n == m->devices && m->first->bytes && !isnan(m->cost_us);
}

static int compare_points(const struct meeting *x, const struct meeting *y) {
    int order = (int)is_point(y) - (int)is_point(x);
    if (!order)
        order = compare_texts(x->first->operation, y->first->operation);
    if (!order)
        order = (x->devices > y->devices) - (x->devices < y->devices);
    return order ? order : (x->first->bytes > y->first->bytes) - (x->first->bytes < y->first->bytes);
}

/* How well a meeting shows what its messages cost by themselves. */
static int purity_of(const struct meeting *m) {
    return m->alone ? 1 + (m->beside < MEETING_MOST_BESIDE) : 0;
}

static int compare_meetings(const void *a, const void *b) {
    const struct meeting *x = a, *y = b;
    const int order = compare_points(x, y);
    return order ? order : purity_of(y) - purity_of(x);
}

/* The point of n meetings of one size, the purest first. */
static struct cost_point point_of(const struct meeting *items, size_t n, double *times) {
    struct cost_point point = {.operation = items->first->operation,
                               .devices = items->devices,
                               .bytes = items->first->bytes,
                               .alone = items->alone};
    size_t used = 0;
    for (; used < n && purity_of(&items[used]) == purity_of(items); used++) {
        times[used] = items[used].cost_us;
        point.beside += items[used].beside;
    }
    point.beside /= (double)used;
    point.n_left_out = n - used;
    point.time_us = summary_of(used, times);
    return point;
}

static enum status list_points(struct search *s, struct error *err) {
    struct meetings *out = &s->out;
    double *times = calloc(out->n + 1, sizeof *times);
    out->points = calloc(out->n + 1, sizeof *out->points);
    if (!times || !out->points) {
        free(times);
        return error_no_memory(err);
    }
    if (out->n)
        qsort(out->items, out->n, sizeof *out->items, compare_meetings);
    for (size_t i = 0, k; i < out->n && is_point(&out->items[i]); i = k) {
        for (k = i + 1; k < out->n && !compare_points(&out->items[i], &out->items[k]);)
            k++;
        out->points[out->n_points++] = point_of(out->items + i, k - i, times);
    }
    free(times);
    return ST_OK;
}

enum status meetings_find(size_t n, struct rank_trace *traces, struct meetings *out, struct error *err) {
    struct search s = {.n_traces = n, .traces = traces};
    enum status st = list_slices(&s, err);
    if (!st)
        st = compare_all_clocks(&s, err);
    if (!st)
        st = meet_all(&s, err);
    if (!st)
        st = list_points(&s, err);
    free(s.parts);
    free(s.slices);
    free(s.lags);
    free(s.residuals);
    if (st)
        meetings_release(&s.out);
    else
        *out = s.out;
    return st;
}

void meetings_release(struct meetings *meetings) {
    free(meetings->items);
    free(meetings->points);
    *meetings = (struct meetings){0};
}
