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
 * best value known, or the value that is looked for. A first cut comes from groups of equal bytes.
 *
 * Labels of one i are sorted by what they promise: the bound and, within a budget, a price of the memory they hold.
 * Where there are too many, the last one is dropped, and the least bound of those that are dropped limits the proof.
 * Without a budget, rounds with few labels look for values ever farther from that of computing alone, since few labels
 * lie below a near one. Within a budget, rounds with one label try ways to rank labels. */
#include "strategy/exact/wrapping.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

static const double PROOF = 1 - 1e-9;

/* fmax asks for NaNs, and is a call. */
static double larger(double a, double b) {
    return a > b ? a : b;
}

static double smaller(double a, double b) {
    return a < b ? a : b;
}

struct label {
    double e, r, p, y, z, c;
    double least_us; /* no cut that begins so is faster */
    double promise_us;
    uint64_t ahead, held, slack; /* bytes gathered again for the last group; kept by all; left for the next one */
    uint32_t begin, before;      /* where the last group begins, and the label there that it was added to */
    uint8_t keeps;               /* the last group */
};

struct front {
    struct label *labels; /* the most promising first */
    size_t n;
};

/* What the units from one on take together, and at least: their gathers and their sums, in as few groups as can be.
 * Their first group needs no less than the first of them alone: to be there once its gather begins, and for its sum. */
struct rest {
    double forward, backward, gathers, sums, first_there, first_sum;
    int64_t again; /* bytes that are gathered again, less all that was not kept before */
};

/* By what labels are ranked. */
struct rank {
    double price_us; /* what a byte that is kept counts */
    double next;     /* 0 to 1: how much what the next group adds at least counts */
};

struct search {
    const struct wrapping_chain *chain;
    const struct wrapping_cost *cost;
    double *forward_us, *backward_us; /* by unit: those before it */
    uint64_t *bytes, *kept;
    uint64_t *needs;      /* by unit: what it needs, were it and the next one alone */
    uint64_t *needs_rest; /* by unit: the most that it or a later one needs so, with the unit before it */
    uint32_t *pieces;
    struct rest *rests;   /* by unit */
    struct front *fronts; /* by unit */
    struct label *labels; /* malloc'd: of all fronts */
    size_t room;
    size_t most;                /* labels at a unit */
    double best_us, dropped_us; /* dropped_us: nothing that begins as a label that was dropped is faster */
    double limit_us;            /* cuts that are no faster are not looked for */
    double least_us;            /* no cut is faster: the best that a run has shown */
    struct rank rank;           /* of this run */
    struct label best;          /* of all units */
};

/* What a group costs. */
struct group_us {
    double gather, unpack, again, sum, forward, backward;
    uint64_t bytes, own, summed;
};

static struct group_us group_of(const struct search *s, uint32_t begin, uint32_t end) {
    const struct wrapping_cost *cost = s->cost;
    const bool limited = s->chain->budget != UINT64_MAX;
    const uint64_t bytes = s->bytes[end] - s->bytes[begin];
    const uint32_t pieces = s->pieces[end] - s->pieces[begin];
    return (struct group_us){
        .gather = cost->gather_us(cost->context, bytes, 0),
        .unpack = cost->unpack_us(cost->context, bytes, pieces),
        .again = limited && cost->parts ? cost->gather_us(cost->context, bytes, cost->parts) : 0,
        .sum = cost->sum_us(cost->context, bytes, pieces),
        .forward = s->forward_us[end] - s->forward_us[begin],
        .backward = s->backward_us[end] - s->backward_us[begin],
        .bytes = bytes,
        .own = limited ? cost->own_bytes(cost->context, bytes, pieces) : 0,
        .summed = limited ? cost->summed_bytes(cost->context, bytes, pieces) : 0,
    };
}

/* ---- one group more ---- */

/* The backward pass of what was there before needs p and b. */
static struct label label_of(const struct group_us *g, uint8_t keeps, double e, double r, double p, double b) {
    const double again = keeps == WRAPPING_KEEPS_PARTS ? g->again : g->gather;
    const double gather = keeps == WRAPPING_KEEPS ? 0 : again, unpack = keeps == WRAPPING_KEEPS ? 0 : g->unpack;
    return (struct label){.e = e,
                          .r = r,
                          .p = p,
                          .y = gather + p,
                          .z = gather + unpack + g->backward + b,
                          .c = g->backward + b,
                          .keeps = keeps};
}

static struct label first_label(const struct search *s, const struct group_us *g, uint8_t keeps) {
    const double head = s->chain->head_us;
    const double ends = larger(g->sum, s->chain->tail_us);
    return label_of(g, keeps, larger(head, g->gather + g->unpack) + g->forward, larger(g->gather, head), ends, ends);
}

static struct label next_label(const struct label *from, const struct group_us *g, uint8_t keeps) {
    const double gathered = from->r + g->gather;
    return label_of(g, keeps, larger(from->e, gathered + g->unpack) + g->forward, larger(gathered, from->e),
                    larger(from->z, from->y + g->sum), larger(from->c, from->p + g->sum));
}

/* Whether the units from `end` on can follow, were they all alone: each needs its own, beside what is kept and the unit
 * before it, which is kept or gathered ahead. */
static bool can_go_on(const struct search *s, const struct label *label, uint32_t end) {
    const uint64_t budget = s->chain->budget;
    return end == s->chain->n ||
           (label->held + label->ahead + s->needs[end] <= budget && label->held + s->needs_rest[end + 1] <= budget);
}

/* Whether the budget holds a group that is added to `from`, while it computes and while it is summed. If not, it holds
 * no longer group either. */
static bool has_room(const struct search *s, const struct label *from, const struct group_us *g, uint32_t end) {
    return s->chain->budget == UINT64_MAX ||
           (g->own + from->ahead + from->held + s->kept[end] <= s->chain->budget && g->summed <= from->slack);
}

static uint64_t held_of(const struct wrapping_cost *cost, uint8_t keeps, uint64_t bytes) {
    return keeps == WRAPPING_KEEPS ? bytes : keeps == WRAPPING_KEEPS_PARTS ? bytes / cost->parts : 0;
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
    label->ahead = label->keeps == WRAPPING_KEEPS ? 0 : g->bytes;
    label->held = held + held_of(s->cost, label->keeps, g->bytes);
    label->slack = needs <= budget ? budget - needs : 0;
    return needs <= budget && can_go_on(s, label, end) && (!from || g->summed <= from->slack);
}

/* Of a label of the whole chain. */
static double whole_us(const struct label *label) {
    return label->e + larger(label->y, label->z);
}

/* Of groups with so many bytes together, as few as the budget allows. */
static double floor_us(const struct search *s, const struct cost_line *floor, uint64_t bytes) {
    const double most = (double)s->chain->budget / 2;
    return floor->startup_us * larger(ceil((double)bytes / most), 1) + floor->per_byte_us * (double)bytes;
}

/* Of the units from `end` on, at least: nothing where fewer devices may gather, which may cost next to nothing. */
static double again_us(const struct search *s, const struct label *label, uint32_t end) {
    const int64_t bytes = s->rests[end].again + (int64_t)label->held;
    return bytes > 0 && !s->cost->parts
               ? s->cost->gather_floor.startup_us + s->cost->gather_floor.per_byte_us * (double)bytes
               : 0;
}

/* Note what the label promises before unit `end`. The units from there on compute and sum, and some are gathered again,
 * before the backward pass comes to the last group of the label; and the first of them stands in the next group. A
 * bound alone would favour labels that have spent the memory early, on keeping. A label that is no better than another
 * promises no more. */
static void judge(const struct search *s, uint32_t end, struct label *label) {
    const struct rest *rest = &s->rests[end];
    const double forward = larger(label->e + rest->forward, label->r + rest->gathers);
    const double backward = larger(label->c + rest->backward, again_us(s, label, end) + rest->sums + label->y);
    label->least_us = larger(forward, label->r + rest->first_there + rest->forward) +
                      larger(backward, label->p + rest->first_sum + rest->backward);
    label->promise_us = s->rank.next * label->least_us + (1 - s->rank.next) * (forward + backward) +
                        s->rank.price_us * (double)label->held;
}

/* ---- fronts ---- */

/* Bits in place of branches: which comparison decides is hard to predict. */
static bool is_no_better(const struct search *s, const struct label *a, const struct label *than) {
    if ((a->e < than->e) | (a->r < than->r) | (a->p < than->p) | (a->c < than->c))
        return false;
    return s->chain->budget == UINT64_MAX || !((a->y < than->y) | (a->z < than->z) | (a->ahead < than->ahead) |
                                               (a->held < than->held) | (a->slack > than->slack));
}

/* Drop the labels from `at` on that are no better, and make room for one there: for the last one, if it is full. */
static void make_room(struct search *s, struct front *front, size_t at, const struct label *than) {
    size_t n = at;
    while (n < front->n && !is_no_better(s, &front->labels[n], than))
        n++;
    for (size_t i = n; i < front->n; i++)
        if (!is_no_better(s, &front->labels[i], than))
            front->labels[n++] = front->labels[i];
    if (n == s->most)
        s->dropped_us = smaller(s->dropped_us, front->labels[--n].least_us);
    memmove(&front->labels[at + 1], &front->labels[at], (n - at) * sizeof *front->labels);
    front->n = n + 1;
}

static void keep(struct search *s, uint32_t end, const struct label *label) {
    struct front *front = &s->fronts[end];
    const bool drop = front->n == s->most && front->labels[front->n - 1].promise_us <= label->promise_us;
    if (drop && label->least_us >= s->dropped_us)
        return;
    size_t at = 0;
    for (; at < front->n && front->labels[at].promise_us <= label->promise_us; at++)
        if (is_no_better(s, label, &front->labels[at]))
            return;
    if (drop) {
        s->dropped_us = label->least_us;
        return;
    }
    make_room(s, front, at, label);
    front->labels[at] = *label;
}

static bool may_be_best(const struct search *s, double us) {
    return us < s->limit_us;
}

/* Add the group of units begin .. end - 1 to a label that ends where it begins, or to nothing (NULL). */
static void extend(struct search *s, const struct label *from, uint32_t index, const struct group_us *g, uint8_t keeps,
                   uint32_t begin, uint32_t end) {
    struct label label = from ? next_label(from, g, keeps) : first_label(s, g, keeps);
    if (!fits(s, from, g, end, &label))
        return;
    label.begin = begin;
    label.before = index;
    if (end < s->chain->n) {
        judge(s, end, &label);
        if (may_be_best(s, label.least_us))
            keep(s, end, &label);
        return;
    }
    const double us = whole_us(&label);
    if (us >= s->best_us)
        return;
    s->best_us = us;
    s->best = label;
    s->limit_us = smaller(s->limit_us, us * PROOF);
}

/* Without a budget nothing speaks against keeping. */
static void extend_each(struct search *s, const struct label *from, uint32_t index, const struct group_us *g,
                        uint32_t begin, uint32_t end) {
    extend(s, from, index, g, WRAPPING_KEEPS, begin, end);
    if (s->chain->budget == UINT64_MAX)
        return;
    extend(s, from, index, g, WRAPPING_FREES, begin, end);
    if (s->cost->parts)
        extend(s, from, index, g, WRAPPING_KEEPS_PARTS, begin, end);
}

/* No cut that begins as the label (NULL: with nothing) and goes on with a group as long as g, or longer, is faster:
 * both passes compute all units from `begin` on after the group's first gather, and before its sum. */
static double least_with(const struct search *s, const struct label *from, const struct group_us *g, uint32_t begin) {
    const struct rest *rest = &s->rests[begin];
    const double gathered = g->gather + g->unpack;
    const double before = from ? larger(from->e, from->r + gathered) : larger(s->chain->head_us, gathered);
    const double after = from ? larger(from->c, from->p + g->sum) : larger(g->sum, s->chain->tail_us);
    return before + rest->forward + rest->backward + after;
}

/* As good as any of the labels in each respect. */
static struct label best_of(const struct front *front) {
    struct label best = front->labels[0];
    for (size_t i = 1; i < front->n; i++) {
        const struct label *label = &front->labels[i];
        best.e = smaller(best.e, label->e);
        best.r = smaller(best.r, label->r);
        best.p = smaller(best.p, label->p);
        best.y = smaller(best.y, label->y);
        best.z = smaller(best.z, label->z);
        best.c = smaller(best.c, label->c);
    }
    return best;
}

/* Whether no label that goes on with g can stay, since not even one that is as good as all of them could. Not asked
 * within a budget, where labels differ in so much that this is rarely so. */
static bool is_futile(const struct search *s, const struct label *best, const struct group_us *g, uint32_t end) {
    if (s->chain->budget != UINT64_MAX || end == s->chain->n)
        return false;
    const struct label label = next_label(best, g, WRAPPING_KEEPS);
    const struct front *front = &s->fronts[end];
    for (size_t i = 0; i < front->n; i++)
        if (is_no_better(s, &label, &front->labels[i]))
            return true;
    return false;
}

static void extend_front(struct search *s, uint32_t begin) {
    const struct front *front = &s->fronts[begin];
    if (front->n == 0)
        return;
    const struct label best = best_of(front);
    bool goes_on = true;
    for (uint32_t end = begin + 1; end <= s->chain->n && goes_on; end++) {
        const struct group_us g = group_of(s, begin, end);
        goes_on = may_be_best(s, least_with(s, &best, &g, begin));
        if (!goes_on || is_futile(s, &best, &g, end))
            continue;
        goes_on = false;
        for (size_t i = 0; i < front->n; i++) {
            const struct label *from = &front->labels[i];
            if (has_room(s, from, &g, end) && may_be_best(s, larger(from->least_us, least_with(s, from, &g, begin)))) {
                extend_each(s, from, (uint32_t)i, &g, begin, end);
                goes_on = true;
            }
        }
    }
}

/* The first group. */
static void add_first(struct search *s) {
    const uint64_t budget = s->chain->budget;
    for (uint32_t end = 1; end <= s->chain->n; end++) {
        const struct group_us g = group_of(s, 0, end);
        if (!may_be_best(s, least_with(s, NULL, &g, 0)) || (budget != UINT64_MAX && g.own > budget))
            return;
        extend_each(s, NULL, 0, &g, 0, end);
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

/* The cut, in `into`, whose groups all keep alike; *n_groups is 0 where it does not fit. */
static void try_equal(struct search *s, uint32_t want, uint8_t keeps, uint32_t *into, uint32_t *n_groups) {
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
    if (us >= s->best_us)
        return;
    s->best_us = us;
    *n_groups = n;
}

/* One group, two, and so on, more sparsely the more there are, and every unit alone. */
static enum status try_equal_cuts(struct search *s, struct arena *arena, struct wrapping *out, struct error *err) {
    const uint32_t n = s->chain->n;
    uint32_t *tried = arena_alloc(arena, n, sizeof *tried), *ends = arena_alloc(arena, n, sizeof *ends), n_groups;
    uint8_t *keeps = arena_alloc(arena, n, sizeof *keeps);
    if (!tried || !ends || !keeps)
        return error_no_memory(err);
    static const uint8_t kept[] = {WRAPPING_KEEPS, WRAPPING_FREES, WRAPPING_KEEPS_PARTS};
    const uint32_t rounds = s->chain->budget == UINT64_MAX ? 1 : s->cost->parts ? 3 : 2;
    for (uint32_t i = 0, want = 1; i < rounds; want = want < n ? want + 1 + want / 16 : 1) {
        try_equal(s, want < n ? want : n, kept[i], tried, &n_groups);
        if (n_groups > 0) {
            memcpy(ends, tried, n_groups * sizeof *ends);
            memset(keeps, kept[i], n_groups * sizeof *keeps);
            *out = (struct wrapping){.n_groups = n_groups, .ends = ends, .keeps = keeps, .value_us = s->best_us};
        }
        i += want >= n;
    }
    return ST_OK;
}

/* ---- the whole ---- */

/* Room for `most` labels at each unit. Pages that no label comes to cost nothing. */
static bool clear_fronts(struct search *s, size_t most) {
    const uint32_t n = s->chain->n;
    if (!GROW(&s->labels, &s->room, n * most))
        return false;
    s->most = most;
    for (uint32_t i = 0; i < n; i++)
        s->fronts[i] = (struct front){.labels = &s->labels[i * most]};
    return true;
}

/* Follow the labels back from the last group to the first. */
static enum status write_ends(const struct search *s, struct arena *arena, struct wrapping *out, struct error *err) {
    uint32_t *ends = arena_alloc(arena, s->chain->n, sizeof *ends), n = 1;
    uint8_t *keeps = arena_alloc(arena, s->chain->n, sizeof *keeps);
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

/* One run that keeps `most` labels at a unit and looks for cuts that are faster than limit_us. What it finds is
 * written, where it is better than what was known. */
static enum status run(struct search *s, size_t most, double limit_us, struct arena *arena, struct wrapping *out,
                       struct error *err) {
    const double known_us = s->best_us;
    s->limit_us = smaller(limit_us, known_us * PROOF);
    s->dropped_us = INFINITY;
    if (!clear_fronts(s, most))
        return error_no_memory(err);
    add_first(s);
    for (uint32_t begin = 1; begin < s->chain->n; begin++)
        extend_front(s, begin);
    s->least_us = larger(s->least_us, smaller(s->dropped_us, s->limit_us));
    if (s->best_us >= known_us)
        return ST_OK;
    out->value_us = s->best_us;
    return write_ends(s, arena, out, err);
}

/* The last unit computes backward while all that is kept is there. So what does not fit beside that is gathered
 * again: some of it before unit `begin`, the rest after. */
static int64_t least_again(const struct search *s, uint32_t begin) {
    const uint32_t n = s->chain->n;
    const uint64_t budget = s->chain->budget, last = s->needs[n - 1] - s->chain->units[n - 1].bytes;
    if (budget >= s->bytes[n] + last)
        return INT64_MIN / 2;
    return (int64_t)(s->bytes[n] - s->bytes[begin]) - (int64_t)(budget > last ? budget - last : 0);
}

static struct rest rest_of(const struct search *s, uint32_t begin) {
    const uint32_t n = s->chain->n;
    const uint64_t bytes = s->bytes[n] - s->bytes[begin];
    const struct group_us first = group_of(s, begin, begin + 1);
    return (struct rest){
        .forward = s->forward_us[n] - s->forward_us[begin],
        .backward = s->backward_us[n] - s->backward_us[begin],
        .gathers = floor_us(s, &s->cost->gather_floor, bytes) + s->chain->units[n - 1].forward_us,
        .sums = floor_us(s, &s->cost->sum_floor, bytes),
        .first_there = first.gather + first.unpack,
        .first_sum = first.sum,
        .again = least_again(s, begin),
    };
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
    s->rests = arena_alloc(arena, n + 1, sizeof *s->rests);
    s->fronts = arena_alloc(arena, n, sizeof *s->fronts);
    if (!s->forward_us || !s->backward_us || !s->bytes || !s->kept || !s->pieces || !s->needs || !s->needs_rest ||
        !s->rests || !s->fronts)
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
    for (uint32_t i = 0; i < n; i++)
        s->rests[i] = rest_of(s, i);
    return ST_OK;
}

static bool is_proved(const struct search *s) {
    return s->least_us >= s->best_us * PROOF;
}

/* Ways to rank labels. Prices: of what it takes to gather a byte again. */
static const struct rank ways[] = {{1, 1}, {1, 0.5}, {0.5, 0.5}, {1, 0}, {0.5, 0}, {0.25, 0}, {0, 0}};
enum { WAYS = sizeof ways / sizeof *ways, FEW_WAYS = 3 };

static struct rank rank_of(const struct search *s, const struct rank *way) {
    return (struct rank){way->price_us * s->cost->gather_floor.per_byte_us, way->next};
}

/* One label at a unit, ranked in some ways; the one whose cut was best stays. Where one label finds nothing, the budget
 * is tight, and what the next group adds would favour large groups, after which nothing fits. */
static enum status find_rank(struct search *s, struct arena *arena, struct wrapping *out, struct error *err) {
    struct rank best = rank_of(s, &(struct rank){1, 0});
    for (size_t i = 0; i < FEW_WAYS && !is_proved(s); i++) {
        const double known_us = s->best_us;
        s->rank = rank_of(s, &ways[i]);
        const enum status st = run(s, 1, INFINITY, arena, out, err);
        if (st)
            return st;
        if (s->best_us < known_us)
            best = s->rank;
    }
    s->rank = best;
    return ST_OK;
}

/* Without a budget labels hold no memory, and there is one way. */
static enum status run_all_ways(struct search *s, uint32_t labels, struct arena *arena, struct wrapping *out,
                                struct error *err) {
    if (s->chain->budget == UINT64_MAX)
        return run(s, labels, INFINITY, arena, out, err);
    enum status st = ST_OK;
    for (size_t i = 0; i < WAYS && !st && !is_proved(s); i++) {
        s->rank = rank_of(s, &ways[i]);
        st = run(s, labels, INFINITY, arena, out, err);
    }
    return st;
}

/* Without a budget the best cut is often hardly slower than computing alone. A run that looks only for such cuts has
 * few labels. So the first run looks for cuts very near that bound, and the next for ones that are farther from it. */
static enum status find_near(struct search *s, uint32_t few, struct arena *arena, struct wrapping *out,
                             struct error *err) {
    const struct group_us first = group_of(s, 0, 1);
    const double least_us = least_with(s, NULL, &first, 0), known_us = s->best_us;
    enum status st = ST_OK;
    for (int part = 16; part > 1 && !is_proved(s) && s->best_us == known_us && !st; part /= 4)
        st = run(s, few, least_us + (known_us - least_us) / part, arena, out, err);
    return st;
}

/* Each round keeps more labels, and fewer are kept the better the cut that the round before has found. */
static enum status search(struct search *s, uint32_t labels, struct arena *arena, struct wrapping *out,
                          struct error *err) {
    const uint32_t few = labels < WRAPPING_FEW_LABELS ? labels : WRAPPING_FEW_LABELS;
    enum status st = try_equal_cuts(s, arena, out, err);
    if (!st)
        st = s->chain->budget == UINT64_MAX ? find_near(s, few, arena, out, err) : find_rank(s, arena, out, err);
    if (!st && !is_proved(s))
        st = run(s, few, INFINITY, arena, out, err);
    if (!st && labels > few && !is_proved(s))
        st = run_all_ways(s, labels, arena, out, err);
    return st;
}

enum status wrapping_best(const struct wrapping_chain *chain, const struct wrapping_cost *cost, uint32_t labels,
                          struct arena *arena, struct wrapping *out, struct error *err) {
    struct search s = {.chain = chain, .cost = cost, .best_us = INFINITY, .rank = {.next = 1}};
    struct wrapping best = {0};
    const uint64_t least = wrapping_least_peak(chain, cost);
    if (least > chain->budget)
        return error_set(err, ST_INFEASIBLE, "the smallest peak is %llu bytes, with every layer in a group of its own",
                         (unsigned long long)least);
    enum status st = open(&s, arena, err);
    if (!st)
        st = search(&s, labels, arena, &best, err);
    if (!st) {
        best.least_us = smaller(best.value_us * PROOF, s.least_us);
        best.peak = wrapping_peak(chain, cost, best.n_groups, best.ends, best.keeps);
        *out = best;
    }
    free(s.labels);
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
                       const uint32_t *ends, const uint8_t *keeps) {
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
        ahead = keeps[g] == WRAPPING_KEEPS ? 0 : own.bytes;
        held += held_of(cost, keeps[g], own.bytes);
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
