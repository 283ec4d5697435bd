/* Sessions that may try stale models, on a simulated cluster. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dataset/query.h"
#include "simulator/bound.h"
#include "strategy/baselines/updates.h"
#include "tests/support/dataset/place.h"
#include "tests/unit/tuner/simulated_world.h"
#include "tests/unit/tuner/tune_in_dataset.h"
#include "tuner/session/session_internal.h"
#include "tuner/session/tune.h"

enum { STALE = 5, MOST_RUNS = 100 };
static const double PACE = 0.1; /* of rounds: they are faster than any synchronous strategy */

/* A world, and what the session asked of it. */
struct watched {
    struct world world;
    bool stale_fail, learn_nothing, found_stale[MOST_RUNS];
    uint64_t n, iterations[MOST_RUNS];
    char environment[512];
};

/* As a trial of updates would tell: figures that can be told apart by the trial's number. */
static void tell(struct watched *w, const struct tune_order *order, double us) {
    const bool in_step = order->strategy->consistency.kind == CONSISTENCY_synchronous;
    char reached[96] = "";
    if (!w->learn_nothing)
        snprintf(reached, sizeof reached, ",\"reached_update\":%d,\"reached_us\":%.17g", in_step ? 160 : 150,
                 150 / w->world.cluster.n_nodes * us);
    snprintf(w->environment, sizeof w->environment,
             "{\"updates\":{\"delay_mean\":%g,\"delay_variance\":2,\"delay_largest\":%lu,\"dropped_share\":0.25},"
             "\"training\":{\"rate\":0.025,\"momentum\":0.9,\"first\":1.6,\"least\":0.75,\"target\":0.835,"
             "\"last\":%g,\"updates\":248%s}}",
             in_step ? 0 : 3.0, (unsigned long)order->number, in_step ? 0.8 : 0.81, reached);
}

static enum status run(void *context, const struct tune_order *order, struct tune_outcome *out, struct error *err) {
    struct watched *w = context;
    struct world *world = &w->world;
    const bool stale = !consistency_is_plain(&order->strategy->consistency);
    struct expectation expected;
    struct updates_prediction updates;
    assert_true(order->learns == stale && (!stale || order->give_up_us <= 0));
    if (world->die_after && world->runs == world->die_after)
        return error_set(err, ST_CANCELLED, "stopped by the test");
    w->iterations[w->n] = order->iterations;
    w->found_stale[w->n++] = stale;
    if (!stale)
        return simulated_run(world, order, out, err);
    world->runs++;
    *out = (struct tune_outcome){.state = RECORD_FAILED, .reason = "the server went away"};
    if (w->stale_fail)
        return ST_OK;
    enum status st = predictor_round(&world->truth, order->strategy, &expected, &updates, err);
    if (st)
        return st;
    const double us = PACE * expected.mean_us * (1 + 0.01 * (double)(order->number % 5));
    const size_t n = order->iterations < 64 ? order->iterations : 64;
    for (size_t i = 0; i < n; i++) /* the median is not the mean */
        world->times[i] = us * (i % 4 ? 0.8 : 1.6);
    tell(w, order, us);
    *out = (struct tune_outcome){
        .state = RECORD_COMPLETE, .n = n, .iterations_us = world->times, .environment = w->environment};
    return ST_OK;
}

static int watch(void **state, void *world) {
    static struct watched w;
    w = (struct watched){.world = *(struct world *)world};
    w.world.truth.model = &w.world.model; /* it moved */
    w.world.truth.cluster = &w.world.cluster;
    *state = &w;
    return 0;
}

static int set_up(void **state) {
    void *world;
    world_set_up(&world);
    return watch(state, world);
}

/* For a test to which the course of a session matters, and no strategy: simulations are most of its time. */
static int set_up_two_nodes(void **state) {
    void *world;
    world_of(&world, CLUSTER("2"));
    return watch(state, world);
}

static int tear_down(void **state) {
    struct watched *w = *state;
    void *world = &w->world;
    return world_tear_down(&world);
}

static struct tune_options options_of(uint64_t trials, uint64_t stale) {
    struct tune_options o = tune_default_options();
    o.trials = trials;
    o.kept.allow_stale = stale;
    o.evaluations = 30;
    return o;
}

static enum status tune(struct watched *w, const char *name, const struct tune_options *options, const char *resume,
                        struct outcome *out, struct error *err) {
    const struct tune_runner runner = {"simulated", w, run};
    w->world.runs = w->n = 0;
    return tune_in_dataset(name, &w->world.model, &w->world.cluster, &runner, options, resume, out, err);
}

static void without_the_word_no_strategy_has_a_consistency(void **state) {
    struct watched *w = *state;
    struct error err;
    struct outcome t;
    struct tune_options o = options_of(30, 0);
    assert_ok(tune(w, "none", &o, NULL, &t, &err));
    assert_int_equal(w->n, 30);
    for (uint64_t i = 0; i < w->n; i++)
        assert_false(w->found_stale[i]);
    assert_true(t.stale.allowed == 0 && t.stale.best == SIZE_MAX);
    outcome_release(&t);
}

/* Give the session what a trial of the world measures. */
static void try(struct watched *w, struct session *s, struct suggestion *trial) {
    struct error err;
    struct tune_outcome outcome;
    assert_ok(run(w, &trial->order, &outcome, &err));
    assert_ok(session_report(s, trial, &outcome, &err));
}

/* The least round of the family that none of `before` has, by the session's own predictor. */
static double shortest(struct session *s, size_t n, const double *before) {
    double least = INFINITY;
    struct error err;
    for (size_t i = 0; i < updates_family_size(STALE); i++) {
        struct strategy strategy;
        struct expectation expected;
        struct updates_prediction updates;
        bool is_new = true;
        assert_ok(updates_family_build(s->model, s->cluster, STALE, i, &strategy, &err));
        assert_ok(predictor_round(&s->predictor, &strategy, &expected, &updates, &err));
        for (size_t k = 0; k < n; k++)
            is_new &= fabs(before[k] - expected.mean_us) > 0;
        least = is_new ? fmin(least, expected.mean_us) : least;
        strategy_release(&strategy);
    }
    return least;
}

static void the_shortest_rounds_of_the_family_get_a_trial_after_the_search(void **state) {
    struct watched *w = *state;
    struct error err;
    struct store *store;
    struct session *s;
    struct suggestion trial;
    enum session_step step;
    struct tune_options o = options_of(30, STALE);
    double predicted[3];
    size_t n = 0;
    char file[4096];
    snprintf(file, sizeof file, "%s", dataset_path("family.db"));
    assert_ok(store_open(file, STORE_READ_WRITE, &store, &err));
    assert_ok(session_prepare(&w->world.model, &w->world.cluster, &o, &s, &err));
    assert_ok(session_begin(s, store, &err));
    do {
        assert_ok(session_suggest(s, &step, &trial, &err));
        assert_int_equal(step, SESSION_TRIAL);
        try(w, s, &trial);
    } while (s->phase != TUNE_STALE);
    assert_true(session_is_in_step(trial.entry) && !session_over(s));
    for (; n < 3; n++) {
        assert_ok(session_suggest(s, &step, &trial, &err));
        const struct consistency *c = &trial.entry->strategy.consistency;
        assert_true(s->phase == TUNE_STALE && session_is_stale(trial.entry) && !session_is_in_step(trial.entry));
        assert_true(c->kind == CONSISTENCY_stale_synchronous ? c->staleness > 0 && c->staleness <= STALE
                                                             : c->delay_bound > 0 && c->delay_bound <= STALE);
        predicted[n] = trial.entry->predicted_us;
        assert_close(predicted[n], shortest(s, n, predicted), 0);
        try(w, s, &trial);
    }
    assert_ok(session_suggest(s, &step, &trial, &err));
    assert_true(s->phase == TUNE_FINAL && trial.round == 1);
    session_close(s);
    store_close(store);
}

static void an_allowance_names_bounds_up_to_it_and_no_other(void **state) {
    struct watched *w = *state;
    struct error err;
    static const struct {
        uint32_t most;
        size_t bounds;
    } cases[] = {{1, 1}, {2, 2}, {3, 3}, {4, 3}, {5, 4}, {1000, 11}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const size_t n = updates_family_size(cases[c].most);
        uint32_t largest = 0;
        assert_int_equal(n % cases[c].bounds, 0);
        for (size_t i = 0; i < n; i++) {
            struct strategy s;
            assert_ok(updates_family_build(&w->world.model, &w->world.cluster, cases[c].most, i, &s, &err));
            assert_ok(strategy_check(&s, &w->world.model, &w->world.cluster, &err));
            const uint32_t bound = s.consistency.staleness + s.consistency.delay_bound;
            assert_true(bound >= 1 && bound <= cases[c].most && s.consistency.kind != CONSISTENCY_synchronous);
            largest = bound > largest ? bound : largest;
            strategy_release(&s);
        }
        assert_int_equal(largest, cases[c].most);
    }
}

/* Mean of the row's trials in a round; 0: none. */
static double mean_in(const struct outcome *o, size_t row, uint64_t round) {
    for (size_t i = 0; i < o->n_trials; i++)
        if (o->trials[i].round == round && !strcmp(o->trials[i].strategy, o->rows[row].strategy))
            return o->trials[i].mean_us;
    return 0;
}

static void the_answer_stays_synchronous_and_tells_of_delays_and_losses(void **state) {
    struct watched *w = *state;
    struct error err;
    struct outcome t;
    struct tune_options o = options_of(40, STALE);
    assert_ok(tune(w, "answer", &o, NULL, &t, &err));
    assert_int_equal(w->n, 40);
    const struct outcome_stale *s = &t.stale;
    const struct outcome_row *stale = &t.rows[s->best];
    assert_true(stale->us < t.rows[t.best].us);
    assert_true(s->allowed == STALE && stale->stale && stale->final && !t.rows[t.best].stale &&
                !t.rows[t.best].in_step);
    double speed = 0, gain = 0, largest = 0;
    for (uint64_t round = 1; round <= 3; round++) {
        const double best = mean_in(&t, t.best, round), its = mean_in(&t, s->best, round);
        assert_true(best > 0 && its > 0);
        speed += log(best / its) / 3;
        gain += log(160 / 2 * best / (150 / 2 * its)) / 3; /* two workers: half as many rounds as updates */
    }
    for (size_t i = 0; i < t.n_trials; i++)
        if (t.trials[i].round && !strcmp(t.trials[i].strategy, stale->strategy))
            largest = fmax(largest, (double)t.trials[i].number);
    assert_close(s->speedup.mean, exp(speed), 1e-9);
    assert_close(s->gain.mean, exp(gain), 1e-9);
    assert_true(s->gain.n == 3 && s->gain.low <= s->gain.mean && s->gain.mean <= s->gain.high);
    assert_close(s->delay_mean, 3, 1e-12);
    assert_close(s->delay_largest, largest, 0);
    assert_close(s->dropped, 0.25, 1e-12);
    assert_close(s->learning.updates, 150, 1e-12);
    assert_close(s->in_step.us, 160 / 2 * t.rows[t.best].measured.mean_us, 1e-6);
    assert_true(s->learning.reached == 3 && s->in_step.trials == 3);
    assert_close(s->learning.last, 0.81, 1e-12);
    assert_close(stale->us, stale->measured.mean_us, 0); /* of rounds the mean counts */
    for (uint64_t i = 0; i < w->n; i++)
        assert_true(!w->found_stale[i] || w->iterations[i] == 60);
    outcome_release(&t);
}

static void an_outcome_with_stale_models_is_read_as_it_was_written(void **state) {
    struct watched *w = *state;
    struct error err;
    struct outcome t, read;
    struct tune_options o = options_of(30, STALE);
    assert_ok(tune(w, "json", &o, NULL, &t, &err));
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "session", t.session.id);
    cJSON_AddNumberToObject(json, "trials", (double)t.ended);
    cJSON_AddNumberToObject(json, "lower_bound_us", t.lower_bound_us);
    assert_true(outcome_write(&t, json) && outcome_write_lessons(&t, json));
    assert_ok(outcome_read(json, NULL, NULL, &read, &err));
    const struct outcome_stale *a = &t.stale, *b = &read.stale;
    assert_true(a->allowed == b->allowed && a->best == b->best && a->speedup.n == b->speedup.n);
    const double figures[][2] = {{a->speedup.mean, b->speedup.mean},
                                 {a->delay_mean, b->delay_mean},
                                 {a->delay_variance, b->delay_variance},
                                 {a->delay_largest, b->delay_largest},
                                 {a->dropped, b->dropped},
                                 {a->rate, b->rate},
                                 {a->momentum, b->momentum},
                                 {a->first, b->first},
                                 {a->least, b->least},
                                 {a->target, b->target},
                                 {a->updates, b->updates},
                                 {a->learning.us, b->learning.us},
                                 {a->learning.last, b->learning.last},
                                 {a->in_step.updates, b->in_step.updates},
                                 {a->in_step.us, b->in_step.us},
                                 {a->gain.mean, b->gain.mean}};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        assert_close(figures[i][0], figures[i][1], 0);
    assert_true(read.rows[b->best].stale && b->learning.reached == a->learning.reached);
    outcome_release(&read);
    outcome_release(&t);
    cJSON_Delete(json);
}

static void who_learns_nothing_has_no_gain(void **state) {
    struct watched *w = *state;
    struct error err;
    struct outcome t;
    struct tune_options o = options_of(30, STALE);
    w->learn_nothing = true;
    assert_ok(tune(w, "astray", &o, NULL, &t, &err));
    assert_true(isnan(t.stale.gain.mean) && !t.stale.learning.reached && t.stale.learning.trials > 0);
    assert_true(isnan(t.stale.learning.updates) && isnan(t.stale.in_step.us) && t.stale.speedup.mean > 0);
    outcome_release(&t);
}

/* All lines of the words, one after the other. */
static const char *words_of(const struct outcome *t, char out[4096]) {
    struct outcome_line lines[OUTCOME_LINES];
    const size_t n = outcome_stale_words(t, lines);
    size_t at = 0;
    out[0] = 0;
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(out + at, 4096 - at, "%s%s\n", lines[i].listed ? "- " : "", lines[i].text);
    assert_true(at < 4096);
    return out;
}

/* One round is told as such and confirms nothing; and what was computed is told from what was measured. */
static void the_words_claim_no_more_than_was_measured(void **state) {
    struct watched *w = *state;
    struct error err;
    char words[4096], part[256];
    for (uint64_t rounds = 1; rounds <= 3; rounds += 2) {
        struct outcome t;
        struct tune_options o = options_of(30, STALE);
        o.kept.final_rounds = rounds;
        assert_ok(tune(w, rounds > 1 ? "three" : "one", &o, NULL, &t, &err));
        assert_contains(words_of(&t, words), "Where models may be stale by 5, ");
        assert_int_equal(strstr(words, "(one round).\n") != NULL, t.stale.speedup.n == 1);
        assert_int_equal(strstr(words, "(one round): not confirmed.\n") != NULL, t.stale.gain.n == 1);
        assert_true(rounds > 1 ? t.stale.gain.n > 1 : t.stale.gain.n == 1);
        snprintf(part, sizeof part, " computed from the mean iteration of %s; 0.8 after 248\n", t.rows[t.best].name);
        assert_contains(words, "- synchronous training: after 160 updates, in ");
        assert_contains(words, part);
        snprintf(part, sizeof part, "- %s: after 150 updates, in ", t.rows[t.stale.best].name);
        assert_contains(words, part);
        assert_contains(words, "What it computes is not what synchronous training computes");
        outcome_release(&t);
    }
}

static void stale_trials_that_fail_leave_the_answer_as_it_is(void **state) {
    struct watched *w = *state;
    struct error err;
    struct outcome t;
    struct tune_options o = options_of(30, STALE);
    w->stale_fail = true;
    assert_ok(tune(w, "failing", &o, NULL, &t, &err));
    assert_true(t.best != SIZE_MAX && t.rows[t.best].final && t.stale.best == SIZE_MAX && t.failed == 4);
    outcome_release(&t);
}

static void no_budget_is_overdrawn(void **state) {
    struct watched *w = *state;
    struct error err;
    for (uint64_t trials = 1; trials <= 21; trials += trials < 6 ? 1 : 5) {
        struct outcome t;
        struct tune_options o = options_of(trials, STALE);
        char name[32];
        snprintf(name, sizeof name, "budget%lu", (unsigned long)trials);
        assert_ok(tune(w, name, &o, NULL, &t, &err));
        assert_true(w->n <= trials && w->n > 0 && !w->found_stale[0]);
        assert_true(trials < 5 || t.stale.best != SIZE_MAX);
        assert_true(t.stop != (w->n < trials ? TUNE_STOP_TRIALS : TUNE_STOP_SHARE));
        assert_string_equal(outcome_fastest_words(&t),
                            t.stale.best == SIZE_MAX ? "the fastest" : "the fastest synchronous strategy");
        outcome_release(&t);
    }
}

static void an_interrupted_session_goes_on_as_if_nothing_had_happened(void **state) {
    struct watched *w = *state;
    struct error err;
    struct outcome whole, resumed;
    struct tune_options o = options_of(24, STALE);
    assert_ok(tune(w, "whole", &o, NULL, &whole, &err));
    const uint64_t n = w->n;
    for (uint64_t stop = 9; stop < n; stop += stop < 13 ? 1 : 5) { /* before, in and after the stale phase */
        char name[32], file[4096];
        struct store *store;
        struct arena arena = {0};
        struct stored_session *sessions;
        size_t found;
        snprintf(name, sizeof name, "stop%lu", (unsigned long)stop);
        w->world.die_after = stop;
        assert_fails(tune(w, name, &o, NULL, &resumed, &err), ST_CANCELLED, "--resume");
        w->world.die_after = 0;
        snprintf(file, sizeof file, "%s", dataset_path("%s.db", name));
        assert_ok(store_open(file, STORE_READ_ONLY, &store, &err));
        assert_ok(store_session_list(store, 0, 0, &arena, &found, &sessions, &err));
        store_close(store);
        assert_ok(tune(w, name, &o, sessions[0].id, &resumed, &err));
        assert_int_equal(w->world.runs, n - stop);
        assert_int_equal(resumed.n_rows, whole.n_rows);
        for (size_t i = 0; i < whole.n_rows; i++)
            assert_string_equal(resumed.rows[i].strategy, whole.rows[i].strategy);
        assert_int_equal(resumed.stale.best, whole.stale.best);
        outcome_release(&resumed);
        arena_release(&arena);
    }
    outcome_release(&whole);
}

/* Where workers are slow by turns, and a server apart has a NIC for all of them, not to wait costs nothing. */
static const char UNEVEN[] = "{\"schema\":\"syncopate.cluster/"
                             "1\",\"name\":\"uneven\",\"nodes\":[{\"name\":\"n\",\"count\":4,\"nic_gbit_per_s\":1},"
                             "{\"name\":\"s\",\"count\":1,\"devices\":0,\"nic_gbit_per_s\":10}],"
                             "\"variability\":{\"compute\":{\"share\":0.2,\"factor\":6}}}";

static void where_staleness_is_free_its_round_is_no_slower_than_the_best_synchronous_iteration(void **state) {
    struct watched *w = *state;
    struct error err;
    struct cluster uneven;
    struct session *s;
    struct suggestion trial;
    enum session_step step;
    cJSON *json;
    struct store *store;
    char file[4096];
    double best = INFINITY;
    struct tune_options o = options_of(24, 64);
    o.kept.weather = 3;
    read_text(UNEVEN, &json);
    assert_ok(cluster_read(json, "cluster", &uneven, &err));
    cJSON_Delete(json);
    snprintf(file, sizeof file, "%s", dataset_path("free.db"));
    assert_ok(store_open(file, STORE_READ_WRITE, &store, &err));
    assert_ok(session_prepare(&w->world.model, &uneven, &o, &s, &err));
    assert_ok(session_begin(s, store, &err));
    for (;;) {
        assert_ok(session_suggest(s, &step, &trial, &err));
        assert_int_equal(step, SESSION_TRIAL);
        if (s->phase == TUNE_STALE)
            break;
        double times[8];
        for (int i = 0; i < 8; i++)
            times[i] = trial.predicted_us;
        const struct tune_outcome outcome = {.state = RECORD_COMPLETE, .n = 8, .iterations_us = times};
        best = fmin(best, trial.predicted_us);
        assert_ok(session_report(s, &trial, &outcome, &err));
    }
    for (size_t i = 0; i < s->n; i++)
        if (session_is_stale(s->entries[i]) && !session_is_in_step(s->entries[i]))
            assert_true(s->entries[i]->predicted_us < best);
    session_close(s);
    store_close(store);
    cluster_release(&uneven);
}

static void what_cannot_be_stale_is_refused(void **state) {
    struct watched *w = *state;
    struct error err;
    struct cluster lonely;
    struct session *s;
    cJSON *json;
    struct tune_options o = options_of(20, 1001);
    assert_fails(session_prepare(&w->world.model, &w->world.cluster, &o, &s, &err), ST_INVALID, "by 1 to 1000");
    o.kept.allow_stale = 2;
    read_text(
        "{\"schema\":\"syncopate.cluster/1\",\"name\":\"lonely\",\"nodes\":[{\"name\":\"n\",\"nic_gbit_per_s\":1}]}",
        &json);
    assert_ok(cluster_read(json, "cluster", &lonely, &err));
    cJSON_Delete(json);
    assert_fails(session_prepare(&w->world.model, &lonely, &o, &s, &err), ST_INVALID, "\"lonely\" has one device");
    cluster_release(&lonely);
    struct export_limits limits;
    assert_ok(export_limits_parse("horovod", NULL, &limits, &err));
    o.limits = &limits;
    assert_fails(session_prepare(&w->world.model, &w->world.cluster, &o, &s, &err), ST_INVALID, "no form of export");
    o.kept.memory_bytes = 1;
    assert_fails(session_prepare(&w->world.model, &w->world.cluster, &o, &s, &err), ST_INVALID, "or give a budget");
}

int main(void) {
#define T(name)   cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define TWO(name) cmocka_unit_test_setup_teardown(name, set_up_two_nodes, tear_down)
    const struct CMUnitTest tests[] = {
        TWO(without_the_word_no_strategy_has_a_consistency),
        T(the_shortest_rounds_of_the_family_get_a_trial_after_the_search),
        T(an_allowance_names_bounds_up_to_it_and_no_other),
        TWO(the_answer_stays_synchronous_and_tells_of_delays_and_losses),
        TWO(an_outcome_with_stale_models_is_read_as_it_was_written),
        TWO(who_learns_nothing_has_no_gain),
        TWO(the_words_claim_no_more_than_was_measured),
        TWO(stale_trials_that_fail_leave_the_answer_as_it_is),
        TWO(no_budget_is_overdrawn),
        TWO(an_interrupted_session_goes_on_as_if_nothing_had_happened),
        T(where_staleness_is_free_its_round_is_no_slower_than_the_best_synchronous_iteration),
        T(what_cannot_be_stale_is_refused),
    };
#undef T
#undef TWO
    return cmocka_run_group_tests(tests, NULL, NULL);
}
