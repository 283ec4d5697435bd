/* syncopate completion and syncopate manual: what the command tables are for other programs. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/manual.h"
#include "cli/options.h"

enum status cmd_completion(int argc, char **argv, struct error *err) {
    const struct option options[] = {{0}};
    const struct command_line line = {
        .usage = "completion (bash|zsh)",
        .about = "Print a script that makes the shell complete commands, options and their values, and the names of\n"
                 "models, clusters and baselines. \"make install\" puts it where both shells look for such scripts.",
        .examples = "  source <(syncopate completion bash)\n"
                    "  source <(syncopate completion zsh)",
        .options = options,
        .min_arguments = 1,
        .max_arguments = 1};
    struct arguments arguments;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    return st ? st : completion_write(arguments.items[0], stdout, err);
}

enum status cmd_manual(int argc, char **argv, struct error *err) {
    const char *out = NULL;
    const struct option options[] = {
        {"out", OPTION_TEXT, &out, "FOLDER", "write every page into this folder, which must be there"}, {0}};
    const struct command_line line = {
        .usage = "manual [COMMAND...] [options]",
        .about =
            "Print the manual page of a command, in the language of man(7); without one that of syncopate itself.\n"
            "It says what --help says, and which variables, files and exit statuses there are.",
        .examples = "  syncopate manual tune | man -l -\n"
                    "  syncopate manual dataset query | mandoc",
        .options = options,
        .max_arguments = 3};
    struct arguments arguments;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (st)
        return st;
    if (out && arguments.n)
        return error_set(err, ST_USAGE, "--out writes every page: give no command with it");
    return out ? manual_write_all(out, err) : manual_write(arguments.n, arguments.items, stdout, err);
}
