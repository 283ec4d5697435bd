/* A few threads and a queue of bounded length, for what takes too long on a connection's thread.
 * Threads: any. */
#ifndef TUNER_HTTP_POOL_H
#define TUNER_HTTP_POOL_H

#include <stdbool.h>
#include <stddef.h>

struct pool; /* opaque */

/* NULL when memory or threads are out. */
struct pool *pool_new(unsigned threads, size_t queue);

/* Let every queued job run, and end the threads: from then on nothing is accepted. */
void pool_close(struct pool *pool);
void pool_free(struct pool *pool); /* closes it; NULL is allowed */

/* Run job(context) on one of the threads. False: the queue is full. */
bool pool_submit(struct pool *pool, void (*job)(void *context), void *context);
size_t pool_waiting(struct pool *pool);

/* Call part(context, i) for every i < n, on the calling thread and on those that are idle, and return when all have
 * returned. May be called from a job. */
void pool_each(struct pool *pool, size_t n, void (*part)(void *context, size_t i), void *context);

#endif
