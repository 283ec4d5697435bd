/* Blocks double from 4 KiB up to 1 MiB; a request larger than a block gets a block of its own. Cost: O(1) an
 * allocation besides the zeroing. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/work.h"

#if defined(__SANITIZE_ADDRESS__)
#define BLOCK_EACH 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BLOCK_EACH 1
#endif
#endif
#ifndef BLOCK_EACH
#define BLOCK_EACH 0
#endif

enum { FIRST_BLOCK = 4096, LARGEST_BLOCK = 1 << 20 };

struct arena_block {
    struct arena_block *next;
    size_t size, used;
    alignas(max_align_t) char data[];
};

static struct arena_block *block_new(struct arena *arena, size_t need) {
    size_t size = need;
    if (!BLOCK_EACH) {
        size = arena->blocks ? arena->blocks->size * 2 : FIRST_BLOCK;
        if (size > LARGEST_BLOCK)
            size = LARGEST_BLOCK;
        if (size < need)
            size = need;
    }
    if (!work_take(size))
        return NULL;
    struct arena_block *block = malloc(sizeof *block + size);
    if (!block) {
        work_give(size);
        return NULL;
    }
    *block = (struct arena_block){arena->blocks, size, 0};
    arena->blocks = block;
    return block;
}

void *arena_alloc(struct arena *arena, size_t n, size_t size) {
    size_t need;
    const size_t align = alignof(max_align_t);
    if (__builtin_mul_overflow(n, size, &need) || need > SIZE_MAX / 2)
        return NULL;
    if (!BLOCK_EACH)
        need = (need + align - 1) / align * align;
    struct arena_block *block = arena->blocks;
    if (BLOCK_EACH || !block || block->size - block->used < need)
        block = block_new(arena, need);
    if (!block)
        return NULL;
    void *memory = block->data + block->used;
    block->used += need;
    return memset(memory, 0, need);
}

char *arena_copy(struct arena *arena, const char *text, size_t n) {
    char *copy = arena_alloc(arena, n + 1, 1);
    if (copy)
        memcpy(copy, text, n);
    return copy;
}

char *arena_strdup(struct arena *arena, const char *text) {
    return arena_copy(arena, text, strlen(text));
}

char *arena_printf(struct arena *arena, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = n < 0 ? NULL : arena_alloc(arena, (size_t)n + 1, 1);
    if (!text)
        return NULL;
    va_start(args, format);
    vsnprintf(text, (size_t)n + 1, format, args);
    va_end(args);
    return text;
}

size_t arena_bytes(const struct arena *arena) {
    size_t bytes = 0;
    for (const struct arena_block *block = arena->blocks; block; block = block->next)
        bytes += block->size;
    return bytes;
}

void arena_release(struct arena *arena) {
    while (arena->blocks) {
        struct arena_block *next = arena->blocks->next;
        work_give(arena->blocks->size);
        free(arena->blocks);
        arena->blocks = next;
    }
}

void arena_clear(struct arena *arena) {
    if (BLOCK_EACH || !arena->blocks) {
        arena_release(arena);
        return;
    }
    struct arena rest = {arena->blocks->next};
    arena_release(&rest);
    arena->blocks->next = NULL;
    arena->blocks->used = 0;
}
