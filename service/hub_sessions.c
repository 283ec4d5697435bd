/* See hub.h. A session is read into memory when a request needs it. It leaves the memory when nobody has used it for a
 * while, or when HUB_KEEP others were used since, unless a client has a trial of it. It can be read again from its
 * records. */
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "dataset/claims.h"
#include "dataset/describe.h"
#include "dataset/events.h"
#include "dataset/leases.h"
#include "dataset/pages.h"
#include "service/hub_internal.h"
#include "tuner/session/runners.h"

enum { HUB_KEEP = 16, EVENTS_AT_ONCE = 256 };
static const double TICK_US = 0.25e6, FORGET_US = 3600e6, TAKE_OVER_US = 2e6;

struct hub_options hub_default_options(void) {
    return (struct hub_options){.lease_us = 60e6, .idle_us = 60e6};
}

double clock_boot_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

enum status hub_commit(struct hub *hub, write_step *step, void *context, struct error *err) {
    return access_write(hub->access, step, context, err);
}

enum status hub_tell(struct hub_session *session, struct store *store, const char *kind, cJSON *content, bool whole,
                     struct error *err) {
    char *text = whole ? json_line(content) : NULL;
    enum status st = text ? event_add(store, session->id, kind, text, NULL, err) : error_no_memory(err);
    free(text);
    cJSON_Delete(content);
    return st;
}

void hub_listen(struct hub *hub, void (*changed)(void *context, const char *session), void *context) {
    pthread_mutex_lock(&hub->listening);
    hub->changed = changed;
    hub->context = context;
    pthread_mutex_unlock(&hub->listening);
}

void hub_notify(struct hub_session *s) {
    pthread_mutex_lock(&s->hub->listening);
    if (s->hub->changed)
        s->hub->changed(s->hub->context, s->id);
    pthread_mutex_unlock(&s->hub->listening);
}

static enum status hub_tell_state(struct hub_session *s, struct store *store, enum stored_session_state state,
                                  const char *reason, struct error *err) {
    cJSON *content = cJSON_CreateObject();
    const bool whole = cJSON_AddStringToObject(content, "state", stored_session_state_word(state)) &&
                       (!reason || cJSON_AddStringToObject(content, "reason", reason));
    return hub_tell(s, store, "session", content, whole, err);
}

enum status hub_set_state(struct hub_session *s, struct store *store, enum stored_session_state state,
                          const char *reason, struct error *err) {
    enum status st = store_session_update(store, s->id, state, reason, err);
    return st ? st : hub_tell_state(s, store, state, reason, err);
}

void hub_ends(struct hub *hub, uint64_t counts[HUB_ENDS]) {
    for (size_t i = 0; i < HUB_ENDS; i++)
        counts[i] = atomic_load(&hub->ends[i]);
}

size_t hub_in_memory(struct hub *hub) {
    size_t n = 0;
    pthread_mutex_lock(&hub->mutex);
    for (const struct hub_session *s = hub->first; s; s = s->next)
        n++;
    pthread_mutex_unlock(&hub->mutex);
    return n;
}

/* ---- one session ---- */

static void hub_session_free(struct hub_session *s) {
    session_close(s->engine);
    if (s->described) {
        model_release(&s->model);
        cluster_release(&s->cluster);
    }
    stored_ranker_release(&s->ranker);
    free(s->team);
    free(s->shared);
    free(s->runner);
    free(s->hosts);
    free(s->export_to);
    free(s->accept);
    free(s->algorithms);
    pthread_cond_destroy(&s->awake);
    pthread_mutex_destroy(&s->waiting);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

static struct hub_session *hub_session_new(struct hub *hub) {
    struct hub_session *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->hub = hub;
    s->references = 1;
    s->options = tune_default_options();
    s->last_waiter = &s->first_waiter;
    pthread_mutex_init(&s->mutex, NULL);
    pthread_mutex_init(&s->waiting, NULL);
    pthread_cond_init(&s->awake, NULL);
    return s;
}

static bool copy_text(char **out, const char *text) {
    *out = text ? strdup(text) : NULL;
    return *out || !text;
}

/* To which forms the session is limited. */
static enum status copy_limits(struct hub_session *s, const struct job_options *job, struct error *err) {
    if (!copy_text(&s->export_to, job->export_to) || !copy_text(&s->accept, job->accept))
        return error_no_memory(err);
    return s->export_to ? export_limits_parse(s->export_to, s->accept, &s->limits, err) : ST_OK;
}

static enum status describe(struct hub_session *s, struct store *store, const char *model, const char *cluster,
                            struct error *err) {
    enum status st = store_get_model(store, model, &s->model, err);
    if (st)
        return st;
    st = store_get_cluster(store, cluster, &s->cluster, err);
    if (st)
        model_release(&s->model);
    s->described = !st;
    return st;
}

enum status hub_follow_cluster(struct hub_session *s, struct store *store, const char *cluster, struct error *err) {
    struct cluster now;
    if (!strcmp(s->cluster.id.hex, cluster))
        return ST_OK;
    enum status st = store_get_cluster(store, cluster, &now, err);
    if (st)
        return st;
    hub_forget_engine(s);
    cluster_release(&s->cluster);
    s->cluster = now;
    return ST_OK;
}

/* Narrow the space to what the clients' runner can execute. Of a runner that is not ours nothing is known. */
static void narrow(struct hub_session *s) {
    enum launcher_kind place;
    if (s->mode == STORED_SESSION_ASK && s->runner && launcher_parse(s->runner, &place))
        s->options.space.algorithms = runner_algorithms(&(struct runner){.cluster = &s->cluster});
}

static enum status prepare_engine(struct hub_session *s, struct store *store, const char *ranker, struct error *err) {
    const struct domain here = {.model = s->model, .cluster = s->cluster};
    const struct viewer team = {.team = s->team}; /* even if an administrator opened it: no other team's rankers */
    enum status st = rankers_for_session(store, &team, &here, ranker, &s->ranker, err);
    if (st)
        return st;
    s->options.ranker = s->ranker.ranker;
    s->options.kept.ranker = s->ranker.ranker ? s->ranker.id.hex : NULL;
    s->options.kept.launch.runner = s->runner;
    s->options.kept.launch.hosts = s->hosts;
    s->options.kept.algorithms = s->algorithms;
    s->options.kept.job = (struct job_options){.export_to = s->export_to, .accept = s->accept};
    s->options.limits = s->limits.n ? &s->limits : NULL;
    s->options.team = s->team;
    s->options.shared = s->shared;
    s->options.mode = s->mode;
    s->options.kept.served = true;
    s->options.cancel = &s->cancel; /* also ends the thread that learns */
    narrow(s);
    st = session_prepare(&s->model, &s->cluster, &s->options, &s->engine, err);
    s->open = (struct assignments){.engine = s->engine};
    return st;
}

enum status hub_new(struct hub *hub, const struct new_session *request, struct hub_session **out, struct error *err) {
    struct store *reader;
    const struct cluster_launcher *launcher = hub_launcher(hub, request->cluster);
    enum status st = access_read(hub->access, &reader, err);
    struct hub_session *s = st ? NULL : hub_session_new(hub);
    if (!s)
        return st ? st : error_no_memory(err);
    const bool own = request->mode == STORED_SESSION_OWN;
    s->mode = request->mode;
    s->options = request->options;
    if (!copy_text(&s->team, request->team) || !copy_text(&s->shared, request->shared) ||
        !copy_text(&s->runner, own ? launcher->runner : request->options.kept.launch.runner) ||
        !copy_text(&s->hosts, own ? launcher->hosts : NULL))
        st = error_no_memory(err);
    if (!st && !copy_text(&s->algorithms, request->options.kept.algorithms))
        st = error_no_memory(err);
    if (!st)
        st = copy_limits(s, &request->options.kept.job, err);
    if (!st)
        st = describe(s, reader, request->model, request->cluster, err);
    if (!st && own)
        st = hub_own_options(s, err);
    if (!st)
        st = prepare_engine(s, reader, request->ranker ? request->ranker : "nearest", err);
    if (st)
        hub_session_free(s);
    else
        *out = s;
    return st;
}

enum status hub_record(struct hub_session *s, struct store *store, struct error *err) {
    enum status st = session_begin(s->engine, store, err);
    if (st)
        return st;
    snprintf(s->id, sizeof s->id, "%s", session_id(s->engine));
    return hub_tell_state(s, store, STORED_SESSION_RUNNING, NULL, err);
}

void hub_discard(struct hub_session *s) {
    if (s)
        hub_session_free(s);
}

const char *hub_session_id(const struct hub_session *s) {
    return s->id;
}

bool hub_shards_in_vain(const struct hub_session *s) {
    return session_shards_in_vain(s->engine);
}

bool hub_is_own(const struct hub_session *s) {
    return s->mode == STORED_SESSION_OWN;
}

uint64_t hub_weather(const struct hub_session *s) {
    return s->options.kept.weather;
}

const struct model *hub_model(const struct hub_session *s) {
    return &s->model;
}

const struct cluster *hub_cluster(const struct hub_session *s) {
    return &s->cluster;
}

/* ---- who has it ---- */

bool hub_try(struct hub_session *s) {
    return !pthread_mutex_trylock(&s->mutex);
}

void hub_lock(struct hub_session *s) {
    pthread_mutex_lock(&s->mutex);
}

/* The session is not touched after the last waiter that was taken out: its run() may give the session back. */
static void call_waiter(struct hub_session *s) {
    pthread_mutex_lock(&s->waiting);
    struct hub_waiter *waiter = s->first_waiter;
    if (waiter) {
        s->first_waiter = waiter->next;
        s->last_waiter = s->first_waiter ? s->last_waiter : &s->first_waiter;
    }
    pthread_mutex_unlock(&s->waiting);
    if (waiter)
        waiter->run(waiter->context);
}

void hub_unlock(struct hub_session *s) {
    hub_end_search(s);
    pthread_mutex_unlock(&s->mutex);
    call_waiter(s);
}

/* hub_unlock calls a waiter. If it came before this waiter was in the list, nobody calls this one. Then the session is
 * free; locking and unlocking it here makes the call. */
void hub_wait(struct hub_session *s, struct hub_waiter *waiter) {
    waiter->next = NULL;
    hub_keep(s); /* the waiter may be through with it before this returns */
    pthread_mutex_lock(&s->waiting);
    *s->last_waiter = waiter;
    s->last_waiter = &waiter->next;
    const bool is_free = hub_try(s);
    pthread_mutex_unlock(&s->waiting);
    if (is_free)
        hub_unlock(s);
    hub_drop(s);
}

/* If somebody has the lock now, hub_unlock will call the next waiter. */
void hub_pass(struct hub_session *s) {
    if (hub_try(s))
        hub_unlock(s);
}

void hub_stir(struct hub_session *s) {
    pthread_mutex_lock(&s->waiting);
    s->changes++;
    pthread_cond_broadcast(&s->awake);
    pthread_mutex_unlock(&s->waiting);
}

void hub_sleep(struct hub_session *s, double patience_us) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(patience_us / 1e6);
    pthread_mutex_lock(&s->waiting);
    const uint64_t before = s->changes;
    pthread_mutex_unlock(&s->waiting);
    hub_unlock(s);
    pthread_mutex_lock(&s->waiting);
    while (s->changes == before && !hub_session_is_cancelled(s))
        if (pthread_cond_clockwait(&s->awake, &s->waiting, CLOCK_MONOTONIC, &until))
            break;
    pthread_mutex_unlock(&s->waiting);
    hub_lock(s);
}

/* ---- all of them ---- */

/* Offers that nobody took need not stay: the same random stream makes them again. */
static bool has_taken(const struct hub_session *s) {
    for (size_t i = 0; i < s->open.n; i++)
        if (s->open.list[i].taken)
            return true;
    return false;
}

/* The hub's mutex is held. The list of trials, which the session's own mutex guards, is read last: then nobody is left
 * who could change it. */
static bool in_use(const struct hub_session *s) {
    return s->references || (s->has_thread && !s->thread_ended) || has_taken(s);
}

/* The hub's mutex is held. Takes out what nobody uses: beyond the HUB_KEEP newest, and what was idle for long. */
static struct hub_session *evict(struct hub *hub) {
    const double long_ago_us = clock_now_us() - hub->options.idle_us;
    struct hub_session *gone = NULL;
    size_t idle = 0;
    for (struct hub_session **at = &hub->first; *at;) {
        struct hub_session *s = *at;
        if (in_use(s) || (++idle <= HUB_KEEP && s->used_us > long_ago_us)) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        s->next = gone;
        gone = s;
    }
    return gone;
}

/* To be called without the hub's mutex, because a thread that learns may have to end first. */
static void free_gone(struct hub_session *s) {
    const bool any = s != NULL;
    for (struct hub_session *next; s; s = next) {
        next = s->next;
        hub_own_stop(s);
        hub_session_cancel(s);
        hub_session_free(s);
    }
    if (any)
        malloc_trim(0); /* an engine is many small pieces, which the heap would keep */
}

void hub_add(struct hub_session *s) {
    struct hub *hub = s->hub;
    struct error err;
    hub_lock(s);
    if (s->mode == STORED_SESSION_OWN && hub_own_start(s, &err))
        log_error("session %s: %s", s->id, ERROR_TEXT(&err));
    hub_unlock(s);
    pthread_mutex_lock(&hub->mutex);
    s->next = hub->first;
    hub->first = s;
    struct hub_session *gone = evict(hub);
    pthread_mutex_unlock(&hub->mutex);
    free_gone(gone);
    hub_notify(s);
}

static struct hub_session *lookup(struct hub *hub, const char *id) {
    for (struct hub_session *s = hub->first; s; s = s->next)
        if (!strcmp(s->id, id)) {
            s->references++;
            return s;
        }
    return NULL;
}

/* Load how the session's trials are run. If the service runs them, it does so by the launcher that is registered now,
 * since the dataset's may be of another service. NULL: none is registered. */
static enum status load_runner(struct hub_session *s, const struct stored_session *stored, struct arena *arena,
                               struct error *err) {
    struct session_options kept;
    enum status st = session_options_read(stored, arena, &kept, err);
    if (st)
        return st;
    kept.launch.hosts = NULL;
    if (stored->mode == STORED_SESSION_OWN) {
        const struct cluster_launcher *launcher = hub_launcher(s->hub, stored->cluster);
        kept.launch.runner = launcher ? launcher->runner : NULL;
        kept.launch.hosts = launcher ? launcher->hosts : NULL;
    }
    if (!copy_text(&s->runner, kept.launch.runner) || !copy_text(&s->hosts, kept.launch.hosts))
        return error_no_memory(err);
    return copy_limits(s, &kept.job, err);
}

/* Load what the dataset says of the session, without the engine. */
static enum status load(struct hub *hub, const char *id, struct hub_session **out, struct error *err) {
    struct arena arena = {0};
    struct stored_session stored;
    struct store *reader;
    enum status st = access_read(hub->access, &reader, err);
    if (!st)
        st = store_session_get(reader, id, &arena, &stored, err);
    struct hub_session *s = st ? NULL : hub_session_new(hub);
    if (!st && !s)
        st = error_no_memory(err);
    if (!st) {
        snprintf(s->id, sizeof s->id, "%s", stored.id);
        s->mode = stored.mode;
        s->state = stored.state;
        if (!copy_text(&s->team, stored.team) || !copy_text(&s->shared, stored.shared))
            st = error_no_memory(err);
        if (!st)
            st = load_runner(s, &stored, &arena, err);
        if (!st)
            st = describe(s, reader, stored.model, stored.cluster, err);
    }
    arena_release(&arena);
    if (st && s)
        hub_session_free(s);
    if (!st)
        *out = s;
    return st;
}

enum status hub_find(struct hub *hub, const char *id, struct hub_session **out, struct error *err) {
    struct hub_session *loaded;
    pthread_mutex_lock(&hub->mutex);
    struct hub_session *s = lookup(hub, id);
    pthread_mutex_unlock(&hub->mutex);
    if (!s) {
        enum status st = load(hub, id, &loaded, err);
        if (st)
            return st;
        pthread_mutex_lock(&hub->mutex);
        s = lookup(hub, id);
        if (s) { /* somebody was faster */
            hub_session_free(loaded);
        } else {
            loaded->next = hub->first;
            hub->first = s = loaded;
        }
        struct hub_session *gone = evict(hub);
        pthread_mutex_unlock(&hub->mutex);
        free_gone(gone);
    }
    *out = s;
    return ST_OK;
}

void hub_drop(struct hub_session *s) {
    if (!s)
        return;
    struct hub *hub = s->hub;
    pthread_mutex_lock(&hub->mutex);
    s->references--;
    s->used_us = clock_now_us();
    pthread_mutex_unlock(&hub->mutex);
}

void hub_keep(struct hub_session *s) {
    pthread_mutex_lock(&s->hub->mutex);
    s->references++;
    pthread_mutex_unlock(&s->hub->mutex);
}

/* ---- the engine from the records ---- */

/* Renew, with its full length, the lease of each trial that a client has. */
static enum status take_up(struct hub_session *s, struct store *store, struct error *err) {
    enum status st = assignments_load(&s->open, s->engine, store, true, err);
    const double now = clock_boot_us();
    for (size_t i = 0; i < s->open.n; i++)
        s->open.list[i].deadline_us = now + s->open.list[i].lease_us;
    return st;
}

static enum status record_run(void *context, struct store *store, struct error *err) {
    struct hub_session *s = context;
    return session_record_run(s->engine, store, err);
}

bool hub_is_awake(const struct hub_session *s) {
    return s->engine;
}

void hub_forget_engine(struct hub_session *s) {
    session_close(s->engine);
    s->engine = NULL;
    s->open = (struct assignments){0};
    s->behind = false;
    stored_ranker_release(&s->ranker);
}

/* Of one view of the dataset, since others may write meanwhile. */
static enum status read_records(struct hub_session *s, struct store *reader, struct error *err) {
    bool began;
    enum status st = store_begin_read(reader, &began, err);
    if (!st)
        st = session_resume(s->engine, reader, s->id, err);
    if (!st)
        st = take_up(s, reader, err);
    store_end_read(reader, began);
    return st;
}

/* In place of those that the engine had, which is not in memory. */
static enum status keep_algorithms(struct hub_session *s, const char *algorithms, struct error *err) {
    free(s->algorithms);
    return copy_text(&s->algorithms, algorithms) ? ST_OK : error_no_memory(err);
}

enum status hub_wake(struct hub_session *s, struct error *err) {
    struct arena arena = {0};
    struct store *reader;
    struct stored_session stored;
    if (s->engine)
        return ST_OK;
    enum status st = access_read(s->hub->access, &reader, err);
    if (!st)
        st = store_session_get(reader, s->id, &arena, &stored, err);
    if (!st)
        st = hub_follow_cluster(s, reader, stored.cluster, err);
    if (!st) {
        struct session_options kept;
        st = session_options_read(&stored, &arena, &kept, err);
        s->options.kept.allow_lossy = !st && kept.allow_lossy;
        s->options.kept.allow_sharded = st ? SHARDED_none : kept.allow_sharded;
        s->options.kept.allow_stale = st ? 0 : kept.allow_stale;
        s->options.kept.weather = st ? 0 : kept.weather;
        s->options.kept.memory_bytes = st ? 0 : kept.memory_bytes;
        if (!st)
            st = keep_algorithms(s, kept.algorithms, err);
        if (!st && s->mode == STORED_SESSION_OWN)
            st = hub_own_options(s, err);
        if (!st)
            st = prepare_engine(s, reader, kept.ranker ? kept.ranker : "none", err);
    }
    if (!st)
        st = read_records(s, reader, err);
    if (!st)
        s->state = stored.state;
    if (!st && s->state == STORED_SESSION_RUNNING)
        st = hub_commit(s->hub, record_run, s, err);
    if (st)
        hub_forget_engine(s);
    arena_release(&arena);
    return st;
}

/* ---- the thread that ends leases, and clears away ---- */

/* Step to the next session after `s` (NULL: to the first). The next one is referenced, and `s` is given back. */
static struct hub_session *step_on(struct hub *hub, struct hub_session *s) {
    pthread_mutex_lock(&hub->mutex);
    struct hub_session *next = s ? s->next : hub->first;
    if (next)
        next->references++;
    if (s)
        s->references--;
    pthread_mutex_unlock(&hub->mutex);
    return next;
}

/* There is something new about a session. */
static void call(struct hub *hub, const char *id) {
    pthread_mutex_lock(&hub->mutex);
    for (struct hub_session *s = hub->first; s; s = s->next)
        s->called |= !strcmp(s->id, id);
    pthread_mutex_unlock(&hub->mutex);
    pthread_mutex_lock(&hub->listening);
    if (hub->changed)
        hub->changed(hub->context, id);
    pthread_mutex_unlock(&hub->listening);
}

/* See what other services wrote. */
static enum status follow_others(struct hub *hub, struct error *err) {
    struct arena arena = {0};
    struct store *reader;
    struct stored_event *events;
    size_t n = 0;
    enum status st = access_read(hub->access, &reader, err);
    if (!st)
        st = event_list(reader, NULL, hub->last_event, EVENTS_AT_ONCE, &arena, &n, &events, err);
    for (size_t i = 0; i < n && !st; i++) {
        hub->last_event = events[i].id;
        if (events[i].session)
            call(hub, events[i].session);
    }
    arena_release(&arena);
    return st;
}

static enum status refresh_leases(void *context, struct store *store, struct error *err) {
    (void)context;
    return leases_refresh(store, NULL, err);
}

/* While the database is away no lease can be renewed, so that afterwards all begin anew. */
static void tick_among_others(struct hub *hub) {
    struct error err;
    const bool was_away = hub->was_away;
    enum status st = was_away ? hub_commit(hub, refresh_leases, NULL, &err) : hub_expire_all(hub, &err);
    if (!st)
        st = follow_others(hub, &err);
    hub->was_away = st;
    if (st && !was_away)
        log_error("leases and events of other services: %s", ERROR_TEXT(&err));
}

static bool was_called(struct hub_session *s) {
    pthread_mutex_lock(&s->hub->mutex);
    const bool called = s->called;
    s->called = false;
    pthread_mutex_unlock(&s->hub->mutex);
    return called;
}

static void tick(struct hub *hub) {
    const bool shared = access_is_shared(hub->access);
    if (shared)
        tick_among_others(hub);
    for (struct hub_session *s = step_on(hub, NULL); s; s = step_on(hub, s)) {
        struct error err;
        if (!hub_try(s)) /* it is making a suggestion: next time */
            continue;
        if (shared ? was_called(s) && hub_catch_up(s, &err) : hub_expire(s, &err))
            log_error("session %s: %s", s->id, ERROR_TEXT(&err));
        hub_unlock(s);
    }
    pthread_mutex_lock(&hub->mutex);
    struct hub_session *gone = evict(hub);
    pthread_mutex_unlock(&hub->mutex);
    free_gone(gone);
}

static enum status recover_all(struct hub *hub, struct error *err);

/* Sessions whose service has died go on here. */
static void take_over_at_times(struct hub *hub) {
    struct error err;
    if (!access_is_shared(hub->access) || clock_now_us() < hub->take_over_us)
        return;
    hub->take_over_us = clock_now_us() + TAKE_OVER_US;
    if (recover_all(hub, &err))
        log_error("sessions of services that have died: %s", ERROR_TEXT(&err));
}

static void forget_at_times(struct hub *hub, double *due_us) {
    struct error err;
    bool more = false;
    if (clock_now_us() < *due_us)
        return;
    const enum status st = access_forget(hub->access, &more, &err);
    *due_us = more ? 0 : clock_now_us() + FORGET_US; /* leases are looked at in between */
    if (st)
        log_error("old events, audit entries and answers cannot be deleted now: %s", ERROR_TEXT(&err));
}

static void *keep_time(void *context) {
    struct hub *hub = context;
    double due_us = 0;
    work_enter(&hub->work);
    pthread_mutex_lock(&hub->mutex);
    while (!hub->closing) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += (long)(TICK_US * 1e3);
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_clockwait(&hub->wake, &hub->mutex, CLOCK_MONOTONIC, &until);
        pthread_mutex_unlock(&hub->mutex);
        tick(hub);
        take_over_at_times(hub);
        forget_at_times(hub, &due_us);
        pthread_mutex_lock(&hub->mutex);
    }
    pthread_mutex_unlock(&hub->mutex);
    work_leave();
    return NULL;
}

/* ---- from beginning to end ---- */

/* True for a session that a service opened in this dataset. Others do not go on unasked: those of `syncopate tune`, and
 * those that were imported or merged. */
static bool was_served(const struct stored_session *stored) {
    if (stored->origin && strcmp(stored->origin, SESSION_BEFORE) != 0)
        return false;
    struct arena arena = {0};
    struct session_options kept;
    const bool by_service = !session_options_read(stored, &arena, &kept, NULL) && kept.served;
    arena_release(&arena);
    return by_service;
}

static void go_on(struct hub *hub, const char *id) {
    struct hub_session *s;
    struct error err;
    enum status st = hub_find(hub, id, &s, &err);
    if (!st) {
        hub_lock(s);
        st = hub_wake(s, &err);
        if (!st)
            st = hub_own_start(s, &err);
        hub_unlock(s);
        hub_drop(s);
    }
    if (st)
        log_error("session %s does not go on: %s", id, ERROR_TEXT(&err));
}

static enum status claim_step(void *context, struct store *store, struct error *err) {
    return store_claim_session(store, context, 0, err);
}

enum status hub_claim(struct hub *hub, const char *id, struct error *err) {
    char copy[64];
    snprintf(copy, sizeof copy, "%s", id);
    return hub_commit(hub, claim_step, copy, err);
}

/* Whether no other service runs the session, and this one does not yet. */
static bool is_ours(struct hub *hub, const struct stored_session *stored) {
    bool runs = false;
    if (!access_is_shared(hub->access))
        return true;
    pthread_mutex_lock(&hub->mutex);
    for (const struct hub_session *s = hub->first; s; s = s->next)
        runs |= !strcmp(s->id, stored->id) && s->has_thread && !s->thread_ended;
    pthread_mutex_unlock(&hub->mutex);
    return !runs && hub_launcher(hub, stored->cluster) && !hub_claim(hub, stored->id, NULL);
}

/* Sessions in this state whose trials the service runs itself go on, or wait to be resumed if they are paused. Sessions
 * of clients are read when a client comes. */
static enum status recover(struct hub *hub, enum stored_session_state state, struct arena *arena, struct error *err) {
    const enum stored_session_mode own = STORED_SESSION_OWN;
    const struct session_list list = {.state = &state, .mode = &own};
    struct store *reader;
    struct stored_session *sessions;
    size_t n;
    char after[PAGE_CURSOR_ROOM] = "", next[PAGE_CURSOR_ROOM];
    enum status st = access_read(hub->access, &reader, err);
    do {
        n = 0;
        if (!st)
            st = page_sessions(reader, &list, *after ? after : NULL, 1000, arena, &n, &sessions, next, err);
        for (size_t i = 0; i < n && !st; i++)
            if (was_served(&sessions[i]) && is_ours(hub, &sessions[i]))
                go_on(hub, sessions[i].id);
        if (!st)
            memcpy(after, next, sizeof after);
    } while (!st && *after);
    return st;
}

enum status hub_open(struct access *access, const struct hub_options *options, struct hub **out, struct error *err) {
    struct hub *hub = calloc(1, sizeof *hub);
    if (!hub)
        return error_no_memory(err);
    hub->access = access;
    hub->options = *options;
    pthread_mutex_init(&hub->mutex, NULL);
    pthread_mutex_init(&hub->machine, NULL);
    pthread_mutex_init(&hub->listening, NULL);
    pthread_cond_init(&hub->wake, NULL);
    *out = hub;
    return ST_OK;
}

static enum status recover_all(struct hub *hub, struct error *err) {
    struct arena arena = {0};
    enum status st = recover(hub, STORED_SESSION_RUNNING, &arena, err);
    if (!st)
        st = recover(hub, STORED_SESSION_PAUSED, &arena, err);
    arena_release(&arena);
    return st;
}

static enum status begin_to_follow(struct hub *hub, struct error *err) {
    struct store *reader;
    enum status st = access_read(hub->access, &reader, err);
    return st ? st : event_last(reader, NULL, &hub->last_event, err);
}

enum status hub_start(struct hub *hub, struct error *err) {
    enum status st = access_was_alone(hub->access) ? hub_commit(hub, refresh_leases, NULL, err) : ST_OK;
    if (!st)
        st = begin_to_follow(hub, err);
    if (!st)
        st = recover_all(hub, err);
    if (!st && pthread_create(&hub->thread, NULL, keep_time, hub))
        st = error_set(err, ST_ENVIRONMENT, "no thread can be had");
    hub->has_thread = !st;
    return st;
}

/* All at once, so that none waits for another's end. */
void hub_halt(struct hub *hub) {
    pthread_mutex_lock(&hub->mutex);
    for (struct hub_session *s = hub->first; s; s = s->next) {
        hub_session_cancel(s);
        hub_stir(s);
    }
    pthread_mutex_unlock(&hub->mutex);
}

/* Own threads see `closing`, end their trial and give it back. */
void hub_close(struct hub *hub) {
    if (!hub)
        return;
    pthread_mutex_lock(&hub->mutex);
    hub->closing = true;
    work_stop(&hub->work, WORK_STOPPED);
    pthread_cond_broadcast(&hub->wake);
    pthread_mutex_unlock(&hub->mutex);
    if (hub->has_thread)
        pthread_join(hub->thread, NULL);
    hub_halt(hub);
    for (struct hub_session *s = hub->first; s; s = s->next)
        hub_own_stop(s);
    while (hub->first) {
        struct hub_session *s = hub->first;
        hub->first = s->next;
        hub_session_free(s);
    }
    for (size_t i = 0; i < hub->n_launchers; i++) {
        free(hub->launchers[i].runner);
        free(hub->launchers[i].hosts);
    }
    free(hub->launchers);
    pthread_cond_destroy(&hub->wake);
    pthread_mutex_destroy(&hub->machine);
    pthread_mutex_destroy(&hub->listening);
    pthread_mutex_destroy(&hub->mutex);
    free(hub);
}
