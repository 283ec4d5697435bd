/* A list of free buffers by rising size; best fit, but never a buffer of more than twice the size. O(free). */
#include "trial-runner/worker/mpi/pool.h"

#include <stdlib.h>
#include <string.h>

#include "trial-runner/worker/report.h"

enum { POOL_ALIGN = 64, POOL_PAGE = 4096, POOL_LARGE = 1 << 16 };

/* The head of a buffer, in the POOL_ALIGN bytes before those of the caller. */
struct pool_buffer {
    struct pool_buffer *next;
    uint64_t bytes, asked; /* asked: by who has it now */
};

static void *data_of(struct pool_buffer *buffer) {
    return (char *)buffer + POOL_ALIGN;
}

/* Large buffers are whole pages: parts of a ring that differ by one element serve for each other. */
static struct pool_buffer *buffer_new(uint64_t bytes) {
    if (bytes >= POOL_LARGE)
        bytes = (bytes + POOL_PAGE - 1) / POOL_PAGE * POOL_PAGE;
    uint64_t rounded = (bytes + 2 * POOL_ALIGN - 1) / POOL_ALIGN * POOL_ALIGN;
    struct pool_buffer *buffer = aligned_alloc(POOL_ALIGN, rounded);
    if (!buffer)
        report_abort(ST_NO_MEMORY, "out of memory for a message of %llu bytes", (unsigned long long)bytes);
    memset(buffer, 0, rounded);
    buffer->bytes = bytes;
    return buffer;
}

static void *hand_out(struct pool *pool, struct pool_buffer *buffer, uint64_t bytes) {
    buffer->asked = bytes;
    pool->taken_bytes += bytes;
    if (pool->most_bytes < pool->taken_bytes)
        pool->most_bytes = pool->taken_bytes;
    return data_of(buffer);
}

void *pool_take(struct pool *pool, uint64_t bytes) {
    for (struct pool_buffer **at = &pool->free; *at; at = &(*at)->next) {
        struct pool_buffer *buffer = *at;
        if (buffer->bytes < bytes)
            continue;
        if (buffer->bytes / 2 > bytes)
            break;
        *at = buffer->next;
        return hand_out(pool, buffer, bytes);
    }
    return hand_out(pool, buffer_new(bytes), bytes);
}

void pool_give(struct pool *pool, void *data) {
    if (!data)
        return;
    struct pool_buffer *buffer = (struct pool_buffer *)(void *)((char *)data - POOL_ALIGN);
    struct pool_buffer **at = &pool->free;
    pool->taken_bytes -= buffer->asked;
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
