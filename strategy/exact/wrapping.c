/* Partial cuts ("labels") are extended from the front of the chain. A label of the units before i says how the forward
 * pass stands there, and what the backward pass, which comes to these units last, still needs once it is there:
 *   e, r   E of the last group, and when the next gather may begin: max(K_j-1, E_j-2) of the next group
 *   p      what the pass takes from P of the header on, when the last group has computed backward
 *   y      what it takes from the gather of the last group on, by p
 *   z, c   what it takes from that gather and from the computation of the last group on, by what it takes from B on
 *
 * Both passes are longest paths, so each of these only ever hurts in one direction. With a budget the same holds for
 * the bytes that are gathered ahead, those that are held and those that are left for the next group (slack). A label
 * that is no better in any of them than another label of the same i is dropped. So is one whose lower bound reaches the
 * best value known. That comes from cuts into groups of equal bytes, and then from a first run which keeps few labels.
 */
#include "strategy/exact/wrapping.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

static const double PROOF = 1 - 1e-9;

struct label {
    double e, r, p, y, z, c;
    double least_us;             /* no cut that begins so is faster */
    uint64_t ahead, held, slack; /* bytes gathered again for the last group; kept by all; left for the next one */
    uint32_t begin, before;      /* where the last group begins, and the label there that it was added to */
    bool keeps;                  /* the last group */
};

struct front {
    struct label *labels;
    size_t n, room;
};

struct search {
    const struct wrapping_chain *chain;
    const struct wrapping_cost *cost;
    double *forward_us, *backward_us; /* by unit: those before it */
    uint64_t *bytes, *kept;
    uint64_t *needs;      /* by unit: what it needs, were it and the next one alone */
    uint64_t *needs_rest; /* by unit: the most that it or a later one needs so, with the unit before it */
    uint32_t *pieces;
    struct front *fronts;       /* by unit */
    size_t most;                /* labels at a unit */
    double best_us, dropped_us; /* dropped_us: nothing that begins as a label that was dropped is faster */
    double price_us;            /* what a byte that is kept counts where labels are dropped */
    struct label best;          /* of all units */
    bool found, no_memory;
};

/* What a group costs. */
struct group_us {
    double gather, unpack, sum, forward, backward;
    uint64_t bytes, own, summed;
};

static struct group_us group_of(const struct search *s, uint32_t begin, uint32_t end) {
    const struct wrapping_cost *cost = s->cost;
    const uint64_t bytes = s->bytes[end] - s->bytes[begin];
    const uint32_t pieces = s->pieces[end] - s->pieces[begin];
    return (struct group_us){
        .gather = cost->gather_us(cost->context, bytes, pieces),
        .unpack = cost->unpack_us(cost->context, bytes, pieces),
        .sum = cost->sum_us(cost->context, bytes, pieces),
        .forward = s->forward_us[end] - s->forward_us[begin],
        .backward = s->backward_us[end] - s->backward_us[begin],
        .bytes = bytes,
        .own = cost->own_bytes(cost->context, bytes, pieces),
        .summed = cost->summed_bytes(cost->context, bytes, pieces),
    };
}

/* ---- one group more ---- */

/* The backward pass of what was there before needs p and b. */
static struct label label_of(const struct group_us *g, bool keeps, double e, double r, double p, double b) {
    const double gather = keeps ? 0 : g->gather, unpack = keeps ? 0 : g->unpack;
    return (struct label){.e = e,
                          .r = r,
                          .p = p,
                          .y = gather + p,
                          .z = gather + unpack + g->backward + b,
                          .c = g->backward + b,
                          .keeps = keeps};
}

static struct label first_label(const struct search *s, const struct group_us *g, bool keeps) {
    const double head = s->chain->head_us;
    const double ends = fmax(g->sum, s->chain->tail_us);
    return label_of(g, keeps, fmax(head, g->gather + g->unpack) + g->forward, fmax(g->gather, head), ends, ends);
}

static struct label next_label(const struct label *from, const struct group_us *g, bool keeps) {
    const double gathered = from->r + g->gather;
    return label_of(g, keeps, fmax(from->e, gathered + g->unpack) + g->forward, fmax(gathered, from->e),
                    fmax(from->z, from->y + g->sum), fmax(from->c, from->p + g->sum));
}

/* Whether the units from `end` on can follow, were they all alone: each needs its own, beside what is kept and the unit
 * before it, which is kept or gathered ahead. */
static bool can_go_on(const struct search *s, const struct label *label, uint32_t end) {
    const uint64_t budget = s->chain->budget;
    return end == s->chain->n ||
           (label->held + label->ahead + s->needs[end] <= budget && label->held + s->needs_rest[end + 1] <= budget);
}

/* Note the memory of a label's last group, which was added to `from` (NULL: to none) and ends before unit `end`. False
 * when the budget does not hold it. */
static bool fits(const struct search *s, const struct label *from, const struct group_us *g, uint32_t end,
                 struct label *label) {
    const uint64_t budget = s->chain->budget, held = from ? from->held : 0;
    const uint64_t needs = g->own + (from ? from->ahead : 0) + held + s->kept[end];
    label->slack = UINT64_MAX;
    if (budget == UINT64_MAX)
        return true;
    label->ahead = label->keeps ? 0 : g->bytes;
    label->held = held + (label->keeps ? g->bytes : 0);
    label->slack = needs <= budget ? budget - needs : 0;
    return needs <= budget && can_go_on(s, label, end) && (!from || g->summed <= from->slack);
}

/* Of a label of the whole chain. */
static double whole_us(const struct label *label) {
    return label->e + fmax(label->y, label->z);
}

/* Of groups with so many bytes together, as few as the budget allows. */
static double floor_us(const struct search *s, const struct cost_line *floor, uint64_t bytes) {
    const double most = (double)s->chain->budget / 2;
    return floor->startup_us * fmax(ceil((double)bytes / most), 1) + floor->per_byte_us * (double)bytes;
}

/* How many bytes of the units from `end` on must be gathered again: the last of them computes while all that is kept is
 * there. */
static uint64_t least_again(const struct search *s, const struct label *label, uint32_t end) {
    const uint32_t n = s->chain->n;
    const uint64_t budget = s->chain->budget;
    const uint64_t last = s->needs[n - 1] - s->chain->units[n - 1].bytes;
    const uint64_t room = budget > last ? budget - last : 0, again = s->bytes[end] - label->held;
    return budget != UINT64_MAX && s->bytes[n] > room + again ? s->bytes[n] - room - again : 0;
}

/* The units from `end` on compute and sum, and some are gathered again, before the backward pass comes to the last
 * group of the label. */
static double least_us(const struct search *s, const struct label *label, uint32_t end) {
    const uint32_t n = s->chain->n;
    const struct wrapping_unit *final = &s->chain->units[n - 1];
    const uint64_t rest = s->bytes[n] - s->bytes[end];
    const double gathers = floor_us(s, &s->cost->gather_floor, rest), sums = floor_us(s, &s->cost->sum_floor, rest);
    const double forward =
        fmax(label->e + s->forward_us[n] - s->forward_us[end], label->r + gathers + final->forward_us);
    const uint64_t bytes = least_again(s, label, end);
    const double again = bytes > 0 ? floor_us(s, &s->cost->gather_floor, bytes) : 0;
    return forward + fmax(s->backward_us[n] - s->backward_us[end] + label->c, again + sums + label->y);
}

/* ---- fronts ---- */

static bool is_no_better(const struct search *s, const struct label *a, const struct label *than) {
    return a->e >= than->e && a->r >= than->r && a->y >= than->y && a->z >= than->z && a->c >= than->c &&
           a->p >= than->p &&
           (s->chain->budget == UINT64_MAX ||
            (a->ahead >= than->ahead && a->held >= than->held && a->slack <= than->slack));
}

/* What a label promises. A bound alone would favour those that have spent the memory early, on keeping. */
static double promise_us(const struct search *s, const struct label *label) {
    return label->least_us + s->price_us * (double)label->held;
}

/* Where the front is full: in place of the label that promises least, if this one promises more. */
static void replace_worst(struct search *s, struct front *front, const struct label *label) {
    struct label *worst = &front->labels[0];
    for (size_t i = 1; i < front->n; i++)
        if (promise_us(s, &front->labels[i]) > promise_us(s, worst))
            worst = &front->labels[i];
    const bool replaces = promise_us(s, label) < promise_us(s, worst);
    s->dropped_us = fmin(s->dropped_us, replaces ? worst->least_us : label->least_us);
    if (replaces)
        *worst = *label;
}

static void keep(struct search *s, uint32_t end, const struct label *label) {
    struct front *front = &s->fronts[end];
    for (size_t i = 0; i < front->n; i++)
        if (is_no_better(s, label, &front->labels[i]))
            return;
    size_t n = 0;
    for (size_t i = 0; i < front->n; i++)
        if (!is_no_better(s, &front->labels[i], label))
            front->labels[n++] = front->labels[i];
    front->n = n;
    if (n == s->most) {
        replace_worst(s, front, label);
        return;
    }
    if (!GROW(&front->labels, &front->room, n + 1)) {
        s->no_memory = true;
        return;
    }
    front->labels[front->n++] = *label;
}

static bool may_be_best(const struct search *s, double us) {
    return !s->found || us < s->best_us * PROOF;
}

/* Add the group of units begin .. end - 1 to a label that ends where it begins, or to nothing (NULL). */
static void extend(struct search *s, const struct label *from, uint32_t index, const struct group_us *g, bool keeps,
                   uint32_t begin, uint32_t end) {
    struct label label = from ? next_label(from, g, keeps) : first_label(s, g, keeps);
    if (!fits(s, from, g, end, &label))
        return;
    label.begin = begin;
    label.before = index;
    if (end < s->chain->n) {
        label.least_us = least_us(s, &label, end);
        if (may_be_best(s, label.least_us))
            keep(s, end, &label);
        return;
    }
    const double us = whole_us(&label);
    if (s->found && us >= s->best_us)
        return;
    s->best_us = us;
    s->best = label;
    s->found = true;
}

/* Without a budget nothing speaks against keeping. */
static void extend_both(struct search *s, const struct label *from, uint32_t index, const struct group_us *g,
                        uint32_t begin, uint32_t end) {
    extend(s, from, index, g, true, begin, end);
    if (s->chain->budget != UINT64_MAX)
        extend(s, from, index, g, false, begin, end);
}

/* No cut that begins as the label (NULL: with nothing) and goes on with a group as long as g, or longer, is faster:
 * both passes compute all units from `begin` on after the group's first gather, and before its sum. */
static double least_with(const struct search *s, const struct label *from, const struct group_us *g, uint32_t begin) {
    const uint32_t n = s->chain->n;
    const double gathered = g->gather + g->unpack;
    const double before = from ? fmax(from->e, from->r + gathered) : fmax(s->chain->head_us, gathered);
    const double after = from ? fmax(from->c, from->p + g->sum) : fmax(g->sum, s->chain->tail_us);
    return before + s->forward_us[n] - s->forward_us[begin] + s->backward_us[n] - s->backward_us[begin] + after;
}

static void extend_all(struct search *s, uint32_t begin) {
    const struct front *front = &s->fronts[begin];
    bool goes_on = true;
    for (uint32_t end = begin + 1; end <= s->chain->n && goes_on && !s->no_memory; end++) {
        const struct group_us g = group_of(s, begin, end);
        if (s->chain->budget != UINT64_MAX && 2 * g.bytes > s->chain->budget)
            return;
        goes_on = false;
        if (begin == 0 && may_be_best(s, least_with(s, NULL, &g, begin))) {
            extend_both(s, NULL, 0, &g, begin, end);
            goes_on = true;
        }
        for (size_t i = 0; i < front->n; i++) {
            const struct label *from = &front->labels[i];
            if (may_be_best(s, from->least_us) && may_be_best(s, least_with(s, from, &g, begin))) {
                extend_both(s, from, (uint32_t)i, &g, begin, end);
                goes_on = true;
            }
        }
    }
}

/* ---- cuts into groups of equal bytes ---- */

/* Where the k-th of n_groups groups ends, after one that ended at `begin`. As many groups as units: every unit alone,
 * which fits whenever anything does. */
static uint32_t equal_end(const struct search *s, uint32_t n_groups, uint32_t k, uint32_t begin) {
    const uint32_t n = s->chain->n;
    if (n_groups == n)
        return begin + 1;
    const double until = (double)s->bytes[n] * (k + 1) / n_groups;
    uint32_t end = begin + 1;
    while (end < n && (double)s->bytes[end] < until)
        end++;
    return k + 1 == n_groups ? n : end;
}

/* The cut, in `into`, whose groups all keep what they gathered or none does; *n_groups is 0 where it does not fit. */
static void try_equal(struct search *s, uint32_t want, bool keeps, uint32_t *into, uint32_t *n_groups) {
    struct label last = {0};
    uint32_t n = 0;
    *n_groups = 0;
    for (uint32_t begin = 0; begin < s->chain->n; n++) {
        const uint32_t end = equal_end(s, want, n, begin);
        const struct group_us g = group_of(s, begin, end);
        struct label label = n ? next_label(&last, &g, keeps) : first_label(s, &g, keeps);
        if (!fits(s, n ? &last : NULL, &g, end, &label))
            return;
        last = label;
        into[n] = begin = end;
    }
    const double us = whole_us(&last);
    if (s->found && us >= s->best_us)
        return;
    s->found = true;
    s->best_us = us;
    *n_groups = n;
}

/* One group, two, and so on, more sparsely the more there are, and every unit alone. */
static enum status try_equal_cuts(struct search *s, struct arena *arena, struct wrapping *out, struct error *err) {
    const uint32_t n = s->chain->n;
    uint32_t *tried = arena_alloc(arena, n, sizeof *tried), *ends = arena_alloc(arena, n, sizeof *ends), n_groups;
    bool *keeps = arena_alloc(arena, n, sizeof *keeps);
    if (!tried || !ends || !keeps)
        return error_no_memory(err);
    for (uint32_t i = 0, want = 1, kept = 1; i < 2; want = want < n ? want + 1 + want / 16 : 1) {
        try_equal(s, want < n ? want : n, kept, tried, &n_groups);
        if (n_groups > 0) {
            memcpy(ends, tried, n_groups * sizeof *ends);
            memset(keeps, kept ? 1 : 0, n_groups * sizeof *keeps);
            *out = (struct wrapping){.n_groups = n_groups, .ends = ends, .keeps = keeps, .value_us = s->best_us};
        }
        if (want >= n) {
            kept = 0;
            i++;
        }
    }
    return ST_OK;
}

/* ---- the whole ---- */

static void clear_fronts(struct search *s) {
    for (uint32_t i = 0; i < s->chain->n; i++)
        s->fronts[i].n = 0;
}

/* Follow the labels back from the last group to the first. */
static enum status write_ends(const struct search *s, struct arena *arena, struct wrapping *out, struct error *err) {
    uint32_t *ends = arena_alloc(arena, s->chain->n, sizeof *ends), n = 1;
    bool *keeps = arena_alloc(arena, s->chain->n, sizeof *keeps);
    if (!ends || !keeps)
        return error_no_memory(err);
    for (const struct label *at = &s->best; at->begin > 0; at = &s->fronts[at->begin].labels[at->before])
        n++;
    uint32_t g = n, end = s->chain->n;
    for (const struct label *at = &s->best; g-- > 0; at = end > 0 ? &s->fronts[end].labels[at->before] : NULL) {
        ends[g] = end;
        keeps[g] = at->keeps;
        end = at->begin;
    }
    out->n_groups = n;
    out->ends = ends;
    out->keeps = keeps;
    return ST_OK;
}

/* One run that keeps `most` labels at a unit. What it finds is written, where it is better than what was known. */
static enum status run(struct search *s, size_t most, struct arena *arena, struct wrapping *out, struct error *err) {
    const double known_us = s->best_us;
    const bool known = s->found;
    s->most = most;
    s->dropped_us = INFINITY;
    clear_fronts(s);
    for (uint32_t begin = 0; begin < s->chain->n && !s->no_memory; begin++)
        extend_all(s, begin);
    if (s->no_memory)
        return error_no_memory(err);
    if (!s->found || (known && s->best_us >= known_us))
        return ST_OK;
    out->value_us = s->best_us;
    return write_ends(s, arena, out, err);
}

static enum status open(struct search *s, struct arena *arena, struct error *err) {
    const uint32_t n = s->chain->n;
    s->forward_us = arena_alloc(arena, n + 1, sizeof *s->forward_us);
    s->backward_us = arena_alloc(arena, n + 1, sizeof *s->backward_us);
    s->bytes = arena_alloc(arena, n + 1, sizeof *s->bytes);
    s->kept = arena_alloc(arena, n + 1, sizeof *s->kept);
    s->pieces = arena_alloc(arena, n + 1, sizeof *s->pieces);
    s->needs = arena_alloc(arena, n + 1, sizeof *s->needs);
    s->needs_rest = arena_alloc(arena, n + 2, sizeof *s->needs_rest);
    s->fronts = calloc(n, sizeof *s->fronts);
    if (!s->forward_us || !s->backward_us || !s->bytes || !s->kept || !s->pieces || !s->needs || !s->needs_rest ||
        !s->fronts)
        return error_no_memory(err);
    for (uint32_t i = 0; i < n; i++) {
        const struct wrapping_unit *unit = &s->chain->units[i];
        s->forward_us[i + 1] = s->forward_us[i] + unit->forward_us;
        s->backward_us[i + 1] = s->backward_us[i] + unit->backward_us;
        s->bytes[i + 1] = s->bytes[i] + unit->bytes;
        s->kept[i + 1] = s->kept[i] + unit->kept;
        s->pieces[i + 1] = s->pieces[i] + unit->n_pieces;
    }
    for (uint32_t i = n; i-- > 0;) {
        const struct wrapping_unit *unit = &s->chain->units[i];
        uint64_t own = s->cost->own_bytes(s->cost->context, unit->bytes, unit->n_pieces) + s->kept[i + 1];
        if (i + 1 < n)
            own += s->cost->summed_bytes(s->cost->context, unit[1].bytes, unit[1].n_pieces);
        s->needs[i] = own;
        own += i > 0 ? unit[-1].bytes : 0;
        s->needs_rest[i] = own > s->needs_rest[i + 1] ? own : s->needs_rest[i + 1];
    }
    return ST_OK;
}

static void close(struct search *s) {
    for (uint32_t i = 0; i < s->chain->n && s->fronts; i++)
        free(s->fronts[i].labels);
    free(s->fronts);
}

/* Whether no label that was dropped could have become a better cut. */
static bool is_proved(const struct search *s) {
    return s->found && s->dropped_us >= s->best_us * PROOF;
}

/* One label at a unit, at prices from what it takes to gather a byte again down to nothing; the price whose cut was
 * best stays. Without a budget memory has none. */
static enum status find_price(struct search *s, struct arena *arena, struct wrapping *out, struct error *err) {
    const double whole_us = s->chain->budget != UINT64_MAX ? s->cost->gather_floor.per_byte_us : 0;
    const double parts[] = {1, 0.5, 0.25, 0};
    double best_price_us = whole_us;
    for (size_t i = whole_us > 0 ? 0 : 3; i < sizeof parts / sizeof *parts && !is_proved(s); i++) {
        const double known_us = s->best_us;
        s->price_us = parts[i] * whole_us;
        const enum status st = run(s, 1, arena, out, err);
        if (st)
            return st;
        if (s->best_us < known_us)
            best_price_us = s->price_us;
    }
    s->price_us = best_price_us;
    return ST_OK;
}

/* Each round keeps more labels, and fewer are kept the better the cut that the round before has found. */
enum status wrapping_best(const struct wrapping_chain *chain, const struct wrapping_cost *cost, uint32_t labels,
                          struct arena *arena, struct wrapping *out, struct error *err) {
    struct search s = {.chain = chain, .cost = cost, .dropped_us = -INFINITY};
    struct wrapping best = {0};
    const uint64_t least = wrapping_least_peak(chain, cost);
    if (least > chain->budget)
        return error_set(err, ST_INFEASIBLE, "the smallest peak is %llu bytes, with every layer in a group of its own",
                         (unsigned long long)least);
    enum status st = open(&s, arena, err);
    if (!st)
        st = try_equal_cuts(&s, arena, &best, err);
    if (!st)
        st = find_price(&s, arena, &best, err);
    const uint32_t few = labels < WRAPPING_FEW_LABELS ? labels : WRAPPING_FEW_LABELS;
    if (!st && labels > 1 && !is_proved(&s))
        st = run(&s, few, arena, &best, err);
    if (!st && labels > few && !is_proved(&s))
        st = run(&s, labels, arena, &best, err);
    if (!st) {
        best.least_us = fmin(best.value_us * PROOF, s.dropped_us);
        best.peak = wrapping_peak(chain, cost, best.n_groups, best.ends, best.keeps);
        *out = best;
    }
    close(&s);
    return st;
}

/* ---- one cut ---- */

struct span {
    uint64_t bytes;
    uint32_t pieces;
};

static struct span span_of(const struct wrapping_chain *chain, uint32_t begin, uint32_t end) {
    struct span span = {0, 0};
    for (uint32_t i = begin; i < end; i++) {
        span.bytes += chain->units[i].bytes;
        span.pieces += chain->units[i].n_pieces;
    }
    return span;
}

uint64_t wrapping_peak(const struct wrapping_chain *chain, const struct wrapping_cost *cost, uint32_t n_groups,
                       const uint32_t *ends, const bool *keeps) {
    uint64_t most = 0, kept = 0, held = 0, ahead = 0;
    for (uint32_t g = 0, i = 0; g < n_groups; g++) {
        const struct span own = span_of(chain, g ? ends[g - 1] : 0, ends[g]);
        uint64_t peak = cost->own_bytes(cost->context, own.bytes, own.pieces) + ahead + held;
        if (g + 1 < n_groups) {
            const struct span after = span_of(chain, ends[g], ends[g + 1]);
            peak += cost->summed_bytes(cost->context, after.bytes, after.pieces);
        }
        for (; i < ends[g]; i++)
            kept += chain->units[i].kept;
        most = peak + kept > most ? peak + kept : most;
        ahead = keeps[g] ? 0 : own.bytes;
        held += keeps[g] ? own.bytes : 0;
    }
    return most;
}

uint64_t wrapping_least_peak(const struct wrapping_chain *chain, const struct wrapping_cost *cost) {
    uint64_t most = 0, kept = 0;
    for (uint32_t i = 0; i < chain->n; i++) {
        const struct wrapping_unit *unit = &chain->units[i];
        kept += unit->kept;
        uint64_t peak = cost->own_bytes(cost->context, unit->bytes, unit->n_pieces) + kept + (i ? unit[-1].bytes : 0);
        if (i + 1 < chain->n)
            peak += cost->summed_bytes(cost->context, unit[1].bytes, unit[1].n_pieces);
        most = peak > most ? peak : most;
    }
    return most;
}
