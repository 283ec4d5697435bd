/* Each text once: of many equal texts one copy is kept, so that a million events with a hundred names need little
 * memory.
 * Threads: one at a time. */
#ifndef INTEROP_IMPORT_TEXT_SET_H
#define INTEROP_IMPORT_TEXT_SET_H

#include <stddef.h>

#include "base/arena.h"

/* {.arena = ...} is empty. The copies live in the caller's arena. */
struct text_set {
    struct arena *arena;
    const char **slots; /* malloc'd; NULL: free */
    size_t n, room;     /* room: 0 or a power of 2 */
};

/* The copy of `text`; NULL when memory is out. O(length). */
const char *text_set_add(struct text_set *set, const char *text);
void text_set_release(struct text_set *set);

#endif
