/* A list of free buffers by rising size; best fit, but never a buffer of more than twice the size. O(free). */
#include "trial-runner/worker/mpi/pool.h"

#include <stdlib.h>
#include <string.h>

#include "trial-runner/worker/report.h"

enum { POOL_ALIGN = 64 };

/* The head of a buffer, in the POOL_ALIGN bytes before those of the caller. */
struct pool_buffer {
    struct pool_buffer *next;
    uint64_t bytes;
};

static void *data_of(struct pool_buffer *buffer) {
    return (char *)buffer + POOL_ALIGN;
}

static struct pool_buffer *buffer_new(uint64_t bytes) {
    uint64_t rounded = (bytes + 2 * POOL_ALIGN - 1) / POOL_ALIGN * POOL_ALIGN;
    struct pool_buffer *buffer = aligned_alloc(POOL_ALIGN, rounded);
    if (!buffer)
        report_abort(ST_NO_MEMORY, "out of memory for a message of %llu bytes", (unsigned long long)bytes);
    memset(buffer, 0, rounded);
    buffer->bytes = bytes;
    return buffer;
}

void *pool_take(struct pool *pool, uint64_t bytes) {
    for (struct pool_buffer **at = &pool->free; *at; at = &(*at)->next) {
        struct pool_buffer *buffer = *at;
        if (buffer->bytes < bytes)
            continue;
        if (buffer->bytes / 2 > bytes)
            break;
        *at = buffer->next;
        return data_of(buffer);
    }
    return data_of(buffer_new(bytes));
}

void pool_give(struct pool *pool, void *data) {
    if (!data)
        return;
    struct pool_buffer *buffer = (struct pool_buffer *)(void *)((char *)data - POOL_ALIGN);
    struct pool_buffer **at = &pool->free;
    while (*at && (*at)->bytes < buffer->bytes)
        at = &(*at)->next;
    buffer->next = *at;
    *at = buffer;
}

void pool_release(struct pool *pool) {
    while (pool->free) {
        struct pool_buffer *next = pool->free->next;
        free(pool->free);
        pool->free = next;
    }
}
