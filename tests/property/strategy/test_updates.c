/* MLfabric's scheduler: the calendar, order and aggregation against a plain reading of the algorithms
 * (plain_updates.h), deadlines that are never violated, also not by turns that overtake others, and how far the rules
 * are from the best order and the best groups, by trying all and by glpsol. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/statistics.h"
#include "strategy/updates/aggregate.h"
#include "strategy/updates/calendar.h"
#include "strategy/updates/order.h"
#include "strategy/updates/replicate.h"
#include "strategy/updates/turns.h"
#include "tests/property/strategy/plain_updates.h"
#include "tests/support/check.h"

enum { NODES = 12, BATCHES = 10000, READINGS = 3000, SMALL = 6, SMALL_BATCHES = 400, PROGRAMS = 40 };

struct batch {
    uint32_t n_nodes, n, server, k;
    double rates[2 * NODES], now_us;
    struct update updates[PLAIN_UPDATES];
    uint32_t aggregators[NODES];
    uint32_t servers[NODES];
    double shares[NODES];
};

static bool chance(struct rng *rng, double p) {
    return rng_uniform(rng) < p;
}

/* Equal rates and sizes in some batches, so that ends are often equal; slow ports in others. */
static void random_batch(struct rng *rng, uint32_t most, struct batch *b) {
    bool equal_rates = chance(rng, 0.3), equal_bytes = chance(rng, 0.5), deadlines = chance(rng, 0.8);
    b->n_nodes = 2 + (uint32_t)rng_below(rng, NODES - 1);
    b->n = 1 + (uint32_t)rng_below(rng, most);
    b->server = (uint32_t)rng_below(rng, b->n_nodes);
    b->now_us = chance(rng, 0.5) ? 0 : rng_between(rng, 0, 1e6);
    for (uint32_t p = 0; p < 2 * b->n_nodes; p++)
        b->rates[p] = equal_rates ? 1250 : chance(rng, 0.2) ? 125 : rng_log_between(rng, 100, 2000);
    for (uint32_t i = 0; i < b->n; i++)
        b->updates[i] = (struct update){
            .node = (uint32_t)rng_below(rng, b->n_nodes),
            .bytes = equal_bytes ? 1e8 : rng_log_between(rng, 1e5, 1e8),
            .available_us = chance(rng, 0.8) ? 0 : b->now_us + rng_between(rng, 0, 1e5),
            .deadline = deadlines && chance(rng, 0.8) ? (uint32_t)rng_below(rng, 2 * b->n + 1) : UPDATE_ANY_PLACE};
    b->k = 0;
    for (uint32_t i = 0; i < b->n_nodes; i++)
        if (i != b->server && chance(rng, 0.5))
            b->aggregators[b->k++] = i;
}

static struct update_servers one_server(struct batch *b) {
    b->servers[0] = b->server;
    b->shares[0] = 1;
    return (struct update_servers){1, b->servers, b->shares};
}

static struct update_servers some_servers(struct rng *rng, struct batch *b) {
    uint32_t n = 1 + (uint32_t)rng_below(rng, b->n_nodes);
    double sum = 0;
    for (uint32_t s = 0; s < n; s++) {
        b->servers[s] = s;
        b->shares[s] = rng_between(rng, 0.1, 1);
        sum += b->shares[s];
    }
    for (uint32_t s = 0; s < n; s++)
        b->shares[s] /= sum;
    return (struct update_servers){n, b->servers, b->shares};
}

struct ordered {
    struct update_order order;
    uint32_t list[PLAIN_UPDATES];
    double end_us[PLAIN_UPDATES];
    bool dropped[PLAIN_UPDATES];
};

static void run_order(const struct batch *b, const struct update_servers *servers, enum update_order_rule rule,
                      struct calendar *calendar, struct ordered *out) {
    struct error err;
    assert_ok(calendar_init(calendar, b->n_nodes, b->rates, b->now_us, &err));
    out->order = (struct update_order){.order = out->list, .end_us = out->end_us, .dropped = out->dropped};
    assert_ok(order_updates(calendar, servers, b->n, b->updates, rule, &out->order, &err));
}

/* ---- the calendar ---- */

static void calendar_reserves_what_is_free_and_takes_it_back(void **state) {
    static struct plain_network net;
    struct rng rng;
    struct batch b;
    (void)state;
    rng_split(&rng, test_seed(), 1);
    for (int i = 0; i < READINGS; i++) {
        struct calendar calendar;
        struct error err;
        random_batch(&rng, 40, &b);
        plain_start(&net, b.rates, b.now_us);
        assert_ok(calendar_init(&calendar, b.n_nodes, b.rates, b.now_us, &err));
        for (uint32_t u = 0; u < b.n; u++) {
            const struct update *x = &b.updates[u];
            uint32_t to = (uint32_t)rng_below(&rng, b.n_nodes), other = (uint32_t)rng_below(&rng, b.n_nodes);
            double want = plain_transfer(&net, x->node, to, x->bytes, x->available_us, false);
            size_t mark = calendar_mark(&calendar);
            calendar_reserve(&calendar, other, to, 1e6, 0);
            calendar_reserve(&calendar, x->node, other, 1e6, 0);
            calendar_back_to(&calendar, mark);
            assert_close(calendar_end_us(&calendar, x->node, to, x->bytes, x->available_us), want, 1e-9);
            assert_close(calendar_reserve(&calendar, x->node, to, x->bytes, x->available_us), want, 1e-9);
            plain_transfer(&net, x->node, to, x->bytes, x->available_us, true);
        }
        calendar_release(&calendar);
    }
}

/* Figure 4b: 30 MB over what other transfers leave free ends at 7. */
static void end_is_that_of_a_transfer_through_what_others_leave(void **state) {
    const double rates[] = {10e6, 1e12, 1e12, 10e6};
    struct calendar c;
    struct error err;
    (void)state;
    assert_ok(calendar_init(&c, 2, rates, 0, &err));
    assert_close(calendar_reserve(&c, 0, 1, 20e6, 0), 2, 1e-12);
    assert_close(calendar_reserve(&c, 0, 1, 20e6, 4), 6, 1e-12);
    assert_close(calendar_end_us(&c, 0, 1, 30e6, 0), 7, 1e-12);
    calendar_release(&c);
}

/* ---- order ---- */

static void order_equals_a_plain_reading_of_algorithm_2(void **state) {
    static struct plain_network net;
    struct rng rng;
    struct batch b;
    size_t dropped = 0, updates = 0;
    (void)state;
    rng_split(&rng, test_seed(), 2);
    for (int i = 0; i < READINGS; i++) {
        struct calendar calendar;
        struct ordered got;
        uint32_t want[PLAIN_UPDATES];
        double want_us[PLAIN_UPDATES];
        random_batch(&rng, i % 10 ? 12 : PLAIN_UPDATES, &b);
        struct update_servers servers = chance(&rng, 0.2) ? some_servers(&rng, &b) : one_server(&b);
        run_order(&b, &servers, UPDATE_ORDER_mlfabric, &calendar, &got);
        plain_start(&net, b.rates, b.now_us);
        uint32_t n = plain_order(&net, &servers, b.n, b.updates, want, want_us);
        assert_int_equal(got.order.n, n);
        for (uint32_t p = 0; p < n; p++) {
            if (got.list[p] != want[p])
                print_error("batch %d, place %u: %u at %.17g, plain %u at %.17g\n", i, p + 1, got.list[p],
                            got.end_us[p], want[p], want_us[p]);
            assert_int_equal(got.list[p], want[p]);
            want_us[p] = fmax(want_us[p], p > 0 ? want_us[p - 1] : 0);
            assert_close(got.end_us[p], want_us[p], 1e-9);
        }
        dropped += b.n - n;
        updates += b.n;
        calendar_release(&calendar);
    }
    printf("%zu of %zu updates dropped\n", dropped, updates);
    assert_true(dropped > updates / 50 && dropped < updates / 2);
}

static void check_order(const struct batch *b, const struct ordered *got) {
    bool seen[PLAIN_UPDATES] = {false};
    for (uint32_t p = 0; p < got->order.n; p++) {
        uint32_t i = got->list[p];
        assert_true(i < b->n && !seen[i] && !got->dropped[i]);
        seen[i] = true;
        assert_true(p + 1 <= b->updates[i].deadline);
        assert_true(p == 0 || got->end_us[p] >= got->end_us[p - 1]);
    }
    for (uint32_t i = 0; i < b->n; i++)
        assert_true(seen[i] != got->dropped[i]);
}

static void no_deadline_is_violated_in_random_batches(void **state) {
    struct rng rng;
    struct batch b;
    (void)state;
    rng_split(&rng, test_seed(), 3);
    for (int i = 0; i < BATCHES; i++) {
        random_batch(&rng, i % 20 ? 10 : PLAIN_UPDATES, &b);
        struct update_servers servers = one_server(&b);
        for (int rule = 0; rule <= UPDATE_ORDER_slots; rule++) {
            struct calendar calendar;
            struct ordered got;
            run_order(&b, &servers, (enum update_order_rule)rule, &calendar, &got);
            check_order(&b, &got);
            calendar_release(&calendar);
        }
    }
}

/* ---- how far from the best ---- */

/* The best of all orders of all subsets: as many updates as there can be, and then the least mean end. Ends are as in
 * order_updates: an update is applied when the one before it is. */
struct search {
    const struct batch *b;
    const struct update_servers *servers;
    struct calendar calendar;
    uint32_t n, best_n;
    double sum, best_sum;
    bool used[SMALL];
};

static void search_from(struct search *s, double last_us) {
    if (s->n > s->best_n || (s->n == s->best_n && s->sum < s->best_sum)) {
        s->best_n = s->n;
        s->best_sum = s->sum;
    }
    for (uint32_t i = 0; i < s->b->n; i++) {
        const struct update *u = &s->b->updates[i];
        if (s->used[i] || s->n + 1 > u->deadline)
            continue;
        size_t mark = calendar_mark(&s->calendar);
        double end_us = fmax(last_us, calendar_reserve(&s->calendar, u->node, s->b->server, u->bytes, u->available_us));
        s->used[i] = true;
        s->n++;
        s->sum += end_us;
        search_from(s, end_us);
        s->sum -= end_us;
        s->n--;
        s->used[i] = false;
        calendar_back_to(&s->calendar, mark);
    }
}

static void find_best_order(struct batch *b, struct search *s) {
    struct error err;
    struct update_servers servers = one_server(b);
    *s = (struct search){.b = b, .servers = &servers, .best_sum = INFINITY};
    assert_ok(calendar_init(&s->calendar, b->n_nodes, b->rates, b->now_us, &err));
    search_from(s, b->now_us);
    calendar_release(&s->calendar);
}

static double mean_us(const struct batch *b, uint32_t n, double sum) {
    return n > 0 ? sum / n - b->now_us : 0;
}

static double sum_of(const struct ordered *o) {
    double sum = 0;
    for (uint32_t p = 0; p < o->order.n; p++)
        sum += o->end_us[p];
    return sum;
}

struct distance {
    uint32_t batches, kept, most, equal, as_many;
    double worst, sum;
};

static void measure(const struct batch *b, const struct search *best, const struct ordered *got, struct distance *d) {
    d->batches++;
    d->kept += got->order.n;
    d->most += best->best_n;
    if (got->order.n < best->best_n || best->best_n == 0)
        return;
    double ratio = mean_us(b, got->order.n, sum_of(got)) / mean_us(b, best->best_n, best->best_sum);
    ratio = isfinite(ratio) ? ratio : 1;
    assert_true(ratio > 1 - 1e-9);
    d->as_many++;
    d->equal += ratio < 1 + 1e-9;
    d->sum += ratio;
    d->worst = fmax(d->worst, ratio);
}

/* slots never drops more than must be. Each rule's mean end, against the best where as many go, is printed. */
static void slots_drops_as_few_as_there_can_be(void **state) {
    static const char *const names[] = {"mlfabric", "slots"};
    struct distance d[2] = {{0}};
    struct rng rng;
    struct batch b;
    (void)state;
    rng_split(&rng, test_seed(), 4);
    for (int i = 0; i < SMALL_BATCHES; i++) {
        struct search best;
        random_batch(&rng, SMALL, &b);
        struct update_servers servers = one_server(&b);
        find_best_order(&b, &best);
        for (int rule = 0; rule < 2; rule++) {
            struct calendar calendar;
            struct ordered got;
            run_order(&b, &servers, (enum update_order_rule)rule, &calendar, &got);
            assert_true(got.order.n <= best.best_n);
            assert_true(rule == UPDATE_ORDER_mlfabric || got.order.n == best.best_n);
            measure(&b, &best, &got, &d[rule]);
            calendar_release(&calendar);
        }
    }
    for (int rule = 0; rule < 2; rule++)
        printf("%s: %u of %u that can go; where as many go (%u of %u batches) mean end %.3f of the best, worst %.2f, "
               "best in %u\n",
               names[rule], d[rule].kept, d[rule].most, d[rule].as_many, d[rule].batches, d[rule].sum / d[rule].as_many,
               d[rule].worst, d[rule].equal);
    assert_true(d[1].kept == d[1].most && d[0].kept < d[0].most);
}

/* Where only the server's port is narrow, an order is an assignment of updates to places: the integer program. */
static double solve_places(const struct batch *b, const uint32_t *kept, uint32_t n) {
    char path[512], command[640], line[256];
    double value = NAN;
    snprintf(path, sizeof path, "%s/places.lp", test_dir());
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "Minimize\n sum:");
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t p = 0; p < n; p++)
            fprintf(f, " + %.17g x%u_%u\n", b->updates[kept[i]].bytes / 1e6 * (n - p), i, p);
    fprintf(f, "Subject To\n");
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t p = 0; p < n; p++)
            fprintf(f, " + x%u_%u", i, p);
        fprintf(f, " = 1\n");
        for (uint32_t p = 0; p < n; p++)
            fprintf(f, " + x%u_%u", p, i);
        fprintf(f, " = 1\n");
        for (uint32_t p = 0; p < n; p++)
            if (p + 1 > b->updates[kept[i]].deadline)
                fprintf(f, " x%u_%u = 0\n", i, p);
    }
    fprintf(f, "Binary\n");
    for (uint32_t i = 0; i < n * n; i++)
        fprintf(f, " x%u_%u\n", i / n, i % n);
    fprintf(f, "End\n");
    assert_int_equal(fclose(f), 0);
    snprintf(command, sizeof command, "glpsol --lp %s -o /dev/stdout 2>&1", path);
    f = popen(command, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (!strncmp(line, "Objective:", 10))
            assert_int_equal(sscanf(line, "Objective:  sum = %lf", &value), 1);
    assert_int_equal(pclose(f), 0);
    return value * 1e6 / n / b->rates[2 * b->server + 1];
}

static void slots_is_the_optimum_of_the_integer_program_behind_one_port(void **state) {
    struct rng rng;
    struct batch b;
    (void)state;
    if (system("glpsol --version >/dev/null 2>&1") != 0) {
        print_message("# glpsol is missing; install glpk-utils\n");
        skip();
    }
    rng_split(&rng, test_seed(), 5);
    for (int i = 0; i < PROGRAMS; i++) {
        struct calendar calendar;
        struct ordered got;
        uint32_t kept[PLAIN_UPDATES], n = 0;
        random_batch(&rng, 8, &b);
        b.now_us = 0;
        for (uint32_t node = 0; node < b.n_nodes; node++)
            b.rates[2 * node] = 1e6;
        for (uint32_t u = 0; u < b.n; u++) {
            b.updates[u].node = (b.server + 1 + u % (b.n_nodes - 1)) % b.n_nodes;
            b.updates[u].available_us = 0;
        }
        struct update_servers servers = one_server(&b);
        run_order(&b, &servers, UPDATE_ORDER_slots, &calendar, &got);
        for (uint32_t u = 0; u < b.n; u++)
            if (!got.dropped[u])
                kept[n++] = u;
        if (n > 0)
            assert_close(mean_us(&b, n, sum_of(&got)), solve_places(&b, kept, n), 1e-6);
        calendar_release(&calendar);
    }
}

/* ---- aggregation ---- */

struct aggregated {
    struct aggregation all;
    uint32_t group[PLAIN_UPDATES];
    double arrival_us[PLAIN_UPDATES], sum_us[NODES], applied_us[PLAIN_UPDATES];
};

static void run_aggregation(const struct batch *b, const uint32_t *order, uint32_t n, struct calendar *calendar,
                            struct aggregated *out) {
    struct error err;
    out->all = (struct aggregation){
        .group = out->group, .arrival_us = out->arrival_us, .sum_us = out->sum_us, .applied_us = out->applied_us};
    assert_ok(calendar_init(calendar, b->n_nodes, b->rates, b->now_us, &err));
    assert_ok(aggregate_updates(calendar, b->server, n, order, b->updates, b->k, b->aggregators, &out->all, &err));
}

static void groups_equal_a_plain_reading_of_algorithm_3(void **state) {
    static struct plain_network net;
    struct rng rng;
    struct batch b;
    int aggregates = 0;
    (void)state;
    rng_split(&rng, test_seed(), 6);
    for (int i = 0; i < READINGS; i++) {
        struct calendar calendar;
        struct aggregated got;
        uint32_t order[PLAIN_UPDATES], direct, groups[PLAIN_UPDATES];
        random_batch(&rng, i % 10 ? 12 : 40, &b);
        for (uint32_t u = 0; u < b.n; u++)
            order[u] = u;
        rng_shuffle(&rng, b.n, order);
        plain_start(&net, b.rates, b.now_us);
        double want = plain_aggregate(&net, b.server, b.n, order, b.updates, b.k, b.aggregators, &direct, groups);
        run_aggregation(&b, order, b.n, &calendar, &got);
        assert_close(got.all.end_us, want, 1e-9);
        assert_int_equal(got.all.direct, direct);
        for (uint32_t u = 0; u < b.n; u++) {
            assert_int_equal(got.group[u], groups[u]);
            assert_true(got.applied_us[u] >= got.arrival_us[u] &&
                        (u == 0 || got.applied_us[u] >= got.applied_us[u - 1]));
        }
        aggregates += direct < b.n;
        calendar_release(&calendar);
    }
    printf("%d of %d batches are aggregated\n", aggregates, READINGS);
    assert_true(aggregates > READINGS / 4);
}

/* The next aggregator from g on that is in the set; b->k: none. */
static uint32_t next_aggregator(const struct batch *b, uint32_t set, uint32_t g) {
    while (g < b->k && !(set >> g & 1))
        g++;
    return g;
}

/* The end of a batch whose cuts into groups are given: bit i of `cuts` begins a group before update i, and the first
 * group goes straight to the server if `straight`. Groups use the aggregators of the set in turn. INFINITY where there
 * are more groups than those. */
static double end_of_cuts(struct calendar *c, const struct batch *b, uint32_t cuts, bool straight, uint32_t set) {
    double end_us = b->now_us, bytes = 0, ready_us = 0;
    uint32_t g = next_aggregator(b, set, 0);
    bool direct = straight;
    for (uint32_t i = 0; i <= b->n; i++) {
        const struct update *u = &b->updates[i];
        if (i == b->n || (i > 0 && cuts >> i & 1)) {
            if (!direct) {
                end_us = fmax(end_us, calendar_reserve(c, b->aggregators[g], b->server, bytes, ready_us));
                g = next_aggregator(b, set, g + 1);
            }
            direct = false;
            bytes = ready_us = 0;
        }
        if (i == b->n)
            break;
        if (direct) {
            end_us = fmax(end_us, calendar_reserve(c, u->node, b->server, u->bytes, u->available_us));
            continue;
        }
        if (g >= b->k)
            return INFINITY;
        ready_us = fmax(ready_us, calendar_reserve(c, u->node, b->aggregators[g], u->bytes, u->available_us));
        bytes = fmax(bytes, u->bytes);
    }
    return end_us;
}

/* Printed: how far algorithm 3 is from the best cut into groups that keep the order and the aggregators' turns. */
static void algorithm_3_never_beats_the_best_groups(void **state) {
    struct rng rng;
    struct batch b;
    double sum = 0, worst = 1;
    int equal = 0;
    (void)state;
    rng_split(&rng, test_seed(), 7);
    for (int i = 0; i < SMALL_BATCHES; i++) {
        struct calendar calendar;
        struct aggregated got;
        uint32_t order[PLAIN_UPDATES];
        random_batch(&rng, 8, &b);
        b.k = b.k < 4 ? b.k : 4;
        for (uint32_t u = 0; u < b.n; u++)
            order[u] = u;
        run_aggregation(&b, order, b.n, &calendar, &got);
        calendar_release(&calendar);
        struct error err;
        double best_us = INFINITY;
        assert_ok(calendar_init(&calendar, b.n_nodes, b.rates, b.now_us, &err));
        size_t mark = calendar_mark(&calendar);
        for (uint32_t cuts = 0; cuts < 1u << b.n; cuts += 2)
            for (uint32_t set = 0; set < 2u << b.k; set++) {
                best_us = fmin(best_us, end_of_cuts(&calendar, &b, cuts, set & 1, set >> 1));
                calendar_back_to(&calendar, mark);
            }
        calendar_release(&calendar);
        double ratio = best_us > b.now_us ? (got.all.end_us - b.now_us) / (best_us - b.now_us) : 1;
        assert_true(ratio > 1 - 1e-9);
        sum += ratio;
        worst = fmax(worst, ratio);
        equal += ratio < 1 + 1e-9;
    }
    printf("algorithm 3: %.3f of the best end in the mean, worst %.2f, best in %d of %d\n", sum / SMALL_BATCHES, worst,
           equal, SMALL_BATCHES);
}

/* ---- a replica ---- */

enum { WIDE = 3, AHEAD = 12 };

/* Equation 2 for vectors: what the server has done that the replica has not. */
static double apart(uint32_t n, double steps[][WIDE], const double *history, double momentum) {
    double sum = 0, step[WIDE], moved[WIDE] = {0};
    memcpy(step, history, sizeof step);
    for (uint32_t i = 0; i < n; i++)
        for (int d = 0; d < WIDE; d++) {
            step[d] = momentum * step[d] + steps[i][d];
            moved[d] += step[d];
        }
    for (int d = 0; d < WIDE; d++)
        sum += moved[d] * moved[d];
    return sqrt(sum);
}

static double norm(const double *v) {
    double sum = 0;
    for (int d = 0; d < WIDE; d++)
        sum += v[d] * v[d];
    return sqrt(sum);
}

/* Of random vectors it is an upper bound, of vectors with one direction it is exact. */
static void divergence_is_bounded_by_the_norms(void **state) {
    struct rng rng;
    (void)state;
    rng_split(&rng, test_seed(), 8);
    for (int i = 0; i < READINGS; i++) {
        bool one_way = chance(&rng, 0.3);
        double steps[AHEAD][WIDE], history[WIDE], norms[AHEAD], momentum = rng_uniform(&rng) * 0.95;
        uint32_t n = (uint32_t)rng_below(&rng, AHEAD + 1);
        for (int d = 0; d < WIDE; d++)
            history[d] = one_way ? d == 0 : rng_normal(&rng);
        for (uint32_t k = 0; k < n; k++) {
            double length = rng_uniform(&rng);
            for (int d = 0; d < WIDE; d++)
                steps[k][d] = one_way ? length * (d == 0) : rng_normal(&rng);
            norms[k] = norm(steps[k]);
        }
        double real = apart(n, steps, history, momentum), bound = replica_divergence(n, norms, norm(history), momentum);
        if (one_way)
            assert_close(real, bound, 1e-9);
        assert_true(real <= bound * (1 + 1e-9));
    }
    const double ones[AHEAD] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}; /* m updates part them by m / (1 - momentum) */
    assert_close(replica_divergence(AHEAD, ones, 1 / (1 - 0.9), 0.9), AHEAD / (1 - 0.9), 1e-9);
    assert_close(replica_step(1 / (1 - 0.9), 1, 0.9), 1 / (1 - 0.9), 1e-12);
}

/* What is sent is a prefix that keeps the bound; early it is all that is there by the end of the batch. */
static void copies_keep_the_replica_within_its_bound(void **state) {
    struct rng rng;
    struct batch b;
    (void)state;
    rng_split(&rng, test_seed(), 9);
    for (int i = 0; i < READINGS; i++) {
        struct calendar calendar;
        struct aggregated room;
        struct error err;
        uint32_t order[PLAIN_UPDATES];
        double norms[PLAIN_UPDATES], momentum = rng_uniform(&rng) * 0.9, step = rng_uniform(&rng) * 5;
        bool when_due = chance(&rng, 0.5);
        random_batch(&rng, 20, &b);
        for (uint32_t u = 0; u < b.n; u++) {
            order[u] = u;
            norms[u] = rng_between(&rng, 0.5, 1.5);
        }
        double bound = rng_log_between(&rng, 1, 100) / (1 - momentum),
               last_us = b.now_us + rng_log_between(&rng, 1e3, 1e6);
        struct replication r = {.aggregation = {.group = room.group,
                                                .arrival_us = room.arrival_us,
                                                .sum_us = room.sum_us,
                                                .applied_us = room.applied_us}};
        assert_ok(calendar_init(&calendar, b.n_nodes, b.rates, b.now_us, &err));
        assert_ok(replicate_updates(&calendar, b.server, b.n, order, b.updates, norms, step, momentum, bound, when_due,
                                    last_us, b.k, b.aggregators, &r, &err));
        calendar_release(&calendar);
        for (uint32_t u = 0; u < r.sent; u++)
            step = replica_step(step, norms[u], momentum);
        assert_true(r.sent <= b.n);
        assert_true(replica_divergence(b.n - r.sent, norms + r.sent, step, momentum) <= bound);
        assert_true(when_due || r.sent == b.n || room.applied_us[r.sent] > last_us);
        assert_true(!when_due || r.sent == 0 || r.sent == b.n);
        assert_true(r.sent == 0 || r.sent == b.n || room.applied_us[r.sent] > room.applied_us[r.sent - 1]);
    }
}

/* ---- turns ---- */

enum { TURNS = 12, STEPS = 200 };

/* Turns to server 0 and what was there before each of them: what deadlines promise. */
struct queue {
    struct turn list[TURNS];
    uint32_t n;
    uint64_t version;
    double rates[2 * NODES];
};

static void random_rates(struct rng *rng, struct queue *q) {
    for (uint32_t p = 0; p < 2 * NODES; p++)
        q->rates[p] = chance(rng, 0.4) ? 100 : rng_log_between(rng, 100, 1000);
}

/* It may be added after all that stand there, and after some more. */
static void add_turn(struct rng *rng, struct queue *q) {
    const bool ready = chance(rng, 0.5);
    struct turn turn = {.node = (uint32_t)rng_below(rng, NODES),
                        .n = ready ? 1 : 1 + (uint32_t)rng_below(rng, 4),
                        .ready = ready,
                        .last = q->version + rng_below(rng, 4)};
    for (uint32_t i = 0; i < q->n; i++)
        turn.last += q->list[i].n;
    if (chance(rng, 0.2))
        turn.last = TURN_ANY_VERSION;
    q->list[q->n++] = turn;
}

/* The rule as it is said: one that is overtaken has, in the worst case, all others before it that are in front of it,
 * that have set out, or that would set out now. */
static bool plain_may_go(const struct queue *q, uint32_t t) {
    double taken = 0;
    for (uint32_t i = 0; i < q->n; i++)
        taken += q->list[i].goes && q->list[i].node != 0 ? q->rates[2 * q->list[i].node + DIRECTION_OUT] : 0;
    if (!q->list[t].ready || q->list[t].goes || (q->list[t].node != 0 && taken >= q->rates[DIRECTION_IN]))
        return false;
    for (uint32_t g = 0; g < t; g++) {
        uint64_t at = q->version;
        for (uint32_t i = 0; i < q->n; i++)
            at += i != g && (i < g || i == t || q->list[i].goes) ? q->list[i].n : 0;
        if (at > q->list[g].last)
            return false;
    }
    return true;
}

static uint32_t plain_next(const struct queue *q) {
    uint32_t t = 0;
    while (t < q->n && !plain_may_go(q, t))
        t++;
    return t;
}

static void set_out(struct queue *q) {
    for (uint32_t t; (t = turns_next(q->n, q->list, 0, q->version, q->rates)) < q->n;) {
        assert_int_equal(t, plain_next(q));
        q->list[t].goes = true;
    }
    assert_int_equal(plain_next(q), q->n);
}

/* Any that is on its way comes, and is in time. False: none is. */
static bool one_comes(struct rng *rng, struct queue *q) {
    uint32_t on_way[TURNS], n = 0;
    for (uint32_t i = 0; i < q->n; i++)
        if (q->list[i].goes)
            on_way[n++] = i;
    if (n == 0)
        return false;
    const uint32_t t = on_way[rng_below(rng, n)];
    assert_true(q->version <= q->list[t].last);
    q->version += q->list[t].n;
    memmove(q->list + t, q->list + t + 1, (--q->n - t) * sizeof *q->list);
    return true;
}

static void turns_overtake_each_other_and_none_is_late(void **state) {
    struct rng rng;
    (void)state;
    rng_split(&rng, test_seed(), 9);
    size_t overtaken = 0;
    for (int i = 0; i < READINGS; i++) {
        struct queue q = {.version = rng_below(&rng, 10)};
        for (int step = 0; step < STEPS; step++) {
            if (q.n < TURNS && chance(&rng, 0.6))
                add_turn(&rng, &q);
            for (uint32_t k = 0; k < q.n; k++)
                q.list[k].ready = q.list[k].ready || chance(&rng, 0.2);
            random_rates(&rng, &q);
            set_out(&q);
            overtaken += q.n > 1 && !q.list[0].goes && q.list[1].goes;
            one_comes(&rng, &q);
        }
        for (uint32_t k = 0; k < q.n; k++)
            q.list[k].ready = true;
        for (set_out(&q); q.n > 0; set_out(&q))
            assert_true(one_comes(&rng, &q)); /* nothing waits for ever */
    }
    assert_true(overtaken > READINGS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calendar_reserves_what_is_free_and_takes_it_back),
        cmocka_unit_test(end_is_that_of_a_transfer_through_what_others_leave),
        cmocka_unit_test(order_equals_a_plain_reading_of_algorithm_2),
        cmocka_unit_test(no_deadline_is_violated_in_random_batches),
        cmocka_unit_test(slots_drops_as_few_as_there_can_be),
        cmocka_unit_test(slots_is_the_optimum_of_the_integer_program_behind_one_port),
        cmocka_unit_test(groups_equal_a_plain_reading_of_algorithm_3),
        cmocka_unit_test(algorithm_3_never_beats_the_best_groups),
        cmocka_unit_test(divergence_is_bounded_by_the_norms),
        cmocka_unit_test(copies_keep_the_replica_within_its_bound),
        cmocka_unit_test(turns_overtake_each_other_and_none_is_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
