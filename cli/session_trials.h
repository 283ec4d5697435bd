/* The trials of a session here, for those who run them: rows of cmd_session. */
#ifndef CLI_SESSION_TRIALS_H
#define CLI_SESSION_TRIALS_H

#include "cli/commands.h"
#include "tuner/session/asking.h"

command_function session_suggest_trials, session_heartbeat, session_complete, session_fail;

/* An asking_limits: a session keeps the words of its command line. `context` is a struct export_limits for it. */
enum status session_limits(void *context, const char *job, const struct model *model, const struct cluster *cluster,
                           const struct export_limits **limits, struct error *err);

#endif
