/* The commands, a row each. A command parses its own words, prints data on standard output and returns a status; main
 * prints the error and exits with the status's code. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "base/error.h"
#include "cli/options.h"

/* Run the row of `rows` (ending with a NULL name) that argv[1] names; `group` is the words before it, "lab" say,
 * `words` what the rows are about. Without a name, or with --help, they are listed. */
enum status commands_run(const struct command *rows, const char *group, const char *words, int argc, char **argv,
                         struct error *err);

/* The same for the program's own commands; options_take_server comes before it. */
enum status commands_main(int argc, char **argv, struct error *err);

/* The program, a group or a command as --help shows it. Borrowed: good during the visit. */
struct command_page {
    const struct command_line *line, *parent; /* parent: what lists it; NULL for the program */
    const char *summary;
};

/* Visit the program, and then all commands in the order of --help, each before those under it. Nothing is run. What
 * completion and manual pages are made of. One thread. */
typedef void command_visitor(const struct command_page *page, void *context);
void commands_walk(command_visitor *visit, void *context);

command_function cmd_tune, cmd_simulate, cmd_compare, cmd_trial, cmd_baselines, cmd_strategy, cmd_bench, cmd_lab,
    cmd_dataset, cmd_doctor, cmd_collect, cmd_train_ranker, cmd_rank, cmd_report, cmd_serve, cmd_agent, cmd_models,
    cmd_clusters, cmd_session, cmd_sessions, cmd_completion, cmd_manual, cmd_import, cmd_explain, cmd_weather,
    cmd_advise;
command_function dataset_import, dataset_merge; /* rows of cmd_dataset */
command_function strategy_export;               /* a row of cmd_strategy */

#endif
