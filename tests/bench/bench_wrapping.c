/* How fast the best wrapping of sharded parameters is found: chains of layers that are alike or differ, with and
 * without a budget of memory, by few labels and by many. Medians on one core; the gap is what the cut can at most be
 * better. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/rng.h"
#include "strategy/exact/wrapping.h"
#include "tests/bench/bench.h"

enum { MOST = 400, CHAINS = 9 };

/* Half of a ring on 16 nodes of 10 Gbit/s. */
static const struct cost_line line = {200, 0.75e-3};

static double message_us(const void *context, uint64_t bytes, uint32_t n_pieces) {
    (void)context, (void)n_pieces;
    return line.startup_us + line.per_byte_us * (double)bytes;
}

static double copy_us(const void *context, uint64_t bytes, uint32_t n_pieces) {
    (void)context;
    return n_pieces > 1 ? 1e-5 * (double)bytes : 0;
}

static double sum_us(const void *context, uint64_t bytes, uint32_t n_pieces) {
    return message_us(context, bytes, n_pieces) + copy_us(context, bytes, n_pieces);
}

static uint64_t own_bytes(const void *context, uint64_t bytes, uint32_t n_pieces) {
    (void)context;
    return (n_pieces > 1 ? 3 : 2) * bytes;
}

static uint64_t summed_bytes(const void *context, uint64_t bytes, uint32_t n_pieces) {
    (void)context, (void)n_pieces;
    return bytes;
}

static void fill(struct rng *rng, uint32_t n, double spread, struct wrapping_unit *units) {
    for (uint32_t i = 0; i < n; i++)
        units[i] =
            (struct wrapping_unit){1000 * rng_log_between(rng, 1, spread), 2000 * rng_log_between(rng, 1, spread),
                                   (uint64_t)(1e6 * rng_log_between(rng, 1, spread)), 0, 2};
}

static void bench(uint32_t n, double spread, double budget, uint32_t labels) {
    double times[CHAINS], gaps[CHAINS];
    for (int i = 0; i < CHAINS; i++) {
        struct rng rng;
        struct wrapping_unit units[MOST];
        struct arena arena = {0};
        struct wrapping w;
        struct error err;
        rng_seed(&rng, (uint64_t)i + 1);
        fill(&rng, n, spread, units);
        struct wrapping_chain chain = {.n = n, .units = units, .budget = UINT64_MAX};
        const struct wrapping_cost cost = {.gather_us = message_us,
                                           .unpack_us = copy_us,
                                           .sum_us = sum_us,
                                           .own_bytes = own_bytes,
                                           .summed_bytes = summed_bytes,
                                           .gather_floor = line,
                                           .sum_floor = line};
        if (budget > 0)
            chain.budget = (uint64_t)(budget * (double)wrapping_least_peak(&chain, &cost));
        const double start = clock_now_us();
        bench_check(wrapping_best(&chain, &cost, labels, &arena, &w, &err), &err);
        times[i] = clock_now_us() - start;
        gaps[i] = 100 * (w.value_us / w.least_us - 1);
        arena_release(&arena);
    }
    printf("wrapping %4u layers, spread %4.1f, budget %s, %4u labels: %10.1f us, gap %.3f%%\n", n, spread,
           budget > 0 ? "twice the least" : "none           ", labels, bench_median(CHAINS, times),
           bench_median(CHAINS, gaps));
}

int main(void) {
    for (int k = 0; k < 2; k++)
        for (int b = 0; b < 2; b++) {
            bench(32, k ? 3 : 1.001, b ? 2 : 0, 1024);
            bench(100, k ? 3 : 1.001, b ? 2 : 0, WRAPPING_FEW_LABELS);
            bench(MOST, k ? 3 : 1.001, b ? 2 : 0, WRAPPING_FEW_LABELS);
        }
    return 0;
}
