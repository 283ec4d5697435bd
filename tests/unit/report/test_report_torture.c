/* Markup, charts and lanes when memory runs out at any point: an error or a whole text, and nothing leaks. */
#include <stdlib.h>

#include "report/explained.h"
#include "report/html.h"
#include "report/lanes.h"
#include "report/report.h"
#include "strategy/baselines/baselines.h"
#include "tests/support/torture.h"
#include "tests/unit/interop/rank_traces.h"
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

static enum status write_explained(void *arg, struct error *err) {
    static const struct explained_floor none = {0};
    char *text;
    size_t length;
    enum status st = explained_page(arg, &none, &text, &length, err);
    if (!st)
        free(text);
    return st;
}

static void an_explanation_is_written_whole_or_fails(void **state) {
    (void)state;
    struct rank_text text = {0};
    struct explanation e;
    struct error err;
    rank_begin(&text, 0, 1);
    rank_step(&text, false, 0, 0, 900);
    rank_gloo(&text, 10, 100, 400);
    const struct source source = rank_end(&text);
    assert_ok(explanation_of(1, &source, &e, &err));
    assert_true(torture(write_explained, &e) > 5);
    explanation_release(&e);
    free(text.text);
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

static const char STORMY[] =
    "{\"schema\":\"syncopate.cluster/"
    "1\",\"name\":\"stormy\",\"nodes\":[{\"name\":\"n\",\"count\":2,\"nic_gbit_per_s\":1}],"
    "\"variability\":{\"network\":{\"every_us\":30000,\"rates\":[{\"gbit_per_s\":0.5,\"share\":0.5},{\"gbit_per_s\":1,"
    "\"share\":0.5}]},\"compute\":{\"share\":0.5,\"factor\":2}}}";

struct storm {
    const struct model *model;
    struct cluster cluster;
};

static enum status draw_strategy(struct predictor *p, const char *name, struct error *err) {
    struct strategy s;
    struct arena arena = {0};
    struct chart_timeline t;
    struct delays delays = {.name = name, .measured = {.of_delay = {1, 2}}, .trials = 1};
    struct markup m = {0};
    char *text = NULL;
    enum status st = baselines_build(baselines_find(name), p->model, p->cluster, &s, err);
    if (st)
        return st;
    st = lanes_of(p, &s, 2, &arena, &t, err);
    if (!st && t.updates_of)
        st = delays_predict(p, &s, &delays.predicted, err);
    if (!st) {
        markup_begin(&m, "main");
        chart_timelines(&m, "t", 1, &t);
        report_delays(&m, 1, &delays);
        markup_end(&m);
        st = markup_take(&m, &text, NULL, err);
    }
    markup_release(&m);
    free(text);
    strategy_release(&s);
    arena_release(&arena);
    return st;
}

static enum status draw_weather(void *arg, struct error *err) {
    struct storm *storm = arg;
    struct predictor p;
    enum status st = predictor_init_in_weather(&p, storm->model, &storm->cluster, 3, err);
    if (st)
        return st;
    st = draw_strategy(&p, "ps", err);
    if (!st)
        st = draw_strategy(&p, "async-ps", err);
    predictor_release(&p);
    return st;
}

static void weather_and_delays_are_drawn_whole_or_fail(void **state) {
    struct world *w = *state;
    struct error err;
    struct storm storm = {.model = &w->model};
    cJSON *json;
    read_text(STORMY, &json);
    assert_ok(cluster_read(json, "stormy", &storm.cluster, &err));
    cJSON_Delete(json);
    assert_true(torture(draw_weather, &storm) > 30);
    cluster_release(&storm.cluster);
}

int main(void) {
    (void)simulated_run; /* nothing is tried here */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_is_written_whole_or_fails),
        cmocka_unit_test(an_explanation_is_written_whole_or_fails),
        cmocka_unit_test_setup_teardown(weather_and_delays_are_drawn_whole_or_fail, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(a_timeline_is_drawn_whole_or_fails, world_set_up, world_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
