/* See manual.h. The texts of the tables are laid out for a terminal. Paragraphs, between empty lines, are filled again.
 * Indented lines, lines with columns and all examples stay as they are. */
#include "cli/manual.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/stream.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/options.h"

/* ---- text ---- */

/* Print a character as roff writes it. In names and examples '-' is written as a minus, so that a reader can copy
 * it. */
static void print_character(char c, bool literal, FILE *to) {
    switch (c) {
    case '\\':
        fputs("\\e", to);
        break;
    case '\'':
        fputs("\\(aq", to);
        break;
    case '`':
        fputs("\\(ga", to);
        break;
    case '~':
        fputs("\\(ti", to);
        break;
    case '^':
        fputs("\\(ha", to);
        break;
    case '-':
        fputs(literal ? "\\-" : "-", to);
        break;
    default:
        fputc(c, to);
    }
}

static void print_literal(const char *text, size_t n, FILE *to) {
    for (size_t i = 0; i < n && text[i]; i++)
        print_character(text[i], true, to);
}

/* Print a word of prose. The name of an option stays whole and bold. */
static void print_word(const char *word, size_t n, FILE *to) {
    size_t name = strncmp(word, "--", 2) ? 0 : 2 + strspn(word + 2, "abcdefghijklmnopqrstuvwxyz-");
    if (name <= 2)
        name = 0;
    if (name) {
        fputs("\\fB", to);
        print_literal(word, name, to);
        fputs("\\fR", to);
    }
    for (size_t i = name; i < n; i++)
        print_character(word[i], false, to);
}

enum { SOURCE_WIDTH = 56 }; /* before what escapes add */

/* n characters of prose in lines of SOURCE_WIDTH, the first of which has `column` already. No word makes a request of
 * its line. */
static void print_prose(const char *text, size_t n, size_t column, FILE *to) {
    for (size_t i = 0; i < n;) {
        const size_t word = strcspn(text + i, " \n"), length = word < n - i ? word : n - i;
        const bool fits = column + 1 + length <= SOURCE_WIDTH;
        if (i) {
            fputc(fits ? ' ' : '\n', to);
            column = fits ? column + 1 : 0;
        }
        if (!column && (text[i] == '.' || text[i] == '\''))
            fputs("\\&", to);
        print_word(text + i, length, to);
        column += length;
        i += length + 1;
    }
}

static void print_lines(const char *text, size_t n, FILE *to) {
    fputs(".nf\n", to);
    for (size_t i = 0; i < n; i++) {
        if ((!i || text[i - 1] == '\n') && (text[i] == '.' || text[i] == '\''))
            fputs("\\&", to);
        print_character(text[i], true, to);
    }
    fputs("\n.fi\n", to);
}

/* Is a line indented, or does it have columns? */
static bool is_laid_out(const char *line) {
    const char *end = line + strcspn(line, "\n"), *gap = strstr(line, "   ");
    return *line == ' ' || (gap && gap < end);
}

/* The length of the lines from `text` on that are of one sort: empty, laid out or prose. */
static size_t run_length(const char *text) {
    const bool laid_out = is_laid_out(text);
    size_t n = 0;
    while (text[n] && text[n] != '\n' && is_laid_out(text + n) == laid_out) {
        n += strcspn(text + n, "\n");
        n += text[n] == '\n';
    }
    return n && text[n - 1] == '\n' ? n - 1 : n;
}

static void print_paragraphs(const char *text, FILE *to) {
    while (*text) {
        const size_t n = run_length(text), gap = strspn(text + n, "\n");
        if (is_laid_out(text)) {
            print_lines(text, n, to);
        } else {
            print_prose(text, n, 0, to);
            fputc('\n', to);
        }
        text += n + gap;
        if (gap > 1 && *text)
            fputs(".PP\n", to);
    }
}

/* Print a phrase of a table as a sentence. */
static void print_sentence(const char *text, FILE *to) {
    const size_t n = strlen(text);
    const bool word = islower((unsigned char)text[0]) && (islower((unsigned char)text[1]) || text[1] == ' ');
    if (word)
        fputc(toupper((unsigned char)*text), to);
    print_prose(text + word, n - word, word, to);
    fputs(n && text[n - 1] == '.' ? "\n" : ".\n", to);
}

/* ---- sections ---- */

/* "syncopate-dataset-query" of a usage line. */
static void page_name(const char *usage, char *out, size_t n) {
    const int length = options_name_length(usage);
    snprintf(out, n, "syncopate%s%.*s", length ? "-" : "", length, usage);
    for (; *out; out++)
        if (*out == ' ')
            *out = '-';
}

static void print_title(const char *name, const char *summary, FILE *to) {
    fputs(".TH \"", to);
    for (const char *c = name; *c; c++)
        print_character((char)toupper((unsigned char)*c), true, to);
    fprintf(to, "\" 1 \"%s\" \"syncopate %s\" \"syncopate manual\"\n", SYNCOPATE_DATE, SYNCOPATE_VERSION);
    fputs(".nh\n.ad l\n.SH NAME\n", to);
    print_literal(name, strlen(name), to);
    fputs(" \\- ", to);
    print_prose(summary, strlen(summary), strlen(name) + 3, to);
    fputc('\n', to);
}

/* Print a usage line: bold what is typed as it stands, italic what stands for something. */
static void print_synopsis(const char *usage, FILE *to) {
    fputs(".SH SYNOPSIS\n\\fBsyncopate\\fR", to);
    for (const char *at = usage; *at;) {
        const size_t gap = strspn(at, " ([|)]"), n = strcspn(at + gap, " ([|)]");
        const char *word = at + gap;
        fprintf(to, "%s%.*s", at == usage ? " " : "", (int)gap, at);
        const bool rest = (n == 7 && (!strncmp(word, "options", n) || !strncmp(word, "filters", n)));
        fputs(!n ? "" : rest || isupper((unsigned char)*word) ? "\\fI" : "\\fB", to);
        print_literal(word, n, to);
        fputs(n ? "\\fR" : "", to);
        at = word + n;
    }
    fputc('\n', to);
}

/* "a|b|c", where a line may break behind each bar. */
static void print_choices(const char *text, FILE *to) {
    for (; *text; text++) {
        print_character(*text, true, to);
        fputs(*text == '|' ? "\\:" : "", to);
    }
}

static void print_options(const struct option *options, FILE *to) {
    for (const struct option *o = options; o->kind != OPTION_END; o++) {
        fputs(".TP\n\\fB\\-\\-", to);
        print_literal(o->name, strlen(o->name), to);
        fputs("\\fR", to);
        if (o->argument) {
            fputs(" \\fI", to);
            print_choices(o->argument, to);
            fputs("\\fR", to);
        }
        fputc('\n', to);
        print_sentence(o->help, to);
    }
}

static void print_commands(const struct command_line *line, FILE *to) {
    char name[128];
    page_name(line->usage, name, sizeof name);
    fputs(".SH COMMANDS\nEach has a page of its own.\n", to);
    for (const struct command *row = line->commands; row->name; row++) {
        fputs(".TP\n\\fB", to);
        print_literal(name, strlen(name), to);
        fputs("\\-", to);
        print_literal(row->name, strlen(row->name), to);
        fputs("\\fR(1)\n", to);
        print_sentence(row->summary, to);
    }
}

static const struct exit_status {
    int code;
    const char *meaning;
} statuses[] = {{0, "it is done"},
                {1, "it failed: what it needs is not there, or is not as it should be"},
                {2, "the command line makes no sense, or a file or record is bad or missing"},
                {3, "nothing that was asked for can run on this cluster"},
                {4, "the service cannot be reached, or refuses"},
                {130, "it was interrupted"}};

static void print_statuses(FILE *to) {
    fputs(".SH EXIT STATUS\n", to);
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        fprintf(to, ".TP\n%d\n", statuses[i].code);
        print_sentence(statuses[i].meaning, to);
    }
}

/* Variables that no option stands for, each with an option that the commands have which read it. */
static const struct variable {
    const char *name, *option, *meaning;
} variables[] = {
    {"SYNCOPATE_TOKEN", "token-file", "the token for the service, where no file is given"},
    {"https_proxy, http_proxy, no_proxy", "proxy", "the proxy between here and the service, and where there is none"},
    {"CURL_CA_BUNDLE, SSL_CERT_FILE", "cacert", "PEM certificates to trust, in place of the system's"},
    {"SYNCOPATE_WORKER", "hosts",
     "mpi, nccl, or a worker program in place of the one beside syncopate; NCCL's ends in -nccl"},
    {"TMPDIR", "hosts", "where files of a trial are while it runs (default /tmp)"},
    {"TMPDIR", "computers", "where uploads of traces are while they are read (default /var/tmp)"},
};

static bool has_option(const struct command_line *line, const char *name) {
    for (const struct option *o = line->options; o->kind != OPTION_END; o++)
        if (!strcmp(o->name, name))
            return true;
    return false;
}

static void print_stand_ins(const struct option *options, bool *first, FILE *to) {
    char name[64];
    for (const struct option *o = options; o->kind != OPTION_END; o++) {
        if (!strcmp(o->name, "help") || !strcmp(o->name, "version"))
            continue;
        options_variable(o->name, name, sizeof name);
        fprintf(to, "%s%s", *first ? "" : ",\n", name);
        *first = false;
    }
}

static void print_environment(const struct command_line *line, FILE *to) {
    bool first = true;
    fputs(".SH ENVIRONMENT\n", to);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        if (!has_option(line, variables[i].option))
            continue;
        fprintf(to, ".TP\n%s\n", variables[i].name);
        print_sentence(variables[i].meaning, to);
    }
    fputs(".TP\n", to);
    fputs("SYNCOPATE_\\fIOPTION\\fR\n", to);
    fputs("Stands in for the option of that name, where it is not given:\n", to);
    print_stand_ins(line->options, &first, to);
    print_stand_ins(options_common, &first, to);
    fputs(".\nSo does the member of that name in the file syncopate.json of the folder\n"
          "where the command is run, where neither is given.\n",
          to);
}

static const struct file {
    const char *name, *meaning;
} files[] = {
    {"./syncopate.json", "settings: a JSON object with the names of options, such as {\"dataset\": \"team.db\"}"},
    {"./syncopate.db", "where measurements are kept, unless --dataset says otherwise"},
    {"../share/syncopate/models/*.json, ../share/syncopate/clusters/*.json",
     "seen from the program: the descriptions that can be given by their names"},
};

static void print_files(FILE *to) {
    fputs(".SH FILES\n", to);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        fputs(".TP\n\\&", to);
        print_literal(files[i].name, strlen(files[i].name), to);
        fputc('\n', to);
        print_sentence(files[i].meaning, to);
    }
}

static void print_reference(const char *usage, const char *row, bool *first, FILE *to) {
    char name[128];
    page_name(usage, name, sizeof name);
    fputs(*first ? ".SH SEE ALSO\n\\fB" : ",\n\\fB", to);
    print_literal(name, strlen(name), to);
    fputs(row ? "\\-" : "", to);
    print_literal(row ? row : "", row ? strlen(row) : 0, to);
    fputs("\\fR(1)", to);
    *first = false;
}

/* Print the command that this one belongs to, and the commands beside it. The program's own page lists its commands
 * already. */
static void print_see_also(const struct command_page *page, FILE *to) {
    const struct command_line *parent = page->parent;
    bool first = true;
    if (!parent)
        return;
    const int n = options_name_length(parent->usage);
    const char *own = page->line->usage + n + (n > 0);
    const size_t length = (size_t)options_name_length(own);
    print_reference(parent->usage, NULL, &first, to);
    for (const struct command *row = n ? parent->commands : NULL; row && row->name; row++)
        if (strncmp(row->name, own, length) != 0 || row->name[length])
            print_reference(parent->usage, row->name, &first, to);
    fputs("\n", to);
}

static void print_page(const struct command_page *page, FILE *to) {
    const struct command_line *line = page->line;
    char name[128];
    page_name(line->usage, name, sizeof name);
    print_title(name, page->summary, to);
    print_synopsis(line->usage, to);
    fputs(".SH DESCRIPTION\n", to);
    print_paragraphs(line->about, to);
    if (line->commands)
        print_commands(line, to);
    fputs(line->group && line->options->kind == OPTION_END ? "" : ".SH OPTIONS\n", to);
    print_options(line->options, to);
    if (!line->group)
        print_options(options_common, to);
    if (line->examples) {
        fputs(".SH EXAMPLES\n", to);
        print_lines(line->examples, strlen(line->examples), to);
    }
    print_statuses(to);
    if (!line->group || !page->parent)
        print_environment(line, to);
    if (!page->parent)
        print_files(to);
    print_see_also(page, to);
}

/* ---- one page, or all ---- */

struct writing {
    const char *wanted; /* a page's name, or NULL: every page */
    const char *folder;
    FILE *to;
    bool found;
    enum status st;
    struct error *err;
};

static enum status write_file(const struct command_page *page, const char *folder, const char *name,
                              struct error *err) {
    char path[PATH_MAX], *text;
    size_t n;
    if ((size_t)snprintf(path, sizeof path, "%s/%s.1", folder, name) >= sizeof path)
        return error_set(err, ST_ENVIRONMENT, "%.200s...: the path is too long", folder);
    FILE *to = stream_open(&text, &n);
    if (to)
        print_page(page, to);
    enum status st = stream_close(to, ST_OK, &text, err);
    if (!st)
        st = file_write(path, n, text, err);
    free(text);
    return st;
}

static void visit(const struct command_page *page, void *context) {
    struct writing *w = context;
    char name[128];
    page_name(page->line->usage, name, sizeof name);
    if (w->wanted && !strcmp(w->wanted, name)) {
        w->found = true;
        print_page(page, w->to);
    } else if (!w->wanted && !w->st) {
        w->st = write_file(page, w->folder, name, w->err);
    }
}

enum status manual_write(size_t n, const char *const *words, FILE *to, struct error *err) {
    char name[128] = "syncopate";
    for (size_t i = 0; i < n; i++)
        snprintf(name + strlen(name), sizeof name - strlen(name), "-%s", words[i]);
    struct writing w = {.wanted = name, .to = to};
    commands_walk(visit, &w);
    return w.found ? ST_OK
                   : error_set(err, ST_USAGE, "there is no page %.100s; \"syncopate --help\" lists the commands", name);
}

enum status manual_write_all(const char *folder, struct error *err) {
    struct writing w = {.folder = folder, .err = err};
    commands_walk(visit, &w);
    return w.st;
}
