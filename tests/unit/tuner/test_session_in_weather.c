/* Sessions in weather, against a simulated cluster that plays the weather of each order. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "dataset/query.h"
#include "tests/support/check.h"
#include "tests/support/dataset/place.h"
#include "tests/unit/tuner/tune_in_dataset.h"
#include "tuner/predict/predictor.h"
#include "tuner/session/session_internal.h"
#include "tuner/session/tune.h"

enum { MOST = 2000, SEED = 5 };

static const char MODEL[] =
    "{\"schema\":\"syncopate.model/1\",\"name\":\"toy\",\"batch_per_device\":8,\"variables\":["
    "{\"name\":\"a\",\"shape\":[64,64],\"dtype\":\"f32\"},{\"name\":\"b\",\"shape\":[256,1024],\"dtype\":\"f32\"},"
    "{\"name\":\"c\",\"shape\":[512,512],\"dtype\":\"f32\"}],"
    "\"layers\":[{\"name\":\"l1\",\"forward_us\":2000,\"backward_us\":4000,\"variables\":[\"a\"]},"
    "{\"name\":\"l2\",\"forward_us\":3000,\"backward_us\":5000,\"variables\":[\"b\"]},"
    "{\"name\":\"l3\",\"forward_us\":1000,\"backward_us\":3000,\"variables\":[\"c\"]}]}";
static const char CLUSTER[] =
    "{\"schema\":\"syncopate.cluster/1\",\"name\":\"three\",\"nodes\":[{\"name\":\"n\",\"count\":3,"
    "\"nic_gbit_per_s\":1,\"nic_latency_us\":50}],\"runtime\":{\"message_us\":100,\"push_us\":200},"
    "\"variability\":{\"network\":{\"every_us\":500000,\"rates\":[{\"gbit_per_s\":0.2,\"share\":0.3},"
    "{\"gbit_per_s\":1,\"share\":0.7}]},\"compute\":{\"share\":0.1,\"factor\":3}}}";

/* A cluster whose costs differ from its description. */
struct world {
    struct model model;
    struct cluster cluster;
    struct predictor truth; /* its plan, cost and timeline are used in the weather of each order */
    double times[MOST];
    uint64_t warmup, n; /* of the run under way */
    uint64_t runs, die_after, seeds[MOST];
    char environment[64];
};

static void take(void *context, double us) {
    struct world *w = context;
    if (w->warmup > 0)
        w->warmup--;
    else
        w->times[w->n++] = us;
}

static enum status run(void *context, const struct tune_order *order, struct tune_outcome *out, struct error *err) {
    struct world *w = context;
    struct prediction prediction;
    if (w->die_after && w->runs == w->die_after)
        return error_set(err, ST_CANCELLED, "stopped by the test");
    w->seeds[w->runs++] = order->weather;
    w->warmup = order->warmup;
    w->n = 0;
    assert_true(order->weather > 0 && order->give_up_us <= 0);
    const struct timeline_options options = {.weather = true,
                                             .seed = order->weather,
                                             .passes = (uint32_t)(order->warmup + order->iterations),
                                             .iteration = take,
                                             .context = w};
    enum status st = plan_relower(&w->truth.plan, &w->model, &w->truth.corrected, order->strategy, err);
    if (!st)
        st = timeline_run(w->truth.timeline, &w->truth.plan, &w->truth.cost, &options, &prediction, err);
    snprintf(w->environment, sizeof w->environment, "{\"weather\":%lu}", (unsigned long)order->weather);
    *out = (struct tune_outcome){
        .state = RECORD_COMPLETE, .n = w->n, .iterations_us = w->times, .environment = w->environment};
    return st;
}

static int set_up(void **state) {
    static struct world w;
    struct error err;
    cJSON *json;
    w = (struct world){0};
    assert_ok(json_parse(MODEL, strlen(MODEL), "test", &json, &err));
    assert_ok(model_read(json, "model", &w.model, &err));
    cJSON_Delete(json);
    assert_ok(json_parse(CLUSTER, strlen(CLUSTER), "test", &json, &err));
    assert_ok(cluster_read(json, "cluster", &w.cluster, &err));
    cJSON_Delete(json);
    assert_ok(predictor_init_in_weather(&w.truth, &w.model, &w.cluster, SEED, &err));
    assert_ok(predictor_correct(&w.truth, (struct correction){1.5, 1.2}, &err));
    *state = &w;
    return 0;
}

static int tear_down(void **state) {
    struct world *w = *state;
    predictor_release(&w->truth);
    model_release(&w->model);
    cluster_release(&w->cluster);
    return 0;
}

static struct tune_options options_of(uint64_t trials) {
    struct tune_options o = tune_default_options();
    o.trials = trials;
    o.seed = SEED;
    o.kept.weather = SEED;
    o.kept.trial_us = 2e6;
    o.evaluations = 20; /* enough where nothing depends on what the search finds */
    return o;
}

static enum status tune(struct world *w, const char *name, const struct tune_options *options, const char *resume,
                        struct outcome *out, struct error *err) {
    const struct tune_runner runner = {"simulated", w, run};
    w->runs = 0;
    return tune_in_dataset(name, &w->model, &w->cluster, &runner, options, resume, out, err);
}

static void trials_of_a_round_run_in_the_same_weather(void **state) {
    struct world *w = *state;
    struct error err;
    struct outcome t;
    struct tune_options o = options_of(26);
    assert_ok(tune(w, "rounds", &o, NULL, &t, &err));
    assert_int_equal(w->runs, 26);
    assert_int_equal(t.n_trials, 26);
    for (size_t i = 0; i < t.n_trials; i++) {
        assert_int_equal(w->seeds[i], SEED + t.trials[i].round);
        assert_int_equal(trial_weather(&t.trials[i]), SEED + t.trials[i].round);
    }
    outcome_release(&t);
}

/* The ratio of two rows by the slow way. */
static double ratio_of(const struct outcome *o, size_t a, size_t b) {
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < o->n_trials; i++)
        for (size_t k = 0; k < o->n_trials; k++) {
            const struct record *x = &o->trials[i], *y = &o->trials[k];
            if (!x->round || x->round != y->round || strcmp(x->strategy, o->rows[a].strategy) != 0 ||
                strcmp(y->strategy, o->rows[b].strategy) != 0)
                continue;
            sum += log(x->mean_us / y->mean_us);
            n++;
        }
    return exp(sum / (double)n);
}

static void the_answer_is_the_least_mean_and_says_what_the_quiet_best_loses(void **state) {
    struct world *w = *state;
    struct error err;
    struct outcome t;
    struct tune_options o = options_of(26);
    o.evaluations = 100;
    assert_ok(tune(w, "answer", &o, NULL, &t, &err));
    assert_int_equal(t.weather.seed, SEED);
    const struct outcome_row *best = &t.rows[t.best], *quiet = &t.rows[t.weather.quiet];
    assert_true(best->final && quiet->final && t.rows[t.baseline].final);
    assert_close(best->us, best->measured.mean_us, 0);
    assert_true(best->us < best->p95_us && best->measured.low_us < best->us && best->us < best->measured.high_us);
    for (size_t i = 0; i < t.n_rows; i++) {
        assert_true(!t.rows[i].final || t.rows[i].us >= best->us);
        assert_true(t.rows[i].quiet_us >= quiet->quiet_us);
        assert_true(t.rows[i].predicted_us > t.rows[i].quiet_us);
    }
    assert_int_equal(t.weather.loss.n, 3);
    assert_close(t.weather.loss.mean, ratio_of(&t, t.weather.quiet, t.best), 1e-9);
    assert_close(t.speedup, ratio_of(&t, t.baseline, t.best), 1e-9);
    assert_true(t.weather.loss.low <= t.weather.loss.mean && t.weather.loss.mean <= t.weather.loss.high);
    assert_true(best->expected.seeds == EXPECTATION_SEEDS && quiet->expected.seeds == EXPECTATION_SEEDS);
    outcome_release(&t);
}

static void an_outcome_in_weather_is_read_as_it_was_written(void **state) {
    struct world *w = *state;
    struct error err;
    struct outcome t, read;
    struct tune_options o = options_of(20);
    assert_ok(tune(w, "json", &o, NULL, &t, &err));
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "session", t.session.id);
    cJSON_AddNumberToObject(json, "trials", (double)t.ended);
    cJSON_AddNumberToObject(json, "lower_bound_us", t.lower_bound_us);
    assert_true(outcome_write(&t, json) && outcome_write_lessons(&t, json));
    assert_ok(outcome_read(json, NULL, NULL, &read, &err));
    assert_int_equal(read.weather.seed, t.weather.seed);
    assert_int_equal(read.weather.quiet, t.weather.quiet);
    assert_int_equal(read.weather.loss.n, t.weather.loss.n);
    assert_close(read.weather.loss.mean, t.weather.loss.mean, 0);
    for (size_t i = 0; i < t.n_rows; i++) {
        assert_close(read.rows[i].us, t.rows[i].us, 0);
        assert_close(read.rows[i].p95_us, t.rows[i].p95_us, 0);
        assert_close(read.rows[i].quiet_us, t.rows[i].quiet_us, 0);
        assert_close(read.rows[i].expected.mean_us, t.rows[i].expected.mean_us, 0);
    }
    outcome_release(&read);
    outcome_release(&t);
    cJSON_Delete(json);
}

/* A round is one sample, which has no interval: its ends are the mean, and stay out of what is written. */
static void one_round_has_no_interval(void **state) {
    struct world *w = *state;
    struct error err;
    for (uint64_t rounds = 1; rounds <= 2; rounds++) {
        struct outcome t, read;
        struct tune_options o = options_of(20);
        o.kept.final_rounds = rounds;
        assert_ok(tune(w, rounds > 1 ? "two" : "one", &o, NULL, &t, &err));
        assert_true(t.rows[t.best].final);
        assert_int_equal(outcome_row_has_interval(&t.rows[t.best]), rounds > 1);
        cJSON *json = cJSON_CreateObject();
        cJSON_AddStringToObject(json, "session", t.session.id);
        cJSON_AddNumberToObject(json, "trials", (double)t.ended);
        cJSON_AddNumberToObject(json, "lower_bound_us", t.lower_bound_us);
        assert_true(outcome_write(&t, json) && outcome_write_lessons(&t, json));
        const cJSON *best = cJSON_GetObjectItemCaseSensitive(json, "best");
        assert_true(cJSON_HasObjectItem(best, "measured_us"));
        assert_int_equal(cJSON_HasObjectItem(best, "low_us"), rounds > 1);
        assert_int_equal(cJSON_HasObjectItem(best, "high_us"), rounds > 1);
        assert_ok(outcome_read(json, NULL, NULL, &read, &err));
        for (size_t i = 0; i < t.n_rows; i++) {
            assert_int_equal(outcome_row_has_interval(&read.rows[i]), outcome_row_has_interval(&t.rows[i]));
            assert_close(read.rows[i].measured.low_us, t.rows[i].measured.low_us, 0);
            assert_close(read.rows[i].measured.high_us, t.rows[i].measured.high_us, 0);
        }
        outcome_release(&read);
        outcome_release(&t);
        cJSON_Delete(json);
    }
}

static void an_interrupted_session_goes_on_as_if_nothing_had_happened(void **state) {
    struct world *w = *state;
    struct error err;
    struct outcome whole, resumed;
    struct tune_options o = options_of(20);
    assert_ok(tune(w, "whole", &o, NULL, &whole, &err));
    for (uint64_t stop = 3; stop < 20; stop += 5) {
        char name[32], file[4096];
        struct store *store;
        struct arena arena = {0};
        struct stored_session *sessions;
        size_t n;
        snprintf(name, sizeof name, "stop%lu", (unsigned long)stop);
        w->die_after = stop;
        assert_fails(tune(w, name, &o, NULL, &resumed, &err), ST_CANCELLED, "--resume");
        w->die_after = 0;
        snprintf(file, sizeof file, "%s", dataset_path("%s.db", name));
        assert_ok(store_open(file, STORE_READ_ONLY, &store, &err));
        assert_ok(store_session_list(store, 0, 0, &arena, &n, &sessions, &err));
        store_close(store);
        assert_ok(tune(w, name, &o, sessions[0].id, &resumed, &err));
        assert_int_equal(w->runs, 20 - stop);
        assert_int_equal(resumed.n_rows, whole.n_rows);
        for (size_t i = 0; i < whole.n_rows; i++)
            assert_string_equal(resumed.rows[i].strategy, whole.rows[i].strategy);
        assert_close(resumed.rows[resumed.best].us, whole.rows[whole.best].us, 0);
        assert_close(resumed.weather.loss.mean, whole.weather.loss.mean, 0);
        outcome_release(&resumed);
        arena_release(&arena);
    }
    outcome_release(&whole);
}

static size_t earlier_of(struct world *w, struct store *store, uint64_t weather) {
    struct error err;
    struct session *s;
    struct tune_options o = options_of(20);
    o.kept.weather = weather;
    o.kept.launch.runner = "simulated";
    assert_ok(session_prepare(&w->model, &w->cluster, &o, &s, &err));
    assert_ok(session_begin(s, store, &err));
    const size_t n = s->n_earlier;
    session_close(s);
    return n;
}

static void trials_of_other_weather_are_not_learned_from(void **state) {
    struct world *w = *state;
    struct error err;
    struct outcome t;
    struct store *store;
    struct tune_options o = options_of(8);
    char file[4096];
    assert_ok(tune(w, "earlier", &o, NULL, &t, &err));
    const size_t n = t.n_rows;
    outcome_release(&t);
    snprintf(file, sizeof file, "%s", dataset_path("earlier.db"));
    assert_ok(store_open(file, STORE_READ_WRITE, &store, &err));
    assert_int_equal(earlier_of(w, store, SEED), n);
    assert_int_equal(earlier_of(w, store, SEED + 100), 0);
    store_close(store);
}

static void weather_must_fit_the_cluster_and_takes_no_ranker(void **state) {
    struct world *w = *state;
    struct error err;
    struct session *s;
    struct tune_options o = options_of(8);
    o.ranker = (const struct ranker *)w; /* whichever */
    assert_fails(session_prepare(&w->model, &w->cluster, &o, &s, &err), ST_INVALID, "rankers know no weather");
    o.ranker = NULL;
    o.kept.weather = 0;
    assert_fails(session_prepare(&w->model, &w->cluster, &o, &s, &err), ST_INVALID, "has \"variability\"");
    w->cluster.variability.given = false;
    o.kept.weather = 1;
    assert_fails(session_prepare(&w->model, &w->cluster, &o, &s, &err), ST_INVALID, "no \"variability\"");
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(trials_of_a_round_run_in_the_same_weather),
        T(the_answer_is_the_least_mean_and_says_what_the_quiet_best_loses),
        T(an_outcome_in_weather_is_read_as_it_was_written),
        T(one_round_has_no_interval),
        T(an_interrupted_session_goes_on_as_if_nothing_had_happened),
        T(trials_of_other_weather_are_not_learned_from),
        T(weather_must_fit_the_cluster_and_takes_no_ranker),
    };
#undef T
    return cmocka_run_group_tests(tests, NULL, NULL);
}
