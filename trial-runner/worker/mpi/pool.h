/* Buffers that are taken for a while and given back: fusion, staging, accumulators. Memory is kept, so that after the
 * first iteration no message pays for page faults. */
#ifndef TRIAL_RUNNER_WORKER_MPI_POOL_H
#define TRIAL_RUNNER_WORKER_MPI_POOL_H

#include <stddef.h>
#include <stdint.h>

struct pool_buffer;
struct pool {
    struct pool_buffer *free;         /* smallest first */
    uint64_t taken_bytes, most_bytes; /* asked for and not given back; the most that this ever was */
};

void *pool_take(struct pool *pool, uint64_t bytes); /* aligned for any type; ends the job when memory is out */
void pool_give(struct pool *pool, void *buffer);    /* NULL is allowed */
void pool_release(struct pool *pool);               /* what was given back */

#endif
