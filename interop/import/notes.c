/* See interop/import/notes.h. */
#include "interop/import/notes.h"

#include <stdarg.h>
#include <stdio.h>

bool notes_add(struct notes *notes, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    struct note *note = arena_alloc(notes->arena, 1, sizeof *note);
    if (!note || !(note->text = arena_strdup(notes->arena, text)))
        return false;
    if (notes->last)
        notes->last->next = note;
    else
        notes->first = note;
    notes->last = note;
    return true;
}
