/* MLfabric's scheduler as §7.4 times it: batches of |U| updates with random deadlines from 1 to 2 |U|, on |U| / 2
 * nodes, with a core that is never full. The paper takes 30, 440 and 1460 ms for 100, 500 and 1000. Rates are those of
 * its N2 (§7); medians over batches, with updates of one size and of random ones. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/rng.h"
#include "strategy/updates/aggregate.h"
#include "strategy/updates/order.h"
#include "tests/bench/bench.h"

enum { MOST = 2000, BATCHES = 15 };

struct batch {
    double rates[MOST + 2];
    struct update updates[MOST];
    uint32_t aggregators[MOST / 2];
};

struct room {
    uint32_t list[MOST], group[MOST];
    double end_us[MOST], arrival_us[MOST], sum_us[MOST], applied_us[MOST];
    bool dropped[MOST];
};

/* Node 0 is the server, node 1 + i has workers. */
static void random_batch(struct rng *rng, uint32_t n, bool equal, struct batch *b) {
    static const double gbit[] = {2.5, 3.3, 5, 10}, share[] = {0.1, 0.1, 0.1, 0.7};
    for (uint32_t p = 0; p < n + 2; p++)
        b->rates[p] = p < 2 ? 1250 : gbit[rng_weighted(rng, 4, share)] * 125;
    for (uint32_t i = 0; i < n; i++)
        b->updates[i] = (struct update){.node = 1 + i / 2,
                                        .bytes = equal ? 1e8 : rng_between(rng, 5e7, 1.5e8),
                                        .deadline = 1 + (uint32_t)rng_below(rng, 2 * n)};
    for (uint32_t i = 0; i < n / 2; i++)
        b->aggregators[i] = 1 + i;
    rng_shuffle(rng, n / 2, b->aggregators);
}

/* Times of the order, and of order and groups. */
static void schedule(struct batch *b, uint32_t n, uint32_t k, enum update_order_rule rule, double *order_us,
                     double *all_us) {
    static struct room room;
    static const uint32_t server = 0;
    static const double share = 1;
    struct update_servers servers = {1, &server, &share};
    struct calendar ordering, grouping;
    struct error err;
    struct update_order order = {.order = room.list, .end_us = room.end_us, .dropped = room.dropped};
    struct aggregation groups = {
        .group = room.group, .arrival_us = room.arrival_us, .sum_us = room.sum_us, .applied_us = room.applied_us};
    double start = clock_now_us();
    bench_check(calendar_init(&ordering, 1 + n / 2, b->rates, 0, &err), &err);
    bench_check(order_updates(&ordering, &servers, n, b->updates, rule, &order, &err), &err);
    *order_us = clock_now_us() - start;
    bench_check(calendar_init(&grouping, 1 + n / 2, b->rates, 0, &err), &err);
    bench_check(
        aggregate_updates(&grouping, server, order.n, order.order, b->updates, k, b->aggregators, &groups, &err), &err);
    *all_us = clock_now_us() - start;
    calendar_release(&ordering);
    calendar_release(&grouping);
}

static void time_batches(uint32_t n, bool equal, enum update_order_rule rule, uint32_t k) {
    static struct batch b;
    double order_us[BATCHES], all_us[BATCHES];
    struct rng rng;
    rng_seed(&rng, n);
    for (int i = 0; i < BATCHES; i++) {
        random_batch(&rng, n, equal, &b);
        schedule(&b, n, k, rule, &order_us[i], &all_us[i]);
    }
    printf("  %5u updates %s, %s, %3u aggregators: order %8.3f ms, with groups %8.3f ms\n", n,
           equal ? "of one size" : "of many    ", rule == UPDATE_ORDER_slots ? "slots   " : "mlfabric", k,
           bench_median(BATCHES, order_us) / 1e3, bench_median(BATCHES, all_us) / 1e3);
}

int main(void) {
    static const uint32_t sizes[] = {100, 500, 1000, 2000};
    printf("scheduler (MLfabric §7.4; the paper: 30, 440 and 1460 ms for 100, 500 and 1000 updates)\n");
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int equal = 1; equal >= 0; equal--) {
            time_batches(sizes[s], equal, UPDATE_ORDER_mlfabric, 4);
            time_batches(sizes[s], equal, UPDATE_ORDER_mlfabric, sizes[s] / 2);
            time_batches(sizes[s], equal, UPDATE_ORDER_slots, 4);
        }
    return 0;
}
