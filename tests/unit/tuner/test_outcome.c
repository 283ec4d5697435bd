/* What came of a session, against a slow and plain computation of the same on random records. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "dataset/describe.h"
#include "strategy/baselines/baselines.h"
#include "tests/support/dataset/place.h"
#include "tests/unit/tuner/simulated_world.h"
#include "tuner/session/outcome.h"

enum { STRATEGIES = 6, RECORDS = 40, MOST_ITERATIONS = 9, SESSIONS = 40 };

/* A trial as the test made it. */
struct made {
    size_t strategy;
    enum record_state state;
    uint64_t round;
    bool early, lost;
    size_t n;
    double times[MOST_ITERATIONS];
};

struct scene {
    struct world *world;
    struct store *store;
    struct strategy strategies[STRATEGIES];
    size_t n;
    struct made made[RECORDS];
    bool collection;
    char id[32];
};

/* The first four are baselines under their own names; the others are candidates. */
static const char *const built[STRATEGIES] = {"single", "wfbp", "horovod", "ps", "pytorch-ddp", "byteps"};
static const char *const proposers[STRATEGIES] = {"single", "wfbp", "horovod", "ps", "guided", "genetic"};

static struct made draw(struct rng *rng) {
    static const enum record_state states[] = {RECORD_COMPLETE, RECORD_COMPLETE,   RECORD_COMPLETE, RECORD_FAILED,
                                               RECORD_RUNNING,  RECORD_INFEASIBLE, RECORD_CANCELLED};
    struct made m = {.strategy = rng_below(rng, STRATEGIES),
                     .state = states[rng_below(rng, sizeof states / sizeof *states)],
                     .round = rng_below(rng, 3),
                     .early = rng_below(rng, 4) == 0,
                     .lost = rng_below(rng, 2),
                     .n = 1 + rng_below(rng, MOST_ITERATIONS)};
    for (size_t i = 0; i < m.n; i++)
        m.times[i] = 1000 * (1 + (double)m.strategy / 4) * (1 + rng_uniform(rng));
    return m;
}

static void record(struct scene *s, const struct made *m) {
    struct error err;
    int64_t row;
    const struct trial_start start = {.model = &s->world->model,
                                      .cluster = &s->world->cluster,
                                      .strategy = &s->strategies[m->strategy],
                                      .session = s->id,
                                      .proposer = proposers[m->strategy],
                                      .runner = "simulated",
                                      .round = m->round,
                                      .predicted_us = 1500 + 100 * (double)m->strategy};
    const struct tune_outcome outcome = {.state = m->state,
                                         .early = m->early,
                                         .n = m->n,
                                         .iterations_us = m->times,
                                         .reason = m->lost ? TRIAL_LOST "nobody came back" : "why not"};
    assert_ok(trial_record_start(s->store, &start, &row, &err));
    if (m->state != RECORD_RUNNING)
        assert_ok(trial_record_end(s->store, row, &outcome, &err));
}

static void open_scene(struct scene *s, struct world *w, uint64_t number, struct rng *rng) {
    struct error err;
    *s = (struct scene){.world = w, .n = rng_below(rng, RECORDS + 1), .collection = rng_below(rng, 4) == 0};
    char file[4096];
    snprintf(file, sizeof file, "%s", dataset_path("outcomes.db"));
    snprintf(s->id, sizeof s->id, "s%lu", (unsigned long)number);
    assert_ok(store_open(file, STORE_READ_WRITE, &s->store, &err));
    assert_ok(store_put_model(s->store, &w->model, &err));
    assert_ok(store_put_cluster(s->store, &w->cluster, &err));
    const struct stored_session session = {.id = s->id,
                                           .model = w->model.id.hex,
                                           .cluster = w->cluster.id.hex,
                                           .budget = s->collection ? "{}" : "{\"trials\":40}",
                                           .options = "{}"};
    assert_ok(store_session_begin(s->store, &session, &err));
    for (size_t i = 0; i < STRATEGIES; i++)
        assert_ok(baselines_build(baselines_find(built[i]), &w->model, &w->cluster, &s->strategies[i], &err));
    for (size_t i = 0; i < s->n; i++) {
        s->made[i] = draw(rng);
        record(s, &s->made[i]);
    }
}

static void close_scene(struct scene *s) {
    for (size_t i = 0; i < STRATEGIES; i++)
        strategy_release(&s->strategies[i]);
    store_close(s->store);
}

/* What the rules of outcome.h say of one strategy, one rule after another. */
struct expected {
    size_t trials, complete, n_rounds, ended;
    bool final;
    struct summary measured;
};

static struct expected expect(const struct scene *s, size_t strategy) {
    struct error err;
    struct expected e = {0};
    size_t counts[RECORDS];
    const double *rounds[RECORDS];
    for (size_t i = 0; i < s->n; i++) {
        const struct made *m = &s->made[i];
        if (m->strategy != strategy)
            continue;
        e.trials++;
        e.ended += m->state != RECORD_RUNNING && m->state != RECORD_CANCELLED;
        if (m->state != RECORD_COMPLETE)
            continue;
        e.complete++;
        if (s->collection || m->round > 0 || e.n_rounds == 0) {
            counts[e.n_rounds] = m->n;
            rounds[e.n_rounds++] = m->times;
        }
    }
    e.final = e.n_rounds > 1 && !s->collection;
    assert_ok(summary_of_rounds(e.n_rounds - e.final, counts + e.final, rounds + e.final, &e.measured, &err));
    return e;
}

static size_t fastest(const struct expected *e, bool baselines_only) {
    size_t best = SIZE_MAX;
    bool any_final = false;
    for (size_t i = 0; i < STRATEGIES; i++)
        any_final |= e[i].final;
    for (size_t i = 0; i < (baselines_only ? 4 : STRATEGIES); i++)
        if (e[i].measured.n && (e[i].final || !any_final) &&
            (best == SIZE_MAX || e[i].measured.median_us < e[best].measured.median_us))
            best = i;
    return best;
}

static void check_place(const struct scene *s, const struct outcome *o, size_t place, size_t strategy) {
    if (strategy == SIZE_MAX)
        assert_true(place == SIZE_MAX);
    else
        assert_string_equal(o->rows[place].strategy, s->strategies[strategy].id.hex);
}

static void check_row(const struct scene *s, const struct outcome_row *row, const struct expected *e) {
    size_t strategy = 0;
    while (strcmp(s->strategies[strategy].id.hex, row->strategy) != 0)
        strategy++;
    e += strategy;
    assert_int_equal(row->trials, e->trials);
    assert_int_equal(row->complete, e->complete);
    assert_int_equal(row->final, e->final);
    assert_int_equal(row->baseline != NULL, strategy < 4);
    assert_int_equal(row->measured.n, e->measured.n);
    assert_close(row->measured.median_us, e->measured.median_us, 0);
    assert_close(row->measured.low_us, e->measured.low_us, 0);
    assert_close(row->measured.high_us, e->measured.high_us, 0);
    assert_true(!row->early || e->n_rounds == 1);
    assert_true(!e->n_rounds || row->state == RECORD_COMPLETE);
}

static void check_order(const struct outcome *o) {
    size_t order[STRATEGIES];
    outcome_order(o, order);
    for (size_t i = 1; i < o->n_rows; i++) {
        const struct outcome_row *a = &o->rows[order[i - 1]], *b = &o->rows[order[i]];
        assert_true(a->measured.n || !b->measured.n);
        assert_true(!b->measured.n || a->measured.median_us <= b->measured.median_us);
        assert_true(a->measured.n || b->measured.n || order[i - 1] < order[i]);
    }
}

/* Written and read again it is the same, as far as an Outcome goes. */
static void check_as_json(const struct scene *s, const struct outcome *o) {
    struct error err;
    struct outcome again;
    cJSON *json = cJSON_CreateObject(), *strategy = NULL;
    assert_non_null(cJSON_AddStringToObject(json, "session", o->session.id));
    assert_non_null(cJSON_AddNumberToObject(json, "trials", (double)o->ended));
    assert_non_null(cJSON_AddNumberToObject(json, "lower_bound_us", o->lower_bound_us));
    assert_true(outcome_write(o, json) && outcome_write_lessons(o, json));
    if (o->best != SIZE_MAX) {
        strategy = strategy_write(&o->strategy, &s->world->model, &s->world->cluster);
        assert_true(cJSON_AddItemToObject(json, "strategy", strategy));
    }
    char *text = json_line(json);
    cJSON_Delete(json);
    assert_ok(json_parse(text, strlen(text), "outcome", &json, &err));
    free(text);
    assert_ok(outcome_read(json, &s->world->model, &s->world->cluster, &again, &err));
    cJSON_Delete(json);
    assert_int_equal(again.n_rows, o->n_rows);
    assert_int_equal(again.ended, o->ended);
    assert_true(again.best == o->best && again.baseline == o->baseline && again.overlap == o->overlap);
    assert_true(isnan(o->speedup) ? isnan(again.speedup) : again.speedup == o->speedup);
    assert_int_equal(again.has_importance, o->has_importance);
    assert_memory_equal(again.importance, o->importance, sizeof o->importance);
    assert_int_equal(again.accuracy.n, o->accuracy.n);
    if (o->best != SIZE_MAX)
        assert_string_equal(again.strategy.id.hex, o->strategy.id.hex);
    for (size_t i = 0; i < o->n_rows; i++) {
        const struct outcome_row *a = &again.rows[i], *b = &o->rows[i];
        assert_string_equal(a->strategy, b->strategy);
        assert_string_equal(a->name, b->name);
        assert_true(a->baseline == b->baseline && a->state == b->state && a->early == b->early);
        assert_true(a->measured.n == b->measured.n && a->measured.median_us == b->measured.median_us);
    }
    for (int p = 0; p < PROPOSER_COUNT; p++)
        assert_true(again.proposers[p].tried == o->proposers[p].tried &&
                    again.proposers[p].wins == o->proposers[p].wins);
    outcome_release(&again);
}

static void random_sessions_come_to_what_the_rules_say(void **state) {
    for (uint64_t number = 0; number < SESSIONS; number++) {
        struct error err;
        struct rng rng;
        struct scene s;
        struct outcome o;
        struct expected e[STRATEGIES];
        size_t ended = 0, tried = 0;
        rng_split(&rng, test_seed(), number);
        open_scene(&s, *state, number, &rng);
        assert_ok(outcome_gather(s.store, s.id, &s.world->model, &s.world->cluster,
                                 OUTCOME_STRATEGY | OUTCOME_IMPORTANCE, &o, &err));
        for (size_t i = 0; i < STRATEGIES; i++) {
            e[i] = expect(&s, i);
            ended += e[i].ended;
            tried += e[i].trials > 0;
        }
        assert_int_equal(o.n_trials, s.n);
        assert_int_equal(o.ended, ended);
        assert_int_equal(o.n_rows, tried);
        assert_int_equal(o.collection, s.collection);
        for (size_t i = 0; i < o.n_rows; i++)
            check_row(&s, &o.rows[i], e);
        check_place(&s, &o, o.best, fastest(e, false));
        check_place(&s, &o, o.baseline, fastest(e, true));
        check_order(&o);
        check_as_json(&s, &o);
        outcome_release(&o);
        close_scene(&s);
    }
}

/* Void: every trial was cancelled, and none of them was lost. */
static void only_what_was_cancelled_and_not_lost_is_void(void **state) {
    (void)state;
    const struct outcome_row cancelled = {.state = RECORD_CANCELLED, .reason = "it was stopped"},
                             lost = {.state = RECORD_CANCELLED, .reason = TRIAL_LOST "nobody came back"},
                             failed = {.state = RECORD_FAILED, .reason = "why not"};
    assert_true(outcome_row_is_void(&cancelled));
    assert_false(outcome_row_is_void(&lost));
    assert_false(outcome_row_is_void(&failed));
}

/* The rows of a session's model and cluster are its own business: a trial of it writes neither again. */
static void trial_of_a_session_leaves_model_and_cluster_alone(void **state) {
    struct world *w = *state;
    struct error err;
    struct strategy strategy;
    struct store *store;
    int64_t row;
    char file[4096];
    snprintf(file, sizeof file, "%s", dataset_path("alone.db"));
    assert_ok(store_open(file, STORE_READ_WRITE, &store, &err));
    assert_ok(baselines_build(baselines_find("wfbp"), &w->model, &w->cluster, &strategy, &err));
    const struct trial_start of_session = {.model = &w->model,
                                           .cluster = &w->cluster,
                                           .strategy = &strategy,
                                           .session = "never-begun",
                                           .proposer = "wfbp",
                                           .runner = "simulated"};
    assert_true(trial_record_start(store, &of_session, &row, &err));
    assert_int_equal(store_has(store, STORE_MODEL, w->model.id.hex, &err), ST_NOT_FOUND);
    assert_int_equal(store_has(store, STORE_CLUSTER, w->cluster.id.hex, &err), ST_NOT_FOUND);
    struct trial_start alone = of_session;
    alone.session = NULL;
    assert_ok(trial_record_start(store, &alone, &row, &err));
    assert_ok(store_has(store, STORE_MODEL, w->model.id.hex, &err));
    strategy_release(&strategy);
    store_close(store);
}

static void a_damaged_outcome_is_refused_with_its_place(void **state) {
    struct world *w = *state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{}", "session"},
        {"{\"session\":\"s\",\"trials\":1,\"lower_bound_us\":1,\"strategies\":[{\"strategy\":\"x\",\"name\":3}]}",
         "/strategies/0/name"},
        {"{\"session\":\"s\",\"trials\":1,\"lower_bound_us\":1,\"overlap\":false,\"strategies\":[],"
         "\"best\":{\"strategy\":\"x\"}}",
         "/best"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err;
        struct outcome o;
        cJSON *json;
        read_text(cases[i].text, &json);
        assert_fails(outcome_read(json, &w->model, &w->cluster, &o, &err), ST_INVALID, cases[i].message);
        cJSON_Delete(json);
    }
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)
    const struct CMUnitTest tests[] = {
        T(random_sessions_come_to_what_the_rules_say),
        T(only_what_was_cancelled_and_not_lost_is_void),
        T(trial_of_a_session_leaves_model_and_cluster_alone),
        T(a_damaged_outcome_is_refused_with_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
