/* See base/stream.h. */
#include "base/stream.h"

#include <stdbool.h>
#include <stdio_ext.h>
#include <stdlib.h>

#include "base/file.h"

FILE *stream_open(char **text, size_t *n) {
    *text = NULL;
    *n = 0;
    FILE *to = open_memstream(text, n);
    if (to)
        __fsetlocking(to, FSETLOCKING_BYCALLER);
    return to;
}

enum status stream_close(FILE *to, enum status st, char **text, struct error *err) {
    bool whole = to && !ferror(to);
    whole = to && !fclose(to) && whole;
    if (!st && !whole)
        st = error_no_memory(err);
    if (st) {
        free(*text);
        *text = NULL;
    }
    return st;
}

enum status stream_save(FILE *to, enum status st, char **text, const size_t *n, const char *path, struct error *err) {
    st = stream_close(to, st, text, err);
    if (!st)
        st = file_write(path, *n, *text, err);
    free(*text);
    *text = NULL;
    return st;
}
