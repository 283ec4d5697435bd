/* See hub.h: sessions whose trials the service runs itself, each in a thread. They take the same path as a client's: a
 * trial is taken under the name "service", run by the registered launcher, and ended in the dataset. One trial runs at
 * a time on this machine, whatever the number of sessions. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "dataset/claims.h"
#include "dataset/leases.h"
#include "service/hub_internal.h"
#include "tuner/session/runners.h"
#include "tuner/session/trials.h"

static const char OWN[] = "service";
static const double OWN_LEASE_US = 86400e6; /* nobody else decides that it is lost */
static const double PATIENCE_US = 1e6, LONG_US = 3600e6;

enum status hub_register(struct hub *hub, const char *cluster, const char *runner, const char *hosts,
                         struct error *err) {
    enum launcher_kind place;
    if (!launcher_parse(runner, &place))
        return error_set(err, ST_USAGE, "launcher of cluster %s: \"%s\" is none of lab, local, mpirun, slurm", cluster,
                         runner);
    if (strlen(cluster) != ID_LENGTH)
        return error_set(err, ST_USAGE, "launcher of cluster %s: that is no whole id", cluster);
    struct cluster_launcher *grown = realloc(hub->launchers, (hub->n_launchers + 1) * sizeof *grown);
    if (!grown)
        return error_no_memory(err);
    hub->launchers = grown;
    struct cluster_launcher *l = &grown[hub->n_launchers];
    *l = (struct cluster_launcher){.runner = strdup(runner), .hosts = hosts ? strdup(hosts) : NULL};
    memcpy(l->cluster, cluster, ID_LENGTH);
    if (!l->runner || (hosts && !l->hosts)) {
        free(l->runner);
        free(l->hosts);
        return error_no_memory(err);
    }
    hub->n_launchers++;
    return ST_OK;
}

const struct cluster_launcher *hub_launcher(struct hub *hub, const char *cluster) {
    for (size_t i = 0; i < hub->n_launchers; i++)
        if (!strcmp(hub->launchers[i].cluster, cluster))
            return &hub->launchers[i];
    return NULL;
}

bool hub_has_launcher(struct hub *hub, const char *cluster) {
    return hub_launcher(hub, cluster) != NULL;
}

enum status hub_own_options(struct hub_session *s, struct error *err) {
    struct runner runner;
    if (!s->runner) /* without a launcher it can only be looked at */
        return ST_OK;
    enum status st = runner_init(&runner, &(struct runner_options){.runner = s->runner, .hosts = s->hosts}, &s->model,
                                 &s->cluster, NULL, err);
    if (st)
        return st;
    s->options.space.algorithms = runner_algorithms(&runner);
    if (s->options.kept.allow_stale)
        st = runner_check_updates(&runner, err);
    if (!st && s->options.kept.weather)
        st = runner_check_weather(&runner, err);
    runner_release(&runner);
    return st;
}

struct own {
    struct hub_session *session;
    struct assignment taken[ASSIGNMENTS_MOST]; /* [n], n <= 1 */
    size_t n;
    struct tune_order order; /* a copy, since the session is not locked while it runs */
    const struct tune_outcome *outcome;
};

static enum status take_step(void *context, struct store *store, struct error *err) {
    struct own *own = context;
    if (!store_has_claim(store, own->session->id))
        return error_set(err, ST_CANCELLED, "another service runs session %s now", own->session->id);
    return hub_take(own->session, store, OWN, 1, OWN_LEASE_US, own->taken, &own->n, err);
}

static enum status end_step(void *context, struct store *store, struct error *err) {
    struct own *own = context;
    const struct holder holder = {.number = own->taken[0].number, .attempt = own->taken[0].attempt, .client = OWN};
    return hub_end_trial(own->session, store, &holder, NULL, own->outcome, err);
}

static enum status give_back_step(void *context, struct store *store, struct error *err) {
    struct own *own = context;
    return lease_release(store, own->taken[0].row, OWN, own->taken[0].attempt, err);
}

/* Commit, and repeat it while the disk refuses, so that no measurement is lost. The session is locked, except while it
 * waits. Fails: as the step; ST_CANCELLED when the thread shall end before the disk takes it. */
static enum status commit_patiently(struct own *own, write_step *step, struct error *err) {
    struct hub_session *s = own->session;
    enum status st = hub_commit(s->hub, step, own, err);
    if (st == ST_ENVIRONMENT)
        log_error("session %s waits: %s", s->id, ERROR_TEXT(err));
    while (st == ST_ENVIRONMENT && !hub_session_is_cancelled(s)) {
        hub_sleep(s, PATIENCE_US);
        st = hub_commit(s->hub, step, own, err);
    }
    return st == ST_ENVIRONMENT ? error_set(err, ST_CANCELLED, "the service ends") : st;
}

/* The same where the database is away. */
static enum status catch_up_patiently(struct hub_session *s, struct error *err) {
    struct error why = {0};
    enum status st = hub_catch_up(s, &why);
    while (st == ST_ENVIRONMENT && access_is_shared(s->hub->access) && !hub_session_is_cancelled(s)) {
        hub_sleep(s, PATIENCE_US);
        st = hub_catch_up(s, &why);
    }
    return st ? error_pass(err, &why) : ST_OK;
}

/* Take the next trial, waiting while the session is paused. *n is 0 when there is none. Locked. */
static enum status take_next(struct own *own, struct error *err) {
    struct hub_session *s = own->session;
    size_t ready;
    enum session_step step;
    own->n = 0;
    while (s->state == STORED_SESSION_PAUSED && !hub_session_is_cancelled(s))
        hub_sleep(s, LONG_US);
    if (s->state != STORED_SESSION_RUNNING || hub_session_is_cancelled(s))
        return ST_OK;
    enum status st = hub_make_ready(s, 1, &ready, &step, err);
    if (!st && ready)
        st = commit_patiently(own, take_step, err);
    if (!st && own->n) {
        hub_taken(s, own->n, own->taken);
        s->open.list[own->taken[0].place].deadline_us = INFINITY;
        own->order = own->taken[0].suggestion.order;
    }
    hub_notify(s);
    return st;
}

/* Run it. Not locked. */
static enum status run_trial(struct own *own, struct tune_runner *run, struct tune_outcome *outcome,
                             struct error *err) {
    struct hub *hub = own->session->hub;
    pthread_mutex_lock(&hub->machine);
    enum status st = hub_session_is_cancelled(own->session) ? error_set(err, ST_CANCELLED, "the service ends")
                                                            : run->run(run->context, &own->order, outcome, err);
    pthread_mutex_unlock(&hub->machine);
    return st;
}

/* Run one trial from taking it to its end. The session is locked, except while the trial runs. *more: go on. */
static enum status one_trial(struct own *own, struct tune_runner *run, bool *more, struct error *err) {
    struct hub_session *s = own->session;
    struct tune_outcome outcome = {0};
    *more = false;
    enum status st = take_next(own, err);
    if (st == ST_UNREACHABLE) { /* it was steered by another service meanwhile */
        *more = true;
        return catch_up_patiently(s, err);
    }
    if (st || !own->n)
        return st;
    hub_unlock(s);
    st = run_trial(own, run, &outcome, err);
    hub_lock(s);
    if (st == ST_CANCELLED && stored_session_is_open(s->state))
        return hub_commit(s->hub, give_back_step, own, err);
    own->outcome = &outcome;
    if (!st)
        st = commit_patiently(own, end_step, err);
    if (st == ST_CONFLICT) /* it was stopped meanwhile */
        st = ST_OK;
    if (!st)
        st = catch_up_patiently(s, err);
    *more = !st && stored_session_is_open(s->state);
    return st;
}

struct failure {
    struct hub_session *session;
    const char *reason;
};

static enum status fail_step(void *context, struct store *store, struct error *err) {
    const struct failure *f = context;
    for (size_t i = 0; i < f->session->open.n; i++)
        if (f->session->open.list[i].number)
            store_trial_fail(store, f->session->open.list[i].row, RECORD_CANCELLED, f->reason, NULL);
    return hub_set_state(f->session, store, STORED_SESSION_FAILED, f->reason, err);
}

static enum status unclaim_step(void *context, struct store *store, struct error *err) {
    const struct hub_session *s = context;
    (void)err;
    store_unclaim(store, s->id);
    return ST_OK;
}

static void *serve(void *context) {
    struct own own = {.session = context};
    struct hub_session *s = context;
    struct runner runner;
    struct error err;
    bool more = true;
    enum status st = runner_init(&runner, &(struct runner_options){.runner = s->runner, .hosts = s->hosts}, &s->model,
                                 &s->cluster, &s->cancel, &err);
    work_enter(&s->work);
    hub_lock(s);
    if (!st) {
        struct tune_runner run = runner_for_session(&runner);
        while (more && !st)
            st = one_trial(&own, &run, &more, &err);
        runner_release(&runner);
    }
    if (st && st != ST_CANCELLED) {
        struct error ignored;
        log_error("session %s: %s", s->id, ERROR_TEXT(&err));
        hub_commit(s->hub, fail_step, &(struct failure){s, ERROR_TEXT(&err)}, &ignored);
        hub_catch_up(s, &ignored);
    }
    hub_commit(s->hub, unclaim_step, s, NULL);
    hub_unlock(s);
    work_leave();
    pthread_mutex_lock(&s->hub->mutex);
    s->thread_ended = true;
    pthread_mutex_unlock(&s->hub->mutex);
    return NULL;
}

/* Trials that were running when the process died. */
static enum status give_back_all(void *context, struct store *store, struct error *err) {
    const struct hub_session *s = context;
    enum status st = ST_OK;
    for (size_t i = 0; i < s->open.n && !st; i++)
        if (s->open.list[i].taken)
            st = lease_release(store, s->open.list[i].row, OWN, s->open.list[i].attempt, err);
    return st;
}

/* No other service runs it from now on, and what such a service did before is known. */
static enum status claim(struct hub_session *s, struct error *err) {
    enum status st = hub_claim(s->hub, s->id, err);
    if (!st)
        st = hub_look(s, err);
    return st ? st : hub_wake(s, err);
}

/* A thread that lost its claim to another service has ended by itself. */
static void join_ended(struct hub_session *s) {
    pthread_mutex_lock(&s->hub->mutex);
    const bool ended = s->has_thread && s->thread_ended;
    s->thread_ended = false;
    pthread_mutex_unlock(&s->hub->mutex);
    if (ended)
        pthread_join(s->thread, NULL);
    s->has_thread = s->has_thread && !ended;
}

enum status hub_own_start(struct hub_session *s, struct error *err) {
    if (access_is_shared(s->hub->access))
        join_ended(s);
    if (s->has_thread)
        return ST_OK;
    if (!s->runner)
        return error_set(err, ST_CONFLICT, HUB_NO_LAUNCHER);
    enum status st = access_is_shared(s->hub->access) ? claim(s, err) : ST_OK;
    if (!st && s->open.n)
        st = hub_commit(s->hub, give_back_all, s, err);
    if (!st)
        st = hub_catch_up(s, err);
    if (st)
        return st;
    if (pthread_create(&s->thread, NULL, serve, s))
        return error_set(err, ST_ENVIRONMENT, "no thread can be had for session %s", s->id);
    s->has_thread = true;
    return ST_OK;
}

void hub_own_stop(struct hub_session *s) {
    if (!s->has_thread)
        return;
    hub_session_cancel(s);
    hub_stir(s);
    pthread_join(s->thread, NULL);
    s->has_thread = false;
}
