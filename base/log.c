/* A line is formatted first and written by one call, so that lines of several threads and processes stay whole. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

static atomic_int current_level = LOG_INFO;

static const char *const words[] = {"quiet", "error", "warn", "info", "debug"};
static const char *const prefixes[] = {"", "syncopate: error: ", "syncopate: warning: ", "", "syncopate: debug: "};

void log_set_level(enum log_level level) {
    atomic_store(&current_level, (int)level);
}

bool log_parse_level(const char *word, enum log_level *out) {
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(word, words[i]) == 0) {
            *out = (enum log_level)i;
            return true;
        }
    }
    return false;
}

static void write_all(const char *text, size_t n) {
    while (n > 0) {
        ssize_t done = write(STDERR_FILENO, text, n);
        if (done < 0 && errno != EINTR)
            return; /* nobody left to tell */
        if (done > 0) {
            text += done;
            n -= (size_t)done;
        }
    }
}

void log_write(enum log_level level, const char *format, ...) {
    if (level == LOG_QUIET || (int)level > atomic_load(&current_level))
        return;
    const int saved = errno;
    char line[4096];
    size_t n = (size_t)snprintf(line, sizeof line, "%s", prefixes[level]);
    va_list args;
    va_start(args, format);
    n += text_vformat(line + n, sizeof line - n - 1, format, args);
    va_end(args);
    line[n++] = '\n';
    write_all(line, n);
    errno = saved;
}
