/* What a person sees on a terminal while a session runs: a line a trial, and under it where we are and how long it
 * will take. Nothing when standard error is no terminal. */
#ifndef TUNER_CLI_PROGRESS_H
#define TUNER_CLI_PROGRESS_H

#include "tuner/session.h"

/* A tune_options.listen; context is unused. */
void progress_listen(void *context, const struct tune_event *event);

/* Wipe the line that is still standing. */
void progress_end(void);

#endif
