/* See options.h. Options and arguments may mix; "--" ends the options; "--name=value" and "--name value" are the same.
 */
#include "cli/options.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/log.h"
#include "base/units.h"

static const char SETTINGS_FILE[] = "syncopate.json";

/* Every option of every command: one file serves them all, and a name that none of them has is a mistake.
 * tests/cli/commands.sh compares this list with each --help. */
static const char *const settings[] = {"accept",
                                       "account",
                                       "all-baselines",
                                       "all-reduce",
                                       "allow-lossy",
                                       "allow-sharded",
                                       "allow-stale",
                                       "answers",
                                       "attempt",
                                       "audit",
                                       "baseline",
                                       "baselines",
                                       "batch",
                                       "bench",
                                       "bucket-mib",
                                       "cacert",
                                       "canonical",
                                       "client",
                                       "cluster",
                                       "cold",
                                       "command",
                                       "compute",
                                       "computers",
                                       "connections",
                                       "connections-per-address",
                                       "count",
                                       "csv",
                                       "dataset",
                                       "descending",
                                       "device-link-gbyte-per-s",
                                       "devices",
                                       "drain",
                                       "draw",
                                       "events",
                                       "expires",
                                       "export-env",
                                       "export-to",
                                       "faster-than",
                                       "filter",
                                       "format",
                                       "forward-ratio",
                                       "from",
                                       "gap",
                                       "holdout",
                                       "hosts",
                                       "html",
                                       "idle",
                                       "infeasible",
                                       "iterations",
                                       "json",
                                       "keep-answers",
                                       "keep-audit",
                                       "keep-events",
                                       "kind",
                                       "label",
                                       "launch-options",
                                       "launchers",
                                       "learning-rate",
                                       "lease",
                                       "least-gain",
                                       "limit",
                                       "list",
                                       "listen",
                                       "log",
                                       "logs",
                                       "max-bytes",
                                       "measure",
                                       "memory",
                                       "model",
                                       "momentum",
                                       "name",
                                       "nic-gbit-per-s",
                                       "nic-latency-us",
                                       "no-access-log",
                                       "no-residual",
                                       "offset",
                                       "once",
                                       "open",
                                       "order",
                                       "out",
                                       "out-stale",
                                       "partition",
                                       "pass",
                                       "patience",
                                       "pattern",
                                       "plot",
                                       "positions",
                                       "proposer",
                                       "proxy",
                                       "publish-command",
                                       "ranker",
                                       "reason",
                                       "references",
                                       "requests-per-s",
                                       "resume",
                                       "role",
                                       "rounds",
                                       "runner",
                                       "seed",
                                       "seeds",
                                       "server",
                                       "session",
                                       "share-gpu",
                                       "since",
                                       "slower-than",
                                       "state",
                                       "strategy",
                                       "strict",
                                       "sweep",
                                       "target",
                                       "team",
                                       "team-bytes",
                                       "team-rows",
                                       "team-sessions",
                                       "tflops",
                                       "threads",
                                       "time",
                                       "time-limit",
                                       "timeline",
                                       "times",
                                       "tls-cert",
                                       "tls-key",
                                       "to",
                                       "token-file",
                                       "trace",
                                       "train",
                                       "trial-time",
                                       "trials",
                                       "trials-per-day",
                                       "unit",
                                       "until",
                                       "warmup",
                                       "weather",
                                       "with",
                                       "worker",
                                       "workers",
                                       "y",
                                       NULL};

const struct option options_common[] = {
    {"log", OPTION_TEXT, NULL, "quiet|error|warn|info|debug", "how much to say on standard error (default info)"},
    {"help", OPTION_FLAG, NULL, NULL, "print this text"},
    {0}};

const struct option options_leading[] = {
    {"server", OPTION_TEXT, NULL, "URL",
     "work on this service, if COMMAND can; this and the next three may also stand after COMMAND"},
    {"token-file", OPTION_TEXT, NULL, "FILE",
     "the token for it, in a file that only you can read (default: SYNCOPATE_TOKEN)"},
    {"cacert", OPTION_TEXT, NULL, "FILE", "PEM certificates to trust, in place of the system's"},
    {"proxy", OPTION_TEXT, NULL, "URL", "in place of that of the environment (https_proxy, no_proxy)"},
    {"version", OPTION_FLAG, NULL, NULL, "print the program's version"},
    {"help", OPTION_FLAG, NULL, NULL, "print this text"},
    {0}};

static enum status parse_number(const char *text, double *out, struct error *err) {
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end || errno || !isfinite(value))
        return error_set(err, ST_USAGE, "\"%s\" is not a number", text);
    *out = value;
    return ST_OK;
}

/* JSON has larger ones only approximately, and what is asked for is also written, or sent, as JSON. */
#define MOST_INTEGER ((1ULL << 53) - 1)

static enum status parse_integer(const char *text, uint64_t *out, struct error *err) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end)
        return error_set(err, ST_USAGE, "\"%s\" is not a whole number", text);
    if (errno || value > MOST_INTEGER)
        return error_set(err, ST_USAGE, "%s is too large; the most is %llu", text, MOST_INTEGER);
    *out = value;
    return ST_OK;
}

static enum status parse_percent(const char *text, double *out, struct error *err) {
    char copy[64];
    size_t n = strlen(text);
    if (n && text[n - 1] == '%')
        n--;
    if (!n || n >= sizeof copy)
        return error_set(err, ST_USAGE, "\"%s\" is not a percentage", text);
    memcpy(copy, text, n);
    copy[n] = 0;
    enum status st = parse_number(copy, out, err);
    *out /= 100;
    return st;
}

static enum status set_value(const struct option *option, const char *text, struct error *err) {
    switch (option->kind) {
    case OPTION_FLAG:
        *(bool *)option->value = strcmp(text, "0") != 0 && strcmp(text, "false") != 0 && *text;
        return ST_OK;
    case OPTION_TEXT:
    case OPTION_ONE_OF:
        *(const char **)option->value = text;
        return ST_OK;
    case OPTION_INTEGER:
        return parse_integer(text, option->value, err);
    case OPTION_NUMBER:
        return parse_number(text, option->value, err);
    case OPTION_PERCENT:
        return parse_percent(text, option->value, err);
    case OPTION_TIME:
        return units_parse_time(text, option->value, err);
    case OPTION_BYTES:
        return units_parse_bytes(text, option->value, err);
    case OPTION_MEMORY:
        return units_parse_memory(text, option->value, err);
    case OPTION_END:
        break;
    }
    return error_set(err, ST_USAGE, "option --%s has no kind", option->name);
}

static enum status set_from(const struct option *option, const char *text, const char *where, struct error *err) {
    enum status st = set_value(option, text, err);
    return st ? error_prefix(err, st, "%s", where) : ST_OK;
}

void options_variable(const char *option, char *out, size_t n) {
    size_t used = (size_t)snprintf(out, n, "SYNCOPATE_");
    for (; *option && used + 1 < n; option++)
        out[used++] = *option == '-' ? '_' : (char)toupper((unsigned char)*option);
    out[used] = 0;
}

static bool server_said; /* before the command */

/* The value of the option `name` that argv[1] is, and how many words it takes; 0: it is another word. */
static int match_leading(int argc, char **argv, const char *name, const char **value) {
    const size_t n = strlen(name);
    const char *word = argv[1] + 2;
    if (strncmp(argv[1], "--", 2) != 0 || strncmp(word, name, n) != 0 || (word[n] && word[n] != '='))
        return 0;
    *value = word[n] ? word + n + 1 : argc > 2 ? argv[2] : "";
    return word[n] ? 1 : 2;
}

enum status options_take_server(int *argc, char ***argv, struct error *err) {
    for (const struct option *o = options_leading; o->kind == OPTION_TEXT && *argc > 1;) {
        const char *value;
        char variable[64];
        const int used = match_leading(*argc, *argv, o->name, &value);
        if (!used) {
            o++;
            continue;
        }
        if (!*value)
            return error_set(err, ST_USAGE, "--%s needs a value", o->name);
        options_variable(o->name, variable, sizeof variable);
        setenv(variable, value, 1);
        server_said = true;
        (*argv)[used] = (*argv)[0];
        *argv += used;
        *argc -= used;
        o = options_leading;
    }
    return ST_OK;
}

bool options_server_typed(int argc, char **argv) {
    const char *value;
    bool typed = server_said;
    for (int i = 1; i < argc && !typed && strcmp(argv[i], "--") != 0; i++)
        typed = match_leading(argc - i + 1, argv + i - 1, "server", &value) > 0;
    return typed;
}

static enum status set_from_environment(const struct command_line *line, struct error *err) {
    char name[64];
    for (const struct option *o = line->options; o->kind != OPTION_END; o++) {
        options_variable(o->name, name, sizeof name);
        const char *text = getenv(name);
        enum status st = text && *text ? set_from(o, text, name, err) : ST_OK;
        if (st)
            return st;
    }
    return ST_OK;
}

static struct arena kept; /* texts of settings, for the life of the process as all option values are */

/* Text of a settings member: strings as they are, numbers and booleans as they would be typed. */
static const char *setting_text(const cJSON *node) {
    char number[32];
    if (cJSON_IsString(node))
        return arena_strdup(&kept, node->valuestring);
    if (cJSON_IsBool(node))
        return cJSON_IsTrue(node) ? "1" : "0";
    if (!cJSON_IsNumber(node))
        return NULL;
    json_format_number(node->valuedouble, number);
    return arena_strdup(&kept, number);
}

/* Set an option from the member of its name in the file of settings, if there is one. */
static enum status set_from_member(const cJSON *json, const struct option *o, struct error *err) {
    char where[64];
    const cJSON *node = cJSON_GetObjectItemCaseSensitive(json, o->name);
    if (!node)
        return ST_OK;
    snprintf(where, sizeof where, "%s: /%s", SETTINGS_FILE, o->name);
    const char *text = setting_text(node);
    return text ? set_from(o, text, where, err) : error_set(err, ST_USAGE, "%s: give text, a number or true", where);
}

static enum status set_log_level(const char *word, struct error *err) {
    enum log_level level;
    if (!log_parse_level(word, &level))
        return error_set(err, ST_USAGE, "--log: \"%s\" is none of quiet, error, warn, info, debug", word);
    log_set_level(level);
    return ST_OK;
}

static enum status set_log_from_member(const cJSON *json, struct error *err) {
    const char *level = NULL;
    enum status st = set_from_member(json, &(struct option){"log", OPTION_TEXT, &level, NULL, NULL}, err);
    return st || !level ? st : set_log_level(level, err);
}

static enum status set_from_file(const struct command_line *line, struct error *err) {
    cJSON *json;
    if (access(SETTINGS_FILE, R_OK))
        return ST_OK;
    enum status st = json_read_file(SETTINGS_FILE, &json, err);
    if (st)
        return st;
    const struct json_at root = json_root(json, SETTINGS_FILE);
    st = json_expect_object(&root, settings, err);
    if (!st)
        st = set_log_from_member(json, err);
    for (const struct option *o = line->options; o->kind != OPTION_END && !st; o++)
        st = set_from_member(json, o, err);
    cJSON_Delete(json);
    return st;
}

enum { HELP_COLUMN = 27, HELP_WIDTH = 110 };

/* Print a text in lines of HELP_WIDTH from column HELP_COLUMN on, where the cursor stands. */
static void print_filled(const char *words) {
    int column = HELP_COLUMN;
    for (const char *at = words; *at;) {
        const int n = (int)strcspn(at, " ");
        if (column > HELP_COLUMN && column + 1 + n > HELP_WIDTH)
            printf("\n%*s", column = HELP_COLUMN, "");
        column += printf("%s%.*s", column > HELP_COLUMN ? " " : "", n, at);
        at += n + (at[n] == ' ');
    }
    putchar('\n');
}

static void print_option(const struct option *o) {
    const int left = printf("  --%s%s%s", o->name, o->argument ? " " : "", o->argument ? o->argument : "");
    if (left >= HELP_COLUMN)
        printf("\n%*s", HELP_COLUMN, "");
    else
        printf("%*s", HELP_COLUMN - left, "");
    print_filled(o->help);
}

static void print_options(const struct option *options) {
    for (; options->kind != OPTION_END; options++)
        print_option(options);
}

void options_print_help(const struct command_line *line) {
    const int name = options_name_length(line->usage);
    printf("usage: syncopate %s\n\n%s\n", line->usage, line->about);
    if (line->commands)
        printf("\nCommands:\n");
    for (const struct command *row = line->commands; row && row->name; row++)
        printf("  %-12s %s\n", row->name, row->summary);
    if (!line->group || line->options->kind != OPTION_END)
        printf("\nOptions:\n");
    print_options(line->options);
    if (!line->group)
        print_options(options_common);
    if (line->examples)
        printf("\nExamples:\n%s\n", line->examples);
    if (line->commands)
        printf("\n\"syncopate %.*s%sCOMMAND --help\" explains one.\n", name, line->usage, name ? " " : "");
}

static const struct option *find_option(const struct command_line *line, const char *name, size_t n) {
    for (const struct option *o = line->options; o->kind != OPTION_END; o++)
        if (!strncmp(o->name, name, n) && !o->name[n])
            return o;
    return NULL;
}

/* The length of the command's own words in a usage: the words in small letters. */
static size_t words_of_command(const char *usage) {
    size_t n = strspn(usage, "abcdefghijklmnopqrstuvwxyz- ");
    while (n && (usage[n - 1] == ' ' || usage[n - 1] == '-'))
        n--;
    return n;
}

/* argv[*i] is "--name" or "--name=value"; *i moves past a value taken from the next word. */
static enum status parse_option(const struct command_line *line, int argc, char **argv, int *i, struct error *err) {
    const char *name = argv[*i] + 2, *equals = strchr(name, '='), *text = equals ? equals + 1 : NULL;
    size_t n = equals ? (size_t)(equals - name) : strlen(name);
    bool log = n == 3 && !strncmp(name, "log", 3);
    const struct option *option = log ? NULL : find_option(line, name, n);
    if (!option && !log)
        return error_set(err, ST_USAGE, "unknown option --%.*s; see: syncopate %.*s --help", (int)n, name,
                         (int)words_of_command(line->usage), line->usage);
    if (option && option->kind == OPTION_FLAG) {
        if (text)
            return error_set(err, ST_USAGE, "--%s takes no value", option->name);
        *(bool *)option->value = true;
        return ST_OK;
    }
    if (!text && *i + 1 < argc)
        text = argv[++*i];
    if (!text)
        return error_set(err, ST_USAGE, "--%.*s needs a value", (int)n, name);
    char where[64];
    snprintf(where, sizeof where, "--%.*s", (int)n, name);
    return log ? set_log_level(text, err) : set_from(option, text, where, err);
}

static enum status parse_words(const struct command_line *line, int argc, char **argv, struct arguments *out,
                               struct error *err) {
    bool options = true;
    for (int i = 1; i < argc; i++) {
        if (options && !strcmp(argv[i], "--")) {
            options = false;
        } else if (options && !strncmp(argv[i], "--", 2)) {
            enum status st = parse_option(line, argc, argv, &i, err);
            if (st)
                return st;
        } else if (options && argv[i][0] == '-' && argv[i][1] && !isdigit((unsigned char)argv[i][1])) {
            return error_set(err, ST_USAGE, "options begin with two dashes: %s", argv[i]);
        } else if (out->n == line->max_arguments || out->n == MAX_ARGUMENTS) {
            return error_set(err, ST_USAGE, "\"%s\" is one argument too many; usage: syncopate %s", argv[i],
                             line->usage);
        } else {
            out->items[out->n++] = argv[i];
        }
    }
    return ST_OK;
}

int options_name_length(const char *usage) {
    int n = 0;
    while (islower((unsigned char)usage[n]) || (n && usage[n] == '-') ||
           (n && usage[n] == ' ' && islower((unsigned char)usage[n + 1])))
        n++;
    return n;
}

static struct {
    options_listener *call;
    void *context;
} listening;

void options_listen(options_listener *listener, void *context) {
    listening.call = listener;
    listening.context = context;
}

/* The values of the table's OPTION_ONE_OF options, in its order. */
enum { MOST_ONE_OF = 4 };
struct said {
    const char *texts[MOST_ONE_OF];
};

/* Take these values out of the options, so that a stronger source begins with none. */
static struct said unsay(const struct command_line *line) {
    struct said said = {{NULL}};
    size_t n = 0;
    for (const struct option *o = line->options; o->kind != OPTION_END; o++) {
        if (o->kind != OPTION_ONE_OF)
            continue;
        assert(n < MOST_ONE_OF);
        said.texts[n++] = *(const char **)o->value;
        *(const char **)o->value = NULL;
    }
    return said;
}

static bool may_lead(const char *name) {
    for (const struct option *o = options_leading; o->kind != OPTION_END; o++)
        if (!strcmp(o->name, name))
            return true;
    return false;
}

/* --server was typed before the command, so drop the values of options that cannot stand there. */
static void keep_what_may_lead(const struct command_line *line) {
    for (const struct option *o = line->options; o->kind != OPTION_END; o++)
        if (o->kind == OPTION_ONE_OF && !may_lead(o->name))
            *(const char **)o->value = NULL;
}

/* Put the values back, unless the stronger source set one of these options. */
static void say_again(const struct command_line *line, const struct said *said) {
    const char *const *text = said->texts;
    for (const struct option *o = line->options; o->kind != OPTION_END; o++)
        if (o->kind == OPTION_ONE_OF && *(const char **)o->value)
            return;
    for (const struct option *o = line->options; o->kind != OPTION_END; o++)
        if (o->kind == OPTION_ONE_OF)
            *(const char **)o->value = *text++;
}

enum status options_parse(const struct command_line *line, int argc, char **argv, struct arguments *out,
                          struct error *err) {
    *out = (struct arguments){0};
    if (listening.call) {
        listening.call(line, listening.context);
        return error_set(err, ST_CANCELLED, "syncopate %s was looked at, not run", line->usage);
    }
    if (server_said && !find_option(line, "server", strlen("server")))
        return error_set(err, ST_USAGE, "\"syncopate %.*s\" works on this machine, not on a service: drop --server",
                         options_name_length(line->usage), line->usage);
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            options_print_help(line);
            exit(0);
        }
    const char *level = getenv("SYNCOPATE_LOG");
    enum status st = set_from_file(line, err);
    if (!st && level && *level)
        st = set_log_level(level, err);
    struct said said = unsay(line);
    if (!st)
        st = set_from_environment(line, err);
    say_again(line, &said);
    if (server_said)
        keep_what_may_lead(line);
    else
        said = unsay(line);
    if (!st)
        st = parse_words(line, argc, argv, out, err);
    if (!server_said)
        say_again(line, &said);
    if (!st && out->n < line->min_arguments)
        st = error_set(err, ST_USAGE, "usage: syncopate %s   (--help explains)", line->usage);
    return st;
}
