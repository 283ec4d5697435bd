/* Completion scripts for shells, from the command and option tables. */
#ifndef CLI_COMPLETION_H
#define CLI_COMPLETION_H

#include <stdio.h>

#include "base/error.h"

/* A script for "bash" or "zsh" that knows every command, option and closed list of values, and the models, clusters and
 * baselines that come with syncopate; it starts no program to answer. Walks the commands (commands_walk): one thread.
 * Fails: ST_USAGE (another shell); after a failed write ferror is true. */
enum status completion_write(const char *shell, FILE *to, struct error *err);

#endif
