/* What a session tries first, on random models and clusters. */
#include <math.h>
#include <string.h>

#include "simulator/tuned.h"
#include "tests/support/check.h"
#include "tests/support/strategy/random_instances.h"
#include "tuner/search/starts.h"

/* Release builds alone run all; those under sanitizers or without optimization fewer. */
#ifdef NDEBUG
enum { INSTANCES = 40 };
#else
enum { INSTANCES = 15 };
#endif

struct scene {
    struct model model;
    struct cluster cluster;
    struct space space;
    struct predictor predictor;
    struct starts starts;
};

static void open_sharded(uint64_t number, enum sharded sharded, struct scene *s) {
    struct space_options options = space_default_options();
    options.sharded = space_sharded_up_to(sharded);
    struct error err;
    struct rng rng;
    rng_split(&rng, test_seed(), number);
    assert_ok(random_model(&rng, &s->model, &err));
    assert_ok(random_cluster(&rng, &s->cluster, &err));
    assert_ok(predictor_init(&s->predictor, &s->model, &s->cluster, &err));
    assert_ok(space_init(&s->space, &s->model, &s->cluster, &options, &err));
    assert_ok(starts_list(&s->predictor, &s->space, &s->starts, &err));
}

static void open_scene(uint64_t number, struct scene *s) {
    open_sharded(number, SHARDED_none, s);
}

static void close_scene(struct scene *s) {
    starts_release(&s->starts);
    predictor_release(&s->predictor);
    space_release(&s->space);
    model_release(&s->model);
    cluster_release(&s->cluster);
}

static void defaults_come_first_and_then_the_fastest(void **state) {
    (void)state;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct scene s;
        open_scene(i, &s);
        assert_true(s.starts.n > 0);
        for (size_t k = 1; k < s.starts.n; k++) {
            const struct start *before = &s.starts.items[k - 1], *item = &s.starts.items[k];
            bool first = before->baseline->kind == BASELINE_DEFAULT, second = item->baseline->kind == BASELINE_DEFAULT;
            assert_true(first || !second);
            if (first == second)
                assert_true(before->predicted_us <= item->predicted_us);
        }
        close_scene(&s);
    }
}

static void predictions_are_the_predictors_and_no_strategy_is_there_twice(void **state) {
    (void)state;
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct scene s;
        struct error err;
        struct prediction p;
        open_scene(i, &s);
        for (size_t k = 0; k < s.starts.n; k++) {
            assert_ok(predictor_run(&s.predictor, &s.starts.items[k].strategy, &p, &err));
            assert_close(p.iteration_us, s.starts.items[k].predicted_us, 1e-12);
            for (size_t l = 0; l < k; l++)
                assert_string_not_equal(s.starts.items[k].strategy.id.hex, s.starts.items[l].strategy.id.hex);
        }
        close_scene(&s);
    }
}

/* Every baseline that can be predicted is there, is another's twin, or is hopeless and counted. */
static void only_twins_and_the_hopeless_are_left_out(void **state) {
    (void)state;
    size_t n_rows, hopeless = 0;
    const struct baseline *rows = baselines_list(&n_rows);
    for (uint64_t i = 0; i < INSTANCES; i++) {
        struct scene s;
        size_t left_out = 0;
        double least = INFINITY;
        open_scene(i, &s);
        for (size_t k = 0; k < s.starts.n; k++)
            least = fmin(least, s.starts.items[k].predicted_us);
        for (size_t r = 0; r < n_rows; r++) {
            struct error err;
            struct strategy strategy;
            struct prediction p;
            bool there = false;
            if (tuned_build(&rows[r], &s.model, &s.cluster, &strategy, &err))
                continue;
            for (size_t k = 0; k < s.starts.n; k++)
                there |= !strcmp(s.starts.items[k].strategy.id.hex, strategy.id.hex);
            assert_ok(predictor_run(&s.predictor, &strategy, &p, &err));
            if (!there) {
                assert_true(rows[r].kind != BASELINE_DEFAULT && p.iteration_us > STARTS_HOPELESS * least);
                left_out++;
            }
            strategy_release(&strategy);
        }
        assert_int_equal(left_out, s.starts.hopeless);
        hopeless += left_out;
        close_scene(&s);
    }
    assert_true(hopeless > 0);
}

/* Nothing is sharded further than the space permits; with all of it the exact wrapping is there, or is hopeless. The
 * defaults that come first shard nothing. */
static void what_shards_is_there_where_it_is_permitted(void **state) {
    (void)state;
    size_t n[SHARDED_COUNT] = {0}, wrapped = 0;
    for (uint64_t i = 0; i < INSTANCES; i++)
        for (enum sharded most = SHARDED_none; most < SHARDED_COUNT; most++) {
            struct scene s;
            open_sharded(i, most, &s);
            for (size_t k = 0; k < s.starts.n; k++) {
                const struct start *start = &s.starts.items[k];
                for (uint32_t g = 0; g < start->strategy.n_groups; g++) {
                    const enum sharded sharded = start->strategy.groups[g].sharded;
                    assert_true(sharded <= most && (!sharded || !start_is_default(start)));
                    n[most] += sharded > 0;
                }
                wrapped += !strcmp(start->baseline->name, "fsdp-optimal");
            }
            close_scene(&s);
        }
    assert_true(!n[SHARDED_none] && n[SHARDED_optimizer] && n[SHARDED_gradients] > n[SHARDED_optimizer] &&
                n[SHARDED_parameters] > n[SHARDED_gradients] && wrapped > INSTANCES / 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_come_first_and_then_the_fastest),
        cmocka_unit_test(predictions_are_the_predictors_and_no_strategy_is_there_twice),
        cmocka_unit_test(only_twins_and_the_hopeless_are_left_out),
        cmocka_unit_test(what_shards_is_there_where_it_is_permitted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
