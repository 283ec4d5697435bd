/* What a report shows of weather, delays and drops: lanes of the simulator's own run, rates of the weather that was
 * drawn, and counts that lose no update. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/describe.h"
#include "report/delays.h"
#include "report/lanes.h"
#include "report/rates.h"
#include "report/report.h"
#include "simulator/tuned.h"
#include "strategy/weather.h"
#include "tests/unit/report/strict_xml.h"
#include "tests/unit/tuner/simulated_world.h"

static const char STORMY[] =
    "{\"schema\":\"syncopate.cluster/"
    "1\",\"name\":\"stormy\",\"nodes\":[{\"name\":\"n\",\"count\":4,\"nic_gbit_per_s\":1,"
    "\"nic_latency_us\":50}],\"variability\":{\"network\":{\"every_us\":300000,\"rates\":[{\"gbit_per_s\":0.25,"
    "\"share\":0.3},{\"gbit_per_s\":1,\"share\":0.7}]},\"compute\":{\"share\":0.3,\"factor\":4}}}";

static void read_cluster(const char *text, struct cluster *out) {
    struct error err;
    cJSON *json;
    read_text(text, &json);
    assert_ok(cluster_read(json, "stormy", out, &err));
    cJSON_Delete(json);
}

static double length_of(const struct chart_lane *lane, int kind) {
    double sum = 0;
    for (size_t i = 0; i < lane->n; i++)
        sum += kind < 0 || (int)lane->spans[i].kind == kind ? lane->spans[i].end_us - lane->spans[i].start_us : 0;
    return sum;
}

/* Every lane lies in the window, and computing and waiting fill it. */
static void expect_sound_lanes(const struct chart_timeline *t) {
    assert_true(t->n_lanes > 0 && t->window_us > 0 && t->iteration_us > 0);
    for (size_t l = 0; l < t->n_lanes; l++) {
        const struct chart_lane *lane = &t->lanes[l];
        const bool messages = lane->n && lane->spans[0].kind == CHART_MESSAGE;
        for (size_t i = 0; i < lane->n; i++) {
            assert_true(lane->spans[i].start_us >= 0 && lane->spans[i].end_us <= t->window_us + 1e-6);
            assert_true(lane->spans[i].start_us <= lane->spans[i].end_us);
            assert_true(!i || lane->spans[i].start_us >= lane->spans[i - 1].start_us - 1e-6);
        }
        if (!messages)
            assert_true(fabs(length_of(lane, -1) - t->window_us) < 1 + 0.5 * (double)lane->n);
    }
    for (size_t i = 0; i < t->n_starts; i++)
        assert_true(t->starts_us[i] > (i ? t->starts_us[i - 1] : 0) && t->starts_us[i] < t->window_us);
}

/* The rates of a lane are those of strategy/weather.h, away from where they change. */
static void expect_rates(const struct cluster *cluster, const struct chart_timeline *t) {
    double drawn[4 * WEATHER_NUMBERS];
    for (size_t l = 0; l < t->weather.n_rates; l++) {
        const struct chart_rates *rates = &t->weather.rates[l];
        size_t i = 0;
        for (int k = 0; k < 400; k++) {
            const double at = (k + 0.5) / 400 * t->window_us, near = t->window_us / 400;
            struct weather w = {.cluster = cluster, .seed = t->weather.seed, .gbit_per_s = drawn};
            weather_begin(&w);
            while (weather_next_us(&w) <= t->weather.from_us + at - near)
                weather_advance(&w);
            if (weather_next_us(&w) <= t->weather.from_us + at + near)
                continue;
            while (i + 1 < rates->n && rates->rates[i + 1].from_us <= at)
                i++;
            const size_t port =
                (size_t)(rates->node[1] - '1') * DIRECTION_COUNT + (strcmp(rates->direction, "in") == 0);
            assert_string_equal(direction_name((enum direction)(port % DIRECTION_COUNT)), rates->direction);
            assert_close(rates->rates[i].gbit_per_s, drawn[port], 1e-6);
        }
    }
}

/* Of every baseline, over several seeds. What is shown holds the first change, or is right before it. */
static void lanes_in_weather_are_around_its_first_change(void **state) {
    struct world *w = *state;
    struct error err;
    struct cluster stormy;
    size_t n, slow = 0, slowed_rates = 0;
    const struct baseline *rows = baselines_list(&n);
    read_cluster(STORMY, &stormy);
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct predictor p;
        assert_ok(predictor_init_in_weather(&p, &w->model, &stormy, seed, &err));
        for (size_t i = 0; i < n; i++) {
            struct strategy s;
            struct arena arena = {0};
            struct chart_timeline t;
            assert_ok(tuned_build(&rows[i], &w->model, &stormy, &s, &err));
            assert_ok(lanes_of(&p, &s, LANES_NODES, &arena, &t, &err));
            expect_sound_lanes(&t);
            expect_rates(&stormy, &t);
            assert_int_equal(t.weather.seed, seed);
            assert_true(t.weather.from_us <= 300000 && t.weather.from_us + t.window_us > 300000 - 1);
            assert_int_equal(t.n_starts, LANES_ITERATIONS - 1);
            for (size_t l = 0; l < t.n_lanes; l++)
                slow += length_of(&t.lanes[l], CHART_SLOW) > 0;
            slowed_rates += t.weather.n_rates;
            arena_release(&arena);
            strategy_release(&s);
        }
        predictor_release(&p);
    }
    assert_true(slow > 10 && slowed_rates > 10);
    cluster_release(&stormy);
}

/* Quiet and stormy: gathers and sums by name, and the two passes, between which nothing else computes. */
static void lanes_of_sharded_parameters_name_what_moves(void **state) {
    struct world *w = *state;
    struct error err;
    struct cluster stormy;
    struct strategy s;
    read_cluster(STORMY, &stormy);
    assert_ok(strategy_init(&s, "fsdp", &w->model, w->model.n_variables, &err));
    for (uint32_t v = 0; v < w->model.n_variables; v++) {
        s.variables[v].group = v;
        s.groups[v].sharded = SHARDED_parameters;
    }
    assert_ok(strategy_seal(&s, &w->model, &stormy, &err));
    for (uint64_t seed = 0; seed < 2; seed++) {
        struct predictor p;
        struct arena arena = {0};
        struct chart_timeline t;
        size_t gathers = 0, sums = 0;
        if (seed)
            assert_ok(predictor_init_in_weather(&p, &w->model, &stormy, seed, &err));
        else
            assert_ok(predictor_init(&p, &w->model, &w->cluster, &err));
        assert_ok(lanes_of(&p, &s, LANES_NODES, &arena, &t, &err));
        expect_sound_lanes(&t);
        for (size_t l = 0; l < t.n_lanes; l++)
            for (size_t i = 0; i < t.lanes[l].n; i++) {
                const struct chart_span *span = &t.lanes[l].spans[i];
                gathers += span->label && strncmp(span->label, "all-gather, ", 12) == 0;
                sums += span->label && strncmp(span->label, "reduce-scatter, ", 16) == 0;
                assert_true(span->label || span->end_us > span->start_us);
                assert_true(span->shade < CHART_SHADES);
            }
        assert_true(sums >= w->model.n_variables && gathers >= 2 * (size_t)w->model.n_variables);
        arena_release(&arena);
        predictor_release(&p);
    }
    strategy_release(&s);
    cluster_release(&stormy);
}

/* A worker computes an iteration in one go, when it is slow in four times the time; and copies models and updates. */
enum { COPYING = 1000 };

static void expect_whole_iterations(const struct model *model, const struct chart_timeline *t) {
    const double each = model->forward_us + model->backward_us;
    for (size_t l = 0; l < t->n_lanes; l++)
        for (size_t i = 0; i < t->lanes[l].n; i++) {
            const struct chart_span *span = &t->lanes[l].spans[i];
            const bool whole = span->start_us > 0 && span->end_us < t->window_us;
            if (whole && (span->kind == CHART_WHOLE || span->kind == CHART_SLOW))
                assert_in_range(span->end_us - span->start_us - (span->kind == CHART_SLOW ? 4 * each : each), 0,
                                COPYING);
        }
}

static const char *const update_baselines[] = {"async-ps", "ssp", "mlfabric-a", "mlfabric-s"};

static void lanes_of_updates_in_weather_are_around_its_first_change(void **state) {
    struct world *w = *state;
    struct error err;
    struct cluster stormy;
    size_t slow = 0, held = 0;
    read_cluster(STORMY, &stormy);
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct predictor p;
        assert_ok(predictor_init_in_weather(&p, &w->model, &stormy, seed, &err));
        for (size_t i = 0; i < 4; i++) {
            struct strategy s;
            struct arena arena = {0};
            struct chart_timeline t;
            assert_ok(baselines_build(baselines_find(update_baselines[i]), &w->model, &stormy, &s, &err));
            assert_ok(lanes_of(&p, &s, LANES_NODES, &arena, &t, &err));
            expect_sound_lanes(&t);
            expect_rates(&stormy, &t);
            expect_whole_iterations(&w->model, &t);
            assert_true(t.weather.seed == seed && t.weather.from_us <= 300000);
            held += t.weather.from_us + t.window_us > 300000;
            for (size_t l = 0; l < t.n_lanes; l++)
                slow += length_of(&t.lanes[l], CHART_SLOW) > 0;
            arena_release(&arena);
            strategy_release(&s);
        }
        predictor_release(&p);
    }
    assert_true(slow > 10 && held >= 18); /* an iteration may be longer than four mean ones */
    cluster_release(&stormy);
}

/* Slow computation takes four times as long, and is what the weather says of that worker and iteration. */
static void slow_iterations_are_those_of_the_weather(void **state) {
    struct world *w = *state;
    struct error err;
    struct cluster stormy;
    struct predictor p;
    struct strategy s;
    struct arena arena = {0};
    struct chart_timeline t;
    read_cluster(STORMY, &stormy);
    stormy.variability.n_rates = 0;
    assert_ok(predictor_init_in_weather(&p, &w->model, &stormy, 5, &err));
    assert_ok(baselines_build(baselines_find("single"), &w->model, &stormy, &s, &err));
    assert_ok(lanes_of(&p, &s, LANES_NODES, &arena, &t, &err));
    assert_int_equal(t.weather.n_rates, 0);
    uint64_t first = 0; /* the first slow iteration of anybody, less one */
    while (weather_slowness(&stormy, 5, 0, first + 1) == 1 && weather_slowness(&stormy, 5, 1, first + 1) == 1 &&
           weather_slowness(&stormy, 5, 2, first + 1) == 1 && weather_slowness(&stormy, 5, 3, first + 1) == 1)
        first++;
    if (weather_slowness(&stormy, 5, 0, 0) > 1 || weather_slowness(&stormy, 5, 1, 0) > 1 ||
        weather_slowness(&stormy, 5, 2, 0) > 1 || weather_slowness(&stormy, 5, 3, 0) > 1)
        first = 0;
    bool shown[4] = {false};
    for (size_t l = 0; l < t.n_lanes; l++) {
        const uint32_t node = (uint32_t)(t.lanes[l].node[1] - '1');
        double slow_us = 0;
        if (strcmp(t.lanes[l].what, "compute") != 0)
            continue;
        shown[node] = true;
        for (uint64_t k = first; k < first + LANES_ITERATIONS; k++)
            slow_us += weather_slowness(&stormy, 5, node, k) > 1 ? 4 * (w->model.forward_us + w->model.backward_us) : 0;
        assert_close(length_of(&t.lanes[l], CHART_SLOW) + 1, slow_us + 1, 1e-6);
    }
    size_t slow = 0;
    for (uint32_t node = 0; node < 4; node++)
        for (uint64_t k = first; k < first + LANES_ITERATIONS; k++) {
            assert_true(shown[node] || weather_slowness(&stormy, 5, node, k) == 1); /* who holds all up is shown */
            slow += weather_slowness(&stormy, 5, node, k) > 1;
        }
    assert_true(slow > 0);
    arena_release(&arena);
    strategy_release(&s);
    predictor_release(&p);
    cluster_release(&stormy);
}

/* Without weather workers are alike: what one worker computes and waits makes up its iterations. */
static void lanes_of_updates_show_what_workers_do(void **state) {
    struct world *w = *state;
    const char *const *names = update_baselines;
    for (size_t i = 0; i < 4; i++) {
        struct error err;
        struct predictor p;
        struct strategy s;
        struct arena arena = {0};
        struct chart_timeline t;
        struct delay_counts counts = {0};
        assert_ok(predictor_init(&p, &w->model, &w->cluster, &err));
        assert_ok(baselines_build(baselines_find(names[i]), &w->model, &w->cluster, &s, &err));
        assert_ok(lanes_of(&p, &s, LANES_NODES, &arena, &t, &err));
        expect_sound_lanes(&t);
        assert_string_equal(t.updates_of, "n2"); /* n1 serves */
        assert_int_equal(t.weather.seed, 0);
        const double each = w->model.forward_us + w->model.backward_us;
        assert_true(t.iteration_us > each);
        double computed = 0;
        size_t received = 0;
        for (size_t l = 0; l < t.n_lanes; l++) {
            computed += strcmp(t.lanes[l].node, "n2") == 0 ? length_of(&t.lanes[l], CHART_WHOLE) : 0;
            received +=
                strcmp(t.lanes[l].node, "n1") == 0 && strcmp(t.lanes[l].what, "receives") == 0 ? t.lanes[l].n : 0;
        }
        assert_close(computed / LANES_ITERATIONS + t.waiting_us, t.iteration_us, 1e-3);
        assert_true(received > 0);
        assert_ok(delays_predict(&p, &s, &counts, &err));
        const struct delay_bars bars = delays_bars(1, &counts);
        assert_true(strcmp(names[i], "mlfabric-s") != 0 || bars.n == 1);
        arena_release(&arena);
        strategy_release(&s);
        predictor_release(&p);
    }
}

/* ---- delays ---- */

/* Random counts, predicted and measured: the bars are of equal width, at most DELAY_BARS, and nothing is lost. */
static void bars_hold_every_update(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int t = 0; t < 500; t++) {
        struct delay_counts counts[2] = {{.measured = false}, {.measured = true}};
        const size_t most[2] = {UPDATES_DELAYS, TRIAL_DELAYS};
        size_t largest = 0;
        for (size_t s = 0; s < 2; s++) {
            const size_t n = rng_below(&rng, (t % 3 ? most[s] : 20) + 1);
            for (size_t d = 0; d < n; d++)
                counts[s].of_delay[d] = (double)rng_below(&rng, 3);
            for (size_t d = 0; d < n; d++)
                largest = counts[s].of_delay[d] > 0 && d > largest ? d : largest;
            counts[s].dropped = (double)rng_below(&rng, 5);
            counts[s].late = (double)rng_below(&rng, 5);
        }
        const bool measured_open = counts[1].of_delay[TRIAL_DELAYS - 1] > 0;
        const struct delay_bars bars = delays_bars(2, counts);
        assert_true(bars.n >= 1 && bars.n <= DELAY_BARS && bars.width >= 1);
        assert_int_equal(bars.open, measured_open || counts[0].of_delay[UPDATES_DELAYS - 1] > 0);
        largest = measured_open ? TRIAL_DELAYS - 1 : largest;
        assert_true(bars.n * bars.width > largest && (bars.n - 1) * bars.width <= largest);
        for (size_t s = 0; s < 2; s++) {
            double sum = delays_share_dropped(&counts[s]), all = counts[s].dropped + counts[s].late;
            for (size_t d = 0; d < UPDATES_DELAYS; d++)
                all += counts[s].of_delay[d];
            for (size_t b = 0; b < bars.n; b++)
                sum += delays_share(&counts[s], &bars, b);
            assert_close(sum, all > 0 ? 1 : 0, 1e-9);
        }
    }
}

static void bars_say_which_delays_they_hold(void **state) {
    (void)state;
    char text[DELAY_BAR_TEXT];
    const struct delay_bars narrow = {5, 1, false}, wide = {9, 2, false}, open = {16, 4, true};
    assert_string_equal(delays_bar_text(&narrow, 4, text), "4");
    assert_string_equal(delays_bar_text(&wide, 4, text), "8-9");
    assert_string_equal(delays_bar_text(&open, 14, text), "56-59");
    assert_string_equal(delays_bar_text(&open, 15, text), "60+");
}

static bool add(const char *environment, struct delay_counts *sum) {
    const struct record record = {.environment_json = environment};
    return delays_add_record(&record, sum);
}

static void a_record_tells_what_its_trial_measured(void **state) {
    (void)state;
    struct delay_counts counts = {0};
    /* Two messages for each of 10 updates. */
    assert_true(
        add("{\"host\":\"a\",\"updates\":{\"useful\":10,\"dropped\":2,\"late\":1,\"delays\":[4,12,4]}}", &counts));
    assert_close(counts.of_delay[0], 2, 1e-9);
    assert_close(counts.of_delay[1], 6, 1e-9);
    assert_close(counts.of_delay[2], 2, 1e-9);
    assert_close(delays_share_dropped(&counts), 3.0 / 13, 1e-9);
    assert_true(add("{\"updates\":{\"useful\":3,\"delays\":[3]}}", &counts)); /* adds */
    assert_close(counts.of_delay[0], 5, 1e-9);
}

static void records_that_say_nothing_or_nonsense_are_not_counted(void **state) {
    (void)state;
    static const char *const texts[] = {NULL,
                                        "{}",
                                        "{\"updates\":3}",
                                        "{\"updates\":{}}",
                                        "{\"updates\":{\"useful\":-1,\"delays\":[1]}}",
                                        "{\"updates\":{\"useful\":1e300,\"delays\":[1]}}",
                                        "{\"updates\":{\"useful\":1,\"delays\":[1e999]}}",
                                        "{\"updates\":{\"useful\":\"a\",\"delays\":[1]}}"};
    struct delay_counts counts = {0};
    const struct delay_counts none = {0};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_false(add(texts[i], &counts));
    assert_memory_equal(&counts, &none, sizeof counts);
    assert_true(add("{\"updates\":{\"useful\":2,\"delays\":[-5,1]}}", &counts));
    assert_close(counts.of_delay[1], 2, 1e-9);
    assert_true(counts.of_delay[0] == 0);
}

static void the_section_has_both_in_a_picture_and_a_table(void **state) {
    (void)state;
    struct error err;
    struct markup m = {0};
    struct delays delays[2] = {
        {.name = "<first>", .predicted = {.of_delay = {6, 3}, .dropped = 1}},
        {.name = "second", .predicted = {.of_delay = {1}}, .measured = {.of_delay = {2, 1}, .late = 1}, .trials = 2}};
    char *text;
    report_delays(&m, 0, NULL);
    assert_int_equal(m.length, 0);
    report_delays(&m, 2, delays);
    assert_ok(markup_take(&m, &text, NULL, &err));
    expect_strict_xml(text);
    assert_contains(text, "10.0% of the updates are predicted to be dropped; no trial has measured it.");
    assert_contains(text, "0.0% of the updates are predicted to be dropped, 25.0% were dropped in 2 trials.");
    assert_contains(text, "delay 1, measured: 25.0%");
    assert_contains(text, "<td>dropped</td><td class=\"n\">0.0%</td><td class=\"n\">25.0%</td>");
    assert_contains(text, "&lt;first&gt;");
    free(text);
}

/* ---- a session ---- */

/* A session in the weather of seed 4 that tried two strategies, async-ps as a proposal of `proposer`; its trials say
 * what its updates did. */
static void record_session(const struct model *model, const struct cluster *cluster, const char *file,
                           const char *options, const char *proposer) {
    static const char *const names[] = {"async-ps", "wfbp", "async-ps"};
    struct error err;
    struct store *store;
    assert_ok(store_open(file, STORE_READ_WRITE, &store, &err));
    assert_ok(store_put_model(store, model, &err));
    assert_ok(store_put_cluster(store, cluster, &err));
    const struct stored_session session = {.id = "stormy",
                                           .model = model->id.hex,
                                           .cluster = cluster->id.hex,
                                           .budget = "{\"trials\":3}",
                                           .options = options};
    assert_ok(store_session_begin(store, &session, &err));
    for (size_t i = 0; i < 3; i++) {
        struct strategy s;
        int64_t trial;
        const double times[] = {i == 1 ? 2e5 : 1e5};
        assert_ok(baselines_build(baselines_find(names[i]), model, cluster, &s, &err));
        const struct trial_start start = {.model = model,
                                          .cluster = cluster,
                                          .strategy = &s,
                                          .session = "stormy",
                                          .proposer = i == 1 ? names[i] : proposer,
                                          .runner = "lab"};
        const struct tune_outcome outcome = {
            .state = RECORD_COMPLETE,
            .n = 1,
            .iterations_us = times,
            .environment =
                i != 1 ? "{\"weather\":4,\"updates\":{\"useful\":4,\"late\":1,\"delays\":[1,3]}}" : "{\"weather\":4}"};
        assert_ok(trial_record_start(store, &start, &trial, &err));
        assert_ok(trial_record_end(store, trial, &outcome, &err));
        strategy_release(&s);
    }
    store_close(store);
}

/* What was recorded in the storm by a session with these options. */
static void find_in_storm(const struct world *w, const char *name, const char *options, const char *proposer,
                          struct findings *out) {
    struct error err;
    struct cluster stormy;
    struct store *store;
    char file[4096];
    read_cluster(STORMY, &stormy);
    snprintf(file, sizeof file, "%s/%s.db", test_dir(), name);
    record_session(&w->model, &stormy, file, options, proposer);
    cluster_release(&stormy);
    assert_ok(store_open(file, STORE_READ_ONLY, &store, &err));
    assert_ok(findings_gather(store, "stormy", FINDINGS_ALL, out, &err));
    store_close(store);
}

/* A sound report that is not too long, for the caller to free. */
static char *report_of(struct findings *f) {
    struct error err;
    char *text;
    size_t length;
    assert_ok(report_write(f, "type this", &text, &length, &err));
    expect_strict_xml(text);
    assert_true(length < 200000);
    return text;
}

static void a_report_in_weather_has_rates_and_delays(void **state) {
    struct world *w = *state;
    struct findings f;
    find_in_storm(w, "stormy", "{\"weather\":4}", "async-ps", &f);
    assert_int_equal(f.n_timelines, 1); /* async-ps is the best and the best baseline */
    assert_int_equal(f.timelines[0].weather.seed, 4);
    assert_string_equal(f.timelines[0].updates_of, "n2");
    assert_int_equal(f.n_delays, 1);
    assert_int_equal(f.delays[0].trials, 2);
    assert_close(f.delays[0].measured.of_delay[1], 6, 1e-9);
    assert_close(f.delays[0].measured.late, 2, 1e-9);
    assert_true(f.delays[0].predicted.of_delay[0] + f.delays[0].predicted.of_delay[1] > 0);
    char *text = report_of(&f);
    assert_contains(text, "Simulated in weather 4, around the first change of a rate.");
    assert_contains(text, "The slowest NICs in what is shown");
    assert_contains(text, "20.0% were dropped in 2 trials.");
    assert_contains(text, "asynchronous");
    free(text);
    findings_release(&f);
}

/* The best is synchronous; the fastest whose models may be stale has lanes and delays beside it. */
static void a_session_that_tried_stale_models_shows_their_lanes_and_delays(void **state) {
    struct world *w = *state;
    struct findings f;
    find_in_storm(w, "stale", "{\"weather\":4,\"allow_stale\":3}", "stale", &f);
    assert_string_equal(f.outcome.rows[f.outcome.best].name, "wfbp");
    assert_int_equal(f.n_timelines, 1);
    assert_null(f.timelines[0].updates_of);
    assert_true(f.has_stale);
    assert_string_equal(f.stale.name, "async-ps");
    assert_string_equal(f.stale.updates_of, "n2");
    assert_int_equal(f.stale.weather.seed, 4);
    expect_sound_lanes(&f.stale);
    assert_int_equal(f.n_delays, 1);
    assert_string_equal(f.delays[0].name, "async-ps");
    assert_int_equal(f.delays[0].trials, 2);
    assert_close(f.delays[0].measured.of_delay[1], 6, 1e-9);
    assert_true(f.delays[0].predicted.of_delay[0] + f.delays[0].predicted.of_delay[1] > 0);
    char *text = report_of(&f);
    assert_contains(text, "Where the time goes with models that may be stale");
    assert_contains(text, "the fastest without updates took");
    assert_contains(text, "it is the time of a round; the line leaves them out.");
    assert_contains(text, "Simulated. Measured, a round of updates in the mean: 100 ms.");
    assert_contains(text, "20.0% were dropped in 2 trials.");
    free(text);
    findings_release(&f);
}

int main(void) {
    (void)simulated_run; /* nothing is tried here */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lanes_in_weather_are_around_its_first_change, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(lanes_of_sharded_parameters_name_what_moves, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(lanes_of_updates_in_weather_are_around_its_first_change, world_set_up,
                                        world_tear_down),
        cmocka_unit_test_setup_teardown(slow_iterations_are_those_of_the_weather, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(lanes_of_updates_show_what_workers_do, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(a_report_in_weather_has_rates_and_delays, world_set_up, world_tear_down),
        cmocka_unit_test_setup_teardown(a_session_that_tried_stale_models_shows_their_lanes_and_delays, world_set_up,
                                        world_tear_down),
        cmocka_unit_test(bars_hold_every_update),
        cmocka_unit_test(bars_say_which_delays_they_hold),
        cmocka_unit_test(a_record_tells_what_its_trial_measured),
        cmocka_unit_test(records_that_say_nothing_or_nonsense_are_not_counted),
        cmocka_unit_test(the_section_has_both_in_a_picture_and_a_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
