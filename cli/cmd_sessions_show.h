/* A row of cmd_sessions. */
#ifndef CLI_CMD_SESSIONS_SHOW_H
#define CLI_CMD_SESSIONS_SHOW_H

#include "cli/commands.h"

command_function sessions_show;

#endif
