/* How fast merging is: the exact cut of DenseNet-201's 604 variables and of chains of up to 100,000, by the linear and
 * the quadratic program, beside the greedy rule. Medians on one core. argv[1] is a model in the folder of the examples.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "strategy/exact/merge.h"
#include "tests/bench/bench.h"

enum { REPEATS = 101 };

/* MG-WFBP's cluster 1, and the same with gathering at 10 GB/s. */
static const struct cost_line line = {972, 1.97e-3};
static const struct merge_lines lines = {1, &line, 0}, copies = {1, &line, 1e-4};

static enum status run_greedy(uint32_t n, const struct gradient *g, struct arena *arena, struct merge *out,
                              struct error *err) {
    return merge_greedy(n, g, &line, arena, out, err);
}

static enum status run_lines(uint32_t n, const struct gradient *g, struct arena *arena, struct merge *out,
                             struct error *err) {
    return merge_by_lines(n, g, &lines, arena, out, err);
}

static enum status run_copies(uint32_t n, const struct gradient *g, struct arena *arena, struct merge *out,
                              struct error *err) {
    return merge_by_lines(n, g, &copies, arena, out, err);
}

static enum status run_cost(uint32_t n, const struct gradient *g, struct arena *arena, struct merge *out,
                            struct error *err) {
    return merge_by_cost(n, g, &(struct merge_cost){merge_lines_us, NULL, NULL, &lines}, arena, out, err);
}

static const struct {
    const char *name;
    enum status (*run)(uint32_t, const struct gradient *, struct arena *, struct merge *, struct error *);
    uint32_t most;
} rules[] = {{"greedy", run_greedy, UINT32_MAX},
             {"exact", run_lines, UINT32_MAX},
             {"exact, gathering", run_copies, UINT32_MAX},
             {"exact, any cost", run_cost, 10000}};

static void bench_chain(const char *name, uint32_t n, const struct gradient *gradients) {
    for (size_t r = 0; r < sizeof rules / sizeof rules[0]; r++) {
        struct error err;
        struct merge merge;
        struct arena arena = {0};
        double times[REPEATS];
        size_t before = 0;
        for (int i = -1; i < REPEATS && n <= rules[r].most; i++) {
            arena_clear(&arena);
            if (i == 0)
                before = bench_allocations;
            double start = clock_now_us();
            bench_check(rules[r].run(n, gradients, &arena, &merge, &err), &err);
            times[i < 0 ? 0 : i] = clock_now_us() - start;
        }
        if (n > rules[r].most)
            continue;
        size_t allocations = bench_allocations - before;
        double median_us = bench_median(REPEATS, times);
        struct merge_cost cost = {merge_lines_us, NULL, NULL, rules[r].run == run_copies ? &copies : &lines};
        printf("merge %-14s %6u variables %-17s %9.1f us, %5u groups, end %.0f us, %zu allocations\n", name, n,
               rules[r].name, median_us, merge.n_groups, merge_end_us(&merge, gradients, &cost), allocations);
        arena_release(&arena);
    }
}

static struct gradient *new_gradients(uint32_t n) {
    struct gradient *gradients = calloc(n, sizeof *gradients);
    if (!gradients)
        exit(1);
    return gradients;
}

static void bench_model(const char *beside) {
    struct error err;
    struct model model;
    char path[4096];
    const char *slash = strrchr(beside, '/');
    int folder = slash ? (int)(slash - beside) : 1;
    snprintf(path, sizeof path, "%.*s/densenet201.json", folder, slash ? beside : ".");
    bench_check(model_read_file(path, &model, &err), &err);
    struct gradient *gradients = new_gradients(model.n_variables);
    bench_check(gradients_list(&model, 1, WITH_UPDATES, gradients, &err), &err);
    bench_chain("densenet201", model.n_variables, gradients);
    free(gradients);
    model_release(&model);
}

/* Communication and computation take about as long, so that the network is by turns idle and behind. */
static void bench_synthetic(uint32_t n) {
    struct rng rng;
    struct gradient *gradients = new_gradients(n);
    double now = 0;
    rng_seed(&rng, 1);
    for (uint32_t i = 0; i < n; i++) {
        now += rng_log_between(&rng, 10, 5000);
        gradients[i] = (struct gradient){.bytes = (uint64_t)rng_log_between(&rng, 256, 4e6), .ready_us = now};
    }
    bench_chain("synthetic", n, gradients);
    free(gradients);
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    bench_model(argv[1]);
    for (uint32_t n = 1000; n <= 100000; n *= 10)
        bench_synthetic(n);
    return 0;
}
