/* What a report says of a session is what the session says itself, and its timelines are the simulator's. */
#define WORLD_NODES "2"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/describe.h"
#include "dataset/query.h"
#include "report/lanes.h"
#include "report/report.h"
#include "simulator/tuned.h"
#include "tests/unit/report/strict_xml.h"
#include "tests/unit/tuner/simulated_world.h"
#include "tuner/session/trials.h"
#include "tuner/session/tune.h"

enum { MOST_BYTES = 200000 };

/* A session of so many trials in a new file; its id into `session`. */
static enum status run_session(struct world *w, const char *file, uint64_t trials, struct outcome *out,
                               char session[64], struct error *err) {
    struct store *store;
    struct arena arena = {0};
    struct stored_session *sessions;
    size_t n;
    const struct tune_runner runner = {"simulated", w, simulated_run};
    struct tune_options options = tune_default_options();
    options.trials = trials;
    options.kept.trial_us = 1e6;
    options.evaluations = 200;
    assert_int_equal(store_open(file, STORE_READ_WRITE, &store, err), ST_OK);
    enum status st = tune_run(store, &w->model, &w->cluster, &runner, &options, NULL, out, err);
    assert_int_equal(store_session_list(store, 0, 1, &arena, &n, &sessions, NULL), ST_OK);
    assert_int_equal(n, 1);
    snprintf(session, 64, "%s", sessions[0].id);
    arena_release(&arena);
    store_close(store);
    return st;
}

static void gather(const char *file, const char *session, enum findings_depth depth, struct findings *out) {
    struct error err;
    struct store *store;
    assert_ok(store_open(file, STORE_READ_ONLY, &store, &err));
    assert_ok(findings_gather(store, session, depth, out, &err));
    store_close(store);
}

static char *write_report(struct findings *f) {
    struct error err;
    char *text;
    size_t length;
    assert_ok(report_write(f, "type this", &text, &length, &err));
    assert_int_equal(length, strlen(text));
    expect_strict_xml(text);
    assert_true(length < MOST_BYTES);
    return text;
}

static void findings_are_what_the_session_answers(void **state) {
    struct world *w = *state;
    struct error err;
    struct outcome t;
    struct findings f;
    char file[4096], session[64];
    snprintf(file, sizeof file, "%s/findings.db", test_dir());
    assert_ok(run_session(w, file, 30, &t, session, &err));
    gather(file, session, FINDINGS_ALL, &f);
    assert_int_equal(f.outcome.n_trials, 30);
    assert_int_equal(f.outcome.n_rows, t.n_rows);
    assert_string_equal(f.outcome.rows[f.outcome.best].strategy, t.rows[t.best].strategy);
    assert_string_equal(f.outcome.rows[f.outcome.baseline].strategy, t.rows[t.baseline].strategy);
    assert_close(f.outcome.rows[f.outcome.best].measured.median_us, t.rows[t.best].measured.median_us, 1e-12);
    assert_close(f.outcome.rows[f.outcome.best].measured.low_us, t.rows[t.best].measured.low_us, 1e-12);
    assert_close(f.outcome.speedup, t.speedup, 1e-12);
    assert_true(f.outcome.speedup_low <= f.outcome.speedup && f.outcome.speedup <= f.outcome.speedup_high);
    assert_int_equal(f.outcome.overlap, t.overlap);
    assert_close(f.outcome.gap, t.gap, 1e-12);
    assert_close(f.outcome.lower_bound_us, t.lower_bound_us, 1e-12);
    assert_int_equal(f.outcome.has_importance, t.has_importance);
    for (size_t k = 0; k < SKETCH_KNOBS && f.outcome.has_importance; k++)
        assert_true(fabs(f.outcome.importance[k] - t.importance[k]) < 1e-6);
    for (size_t p = 0; p < PROPOSER_COUNT; p++) {
        assert_int_equal(f.outcome.proposers[p].tried, t.proposers[p].tried);
        assert_int_equal(f.outcome.proposers[p].wins, t.proposers[p].wins);
    }
    findings_release(&f);
    outcome_release(&t);
}

static void the_report_answers_first_and_is_one_small_well_formed_file(void **state) {
    struct world *w = *state;
    struct error err;
    struct outcome t;
    struct findings f;
    char file[4096], session[64];
    snprintf(file, sizeof file, "%s/report.db", test_dir());
    assert_ok(run_session(w, file, 30, &t, session, &err));
    gather(file, session, FINDINGS_ALL, &f);
    char *text = write_report(&f), *again = write_report(&f);
    assert_string_equal(text, again);
    const char *verdict = strstr(text, "class=\"verdict\"");
    assert_non_null(verdict);
    assert_true(verdict < strstr(text, "<svg"));
    assert_true(!strncmp(strstr(verdict, ">") + 1,
                         f.outcome.best == f.outcome.baseline ? "Nothing"
                         : f.outcome.overlap                  ? "No meas"
                                                              : "Use ",
                         4));
    if (f.outcome.best != f.outcome.baseline)
        assert_contains(text, "type this");
    for (size_t i = 0; i < f.outcome.n_trials; i++)
        assert_contains(text, f.outcome.trials[i].strategy_name);
    static const char *const charts[] = {"progress", "accuracy", "timelines", "importance", "proposers"};
    for (size_t i = 0; i < 5; i++) {
        char id[64];
        snprintf(id, sizeof id, "id=\"chart-%s-title\"", charts[i]);
        assert_int_equal(count_of(text, id), 1);
    }
    assert_null(strstr(text, "href=\"http"));
    assert_null(strstr(text, "src="));
    free(text);
    free(again);
    findings_release(&f);
    outcome_release(&t);
}

static void a_session_that_has_not_ended_has_a_report(void **state) {
    struct world *w = *state;
    struct error err;
    struct outcome t;
    struct findings f;
    char file[4096], session[64];
    snprintf(file, sizeof file, "%s/running.db", test_dir());
    w->die_after = 5;
    assert_int_equal(run_session(w, file, 20, &t, session, &err), ST_CANCELLED);
    gather(file, session, FINDINGS_ALL, &f);
    assert_true(f.outcome.n_trials >= 5 && f.outcome.n_trials < 20);
    char *text = write_report(&f);
    assert_contains(text, " of 20<");
    assert_contains(text, "Not confirmed");
    assert_null(strstr(text, "memory of a device, at most"));
    free(text);
    f.options.memory_bytes = 1 << 30;
    f.options.allow_sharded = SHARDED_gradients;
    f.options.allow_lossy = true;
    f.options.job.export_to = "fsdp2";
    f.outcome.session.state = STORED_SESSION_RUNNING; /* as while it goes on */
    text = write_report(&f);
    assert_contains(text, "\"verdict\">So far: ");
    assert_null(strstr(text, "Not confirmed"));
    assert_contains(text, "<td>memory of a device, at most</td><td>1 GiB</td>");
    assert_contains(text, "<td>sharded, at most</td><td>gradients</td>");
    assert_contains(text, "<td>gradients may lose precision</td><td>yes</td>");
    assert_contains(text, "<td>can be exported to</td><td>fsdp2</td>");
    free(text);
    findings_release(&f);
}

static void a_session_without_a_complete_trial_has_a_report(void **state) {
    struct world *w = *state;
    struct error err;
    struct outcome t;
    struct findings f;
    char file[4096], session[64];
    snprintf(file, sizeof file, "%s/failed.db", test_dir());
    w->all_fail = true;
    assert_int_equal(run_session(w, file, 4, &t, session, &err), ST_INFEASIBLE);
    gather(file, session, FINDINGS_ALL, &f);
    assert_true(f.outcome.best == SIZE_MAX && f.outcome.baseline == SIZE_MAX && isnan(f.outcome.speedup) &&
                f.n_timelines == 0);
    char *text = write_report(&f);
    assert_contains(text, "No trial has completed yet.");
    assert_contains(text, "the network is down");
    assert_null(strstr(text, ">nan"));
    assert_null(strstr(text, "nan%"));
    free(text);
    findings_release(&f);
}

/* The fastest of two strategies wins, though only the other was drawn twice. */
static void in_a_collection_repeats_are_no_final(void **state) {
    struct world *w = *state;
    struct error err;
    struct store *store;
    struct findings f;
    char file[4096];
    snprintf(file, sizeof file, "%s/collection.db", test_dir());
    assert_ok(store_open(file, STORE_READ_WRITE, &store, &err));
    assert_ok(store_put_model(store, &w->model, &err));
    assert_ok(store_put_cluster(store, &w->cluster, &err));
    const struct stored_session session = {
        .id = "drawn", .model = w->model.id.hex, .cluster = w->cluster.id.hex, .budget = "{}"};
    assert_ok(store_session_begin(store, &session, &err));
    static const char *const names[] = {"single", "wfbp", "single"};
    for (size_t i = 0; i < 3; i++) {
        struct strategy s;
        int64_t trial;
        const double times[] = {i == 1 ? 100 : 200 + (double)i};
        assert_ok(baselines_build(baselines_find(names[i]), &w->model, &w->cluster, &s, &err));
        const struct trial_start start = {.model = &w->model,
                                          .cluster = &w->cluster,
                                          .strategy = &s,
                                          .session = "drawn",
                                          .proposer = "collect-fast",
                                          .runner = "lab",
                                          .round = i / 2,
                                          .predicted_us = 150};
        const struct tune_outcome outcome = {.state = RECORD_COMPLETE, .n = 1, .iterations_us = times};
        assert_ok(trial_record_start(store, &start, &trial, &err));
        assert_ok(trial_record_end(store, trial, &outcome, &err));
        strategy_release(&s);
    }
    store_close(store);
    gather(file, "drawn", FINDINGS_FIGURES, &f);
    assert_true(f.outcome.collection);
    assert_string_equal(f.outcome.rows[f.outcome.best].name, "wfbp");
    assert_close(f.outcome.rows[0].measured.median_us, 201, 1e-12);
    assert_int_equal(f.outcome.rows[0].trials, 2);
    findings_release(&f);
}

static void a_session_that_is_not_there_is_said_so(void **state) {
    struct world *w = *state;
    struct error err;
    struct store *store;
    struct findings f;
    char file[4096];
    snprintf(file, sizeof file, "%s/none.db", test_dir());
    assert_ok(store_open(file, STORE_READ_WRITE, &store, &err));
    assert_fails(findings_gather(store, "none", FINDINGS_ALL, &f, &err), ST_NOT_FOUND, "none");
    store_close(store);
    (void)w;
}

/* ---- lanes ---- */

static double length_of(const struct chart_lane *lane, int kind) {
    double sum = 0;
    for (size_t i = 0; i < lane->n; i++)
        sum += kind < 0 || (int)lane->spans[i].kind == kind ? lane->spans[i].end_us - lane->spans[i].start_us : 0;
    return sum;
}

static void expect_lanes(struct world *w, const struct baseline *baseline) {
    struct error err;
    struct strategy s;
    struct arena arena = {0};
    struct chart_timeline t;
    struct prediction p;
    assert_ok(tuned_build(baseline, &w->model, &w->cluster, &s, &err));
    assert_ok(predictor_run(&w->truth, &s, &p, &err));
    assert_ok(lanes_of(&w->truth, &s, LANES_NODES, &arena, &t, &err));
    assert_close(t.iteration_us, p.iteration_us, 0.02);
    assert_close(t.predicted_us, consistency_is_plain(&s.consistency) ? p.iteration_us : 0, 1e-9);
    assert_string_equal(t.lanes[0].what, "compute");
    assert_close(length_of(&t.lanes[0], CHART_FORWARD) + length_of(&t.lanes[0], CHART_UPDATING),
                 p.compute_us - w->model.backward_us, 1e-6);
    assert_close(length_of(&t.lanes[0], CHART_BACKWARD), w->model.backward_us, 1e-6);
    assert_true(fabs(length_of(&t.lanes[0], CHART_WAITING) - t.waiting_us) < 1e-6);
    assert_true(fabs(length_of(&t.lanes[0], -1) - t.window_us) < 5); /* gaps below half a microsecond */
    bool any = false;
    for (size_t l = 0; l < t.n_lanes; l++) {
        const struct chart_lane *lane = &t.lanes[l];
        any |= lane->n && lane->spans[0].kind == CHART_MESSAGE;
        for (size_t i = 0; i < lane->n; i++) {
            assert_true(lane->spans[i].start_us >= 0 && lane->spans[i].end_us <= t.window_us + 1e-6);
            assert_true(lane->spans[i].start_us <= lane->spans[i].end_us);
            assert_true(!i || lane->spans[i].start_us >= lane->spans[i - 1].start_us);
            assert_true(lane->spans[i].kind != CHART_MESSAGE ||
                        (lane->spans[i].label && lane->spans[i].shade < CHART_SHADES));
        }
    }
    assert_true(any);
    arena_release(&arena);
    strategy_release(&s);
}

/* A lane of gathers and reduce-scatters is not called after all-reduces, and has the messages of one iteration. */
static void a_lane_has_the_messages_of_one_iteration(void **state) {
    static const struct {
        const char *baseline, *what;
    } cases[] = {
        {"wfbp", "all-reduce"}, {"fsdp-per-block", "collectives"}, {"zero-1", "collectives"}, {"dear", "collectives"}};
    struct world *w = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err;
        struct strategy s;
        struct arena arena = {0};
        struct chart_timeline t;
        size_t found = 0;
        assert_ok(tuned_build(baselines_find(cases[i].baseline), &w->model, &w->cluster, &s, &err));
        assert_ok(lanes_of(&w->truth, &s, LANES_NODES, &arena, &t, &err));
        for (size_t l = 0; l < t.n_lanes; l++)
            if (!strcmp(t.lanes[l].node, "all nodes")) {
                assert_string_equal(t.lanes[l].what, cases[i].what);
                assert_int_equal(t.lanes[l].n - t.lanes[l].before, w->truth.plan.n_messages);
                found++;
            }
        assert_int_equal(found, 1);
        arena_release(&arena);
        strategy_release(&s);
    }
}

static void lanes_of_every_baseline_fill_one_iteration(void **state) {
    struct world *w = *state;
    size_t n;
    const struct baseline *rows = baselines_list(&n);
    for (size_t i = 0; i < n; i++)
        expect_lanes(w, &rows[i]);
}

static void updates_are_computation(void **state) {
    static const char *const names[] = {"wfbp", "pace", "zero-1", "fsdp-per-block"};
    struct world *w = *state;
    w->model.update_us = w->model.forward_us;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        expect_lanes(w, baselines_find(names[i]));
    w->model.update_us = 0;
}

static void without_messages_an_iteration_is_its_computation(void **state) {
    struct world *w = *state;
    struct error err;
    cJSON *json;
    struct cluster one;
    struct predictor p;
    struct strategy s;
    struct arena arena = {0};
    struct chart_timeline t;
    read_text("{\"schema\":\"syncopate.cluster/1\",\"name\":\"one\",\"nodes\":[{\"name\":\"n\",\"count\":1,"
              "\"nic_gbit_per_s\":1}]}",
              &json);
    assert_ok(cluster_read(json, "one", &one, &err));
    cJSON_Delete(json);
    assert_ok(predictor_init(&p, &w->model, &one, &err));
    assert_ok(baselines_build(baselines_find("wfbp"), &w->model, &one, &s, &err));
    assert_ok(lanes_of(&p, &s, LANES_NODES, &arena, &t, &err));
    assert_close(t.iteration_us, w->model.forward_us + w->model.backward_us, 0.01);
    assert_int_equal(t.hidden, 0);
    arena_release(&arena);
    strategy_release(&s);
    predictor_release(&p);
    cluster_release(&one);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(findings_are_what_the_session_answers, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(the_report_answers_first_and_is_one_small_well_formed_file, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(a_session_that_has_not_ended_has_a_report, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(a_session_without_a_complete_trial_has_a_report, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(in_a_collection_repeats_are_no_final, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(a_session_that_is_not_there_is_said_so, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(a_lane_has_the_messages_of_one_iteration, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(lanes_of_every_baseline_fill_one_iteration, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(updates_are_computation, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(without_messages_an_iteration_is_its_computation, world_set_up,
                                        world_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
