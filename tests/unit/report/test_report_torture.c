/* Markup, charts and lanes when memory runs out at any point: an error or a whole text, and nothing leaks. */
#include <stdlib.h>

#include "report/html.h"
#include "report/lanes.h"
#include "strategy/baselines/baselines.h"
#include "tests/support/torture.h"
#include "tests/unit/tuner/simulated_world.h"

static enum status write_page(void *arg, struct error *err) {
    static const char *const heads[] = {"a", ">b", NULL};
    const struct chart_trial trials[] = {
        {.number = 1, .strategy = "s", .proposer = "p", .measured_us = 1e3, .predicted_us = 900}};
    const struct chart_progress progress = {1, trials, "b", 1100, 500};
    struct markup m = {0};
    struct html_table t;
    char *text;
    (void)arg;
    html_page_begin(&m, "title", NULL);
    html_leaff(&m, "p", NULL, "%2000d", 1);
    chart_progress(&m, "p", &progress);
    chart_accuracy(&m, "a", 1, trials);
    html_table_begin(&t, &m, "caption", heads);
    for (int i = 0; i < 2000; i++)
        html_cell(&t, "cell");
    html_table_end(&t);
    html_page_end(&m);
    enum status st = markup_take(&m, &text, NULL, err);
    if (!st)
        free(text);
    return st;
}

static void a_page_is_written_whole_or_fails(void **state) {
    (void)state;
    assert_true(torture(write_page, NULL) > 3);
}

static enum status draw_lanes(void *arg, struct error *err) {
    struct world *w = arg;
    struct predictor p;
    struct strategy s = {0};
    struct arena arena = {0};
    struct chart_timeline t[2];
    struct markup m = {0};
    char *text = NULL;
    enum status st = predictor_init(&p, &w->model, &w->cluster, err);
    if (st)
        return st;
    st = baselines_build(baselines_find("bytescheduler-ps"), &w->model, &w->cluster, &s, err);
    if (!st)
        st = lanes_of(&p, &s, 2, &arena, &t[0], err);
    if (!st) {
        t[1] = t[0];
        chart_timelines(&m, "t", 2, t);
        st = markup_take(&m, &text, NULL, err);
    }
    free(text);
    strategy_release(&s);
    arena_release(&arena);
    predictor_release(&p);
    return st;
}

static void a_timeline_is_drawn_whole_or_fails(void **state) {
    assert_true(torture(draw_lanes, *state) > 10);
}

int main(void) {
    (void)simulated_run; /* nothing is tried here */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_is_written_whole_or_fails),
        cmocka_unit_test_setup_teardown(a_timeline_is_drawn_whole_or_fails, world_set_up, world_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
