/* Everything is one pass over the bytes. */
#include "interop/import/source.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/utf8.h"

static enum status read_all(FILE *f, const char *path, struct arena *arena, struct source *out, struct error *err) {
    size_t n = 0, room = 1 << 16;
    char *bytes = malloc(room + 1);
    while (bytes) {
        n += fread(bytes + n, 1, room - n, f);
        if (n < room || room == SOURCE_MAX_BYTES)
            break;
        char *more = realloc(bytes, 2 * room + 1);
        if (!more)
            free(bytes);
        bytes = more;
        room *= 2;
    }
    if (!bytes)
        return error_no_memory(err);
    enum status st = ferror(f) ? error_at(err, ST_ENVIRONMENT, path, "%s", strerror(errno)) : ST_OK;
    const int next = n == SOURCE_MAX_BYTES ? fgetc(f) : EOF;
    struct source source = {.n = n, .cut = next != EOF && ungetc(next, f) != EOF};
    if (!st) {
        source.name = arena_strdup(arena, path);
        source.text = arena_copy(arena, bytes, n);
        st = source.name && source.text ? ST_OK : error_no_memory(err);
    }
    free(bytes);
    if (!st)
        *out = source;
    return st;
}

enum status source_read(const char *path, struct arena *arena, struct source *out, struct error *err) {
    if (!strcmp(path, "-"))
        return read_all(stdin, SOURCE_STANDARD_INPUT, arena, out, err);
    FILE *f = fopen(path, "rb");
    if (!f)
        return error_at(err, errno == ENOENT ? ST_NOT_FOUND : ST_ENVIRONMENT, path, "%s", strerror(errno));
    enum status st = read_all(f, path, arena, out, err);
    fclose(f);
    return st;
}

enum status source_map(const struct source *source, struct source *out, struct error *err) {
    struct stat about;
    const int fd = open(source->name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size < 1) {
        if (fd >= 0)
            close(fd);
        return error_at(err, ST_TOO_LARGE, source->name, "more than %d bytes; give it as a file", SOURCE_MAX_BYTES);
    }
    char *text = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (text == MAP_FAILED)
        return error_at(err, ST_ENVIRONMENT, source->name, "cannot be mapped: %s", strerror(errno));
    *out = (struct source){.name = source->name, .text = text, .n = (size_t)about.st_size};
    return ST_OK;
}

void source_unmap(struct source *source) {
    munmap((void *)(uintptr_t)source->text, source->n);
    *source = (struct source){0};
}

size_t text_valid_bytes(const char *text, size_t n) {
    size_t i = 0;
    for (size_t length = 1; i < n && length; i += length)
        length = text[i] ? utf8_length(text + i, n - i) : 0;
    return i;
}

enum status source_check_text(const struct source *source, struct error *err) {
    if (source->cut)
        return error_at(err, ST_TOO_LARGE, source->name, "more than %d bytes", SOURCE_MAX_BYTES);
    const size_t i = text_valid_bytes(source->text, source->n);
    return i == source->n ? ST_OK
                          : error_at(err, ST_INVALID, source->name, "byte %zu: not UTF-8 text; convert the file", i);
}

bool source_is_standard_input(const struct source *source) {
    return !strcmp(source->name, SOURCE_STANDARD_INPUT);
}

struct source source_behind_mark(const struct source *source) {
    const size_t mark = source->n >= 3 && !memcmp(source->text, "\xef\xbb\xbf", 3) ? 3 : 0;
    return (struct source){source->name, source->text + mark, source->n - mark, source->cut};
}

const char *source_stem(const struct source *source, struct arena *arena) {
    const char *slash = strrchr(source->name, '/'), *start = slash ? slash + 1 : source->name;
    size_t n = strcspn(start, ".");
    if (!n)
        n = strlen(start);
    if (!n || source_is_standard_input(source))
        return arena_strdup(arena, SOURCE_NAMELESS);
    return arena_copy(arena, start, n);
}

size_t source_count_lines(const struct source *source) {
    size_t n = 1;
    for (const char *p = source->text; (p = memchr(p, '\n', source->n - (size_t)(p - source->text))); p++)
        n++;
    return n;
}

bool lines_init(struct lines *lines, const struct source *source, struct arena *arena) {
    char *copy = arena_copy(arena, source->text, source->n);
    *lines = (struct lines){source->name, copy, copy ? copy + source->n : NULL, 0};
    return copy;
}

char *lines_next(struct lines *lines) {
    char *line = lines->next;
    if (line == lines->end)
        return NULL;
    char *stop = memchr(line, '\n', (size_t)(lines->end - line));
    lines->next = stop ? stop + 1 : lines->end;
    stop = stop ? stop : lines->end;
    *stop = 0;
    if (stop > line && stop[-1] == '\r')
        stop[-1] = 0;
    lines->line++;
    return line;
}

char *line_skip_prefix(char *line) {
    char *mark = strstr(line, "<stdout>:");
    mark = mark ? mark : strstr(line, "<stderr>:");
    return mark ? mark + strlen("<stdout>:") : line;
}

/* Brackets as in base/error.c. */
enum status(lines_fail)(const struct lines *lines, struct error *err, const char *format, ...) {
    if (!err)
        return ST_INVALID;
    char what[sizeof err->message];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    text_clean(what);
    error_set(err, ST_INVALID, "%s", what);
    error_prefix(err, ST_INVALID, "%s:%zu", lines->name, lines->line);
    err->position = lines->line;
    return ST_INVALID;
}

bool word_number(const char *text, double *out) {
    char *end;
    const double x = strtod(text, &end);
    if (end == text || *end || !isfinite(x) || isspace((unsigned char)*text))
        return false;
    *out = x;
    return true;
}

bool word_integer(const char *text, uint64_t *out) {
    char *end;
    errno = 0;
    const unsigned long long x = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || errno)
        return false;
    *out = x;
    return true;
}

enum status lines_number(const struct lines *lines, const char *what, const char *text, double min, double max,
                         double *out, struct error *err) {
    double x;
    if (!word_number(text, &x))
        return lines_fail(lines, err, "%s \"%.40s\" is not a number", what, text);
    if (x < min || x > max)
        return lines_fail(lines, err, "%s %.40s is out of range, %g to %g", what, text, min, max);
    *out = x;
    return ST_OK;
}

enum status lines_integer(const struct lines *lines, const char *what, const char *text, uint64_t min, uint64_t max,
                          uint64_t *out, struct error *err) {
    uint64_t x;
    if (!word_integer(text, &x))
        return lines_fail(lines, err, "%s \"%.40s\" is not a whole number", what, text);
    if (x < min || x > max)
        return lines_fail(lines, err, "%s %.40s is out of range, %lu to %lu", what, text, (unsigned long)min,
                          (unsigned long)max);
    *out = x;
    return ST_OK;
}

size_t words_split(char *line, char *words[SOURCE_MAX_WORDS]) {
    size_t n = 0;
    char *rest = NULL;
    for (char *word = strtok_r(line, " \t\v\f\r", &rest); word && n < SOURCE_MAX_WORDS;
         word = strtok_r(NULL, " \t\v\f\r", &rest))
        words[n++] = word;
    return n;
}

char *text_trim(char *text) {
    while (isspace((unsigned char)*text))
        text++;
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1]))
        *--end = 0;
    return text;
}
