/* Sweeps run on a small model, with baselines made for the test, and their figures held against each other. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "cli/grid.h"
#include "tests/support/check.h"

static struct error err;

static const char MODEL[] = "{\"schema\":\"syncopate.model/1\",\"name\":\"toy\",\"batch_per_device\":8,\"variables\":["
                            "{\"name\":\"a\",\"shape\":[256,256]},{\"name\":\"b\",\"shape\":[1000,100]}],\"layers\":["
                            "{\"name\":\"l1\",\"forward_us\":1000,\"backward_us\":2000,\"variables\":[\"a\"]},"
                            "{\"name\":\"l2\",\"forward_us\":1000,\"backward_us\":2000,\"variables\":[\"b\"]}]}";
static const char CLUSTER[] = "{\"schema\":\"syncopate.cluster/1\",\"name\":\"four\",\"nodes\":[{\"name\":\"n\","
                              "\"count\":3,\"nic_gbit_per_s\":1,\"nic_latency_us\":50,\"compute_scale\":0.5},{\"name\":"
                              "\"slow\",\"nic_gbit_per_s\":1,\"compute_scale\":0.8}]}";

struct world {
    struct model model;
    struct cluster cluster;
};

static struct world world_of(void) {
    struct world w;
    cJSON *json;
    assert_ok(json_parse(MODEL, sizeof MODEL - 1, "model", &json, &err));
    assert_ok(model_read(json, "model", &w.model, &err));
    cJSON_Delete(json);
    assert_ok(json_parse(CLUSTER, sizeof CLUSTER - 1, "cluster", &json, &err));
    assert_ok(cluster_read(json, "cluster", &w.cluster, &err));
    cJSON_Delete(json);
    return w;
}

static void world_release(struct world *w) {
    model_release(&w->model);
    cluster_release(&w->cluster);
}

static int times_built;

/* wfbp, but on at most 4 devices. */
static enum status build_small(const struct model *model, const struct cost *cost, struct strategy *out,
                               struct error *e) {
    times_built++;
    if (cost->cluster->n_devices > 4)
        return error_set(e, ST_TOO_LARGE, "only for 4");
    return baseline_wfbp(model, cost, out, e);
}

static enum status build_never(const struct model *model, const struct cost *cost, struct strategy *out,
                               struct error *e) {
    (void)model, (void)cost, (void)out;
    return error_set(e, ST_INFEASIBLE, "never");
}

static const struct baseline small = {"small", "", "", BASELINE_PUBLISHED, build_small, NULL},
                             never = {"never", "", "", BASELINE_PUBLISHED, build_never, NULL};

static struct grid run(const struct world *w, const char *text, struct sweep *sweep, size_t n,
                       const struct contender *columns) {
    struct grid grid;
    assert_ok(sweep_parse(text, sweep, &err));
    assert_ok(grid_run(sweep, &w->model, &w->cluster, columns, n, &(struct grid_options){0}, &grid, &err));
    return grid;
}

static void every_cell_is_the_prediction_of_its_own_cluster(void **state) {
    (void)state;
    struct world w = world_of();
    struct sweep sweep;
    const struct contender columns[] = {{"wfbp", baselines_find("wfbp"), NULL}, {"ps", baselines_find("ps"), NULL}};
    struct grid grid = run(&w, "workers=2..16x2", &sweep, 2, columns);
    for (size_t i = 0; i < sweep.n; i++) {
        struct sweep_point at;
        struct simulation s;
        struct row row;
        assert_ok(sweep_apply(&sweep, sweep.values[i], ALGORITHM_auto, &w.model, &w.cluster, &at, &err));
        assert_ok(simulation_init(&s, &at.model, &at.cluster, false, &err));
        for (size_t c = 0; c < 2; c++) {
            assert_ok(simulation_predict(&s, &columns[c], NULL, &row, &err));
            assert_true(grid.cells[2 * i + c].there);
            assert_close(grid.cells[2 * i + c].iteration_us, row.prediction.iteration_us, 1e-12);
            assert_int_equal(grid.cells[2 * i + c].messages, row.prediction.messages);
            assert_true(grid.cells[2 * i + c].iteration_us >= grid.points[i].bound_us * (1 - 1e-9));
        }
        assert_close(grid.points[i].bound_us, s.bound_us, 1e-12);
        assert_int_equal(grid.points[i].devices, at.cluster.n_devices);
        simulation_release(&s);
        sweep_point_release(&at);
    }
    grid_release(&grid);
    world_release(&w);
}

static void measures_are_relative_to_one_device_alone(void **state) {
    (void)state;
    struct world w = world_of();
    struct sweep sweep;
    const struct contender column = {"wfbp", baselines_find("wfbp"), NULL};
    struct grid grid = run(&w, "workers=1,8", &sweep, 1, &column);
    const struct grid_point *one = &grid.points[0], *eight = &grid.points[1];
    assert_close(one->alone_us, 3000, 1e-12);   /* 6,000 us at compute_scale 0.5 */
    assert_close(eight->alone_us, 3000, 1e-12); /* the fastest counts, not the two of 0.8 */
    assert_close(grid_measured(one, GRID_SPEEDUP, grid.cells[0].iteration_us), 1, 1e-9);
    assert_close(grid_measured(one, GRID_EFFICIENCY, grid.cells[0].iteration_us), 100, 1e-9);
    assert_close(grid_measured(eight, GRID_SPEEDUP, 6000), 4, 1e-12);
    assert_close(grid_measured(eight, GRID_EFFICIENCY, 6000), 50, 1e-12);
    assert_close(grid_measured(eight, GRID_THROUGHPUT, 6000), 8 * 8 / 6e-3, 1e-12);
    assert_close(grid_measured(eight, GRID_TIME, 6000), 6, 1e-12);
    grid_release(&grid);
    world_release(&w);
}

static void a_strategy_that_cannot_run_leaves_its_cells_empty(void **state) {
    (void)state;
    struct world w = world_of();
    struct sweep sweep;
    const struct contender columns[] = {{"small", &small, NULL}, {"never", &never, NULL}};
    char line[256];
    const char *path = test_file("empty.csv", "");
    log_set_level(LOG_QUIET);
    struct grid grid = run(&w, "workers=4,8", &sweep, 2, columns);
    assert_true(grid.cells[0].there);
    assert_false(grid.cells[1].there || grid.cells[2].there || grid.cells[3].there);
    assert_ok(grid_write_csv(&grid, path, &err));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t n = 0;
    for (; fgets(line, sizeof line, file); n++) {
        size_t commas = 0;
        for (const char *at = line; *at; at++)
            commas += *at == ',';
        assert_int_equal(commas, 9);
        assert_true(n != 2 || !strncmp(line, "workers,4,4,never,,,,,", 22));
        assert_true(n != 3 || !strncmp(line, "workers,8,8,small,,,,,", 22));
    }
    assert_int_equal(n, 1 + 4);
    fclose(file);
    grid_release(&grid);

    assert_ok(sweep_parse("workers=8", &sweep, &err));
    assert_fails(grid_run(&sweep, &w.model, &w.cluster, columns, 2, &(struct grid_options){0}, &grid, &err),
                 ST_INFEASIBLE, "no strategy");
    log_set_level(LOG_INFO);
    world_release(&w);
}

static void a_value_that_cannot_be_is_said_before_anything_runs(void **state) {
    (void)state;
    struct world w = world_of();
    struct sweep sweep;
    struct grid grid;
    const struct contender column = {"small", &small, NULL};
    times_built = 0;
    assert_ok(sweep_parse("workers=4,20000", &sweep, &err));
    assert_fails(grid_run(&sweep, &w.model, &w.cluster, &column, 1, &(struct grid_options){0}, &grid, &err),
                 ST_TOO_LARGE, "20000");
    assert_int_equal(times_built, 0);
    world_release(&w);
}

static void every_measure_makes_a_chart_and_other_words_none(void **state) {
    (void)state;
    static const char *const words[] = {"time", "throughput", "speedup", "efficiency"};
    struct world w = world_of();
    struct sweep sweep;
    char text[1 << 16];
    const struct contender column = {"wfbp", baselines_find("wfbp"), NULL};
    const char *path = test_file("chart.svg", "");
    struct grid grid = run(&w, "bandwidth=1..8x2", &sweep, 1, &column);
    for (int m = 0; m < GRID_MEASURES; m++) {
        enum grid_measure measure = GRID_MEASURES;
        assert_ok(grid_parse_measure(words[m], &measure, &err));
        assert_int_equal(measure, m);
        assert_ok(grid_write_plot(&grid, measure, path, &err));
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
        assert_contains(text, "Gbit/s of every NIC");
        assert_contains(text, ">wfbp</text>");
        assert_contains(text, ">lower bound</text>");
        assert_contains(text, ">linear scaling</text>");
    }
    enum grid_measure measure;
    assert_fails(grid_parse_measure("cost", &measure, &err), ST_USAGE, "none of time");
    grid_release(&grid);
    world_release(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cell_is_the_prediction_of_its_own_cluster),
        cmocka_unit_test(measures_are_relative_to_one_device_alone),
        cmocka_unit_test(a_strategy_that_cannot_run_leaves_its_cells_empty),
        cmocka_unit_test(a_value_that_cannot_be_is_said_before_anything_runs),
        cmocka_unit_test(every_measure_makes_a_chart_and_other_words_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
