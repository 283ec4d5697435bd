/* A session that lives in its dataset alone: each call opens the file anew, as processes that come and go do. */
#define WORLD_NODES "2"
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "dataset/leases.h"
#include "tests/support/dataset/place.h"
#include "tests/unit/tuner/simulated_world.h"
#include "tuner/session/asking.h"

struct desk {
    struct world *world;
    char file[4096], session[64];
};

static struct desk open_desk(struct world *w, const char *name, uint64_t trials) {
    struct desk d = {.world = w};
    struct error err;
    struct store *store;
    struct session *engine;
    struct tune_options o = tune_default_options();
    o.trials = trials;
    o.kept.trial_us = 1e6;
    o.kept.launch.runner = "simulated";
    o.mode = STORED_SESSION_ASK;
    snprintf(d.file, sizeof d.file, "%s", dataset_path("%s.db", name));
    assert_ok(store_open(d.file, STORE_READ_WRITE, &store, &err));
    assert_ok(session_prepare(&w->model, &w->cluster, &o, &engine, &err));
    assert_ok(session_begin(engine, store, &err));
    snprintf(d.session, sizeof d.session, "%s", session_id(engine));
    session_close(engine);
    store_close(store);
    return d;
}

static struct store *turn(const struct desk *d) {
    struct error err;
    struct store *store;
    assert_ok(asking_open(d->file, 10e6, NULL, &store, &err));
    return store;
}

struct ticket {
    uint64_t number, attempt;
    double us; /* that an iteration takes */
    char id[65];
};

/* One process that takes a trial and ends; its step. */
static enum session_step take(const struct desk *d, const char *client, double lease_us, struct ticket *out) {
    struct error err;
    struct asking a;
    struct tune_outcome outcome = {0};
    struct store *store = turn(d);
    assert_ok(asking_expire(store, d->session, &err));
    assert_ok(asking_load(&a, store, d->session, NULL, NULL, &err));
    assert_ok(asking_take(&a, client, 1, lease_us, &err));
    const enum session_step step = a.n ? SESSION_TRIAL : a.step;
    if (a.n) {
        *out = (struct ticket){.number = a.trials[0].number, .attempt = a.trials[0].attempt};
        snprintf(out->id, sizeof out->id, "%s", a.trials[0].suggestion.order.strategy->id.hex);
        assert_ok(simulated_run(d->world, &a.trials[0].suggestion.order, &outcome, &err));
        out->us = outcome.iterations_us[0];
    }
    asking_release(&a);
    store_close(store);
    return step;
}

static enum status tell(const struct desk *d, const char *client, const struct ticket *t, double us,
                        struct error *err) {
    struct store *store = turn(d);
    const struct holder holder = {.session = d->session, .client = client, .number = t->number, .attempt = t->attempt};
    const double times[] = {us, us * 1.01, us * 0.99};
    const struct tune_outcome outcome = {.state = RECORD_COMPLETE, .n = 3, .iterations_us = times};
    enum status st = asking_end(store, &holder, &outcome, err);
    store_close(store);
    return st;
}

/* When the lease of a trial ends, as the dataset says. */
static void end_of_lease(const struct desk *d, uint64_t number, char until[32]) {
    struct arena arena = {0};
    struct lease *leases;
    size_t n;
    struct error err;
    struct store *store = turn(d);
    assert_ok(leases_list(store, d->session, &arena, &n, &leases, &err));
    assert_true(number <= n && leases[number - 1].number == number);
    snprintf(until, 32, "%s", leases[number - 1].until);
    arena_release(&arena);
    store_close(store);
}

static enum stored_session_state state_of(const struct desk *d, uint64_t *trials, uint64_t *complete) {
    struct arena arena = {0};
    struct stored_session s;
    struct error err;
    struct store *store = turn(d);
    assert_ok(store_session_get(store, d->session, &arena, &s, &err));
    const enum stored_session_state state = s.state;
    *trials = s.trials;
    *complete = s.complete;
    arena_release(&arena);
    store_close(store);
    return state;
}

static void each_trial_is_given_once_and_the_last_ends_the_session(void **state) {
    struct desk d = open_desk(*state, "once", 7);
    struct error err;
    struct ticket t;
    uint64_t n = 0, trials, complete;
    while (take(&d, "a", 60e6, &t) == SESSION_TRIAL) {
        assert_int_equal(t.number, ++n);
        assert_int_equal(t.attempt, 1);
        assert_ok(tell(&d, "a", &t, t.us, &err));
    }
    assert_int_equal(n, 7);
    assert_int_equal(state_of(&d, &trials, &complete), STORED_SESSION_DONE);
    assert_int_equal(complete, 7);
}

static void a_session_that_is_asked_in_pieces_is_the_one_that_is_run_whole(void **state) {
    struct error err;
    struct ticket pieces[6], whole[6];
    struct desk d = open_desk(*state, "pieces", 6), e = open_desk(*state, "whole", 6);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(take(&d, "a", 60e6, &pieces[i]), SESSION_TRIAL);
        assert_ok(tell(&d, "a", &pieces[i], 1000.0 + 10 * i, &err));
    }
    struct asking a;
    struct store *store = turn(&e);
    for (int i = 0; i < 6; i++) {
        assert_ok(asking_load(&a, store, e.session, NULL, NULL, &err));
        assert_ok(asking_take(&a, "b", 1, 60e6, &err));
        assert_int_equal(a.n, 1);
        snprintf(whole[i].id, sizeof whole[i].id, "%s", a.trials[0].suggestion.order.strategy->id.hex);
        const double times[] = {1000.0 + 10 * i, (1000.0 + 10 * i) * 1.01, (1000.0 + 10 * i) * 0.99};
        const struct tune_outcome outcome = {.state = RECORD_COMPLETE, .n = 3, .iterations_us = times};
        const struct holder holder = {.session = e.session, .client = "b", .number = a.trials[0].number, .attempt = 1};
        assert_ok(asking_end(store, &holder, &outcome, &err));
        asking_release(&a);
        assert_string_equal(whole[i].id, pieces[i].id);
    }
    store_close(store);
}

static void who_does_not_hold_a_trial_cannot_end_it(void **state) {
    struct desk d = open_desk(*state, "holders", 5);
    struct error err;
    struct ticket t, next;
    assert_int_equal(take(&d, "a", 60e6, &t), SESSION_TRIAL);
    assert_int_equal(take(&d, "b", 60e6, &next), SESSION_TRIAL);
    assert_int_equal(next.number, 2);
    assert_string_not_equal(next.id, t.id);
    char until[32], until_then[96];
    end_of_lease(&d, 1, until);
    snprintf(until_then, sizeof until_then, "with client \"a\", attempt 1, until %s,", until);
    assert_fails(tell(&d, "b", &t, 1000, &err), ST_CONFLICT, until_then);
    assert_contains(ERROR_TEXT(&err), "not with \"b\"");
    next.attempt = 2;
    assert_fails(tell(&d, "b", &next, 1000, &err), ST_CONFLICT, "trial 2 is in attempt 1, until ");
    assert_contains(ERROR_TEXT(&err), "not in attempt 2");
    assert_ok(tell(&d, "a", &t, 1000, &err));
    assert_fails(tell(&d, "a", &t, 1000, &err), ST_CONFLICT, "trial 1 has ended: it is complete");
    next.number = 3;
    assert_fails(tell(&d, "b", &next, 1000, &err), ST_NOT_FOUND, "no trial 3: 2 were suggested so far");
}

static void a_session_that_is_not_there_is_not_called_one_without_trials(void **state) {
    struct desk d = open_desk(*state, "named", 5);
    struct error err;
    char until[32];
    double samples;
    const struct ticket t = {.number = 1, .attempt = 1};
    snprintf(d.session, sizeof d.session, "nope");
    assert_fails(tell(&d, "a", &t, 1000, &err), ST_NOT_FOUND, "has no session nope; \"syncopate dataset sessions ");
    struct store *store = turn(&d);
    const struct holder holder = {.session = d.session, .client = "a", .number = 1, .attempt = 1};
    assert_fails(asking_renew(store, &holder, 60e6, until, &err), ST_NOT_FOUND, "no session nope");
    assert_fails(asking_samples(store, d.session, &samples, &err), ST_NOT_FOUND, "no session nope");
    store_close(store);
}

static void samples_are_those_of_all_devices(void **state) {
    struct world *w = *state;
    struct desk d = open_desk(w, "samples", 5);
    struct error err;
    double samples;
    struct store *store = turn(&d);
    assert_ok(asking_samples(store, d.session, &samples, &err));
    assert_close(samples, w->model.batch_per_device * w->cluster.n_devices, 1e-12);
    store_close(store);
}

/* The rule for the user's own jobs, whoever starts them. */
static void fewer_than_three_iterations_make_no_trial(void **state) {
    struct desk d = open_desk(*state, "few", 5);
    struct error err;
    struct ticket t;
    const double times[] = {1000, 1010, 990};
    assert_int_equal(take(&d, "a", 60e6, &t), SESSION_TRIAL);
    const struct holder holder = {.session = d.session, .client = "a", .number = t.number, .attempt = t.attempt};
    struct store *store = turn(&d);
    for (size_t n = 1; n <= 3; n++) {
        const struct tune_outcome outcome = {.state = RECORD_COMPLETE, .n = n, .iterations_us = times};
        if (n < 3)
            assert_fails(asking_end(store, &holder, &outcome, &err), ST_INVALID, "a trial needs at least 3 iterations");
        else
            assert_ok(asking_end(store, &holder, &outcome, &err));
    }
    store_close(store);
}

static void a_lease_that_ran_out_is_lost_and_three_lost_cost_no_budget(void **state) {
    struct desk d = open_desk(*state, "leases", 2);
    struct error err;
    struct ticket t;
    uint64_t n = 0, trials, complete;
    char until[32];
    for (uint64_t attempt = 1; attempt <= ASSIGNMENT_ATTEMPTS; attempt++) {
        assert_int_equal(take(&d, "a", 20e3, &t), SESSION_TRIAL);
        assert_int_equal(t.number, 1);
        assert_int_equal(t.attempt, attempt);
        clock_sleep_us(40e3);
        struct store *store = turn(&d);
        const struct holder holder = {.session = d.session, .client = "a", .number = t.number, .attempt = t.attempt};
        assert_fails(asking_renew(store, &holder, 60e6, until, &err), ST_CONFLICT,
                     attempt < ASSIGNMENT_ATTEMPTS ? "its lease ran out"
                                                   : "trial 1 has ended: it is cancelled, lost: ");
        store_close(store);
        assert_fails(tell(&d, "a", &t, 1000, &err), ST_CONFLICT,
                     attempt < ASSIGNMENT_ATTEMPTS ? "with nobody" : "it is cancelled, lost: ");
    }
    while (take(&d, "a", 60e6, &t) == SESSION_TRIAL) {
        assert_int_equal(t.number, ++n + 1);
        assert_ok(tell(&d, "a", &t, 1000, &err));
    }
    assert_int_equal(state_of(&d, &trials, &complete), STORED_SESSION_DONE);
    assert_int_equal(trials, 3);
    assert_int_equal(complete, 2);
}

static void a_heartbeat_keeps_a_trial(void **state) {
    struct desk d = open_desk(*state, "heartbeat", 2);
    struct error err;
    struct ticket t;
    char until[32], now[32];
    assert_int_equal(take(&d, "a", 500e3, &t), SESSION_TRIAL);
    const struct holder holder = {.session = d.session, .client = "a", .number = t.number, .attempt = t.attempt};
    struct store *store = turn(&d);
    assert_ok(asking_renew(store, &holder, 60e6, until, &err));
    store_close(store);
    clock_utc(now, sizeof now);
    assert_true(strcmp(until, now) > 0);
    clock_sleep_us(600e3);
    assert_ok(tell(&d, "a", &t, 1000, &err));
}

static void when_all_is_given_one_waits(void **state) {
    struct desk d = open_desk(*state, "waiting", 2);
    struct error err;
    struct ticket t, u, v;
    assert_int_equal(take(&d, "a", 60e6, &t), SESSION_TRIAL);
    assert_int_equal(take(&d, "b", 60e6, &u), SESSION_TRIAL);
    assert_int_equal(take(&d, "c", 60e6, &v), SESSION_WAIT);
    assert_ok(tell(&d, "a", &t, 1000, &err));
    assert_int_equal(take(&d, "c", 60e6, &v), SESSION_WAIT);
    assert_ok(tell(&d, "b", &u, 1000, &err));
    assert_int_equal(take(&d, "c", 60e6, &v), SESSION_OVER);
}

static void a_dataset_that_somebody_has_is_waited_for_and_not_for_ever(void **state) {
    SKIP_IN_POSTGRESQL(); /* where several write */
    struct desk d = open_desk(*state, "turns", 2);
    struct error err;
    struct store *mine = turn(&d), *store;
    const double began_us = clock_now_us();
    assert_fails(asking_open(d.file, 150e3, NULL, &store, &err), ST_CONFLICT, "one writer at a time");
    assert_true(clock_now_us() - began_us >= 150e3);
    store_close(mine);
    char nowhere[4200];
    snprintf(nowhere, sizeof nowhere, "%s", dataset_path("nowhere.db"));
    assert_fails(asking_open(nowhere, 10e6, NULL, &store, &err), ST_NOT_FOUND, "nowhere.db");
}

static void a_session_of_its_own_process_is_not_shared(void **state) {
    struct world *w = *state;
    struct error err;
    struct store *store;
    struct session *engine;
    struct asking a;
    struct tune_options o = tune_default_options();
    char file[4200];
    o.kept.launch.runner = "simulated";
    snprintf(file, sizeof file, "%s", dataset_path("own.db"));
    assert_ok(store_open(file, STORE_READ_WRITE, &store, &err));
    assert_ok(session_prepare(&w->model, &w->cluster, &o, &engine, &err));
    assert_ok(session_begin(engine, store, &err));
    assert_fails(asking_load(&a, store, session_id(engine), NULL, NULL, &err), ST_CONFLICT, "runs its trials itself");
    session_close(engine);
    store_close(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_trial_is_given_once_and_the_last_ends_the_session),
        cmocka_unit_test(a_session_that_is_asked_in_pieces_is_the_one_that_is_run_whole),
        cmocka_unit_test(who_does_not_hold_a_trial_cannot_end_it),
        cmocka_unit_test(a_session_that_is_not_there_is_not_called_one_without_trials),
        cmocka_unit_test(samples_are_those_of_all_devices),
        cmocka_unit_test(fewer_than_three_iterations_make_no_trial),
        cmocka_unit_test(a_lease_that_ran_out_is_lost_and_three_lost_cost_no_budget),
        cmocka_unit_test(a_heartbeat_keeps_a_trial),
        cmocka_unit_test(when_all_is_given_one_waits),
        cmocka_unit_test(a_dataset_that_somebody_has_is_waited_for_and_not_for_ever),
        cmocka_unit_test(a_session_of_its_own_process_is_not_shared),
    };
    return cmocka_run_group_tests(tests, world_set_up, world_tear_down);
}
