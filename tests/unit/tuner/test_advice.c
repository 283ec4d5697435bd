/* An advice that is written and read again says the same, and one that lacks something is refused. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "tests/support/check.h"
#include "tests/unit/tuner/sweep_world.h"
#include "tuner/predict/advice.h"

#define LAYER(l)                                                                                                       \
    "{\"name\":\"" l "\",\"forward_us\":2000,\"backward_us\":4000,\"variables\":[\"" l "\"],\"activation_bytes\":"     \
    "9000}"
#define VARIABLE(v) "{\"name\":\"" v "\",\"shape\":[256,256],\"dtype\":\"f32\"}"

static const char MODEL[] =
    "{\"schema\":\"syncopate.model/1\",\"name\":\"m\",\"optimizer\":\"adam\",\"variables\":[" VARIABLE(
        "a") "," VARIABLE("b") "," VARIABLE("c") "],\"layers\":[" LAYER("a") "," LAYER("b") "," LAYER("c") "]}";
static const char CLUSTER[] =
    "\"nodes\":[{\"name\":\"n\",\"count\":2,\"devices\":2,\"device_link_gbyte_per_s\":10,\"nic_gbit_per_s\":1},"
    "{\"name\":\"slow\",\"count\":2,\"devices\":2,\"device_link_gbyte_per_s\":10,\"nic_gbit_per_s\":0.5}],"
    "\"variability\":{\"network\":{\"every_us\":20000,\"rates\":[{\"gbit_per_s\":0.25,\"share\":0.5},"
    "{\"gbit_per_s\":0.5,\"share\":0.5}]}}";

static struct error err;

static void expect_same_words(const struct advice *a, const struct advice *b, const struct budgets *budgets) {
    struct advice_sentence x, y;
    size_t i = 0;
    for (; advice_sentence(a, budgets, i, &x); i++) {
        assert_true(advice_sentence(b, budgets, i, &y));
        assert_string_equal(x.before, y.before);
        assert_string_equal(x.figures, y.figures);
        assert_string_equal(x.after, y.after);
    }
    assert_false(advice_sentence(b, budgets, i, &y));
    assert_true(i >= budgets->n + 2); /* weather is told */
}

static void expect_same(const struct advice *a, const struct advice *b, const struct budgets *budgets) {
    char x[64], y[64];
    assert_int_equal(a->n, b->n);
    assert_close(advice_bound_us(a), advice_bound_us(b), 0);
    for (size_t i = 0; i < a->n; i++) {
        const struct advised *c = &a->candidates[i], *d = &b->candidates[i];
        assert_string_equal(c->kind, d->kind);
        assert_string_equal(c->strategy.id.hex, d->strategy.id.hex);
        assert_int_equal(c->strategy.n_groups, d->strategy.n_groups);
        assert_int_equal(c->between, d->between);
        assert_int_equal(advised_bytes(c), advised_bytes(d));
        assert_close(advised_us(c), advised_us(d), 1e-12);
        assert_true(advised_us(c) > c->row.prediction.iteration_us); /* the weather */
        assert_string_equal(advised_limit(c, x, sizeof x), advised_limit(d, y, sizeof y));
        assert_string_equal(advised_wrapped_for(c, budgets, x, sizeof x), advised_wrapped_for(d, budgets, y, sizeof y));
    }
    expect_same_words(a, b, budgets);
}

static const char *const members[] = {"way",        "strategy",       "id",     "iteration_us",
                                      "exposed_us", "lower_bound_us", "groups", "memory"};

static void expect_refused(cJSON *json, const struct world *w, const struct budgets *budgets) {
    struct advice read;
    struct change changes[ADVICE_RATES];
    const struct json_at root = json_root(json, "advice");
    cJSON *first = cJSON_GetObjectItemCaseSensitive(json, "candidates")->child;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        cJSON *member = cJSON_DetachItemFromObjectCaseSensitive(first, members[i]);
        assert_non_null(member);
        assert_fails(advice_read(&root, &w->model, &w->cluster, budgets, &read, changes, &err), ST_INVALID, members[i]);
        cJSON_AddItemToObject(first, members[i], member);
    }
    cJSON_DeleteItemFromArray(cJSON_GetObjectItemCaseSensitive(json, "at_other_rates"), 0);
    assert_fails(advice_read(&root, &w->model, &w->cluster, budgets, &read, changes, &err), ST_INVALID, "in place of");
    cJSON_ReplaceItemInObjectCaseSensitive(json, "candidates", cJSON_CreateArray());
    assert_fails(advice_read(&root, &w->model, &w->cluster, budgets, &read, changes, &err), ST_INVALID, "is empty");
}

static void what_is_read_is_what_was_written(void **state) {
    (void)state;
    struct world w = world_read(MODEL, CLUSTER);
    struct budgets budgets;
    struct advice a, read;
    struct change changes[ADVICE_RATES], again[ADVICE_RATES];
    char x[64], y[64];
    bool whole;
    assert_ok(budgets_read("1KB,3MB,1GB", &w.cluster, &budgets, &err));
    assert_ok(advice_init(&a, &w.model, &w.cluster, &budgets, &err));
    assert_ok(advice_add_between(&a, &err));
    assert_ok(advice_changes(&a, &budgets, changes, &err));
    cJSON *json = advice_json(&a, &budgets, changes, &whole);
    assert_true(whole);
    const struct json_at root = json_root(json, "advice");
    assert_ok(advice_read(&root, &w.model, &w.cluster, &budgets, &read, again, &err));
    expect_same(&a, &read, &budgets);
    for (size_t r = 0; r < ADVICE_RATES; r++) {
        assert_string_equal(change_rates(&changes[r], x, sizeof x), change_rates(&again[r], y, sizeof y));
        assert_close(changes[r].factor, again[r].factor, 0);
        assert_false(isfinite(changes[r].us[0]) || isfinite(again[r].us[0])); /* nothing fits into 1KB */
        assert_close(changes[r].us[2], again[r].us[2], 1e-12);
        assert_string_equal(changes[r].kind[2], again[r].kind[2]);
    }
    assert_string_equal(change_rates(&again[4], x, sizeof x), "2 to 4");
    expect_refused(json, &w, &budgets);
    cJSON_Delete(json);
    advice_release(&a);
    world_release(&w);
}

static void memories_keep_their_words_and_come_in_order(void **state) {
    (void)state;
    struct world w = world_read(MODEL, "\"nodes\":[{\"name\":\"n\",\"count\":2,\"nic_gbit_per_s\":1,"
                                       "\"device_memory_gbyte\":80}]");
    struct budgets b;
    assert_ok(budgets_read("80GB,1.5 GiB,24gb", &w.cluster, &b, &err));
    assert_int_equal(b.n, 3);
    assert_string_equal(b.of[0].words, "1.5 GiB");
    assert_string_equal(b.of[1].words, "24gb");
    assert_string_equal(b.of[2].words, "80GB");
    assert_ok(budgets_read(NULL, &w.cluster, &b, &err));
    assert_int_equal(b.n, 2);
    assert_string_equal(b.of[0].words, "80GB");
    assert_true(b.of[0].bytes == 80000000000 && b.of[1].bytes == UINT64_MAX);
    assert_string_equal(b.of[1].words, "any memory");
    assert_fails(budgets_read("x", &w.cluster, &b, &err), ST_USAGE, "is not a size");
    assert_fails(budgets_read("80GB,800", &w.cluster, &b, &err), ST_USAGE, "write 800MB or 800MiB");
    assert_fails(budgets_read("0", &w.cluster, &b, &err), ST_USAGE, "nothing fits into 0 bytes");
    assert_fails(budgets_read("1K,2K,3K,4K,5K,6K,7K,8K,9K", &w.cluster, &b, &err), ST_USAGE, "at most 8 sizes");
    world_release(&w);
}

static void memories_are_said_in_binary_units_too(void **state) {
    (void)state;
    struct budgets b = {0};
    char words[80];
    budgets_add(&b, 80000000000, "80GB");
    budgets_add(&b, 1610612736, "1.5 gib");
    budgets_add(&b, 80000000000, NULL);
    budgets_add(&b, UINT64_MAX, NULL);
    assert_string_equal(budget_words(&b.of[0], words, sizeof words), "80GB (74.51 GiB)");
    assert_string_equal(budget_words(&b.of[1], words, sizeof words), "1.5 gib");
    assert_string_equal(budget_words(&b.of[2], words, sizeof words), "74.51 GiB");
    assert_string_equal(budget_words(&b.of[3], words, sizeof words), "any memory");
}

static void add_row(struct advice *a, double us, uint64_t bytes) {
    struct advised *c = &a->candidates[a->n++];
    *c = (struct advised){.kind = "FSDP", .between = true};
    c->row.prediction.iteration_us = us;
    c->row.memory.peak_bytes = bytes;
}

/* Each of the first three takes less than a thousandth longer than the one before, and more than that from two on. */
static void of_times_within_a_thousandth_the_answer_needs_less(void **state) {
    (void)state;
    struct world w = world_read(MODEL, "\"nodes\":[{\"name\":\"n\",\"count\":2,\"nic_gbit_per_s\":1}]");
    struct budgets b = {0};
    struct advice a = {.simulation = {.model = &w.model, .cluster = &w.cluster}};
    add_row(&a, 1000, 400);
    add_row(&a, 1000.9, 300);
    add_row(&a, 1001.8, 200);
    add_row(&a, 1100, 100);
    assert_ptr_equal(advice_best_within(&a, UINT64_MAX), &a.candidates[1]);
    assert_ptr_equal(advice_best_within(&a, 400), &a.candidates[1]);
    assert_ptr_equal(advice_best_within(&a, 399), &a.candidates[2]);
    assert_ptr_equal(advice_best_within(&a, 199), &a.candidates[3]);
    assert_null(advice_best_within(&a, 99));
    budgets_add(&b, 399, NULL);
    for (size_t i = 0; i < a.n; i++) /* the answer, and the smallest */
        assert_int_equal(advice_has_row(&a, &b, &a.candidates[i]), i >= 2);
    world_release(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_is_what_was_written),
        cmocka_unit_test(memories_keep_their_words_and_come_in_order),
        cmocka_unit_test(memories_are_said_in_binary_units_too),
        cmocka_unit_test(of_times_within_a_thousandth_the_answer_needs_less),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
