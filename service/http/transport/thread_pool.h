/* A few threads and a queue, for what takes too long on a connection's thread. Every job has an owner, a team: owners
 * take turns, and none has more than its share of the threads or of the queue.
 * Threads: any. */
#ifndef SERVICE_HTTP_TRANSPORT_THREAD_POOL_H
#define SERVICE_HTTP_TRANSPORT_THREAD_POOL_H

#include <stdbool.h>
#include <stddef.h>

struct thread_pool; /* opaque */

struct thread_pool_options {
    unsigned threads;
    unsigned share;     /* threads that one owner may have at once; 0: all */
    size_t queue;       /* jobs that may wait */
    size_t queue_share; /* of one owner; 0: all */
    int niceness;       /* of the threads: above 0 they give way to the rest of the process */
};

/* One piece of work; embedded in what it is about, and untouched by its owner until it runs. */
struct thread_pool_job {
    void (*run)(void *context);
    void *context;
    struct thread_pool_job *next;      /* the pool's */
    struct thread_pool_owner *pending; /* the pool's */
};

/* NULL when memory or threads are out. */
struct thread_pool *thread_pool_new(const struct thread_pool_options *options);

/* Let every queued job run, and end the threads: from then on nothing is accepted. */
void thread_pool_close(struct thread_pool *pool);
void thread_pool_free(struct thread_pool *pool); /* closes it; NULL is allowed */

enum thread_pool_answer {
    POOL_TAKEN,
    POOL_FULL,      /* too much waits, or the pool is closed */
    POOL_OWNER_FULL /* this owner has its share waiting */
};

/* Run the job on one of the threads when its owner's turn comes. */
enum thread_pool_answer thread_pool_submit(struct thread_pool *pool, const char *owner, struct thread_pool_job *job);

/* The same for a job that was taken before and could not end yet. It is taken however long the queue is, but by a
 * closed pool: then false. */
bool thread_pool_resubmit(struct thread_pool *pool, const char *owner, struct thread_pool_job *job);

/* Call part(context, i) for every i < n, on the calling thread and on those that are idle and within the owner's share,
 * and return when all have returned. All of them are in the calling thread's work (base/work.h). May be called from a
 * job. */
void thread_pool_each(struct thread_pool *pool, const char *owner, size_t n, void (*part)(void *context, size_t i),
                      void *context);

#endif
