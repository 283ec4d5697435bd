/* A bump allocator: many small allocations that live and die together.
 *
 * One arena a description, a plan, a candidate batch. Nothing in it is freed alone. In sanitizer builds every
 * allocation is its own malloc, so that ASan still sees each bound.
 * Threads: an arena belongs to one thread at a time. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

struct arena_block;
struct arena {
    struct arena_block *blocks; /* newest first; {0} is an empty arena */
};

/* Zeroed memory for n elements of `size` bytes, aligned for any type; NULL when memory is out or n * size overflows.
 * n = 0 gives a valid pointer. */
void *arena_alloc(struct arena *arena, size_t n, size_t size);

/* A NUL-terminated copy of the n bytes at `text`; NULL when memory is out. */
char *arena_copy(struct arena *arena, const char *text, size_t n);
char *arena_strdup(struct arena *arena, const char *text);
char *arena_printf(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* How much memory it holds. O(blocks). */
size_t arena_bytes(const struct arena *arena);

/* Free everything and make the arena empty again. */
void arena_release(struct arena *arena);

/* Forget every allocation but keep the memory, so that a loop over candidates allocates once. */
void arena_clear(struct arena *arena);

#endif
