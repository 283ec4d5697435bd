/* Our trees against XGBoost's own prediction of the same model, and what broken files do. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xgboost/c_api.h>

#include "base/rng.h"
#include "simulator/learned/forest.h"
#include "tests/support/check.h"

enum { ROWS = 300, COLUMNS = 7, ROUNDS = 40 };

struct grown {
    float x[ROWS * COLUMNS];
    DMatrixHandle matrix;
    BoosterHandle booster;
    struct forest forest;
};

static void grow_round(struct grown *g, const float *y) {
    float slope[ROWS], curve[ROWS];
    bst_ulong n;
    const float *margin;
    assert_int_equal(XGBoosterPredict(g->booster, g->matrix, 1, 0, 0, &n, &margin), 0);
    for (size_t i = 0; i < ROWS; i++) {
        slope[i] = margin[i] - y[i];
        curve[i] = 1;
    }
    assert_int_equal(XGBoosterBoostOneIter(g->booster, g->matrix, slope, curve, ROWS), 0);
}

/* Some values are missing; a split then says where they go. */
static void grow_forest(struct grown *g, const char *depth) {
    struct rng rng;
    struct error err;
    float y[ROWS];
    bst_ulong n;
    const char *json;
    rng_seed(&rng, test_seed());
    for (size_t i = 0; i < ROWS; i++) {
        float *x = g->x + i * COLUMNS;
        for (size_t k = 0; k < COLUMNS; k++)
            x[k] = rng_below(&rng, 10) ? (float)rng_normal(&rng) : NAN;
        y[i] = (float)((x[0] > 0 ? 1 : -0.3) * (isnan(x[1]) ? 2 : (double)x[1]) + 0.1 * rng_normal(&rng));
    }
    assert_int_equal(XGDMatrixCreateFromMat_omp(g->x, ROWS, COLUMNS, NAN, &g->matrix, 1), 0);
    assert_int_equal(XGBoosterCreate(&g->matrix, 1, &g->booster), 0);
    assert_int_equal(XGBoosterSetParam(g->booster, "nthread", "1"), 0);
    assert_int_equal(XGBoosterSetParam(g->booster, "base_score", "0"), 0);
    assert_int_equal(XGBoosterSetParam(g->booster, "max_depth", depth), 0);
    for (int round = 0; round < ROUNDS; round++)
        grow_round(g, y);
    assert_int_equal(XGBoosterSaveModelToBuffer(g->booster, "{\"format\":\"json\"}", &n, &json), 0);
    assert_ok(forest_append_xgboost(&g->forest, json, n, ROUNDS, COLUMNS, &err));
}

static void release(struct grown *g) {
    forest_release(&g->forest);
    XGBoosterFree(g->booster);
    XGDMatrixFree(g->matrix);
}

static void assert_predicts(const struct grown *g, const struct forest *forest, unsigned rounds) {
    bst_ulong n;
    const float *margin;
    assert_int_equal(XGBoosterPredict(g->booster, g->matrix, 1, rounds, 0, &n, &margin), 0);
    assert_int_equal(n, ROWS);
    for (size_t i = 0; i < ROWS; i++) {
        const float score = forest_score(forest, g->x + i * COLUMNS);
        assert_memory_equal(&score, &margin[i], sizeof score);
    }
}

static void flat_trees_predict_what_xgboost_predicts_bit_for_bit(void **state) {
    (void)state;
    static const char *const DEPTHS[] = {"1", "3", "7"};
    for (size_t d = 0; d < 3; d++) {
        struct grown g = {.forest = {0}};
        grow_forest(&g, DEPTHS[d]);
        assert_int_equal(g.forest.n_trees, ROUNDS);
        assert_predicts(&g, &g.forest, 0);
        release(&g);
    }
}

static void the_first_rounds_alone_are_what_xgboost_predicts_with_them(void **state) {
    (void)state;
    struct grown g = {.forest = {0}};
    struct forest first = {0};
    struct error err;
    bst_ulong n;
    const char *json;
    grow_forest(&g, "3");
    assert_int_equal(XGBoosterSaveModelToBuffer(g.booster, "{\"format\":\"json\"}", &n, &json), 0);
    assert_ok(forest_append_xgboost(&first, json, n, 11, COLUMNS, &err));
    assert_int_equal(first.n_trees, 11);
    assert_predicts(&g, &first, 11);
    forest_release(&first);
    release(&g);
}

static void trees_written_and_read_back_or_copied_are_the_same(void **state) {
    (void)state;
    struct grown g = {.forest = {0}};
    struct forest read, copy;
    struct error err;
    cJSON *tree;
    grow_forest(&g, "4");
    cJSON *written = forest_write(&g.forest);
    char *text = json_canonical(written);
    assert_ok(json_parse(text, strlen(text), "trees", &tree, &err));
    const struct json_at root = json_root(tree, "trees");
    assert_ok(forest_read(&root, COLUMNS, &read, &err));
    assert_predicts(&g, &read, 0);
    assert_ok(forest_copy(&read, &copy, &err));
    forest_release(&read);
    assert_predicts(&g, &copy, 0);
    forest_release(&copy);
    cJSON_Delete(tree);
    cJSON_Delete(written);
    free(text);
    release(&g);
}

static void a_broken_tree_is_refused_and_leaves_the_forest_as_it_was(void **state) {
    (void)state;
    static const struct {
        const char *left, *says;
    } CASES[] = {{"[0,-1,-1]", "later node"},   {"[3,-1,-1]", "/trees/0/left_children/0"},
                 {"[1.5,-1,-1]", "later node"}, {"[-1,-1,-1]", "two children"},
                 {"[1,-1]", "nodes"},           {"[]", "at least one"}};
    struct grown g = {.forest = {0}};
    struct error err;
    char json[512];
    grow_forest(&g, "3");
    const size_t nodes = g.forest.n_nodes;
    for (size_t c = 0; c < sizeof CASES / sizeof CASES[0]; c++) {
        snprintf(json, sizeof json,
                 "{\"learner\":{\"gradient_booster\":{\"model\":{\"trees\":[{\"left_children\":%s,\"right_children\":"
                 "[2,-1,-1],\"split_indices\":[0,0,0],\"split_conditions\":[0.5,1,2],\"default_left\":[0,0,0]}]}}}}",
                 CASES[c].left);
        assert_fails(forest_append_xgboost(&g.forest, json, strlen(json), 1, COLUMNS, &err), ST_INVALID, CASES[c].says);
        assert_int_equal(g.forest.n_nodes, nodes);
        assert_predicts(&g, &g.forest, 0);
    }
    release(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flat_trees_predict_what_xgboost_predicts_bit_for_bit),
        cmocka_unit_test(the_first_rounds_alone_are_what_xgboost_predicts_with_them),
        cmocka_unit_test(trees_written_and_read_back_or_copied_are_the_same),
        cmocka_unit_test(a_broken_tree_is_refused_and_leaves_the_forest_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
