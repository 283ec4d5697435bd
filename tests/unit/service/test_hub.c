/* The hub beside a session that is kept by its dataset alone: both give out trials by the same rules
 * (tuner/session/assignments.h), so the same requests in the same order leave the same records. And its events: each
 * has all its members, or what it tells of did not happen. */
#define WORLD_NODES "2"
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "dataset/describe.h"
#include "dataset/events.h"
#include "dataset/query.h"
#include "service/hub.h"
#include "service/hub_internal.h"
#include "tests/support/dataset/place.h"
#include "tests/unit/tuner/simulated_world.h"
#include "tuner/session/asking.h"

static const char *const clients[] = {"a", "b", "c"};
static const double LONG_US = 600e6, SHORT_US = 3e3, TIMES[] = {1000, 1010, 990};

/* ---- the two sides ---- */

struct hub_side {
    struct access *access;
    struct hub *hub;
    struct hub_session *session;
};

static struct tune_options options(void) {
    struct tune_options o = tune_default_options();
    o.trials = 400;
    o.kept.trial_us = 1e6;
    o.seed = 5;
    o.kept.launch.runner = "simulated";
    o.mode = STORED_SESSION_ASK;
    return o;
}

static enum status put_world(void *context, struct store *store, struct error *err) {
    const struct world *w = context;
    enum status st = store_put_model(store, &w->model, err);
    return st ? st : store_put_cluster(store, &w->cluster, err);
}

static enum status record_session(void *context, struct store *store, struct error *err) {
    struct hub_side *h = context;
    return hub_record(h->session, store, err);
}

/* Without hub_start, so that no thread ends leases meanwhile. */
static void open_hub(struct hub_side *h, struct world *w, const char *name) {
    char path[4096];
    struct error err;
    const struct hub_options defaults = hub_default_options();
    snprintf(path, sizeof path, "%s", dataset_path("%s.db", name));
    assert_ok(access_open(&(struct access_options){.dataset = path}, &h->access, &err));
    assert_ok(hub_open(h->access, &defaults, &h->hub, &err));
    assert_ok(access_write(h->access, put_world, w, &err));
    const struct new_session wanted = {.model = w->model.id.hex,
                                       .cluster = w->cluster.id.hex,
                                       .ranker = "none",
                                       .mode = STORED_SESSION_ASK,
                                       .options = options()};
    assert_ok(hub_new(h->hub, &wanted, &h->session, &err));
}

static void begin_hub(struct hub_side *h, struct world *w, const char *name) {
    struct error err;
    open_hub(h, w, name);
    assert_ok(access_write(h->access, record_session, h, &err));
    hub_add(h->session);
    hub_lock(h->session);
}

static void close_hub(struct hub_side *h) {
    hub_unlock(h->session);
    hub_drop(h->session);
    hub_close(h->hub);
    access_close(h->access);
}

struct file_side {
    struct store *store;
    char session[64];
};

static void open_file(struct file_side *f, struct world *w, const char *name) {
    char path[4096];
    struct error err;
    struct session *engine;
    const struct tune_options o = options();
    snprintf(path, sizeof path, "%s", dataset_path("%s.db", name));
    assert_ok(store_open(path, STORE_READ_WRITE, &f->store, &err));
    assert_ok(session_prepare(&w->model, &w->cluster, &o, &engine, &err));
    assert_ok(session_begin(engine, f->store, &err));
    snprintf(f->session, sizeof f->session, "%s", session_id(engine));
    session_close(engine);
}

/* ---- the same request to both ---- */

struct request {
    struct hub_side *hub;
    const char *client;
    size_t count;
    double lease_us;
    struct holder holder;
    struct tune_outcome outcome;
    size_t n;
    struct assignment taken[ASSIGNMENTS_MOST];
};

static enum status take_step(void *context, struct store *store, struct error *err) {
    struct request *r = context;
    return hub_take(r->hub->session, store, r->client, r->count, r->lease_us, r->taken, &r->n, err);
}

static void take(struct hub_side *h, struct file_side *f, struct request *r) {
    struct error err;
    struct asking a;
    size_t ready;
    enum session_step step;
    assert_ok(hub_make_ready(h->session, r->count, &ready, &step, &err));
    assert_ok(access_write(h->access, take_step, r, &err));
    hub_taken(h->session, r->n, r->taken);
    assert_ok(asking_load(&a, f->store, f->session, NULL, NULL, &err));
    assert_ok(asking_take(&a, r->client, r->count, r->lease_us, &err));
    assert_int_equal(a.n, r->n);
    for (size_t i = 0; i < r->n; i++) {
        assert_int_equal(a.trials[i].number, r->taken[i].number);
        assert_int_equal(a.trials[i].attempt, r->taken[i].attempt);
    }
    asking_release(&a);
}

static void expire(struct hub_side *h, struct file_side *f) {
    struct error err;
    clock_sleep_us(4 * SHORT_US);
    assert_ok(hub_expire(h->session, &err));
    assert_ok(asking_expire(f->store, f->session, &err));
}

static enum status renew_step(void *context, struct store *store, struct error *err) {
    struct request *r = context;
    double length_us;
    return hub_renew(r->hub->session, store, &r->holder, r->lease_us, &length_us, err);
}

/* The hub says of whom it refuses, and then what the other side says. */
static void compare(enum status hub, const struct error *of_hub, enum status file, const struct error *of_file) {
    const char *reason = file == ST_CONFLICT ? strstr(of_file->message, ", until ") : NULL;
    const size_t n = reason ? (size_t)(reason - of_file->message) : strlen(of_file->message); /* leases end apart */
    char start[256];
    assert_int_equal(hub, file);
    snprintf(start, sizeof start, "%.*s", (int)n, of_file->message);
    if (hub == ST_CONFLICT)
        assert_contains(of_hub->message, start);
}

static void renew(struct file_side *f, struct request *r) {
    struct error of_hub, of_file;
    char until[32];
    r->lease_us = LONG_US;
    const enum status st = access_write(r->hub->access, renew_step, r, &of_hub);
    r->holder.session = f->session;
    compare(st, &of_hub, asking_renew(f->store, &r->holder, LONG_US, until, &of_file), &of_file);
}

static enum status end_step(void *context, struct store *store, struct error *err) {
    const struct request *r = context;
    return hub_end_trial(r->hub->session, store, &r->holder, NULL, &r->outcome, err);
}

static void end(struct file_side *f, struct request *r, bool complete) {
    struct error of_hub, of_file, err;
    r->outcome = complete ? (struct tune_outcome){.state = RECORD_COMPLETE, .n = 3, .iterations_us = TIMES}
                          : (struct tune_outcome){.state = RECORD_FAILED, .reason = "it broke"};
    const enum status st = access_write(r->hub->access, end_step, r, &of_hub);
    assert_ok(hub_catch_up(r->hub->session, &err));
    r->holder.session = f->session;
    compare(st, &of_hub, asking_end(f->store, &r->holder, &r->outcome, &of_file), &of_file);
}

/* ---- what both leave ---- */

static void assert_same_text(const char *a, const char *b) {
    assert_string_equal(a ? a : "", b ? b : "");
}

static size_t compare_records(struct hub_side *h, struct file_side *f) {
    struct arena arena = {0};
    struct record *a, *b;
    size_t n, m, lost = 0;
    struct error err;
    struct store *reader;
    assert_ok(access_read(h->access, &reader, &err));
    assert_ok(store_trials(reader, hub_session_id(h->session), &arena, &n, &a, &err));
    assert_ok(store_trials(f->store, f->session, &arena, &m, &b, &err));
    assert_int_equal(n, m);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(a[i].number, b[i].number);
        assert_int_equal(a[i].state, b[i].state);
        assert_int_equal(a[i].attempt, b[i].attempt);
        assert_int_equal(a[i].round, b[i].round);
        assert_int_equal(a[i].seed, b[i].seed);
        assert_int_equal(a[i].n_iterations, b[i].n_iterations);
        assert_int_equal(a[i].lease_until != NULL, b[i].lease_until != NULL);
        assert_same_text(a[i].client, b[i].client);
        assert_same_text(a[i].runner, b[i].runner);
        assert_same_text(a[i].reason, b[i].reason);
        assert_same_text(a[i].strategy, b[i].strategy);
        assert_same_text(a[i].proposer, b[i].proposer);
        lost += trial_reason_is_lost(a[i].reason);
    }
    arena_release(&arena);
    return lost;
}

enum { TURNS = 40, MOST_TICKETS = 256 };

struct tickets {
    size_t n;
    struct holder list[MOST_TICKETS];
};

/* Somebody speaks of a trial that was given out once: often not the one who has it now. */
static void draw_holder(struct rng *rng, const struct tickets *given, struct holder *out) {
    *out = given->list[rng_below(rng, given->n)];
    if (!rng_below(rng, 6))
        out->client = clients[rng_below(rng, 3)];
    if (!rng_below(rng, 10))
        out->number += 300;
}

static void draw_take(struct rng *rng, struct hub_side *h, struct file_side *f, struct tickets *given) {
    struct request r = {.hub = h, .client = clients[rng_below(rng, 3)], .count = 1 + rng_below(rng, 2)};
    const bool loses = rng_below(rng, 2);
    r.lease_us = loses ? SHORT_US : LONG_US;
    take(h, f, &r);
    for (size_t i = 0; i < r.n && given->n < MOST_TICKETS; i++)
        given->list[given->n++] =
            (struct holder){.client = r.client, .number = r.taken[i].number, .attempt = r.taken[i].attempt};
    if (loses)
        expire(h, f);
}

static void both_users_of_assignments_leave_the_same_records(void **state) {
    struct world *w = *state;
    struct hub_side h;
    struct file_side f;
    struct rng rng;
    struct tickets given = {0};
    rng_seed(&rng, test_seed());
    begin_hub(&h, w, "hub");
    open_file(&f, w, "file");
    draw_take(&rng, &h, &f, &given);
    for (int i = 0; i < TURNS; i++) {
        struct request r = {.hub = &h};
        const uint64_t what = rng_below(&rng, 5);
        draw_holder(&rng, &given, &r.holder);
        if (what < 2)
            draw_take(&rng, &h, &f, &given);
        else if (what < 3)
            renew(&f, &r);
        else
            end(&f, &r, rng_below(&rng, 3));
    }
    compare_records(&h, &f);
    store_close(f.store);
    close_hub(&h);
}

static void a_trial_is_lost_after_as_many_attempts_on_both_sides(void **state) {
    struct world *w = *state;
    struct hub_side h;
    struct file_side f;
    begin_hub(&h, w, "lost-hub");
    open_file(&f, w, "lost-file");
    for (uint64_t attempt = 1; attempt <= ASSIGNMENT_ATTEMPTS; attempt++) {
        struct request r = {.hub = &h, .client = "a", .count = 1, .lease_us = SHORT_US};
        take(&h, &f, &r);
        assert_int_equal(r.taken[0].number, 1);
        assert_int_equal(r.taken[0].attempt, attempt);
        expire(&h, &f);
    }
    assert_int_equal(compare_records(&h, &f), 1);
    store_close(f.store);
    close_hub(&h);
}

/* ---- events ---- */

static size_t until_failure = SIZE_MAX;

/* cJSON's memory, one piece of which cannot be had. */
static void *fail_once(size_t size) {
    if (until_failure != SIZE_MAX && until_failure-- == 0)
        return NULL; /* from now on SIZE_MAX: the next ones are there */
    return malloc(size);
}

static cJSON *last_event(struct hub_side *h, const char *kind, int64_t *id) {
    struct arena arena = {0};
    struct error err;
    struct store *reader;
    struct stored_event *events;
    size_t n;
    assert_ok(access_read(h->access, &reader, &err));
    assert_ok(event_list(reader, hub_session_id(h->session), *id, 0, &arena, &n, &events, &err));
    assert_true(n > 0);
    assert_string_equal(events[n - 1].kind, kind);
    cJSON *content = cJSON_Parse(events[n - 1].content);
    *id = events[n - 1].id;
    arena_release(&arena);
    return content;
}

static int64_t newest(struct hub_side *h) {
    int64_t id;
    struct error err;
    struct store *reader;
    assert_ok(access_read(h->access, &reader, &err));
    assert_ok(event_last(reader, NULL, &id, &err));
    return id;
}

/* Have each piece of cJSON's memory fail in turn: nothing is written, and in the end an event with all its members. */
static void tell_whole(struct hub_side *h, write_step *step, void *context, const char *kind,
                       const char *const *members) {
    struct error err;
    int64_t id = newest(h);
    const int64_t before = id;
    enum status st = ST_NO_MEMORY;
    size_t failed = 0;
    cJSON_InitHooks(&(cJSON_Hooks){fail_once, free});
    for (; st; failed += st != ST_OK) {
        until_failure = failed;
        st = access_write(h->access, step, context, &err);
        until_failure = SIZE_MAX;
        if (st) {
            assert_true(st == ST_NO_MEMORY || st == ST_INVALID); /* cJSON_Parse does not say which */
            assert_int_equal(newest(h), before);
        }
    }
    cJSON_InitHooks(NULL);
    assert_true(failed > 2);
    cJSON *content = last_event(h, kind, &id);
    for (; *members; members++)
        if (!cJSON_GetObjectItemCaseSensitive(content, *members))
            fail_msg("the event \"%s\" lacks \"%s\"", kind, *members);
    cJSON_Delete(content);
}

#define TELL_WHOLE(h, step, context, kind, ...)                                                                        \
    tell_whole(h, step, context, kind, (const char *const[]){__VA_ARGS__, NULL})

static enum status budget_step(void *context, struct store *store, struct error *err) {
    struct hub_side *h = context;
    return hub_set_budget(h->session, store, 300, 1e9, 0.5, err);
}

static enum status import_step(void *context, struct store *store, struct error *err) {
    struct hub_side *h = context;
    return hub_tell_import(h->session, store, 2, err);
}

static enum status stop_step(void *context, struct store *store, struct error *err) {
    struct hub_side *h = context;
    return hub_steer(h->session, store, HUB_STOP, err);
}

static void without_memory_there_is_no_event_rather_than_half_of_one(void **state) {
    struct hub_side h;
    struct error err;
    size_t ready;
    enum session_step step;
    struct request r = {.hub = &h,
                        .client = "a",
                        .count = 1,
                        .lease_us = LONG_US,
                        .outcome = {.state = RECORD_FAILED, .reason = "it broke"}};
    open_hub(&h, *state, "events");
    TELL_WHOLE(&h, record_session, &h, "session", "state");
    hub_add(h.session);
    hub_lock(h.session);
    assert_ok(hub_make_ready(h.session, 1, &ready, &step, &err));
    TELL_WHOLE(&h, take_step, &r, "trial-taken", "number", "attempt", "client");
    hub_taken(h.session, r.n, r.taken);
    r.holder = (struct holder){.client = "a", .number = r.taken[0].number, .attempt = r.taken[0].attempt};
    TELL_WHOLE(&h, end_step, &r, "trial-ended", "number", "attempt", "state", "reason");
    assert_ok(hub_catch_up(h.session, &err));
    TELL_WHOLE(&h, budget_step, &h, "budget", "trials", "time_us", "gap");
    TELL_WHOLE(&h, import_step, &h, "trials-imported", "added");
    TELL_WHOLE(&h, stop_step, &h, "session", "state", "reason");
    close_hub(&h);
}

/* ---- another service ---- */

static enum status renew_as_before(void *context, struct store *store, struct error *err) {
    struct request *r = context;
    return hub_renew(r->hub->session, store, &r->holder, 0, &r->lease_us, err);
}

static double renewed(struct hub_side *h, const struct request *taken) {
    struct error err;
    struct request r = {.hub = h, .holder = {.client = "a", .number = taken->taken[0].number, .attempt = 1}};
    assert_ok(access_write(h->access, renew_as_before, &r, &err));
    return r.lease_us;
}

/* A heartbeat that says no length keeps the one that the client asked for, whichever service gets it. */
static void a_service_that_does_not_have_the_trial_renews_it_for_its_own_length(void **state) {
    if (!test_database())
        skip(); /* a file has one service */
    struct world *w = *state;
    struct error err;
    struct hub_side first, second;
    struct request r = {.hub = &first, .client = "a", .count = 1, .lease_us = LONG_US};
    enum session_step step;
    size_t ready;
    const struct hub_options defaults = hub_default_options();
    begin_hub(&first, w, "renewed");
    assert_ok(hub_make_ready(first.session, 1, &ready, &step, &err));
    assert_ok(access_write(first.access, take_step, &r, &err));
    hub_taken(first.session, r.n, r.taken);
    assert_ok(access_open(&(struct access_options){.dataset = dataset_path("renewed.db")}, &second.access, &err));
    assert_ok(hub_open(second.access, &defaults, &second.hub, &err));
    assert_ok(hub_find(second.hub, hub_session_id(first.session), &second.session, &err));
    hub_lock(second.session);
    assert_close(renewed(&second, &r), LONG_US, 1e-12);
    close_hub(&second);
    assert_close(renewed(&first, &r), LONG_US, 1e-12);
    close_hub(&first);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_service_that_does_not_have_the_trial_renews_it_for_its_own_length),
        cmocka_unit_test(both_users_of_assignments_leave_the_same_records),
        cmocka_unit_test(a_trial_is_lost_after_as_many_attempts_on_both_sides),
        cmocka_unit_test(without_memory_there_is_no_event_rather_than_half_of_one),
    };
    return cmocka_run_group_tests(tests, world_set_up, world_tear_down);
}
