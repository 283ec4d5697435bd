/* A rank's moment is computing if the rank computes. Else it is exposed communication if some collective has begun on
 * all ranks and is not done. Else it is waiting if a collective has begun on this rank. Where several collectives wait,
 * the first to begin says for which rank. */
#include "interop/traces/explanation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/work.h"
#include "interop/import/trace_events.h"

/* How one rank's time is cut. */
struct cut {
    const struct rank_trace *trace;
    struct spans moves; /* a message moves */
    struct spans busy;  /* a message moves, or the rank computes */
    struct spans waits; /* collectives wait, unless the rank is busy meanwhile; in order, apart from each other */
    size_t *late;       /* by wait: the trace that is waited for */
};

static bool add_all(struct spans *to, const struct spans *from) {
    for (size_t i = 0; i < from->n; i++)
        if (!spans_add(to, from->items[i].start, from->items[i].end))
            return false;
    return true;
}

static void cut_release(struct cut *cut) {
    spans_release(&cut->busy);
    spans_release(&cut->moves);
    spans_release(&cut->waits);
    free(cut->late);
}

static enum status cut_of(const struct rank_trace *trace, struct cut *out, struct error *err) {
    struct cut cut = {.trace = trace, .late = calloc(trace->n_collectives + 1, sizeof *cut.late)};
    cut.waits.items = calloc(trace->n_collectives + 1, sizeof *cut.waits.items);
    bool ok = cut.late && cut.waits.items;
    double until = -INFINITY;
    for (size_t i = 0; i < trace->n_collectives && ok; i++) {
        const struct rank_collective *c = &trace->collectives[i];
        const double moves = rank_collective_moves(c);
        ok = spans_add(&cut.moves, moves, c->end);
        if (moves > fmax(c->start, until)) {
            cut.late[cut.waits.n] = c->late;
            cut.waits.items[cut.waits.n++] = (struct span){fmax(c->start, until), moves};
            until = moves;
        }
    }
    spans_join(&cut.moves);
    ok = ok && add_all(&cut.busy, &trace->compute) && add_all(&cut.busy, &cut.moves);
    spans_join(&cut.busy);
    if (!ok) {
        cut_release(&cut);
        return error_no_memory(err);
    }
    *out = cut;
    return ST_OK;
}

/* The time between `start` and `end` for which the rank waits; for_whom[t] grows by that for trace t; NULL: none does.
 * O(log n + those within). */
static double waiting_in(const struct cut *cut, double start, double end, double *for_whom) {
    const struct spans *waits = &cut->waits;
    double waiting = 0;
    for (size_t i = spans_after(waits, start); i < waits->n && waits->items[i].start < end; i++) {
        const double from = fmax(waits->items[i].start, start), to = fmin(waits->items[i].end, end);
        const double us = fmax(to - from - spans_covered(&cut->busy, from, to), 0);
        waiting += us;
        if (for_whom)
            for_whom[cut->late[i]] += us;
    }
    return waiting;
}

/* What the time from `start` to `end` was for. */
static void account(const struct cut *cut, double start, double end, double *for_whom, double us[TIME_COUNT]) {
    const double busy = spans_covered(&cut->busy, start, end);
    us[TIME_compute] = spans_covered(&cut->trace->compute, start, end);
    us[TIME_exposed] = fmax(busy - us[TIME_compute], 0);
    us[TIME_waiting] = waiting_in(cut, start, end, for_whom);
    us[TIME_idle] = fmax(end - start - busy - us[TIME_waiting], 0);
}

/* for_whom[t] becomes how long the rank waits in an iteration for trace t. */
static enum status account_rank(const struct rank_trace *trace, double *for_whom, struct rank_account *out,
                                struct error *err) {
    struct cut cut;
    enum status st = cut_of(trace, &cut, err);
    if (st)
        return st;
    const double n = (double)trace->n_steps;
    for (size_t i = 0; i < trace->n_steps; i++) {
        const struct rank_step *step = &trace->steps[i];
        double us[TIME_COUNT];
        account(&cut, step->start, step->end, for_whom, us);
        for (int k = 0; k < TIME_COUNT; k++)
            out->us[k] += us[k] / n;
        out->iteration_us += (step->end - step->start) / n;
        out->hidden_us += (spans_covered(&cut.moves, step->start, step->end) - us[TIME_exposed]) / n;
    }
    for (size_t i = 0; i < trace->n_collectives; i++)
        out->n_met += isnan(trace->collectives[i].ready) ? 0 : 1;
    cut_release(&cut);
    return ST_OK;
}

/* ---- all ranks ---- */

static int compare_gaps(const void *a, const void *b) {
    const struct meeting *x = a, *y = b;
    if (x->last != y->last)
        return x->last < y->last ? -1 : 1;
    return (x->gap_us > y->gap_us) - (x->gap_us < y->gap_us);
}

/* Who came last how often, and by how much. */
static enum status count_last(struct explanation *e, struct error *err) {
    const size_t n = e->meetings.n;
    struct meeting *sorted = calloc(n + 1, sizeof *sorted);
    if (!sorted)
        return error_no_memory(err);
    if (n) {
        memcpy(sorted, e->meetings.items, n * sizeof *sorted);
        qsort(sorted, n, sizeof *sorted, compare_gaps);
    }
    for (size_t i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && sorted[k].last == sorted[i].last;)
            k++;
        struct rank_account *account = &e->accounts[sorted[i].last];
        account->n_last = k - i;
        account->gap_us = (sorted[i + (k - i - 1) / 2].gap_us + sorted[i + (k - i) / 2].gap_us) / 2;
    }
    free(sorted);
    return ST_OK;
}

static enum status account_all(struct explanation *e, struct error *err) {
    double *for_whom = calloc(e->n, sizeof *for_whom), most = 0;
    enum status st = for_whom ? ST_OK : error_no_memory(err);
    for (size_t i = 0; i < e->n && !st; i++) {
        memset(for_whom, 0, e->n * sizeof *for_whom);
        st = work_check(err);
        if (!st)
            st = account_rank(&e->traces[i], for_whom, &e->accounts[i], err);
        if (st)
            break;
        for (size_t t = 0; t < e->n && e->n > 1; t++)
            e->accounts[t].held_up_us += for_whom[t] / (double)e->traces[i].n_steps / (double)(e->n - 1);
        e->iteration_us += e->accounts[i].iteration_us / (double)e->n;
        most = fmax(most, e->accounts[i].us[TIME_compute] + e->accounts[i].us[TIME_idle]);
    }
    free(for_whom);
    e->most_won_us = fmax(e->iteration_us - most, 0);
    return st;
}

/* A rank is called late if others wait for it for more than 1% of an iteration and, in the mean over the collectives to
 * which it comes last, for longer than clocks can be wrong. */
static void name_late(struct explanation *e) {
    size_t late = 0;
    for (size_t t = 1; t < e->n; t++)
        late = e->accounts[t].held_up_us > e->accounts[late].held_up_us ? t : late;
    const struct rank_account *a = &e->accounts[late];
    const double in_all_us = a->held_up_us * (double)e->traces[late].n_steps;
    e->late =
        a->held_up_us > 0.01 * e->iteration_us && in_all_us > e->meetings.clock_us * (double)a->n_last ? late : e->n;
}

static int compare_ranks(const void *a, const void *b) {
    const struct rank_trace *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static enum status check_ranks(const struct explanation *e, struct error *err) {
    for (size_t i = 1; i < e->n; i++) {
        const struct rank_trace *a = &e->traces[i - 1], *b = &e->traces[i];
        if (a->rank == b->rank)
            return error_at(err, ST_INVALID, b->file, "of rank %ld, as %.200s is; give one trace a rank", (long)b->rank,
                            a->file);
        if (a->n_ranks && b->n_ranks && a->n_ranks != b->n_ranks)
            return error_at(err, ST_INVALID, b->file,
                            "of a job of %u ranks, but %.200s of one of %u; give traces of one job", b->n_ranks,
                            a->file, a->n_ranks);
    }
    return ST_OK;
}

static enum status read_all(size_t n, const struct source *sources, struct explanation *e, struct error *err) {
    if (!n)
        return error_set(err, ST_INVALID, "no traces: give one of each rank");
    if (n > EXPLANATION_MAX_TRACES)
        return error_set(err, ST_TOO_LARGE, "more than %d traces", EXPLANATION_MAX_TRACES);
    e->traces = calloc(n, sizeof *e->traces);
    e->accounts = calloc(n, sizeof *e->accounts);
    if (!e->traces || !e->accounts)
        return error_no_memory(err);
    for (; e->n < n; e->n++) {
        enum status st = rank_trace_read(&sources[e->n], &e->texts, &e->traces[e->n], err);
        if (st)
            return st;
        if (e->traces[e->n].rank != TRACE_NO_NUMBER)
            continue;
        e->traces[e->n].rank = (int64_t)e->n;
        e->numbered = true;
    }
    qsort(e->traces, n, sizeof *e->traces, compare_ranks);
    return check_ranks(e, err);
}

enum status explanation_of(size_t n, const struct source *sources, struct explanation *out, struct error *err) {
    *out = (struct explanation){0};
    out->texts.arena = &out->arena;
    enum status st = read_all(n, sources, out, err);
    if (!st)
        st = meetings_find(n, out->traces, &out->meetings, err);
    if (!st)
        st = count_last(out, err);
    if (!st)
        st = account_all(out, err);
    if (st)
        explanation_release(out);
    else
        name_late(out);
    return st;
}

void explanation_release(struct explanation *e) {
    for (size_t i = 0; i < e->n; i++)
        rank_trace_release(&e->traces[i]);
    free(e->traces);
    free(e->accounts);
    meetings_release(&e->meetings);
    text_set_release(&e->texts);
    arena_release(&e->arena);
    *e = (struct explanation){0};
}

/* ---- the picture ---- */

enum status explanation_picture(const struct explanation *e, size_t trace, size_t step, size_t cells,
                                enum time_kind *out, struct error *err) {
    const struct rank_step *s = &e->traces[trace].steps[step];
    struct cut cut;
    enum status st = cut_of(&e->traces[trace], &cut, err);
    if (st)
        return st;
    for (size_t i = 0; i < cells; i++) {
        const double width = (s->end - s->start) / (double)cells, start = s->start + width * (double)i;
        double us[TIME_COUNT];
        account(&cut, start, start + width, NULL, us);
        out[i] = TIME_compute;
        for (int k = 1; k < TIME_COUNT; k++)
            out[i] = us[k] > us[out[i]] ? (enum time_kind)k : out[i];
    }
    cut_release(&cut);
    return ST_OK;
}

struct length {
    double us;
    size_t step;
};

static int compare_lengths(const void *a, const void *b) {
    const struct length *x = a, *y = b;
    return x->us != y->us ? (x->us > y->us) - (x->us < y->us) : (x->step > y->step) - (x->step < y->step);
}

enum status explanation_typical_step(const struct rank_trace *trace, size_t *out, struct error *err) {
    struct length *lengths = calloc(trace->n_steps, sizeof *lengths);
    if (!lengths)
        return error_no_memory(err);
    for (size_t i = 0; i < trace->n_steps; i++)
        lengths[i] = (struct length){trace->steps[i].end - trace->steps[i].start, i};
    qsort(lengths, trace->n_steps, sizeof *lengths, compare_lengths);
    *out = lengths[trace->n_steps / 2].step;
    free(lengths);
    return ST_OK;
}

const char *time_kind_words(enum time_kind kind) {
    static const char *const words[] = {
#define X(name, words) words,
        TIME_TABLE(X)
#undef X
    };
    return words[kind];
}
