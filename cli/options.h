/* Command lines: one table of options a command, from which parsing and --help follow.
 *
 * A value comes from the command line, else from the environment (SYNCOPATE_ and the option's name in capitals), else
 * from ./syncopate.json (a member of the option's name), else it stays as the command set it. The file may name options
 * of other commands, and nothing else: settings[] in options.c lists them all. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum option_kind {
    OPTION_END,
    OPTION_FLAG,    /* bool *: true when given */
    OPTION_TEXT,    /* const char ** */
    OPTION_ONE_OF,  /* the same, of which one counts: giving one clears the others that a weaker source set */
    OPTION_INTEGER, /* uint64_t * */
    OPTION_NUMBER,  /* double * */
    OPTION_PERCENT, /* double *: "2%" and "2" are 0.02 */
    OPTION_TIME,    /* double *, microseconds: units_parse_time */
    OPTION_BYTES,   /* uint64_t *: units_parse_bytes */
    OPTION_MEMORY,  /* the same, of a device: units_parse_memory */
};

struct option {
    const char *name; /* without the dashes */
    enum option_kind kind;
    void *value;
    const char *argument; /* what --help calls the value, or all values that there are: "csv|jsonl"; NULL for flags */
    const char *help;
};

/* What all commands take besides their own: --log and --help. And what may stand before the command. The kinds of
 * these tables are OPTION_FLAG or OPTION_TEXT, their values NULL. */
extern const struct option options_common[], options_leading[];

typedef enum status command_function(int argc, char **argv, struct error *err);

/* A row of a table of commands. */
struct command {
    const char *name;
    command_function *function;
    const char *summary;
};

struct command_line {
    const char *usage;            /* what stands after "usage: syncopate " */
    const char *about;            /* a paragraph: what the command does and what comes out */
    const char *examples;         /* lines that can be typed as they are; may be NULL */
    const struct option *options; /* ends with OPTION_END */
    size_t min_arguments, max_arguments;
    const struct command *commands; /* that may follow, a NULL name behind the last; NULL: none */
    bool group;                     /* does nothing but list `commands`; takes no options_common */
};

enum { MAX_ARGUMENTS = 4096 }; /* `explain` takes a trace a rank */

/* Take the options that say which service off the front of the line: "syncopate --server URL [--token-file FILE]
 * [--cacert FILE] [--proxy URL] COMMAND ...". They count as the environment's, so what stands behind the command beats
 * them. A command without a --server of its own then fails in options_parse. */
enum status options_take_server(int *argc, char ***argv, struct error *err);

/* Whether --server was typed, before the command or among its words. */
bool options_server_typed(int argc, char **argv);

struct arguments {
    size_t n;
    const char *items[MAX_ARGUMENTS];
};

/* Parse argv[1..argc). --help prints the help on standard output and ends the process with 0. --log LEVEL is accepted
 * everywhere. Fails: ST_USAGE with what is wrong and where to look. */
enum status options_parse(const struct command_line *line, int argc, char **argv, struct arguments *out,
                          struct error *err);

/* What --help prints. */
void options_print_help(const struct command_line *line);

/* How much of a usage line, "dataset merge OTHER [options]", is the command's name: the length of "dataset merge". */
int options_name_length(const char *usage);

/* The environment variable that stands in for an option: SYNCOPATE_TRIAL_TIME of "trial-time". */
void options_variable(const char *option, char *out, size_t n);

/* From now on options_parse shows its command line to `listener`, parses nothing and returns ST_CANCELLED, so that a
 * command ends before it begins; NULL: parse again. For commands_walk. One thread. */
typedef void options_listener(const struct command_line *line, void *context);
void options_listen(options_listener *listener, void *context);

#endif
