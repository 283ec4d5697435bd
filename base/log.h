/* Words for people, on standard error. Only code that decides logs; code that detects returns an error.
 * Threads: any. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

enum log_level { LOG_QUIET, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_set_level(enum log_level level); /* LOG_INFO until set */
bool log_parse_level(const char *word, enum log_level *out);

/* "syncopate: warning: ..." and a line end; LOG_INFO lines have no prefix. What %s brings in is shown as text_show
 * (base/text.h) has it, so that no name forges a line. */
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_write(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_write(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_write(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_DEBUG, __VA_ARGS__)

#endif
