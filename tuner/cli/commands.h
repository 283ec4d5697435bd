/* The commands, a row each. A command parses its own words, prints data on standard output and returns a status; main
 * prints the error and exits with the status's code. */
#ifndef TUNER_CLI_COMMANDS_H
#define TUNER_CLI_COMMANDS_H

#include "base/error.h"

typedef enum status command_function(int argc, char **argv, struct error *err);

struct command {
    const char *name;
    command_function *function;
    const char *summary;
};

/* Run the row of `commands` (ending with a NULL name) that argv[1] names; `group` is the words before it ("" or
 * "lab"). Without a name, or with --help, the rows are listed. */
enum status commands_run(const struct command *commands, const char *group, const char *about, int argc, char **argv,
                         struct error *err);

command_function cmd_tune, cmd_simulate, cmd_compare, cmd_trial, cmd_baselines, cmd_strategy, cmd_bench, cmd_lab,
    cmd_dataset, cmd_doctor, cmd_collect, cmd_train_ranker, cmd_rank, cmd_report, cmd_serve, cmd_agent, cmd_models,
    cmd_clusters, cmd_sessions;
command_function dataset_import; /* a row of cmd_dataset */

#endif
