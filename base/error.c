/* See error.h. Messages longer than the buffer are cut, never overrun, and not inside a character: they also travel in
 * JSON, which must be UTF-8. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *word;
    int http;
    int exit_code;
} statuses[] = {
#define X(name, word, http, exit_code) {word, http, exit_code},
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

/* The brackets keep the analyzer's macros of the same name (error.h) away from the definitions. */
enum status(error_set)(struct error *err, enum status status, const char *format, ...) {
    if (err) {
        err->status = status;
        va_list args;
        va_start(args, format);
        vsnprintf(err->message, sizeof err->message, format, args);
        va_end(args);
        trim_cut_character(err->message, sizeof err->message);
    }
    return status;
}

enum status error_prefix(struct error *err, enum status status, const char *format, ...) {
    if (!err)
        return status;
    char old[sizeof err->message];
    memcpy(old, err->message, sizeof old);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof err->message - 1)
        snprintf(err->message + n, sizeof err->message - (size_t)n, ": %.*s",
                 (int)(sizeof err->message - (size_t)n - 3), old);
    trim_cut_character(err->message, sizeof err->message);
    return status;
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

int status_http_code(enum status status) {
    return statuses[status].http;
}
