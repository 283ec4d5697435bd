/* See completion.h. A script is a table and the functions that read it. The table, which follows from the commands, is
 * a `case` of each command's name: variables for bash, specifications for _arguments in zsh. The functions are files of
 * completion/, which the assembler puts into the program.
 *
 * The word for a value in usage lines and option tables says what kind of value it is: FILE, MODEL, "csv|jsonl". */
#include "cli/completion.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/options.h"
#include "strategy/baselines/baselines.h"

#define SCRIPT(shell)                                                                                                  \
    extern const char script_##shell[];                                                                                \
    __asm__(".pushsection .rodata\nscript_" #shell ":\n.incbin \"cli/completion/completion." #shell                    \
            "\"\n.byte 0\n.popsection\n")

SCRIPT(bash);
SCRIPT(zsh);

/* ---- what a word of a usage line stands for ---- */

static bool is_choice(const char *word) {
    return islower((unsigned char)*word) && strchr(word, '|');
}

/* The word by which the scripts call the kind of an option's value. Choices stay as they are; "" is for what only the
 * user knows. */
static const char *kind_of(const char *word) {
    static const char *const kinds[][2] = {{"FILE", "file"},         {"FOLDER", "file"},
                                           {"FILE[,FILE]", "file"},  {"PATH", "file"},
                                           {"TRACE", "file"},        {"OTHER", "file"},
                                           {"MODEL", "model"},       {"MODELS", "model,"},
                                           {"CLUSTER", "cluster"},   {"CLUSTERS", "cluster,"},
                                           {"BASELINE", "baseline"}, {"BASELINE[,BASELINE]", "baseline,"},
                                           {"STRATEGY", "strategy"}, {"STRATEGY[,STRATEGY]", "strategy,"},
                                           {"A", "strategy"},        {"B", "strategy"},
                                           {"PROGRAM", "program"}};
    if (is_choice(word))
        return word;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i][0], word))
            return kinds[i][1];
    return "";
}

struct positional {
    char word[48];
    bool repeated; /* "STRATEGY..." */
};

/* The next word of a usage line that stands for an argument, without its brackets; NULL at the end and at options. */
static const char *next_positional(const char *at, struct positional *out) {
    at += strspn(at, " ([");
    const size_t n = strcspn(at, " )]"), all = strcspn(at, " ");
    if (!n || !strncmp(at, "--", 2) || !strncmp(at, "options", n) || !strncmp(at, "filters", n) ||
        n >= sizeof out->word)
        return NULL;
    memcpy(out->word, at, n);
    out->word[n] = 0;
    char *dots = strstr(out->word, "...");
    out->repeated = dots;
    if (dots)
        *dots = 0;
    return at + all;
}

/* ---- bash ---- */

static void print_bash_option(const struct option *o, FILE *to) {
    fprintf(to, " --%s%s%s", o->name, o->argument ? "=" : "", o->argument ? kind_of(o->argument) : "");
}

static void print_bash_options(const struct option *options, FILE *to) {
    for (; options->kind != OPTION_END; options++)
        print_bash_option(options, to);
}

/* Print the kinds of a command's arguments. One that nobody can complete is "-", so that the others keep their
 * places. */
static void print_bash_arguments(const char *usage, FILE *to) {
    struct positional p;
    for (const char *at = usage + options_name_length(usage); (at = next_positional(at, &p));) {
        const char *kind = kind_of(p.word);
        fprintf(to, " %s%s", *kind ? kind : "-", p.repeated ? "..." : "");
    }
}

static void print_bash(const struct command_page *page, void *context) {
    const struct command_line *line = page->line;
    FILE *to = context;
    fprintf(to, "    '%.*s')\n        commands='", options_name_length(line->usage), line->usage);
    for (const struct command *row = line->commands; row && row->name; row++)
        fprintf(to, " %s", row->name);
    fputs("'\n        options='", to);
    print_bash_options(line->options, to);
    if (!line->group)
        print_bash_options(options_common, to);
    fputs("'\n        arguments='", to);
    if (!line->group)
        print_bash_arguments(line->usage, to);
    fputs("'\n        ;;\n", to);
}

/* ---- zsh ---- */

/* Between single quotes, with a backslash before what means something inside a specification. */
static void print_zsh_text(const char *text, FILE *to) {
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", to);
        else
            fprintf(to, "%s%c", strchr(":[]\\", *text) ? "\\" : "", *text);
}

/* ":MESSAGE:ACTION" */
static void print_zsh_value(const char *word, FILE *to) {
    const char *kind = kind_of(word);
    fputc(':', to);
    print_zsh_text(is_choice(word) ? "value" : word, to);
    fputc(':', to);
    if (is_choice(word)) {
        fputc('(', to);
        for (; *kind; kind++)
            fputc(*kind == '|' ? ' ' : *kind, to);
        fputc(')', to);
    } else if (*kind) {
        fprintf(to, "_syncopate_value %s", kind);
    } else {
        fputc(' ', to);
    }
}

static void print_zsh_options(const struct option *options, FILE *to) {
    for (const struct option *o = options; o->kind != OPTION_END; o++) {
        fprintf(to, "\n            '--%s%s[", o->name, o->argument ? "=" : "");
        print_zsh_text(o->help, to);
        fputc(']', to);
        if (o->argument)
            print_zsh_value(o->argument, to);
        fputc('\'', to);
    }
}

static void print_zsh_arguments(const char *usage, FILE *to) {
    struct positional p;
    unsigned place = 0;
    for (const char *at = usage + options_name_length(usage); (at = next_positional(at, &p));) {
        if (p.repeated)
            fputs("\n            '*", to);
        else
            fprintf(to, "\n            '%u", ++place);
        print_zsh_value(p.word, to);
        fputc('\'', to);
    }
}

static void print_zsh(const struct command_page *page, void *context) {
    const struct command_line *line = page->line;
    FILE *to = context;
    fprintf(to, "    '%.*s')\n        commands=(", options_name_length(line->usage), line->usage);
    for (const struct command *row = line->commands; row && row->name; row++) {
        fprintf(to, "\n            '%s:", row->name);
        print_zsh_text(row->summary, to);
        fputc('\'', to);
    }
    fputs(")\n        specs=(", to);
    print_zsh_options(line->options, to);
    if (!line->group)
        print_zsh_options(options_common, to);
    if (!line->group)
        print_zsh_arguments(line->usage, to);
    fputs(")\n        ;;\n", to);
}

/* ---- both ---- */

static void print_names(const char *kind, const char *names, FILE *to) {
    fprintf(to, "    %s) names='", kind);
    for (; *names; names++)
        fputc(*names == ',' ? ' ' : *names, to);
    fputs("' ;;\n", to);
}

/* Without shipped descriptions no names are completed. */
static void print_all_names(FILE *to) {
    char names[8192];
    size_t n, n_updates;
    const struct baseline *rows = baselines_list(&n), *by_name = baselines_by_name(&n_updates);
    struct error ignored;
    fputs("_syncopate_names() {\n    names=\n    case $1 in\n", to);
    if (!inputs_shipped("models", names, sizeof names, &ignored))
        print_names("model", names, to);
    if (!inputs_shipped("clusters", names, sizeof names, &ignored))
        print_names("cluster", names, to);
    fputs("    baseline | strategy) names='", to);
    for (size_t i = 0; i < n; i++)
        fprintf(to, "%s%s", i ? " " : "", rows[i].name);
    for (size_t i = 0; i < n_updates; i++)
        fprintf(to, " %s", by_name[i].name);
    fputs("' ;;\n    esac\n}\n\n", to);
}

enum status completion_write(const char *shell, FILE *to, struct error *err) {
    const bool zsh = !strcmp(shell, "zsh");
    if (!zsh && strcmp(shell, "bash") != 0)
        return error_set(err, ST_USAGE, "\"%s\" is none of bash, zsh", shell);
    fputs(zsh ? "#compdef syncopate\n" : "# Completion of syncopate's command lines.\n", to);
    print_all_names(to);
    fputs("_syncopate_command() {\n    case $1 in\n", to);
    commands_walk(zsh ? print_zsh : print_bash, to);
    fputs("    esac\n}\n", to);
    fputs(zsh ? script_zsh : script_bash, to);
    return ST_OK;
}
