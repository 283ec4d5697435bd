/* What an importer reads: the bytes of a file and its name, cut into lines and words.
 *
 * A message about a line begins "FILE:LINE: ", one about bytes "FILE: byte OFFSET: ".
 * Threads: a struct source may be shared once it is read; a struct lines belongs to one thread. */
#ifndef INTEROP_IMPORT_SOURCE_H
#define INTEROP_IMPORT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

struct source {
    const char *name; /* the file, in messages */
    const char *text; /* n bytes, and a 0 behind them */
    size_t n;
    bool cut; /* the file has more than the n bytes that were read */
};

enum { SOURCE_MAX_BYTES = 64 << 20, SOURCE_MAX_WORDS = 64 };

/* Read a file, "-" being standard input; name and text live in `arena`. Of a file over SOURCE_MAX_BYTES the beginning
 * is read and `cut` set: the headers of some formats stand before gigabytes of data. What follows stays in standard
 * input.
 * Fails: ST_NOT_FOUND, ST_ENVIRONMENT, ST_NO_MEMORY. */
enum status source_read(const char *path, struct arena *arena, struct source *out, struct error *err);

/* Check that the source is not cut, and is UTF-8 text without NUL. Fails: ST_INVALID with the offset, ST_TOO_LARGE. */
enum status source_check_text(const struct source *source, struct error *err);

/* All of a file of which source_read has read the beginning only. The file is mapped, so only the pages that are looked
 * at are read. Release with source_unmap. If another program shortens the file meanwhile, this process gets SIGBUS and
 * ends. Fails: ST_TOO_LARGE (not a regular file, such as standard input), ST_ENVIRONMENT. */
enum status source_map(const struct source *source, struct source *out, struct error *err);
void source_unmap(struct source *source);

/* How many of the n bytes at `text`, from the first on, are UTF-8 text without NUL. O(n). */
size_t text_valid_bytes(const char *text, size_t n);

/* The file's name without its folders and without everything from its first dot on: the default name of a description.
 * A name that begins with a dot stays whole. SOURCE_NAMELESS for standard input and where there is no name. */
#define SOURCE_NAMELESS       "imported"
#define SOURCE_STANDARD_INPUT "standard input"
const char *source_stem(const struct source *source, struct arena *arena);
bool source_is_standard_input(const struct source *source);

/* The same without the byte order mark that some editors put before UTF-8 text. */
struct source source_behind_mark(const struct source *source);

/* How many lines there can be, at least 1: room for an item a line. */
size_t source_count_lines(const struct source *source);

struct lines {
    const char *name;
    char *next, *end;
    size_t line; /* number of the current one, from 1 */
};

/* Lines of a copy in `arena`, so that they may be cut further. False when memory is out. */
bool lines_init(struct lines *lines, const struct source *source, struct arena *arena);

/* The next line without its end ("\n" or "\r\n"), or NULL after the last. */
char *lines_next(struct lines *lines);

/* The line without the "[1,0]<stdout>:" that mpirun --tag-output puts before it. */
char *line_skip_prefix(char *line);

/* "FILE:LINE: " and the formatted words about the current line; returns ST_INVALID. */
enum status lines_fail(const struct lines *lines, struct error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#ifdef __clang_analyzer__ /* as in base/error.h */
#define lines_fail(lines, err, ...) ((void)lines_fail(lines, err, __VA_ARGS__), ST_INVALID)
#endif

/* Read `text`, a part of the current line, as a number within [min, max]. `what` is its name in messages. */
enum status lines_number(const struct lines *lines, const char *what, const char *text, double min, double max,
                         double *out, struct error *err);
enum status lines_integer(const struct lines *lines, const char *what, const char *text, uint64_t min, uint64_t max,
                          uint64_t *out, struct error *err);

/* Cut `line` at blanks in place. Of more than SOURCE_MAX_WORDS words the rest is left out. */
size_t words_split(char *line, char *words[SOURCE_MAX_WORDS]);

/* The whole text as a number; false when it is none. */
bool word_number(const char *text, double *out);
bool word_integer(const char *text, uint64_t *out);

/* `text` without blanks at both ends; it is cut in place. */
char *text_trim(char *text);

#endif
