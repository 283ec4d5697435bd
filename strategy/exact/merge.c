/* Merging; see strategy/exact/merge.h.
 *
 * Prefixes. T(j) is the least end of the first j gradients, P(j) their bytes, and
 *     T(j) = min over i < j of max(T(i), ready(j)) + cost(i+1..j).
 * An earlier end is never a loss later on, so the best cut of a prefix is all that the rest needs to know of it. T
 * never falls: a cut of j + 1 gradients without its last gradient is one of j that ends no later.
 *
 * By lines. ready and T never fall, so the i with T(i) <= ready(j) are a prefix that only grows with j. Among them the
 * network waits for the gradient, and the last i, with the fewest bytes to send, is best. Among the others the gradient
 * waits for the network. With a line of slope b the term is then T(i) - b P(i) plus what depends on j alone. Both ends
 * of the window of these i only move right, so a monotone queue for each line keeps the least value. Where gathering
 * costs, a group of one gradient is looked at by itself and all others have the steeper line.
 *
 * By any cost. For each j, i goes down from j - 1. Once the network waits for the gradient, or the cost alone is too
 * much, smaller i are worse. With work after the groups (after_us), the least end is not yet the least value. But the
 * same program decides whether some cut keeps every end + after below a limit: it then uses only groups that stay below
 * the limit, and an earlier end is again never a loss. So bisection finds the least limit, between a lower bound of all
 * cuts and the best value reached. */
#include "strategy/exact/merge.h"

#include <math.h>

/* After so many steps of the bisection in a row whose limit no cut meets, the limit becomes the best value reached. If
 * no cut is below that either, this value is the least. */
enum { HALVINGS = 2 };

/* fmax and fmin without their care for NaN, which costs a call each. */
static double larger(double a, double b) {
    return a > b ? a : b;
}

static double smaller(double a, double b) {
    return a < b ? a : b;
}

static enum status new_ends(uint32_t n, struct arena *arena, uint32_t **ends, struct error *err) {
    *ends = arena_alloc(arena, n, sizeof **ends);
    return *ends ? ST_OK : error_no_memory(err);
}

/* Algorithm 1 works out the start of every communication anew after each merge. What a merge changes lies behind the
 * gradient it looks at, so one running start, that of the gradient itself, gives the same decisions in one pass. */
enum status merge_greedy(uint32_t n, const struct gradient *gradients, const struct cost_line *line,
                         struct arena *arena, struct merge *out, struct error *err) {
    uint32_t *ends, n_groups = 0;
    enum status st = new_ends(n, arena, &ends, err);
    if (st)
        return st;
    double start = n ? gradients[0].ready_us : 0;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i + 1 < n; i++) {
        const struct gradient *next = &gradients[i + 1];
        bytes += gradients[i].bytes;
        if (next->dtype != gradients[i].dtype || next->ready_us - start >= line->startup_us) {
            start += line->startup_us + line->per_byte_us * (double)bytes;
            bytes = 0;
            ends[n_groups++] = i + 1;
        }
        start = larger(start, next->ready_us);
    }
    if (n)
        ends[n_groups++] = n;
    *out = (struct merge){n_groups, ends};
    return ST_OK;
}

double merge_lines_us(const void *context, uint64_t bytes, uint32_t n) {
    const struct merge_lines *lines = context;
    double least = INFINITY;
    for (uint32_t i = 0; i < lines->n; i++)
        least = smaller(least, lines->lines[i].startup_us + lines->lines[i].per_byte_us * (double)bytes);
    return least + (n > 1 ? lines->gather_per_byte_us * (double)bytes : 0);
}

double merge_end_us(const struct merge *merge, const struct gradient *gradients, const struct merge_cost *cost) {
    double end = 0, value = 0;
    for (uint32_t g = 0, i = 0; g < merge->n_groups; g++) {
        uint32_t first = i;
        uint64_t bytes = 0;
        for (; i < merge->ends[g]; i++)
            bytes += gradients[i].bytes;
        end = larger(end, gradients[i - 1].ready_us) + cost->group_us(cost->context, bytes, i - first);
        value = larger(value, end + (cost->after_us ? cost->after_us(cost->context, bytes, i - first) : 0));
    }
    return value;
}

/* ---- both programs ---- */

/* The first j gradients. */
struct prefix {
    double end;     /* T */
    uint64_t bytes; /* P */
    uint32_t from;  /* where the last group of their best cut begins */
};

struct program {
    uint32_t n;
    const struct gradient *gradients;
    struct prefix *at; /* n + 1 */
};

static enum status program_init(struct program *p, uint32_t n, const struct gradient *gradients, struct arena *arena,
                                struct error *err) {
    *p = (struct program){n, gradients, arena_alloc(arena, (size_t)n + 1, sizeof *p->at)};
    if (!p->at)
        return error_no_memory(err);
    for (uint32_t i = 0; i < n; i++)
        p->at[i + 1].bytes = p->at[i].bytes + gradients[i].bytes;
    return ST_OK;
}

/* Walk back from the last group, then write the ends forwards. */
static enum status program_read(const struct program *p, struct arena *arena, struct merge *out, struct error *err) {
    uint32_t n_groups = 0, *ends;
    for (uint32_t j = p->n; j > 0; j = p->at[j].from)
        n_groups++;
    enum status st = new_ends(n_groups, arena, &ends, err);
    if (st)
        return st;
    for (uint32_t j = p->n, g = n_groups; j > 0; j = p->at[j].from)
        ends[--g] = j;
    *out = (struct merge){n_groups, ends};
    return ST_OK;
}

/* ---- by lines ---- */

/* Those i at which the gradient waits for the network, rising, and with them T(i) - b P(i). */
struct window {
    uint32_t *items;
    uint32_t first, last; /* items[first..last) */
    double per_byte;      /* of the line, with gathering */
};

static double height(const struct program *p, const struct window *w, uint32_t i) {
    return p->at[i].end - w->per_byte * (double)p->at[i].bytes;
}

static void window_add(const struct program *p, struct window *w, uint32_t i) {
    double h = height(p, w, i);
    while (w->last > w->first && height(p, w, w->items[w->last - 1]) >= h)
        w->last--;
    w->items[w->last++] = i;
}

static uint32_t window_best(struct window *w, uint32_t from, uint32_t otherwise) {
    while (w->first < w->last && w->items[w->first] < from)
        w->first++;
    return w->first < w->last ? w->items[w->first] : otherwise;
}

static void consider(struct program *p, const struct merge_lines *lines, uint32_t i, uint32_t j) {
    double end = larger(p->at[i].end, p->gradients[j - 1].ready_us) +
                 merge_lines_us(lines, p->at[j].bytes - p->at[i].bytes, j - i);
    if (end < p->at[j].end) {
        p->at[j].end = end;
        p->at[j].from = i;
    }
}

static void run_lines(struct program *p, const struct merge_lines *lines, struct window *windows) {
    uint32_t run = 0, idle = 0; /* where j's dtype begins; the last i with T(i) <= ready(j) */
    for (uint32_t j = 1; j <= p->n; j++) {
        if (j > 1 && p->gradients[j - 1].dtype != p->gradients[j - 2].dtype)
            run = j - 1;
        while (idle + 1 < j && p->at[idle + 1].end <= p->gradients[j - 1].ready_us)
            idle++;
        p->at[j].end = INFINITY;
        consider(p, lines, j - 1, j);
        if (idle >= run)
            consider(p, lines, idle, j);
        for (uint32_t k = 0; k < lines->n; k++) {
            window_add(p, &windows[k], j - 1);
            consider(p, lines, window_best(&windows[k], idle < run ? run : idle + 1, j - 1), j);
        }
    }
}

enum status merge_by_lines(uint32_t n, const struct gradient *gradients, const struct merge_lines *lines,
                           struct arena *arena, struct merge *out, struct error *err) {
    struct window windows[MERGE_MAX_LINES];
    struct program p;
    enum status st = program_init(&p, n, gradients, arena, err);
    for (uint32_t k = 0; k < lines->n && !st; k++) {
        double per_byte = lines->lines[k].per_byte_us + lines->gather_per_byte_us;
        windows[k] = (struct window){.items = arena_alloc(arena, n, sizeof(uint32_t)), .per_byte = per_byte};
        if (!windows[k].items)
            st = error_no_memory(err);
    }
    if (st)
        return st;
    run_lines(&p, lines, windows);
    return program_read(&p, arena, out, err);
}

/* ---- by any cost ---- */

static double after_us(const struct merge_cost *cost, uint64_t bytes, uint32_t n) {
    return cost->after_us ? cost->after_us(cost->context, bytes, n) : 0;
}

/* Find the best group that ends with gradient j - 1 and keeps end + after below `limit`: the one that ends first; for
 * the last gradient the one with the least end + after. Returns that end (or end + after); INFINITY if there is no
 * group. */
static double best_group(struct program *p, const struct merge_cost *cost, uint32_t run, uint32_t j, double limit) {
    double ready = p->gradients[j - 1].ready_us, best = INFINITY;
    for (uint32_t i = j; i-- > run;) {
        uint64_t bytes = p->at[j].bytes - p->at[i].bytes;
        double group = cost->group_us(cost->context, bytes, j - i), end = larger(p->at[i].end, ready) + group;
        double usable = end + after_us(cost, bytes, j - i), key = j == p->n ? usable : end;
        if (key < best && usable < limit) {
            best = key;
            p->at[j].end = end;
            p->at[j].from = i;
        }
        const double floor = cost->floor_us ? cost->floor_us(cost->context, bytes, j - i) : group;
        if ((p->at[i].end <= ready && !cost->floor_us) || ready + floor >= best)
            break;
    }
    return best;
}

/* Cut within the limit. *last gets end + after of the last group; no other cut within the limit has less. False if
 * there is no cut. */
static bool run_cost(struct program *p, const struct merge_cost *cost, double limit, double *last) {
    uint32_t run = 0;
    *last = 0;
    for (uint32_t j = 1; j <= p->n; j++) {
        if (j > 1 && p->gradients[j - 1].dtype != p->gradients[j - 2].dtype)
            run = j - 1;
        *last = best_group(p, cost, run, j, limit);
        if (!isfinite(*last))
            return false;
    }
    return true;
}

enum status merge_by_cost(uint32_t n, const struct gradient *gradients, const struct merge_cost *cost,
                          struct arena *arena, struct merge *out, struct error *err) {
    struct program p;
    struct merge best = {0, NULL};
    enum status st = program_init(&p, n, gradients, arena, err);
    double value = INFINITY, least = 0, limit = INFINITY, last = 0; /* the optimum is in [least, value] */
    int failed = 0;
    while (!st && least < value) {
        if (run_cost(&p, cost, limit, &last)) {
            st = program_read(&p, arena, &best, err);
            value = st ? value : merge_end_us(&best, gradients, cost);
            least = larger(least, last);
            failed = 0;
        } else {
            least = limit;
            failed++;
        }
        limit = failed < HALVINGS ? least + (value - least) / 2 : value;
    }
    if (!st)
        *out = best;
    return st;
}
