/* The best wrapping of sharded parameters where it is run: the timeline's iteration is what the exact program says it
 * is, and no wrapping within the budget whose groups are runs of layers is faster. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "simulator/timeline.h"
#include "strategy/baselines/baselines.h"
#include "strategy/baselines/fsdp_optimal.h"
#include "strategy/baselines/layers.h"
#include "strategy/memory.h"
#include "strategy/plan.h"
#include "tests/support/check.h"
#include "tests/support/strategy/kept.h"
#include "tests/support/strategy/lone_messages.h"
#include "tests/support/strategy/random_instances.h"

/* Release builds alone run all; those under sanitizers or without optimization fewer. */
#ifdef NDEBUG
enum { INSTANCES = 2500 };
#else
enum { INSTANCES = 800 };
#endif
enum { SMALL = 5, MOST = 40 };

struct world {
    struct model model;
    struct cluster cluster;
    struct cost cost;
    struct timeline *timeline;
};

/* The program adds up messages and computing: nothing is saved up between messages, and neither slows the other. */
static void keep_apart(struct cost *cost) {
    lone_messages_save_nothing(cost);
    cost->interferes = false;
    cost->in_startup = cost->in_transfer = (struct interference){1, 1, 1};
}

/* False where the model has several element types. */
static bool world_open(struct rng *rng, struct world *w) {
    struct error err;
    bool alike = true;
    assert_ok(random_model(rng, &w->model, &err));
    assert_ok(random_cluster(rng, &w->cluster, &err));
    assert_ok(cost_init(&w->cost, &w->cluster, &err));
    keep_apart(&w->cost);
    for (uint32_t v = 1; v < w->model.n_variables; v++)
        alike &= w->model.variables[v].dtype == w->model.variables[0].dtype;
    return alike;
}

static void world_close(struct world *w) {
    cost_release(&w->cost);
    cluster_release(&w->cluster);
    model_release(&w->model);
}

static double simulated_us(struct world *w, const struct strategy *strategy) {
    return lone_messages_us(w->timeline, &w->model, &w->cost, strategy);
}

static void build(struct world *w, const struct layers *layers, uint32_t n_groups, const uint32_t *ends,
                  const uint8_t *keeps, struct strategy *out) {
    struct error err;
    assert_ok(strategy_init(out, "wrapping", &w->model, n_groups, &err));
    out->credit_bytes = 0;
    for (uint32_t v = 0; v < w->model.n_variables; v++)
        while (layers->layer_of[v] >= ends[out->variables[v].group])
            out->variables[v].group++;
    for (uint32_t g = 0; g < n_groups; g++) {
        out->groups[g].sharded = SHARDED_parameters;
        out->groups[g].keeps_gathered = keeps[g] == WRAPPING_KEEPS;
        out->groups[g].reshard_ranks =
            keeps[g] == WRAPPING_KEEPS_PARTS ? cluster_ranks_in_nodes(&w->cluster, w->cluster.n_devices) : 0;
    }
    assert_ok(strategy_seal(out, &w->model, &w->cluster, &err));
}

static double wrapping_us(struct world *w, const struct layers *layers, uint32_t n_groups, const uint32_t *ends,
                          const uint8_t *keeps) {
    struct strategy s;
    build(w, layers, n_groups, ends, keeps, &s);
    const double us = simulated_us(w, &s);
    strategy_release(&s);
    return us;
}

/* Of those within the budget. */
static double least_of_all_wrappings(struct world *w, const struct layers *layers, const struct wrapping_cost *cost) {
    const uint32_t n = layers->chain.n;
    double least = INFINITY;
    for (uint32_t cuts = 0; cuts < 1U << (n - 1); cuts++) {
        uint32_t ends[SMALL], k = 0;
        for (uint32_t i = 1; i <= n; i++)
            if (i == n || cuts >> (i - 1) & 1)
                ends[k++] = i;
        uint8_t keeps[SMALL] = {0};
        do {
            if (wrapping_peak(&layers->chain, cost, k, ends, keeps) <= layers->chain.budget)
                least = fmin(least, wrapping_us(w, layers, k, ends, keeps));
        } while (kept_next(k, cluster_ranks_in_nodes(&w->cluster, w->cluster.n_devices) ? 3 : 2, keeps));
    }
    return least;
}

static void the_best_wrapping_is_what_its_program_says_and_none_is_faster(void **state) {
    struct world w = {.timeline = timeline_new()};
    struct rng rng;
    int run = 0, all = 0, several = 0, mixed = 0, parts = 0;
    (void)state;
    assert_non_null(w.timeline);
    rng_seed(&rng, test_seed());
    for (int i = 0; i < INSTANCES; i++) {
        struct arena arena = {0};
        struct layers layers;
        struct wrapping wrapping;
        struct error err;
        const bool alike = world_open(&rng, &w);
        assert_ok(layers_list(&w.model, &w.cost, &arena, &layers, &err));
        if (alike && layers.chain.n <= MOST && w.cluster.n_devices > 1) {
            const struct wrapping_cost cost = layers_cost(&w.cost);
            if (rng_below(&rng, 3))
                layers.chain.budget =
                    (uint64_t)((double)wrapping_least_peak(&layers.chain, &cost) * (1 + rng_uniform(&rng)));
            assert_ok(wrapping_best(&layers.chain, &cost, WRAPPING_LABELS, &arena, &wrapping, &err));
            const double us = wrapping_us(&w, &layers, wrapping.n_groups, wrapping.ends, wrapping.keeps);
            assert_close(us, wrapping.value_us, 1e-9);
            for (uint32_t g = 0; g < wrapping.n_groups; g++) {
                mixed += g > 0 && wrapping.keeps[g] != wrapping.keeps[0];
                parts += wrapping.keeps[g] == WRAPPING_KEEPS_PARTS;
            }
            run++;
            several += wrapping.n_groups > 1;
            if (layers.chain.n <= SMALL) {
                assert_close(us, least_of_all_wrappings(&w, &layers, &cost), 1e-9);
                all++;
            }
        }
        arena_release(&arena);
        world_close(&w);
    }
    assert_true(all > INSTANCES / 20 && several > INSTANCES / 20 && mixed > 0 && parts > 0);
    print_message(
        "%d wrappings, %d of several groups, %d that keep some, %d groups of which nodes keep parts, %d against "
        "all wrappings\n",
        run, several, mixed, parts, all);
    timeline_free(w.timeline);
}

static uint64_t peak_of(const struct world *w, const struct strategy *s) {
    struct plan plan;
    struct memory memory;
    struct error err;
    assert_ok(plan_lower(&w->model, &w->cluster, s, &plan, &err));
    assert_ok(memory_of_plan(&plan, &memory, &err));
    plan_release(&plan);
    return memory.peak_bytes;
}

/* Every layer in a group of its own, of which none keeps anything. */
static void build_layers_alone(struct world *w, const struct layers *layers, struct strategy *out) {
    uint32_t ends[MOST];
    const uint8_t keeps[MOST] = {0};
    for (uint32_t i = 0; i < layers->chain.n; i++)
        ends[i] = i + 1;
    build(w, layers, layers->chain.n, ends, keeps, out);
}

/* Nothing is said not to fit that layers alone fit into, and a wrapping within that memory is found that is no slower.
 */
static void the_least_memory_is_never_more_than_that_of_layers_alone(void **state) {
    struct world w = {.timeline = timeline_new()};
    struct rng rng;
    int run = 0, less = 0, faster = 0;
    (void)state;
    rng_seed(&rng, test_seed() + 2);
    for (int i = 0; i < INSTANCES / 4; i++) {
        struct arena arena = {0};
        struct layers layers;
        struct error err;
        const bool alike = world_open(&rng, &w);
        assert_ok(layers_list(&w.model, &w.cost, &arena, &layers, &err));
        if (alike && layers.chain.n <= MOST && w.cluster.n_devices > 1) {
            struct strategy least, within, apart;
            build_layers_alone(&w, &layers, &apart);
            const uint64_t alone = peak_of(&w, &apart);
            const double alone_us = simulated_us(&w, &apart);
            assert_ok(fsdp_least_memory(&w.model, &w.cost, &least, &err));
            assert_ok(fsdp_optimal_within(&w.model, &w.cost, alone, &within, &err));
            const uint64_t peak = peak_of(&w, &least);
            const double us = simulated_us(&w, &within);
            assert_true(peak <= alone && peak_of(&w, &within) <= alone);
            assert_true(us <= alone_us * (1 + 1e-9));
            run++;
            less += peak < alone;
            faster += us < alone_us * (1 - 1e-9);
            strategy_release(&apart);
            strategy_release(&least);
            strategy_release(&within);
        }
        arena_release(&arena);
        world_close(&w);
    }
    assert_true(run > INSTANCES / 20);
    print_message("%d models, of which %d need less than with layers alone; %d are faster within that\n", run, less,
                  faster);
    timeline_free(w.timeline);
}

/* Where a wrapping fits it is the nearest, and else the one that needs the least memory is. */
static void assert_nearest(const struct model *model, const struct cost *cost, uint64_t budget, bool fits,
                           const struct strategy *fitted) {
    struct strategy nearest, least;
    struct error err;
    assert_ok(fsdp_optimal_nearest(model, cost, budget, &nearest, &err));
    assert_ok(fsdp_least_memory(model, cost, &least, &err));
    assert_string_equal(nearest.id.hex, fits ? fitted->id.hex : least.id.hex);
    strategy_release(&nearest);
    strategy_release(&least);
}

/* Several budgets at once: each gets what it gets alone, and none where nothing fits. */
static void budgets_share_their_searches_and_not_their_answers(void **state) {
    enum { BUDGETS = 4 };
    struct rng rng;
    int fitted = 0, differ = 0, over = 0;
    (void)state;
    rng_seed(&rng, test_seed() + 1);
    for (int i = 0; i < INSTANCES / 8; i++) {
        struct model model;
        struct cluster cluster;
        struct cost cost;
        struct error err;
        uint64_t budgets[BUDGETS] = {0};
        struct strategy together[BUDGETS], alone;
        bool fits[BUDGETS];
        assert_ok(random_model(&rng, &model, &err));
        assert_ok(random_cluster(&rng, &cluster, &err));
        assert_ok(cost_init(&cost, &cluster, &err));
        for (int k = 1; k < BUDGETS; k++)
            budgets[k] = (uint64_t)((double)model.bytes * (0.3 + 3 * rng_uniform(&rng)));
        assert_ok(fsdp_optimal_for_each(&model, &cost, BUDGETS, budgets, together, fits, &err));
        assert_true(fits[0]);
        for (int k = 0; k < BUDGETS; k++) {
            const enum status st = fsdp_optimal_within(&model, &cost, budgets[k], &alone, &err);
            assert_int_equal(st, fits[k] ? ST_OK : ST_INFEASIBLE);
            assert_nearest(&model, &cost, budgets[k], fits[k], &together[k]);
            over += !fits[k];
            if (st)
                continue;
            assert_string_equal(alone.id.hex, together[k].id.hex);
            fitted++;
            differ += strcmp(alone.id.hex, together[0].id.hex) != 0;
            strategy_release(&alone);
        }
        for (int k = 0; k < BUDGETS; k++)
            if (fits[k])
                strategy_release(&together[k]);
        cost_release(&cost);
        cluster_release(&cluster);
        model_release(&model);
    }
    assert_true(fitted > INSTANCES / 8 && differ > 0 && over > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_wrapping_is_what_its_program_says_and_none_is_faster),
        cmocka_unit_test(the_least_memory_is_never_more_than_that_of_layers_alone),
        cmocka_unit_test(budgets_share_their_searches_and_not_their_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
