/* See error.h. Parts longer than their room are cut, and not inside a character: they also travel in JSON, which must
 * be UTF-8. Nothing here allocates: an error is also filled in a forked child. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *word;
    int exit_code;
} statuses[] = {
#define X(name, word, exit_code) {word, exit_code},
    STATUS_TABLE(X)
#undef X
};

/* Drop a last character whose bytes are not all there. */
static void trim_cut_character(char *text, size_t size) {
    size_t n = strlen(text), start = n;
    if (n + 1 < size)
        return; /* nothing was cut */
    while (start > 0 && ((unsigned char)text[start - 1] & 0xc0) == 0x80)
        start--;
    if (start == 0)
        return;
    const unsigned char lead = (unsigned char)text[start - 1];
    const size_t need = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
    if (n - start < need)
        text[start - 1] = '\0';
}

/* Formatted into `out` of ERROR_TEXT_ROOM bytes. */
static void format_text(char *out, const char *format, va_list args) {
    vsnprintf(out, ERROR_TEXT_ROOM, format, args);
    trim_cut_character(out, ERROR_TEXT_ROOM);
}

/* Append as much of `text` to the text in `out` as there is room for. */
static void append(char *out, size_t room, const char *text) {
    const size_t n = strlen(out), wanted = strlen(text), left = room - 1 - n, more = wanted < left ? wanted : left;
    memcpy(out + n, text, more);
    out[n + more] = '\0';
    trim_cut_character(out, room);
}

static void fill(struct error *err, enum status status, const char *place, const char *format, va_list args) {
    format_text(err->message, format, args);
    err->code[0] = err->place[0] = err->pointer[0] = '\0';
    append(err->place, sizeof err->place, place);
    err->position = 0;
    err->status = status;
}

/* The brackets keep the analyzer's macros of the same name (error.h) away from the definitions. */
enum status(error_set)(struct error *err, enum status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (err)
        fill(err, status, "", format, args);
    va_end(args);
    return status;
}

enum status(error_at)(struct error *err, enum status status, const char *place, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (err)
        fill(err, status, place, format, args);
    va_end(args);
    return status;
}

enum status error_prefix(struct error *err, enum status status, const char *format, ...) {
    if (!err)
        return status;
    if (*err->place) { /* the pointer is one into that document */
        error_text(err, err->message);
        err->pointer[0] = '\0';
    }
    va_list args;
    va_start(args, format);
    format_text(err->place, format, args);
    va_end(args);
    err->position = 0;
    return status;
}

enum status error_code(struct error *err, enum status status, const char *code) {
    if (err)
        snprintf(err->code, sizeof err->code, "%.*s", ERROR_CODE_ROOM - 1, code);
    return status;
}

enum status error_inside(struct error *err, enum status status, const char *format, ...) {
    char outer[ERROR_TEXT_ROOM];
    if (!err)
        return status;
    va_list args;
    va_start(args, format);
    format_text(outer, format, args);
    va_end(args);
    char inner[sizeof err->pointer];
    memcpy(inner, err->pointer, sizeof inner);
    err->pointer[0] = '\0';
    append(err->pointer, sizeof err->pointer, outer);
    append(err->pointer, sizeof err->pointer, inner);
    return status;
}

enum status error_pass(struct error *err, const struct error *from) {
    if (err)
        *err = *from;
    return from->status;
}

char *error_text(const struct error *err, char out[ERROR_TEXT_ROOM]) {
    const char *const parts[] = {err->place, err->pointer, err->message};
    char text[ERROR_TEXT_ROOM] = "";
    for (size_t i = 0; i < 3; i++) {
        append(text, sizeof text, parts[i]);
        append(text, sizeof text, i < 2 && *parts[i] ? ": " : "");
    }
    return strcpy(out, text);
}

enum status(error_no_memory)(struct error *err) {
    return error_set(err, ST_NO_MEMORY, "out of memory");
}

const char *status_word(enum status status) {
    return statuses[status].word;
}

int status_exit_code(enum status status) {
    return statuses[status].exit_code;
}
