/* What a person sees on a terminal while something takes its time. Of a session: a line a trial, and under it where we
 * are and how long it will take. Of other work: what is done now. Nothing when standard error is no terminal.
 *
 * No line is wider than the terminal (COLUMNS, else what the terminal says, else 80): names of strategies give way
 * first, then words, then the end of the line. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stddef.h>

#include "tuner/session/session.h"

/* A tune_options.listen; context is unused. */
void progress_listen(void *context, const struct tune_event *event);

/* What is done now, in place of the line before: "reading 80 trials". */
void progress_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Wipe the line that is still standing. */
void progress_end(void);

/* The two lines, without a line end, at most `columns` wide; the first is of an event after a trial, the second of one
 * before it. */
enum { PROGRESS_LINE = 512 };
void progress_result(const struct tune_event *event, size_t columns, char out[PROGRESS_LINE]);
void progress_bar(const struct tune_event *event, size_t columns, char out[PROGRESS_LINE]);

#endif
