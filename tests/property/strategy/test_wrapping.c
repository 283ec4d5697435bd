/* The best wrapping against brute force over all cuts, each valued by the recurrences of the header as they stand
 * there, with and without a budget; and longer chains against a search that drops nothing but what is no better. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "strategy/exact/wrapping.h"
#include "tests/support/check.h"
#include "tests/support/strategy/kept.h"

enum { SMALL = 8, SMALL_CHAINS = 1500, LARGE = 100, LARGE_CHAINS = 40, SLOW_CHAINS = 200, SLOW_LABELS = 192 };

struct chain {
    struct wrapping_chain chain;
    struct wrapping_unit units[LARGE];
    struct cost_line gather, sum;
    double copy_per_byte_us;
    uint64_t packed;   /* of 8: how much of what is packed lies beside it */
    uint32_t parts;    /* devices that keep parts and gather them again; 0: none */
    double parts_cost; /* beside a gather among all */
};

static bool chance(struct rng *rng, double p) {
    return rng_uniform(rng) < p;
}

static double message_us(const struct cost_line *line, uint64_t bytes) {
    return line->startup_us + line->per_byte_us * (double)bytes;
}

static double copy_us(const void *context, uint64_t bytes, uint32_t n_pieces) {
    const struct chain *c = context;
    return n_pieces > 1 ? c->copy_per_byte_us * (double)bytes : 0;
}

/* A node's devices gather what they keep parts of faster than all do, or not. */
static double gather_us(const void *context, uint64_t bytes, uint32_t parts) {
    const struct chain *c = context;
    return (parts ? c->parts_cost : 1) * message_us(&c->gather, bytes);
}

static double sum_us(const void *context, uint64_t bytes, uint32_t n_pieces) {
    return message_us(&((const struct chain *)context)->sum, bytes) + copy_us(context, bytes, n_pieces);
}

static uint64_t own_bytes(const void *context, uint64_t bytes, uint32_t n_pieces) {
    return 2 * bytes + (n_pieces > 1 ? ((const struct chain *)context)->packed * bytes / 8 : 0);
}

static uint64_t summed_bytes(const void *context, uint64_t bytes, uint32_t n_pieces) {
    (void)n_pieces;
    return bytes + ((const struct chain *)context)->packed * bytes / 32;
}

static struct wrapping_cost cost_of(const struct chain *c) {
    return (struct wrapping_cost){gather_us, copy_us, sum_us, own_bytes, summed_bytes, c->parts, c, c->gather, c->sum};
}

/* Computing and traffic are of one order; layers are alike in some chains and differ by far in others. */
static void random_chain(struct rng *rng, uint32_t n, struct chain *out) {
    const double spread = chance(rng, 0.3) ? 1 : rng_log_between(rng, 1, 100), us = rng_log_between(rng, 10, 1e4);
    const double bytes = rng_log_between(rng, 1e3, 1e7), copies = rng_log_between(rng, 0.01, 1);
    const struct cost_line line = {chance(rng, 0.1) ? 0 : us * rng_log_between(rng, 0.01, 3),
                                   chance(rng, 0.05) ? 0 : us / bytes * rng_log_between(rng, 0.05, 5)};
    *out = (struct chain){.gather = line, .sum = line};
    if (chance(rng, 0.5))
        out->sum.startup_us *= 2;
    if (chance(rng, 0.3)) {
        out->parts = 2 + (uint32_t)rng_below(rng, 7);
        out->parts_cost = rng_log_between(rng, 0.05, 1.5);
    }
    out->packed = rng_below(rng, 9);
    if (chance(rng, 0.5))
        out->copy_per_byte_us = copies * line.per_byte_us;
    for (uint32_t i = 0; i < n; i++)
        out->units[i] = (struct wrapping_unit){
            us * rng_log_between(rng, 1, spread + 1e-9), 2 * us * rng_log_between(rng, 1, spread + 1e-9),
            (uint64_t)(bytes * rng_log_between(rng, 1, spread + 1e-9)) + 1,
            chance(rng, 0.5) ? (uint64_t)(bytes * rng_uniform(rng)) : 0, 1 + (uint32_t)rng_below(rng, 2)};
    out->chain = (struct wrapping_chain){.n = n,
                                         .units = out->units,
                                         .head_us = chance(rng, 0.3) ? us : 0,
                                         .tail_us = chance(rng, 0.3) ? us : 0,
                                         .budget = UINT64_MAX};
}

struct run_of_units {
    double f, b, a, u, s;
    double again; /* among a node's devices */
    uint64_t bytes, part, kept, own, summed;
    uint8_t keeps;
};

static void list_groups(const struct chain *c, uint32_t n_groups, const uint32_t *ends, const uint8_t *keeps,
                        struct run_of_units *groups) {
    for (uint32_t g = 0, i = 0; g < n_groups; g++) {
        uint32_t pieces = 0;
        groups[g] = (struct run_of_units){.kept = g ? groups[g - 1].kept : 0, .keeps = keeps[g]};
        for (; i < ends[g]; i++) {
            groups[g].f += c->units[i].forward_us;
            groups[g].b += c->units[i].backward_us;
            groups[g].bytes += c->units[i].bytes;
            groups[g].kept += c->units[i].kept;
            pieces += c->units[i].n_pieces;
        }
        groups[g].own = own_bytes(c, groups[g].bytes, pieces);
        groups[g].summed = summed_bytes(c, groups[g].bytes, pieces);
        groups[g].again = c->parts ? gather_us(c, groups[g].bytes, c->parts) : NAN;
        groups[g].part = c->parts ? groups[g].bytes / c->parts : 0;
        groups[g].a = gather_us(c, groups[g].bytes, 0);
        groups[g].u = copy_us(c, groups[g].bytes, pieces);
        groups[g].s = sum_us(c, groups[g].bytes, pieces);
    }
}

static double again_us(const struct run_of_units *g) {
    return g->keeps == WRAPPING_KEEPS ? 0 : g->keeps == WRAPPING_KEEPS_PARTS ? g->again : g->a;
}

static double unpack_again_us(const struct run_of_units *g) {
    return g->keeps == WRAPPING_KEEPS ? 0 : g->u;
}

/* The header's recurrences. */
static double plain_value_us(const struct chain *c, uint32_t n, const struct run_of_units *g) {
    double k = 0, e = c->chain.head_us, e_before = 0;
    for (uint32_t j = 0; j < n; j++) {
        k = fmax(k, j ? e_before : 0) + g[j].a;
        e_before = e;
        e = fmax(e, k + g[j].u) + g[j].f;
    }
    const struct run_of_units *first = &g[n - 1];
    double p = again_us(first), b = again_us(first) + unpack_again_us(first) + first->b;
    for (uint32_t j = 1; j < n; j++) {
        const struct run_of_units *next = &g[n - 1 - j], *done = &g[n - j];
        const double gathered = p + again_us(next), b_before = b;
        b = fmax(b, gathered + unpack_again_us(next)) + next->b;
        p = fmax(gathered, b_before) + done->s;
    }
    return e + fmax(p, b) + fmax(g[0].s, c->chain.tail_us);
}

/* What lives while each group computes backward. */
static uint64_t plain_peak(uint32_t n, const struct run_of_units *g) {
    uint64_t most = 0;
    for (uint32_t j = 0; j < n; j++) {
        uint64_t lives = g[j].own + g[j].kept + (j + 1 < n ? g[j + 1].summed : 0);
        for (uint32_t i = 0; i < j; i++) {
            lives += g[i].keeps == WRAPPING_KEEPS || i + 1 == j ? g[i].bytes : 0;
            lives += g[i].keeps == WRAPPING_KEEPS_PARTS ? g[i].part : 0;
        }
        most = lives > most ? lives : most;
    }
    return most;
}

/* The best of all 2 * 3^(n-1) wrappings, or 3 * 4^(n-1) with parts; INFINITY when none fits. */
static double brute_force_us(const struct chain *c) {
    const uint32_t n = c->chain.n;
    double best = INFINITY;
    for (uint32_t cuts = 0; cuts < 1U << (n - 1); cuts++) {
        uint32_t ends[SMALL], k = 0;
        for (uint32_t i = 1; i <= n; i++)
            if (i == n || cuts >> (i - 1) & 1)
                ends[k++] = i;
        uint8_t keeps[SMALL] = {0};
        do {
            struct run_of_units groups[SMALL];
            list_groups(c, k, ends, keeps, groups);
            if (plain_peak(k, groups) <= c->chain.budget)
                best = fmin(best, plain_value_us(c, k, groups));
        } while (kept_next(k, c->parts ? 3 : 2, keeps));
    }
    return best;
}

static void check_cut(const struct chain *c, const struct wrapping *w) {
    struct run_of_units groups[LARGE];
    for (uint32_t g = 1; g < w->n_groups; g++)
        assert_true(w->ends[g] > w->ends[g - 1]);
    assert_int_equal(w->ends[w->n_groups - 1], c->chain.n);
    list_groups(c, w->n_groups, w->ends, w->keeps, groups);
    assert_close(w->value_us, plain_value_us(c, w->n_groups, groups), 1e-12);
    assert_int_equal(w->peak, plain_peak(w->n_groups, groups));
    assert_true(w->peak <= c->chain.budget);
}

/* With one or two labels the cut may be worse, but what is said of the best holds. */
static void check_few_labels(const struct chain *c, const struct wrapping_cost *cost, double best_us) {
    for (uint32_t labels = 1; labels < 3; labels++) {
        struct arena arena = {0};
        struct wrapping w;
        struct error err;
        assert_ok(wrapping_best(&c->chain, cost, labels, &arena, &w, &err));
        check_cut(c, &w);
        assert_true(w.value_us >= best_us * (1 - 1e-9) && w.least_us <= best_us * (1 + 1e-9));
        arena_release(&arena);
    }
}

static void as_brute_force(void **state) {
    (void)state;
    uint64_t seed = test_seed();
    uint32_t with_budget = 0, infeasible = 0;
    for (uint32_t i = 0; i < SMALL_CHAINS; i++) {
        struct rng rng;
        struct chain c;
        struct arena arena = {0};
        struct wrapping w;
        struct error err;
        rng_seed(&rng, seed * 1000003 + i);
        random_chain(&rng, 1 + (uint32_t)rng_below(&rng, SMALL), &c);
        const struct wrapping_cost cost = cost_of(&c);
        const uint64_t least = wrapping_least_peak(&c.chain, &cost);
        if (chance(&rng, 0.6)) {
            c.chain.budget = (uint64_t)((double)least * (0.95 + rng_uniform(&rng)));
            with_budget++;
        }
        const double best = brute_force_us(&c);
        const enum status st = wrapping_best(&c.chain, &cost, WRAPPING_LABELS, &arena, &w, &err);
        assert_true(isfinite(best) == (st == ST_OK));
        assert_true(st == ST_OK || (st == ST_INFEASIBLE && least > c.chain.budget));
        infeasible += st != ST_OK;
        if (!st) {
            check_cut(&c, &w);
            assert_close(w.value_us, best, 1e-9);
            assert_close(w.least_us, best, 2e-9);
            check_few_labels(&c, &cost, best);
        }
        arena_release(&arena);
    }
    print_message("%d chains of up to %d layers, %u with a budget, %u where nothing fits\n", SMALL_CHAINS, SMALL,
                  with_budget, infeasible);
}

/* Longer chains: no single change makes the cut better than it can be at most. */
static void no_single_change_is_better_than_the_bound(void **state) {
    (void)state;
    uint64_t seed = test_seed();
    double worst = 0;
    for (uint32_t i = 0; i < LARGE_CHAINS; i++) {
        struct rng rng;
        struct chain c;
        struct arena arena = {0};
        struct wrapping w;
        struct error err;
        rng_seed(&rng, seed * 1000003 + i);
        random_chain(&rng, LARGE, &c);
        const struct wrapping_cost cost = cost_of(&c);
        assert_ok(wrapping_best(&c.chain, &cost, 64, &arena, &w, &err));
        check_cut(&c, &w);
        assert_true(w.least_us <= w.value_us);
        worst = fmax(worst, w.value_us / w.least_us - 1);
        for (uint32_t at = 1; at < LARGE; at++) { /* end a group at `at`, or let it go on */
            struct run_of_units groups[LARGE];
            uint32_t ends[LARGE + 1], n = 0;
            bool was = false;
            uint8_t keeps[LARGE + 1];
            memset(keeps, 1, sizeof keeps); /* there is no budget */
            for (uint32_t g = 0; g < w.n_groups; g++)
                was |= w.ends[g] == at;
            for (uint32_t g = 0; g < w.n_groups; g++) {
                if (!was && (g ? w.ends[g - 1] : 0) < at && at < w.ends[g])
                    ends[n++] = at;
                if (w.ends[g] != at)
                    ends[n++] = w.ends[g];
            }
            list_groups(&c, n, ends, keeps, groups);
            assert_true(plain_value_us(&c, n, groups) >= w.least_us * (1 - 1e-9));
        }
        arena_release(&arena);
    }
    print_message("%d chains of %d layers: at most %.2f%% from the best\n", LARGE_CHAINS, LARGE, 100 * worst);
}

/* ---- a search without bounds ---- */

/* What a cut of the first units costs what follows, each the worse the larger it is. */
enum { E, R, P, Y, Z, C, AHEAD, HELD, LEFT, KEYS }; /* LEFT: how much of the budget is used while the last computes */

struct partial {
    double key[KEYS];
};

struct partials {
    struct partial *items; /* malloc'd: SLOW_LABELS */
    uint32_t n;
};

/* Units begin to end - 1. */
static struct run_of_units group_of(const struct chain *c, uint32_t begin, uint32_t end) {
    const uint32_t ends[] = {begin, end};
    const uint8_t keeps[2] = {0};
    struct run_of_units groups[2];
    list_groups(c, 2, ends, keeps, groups);
    return groups[1];
}

static struct partial go_on(const double *k, const struct run_of_units *group, uint8_t keeps) {
    struct run_of_units of = *group, *g = &of;
    of.keeps = keeps;
    const double a = again_us(g), u = unpack_again_us(g), p = fmax(k[Z], k[Y] + g->s);
    const double c = g->b + fmax(k[C], k[P] + g->s);
    const uint64_t held = keeps == WRAPPING_KEEPS ? g->bytes : keeps == WRAPPING_KEEPS_PARTS ? g->part : 0;
    return (struct partial){{fmax(k[E], k[R] + g->a + g->u) + g->f, fmax(k[R] + g->a, k[E]), p, a + p, a + u + c, c,
                             keeps == WRAPPING_KEEPS ? 0 : (double)g->bytes, k[HELD] + (double)held,
                             (double)(g->own + g->kept) + k[AHEAD] + k[HELD]}};
}

static bool is_no_better(const struct partial *a, const struct partial *than) {
    for (int k = 0; k < KEYS; k++)
        if (a->key[k] < than->key[k])
            return false;
    return true;
}

/* False: there are too many. */
static bool add(struct partials *front, const struct partial *next) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < front->n; i++)
        if (is_no_better(next, &front->items[i]))
            return true;
    for (uint32_t i = 0; i < front->n; i++)
        if (!is_no_better(&front->items[i], next))
            front->items[n++] = front->items[i];
    front->n = n;
    if (n < SLOW_LABELS)
        front->items[front->n++] = *next;
    return n < SLOW_LABELS;
}

static bool add_groups(const struct chain *c, struct partials *fronts, uint32_t begin, uint32_t end) {
    const double budget = c->chain.budget == UINT64_MAX ? INFINITY : (double)c->chain.budget;
    const struct run_of_units g = group_of(c, begin, end);
    const uint32_t ways = c->parts ? 3 : 2;
    for (uint32_t i = 0; i < ways * fronts[begin].n; i++) {
        const struct partial *from = &fronts[begin].items[i / ways];
        const struct partial next = go_on(from->key, &g, (uint8_t)(i % ways));
        if (next.key[LEFT] > budget || from->key[LEFT] + (begin ? (double)g.summed : 0) > budget)
            continue;
        if (!add(&fronts[end], &next))
            return false;
    }
    return true;
}

/* The best value; NAN where it takes too many labels. */
static double slow_us(const struct chain *c) {
    const uint32_t n = c->chain.n;
    struct partials fronts[LARGE + 1] = {0};
    bool goes = true;
    double best = NAN;
    for (uint32_t i = 0; i <= n; i++)
        assert_non_null(fronts[i].items = malloc(SLOW_LABELS * sizeof *fronts[i].items));
    fronts[0].items[fronts[0].n++] =
        (struct partial){.key = {[E] = c->chain.head_us, [Z] = c->chain.tail_us, [C] = c->chain.tail_us}};
    for (uint32_t begin = 0; begin < n && goes; begin++)
        for (uint32_t end = begin + 1; end <= n && goes; end++)
            goes = add_groups(c, fronts, begin, end);
    for (uint32_t i = 0; i < fronts[n].n && goes; i++)
        best = fmin(best, fronts[n].items[i].key[E] + fmax(fronts[n].items[i].key[Y], fronts[n].items[i].key[Z]));
    for (uint32_t i = 0; i <= n; i++)
        free(fronts[i].items);
    return best;
}

/* What few labels find lies between their bound and the best, and is the best where they prove it. */
static void as_a_search_without_bounds(void **state) {
    (void)state;
    uint64_t seed = test_seed();
    uint32_t compared = 0, proved = 0;
    for (uint32_t i = 0; i < SLOW_CHAINS; i++) {
        struct rng rng;
        struct chain c;
        struct arena arena = {0};
        struct wrapping w;
        struct error err;
        rng_seed(&rng, seed * 1000003 + i);
        random_chain(&rng, i % 2 ? 8 + (uint32_t)rng_below(&rng, 9) : 40 + (uint32_t)rng_below(&rng, 61), &c);
        const struct wrapping_cost cost = cost_of(&c);
        if (i % 2)
            c.chain.budget = (uint64_t)((double)wrapping_least_peak(&c.chain, &cost) * (1 + rng_uniform(&rng)));
        assert_ok(wrapping_best(&c.chain, &cost, WRAPPING_FEW_LABELS, &arena, &w, &err));
        check_cut(&c, &w);
        const double best = slow_us(&c);
        if (!isnan(best)) {
            compared++;
            assert_true(w.least_us <= best * (1 + 1e-12) && best <= w.value_us * (1 + 1e-12));
            proved += w.least_us >= w.value_us * (1 - 2e-9);
        }
        arena_release(&arena);
    }
    print_message("%d chains of 8 to 16 layers with a budget or 40 to 100 without: %u compared, %u of them proved\n",
                  SLOW_CHAINS, compared, proved);
    assert_true(compared > SLOW_CHAINS / 4 && proved > compared / 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_brute_force),
        cmocka_unit_test(no_single_change_is_better_than_the_bound),
        cmocka_unit_test(as_a_search_without_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
