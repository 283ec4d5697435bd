/* Whole sessions against a simulated cluster. Real trials are the business of tests/cli. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "dataset/describe.h"
#include "dataset/query.h"
#include "dataset/sql_internal.h"
#include "strategy/memory.h"
#include "tests/support/dataset/place.h"
#include "tests/unit/tuner/simulated_world.h"
#include "tuner/learn/learner.h"
#include "tuner/session/tune.h"

static struct tune_options options_of(uint64_t trials) {
    struct tune_options o = tune_default_options();
    o.trials = trials;
    o.kept.trial_us = 1e6;
    o.evaluations = 200;
    return o;
}

static enum status tune(struct world *w, const char *file, const struct tune_options *options, const char *resume,
                        struct outcome *out, struct error *err) {
    struct store *store;
    const struct tune_runner runner = {"simulated", w, simulated_run};
    enum status st = store_open(file, STORE_READ_WRITE, &store, err);
    if (st)
        return st;
    w->began_us = clock_now_us();
    st = tune_run(store, &w->model, &w->cluster, &runner, options, resume, out, err);
    store_close(store);
    return st;
}

static void session_beats_the_baselines_of_a_cluster_that_is_not_as_described(void **state) {
    struct world *w = *state;
    struct error err;
    struct outcome t;
    struct tune_options o = options_of(30);
    char file[4096];
    snprintf(file, sizeof file, "%s", dataset_path("beats.db"));
    assert_ok(tune(w, file, &o, NULL, &t, &err));
    assert_int_equal(t.ended, 30);
    assert_int_equal(w->runs, 30);
    assert_true(t.rows[t.best].final);
    assert_true(t.rows[t.best].measured.median_us >= t.lower_bound_us);
    assert_true(t.speedup >= 1);
    for (size_t i = 0; i < t.n_rows; i++)
        if (t.rows[i].final)
            assert_true(t.rows[i].measured.median_us >= t.rows[t.best].measured.median_us);
    outcome_release(&t);
}

static void same_seed_gives_the_same_session(void **state) {
    struct world *w = *state;
    struct error err;
    struct outcome a, b;
    struct tune_options o = options_of(20);
    char first[4096], second[4096];
    snprintf(first, sizeof first, "%s", dataset_path("first.db"));
    snprintf(second, sizeof second, "%s", dataset_path("second.db"));
    assert_ok(tune(w, first, &o, NULL, &a, &err));
    assert_ok(tune(w, second, &o, NULL, &b, &err));
    assert_int_equal(a.n_rows, b.n_rows);
    for (size_t i = 0; i < a.n_rows; i++) {
        assert_string_equal(a.rows[i].strategy, b.rows[i].strategy);
        assert_close(a.rows[i].measured.median_us, b.rows[i].measured.median_us, 0);
    }
    outcome_release(&a);
    outcome_release(&b);
}

static const char *only_session(const char *file, char out[64]) {
    struct error err;
    struct store *store;
    struct arena arena = {0};
    struct stored_session *sessions;
    size_t n;
    assert_ok(store_open(file, STORE_READ_ONLY, &store, &err));
    assert_ok(store_session_list(store, 0, 0, &arena, &n, &sessions, &err));
    assert_int_equal(n, 1);
    snprintf(out, 64, "%s", sessions[0].id);
    arena_release(&arena);
    store_close(store);
    return out;
}

/* Interrupted after every number of trials, baselines, search and final alike, it ends as if it had not been. */
static void check_interruptions(struct world *w, const char *name, const struct ranker *ranker, uint64_t trials,
                                uint64_t every) {
    struct error err;
    struct outcome whole, resumed;
    struct tune_options o = options_of(trials);
    char file[4096], id[64];
    o.evaluations = 60;
    o.ranker = ranker;
    w->runs = 0;
    snprintf(file, sizeof file, "%s", dataset_path("%s-whole.db", name));
    assert_ok(tune(w, file, &o, NULL, &whole, &err));
    for (uint64_t stop = 1; stop < trials; stop += every) {
        snprintf(file, sizeof file, "%s", dataset_path("%s-stop%lu.db", name, (unsigned long)stop));
        w->runs = 0;
        w->die_after = stop;
        assert_fails(tune(w, file, &o, NULL, &resumed, &err), ST_CANCELLED, "--resume");
        w->die_after = 0;
        struct tune_options other = options_of(99); /* the session keeps the budget that it began with */
        other.ranker = ranker;
        other.evaluations = 60;
        assert_ok(tune(w, file, &other, only_session(file, id), &resumed, &err));
        assert_int_equal(w->runs, trials);
        assert_int_equal(resumed.n_rows, whole.n_rows);
        for (size_t i = 0; i < whole.n_rows; i++)
            assert_string_equal(resumed.rows[i].strategy, whole.rows[i].strategy);
        assert_close(resumed.rows[resumed.best].measured.median_us, whole.rows[whole.best].measured.median_us, 0);
        outcome_release(&resumed);
    }
    outcome_release(&whole);
}

static void interrupted_session_goes_on_as_if_nothing_had_happened(void **state) {
    check_interruptions(*state, "plain", NULL, 18, 4);
}

static struct stored_session stored_of(const char *file, const char *id, struct arena *arena) {
    struct error err;
    struct store *store;
    struct stored_session out;
    assert_ok(store_open(file, STORE_READ_ONLY, &store, &err));
    assert_ok(store_session_get(store, id, arena, &out, &err));
    store_close(store);
    return out;
}

static void session_that_cannot_be_resumed_stays_as_it_was(void **state) {
    struct world *w = *state;
    struct error err;
    struct outcome t;
    struct store *store;
    struct arena arena = {0};
    struct tune_options o = options_of(6);
    char file[4096], id[64];
    snprintf(file, sizeof file, "%s", dataset_path("stays.db"));
    assert_ok(tune(w, file, &o, NULL, &t, &err));
    outcome_release(&t);
    only_session(file, id);
    assert_ok(store_open(file, STORE_READ_WRITE, &store, &err));
    assert_ok(store_session_budget(store, id, "{\"trials\":0}", &err)); /* as a collection's is */
    store_close(store);
    const struct stored_session before = stored_of(file, id, &arena);
    assert_fails(tune(w, file, &o, id, &t, &err), ST_CONFLICT, "go on with: syncopate collect");
    const struct stored_session after = stored_of(file, id, &arena);
    assert_int_equal(after.state, STORED_SESSION_DONE);
    assert_string_equal(after.reason, before.reason);
    assert_string_equal(after.ended, before.ended);
    arena_release(&arena);
}

/* An import may bring a trial's median without its iterations. */
static void trial_without_its_iterations_is_no_round(void **state) {
    struct world *w = *state;
    struct error err;
    struct outcome t;
    struct store *store;
    uint64_t deleted;
    struct tune_options o = options_of(8);
    char file[4096], id[64];
    snprintf(file, sizeof file, "%s", dataset_path("median.db"));
    w->runs = 0;
    w->die_after = 4;
    assert_fails(tune(w, file, &o, NULL, &t, &err), ST_CANCELLED, "--resume");
    w->die_after = 0;
    assert_ok(store_open(file, STORE_READ_WRITE, &store, &err));
    assert_ok(sql_step(store, "DELETE FROM iterations WHERE trial = 1", 0, NULL, &deleted, &err));
    assert_true(deleted > 0);
    store_close(store);
    assert_ok(tune(w, file, &o, only_session(file, id), &t, &err));
    assert_int_equal(t.ended, 8);
    for (size_t i = 0; i < t.n_rows; i++)
        assert_true(!t.rows[i].measured.n || t.rows[i].measured.low_us > 0);
    outcome_release(&t);
}

enum { MANY_ITERATIONS = 100000 };

/* As a client may report it. */
static enum status long_run(void *context, const struct tune_order *order, struct tune_outcome *out,
                            struct error *err) {
    static double times[MANY_ITERATIONS];
    enum status st = simulated_run(context, order, out, err);
    for (size_t i = 0; !st && i < MANY_ITERATIONS; i++)
        times[i] = out->iterations_us[i % out->n];
    if (!st)
        *out = (struct tune_outcome){.state = RECORD_COMPLETE, .n = MANY_ITERATIONS, .iterations_us = times};
    return st;
}

static void trials_of_any_number_of_iterations_count(void **state) {
    struct world *w = *state;
    struct error err;
    struct outcome t;
    struct store *store;
    struct tune_options o = options_of(3);
    const struct tune_runner runner = {"simulated", w, long_run};
    char file[4096];
    o.kept.final_rounds = 0;
    snprintf(file, sizeof file, "%s", dataset_path("long.db"));
    assert_ok(store_open(file, STORE_READ_WRITE, &store, &err));
    assert_ok(tune_run(store, &w->model, &w->cluster, &runner, &o, NULL, &t, &err));
    store_close(store);
    for (size_t i = 0; i < t.n_rows; i++)
        assert_int_equal(t.rows[i].measured.n, MANY_ITERATIONS);
    outcome_release(&t);
}

/* A ranker of this world's true times. */
static struct ranker *train_ranker(struct world *w) {
    enum { N = 40 };
    struct error err;
    struct rng rng;
    struct space space;
    struct predictor described;
    struct features features[N];
    struct ranker_example examples[N];
    struct ranker *out;
    const struct space_options options = space_default_options();
    struct ranker_options o = ranker_default_options(RANKER_linear); /* trees learn the same way, more slowly */
    o.residual = true;
    rng_split(&rng, test_seed(), 3);
    assert_ok(space_init(&space, &w->model, &w->cluster, &options, &err));
    assert_ok(predictor_init(&described, &w->model, &w->cluster, &err));
    for (size_t i = 0; i < N; i++) {
        struct strategy strategy;
        struct prediction truth;
        assert_ok(space_sample_guided(&space, &rng, &strategy, &err));
        assert_ok(predictor_features(&described, &strategy, &features[i], NULL, &err));
        assert_ok(predictor_run(&w->truth, &strategy, &truth, &err));
        examples[i] = (struct ranker_example){&features[i], truth.iteration_us, 0};
        strategy_release(&strategy);
    }
    assert_ok(ranker_train(&o, N, examples, &out, NULL, &err));
    for (size_t i = 0; i < N; i++)
        features_release(&features[i]);
    predictor_release(&described);
    space_release(&space);
    return out;
}

static void interrupted_session_with_a_ranker_goes_on_too(void **state) {
    struct ranker *ranker = train_ranker(*state);
    check_interruptions(*state, "ranker", ranker, LEARNER_LEAST + 18, 13);
    ranker_free(ranker);
}

struct clock_reading {
    const struct world *world;
    double earlier_us, used_us; /* what this run began with; what was used at its last trial */
};

static void read_clock(void *context, const struct tune_event *event) {
    struct clock_reading *reading = context;
    if (event->recorded)
        return;
    if (isnan(reading->earlier_us))
        reading->earlier_us = event->elapsed_us - (clock_now_us() - reading->world->began_us);
    reading->used_us = event->elapsed_us;
}

/* Trials are short here, so most of the time goes into proposals. */
static void resumed_session_has_used_the_time_that_it_ran_and_not_the_pauses(void **state) {
    enum { RUNS = 3, TRIALS = 10, PAUSE_US = 300000, SLACK_US = 40000 };
    struct world *w = *state;
    struct error err;
    struct outcome t;
    struct tune_options o = options_of(0);
    struct clock_reading reading = {.world = w};
    char file[4096], id[64];
    o.time_us = 600e6;
    o.listen = read_clock;
    o.context = &reading;
    w->trial_us = 2000;
    snprintf(file, sizeof file, "%s", dataset_path("used.db"));
    for (int run = 0; run < RUNS; run++) {
        const double used_us = reading.used_us;
        reading.earlier_us = NAN;
        w->runs = 0;
        w->die_after = TRIALS;
        assert_fails(tune(w, file, &o, run ? only_session(file, id) : NULL, &t, &err), ST_CANCELLED, "--resume");
        assert_true(reading.earlier_us > used_us - SLACK_US);
        assert_true(reading.earlier_us < used_us + PAUSE_US);
        usleep(PAUSE_US);
    }
    assert_true(reading.used_us > 2.0 * w->trial_us * RUNS * TRIALS);
}

static void count_early(void *context, const struct tune_event *event) {
    size_t *early = context;
    *early += event->outcome && event->outcome->early;
}

/* How many trials of the dataset say that they were ended early; each has three iterations, the others more. */
static size_t recorded_early(const char *file) {
    struct error err;
    struct store *store;
    struct arena arena = {0};
    struct record *records;
    size_t n, early = 0;
    assert_ok(store_open(file, STORE_READ_ONLY, &store, &err));
    assert_ok(query_collect(store, &(struct query){.iterations = true}, &arena, &n, &records, &err));
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(trial_ended_early(&records[i]), records[i].n_iterations == 3);
        early += trial_ended_early(&records[i]);
    }
    arena_release(&arena);
    store_close(store);
    return early;
}

static void trial_that_was_ended_early_is_told_recorded_and_told_again(void **state) {
    struct world *w = *state;
    struct error err;
    struct outcome t;
    struct tune_options o = options_of(20);
    char file[4096], id[64];
    size_t told = 0, again = 0, rows = 0;
    w->gives_up = true;
    o.listen = count_early;
    o.context = &told;
    snprintf(file, sizeof file, "%s", dataset_path("early.db"));
    assert_ok(tune(w, file, &o, NULL, &t, &err));
    outcome_release(&t);
    o.context = &again;
    assert_ok(tune(w, file, &o, only_session(file, id), &t, &err));
    for (size_t i = 0; i < t.n_rows; i++) {
        assert_true(!t.rows[i].early || t.rows[i].measured.n == 3);
        rows += t.rows[i].early;
    }
    assert_true(told > 0);
    assert_int_equal(again, told);
    assert_int_equal(rows, told);
    assert_int_equal(recorded_early(file), told);
    outcome_release(&t);
}

static void session_without_a_completed_trial_says_why(void **state) {
    struct world *w = *state;
    struct error err;
    struct outcome t;
    struct tune_options o = options_of(10);
    char file[4096];
    snprintf(file, sizeof file, "%s", dataset_path("fails.db"));
    w->all_fail = true;
    assert_fails(tune(w, file, &o, NULL, &t, &err), ST_INFEASIBLE, "the network is down");
}

static void session_stops_when_the_best_is_close_to_the_bound(void **state) {
    struct world *w = *state;
    struct error err;
    struct outcome t;
    struct tune_options o = options_of(60);
    char file[4096];
    o.gap = 10;
    snprintf(file, sizeof file, "%s", dataset_path("gap.db"));
    assert_ok(tune(w, file, &o, NULL, &t, &err));
    assert_int_equal(t.stop, TUNE_STOP_GAP);
    assert_true(t.ended < 60);
    outcome_release(&t);
}

static void gap_that_a_baseline_closes_ends_the_session_before_the_search(void **state) {
    struct world *w = *state;
    struct error err;
    struct outcome t;
    struct tune_options o = options_of(60);
    char file[4096];
    o.gap = 1000;
    snprintf(file, sizeof file, "%s", dataset_path("gap-at-once.db"));
    assert_ok(tune(w, file, &o, NULL, &t, &err));
    assert_int_equal(t.stop, TUNE_STOP_GAP);
    assert_int_equal(t.n_rows, 1);
    assert_int_equal(t.ended, 1 + o.kept.final_rounds);
    outcome_release(&t);
}

/* How many variables of the session's best strategy travel in fewer bits. */
static uint32_t encoded_in_best(struct world *w, const char *file, const struct outcome *t) {
    struct error err;
    struct store *store;
    struct strategy best;
    uint32_t n = 0;
    assert_ok(store_open(file, STORE_READ_ONLY, &store, &err));
    assert_ok(store_get_strategy(store, t->rows[t->best].strategy, &w->model, &w->cluster, &best, &err));
    for (uint32_t v = 0; v < best.n_variables; v++)
        n += best.variables[v].encoding != ENCODING_none;
    strategy_release(&best);
    store_close(store);
    return n;
}

/* The network is the bottleneck here, so half the bytes are much faster. */
static void gradients_are_rounded_only_where_that_is_allowed(void **state) {
    struct world *w = *state;
    struct error err;
    struct outcome exact, lossy;
    struct tune_options o = options_of(24);
    char file[2][4096];
    snprintf(file[0], sizeof file[0], "%s", dataset_path("exact.db"));
    snprintf(file[1], sizeof file[1], "%s", dataset_path("lossy.db"));
    assert_ok(tune(w, file[0], &o, NULL, &exact, &err));
    assert_int_equal(encoded_in_best(w, file[0], &exact), 0);
    o.kept.allow_lossy = true;
    assert_ok(tune(w, file[1], &o, NULL, &lossy, &err));
    assert_true(encoded_in_best(w, file[1], &lossy) > 0);
    assert_true(lossy.rows[lossy.best].measured.median_us < 0.9 * exact.rows[exact.best].measured.median_us);
    assert_true(lossy.lower_bound_us < exact.lower_bound_us);
    assert_true(lossy.gap >= 0);
    outcome_release(&exact);
    outcome_release(&lossy);
}

/* How many of a session's strategies need more than so much memory of a device. */
static size_t over_memory(const struct world *w, const char *file, const struct outcome *t, uint64_t bytes) {
    struct error err;
    struct store *store;
    size_t n = 0;
    assert_ok(store_open(file, STORE_READ_ONLY, &store, &err));
    for (size_t i = 0; i < t->n_rows; i++) {
        struct strategy strategy;
        struct plan plan;
        struct memory memory;
        assert_ok(store_get_strategy(store, t->rows[i].strategy, &w->model, &w->cluster, &strategy, &err));
        assert_ok(plan_lower(&w->model, &w->cluster, &strategy, &plan, &err));
        assert_ok(memory_of_plan(&plan, &memory, &err));
        n += memory.peak_bytes > bytes;
        plan_release(&plan);
        strategy_release(&strategy);
    }
    store_close(store);
    return n;
}

/* Variables and gradients fit, and buffers of a twentieth of them. */
static void no_trial_is_over_the_memory(void **state) {
    struct world *w = *state;
    struct error err;
    struct outcome free_of_it, t;
    struct session *s;
    struct tune_options o = options_of(10);
    const uint64_t bytes = w->model.bytes * 41 / 20;
    char file[2][4096];
    snprintf(file[0], sizeof file[0], "%s", dataset_path("any-memory.db"));
    snprintf(file[1], sizeof file[1], "%s", dataset_path("memory.db"));
    o.evaluations = 60;
    assert_ok(tune(w, file[0], &o, NULL, &free_of_it, &err));
    assert_true(over_memory(w, file[0], &free_of_it, bytes) > 0);
    o.kept.memory_bytes = bytes;
    assert_ok(tune(w, file[1], &o, NULL, &t, &err));
    assert_int_equal(t.ended, 10);
    assert_int_equal(over_memory(w, file[1], &t, bytes), 0);
    outcome_release(&free_of_it);
    outcome_release(&t);
    o.kept.memory_bytes = 1;
    assert_fails(session_prepare(&w->model, &w->cluster, &o, &s, &err), ST_INFEASIBLE,
                 "nothing fits into 1 B on a device: the least that any needs is ");
    struct export_limits limits;
    assert_ok(export_limits_parse("horovod,nccl", NULL, &limits, &err));
    o.limits = &limits;
    assert_fails(session_prepare(&w->model, &w->cluster, &o, &s, &err), ST_INFEASIBLE,
                 "nothing that horovod,nccl can say fits into 1 B on a device: the least that any of it needs is ");
}

/* The most that any trial of a session shards, and the least. */
static void sharded_in(const struct world *w, const char *file, const struct outcome *t, enum sharded *least,
                       enum sharded *most) {
    struct error err;
    struct store *store;
    *least = SHARDED_parameters;
    *most = SHARDED_none;
    assert_ok(store_open(file, STORE_READ_ONLY, &store, &err));
    for (size_t i = 0; i < t->n_rows; i++) {
        struct strategy strategy;
        enum sharded of_it = SHARDED_none;
        assert_ok(store_get_strategy(store, t->rows[i].strategy, &w->model, &w->cluster, &strategy, &err));
        for (uint32_t g = 0; g < strategy.n_groups; g++)
            of_it = strategy.groups[g].sharded > of_it ? strategy.groups[g].sharded : of_it;
        *least = of_it < *least ? of_it : *least;
        *most = of_it > *most ? of_it : *most;
        strategy_release(&strategy);
    }
    store_close(store);
}

static double measured_of(const struct outcome *t, const char *proposer) {
    for (size_t i = 0; i < t->n_rows; i++)
        if (!strcmp(t->rows[i].proposer, proposer))
            return t->rows[i].measured.median_us;
    return NAN;
}

/* Variables and gradients together are twice the bytes: too much, unless parameters are sharded. What is tried shards
 * no more than is allowed; a later session that allows less takes nothing over of what it may not do. */
static void what_is_sharded_is_tried_as_far_as_it_is_allowed(void **state) {
    struct world *w = *state;
    struct error err;
    struct outcome t;
    struct session *s;
    enum sharded least, most;
    struct tune_options o = options_of(14);
    char file[4096];
    snprintf(file, sizeof file, "%s", dataset_path("sharded.db"));
    o.evaluations = 60;
    o.kept.memory_bytes = w->model.bytes * 2 - 1;
    for (enum sharded k = SHARDED_none; k < SHARDED_parameters; k++) {
        o.kept.allow_sharded = k;
        assert_fails(session_prepare(&w->model, &w->cluster, &o, &s, &err), ST_INFEASIBLE,
                     "--allow-sharded parameters (\"allow_sharded\": \"parameters\") tries it");
    }
    o.kept.allow_sharded = SHARDED_parameters;
    assert_ok(tune(w, file, &o, NULL, &t, &err));
    assert_int_equal(t.ended, 14);
    assert_int_equal(over_memory(w, file, &t, o.kept.memory_bytes), 0);
    sharded_in(w, file, &t, &least, &most);
    assert_int_equal(least, SHARDED_parameters);
    assert_true(t.rows[t.best].measured.median_us <= measured_of(&t, "fsdp-optimal"));
    assert_true(t.rows[t.best].measured.median_us >= t.lower_bound_us);
    outcome_release(&t);
    o.kept.memory_bytes = 0;
    o.kept.allow_sharded = SHARDED_optimizer;
    assert_ok(tune(w, file, &o, NULL, &t, &err));
    sharded_in(w, file, &t, &least, &most);
    assert_int_equal(least, SHARDED_none);
    assert_int_equal(most, SHARDED_optimizer);
    outcome_release(&t);
    o.kept.allow_sharded = SHARDED_none;
    assert_ok(tune(w, file, &o, NULL, &t, &err));
    sharded_in(w, file, &t, &least, &most);
    assert_int_equal(most, SHARDED_none);
    outcome_release(&t);
}

static void baselines_take_at_most_half_of_the_budget(void **state) {
    struct world *w = *state;
    struct error err;
    struct outcome t;
    struct tune_options o = options_of(12);
    char file[4096];
    size_t found = 0;
    snprintf(file, sizeof file, "%s", dataset_path("half.db"));
    assert_ok(tune(w, file, &o, NULL, &t, &err));
    for (size_t i = 0; i < t.n_rows; i++)
        found += !t.rows[i].baseline;
    assert_true(found >= 3);
    outcome_release(&t);
}

/* The second session in one dataset begins with what the first measured: its first proposals are no slower than the
 * first session's answer but for noise, and it says nothing of the first's trials as its own. */
static void second_session_learns_from_the_first(void **state) {
    struct world *w = *state;
    struct error err;
    struct outcome first, second;
    struct tune_options o = options_of(24);
    char file[4096];
    double best = INFINITY;
    snprintf(file, sizeof file, "%s", dataset_path("warm.db"));
    assert_ok(tune(w, file, &o, NULL, &first, &err));
    o.seed = 2;
    o.trials = 12;
    assert_ok(tune(w, file, &o, NULL, &second, &err));
    assert_int_equal(second.ended, 12);
    for (size_t i = 0; i < second.n_rows; i++)
        if (second.rows[i].measured.n)
            best = fmin(best, second.rows[i].measured.median_us);
    assert_true(best <= 1.02 * first.rows[first.best].measured.median_us);
    outcome_release(&first);
    outcome_release(&second);
}

/* Of pushes that go alone: shared ones are too few to show what a start costs. */
static void fitted_factors_are_those_of_the_truth(void **state) {
    struct world *w = *state;
    struct error err;
    struct space space;
    struct rng rng;
    struct predictor p;
    struct strategy strategies[24];
    struct measured measured[24];
    struct space_options o = space_default_options();
    o.share_pushes = false;
    rng_seed(&rng, test_seed());
    assert_ok(space_init(&space, &w->model, &w->cluster, &o, &err));
    for (size_t i = 0; i < 24; i++) {
        struct prediction truth;
        assert_ok(space_sample_guided(&space, &rng, &strategies[i], &err));
        assert_ok(predictor_run(&w->truth, &strategies[i], &truth, &err));
        measured[i] = (struct measured){.strategy = &strategies[i], .us = truth.iteration_us};
    }
    assert_ok(predictor_init(&p, &w->model, &w->cluster, &err));
    assert_ok(predictor_fit(&p, 24, measured, &err));
    assert_close(p.correction.startup, 1.8, 0.15);
    assert_close(p.correction.transfer, 1.25, 0.05);
    predictor_release(&p);
    for (size_t i = 0; i < 24; i++)
        strategy_release(&strategies[i]);
    space_release(&space);
}

/* Where only the course of a session matters. */
static int small_world_set_up(void **state) {
    return world_of(state, CLUSTER("2"));
}

int main(void) {
#define T(name)     cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)
#define SMALL(name) cmocka_unit_test_setup_teardown(name, small_world_set_up, world_tear_down)
    const struct CMUnitTest tests[] = {
        T(session_beats_the_baselines_of_a_cluster_that_is_not_as_described),
        SMALL(same_seed_gives_the_same_session),
        SMALL(interrupted_session_goes_on_as_if_nothing_had_happened),
        SMALL(interrupted_session_with_a_ranker_goes_on_too),
        SMALL(resumed_session_has_used_the_time_that_it_ran_and_not_the_pauses),
        SMALL(session_that_cannot_be_resumed_stays_as_it_was),
        SMALL(trial_without_its_iterations_is_no_round),
        SMALL(trials_of_any_number_of_iterations_count),
        SMALL(trial_that_was_ended_early_is_told_recorded_and_told_again),
        SMALL(session_without_a_completed_trial_says_why),
        SMALL(session_stops_when_the_best_is_close_to_the_bound),
        SMALL(gap_that_a_baseline_closes_ends_the_session_before_the_search),
        SMALL(gradients_are_rounded_only_where_that_is_allowed),
        SMALL(no_trial_is_over_the_memory),
        T(what_is_sharded_is_tried_as_far_as_it_is_allowed),
        SMALL(baselines_take_at_most_half_of_the_budget),
        T(second_session_learns_from_the_first),
        T(fitted_factors_are_those_of_the_truth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
