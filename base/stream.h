/* A text that grows in memory while stdio writes it.
 *
 *     char *text;
 *     size_t n;
 *     FILE *to = stream_open(&text, &n);
 *     enum status st = to ? write(to, err) : ST_OK;
 *     st = stream_close(to, st, &text, err);
 *
 * Threads: a stream belongs to one thread; it is not locked for each character. */
#ifndef BASE_STREAM_H
#define BASE_STREAM_H

#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

/* Open a stream that writes into memory. NULL when memory is out: stream_close reports that. */
FILE *stream_open(char **text, size_t *n);

/* End the stream. `st` is the status of the writing so far. On ST_OK the n bytes of text, and a NUL after them, are the
 * caller's to free; else *text is NULL. Fails: as `st`; ST_NO_MEMORY (the text is not whole, or `to` is NULL). */
enum status stream_close(FILE *to, enum status st, char **text, struct error *err);

/* End the stream, as stream_close, and write its text, of *n bytes then, to the file `path`, whole or
 * not at all. Fails: as stream_close and file_write. */
enum status stream_save(FILE *to, enum status st, char **text, const size_t *n, const char *path, struct error *err);

#endif
