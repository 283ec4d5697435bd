/* What an importer had to assume or leave out, a line each, for whoever uses the description.
 * Threads: one at a time. */
#ifndef INTEROP_IMPORT_NOTES_H
#define INTEROP_IMPORT_NOTES_H

#include <stdbool.h>

#include "base/arena.h"

struct note {
    const struct note *next;
    const char *text;
};

/* {.arena = ...} is empty. */
struct notes {
    struct arena *arena; /* the caller's; owns the lines */
    const struct note *first;
    struct note *last;
};

/* False when memory is out. */
bool notes_add(struct notes *notes, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
