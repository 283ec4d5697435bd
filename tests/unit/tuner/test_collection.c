/* Collections: what is drawn, and that one which was interrupted goes on where it stopped. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dataset/query.h"
#include "tests/support/check.h"
#include "tests/support/dataset/place.h"
#include "tests/support/strategy/random_instances.h"
#include "tuner/session/collection.h"
#include "tuner/session/tune.h"

struct scene {
    struct model model;
    struct cluster cluster;
    struct collection collection;
    uint64_t runs, die_after, fail_at; /* 0: never */
};

static void open_scene_with(struct scene *s, uint64_t stream, uint32_t encodings) {
    struct error err;
    struct rng rng;
    struct space_options options = space_default_options();
    options.encodings = encodings;
    *s = (struct scene){0};
    rng_split(&rng, test_seed(), stream);
    assert_ok(random_model(&rng, &s->model, &err));
    assert_ok(random_cluster(&rng, &s->cluster, &err));
    assert_ok(collection_init(&s->collection, &s->model, &s->cluster, &options, &err));
}

static void open_scene(struct scene *s, uint64_t stream) {
    open_scene_with(s, stream, 1u << ENCODING_none);
}

static void close_scene(struct scene *s) {
    collection_release(&s->collection);
    cluster_release(&s->cluster);
    model_release(&s->model);
}

static enum status run(void *context, const struct tune_order *order, struct tune_outcome *out, struct error *err) {
    static double times[COLLECT_MOST];
    struct scene *s = context;
    if (s->die_after && s->runs == s->die_after)
        return error_set(err, ST_CANCELLED, "stopped by the test");
    s->runs++;
    assert_true(order->iterations >= COLLECT_LEAST && order->iterations <= COLLECT_MOST);
    for (size_t i = 0; i < order->iterations; i++)
        times[i] = order->expected_us;
    *out = (struct tune_outcome){.state = RECORD_COMPLETE, .n = order->iterations, .iterations_us = times};
    if (s->runs == s->fail_at)
        *out = (struct tune_outcome){.state = RECORD_FAILED, .reason = "a wrong sum"};
    return ST_OK;
}

static void number_i_is_always_the_same_and_follows_the_recipe(void **state) {
    (void)state;
    struct error err;
    for (uint64_t stream = 0; stream < 4; stream++) {
        struct scene s;
        open_scene(&s, stream);
        size_t by_word[4] = {0};
        static const char *const words[4] = {"collect-guided", "collect-uniform", "collect-sizes", "collect-fast"};
        for (uint64_t i = 0; i < 32; i++) {
            struct strategy a, b;
            const char *proposer;
            double us, again_us;
            assert_ok(collection_draw(&s.collection, 9, i, &a, &proposer, &us, &err));
            assert_ok(collection_draw(&s.collection, 9, i, &b, &proposer, &again_us, &err));
            assert_string_equal(a.id.hex, b.id.hex);
            assert_close(us, again_us, 0);
            assert_ok(strategy_check(&a, &s.model, &s.cluster, &err));
            for (int k = 0; k < 4; k++)
                by_word[k] += !strcmp(proposer, words[k]);
            strategy_release(&a);
            strategy_release(&b);
        }
        assert_int_equal(by_word[0], 8);
        assert_int_equal(by_word[1], 4);
        assert_int_equal(by_word[2], 8);
        assert_int_equal(by_word[3], 4);
        close_scene(&s);
    }
}

static void one_way_of_drawing_is_drawn_alone(void **state) {
    (void)state;
    struct error err;
    struct scene s;
    static const char *const words[] = {"guided", "balanced", "adjacent", "loose", "uniform"};
    open_scene(&s, 12);
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        assert_ok(collection_way_named(words[w], &s.collection.only, &err));
        for (uint64_t i = 0; i < 10; i++) {
            struct strategy drawn;
            const char *proposer;
            double us;
            assert_ok(collection_draw(&s.collection, 9, i, &drawn, &proposer, &us, &err));
            assert_string_equal(proposer + strlen("collect-"), words[w]);
            assert_ok(strategy_check(&drawn, &s.model, &s.cluster, &err));
            strategy_release(&drawn);
        }
    }
    assert_ok(collection_way_named("recipe", &s.collection.only, &err));
    assert_int_equal(s.collection.only, COLLECTION_BY_RECIPE);
    assert_fails(collection_way_named("luck", &s.collection.only, &err), ST_USAGE, "'luck'");
    close_scene(&s);
}

static void baselines_drawn_alone_come_one_after_another(void **state) {
    (void)state;
    struct error err;
    struct scene s;
    open_scene(&s, 13);
    s.collection.only = COLLECTION_BASELINE;
    assert_true(s.collection.starts.n > 2);
    for (uint64_t i = 0; i < s.collection.starts.n; i++) {
        const struct start *start = &s.collection.starts.items[i];
        struct strategy drawn;
        const char *proposer;
        double us;
        assert_ok(collection_draw(&s.collection, 9, i, &drawn, &proposer, &us, &err));
        assert_string_equal(drawn.id.hex, start->strategy.id.hex);
        assert_string_equal(drawn.name, start->strategy.name);
        strategy_release(&drawn);
    }
    close_scene(&s);
}

static void collect(struct scene *s, const char *file, uint64_t trials, enum status want) {
    struct error err;
    struct store *store;
    const struct tune_runner runner = {"simulated", s, run};
    const struct collect_options options = {.trials = trials, .seed = 3, .trial_us = 1e6};
    assert_ok(store_open(file, STORE_READ_WRITE, &store, &err));
    assert_int_equal(collect_run(store, &s->collection, &runner, &options, &err), want);
    store_close(store);
}

/* The strategies of the trials that ended, in order, as one text. */
static void ended(const char *file, char *out, size_t size) {
    struct error err;
    struct store *store;
    struct arena arena = {0};
    struct record *records;
    size_t n, used = 0;
    const struct query query = {.order = QUERY_BY_number};
    assert_ok(store_open(file, STORE_READ_ONLY, &store, &err));
    assert_ok(query_collect(store, &query, &arena, &n, &records, &err));
    for (size_t i = 0; i < n; i++)
        if (records[i].state != RECORD_CANCELLED)
            used += (size_t)snprintf(out + used, size - used, "%.12s %s\n", records[i].strategy,
                                     record_state_word(records[i].state));
    arena_release(&arena);
    store_close(store);
}

static void interrupted_collection_goes_on_where_it_stopped(void **state) {
    (void)state;
    struct scene s;
    char whole[4096], parts[4096], file[4096];
    open_scene(&s, 10);
    s.fail_at = 5;
    snprintf(file, sizeof file, "%s", dataset_path("whole.db"));
    collect(&s, file, 20, ST_OK);
    assert_int_equal(s.runs, 20);
    ended(file, whole, sizeof whole);
    snprintf(file, sizeof file, "%s", dataset_path("parts.db"));
    s.runs = 0;
    for (uint64_t stop = 3; stop < 20; stop += 6) {
        s.die_after = stop;
        collect(&s, file, 20, ST_CANCELLED);
    }
    s.die_after = 0;
    collect(&s, file, 20, ST_OK);
    assert_int_equal(s.runs, 20);
    ended(file, parts, sizeof parts);
    assert_string_equal(whole, parts);
    collect(&s, file, 20, ST_OK);
    assert_int_equal(s.runs, 20);
    close_scene(&s);
}

static bool any_encoded(const struct strategy *strategy) {
    for (uint32_t v = 0; v < strategy->n_variables; v++)
        if (strategy->variables[v].encoding != ENCODING_none)
            return true;
    return false;
}

/* Strategies, of which there are `draws`, with some encoding. */
static int encoded(struct scene *s, uint64_t draws) {
    struct error err;
    int n = 0;
    for (uint64_t i = 0; i < draws; i++) {
        struct strategy drawn;
        const char *proposer;
        double us;
        assert_ok(collection_draw(&s->collection, 9, i, &drawn, &proposer, &us, &err));
        n += any_encoded(&drawn);
        strategy_release(&drawn);
    }
    return n;
}

static void encodings_are_drawn_where_allowed_and_recorded_apart(void **state) {
    (void)state;
    enum { DRAWS = 48, SCENES = 6 };
    struct scene s;
    char file[4096];
    int n = 0;
    snprintf(file, sizeof file, "%s", dataset_path("encoded.db"));
    for (uint64_t stream = 20; stream < 20 + SCENES; stream++) {
        open_scene(&s, stream);
        assert_int_equal(encoded(&s, DRAWS), 0);
        collect(&s, file, 3, ST_OK);
        close_scene(&s);
        open_scene_with(&s, stream, (1u << ENCODING_COUNT) - 1);
        n += encoded(&s, DRAWS);
        collect(&s, file, 3, ST_OK); /* not those of before, in the same dataset under the same seed */
        assert_int_equal(s.runs, 3);
        close_scene(&s);
    }
    printf("%d of %d strategies encode\n", n, DRAWS * SCENES);
    assert_true(n > DRAWS * SCENES / 5);
}

static void collection_is_of_one_runner_and_no_session_to_tune(void **state) {
    (void)state;
    struct error err;
    struct scene s;
    struct store *store;
    struct arena arena = {0};
    struct stored_session *sessions;
    struct outcome tuning;
    size_t n;
    char file[4096];
    const struct collect_options options = {.trials = 4, .seed = 3, .trial_us = 1e6};
    const struct tune_runner other = {"another", &s, run}, same = {"simulated", &s, run};
    const struct tune_options tune = tune_default_options();
    open_scene(&s, 11);
    snprintf(file, sizeof file, "%s", dataset_path("runner.db"));
    collect(&s, file, 2, ST_OK);
    assert_ok(store_open(file, STORE_READ_WRITE, &store, &err));
    assert_fails(collect_run(store, &s.collection, &other, &options, &err), ST_CONFLICT,
                 "collected by runner simulated");
    assert_ok(store_session_list(store, 0, 0, &arena, &n, &sessions, &err));
    assert_int_equal(n, 1);
    assert_fails(tune_run(store, &s.model, &s.cluster, &same, &tune, sessions[0].id, &tuning, &err), ST_CONFLICT,
                 "collection");
    assert_int_equal(s.runs, 2);
    arena_release(&arena);
    store_close(store);
    close_scene(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(number_i_is_always_the_same_and_follows_the_recipe),
        cmocka_unit_test(one_way_of_drawing_is_drawn_alone),
        cmocka_unit_test(baselines_drawn_alone_come_one_after_another),
        cmocka_unit_test(interrupted_collection_goes_on_where_it_stopped),
        cmocka_unit_test(encodings_are_drawn_where_allowed_and_recorded_apart),
        cmocka_unit_test(collection_is_of_one_runner_and_no_session_to_tune),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
