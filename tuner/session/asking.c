/* Each change is one transaction, so a process that dies in the middle of one has changed nothing. Cost
 * of a call: the session's records are replayed, which takes milliseconds; new suggestions take what they take. */
#include "tuner/session/asking.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "dataset/claims.h"
#include "dataset/describe.h"
#include "dataset/leases.h"
#include "trial-runner/job.h"
#include "tuner/session/runners.h"

static const double LOOK_AGAIN_US = 50e3, PATIENCE_US = 10e6;

enum status asking_open(const char *path, double patience_us, const atomic_int *cancel, struct store **out,
                        struct error *err) {
    const double end_us = clock_now_us() + patience_us;
    struct rng rng;
    rng_seed(&rng, (uint64_t)clock_now_us());
    struct store *reader;
    enum status st = store_open(path, STORE_READ_ONLY, &reader, err);
    if (st == ST_NOT_FOUND)
        return st;
    if (!st)
        store_close(reader);
    for (;;) {
        st = store_open(path, STORE_READ_WRITE, out, err);
        if (st != ST_CONFLICT || clock_now_us() > end_us)
            return st;
        if (cancel && *cancel)
            return error_set(err, ST_CANCELLED, "interrupted");
        clock_sleep_us(LOOK_AGAIN_US * (0.5 + rng_uniform(&rng)));
    }
}

enum status asking_find(struct store *store, const char *session, struct arena *arena, struct stored_session *out,
                        struct error *err) {
    const enum status st = store_session_get(store, session, arena, out, err);
    if (st != ST_NOT_FOUND)
        return st;
    return error_set(err, ST_NOT_FOUND,
                     "%s has no session %.80s; \"syncopate dataset sessions --dataset %s\" lists them",
                     store_path(store), session, store_path(store));
}

/* ---- leases that have run out ---- */

enum status asking_expire(struct store *store, const char *session, struct error *err) {
    struct arena arena = {0};
    struct lease *leases;
    size_t n = 0;
    enum status st = store_begin(store, err);
    if (st)
        return st;
    st = leases_expired(store, session, &arena, &n, &leases, err);
    for (size_t i = 0; i < n && !st; i++)
        st = assignment_expire(store, leases[i].trial, leases[i].attempt, NULL, err);
    arena_release(&arena);
    return store_end(store, st, err);
}

/* ---- the session from its records ---- */

/* Read the options that the session was opened with, for session_prepare. */
static enum status read_options(struct asking *a, struct error *err) {
    a->options = tune_default_options();
    enum status st = session_options_read(&a->stored, &a->arena, &a->options.kept, err);
    if (!st && !a->options.kept.launch.runner)
        a->options.kept.launch.runner = "ask";
    return st;
}

static enum status prepare(struct asking *a, asking_limits *limits, void *context, struct error *err) {
    const struct domain here = {.model = a->model, .cluster = a->cluster};
    const struct session_options *kept = &a->options.kept;
    enum launcher_kind place;
    enum status st = read_options(a, err);
    if (!st && limits)
        st = limits(context, &kept->job, &a->options.limits, err);
    if (!st)
        st = rankers_for_session(a->store, NULL, &here, kept->ranker ? kept->ranker : "none", &a->ranker, err);
    a->options.ranker = st ? NULL : a->ranker.ranker;
    if (!st && launcher_parse(kept->launch.runner, &place)) /* what other runners can execute is not known */
        a->options.space.algorithms = runner_algorithms(&(struct runner){.cluster = &a->cluster});
    return st ? st : session_prepare(&a->model, &a->cluster, &a->options, &a->engine, err);
}

static enum status read_stored(struct asking *a, const char *session, struct error *err) {
    enum status st = asking_find(a->store, session, &a->arena, &a->stored, err);
    if (!st && a->stored.mode != STORED_SESSION_ASK)
        st = error_set(err, ST_CONFLICT,
                       "session %s runs its trials itself; go on with: syncopate tune --resume %s --dataset %s",
                       session, session, store_path(a->store));
    if (!st)
        st = store_get_model(a->store, a->stored.model, &a->model, err);
    return st ? st : store_get_cluster(a->store, a->stored.cluster, &a->cluster, err);
}

enum status asking_load(struct asking *out, struct store *store, const char *session, asking_limits *limits,
                        void *context, struct error *err) {
    *out = (struct asking){.store = store};
    enum status st = store_claim_session(store, session, PATIENCE_US, err); /* one suggestion after the other */
    if (!st)
        st = read_stored(out, session, err);
    if (!st)
        st = prepare(out, limits, context, err);
    if (!st)
        st = session_resume(out->engine, store, session, err);
    if (!st)
        st = assignments_load(&out->waiting, out->engine, store, false, err);
    if (st)
        asking_release(out);
    return st;
}

void asking_release(struct asking *a) {
    session_close(a->engine);
    stored_ranker_release(&a->ranker);
    model_release(&a->model);
    cluster_release(&a->cluster);
    arena_release(&a->arena);
    *a = (struct asking){0};
}

/* ---- taking ---- */

/* End the session: write its end and the reason. */
static enum status finish(struct asking *a, struct error *err) {
    char reason[ERROR_TEXT_ROOM];
    const enum stored_session_state state = session_end_state(a->engine, reason);
    return store_session_update(a->store, a->stored.id, state, reason, err);
}

enum status asking_take(struct asking *a, const char *client, size_t count, double lease_us, struct error *err) {
    a->step = a->stored.state == STORED_SESSION_PAUSED ? SESSION_WAIT : SESSION_OVER;
    if (a->stored.state != STORED_SESSION_RUNNING)
        return error_set(err, ST_CONFLICT, "session %s is %s%s%s", a->stored.id,
                         stored_session_state_word(a->stored.state), a->stored.reason ? ": " : "",
                         a->stored.reason ? a->stored.reason : "");
    enum status st = assignments_suggest(&a->waiting, count, &a->step, err);
    if (!st)
        st = store_begin(a->store, err);
    if (st)
        return st;
    st = assignments_take(&a->waiting, a->store, client, count, lease_us, a->trials, &a->n, err);
    if (!st && a->step == SESSION_OVER && !a->n)
        st = finish(a, err);
    st = store_end(a->store, st, err);
    if (st)
        a->n = 0;
    else
        assignments_took(&a->waiting, a->n, a->trials);
    return st;
}

/* ---- telling ---- */

enum status asking_samples(struct store *store, const char *session, double *out, struct error *err) {
    struct arena arena = {0};
    struct stored_session stored;
    struct model model = {0};
    struct cluster cluster = {0};
    enum status st = asking_find(store, session, &arena, &stored, err);
    if (!st)
        st = store_get_model(store, stored.model, &model, err);
    if (!st)
        st = store_get_cluster(store, stored.cluster, &cluster, err);
    if (!st)
        *out = job_samples(&model, &cluster);
    model_release(&model);
    cluster_release(&cluster);
    arena_release(&arena);
    return st;
}

/* Find the row of a trial that the holder has, after leases that have run out are ended. */
static enum status held_row(struct store *store, const struct holder *holder, int64_t *out, struct error *err) {
    struct arena arena = {0};
    struct stored_session session;
    enum status st = asking_expire(store, holder->session, err);
    if (!st)
        st = asking_find(store, holder->session, &arena, &session, err);
    arena_release(&arena);
    return st ? st : assignment_check(store, holder, out, err);
}

enum status asking_renew(struct store *store, const struct holder *holder, double lease_us, char *until,
                         struct error *err) {
    struct holder known = *holder;
    enum status st = held_row(store, holder, &known.row, err);
    clock_utc_after(lease_us, until, 32);
    return st ? st : assignment_renew(store, &known, lease_us, err);
}

enum status asking_end(struct store *store, const struct holder *holder, const struct tune_outcome *outcome,
                       struct error *err) {
    struct holder known = *holder;
    enum status st = held_row(store, holder, &known.row, err);
    if (!st && outcome->state == RECORD_COMPLETE && outcome->n < JOB_LEAST)
        st = error_set(err, ST_INVALID,
                       "a trial needs at least %d iterations, and this one has %zu: a median of fewer says little",
                       JOB_LEAST, outcome->n);
    return st ? st : assignment_end(store, &known, NULL, outcome, err);
}
