/* A row of cmd_sessions. */
#ifndef TUNER_CLI_CMD_SESSIONS_SHOW_H
#define TUNER_CLI_CMD_SESSIONS_SHOW_H

#include "tuner/cli/commands.h"

command_function sessions_show;

#endif
