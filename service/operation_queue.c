/* See operation_queue.h. A queue and one thread: work of minutes would only slow each other and the service down if
 * several pieces ran at once. */
#include "service/operation_queue.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/work.h"
#include "dataset/usage.h"

enum { MOST_WAITING = 64, MOST_OF_A_TEAM = 8 };
static const char ended[] = "{\"code\":\"cancelled\",\"detail\":\"the service ended\"}";

struct operation_queue {
    struct access *access;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    struct operation_work *first, **last;
    size_t waiting;
    char turn[TEAM_NAME_MAX + 1]; /* whose work was begun last */
    atomic_int cancel;
    struct work work; /* all that the thread does, so that predictions end with the service too */
    bool has_thread;
    pthread_t thread;
};

/* ---- how a row ends ---- */

struct ending {
    struct operation_work *work;
    const char *failure; /* JSON; NULL: it is done */
};

/* Charge the rows and bytes that an operation adds to the team that asked for it. */
static enum status charge(struct store *store, const char *id, const struct usage_mark *since, struct error *err) {
    struct arena arena = {0};
    struct stored_operation operation;
    enum status st = operation_get(store, id, &arena, &operation, err);
    if (!st && operation.team)
        st = usage_add(store, since, operation.team, err);
    arena_release(&arena);
    return st;
}

static enum status end_done(struct operation_work *work, struct store *store, struct error *err) {
    cJSON *result = cJSON_CreateObject();
    enum status st = result ? work->keep(work, store, result, err) : error_no_memory(err);
    char *text = st ? NULL : json_line(result);
    if (!st)
        st = text ? operation_end(store, work->id, OPERATION_DONE, text, err) : error_no_memory(err);
    free(text);
    cJSON_Delete(result);
    return st;
}

static enum status end_step(void *context, struct store *store, struct error *err) {
    const struct ending *e = context;
    struct usage_mark mark;
    if (e->failure)
        return operation_end(store, e->work->id, OPERATION_FAILED, e->failure, err);
    enum status st = usage_mark(store, &mark, err);
    if (!st)
        st = end_done(e->work, store, err);
    return st ? st : charge(store, e->work->id, &mark, err);
}

/* {"code","detail"}, malloc'd; NULL when memory is out. */
static char *failure_text(enum status st, const struct error *why) {
    cJSON *json = cJSON_CreateObject();
    bool whole = json && cJSON_AddStringToObject(json, "code", status_word(st)) &&
                 cJSON_AddStringToObject(json, "detail", ERROR_TEXT(why));
    char *text = whole ? json_line(json) : NULL;
    cJSON_Delete(json);
    return text;
}

static void fail(struct operation_queue *o, struct operation_work *work, enum status st, const struct error *why) {
    struct error err = {0}, said = *why;
    access_hide_path(o->access, &said);
    char *text = o->cancel ? NULL : failure_text(st, &said);
    struct ending ending = {work, text ? text : ended};
    if (access_write(o->access, end_step, &ending, &err))
        log_error("operation %s: %s", work->id, ERROR_TEXT(&err));
    free(text);
}

static void perform(struct operation_queue *o, struct operation_work *work) {
    struct error err = {0};
    enum status st = o->cancel ? ST_CANCELLED : work->run(work, o->access, &o->cancel, &err);
    if (!st)
        st = access_write(o->access, end_step, &(struct ending){work, NULL}, &err);
    if (st)
        fail(o, work, st, &err);
    work->release(work);
}

/* ---- the thread ---- */

/* With the mutex held: take the first operation of a team other than the one served last, or else the first operation;
 * NULL when none waits. */
static struct operation_work *take(struct operation_queue *o) {
    struct operation_work **at = &o->first;
    while (*at && !strcmp((*at)->team, o->turn))
        at = &(*at)->next;
    at = *at ? at : &o->first;
    struct operation_work *work = *at;
    if (!work)
        return NULL;
    *at = work->next;
    if (!work->next)
        o->last = at;
    o->waiting--;
    memcpy(o->turn, work->team, sizeof o->turn);
    return work;
}

static void *serve(void *context) {
    struct operation_queue *o = context;
    work_enter(&o->work);
    pthread_mutex_lock(&o->mutex);
    for (;;) {
        while (!o->first && !o->cancel)
            pthread_cond_wait(&o->wake, &o->mutex);
        struct operation_work *work = take(o);
        if (!work)
            break;
        pthread_mutex_unlock(&o->mutex);
        perform(o, work);
        pthread_mutex_lock(&o->mutex);
    }
    pthread_mutex_unlock(&o->mutex);
    work_leave();
    return NULL;
}

/* Signals are for the thread that waits for them. */
static bool start_thread(struct operation_queue *o) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    o->has_thread = !pthread_create(&o->thread, NULL, serve, o);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return o->has_thread;
}

static enum status reconcile_step(void *context, struct store *store, struct error *err) {
    return operation_reconcile(store, ended, context, err);
}

enum status operation_queue_open(struct access *access, struct operation_queue **out, struct error *err) {
    uint64_t n = 0;
    /* Those of another service that runs are its own. */
    enum status st = access_was_alone(access) ? access_write(access, reconcile_step, &n, err) : ST_OK;
    struct operation_queue *o = st ? NULL : calloc(1, sizeof *o);
    if (!o)
        return st ? st : error_no_memory(err);
    if (n)
        log_warn("%lu operations did not end before the service did", (unsigned long)n);
    o->access = access;
    o->last = &o->first;
    pthread_mutex_init(&o->mutex, NULL);
    pthread_cond_init(&o->wake, NULL);
    if (!start_thread(o)) {
        operation_queue_close(o);
        return error_set(err, ST_ENVIRONMENT, "no more threads");
    }
    *out = o;
    return ST_OK;
}

void operation_queue_close(struct operation_queue *o) {
    if (!o)
        return;
    pthread_mutex_lock(&o->mutex);
    o->cancel = 1;
    work_stop(&o->work, WORK_STOPPED);
    pthread_cond_signal(&o->wake);
    pthread_mutex_unlock(&o->mutex);
    if (o->has_thread)
        pthread_join(o->thread, NULL);
    pthread_cond_destroy(&o->wake);
    pthread_mutex_destroy(&o->mutex);
    free(o);
}

bool operation_queue_have_room(struct operation_queue *o, const char *team) {
    size_t own = 0;
    pthread_mutex_lock(&o->mutex);
    for (const struct operation_work *work = o->first; work; work = work->next)
        own += !strcmp(work->team, team);
    const bool room = o->waiting < MOST_WAITING && own < MOST_OF_A_TEAM;
    pthread_mutex_unlock(&o->mutex);
    return room;
}

void operation_queue_submit(struct operation_queue *o, struct operation_work *work) {
    work->next = NULL;
    pthread_mutex_lock(&o->mutex);
    *o->last = work;
    o->last = &work->next;
    o->waiting++;
    pthread_cond_signal(&o->wake);
    pthread_mutex_unlock(&o->mutex);
}
