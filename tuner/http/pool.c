/* See pool.h. A ring of jobs under one mutex. pool_each hands its indices out by an atomic counter to whoever comes:
 * the caller always works too, so it ends even when every thread is busy; helpers that come late find nothing left, and
 * the last to leave frees the shared record. */
#include "tuner/http/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct job {
    void (*run)(void *context);
    void *context;
};

struct pool {
    pthread_mutex_t mutex;
    pthread_cond_t work;
    struct job *ring;
    size_t capacity, first, n;
    bool closing;
    unsigned n_threads;
    pthread_t *threads;
};

static void *worker(void *argument) {
    struct pool *pool = argument;
    pthread_mutex_lock(&pool->mutex);
    for (;;) {
        while (!pool->n && !pool->closing)
            pthread_cond_wait(&pool->work, &pool->mutex);
        if (!pool->n)
            break;
        struct job job = pool->ring[pool->first];
        pool->first = (pool->first + 1) % pool->capacity;
        pool->n--;
        pthread_mutex_unlock(&pool->mutex);
        job.run(job.context);
        pthread_mutex_lock(&pool->mutex);
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

struct pool *pool_new(unsigned threads, size_t queue) {
    struct pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->work, NULL);
    pool->capacity = queue;
    pool->ring = calloc(queue, sizeof *pool->ring);
    pool->threads = calloc(threads, sizeof *pool->threads);
    while (pool->ring && pool->threads && pool->n_threads < threads &&
           !pthread_create(&pool->threads[pool->n_threads], NULL, worker, pool))
        pool->n_threads++;
    if (pool->n_threads < threads) {
        pool_free(pool);
        return NULL;
    }
    return pool;
}

void pool_close(struct pool *pool) {
    pthread_mutex_lock(&pool->mutex);
    pool->closing = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
    for (unsigned i = 0; i < pool->n_threads; i++)
        pthread_join(pool->threads[i], NULL);
    pool->n_threads = 0;
}

void pool_free(struct pool *pool) {
    if (!pool)
        return;
    pool_close(pool);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->mutex);
    free(pool->ring);
    free(pool->threads);
    free(pool);
}

bool pool_submit(struct pool *pool, void (*run)(void *context), void *context) {
    pthread_mutex_lock(&pool->mutex);
    bool room = pool->n < pool->capacity && !pool->closing;
    if (room) {
        pool->ring[(pool->first + pool->n++) % pool->capacity] = (struct job){run, context};
        pthread_cond_signal(&pool->work);
    }
    pthread_mutex_unlock(&pool->mutex);
    return room;
}

size_t pool_waiting(struct pool *pool) {
    pthread_mutex_lock(&pool->mutex);
    size_t n = pool->n;
    pthread_mutex_unlock(&pool->mutex);
    return n;
}

struct each {
    pthread_mutex_t mutex;
    pthread_cond_t done;
    void (*part)(void *context, size_t i);
    void *context;
    size_t n;
    atomic_size_t next;
    size_t finished;  /* parts */
    unsigned holders; /* the caller, and helpers that have not left */
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

static void take_parts(struct each *each) {
    size_t finished = 0;
    for (size_t i; (i = atomic_fetch_add(&each->next, 1)) < each->n; finished++)
        each->part(each->context, i);
    pthread_mutex_lock(&each->mutex);
    each->finished += finished;
    pthread_cond_signal(&each->done);
    pthread_mutex_unlock(&each->mutex);
}

static void help(void *context) {
    take_parts(context);
    leave(context);
}

void pool_each(struct pool *pool, size_t n, void (*part)(void *context, size_t i), void *context) {
    struct each *each = n > 1 ? calloc(1, sizeof *each) : NULL;
    if (!each) { /* one part, or no memory to share with */
        for (size_t i = 0; i < n; i++)
            part(context, i);
        return;
    }
    *each = (struct each){.part = part, .context = context, .n = n, .holders = 1};
    pthread_mutex_init(&each->mutex, NULL);
    pthread_cond_init(&each->done, NULL);
    for (unsigned k = 1; k < pool->n_threads && k < n; k++) {
        pthread_mutex_lock(&each->mutex);
        each->holders++;
        pthread_mutex_unlock(&each->mutex);
        if (!pool_submit(pool, help, each))
            leave(each);
    }
    take_parts(each);
    pthread_mutex_lock(&each->mutex);
    while (each->finished < n)
        pthread_cond_wait(&each->done, &each->mutex);
    pthread_mutex_unlock(&each->mutex);
    leave(each);
}
