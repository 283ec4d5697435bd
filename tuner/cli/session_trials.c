/* See session_trials.h. What "suggest" prints can be evaluated by a shell and names what a job is told
 * (trial-runner/job.h), so that one script serves both. */
#include "tuner/cli/session_trials.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/units.h"
#include "tuner/cli/interrupt.h"
#include "tuner/cli/job_options.h"
#include "tuner/cli/options.h"
#include "tuner/cli/output.h"
#include "tuner/cli/paths.h"

static const double TURN_US = 60e6, LEASE_US = 600e6, LEAST_LEASE_US = 1e6, MOST_LEASE_US = 7 * 86400e6;
static const double LOOK_AGAIN_US = 0.5e6;
enum { MOST_TIMES = 1000000 };

enum status session_limits(void *context, const char *job, const struct model *model, const struct cluster *cluster,
                           const struct export_limits **limits, struct error *err) {
    struct export_limits *own = context;
    struct arena arena = {0};
    struct job_words words;
    (void)model, (void)cluster;
    cJSON *json = cJSON_Parse(job);
    enum status st = json ? job_words_read(json, &arena, &words, err) : error_no_memory(err);
    cJSON_Delete(json);
    if (!st && words.export_to) {
        st = export_limits_parse(words.export_to, words.accept, own, err);
        *limits = st ? NULL : own;
    }
    arena_release(&arena);
    return st;
}

/* ---- who asks ---- */

struct asker_words {
    const char *dataset, *client;
    char host[ASKING_CLIENT_MAX + 1];
    double lease_us;
    uint64_t attempt;
};

static enum status check_asker(struct asker_words *w, struct error *err) {
    if (!w->client) {
        gethostname(w->host, sizeof w->host - 1);
        w->client = w->host;
    }
    if (!*w->client || strlen(w->client) > ASKING_CLIENT_MAX)
        return error_set(err, ST_USAGE, "--client is a name of 1 to %d bytes", ASKING_CLIENT_MAX);
    for (const char *c = w->client; *c; c++)
        if (iscntrl((unsigned char)*c))
            return error_set(err, ST_USAGE, "--client: no control characters");
    if (w->lease_us < LEAST_LEASE_US || w->lease_us > MOST_LEASE_US)
        return error_set(err, ST_USAGE, "--lease must be 1s to 168h");
    return ST_OK;
}

#define DATASET_OPTION(w)                                                                                              \
    { "dataset", OPTION_TEXT, &(w).dataset, "FILE", "where the session is (default " DEFAULT_DATASET ")" }
#define CLIENT_OPTION(w)                                                                                               \
    { "client", OPTION_TEXT, &(w).client, "NAME", "who takes and tells (default: this host's name)" }
#define LEASE_OPTION(w)                                                                                                \
    { "lease", OPTION_TIME, &(w).lease_us, "T", "who is silent for T has lost the trial (default 10m)" }
#define ATTEMPT_OPTION(w)                                                                                              \
    { "attempt", OPTION_INTEGER, &(w).attempt, "N", "which attempt of the trial, as it was suggested (default 1)" }

/* ---- suggest ---- */

struct suggest_words {
    struct asker_words asker;
    const char *out;
    uint64_t count;
    double patience_us; /* for a trial; INFINITY: as long as it takes */
    bool json;
};

static bool add_trial(cJSON *list, const struct asking *a, const struct asked *t, const char *folder) {
    cJSON *json = cJSON_CreateObject();
    cJSON *strategy = strategy_write(t->order->strategy, &a->model, &a->cluster);
    if (!json || !strategy || !cJSON_AddItemToArray(list, json)) {
        cJSON_Delete(strategy);
        return false;
    }
    return cJSON_AddItemToObject(json, "strategy", strategy) &&
           cJSON_AddNumberToObject(json, "number", (double)t->number) &&
           cJSON_AddNumberToObject(json, "attempt", (double)t->attempt) &&
           cJSON_AddNumberToObject(json, "round", (double)t->round) &&
           cJSON_AddStringToObject(json, "proposer", t->proposer) &&
           cJSON_AddStringToObject(json, "lease_until", t->until) &&
           cJSON_AddNumberToObject(json, "iterations", (double)t->order->iterations) &&
           cJSON_AddNumberToObject(json, "warmup", (double)t->order->warmup) &&
           (!(t->predicted_us > 0) || cJSON_AddNumberToObject(json, "predicted_us", t->predicted_us)) &&
           (!(t->order->give_up_us > 0) || cJSON_AddNumberToObject(json, "give_up_us", t->order->give_up_us)) &&
           (!folder || cJSON_AddStringToObject(json, "folder", folder)) &&
           cJSON_AddStringToObject(json, "strategy_id", t->order->strategy->id.hex);
}

/* A value as a shell takes it. */
static void print_variable(const char *name, const char *value) {
    printf("export %s='", name);
    for (; *value; value++)
        if (*value == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*value);
    puts("'");
}

static void print_trial(const struct asked *t, const char *folder) {
    char path[JOB_PATH + 32], number[32];
    print_variable("SYNCOPATE_TRIAL_DIR", folder);
    snprintf(path, sizeof path, "%s/strategy.json", folder);
    print_variable("SYNCOPATE_STRATEGY", path);
    snprintf(path, sizeof path, "%s/times.jsonl", folder);
    print_variable("SYNCOPATE_TIMES", path);
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {{"SYNCOPATE_NUMBER", t->number},
                   {"SYNCOPATE_ATTEMPT", t->attempt},
                   {"SYNCOPATE_ITERATIONS", t->order->iterations},
                   {"SYNCOPATE_WARMUP", t->order->warmup}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        snprintf(number, sizeof number, "%lu", (unsigned long)numbers[i].value);
        print_variable(numbers[i].name, number);
    }
    print_variable("SYNCOPATE_LEASE_UNTIL", t->until);
}

/* With --out, and for shells, each trial's folder; as jobs get one. */
static enum status make_folder(const struct asking *a, const struct suggest_words *w, const struct asked *t,
                               char folder[JOB_PATH], struct error *err) {
    const char *parent = w->out ? w->out : a->stored.id;
    enum status st = job_folder_make(parent, t->number, folder, err);
    return st ? st : job_folder_write(folder, t->order->strategy, &a->model, &a->cluster, err);
}

static enum status print_json(const struct asking *a, const struct suggest_words *w, struct error *err) {
    cJSON *json = cJSON_CreateObject();
    const char *next = a->n ? "trials" : a->step == SESSION_OVER ? "over" : "wait";
    bool whole = json && cJSON_AddStringToObject(json, "session", a->stored.id) &&
                 cJSON_AddStringToObject(json, "client", w->asker.client) &&
                 cJSON_AddStringToObject(json, "next", next);
    cJSON *list = whole ? cJSON_AddArrayToObject(json, "trials") : NULL;
    enum status st = ST_OK;
    for (size_t i = 0; i < a->n && list && !st; i++) {
        char folder[JOB_PATH];
        st = w->out ? make_folder(a, w, &a->trials[i], folder, err) : ST_OK;
        whole = whole && !st && add_trial(list, a, &a->trials[i], w->out ? folder : NULL);
    }
    if (!st)
        return output_line(json, whole && list, err);
    cJSON_Delete(json);
    return st;
}

static enum status print_shell(const struct asking *a, const struct suggest_words *w, struct error *err) {
    enum status st = ST_OK;
    for (size_t i = 0; i < a->n && !st; i++) {
        char folder[JOB_PATH];
        st = make_folder(a, w, &a->trials[i], folder, err);
        if (!st)
            print_trial(&a->trials[i], folder);
    }
    return st;
}

/* Ask once. *again: there is nothing now, and there may be later. */
static enum status ask_once(const char *session, const struct suggest_words *w, bool patient, bool *again,
                            struct error *err) {
    struct asking asking = {0};
    struct export_limits limits;
    struct store *store = NULL;
    enum status st = asking_open(w->asker.dataset, TURN_US, interrupt_flag(), &store, err);
    if (!st)
        st = asking_expire(store, session, err);
    if (!st)
        st = asking_load(&asking, store, session, session_limits, &limits, err);
    *again = false;
    if (!st)
        st = asking_take(&asking, w->asker.client, (size_t)w->count, w->asker.lease_us, err);
    store_close(store); /* what follows needs no turn */
    if (st == ST_CONFLICT && asking.engine && (w->json || asking.step == SESSION_OVER))
        st = w->json ? ST_OK
                     : error_set(err, ST_INFEASIBLE, "session %s is over: %s", session,
                                 asking.stored.reason ? asking.stored.reason
                                                      : stored_session_state_word(asking.stored.state));
    else if (!st && !asking.n && asking.step == SESSION_OVER && !w->json)
        st = error_set(err, ST_INFEASIBLE, "session %s is over: %s", session,
                       tune_stop_words(session_stop(asking.engine)));
    *again = !st && !asking.n && asking.step == SESSION_WAIT && patient;
    if (!st && !*again && !asking.n && !w->json)
        st = error_set(err, ST_TIMEOUT, "session %s has no trial to give until one that runs has ended", session);
    if (!st && !*again)
        st = w->json ? print_json(&asking, w, err) : print_shell(&asking, w, err);
    asking_release(&asking);
    return st;
}

static enum status ask(const char *session, const struct suggest_words *w, struct error *err) {
    const double end_us = clock_now_us() + w->patience_us;
    const volatile sig_atomic_t *interrupted = interrupt_flag();
    bool again = true;
    enum status st = ST_OK;
    while (!st && again) {
        const double left_us = w->patience_us < 0 ? MOST_LEASE_US : end_us - clock_now_us();
        st = ask_once(session, w, left_us > 0, &again, err);
        if (!st && again)
            clock_sleep_us(left_us < LOOK_AGAIN_US ? left_us : LOOK_AGAIN_US);
        if (!st && again && *interrupted)
            st = error_set(err, ST_CANCELLED, "interrupted");
    }
    return st;
}

enum status session_suggest_trials(int argc, char **argv, struct error *err) {
    struct suggest_words w = {
        .asker = {.dataset = DEFAULT_DATASET, .lease_us = LEASE_US}, .count = 1, .patience_us = -1};
    const struct option options[] = {
        {"count", OPTION_INTEGER, &w.count, "N", "take up to N trials at once (default 1; more need --json)"},
        LEASE_OPTION(w.asker),
        CLIENT_OPTION(w.asker),
        {"patience", OPTION_TIME, &w.patience_us, "T",
         "where all wait for trials that run: give up after T, with status 1 (default: never)"},
        {"out", OPTION_TEXT, &w.out, "DIR", "where each trial gets its folder (default: one named like the session)"},
        DATASET_OPTION(w.asker),
        {"json", OPTION_FLAG, &w.json, NULL, "print one JSON object; folders only with --out"},
        {0}};
    const struct command_line line = {
        .usage = "session suggest SESSION [options]",
        .about =
            "Take the next trial of a session, and print what a script must know, for eval: SYNCOPATE_STRATEGY,\n"
            "_TRIAL_DIR (with every form of \"strategy export\"), _TIMES, _NUMBER, _ATTEMPT, _ITERATIONS, _WARMUP\n"
            "and _LEASE_UNTIL, as \"tune --command\" tells a job. \"session complete\" finds _ATTEMPT, _TIMES and\n"
            "_WARMUP in the environment. Ends with status 3 when the session is over.",
        .examples = "  while trial=$(syncopate session suggest $id); do\n"
                    "      eval \"$trial\"\n"
                    "      ./train.sh && syncopate session complete $id $SYNCOPATE_NUMBER\n"
                    "  done",
        .options = options,
        .min_arguments = 1,
        .max_arguments = 1};
    struct arguments arguments;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = check_asker(&w.asker, err);
    if (!st && (w.count < 1 || w.count > ASKING_MOST))
        st = error_set(err, ST_USAGE, "--count is 1 to %d", ASKING_MOST);
    if (!st && w.count > 1 && !w.json)
        st = error_set(err, ST_USAGE, "--count is for --json: variables are of one trial");
    return st ? st : ask(arguments.items[0], &w, err);
}

/* ---- telling ---- */

static enum status read_number(const char *text, uint64_t *out, struct error *err) {
    char *end;
    *out = strtoull(text, &end, 10);
    return *text >= '1' && *text <= '9' && !*end && end - text < 16
               ? ST_OK
               : error_set(err, ST_USAGE, "\"%.40s\" is no trial's number", text);
}

static enum status asker_of(const struct asker_words *w, const struct arguments *arguments, struct asker *out,
                            struct error *err) {
    *out = (struct asker){.session = arguments->items[0], .client = w->client, .attempt = w->attempt};
    return read_number(arguments->items[1], &out->number, err);
}

enum status session_heartbeat(int argc, char **argv, struct error *err) {
    struct asker_words w = {.dataset = DEFAULT_DATASET, .lease_us = LEASE_US, .attempt = 1};
    const struct option options[] = {ATTEMPT_OPTION(w), LEASE_OPTION(w), CLIENT_OPTION(w), DATASET_OPTION(w), {0}};
    const struct command_line line = {.usage = "session heartbeat SESSION TRIAL [options]",
                                      .about = "Keep a trial: its lease begins anew, and when it will end is printed.",
                                      .options = options,
                                      .min_arguments = 2,
                                      .max_arguments = 2};
    struct arguments arguments;
    struct asker asker;
    struct store *store = NULL;
    char until[32];
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = check_asker(&w, err);
    if (!st)
        st = asker_of(&w, &arguments, &asker, err);
    if (!st)
        st = asking_open(w.dataset, TURN_US, interrupt_flag(), &store, err);
    if (!st)
        st = asking_renew(store, &asker, w.lease_us, until, err);
    if (!st)
        printf("%s\n", until);
    store_close(store);
    return st;
}

static enum status end_trial(const struct asker_words *w, const struct arguments *arguments,
                             const struct tune_outcome *outcome, struct error *err) {
    struct asker asker;
    struct store *store = NULL;
    enum status st = asker_of(w, arguments, &asker, err);
    if (!st)
        st = asking_open(w->dataset, TURN_US, interrupt_flag(), &store, err);
    if (!st)
        st = asking_end(store, &asker, outcome, err);
    store_close(store);
    return st;
}

/* Times as they come in. */
struct times {
    size_t n, capacity;
    double *us;
};

static enum status add_time(struct times *t, double us, struct error *err) {
    if (t->n == MOST_TIMES)
        return error_set(err, ST_TOO_LARGE, "more than %d iterations", MOST_TIMES);
    if (t->n == t->capacity) {
        const size_t capacity = t->capacity ? 2 * t->capacity : 64;
        double *more = realloc(t->us, capacity * sizeof *more);
        if (!more)
            return error_no_memory(err);
        t->us = more;
        t->capacity = capacity;
    }
    t->us[t->n++] = us;
    return ST_OK;
}

/* "12.3ms": here a bare number is refused, since it might be milliseconds as well as seconds. */
static enum status add_text(struct times *t, const char *text, struct error *err) {
    double us;
    const size_t n = strlen(text);
    if (!n || !isalpha((unsigned char)text[n - 1]))
        return error_set(err, ST_USAGE, "\"%.40s\": say the unit, as in 12.3ms", text);
    enum status st = units_parse_time(text, &us, err);
    if (!st && !(us > 0))
        st = error_set(err, ST_USAGE, "\"%.40s\": an iteration takes more than no time", text);
    return st ? st : add_time(t, us, err);
}

static enum status add_list(struct times *t, const char *list, struct error *err) {
    enum status st = ST_OK;
    for (const char *at = list; *at && !st;) {
        char word[64];
        const size_t n = strcspn(at, ", ");
        snprintf(word, sizeof word, "%.*s", (int)(n < 63 ? n : 63), at);
        st = n || *at == ',' ? add_text(t, word, err) : ST_OK;
        at += n + (at[n] != 0);
    }
    return st;
}

/* JSON lines as a job writes them, or a time with its unit a line. */
static enum status add_file(struct times *t, const char *path, uint64_t warmup, struct error *err) {
    struct job_times reader;
    char *line = NULL;
    size_t room = 0, at = 0;
    enum status st = job_times_init(&reader, NULL, JOB_UNIT_SUFFIX, 0, err);
    FILE *file = strcmp(path, "-") ? fopen(path, "re") : stdin;
    if (!st && !file)
        st = error_set(err, ST_NOT_FOUND, "%s: cannot be read", path);
    for (ssize_t n; !st && (n = getline(&line, &room, file)) >= 0;) {
        double us;
        at++;
        while (n && isspace((unsigned char)line[n - 1]))
            line[--n] = 0;
        if (!n)
            continue;
        if (job_times_json(&reader, line, (size_t)n, &us))
            st = add_time(t, us, err);
        else if (*line != '{')
            st = add_text(t, line, err);
        else if (*reader.odd)
            st = error_set(err, ST_INVALID, "%s", reader.odd);
        if (st)
            error_prefix(err, "%s:%zu", path, at);
    }
    free(line);
    if (file && file != stdin)
        fclose(file);
    if (!st && t->n <= warmup)
        st = error_set(err, ST_INVALID, "%s: %zu iterations, of which the first %lu are for warming up", path, t->n,
                       (unsigned long)warmup);
    if (!st) {
        t->n -= warmup;
        memmove(t->us, t->us + warmup, t->n * sizeof *t->us);
    }
    return st;
}

/* The environment is of the trial that was suggested last; its file must not be told of another. */
static enum status check_number(const char *trial, const char *file, struct error *err) {
    const char *number = getenv("SYNCOPATE_NUMBER"), *times = getenv("SYNCOPATE_TIMES");
    if (number && times && !strcmp(file, times) && strcmp(number, trial) != 0)
        return error_set(err, ST_USAGE, "SYNCOPATE_TIMES is the file of trial %s, not of %s; give --times FILE", number,
                         trial);
    return ST_OK;
}

enum status session_complete(int argc, char **argv, struct error *err) {
    struct asker_words w = {.dataset = DEFAULT_DATASET, .lease_us = LEASE_US, .attempt = 1};
    const char *list = NULL, *file = NULL;
    uint64_t warmup = 0;
    const struct option options[] = {
        {"time", OPTION_TEXT, &list, "T,...", "the time of each iteration, with its unit: 12.3ms,12.1ms"},
        {"times", OPTION_TEXT, &file, "FILE",
         "or a file of them, - for standard input: a time a line, or {\"time_us\": ...} a line"},
        {"warmup", OPTION_INTEGER, &warmup, "N", "how many times at the head of the file do not count (default 0)"},
        ATTEMPT_OPTION(w),
        CLIENT_OPTION(w),
        DATASET_OPTION(w),
        {0}};
    const struct command_line line = {
        .usage = "session complete SESSION TRIAL (--time T,... | --times FILE) [options]",
        .about = "Tell what a trial measured. Status 1, and nothing is written, when the trial is not yours any more.",
        .examples = "  syncopate session complete 20261121-084117-3fa2 7 --time 213ms,209ms,211ms",
        .options = options,
        .min_arguments = 2,
        .max_arguments = 2};
    struct arguments arguments;
    struct times times = {0};
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st && !list && !file)
        st = error_set(err, ST_USAGE, "give --time or --times");
    if (!st)
        st = check_asker(&w, err);
    if (!st && !list)
        st = check_number(arguments.items[1], file, err);
    if (!st)
        st = list ? add_list(&times, list, err) : add_file(&times, file, warmup, err);
    if (!st && !times.n)
        st = error_set(err, ST_USAGE, "a trial has at least one iteration");
    const struct tune_outcome outcome = {.state = RECORD_COMPLETE, .n = times.n, .iterations_us = times.us};
    if (!st)
        st = end_trial(&w, &arguments, &outcome, err);
    free(times.us);
    return st;
}

enum status session_fail(int argc, char **argv, struct error *err) {
    struct asker_words w = {.dataset = DEFAULT_DATASET, .lease_us = LEASE_US, .attempt = 1};
    const char *reason = NULL;
    bool infeasible = false;
    const struct option options[] = {
        {"reason", OPTION_TEXT, &reason, "TEXT", "why, in a sentence"},
        {"infeasible", OPTION_FLAG, &infeasible, NULL, "this strategy cannot run there at all"},
        ATTEMPT_OPTION(w),
        CLIENT_OPTION(w),
        DATASET_OPTION(w),
        {0}};
    const struct command_line line = {.usage = "session fail SESSION TRIAL --reason TEXT [options]",
                                      .about =
                                          "Tell that a trial failed. It counts as a trial, and is not tried again.",
                                      .options = options,
                                      .min_arguments = 2,
                                      .max_arguments = 2};
    struct arguments arguments;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st && (!reason || !*reason))
        st = error_set(err, ST_USAGE, "--reason says why, for those who look at the session later");
    if (!st)
        st = check_asker(&w, err);
    const struct tune_outcome outcome = {.state = infeasible ? RECORD_INFEASIBLE : RECORD_FAILED, .reason = reason};
    return st ? st : end_trial(&w, &arguments, &outcome, err);
}
