/* The commands by which a script runs a session's trials: session suggest, heartbeat, complete and fail. */
#ifndef CLI_SESSION_TRIALS_H
#define CLI_SESSION_TRIALS_H

#include "cli/commands.h"
#include "tuner/session/asking.h"

command_function session_suggest_trials, session_heartbeat, session_complete, session_fail;

/* An asking_limits: the forms that --export-to named. `context` is a struct export_limits for them. */
enum status session_limits(void *context, const struct job_options *job, const struct export_limits **limits,
                           struct error *err);

#endif
