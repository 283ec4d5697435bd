/* Systems with searched knobs against every setting of their grids, on random models and clusters. */
#include <math.h>
#include <string.h>

#include "simulator/timeline.h"
#include "simulator/tuned.h"
#include "strategy/memory.h"
#include "tests/support/check.h"
#include "tests/support/strategy/random_instances.h"

enum { INSTANCES = 60 };

struct world {
    struct model model;
    struct cluster cluster;
    struct cost cost;
};

static void open_world(uint64_t number, struct world *w) {
    struct error err;
    struct rng rng;
    rng_split(&rng, test_seed(), number);
    assert_ok(random_model(&rng, &w->model, &err));
    assert_ok(random_cluster(&rng, &w->cluster, &err));
    assert_ok(cost_init(&w->cost, &w->cluster, &err));
}

static void close_world(struct world *w) {
    cost_release(&w->cost);
    cluster_release(&w->cluster);
    model_release(&w->model);
}

/* Predict with a fresh timeline, and release. */
static double take_us(const struct world *w, struct strategy *strategy) {
    struct error err;
    struct plan plan;
    struct prediction p;
    struct timeline *timeline = timeline_new();
    assert_non_null(timeline);
    assert_ok(plan_lower(&w->model, &w->cluster, strategy, &plan, &err));
    assert_ok(timeline_run(timeline, &plan, &w->cost, NULL, &p, &err));
    plan_release(&plan);
    timeline_free(timeline);
    strategy_release(strategy);
    return p.iteration_us;
}

static double built_us(const struct world *w, const char *name) {
    struct error err;
    struct strategy s;
    assert_ok(tuned_build(baselines_find(name), &w->model, &w->cluster, &s, &err));
    assert_string_equal(s.name, name);
    return take_us(w, &s);
}

static void check_system(const struct world *w, const char *tuned, const char *untuned, size_t *faster) {
    const struct baseline_grid *grid = baselines_find(tuned)->grid;
    double least = INFINITY;
    for (size_t i = 0; i < grid->n; i++) {
        struct error err;
        struct strategy s;
        assert_ok(grid->build(&w->model, &w->cluster, i, &s, &err));
        least = fmin(least, take_us(w, &s));
    }
    const double got = built_us(w, tuned), before = built_us(w, untuned);
    assert_true(got == least);
    assert_true(got <= before);
    *faster += got < before * 0.98;
}

static void a_tuned_system_is_the_fastest_setting_of_its_grid_and_never_slower_than_untuned(void **state) {
    (void)state;
    size_t horovod = 0, byteps = 0;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct world w;
        open_world(i, &w);
        check_system(&w, "horovod-tuned", "horovod", &horovod);
        check_system(&w, "byteps-tuned", "byteps", &byteps);
        close_world(&w);
    }
    assert_true(horovod > 0 && byteps > 0);
}

/* Of equals the first: a single device sends nothing, so that the defaults stay. */
static void where_nothing_is_to_gain_the_defaults_stay(void **state) {
    (void)state;
    struct error err;
    struct world w;
    struct strategy tuned, untuned;
    struct cluster one;
    cJSON *json = cJSON_Parse("{\"schema\":\"syncopate.cluster/1\",\"name\":\"one\",\"nodes\":[{\"name\":\"n\","
                              "\"nic_gbit_per_s\":1}]}");
    assert_ok(cluster_read(json, "one", &one, &err));
    cJSON_Delete(json);
    open_world(0, &w);
    assert_ok(tuned_build(baselines_find("horovod-tuned"), &w.model, &one, &tuned, &err));
    assert_ok(tuned_build(baselines_find("horovod"), &w.model, &one, &untuned, &err));
    assert_string_equal(tuned.id.hex, untuned.id.hex);
    strategy_release(&tuned);
    strategy_release(&untuned);
    cluster_release(&one);
    close_world(&w);
}

static uint64_t peak_of(const struct world *w, const struct strategy *strategy) {
    struct error err;
    struct plan plan;
    struct memory memory;
    assert_ok(plan_lower(&w->model, &w->cluster, strategy, &plan, &err));
    assert_ok(memory_of_plan(&plan, &memory, &err));
    plan_release(&plan);
    return memory.peak_bytes;
}

/* Built for a memory: what it needs, and the same as without one, as all rows but one are. */
static uint64_t built_for(const struct world *w, const struct baseline *row, uint64_t memory_bytes, bool *same) {
    struct error err;
    struct strategy plain, fitted;
    assert_ok(tuned_build(row, &w->model, &w->cluster, &plain, &err));
    assert_ok(tuned_build_for(row, &w->model, &w->cluster, memory_bytes, &fitted, &err));
    *same = !strcmp(plain.id.hex, fitted.id.hex);
    const uint64_t bytes = peak_of(w, &fitted);
    strategy_release(&plain);
    strategy_release(&fitted);
    return bytes;
}

/* A budget that holds the fastest wrapping changes nothing; below it the wrapping takes less, or the least. */
static void only_the_exact_wrapping_is_built_for_a_memory(void **state) {
    (void)state;
    size_t n, fit = 0, over = 0;
    const struct baseline *rows = baselines_list(&n), *wrapped = baselines_find("fsdp-optimal");
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct world w;
        bool same;
        open_world(i, &w);
        built_for(&w, &rows[i % n], 1, &same);
        assert_true(same);
        const uint64_t any = built_for(&w, wrapped, 0, &same), least = built_for(&w, wrapped, 1, &same);
        assert_true(least <= any && built_for(&w, wrapped, any, &same) == any && same);
        const uint64_t middle = least + (any - least) / 2, got = built_for(&w, wrapped, middle, &same);
        assert_true(got <= middle);
        fit += !same;
        over += least < any;
        close_world(&w);
    }
    assert_true(fit > 0 && over > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_exact_wrapping_is_built_for_a_memory),
        cmocka_unit_test(a_tuned_system_is_the_fastest_setting_of_its_grid_and_never_slower_than_untuned),
        cmocka_unit_test(where_nothing_is_to_gain_the_defaults_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
