/* See thread_pool.h. A list of owners that have jobs waiting or running, each with a queue of its own, under one mutex.
 * A thread takes the first owner with a waiting job and room within its share, and moves that owner to the end of the
 * list.
 *
 * thread_pool_each hands its indices out by an atomic counter to whoever comes: the caller always works too, so it ends
 * even when every thread is busy; helpers that come late find nothing left, and the last to leave frees the shared
 * record.
 */
#include "service/http/transport/thread_pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/work.h"

struct thread_pool_owner {
    struct thread_pool_owner *next;
    struct thread_pool_job *first, **last;
    size_t waiting;
    unsigned running;
    char name[80];
};

struct thread_pool {
    struct thread_pool_options options;
    pthread_mutex_t mutex;
    pthread_cond_t work;
    struct thread_pool_owner *owners;
    size_t waiting;
    bool closing;
    unsigned n_threads;
    pthread_t *threads;
};

/* ---- owners: the mutex is held ---- */

static struct thread_pool_owner *find_owner(struct thread_pool *pool, const char *name) {
    struct thread_pool_owner **at = &pool->owners;
    while (*at && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    if (!*at && (*at = calloc(1, sizeof **at))) {
        snprintf((*at)->name, sizeof(*at)->name, "%s", name);
        (*at)->last = &(*at)->first;
    }
    return *at;
}

static void forget_idle(struct thread_pool *pool, struct thread_pool_owner *owner) {
    if (owner->waiting || owner->running)
        return;
    struct thread_pool_owner **at = &pool->owners;
    while (*at != owner)
        at = &(*at)->next;
    *at = owner->next;
    free(owner);
}

static void to_the_end(struct thread_pool_owner **at) {
    struct thread_pool_owner *owner = *at;
    *at = owner->next;
    while (*at)
        at = &(*at)->next;
    owner->next = NULL;
    *at = owner;
}

static void append(struct thread_pool *pool, struct thread_pool_owner *owner, struct thread_pool_job *job) {
    job->next = NULL;
    job->pending = owner;
    *owner->last = job;
    owner->last = &job->next;
    owner->waiting++;
    pool->waiting++;
    pthread_cond_signal(&pool->work);
}

/* Take the next job of the owner whose turn it is. NULL when no owner may have another thread. */
static struct thread_pool_job *take(struct thread_pool *pool) {
    for (struct thread_pool_owner **at = &pool->owners; *at; at = &(*at)->next) {
        struct thread_pool_owner *owner = *at;
        struct thread_pool_job *job = owner->first;
        if (!job || owner->running >= pool->options.share)
            continue;
        owner->first = job->next;
        owner->last = owner->first ? owner->last : &owner->first;
        owner->waiting--;
        owner->running++;
        pool->waiting--;
        to_the_end(at);
        return job;
    }
    return NULL;
}

static void ended(struct thread_pool *pool, struct thread_pool_owner *owner) {
    owner->running--;
    if (owner->waiting)
        pthread_cond_signal(&pool->work); /* it may have another thread now */
    else
        forget_idle(pool, owner);
}

/* ---- threads ---- */

static void *worker(void *argument) {
    struct thread_pool *pool = argument;
    if (pool->options.niceness)
        setpriority(PRIO_PROCESS, 0, pool->options.niceness); /* on Linux: of this thread alone */
    pthread_mutex_lock(&pool->mutex);
    for (;;) {
        struct thread_pool_job *job = take(pool);
        if (job) {
            struct thread_pool_owner *owner = job->pending;
            pthread_mutex_unlock(&pool->mutex);
            job->run(job->context);
            pthread_mutex_lock(&pool->mutex);
            ended(pool, owner);
        } else if (pool->closing && !pool->waiting) {
            break;
        } else {
            pthread_cond_wait(&pool->work, &pool->mutex);
        }
    }
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

struct thread_pool *thread_pool_new(const struct thread_pool_options *options) {
    struct thread_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    pool->options = *options;
    if (!pool->options.share)
        pool->options.share = options->threads;
    if (!pool->options.queue_share)
        pool->options.queue_share = options->queue;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->work, NULL);
    pool->threads = calloc(options->threads, sizeof *pool->threads);
    while (pool->threads && pool->n_threads < options->threads &&
           !pthread_create(&pool->threads[pool->n_threads], NULL, worker, pool))
        pool->n_threads++;
    if (pool->n_threads < options->threads) {
        thread_pool_free(pool);
        return NULL;
    }
    return pool;
}

void thread_pool_close(struct thread_pool *pool) {
    pthread_mutex_lock(&pool->mutex);
    pool->closing = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
    for (unsigned i = 0; i < pool->n_threads; i++)
        pthread_join(pool->threads[i], NULL);
    pool->n_threads = 0;
}

void thread_pool_free(struct thread_pool *pool) {
    if (!pool)
        return;
    thread_pool_close(pool);
    for (struct thread_pool_owner *owner = pool->owners, *next; owner; owner = next) {
        next = owner->next;
        free(owner);
    }
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->mutex);
    free(pool->threads);
    free(pool);
}

/* ---- jobs ---- */

static enum thread_pool_answer submit(struct thread_pool *pool, const char *name, struct thread_pool_job *job,
                                      bool again) {
    enum thread_pool_answer answer = POOL_TAKEN;
    pthread_mutex_lock(&pool->mutex);
    struct thread_pool_owner *owner = NULL;
    if (pool->closing || (!again && pool->waiting >= pool->options.queue) || !(owner = find_owner(pool, name)))
        answer = POOL_FULL;
    else if (!again && owner->waiting >= pool->options.queue_share)
        answer = POOL_OWNER_FULL;
    else
        append(pool, owner, job);
    pthread_mutex_unlock(&pool->mutex);
    return answer;
}

enum thread_pool_answer thread_pool_submit(struct thread_pool *pool, const char *owner, struct thread_pool_job *job) {
    return submit(pool, owner, job, false);
}

bool thread_pool_resubmit(struct thread_pool *pool, const char *owner, struct thread_pool_job *job) {
    return submit(pool, owner, job, true) == POOL_TAKEN;
}

/* ---- parts ---- */

struct each {
    pthread_mutex_t mutex;
    pthread_cond_t done;
    void (*part)(void *context, size_t i);
    void *context;
    struct work *work; /* the caller's */
    size_t n;
    atomic_size_t next;
    size_t finished;  /* parts */
    unsigned holders; /* the caller, and helpers that have not left */
    struct thread_pool_job helpers[];
};

static void leave(struct each *each) {
    pthread_mutex_lock(&each->mutex);
    bool last = !--each->holders;
    pthread_mutex_unlock(&each->mutex);
    if (!last)
        return;
    pthread_cond_destroy(&each->done);
    pthread_mutex_destroy(&each->mutex);
    free(each);
}

/* The counter is looked at first: a helper that comes when all is done must not touch the caller's work, which may be
 * gone. */
static void take_parts(struct each *each, bool helper) {
    size_t finished = 0, i = atomic_fetch_add(&each->next, 1);
    if (i < each->n && helper)
        work_enter(each->work);
    for (; i < each->n; i = atomic_fetch_add(&each->next, 1), finished++)
        each->part(each->context, i);
    if (finished && helper)
        work_leave();
    pthread_mutex_lock(&each->mutex);
    each->finished += finished;
    pthread_cond_signal(&each->done);
    pthread_mutex_unlock(&each->mutex);
}

static void help(void *context) {
    take_parts(context, true);
    leave(context);
}

void thread_pool_each(struct thread_pool *pool, const char *owner, size_t n, void (*part)(void *context, size_t i),
                      void *context) {
    const size_t helpers = n && n - 1 < pool->options.share - 1 ? n - 1 : pool->options.share - 1;
    struct each *each = n > 1 ? calloc(1, sizeof *each + helpers * sizeof *each->helpers) : NULL;
    if (!each) { /* one part, or no memory to share with */
        for (size_t i = 0; i < n; i++)
            part(context, i);
        return;
    }
    each->part = part;
    each->context = context;
    each->work = work_current();
    each->n = n;
    each->holders = 1;
    pthread_mutex_init(&each->mutex, NULL);
    pthread_cond_init(&each->done, NULL);
    for (size_t k = 0; k < helpers; k++) {
        each->helpers[k] = (struct thread_pool_job){.run = help, .context = each};
        pthread_mutex_lock(&each->mutex);
        each->holders++;
        pthread_mutex_unlock(&each->mutex);
        if (thread_pool_submit(pool, owner, &each->helpers[k]) != POOL_TAKEN)
            leave(each);
    }
    take_parts(each, false);
    pthread_mutex_lock(&each->mutex);
    while (each->finished < n)
        pthread_cond_wait(&each->done, &each->mutex);
    pthread_mutex_unlock(&each->mutex);
    leave(each);
}
