/* See session_trials.h. A shell can evaluate what "suggest" prints. The variables are those that a job gets
 * (trial-runner/job.h), so one script serves both. */
#include "cli/session_trials.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/interrupt.h"
#include "cli/job_options.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/reported_times.h"

static const double TURN_US = 60e6, LEASE_US = 600e6, LEAST_LEASE_US = 1e6, MOST_LEASE_US = 7 * 86400e6;
static const double LOOK_AGAIN_US = 0.5e6;

enum status session_limits(void *context, const struct job_options *job, const struct export_limits **limits,
                           struct error *err) {
    if (!job->export_to)
        return ST_OK;
    *limits = context;
    return export_limits_parse(job->export_to, job->accept, context, err);
}

/* ---- who asks ---- */

/* Variables that "suggest" prints and that heartbeat, complete and fail read. */
#define OF_SESSION "SYNCOPATE_TRIAL_SESSION"
#define OF_NUMBER  "SYNCOPATE_TRIAL_NUMBER"
#define OF_ATTEMPT "SYNCOPATE_TRIAL_ATTEMPT"
#define OF_CLIENT  "SYNCOPATE_TRIAL_CLIENT"
#define OF_TIMES   "SYNCOPATE_TRIAL_TIMES"
#define OF_WARMUP  "SYNCOPATE_TRIAL_WARMUP"

struct holder_options {
    const char *dataset, *client;
    char host[CLIENT_NAME_MAX + 1];
    double lease_us;
    uint64_t attempt; /* 0: not said */
};

static enum status check_holder(struct holder_options *w, struct error *err) {
    if (!w->client) {
        gethostname(w->host, sizeof w->host - 1);
        w->client = w->host;
    }
    if (!*w->client || strlen(w->client) > CLIENT_NAME_MAX)
        return error_set(err, ST_USAGE, "--client must be a name of 1 to %d bytes", CLIENT_NAME_MAX);
    if (!text_is_clean(w->client, strlen(w->client)))
        return error_set(err, ST_USAGE, "--client: no control characters");
    if (w->lease_us < LEAST_LEASE_US || w->lease_us > MOST_LEASE_US)
        return error_set(err, ST_USAGE, "--lease must be 1s to 168h");
    return ST_OK;
}

#define DATASET_OPTION(w)                                                                                              \
    { "dataset", OPTION_TEXT, &(w).dataset, "FILE", "where the session is (default " DEFAULT_DATASET ")" }
#define CLIENT_OPTION(w)                                                                                               \
    {                                                                                                                  \
        "client", OPTION_TEXT, &(w).client, "NAME",                                                                    \
            "who took it (default: as in the environment, else this host's name)"                                      \
    }
#define LEASE_OPTION(w)                                                                                                \
    { "lease", OPTION_TIME, &(w).lease_us, "T", "how long the trial stays yours without a heartbeat (default 10m)" }
#define ATTEMPT_OPTION(w)                                                                                              \
    {                                                                                                                  \
        "attempt", OPTION_INTEGER, &(w).attempt, "N",                                                                  \
            "which attempt of the trial, as it was suggested (default: as in the environment, else 1)"                 \
    }

/* ---- suggest ---- */

struct suggest_options {
    struct holder_options holder;
    const char *out;
    uint64_t count;
    double patience_us; /* for a trial; INFINITY: as long as it takes */
    bool json;
};

static bool add_trial(cJSON *list, const struct asking *a, const struct assignment *t, const char *folder) {
    cJSON *json = cJSON_CreateObject();
    cJSON *strategy = strategy_write(t->suggestion.order.strategy, &a->model, &a->cluster);
    if (!json || !strategy || !cJSON_AddItemToArray(list, json)) {
        cJSON_Delete(strategy);
        return false;
    }
    return cJSON_AddItemToObject(json, "strategy", strategy) &&
           cJSON_AddNumberToObject(json, "number", (double)t->number) &&
           cJSON_AddNumberToObject(json, "attempt", (double)t->attempt) &&
           cJSON_AddNumberToObject(json, "round", (double)t->suggestion.round) &&
           cJSON_AddStringToObject(json, "proposer", t->suggestion.proposer) &&
           cJSON_AddStringToObject(json, "lease_until", t->until) &&
           cJSON_AddNumberToObject(json, "iterations", (double)t->suggestion.order.iterations) &&
           cJSON_AddNumberToObject(json, "warmup", (double)t->suggestion.order.warmup) &&
           (!(t->suggestion.predicted_us > 0) ||
            cJSON_AddNumberToObject(json, "predicted_us", t->suggestion.predicted_us)) &&
           (!(t->suggestion.order.give_up_us > 0) ||
            cJSON_AddNumberToObject(json, "give_up_us", t->suggestion.order.give_up_us)) &&
           (!folder || cJSON_AddStringToObject(json, "folder", folder)) &&
           cJSON_AddStringToObject(json, "strategy_id", t->suggestion.order.strategy->id.hex);
}

/* Print a value so that a shell reads it back and a terminal obeys nothing in it. */
static void print_variable(const char *name, const char *value) {
    char shown[TEXT_SHOWN];
    text_print(stdout, "export %s='", name);
    for (size_t i = 0, n = strlen(value); i < n;) {
        const bool quote = value[i] == '\'';
        i += text_show(value + i, n - i, shown);
        text_print(stdout, "%s", quote ? "'\\''" : shown);
    }
    text_print(stdout, "'\n");
}

static void print_trial(const struct assignment *t, const char *session, const char *client, const char *folder) {
    char path[JOB_PATH + 32], number[32];
    print_variable(OF_SESSION, session);
    print_variable(OF_CLIENT, client);
    print_variable("SYNCOPATE_TRIAL_DIR", folder);
    snprintf(path, sizeof path, "%s/strategy.json", folder);
    print_variable("SYNCOPATE_TRIAL_STRATEGY", path);
    snprintf(path, sizeof path, "%s/times.jsonl", folder);
    print_variable(OF_TIMES, path);
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {{OF_NUMBER, t->number},
                   {OF_ATTEMPT, t->attempt},
                   {"SYNCOPATE_TRIAL_ITERATIONS", t->suggestion.order.iterations},
                   {OF_WARMUP, t->suggestion.order.warmup}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        snprintf(number, sizeof number, "%lu", (unsigned long)numbers[i].value);
        print_variable(numbers[i].name, number);
    }
    print_variable("SYNCOPATE_TRIAL_LEASE_UNTIL", t->until);
}

/* Make the trial's folder, as for a job: for shells, and with --out. */
static enum status make_folder(const struct asking *a, const struct suggest_options *w, const struct assignment *t,
                               char folder[JOB_PATH], struct error *err) {
    const char *parent = w->out ? w->out : a->stored.id;
    if (!w->out && !session_id_is_valid(a->stored.id)) /* it may be a path */
        return error_set(err, ST_USAGE, "session %s: its id is no name of a folder; give --out", a->stored.id);
    enum status st = job_folder_make(parent, t->number, folder, err);
    return st ? st
              : job_folder_write(folder, a->options.limits, t->suggestion.order.strategy, &a->model, &a->cluster, err);
}

static enum status print_json(const struct asking *a, const struct suggest_options *w, struct error *err) {
    cJSON *json = cJSON_CreateObject();
    const char *next = a->n ? "trials" : a->step == SESSION_OVER ? "over" : "wait";
    bool whole = json && cJSON_AddStringToObject(json, "session", a->stored.id) &&
                 cJSON_AddStringToObject(json, "client", w->holder.client) &&
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

static enum status print_shell(const struct asking *a, const struct suggest_options *w, struct error *err) {
    enum status st = ST_OK;
    for (size_t i = 0; i < a->n && !st; i++) {
        char folder[JOB_PATH];
        st = make_folder(a, w, &a->trials[i], folder, err);
        if (!st)
            print_trial(&a->trials[i], a->stored.id, w->holder.client, folder);
    }
    return st;
}

/* Ask once. *again: there is nothing now, and there may be later. */
static enum status ask_once(const char *session, const struct suggest_options *w, bool patient, bool *again,
                            struct error *err) {
    struct asking asking = {0};
    struct export_limits limits;
    struct store *store = NULL;
    enum status st = asking_open(w->holder.dataset, TURN_US, interrupt_flag(), &store, err);
    if (!st)
        st = asking_expire(store, session, err);
    if (!st)
        st = asking_load(&asking, store, session, session_limits, &limits, err);
    *again = false;
    if (!st)
        st = asking_take(&asking, w->holder.client, (size_t)w->count, w->holder.lease_us, err);
    store_close(store); /* what follows needs no turn */
    if (st == ST_CONFLICT && asking.engine && (w->json || asking.step == SESSION_OVER))
        st = w->json ? ST_OK
                     : error_set(err, ST_INFEASIBLE, "session %s is over: %s", session,
                                 asking.stored.reason ? asking.stored.reason
                                                      : stored_session_state_word(asking.stored.state));
    else if (!st && !asking.n && asking.step == SESSION_OVER && !w->json)
        st = error_set(err, ST_INFEASIBLE, "session %s is over: %s", session,
                       tune_stop_label(session_stop(asking.engine)));
    *again = !st && !asking.n && asking.step == SESSION_WAIT && patient;
    if (!st && !*again && !asking.n && !w->json)
        st = error_set(err, ST_TIMEOUT, "session %s has no trial to give until one that runs has ended", session);
    if (!st && !*again)
        st = w->json ? print_json(&asking, w, err) : print_shell(&asking, w, err);
    asking_release(&asking);
    return st;
}

static enum status ask(const char *session, const struct suggest_options *w, struct error *err) {
    const double end_us = clock_now_us() + w->patience_us;
    const atomic_int *interrupted = interrupt_flag();
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
    struct suggest_options w = {
        .holder = {.dataset = DEFAULT_DATASET, .lease_us = LEASE_US}, .count = 1, .patience_us = -1};
    const struct option options[] = {
        {"count", OPTION_INTEGER, &w.count, "N", "take up to N trials at once (default 1; more need --json)"},
        LEASE_OPTION(w.holder),
        {"client", OPTION_TEXT, &w.holder.client, "NAME", "who takes it (default: this host's name)"},
        {"patience", OPTION_TIME, &w.patience_us, "T",
         "while no trial can be given before running ones end: give up after T, with status 1 (default: never)"},
        {"out", OPTION_TEXT, &w.out, "DIR", "where each trial gets its folder (default: one named like the session)"},
        DATASET_OPTION(w.holder),
        {"json", OPTION_FLAG, &w.json, NULL, "print one JSON object; folders only with --out"},
        {0}};
    const struct command_line line = {
        .usage = "session suggest SESSION [options]",
        .about =
            "Take the next trial of a session, and print variables for a script to eval. As \"tune --command\" gives\n"
            "them to a job: SYNCOPATE_TRIAL_DIR (with the forms of \"strategy export\"), SYNCOPATE_TRIAL_STRATEGY,\n"
            "_TIMES, _NUMBER, _ITERATIONS and _WARMUP. Besides: _SESSION, _ATTEMPT, _CLIENT and _LEASE_UNTIL.\n"
            "\"session complete\" takes from them what is not typed, if they are of the same trial. Ends with status\n"
            "3 when the session is over.",
        .examples = "  while trial=$(syncopate session suggest $id); do\n"
                    "      eval \"$trial\"\n"
                    "      ./train.sh && syncopate session complete $id $SYNCOPATE_TRIAL_NUMBER\n"
                    "  done",
        .options = options,
        .min_arguments = 1,
        .max_arguments = 1};
    struct arguments arguments;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = check_holder(&w.holder, err);
    if (!st && (w.count < 1 || w.count > ASSIGNMENTS_MOST))
        st = error_set(err, ST_USAGE, "--count must be 1 to %d", ASSIGNMENTS_MOST);
    if (!st && w.count > 1 && !w.json)
        st = error_set(err, ST_USAGE, "--count is for --json: variables are of one trial");
    return st ? st : ask(arguments.items[0], &w, err);
}

/* ---- telling ---- */

static enum status read_number(const char *text, const char *what, uint64_t *out, struct error *err) {
    char *end;
    *out = strtoull(text, &end, 10);
    return *text >= '1' && *text <= '9' && !*end && end - text < 16
               ? ST_OK
               : error_set(err, ST_USAGE, "\"%.40s\" is not the number of a %s", text, what);
}

static bool is_said_here(const struct arguments *arguments) {
    const char *session = getenv(OF_SESSION), *number = getenv(OF_NUMBER);
    return session && number && !strcmp(session, arguments->items[0]) && !strcmp(number, arguments->items[1]);
}

/* A variable that "session suggest" printed, if what it printed is about this trial; else NULL. */
static const char *said_here(const struct arguments *arguments, const char *name) {
    const char *value = is_said_here(arguments) ? getenv(name) : NULL;
    return value && *value ? value : NULL;
}

static enum status holder_of(struct holder_options *w, const struct arguments *arguments, struct holder *out,
                             struct error *err) {
    const char *attempt = w->attempt ? NULL : said_here(arguments, OF_ATTEMPT);
    w->client = w->client ? w->client : said_here(arguments, OF_CLIENT);
    w->attempt = w->attempt ? w->attempt : 1;
    enum status st = attempt ? read_number(attempt, "attempt", &w->attempt, err) : ST_OK;
    if (!st)
        st = check_holder(w, err);
    if (st)
        return st;
    *out = (struct holder){.session = arguments->items[0], .client = w->client, .attempt = w->attempt};
    return read_number(arguments->items[1], "trial", &out->number, err);
}

enum status session_heartbeat(int argc, char **argv, struct error *err) {
    struct holder_options w = {.dataset = DEFAULT_DATASET, .lease_us = LEASE_US};
    const struct option options[] = {ATTEMPT_OPTION(w), LEASE_OPTION(w), CLIENT_OPTION(w), DATASET_OPTION(w), {0}};
    const struct command_line line = {.usage = "session heartbeat SESSION TRIAL [options]",
                                      .about = "Keep a trial: its lease begins anew, and when it will end is printed.",
                                      .options = options,
                                      .min_arguments = 2,
                                      .max_arguments = 2};
    struct arguments arguments;
    struct holder holder;
    struct store *store = NULL;
    char until[32];
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = holder_of(&w, &arguments, &holder, err);
    if (!st)
        st = asking_open(w.dataset, TURN_US, interrupt_flag(), &store, err);
    if (!st)
        st = asking_renew(store, &holder, w.lease_us, until, err);
    if (!st)
        text_print(stdout, "%s\n", until);
    store_close(store);
    return st;
}

static enum status end_trial(const struct holder_options *w, const struct holder *holder,
                             const struct tune_outcome *outcome, struct error *err) {
    struct store *store = NULL;
    enum status st = asking_open(w->dataset, TURN_US, interrupt_flag(), &store, err);
    if (!st)
        st = asking_end(store, holder, outcome, err);
    store_close(store);
    return st;
}

struct complete_options {
    struct holder_options holder;
    struct reported_times_options times; /* warmup UINT64_MAX: not said */
};

/* Options that were not given come from the environment, if its variables are about this trial. A pattern, which may
 * come from the settings file, is used only for a file that was named: a job's own file of times has JSON lines. */
static enum status fill_from_environment(struct complete_options *w, const struct arguments *arguments,
                                         struct error *err) {
    struct reported_times_options *times = &w->times;
    const char *warmup = said_here(arguments, OF_WARMUP), *number = getenv(OF_NUMBER);
    if (times->list && times->file)
        return error_set(err, ST_USAGE, "--time and --times: give one of them");
    if (times->list || !times->file)
        times->pattern = times->unit = NULL;
    if (!times->list && !times->file)
        times->file = said_here(arguments, OF_TIMES);
    if (!times->list && !times->file && number)
        return error_set(err, ST_USAGE, "the environment is of trial %.20s, not of this one: give --time or --times",
                         number);
    if (!times->list && !times->file)
        return error_set(err, ST_USAGE, "give --time or --times");
    if (times->warmup != UINT64_MAX)
        return ST_OK;
    times->warmup = 0;
    return warmup && strcmp(warmup, "0") != 0 ? read_number(warmup, "iteration", &times->warmup, err) : ST_OK;
}

/* Read the samples of an iteration, by which a rate becomes a time, from the model of the session. */
static enum status read_samples(const char *dataset, const char *session, double *out, struct error *err) {
    struct store *store;
    enum status st = store_open(dataset, STORE_READ_ONLY, &store, err);
    if (st)
        return st;
    st = asking_samples(store, session, out, err);
    store_close(store);
    return st;
}

static enum status tell(struct complete_options *w, const struct arguments *arguments, struct error *err) {
    struct holder holder;
    struct tune_outcome outcome = {.state = RECORD_COMPLETE};
    double *times_us = NULL;
    enum status st = fill_from_environment(w, arguments, err);
    if (!st)
        st = holder_of(&w->holder, arguments, &holder, err);
    if (!st)
        st = read_samples(w->holder.dataset, holder.session, &w->times.samples, err);
    if (!st)
        st = reported_times_read(&w->times, &outcome.n, &times_us, err);
    outcome.iterations_us = times_us;
    if (!st)
        st = end_trial(&w->holder, &holder, &outcome, err);
    free(times_us);
    return st;
}

enum status session_complete(int argc, char **argv, struct error *err) {
    struct complete_options w = {.holder = {.dataset = DEFAULT_DATASET, .lease_us = LEASE_US},
                                 .times = {.warmup = UINT64_MAX}};
    const struct option options[] = {
        {"time", OPTION_ONE_OF, &w.times.list, "T,...",
         "the time of each iteration, with its unit, or its rate: 12.3ms,12.1ms or 2560samples/s,2544samples/s"},
        {"times", OPTION_ONE_OF, &w.times.file, "FILE",
         "or a file of them, - for standard input: JSON lines as a job tells them, or a time a line (default: as in "
         "the environment)"},
        JOB_TIMES_OPTIONS(w.times.pattern, w.times.unit, "that file"),
        {"warmup", OPTION_INTEGER, &w.times.warmup, "N",
         "how many times at the head of the file do not count (default: as in the environment, else 0)"},
        ATTEMPT_OPTION(w.holder),
        CLIENT_OPTION(w.holder),
        DATASET_OPTION(w.holder),
        {0}};
    const struct command_line line = {
        .usage = "session complete SESSION TRIAL [--time T,... | --times FILE] [options]",
        .about = "Tell what a trial measured, in three iterations or more. Status 1, and nothing is written, when the\n"
                 "trial is not yours any more.",
        .examples = "  syncopate session complete 20261121-084117-3fa2n9kq4xw81d7v 7 --time 213ms,209ms,211ms\n"
                    "  syncopate session complete 20261121-084117-3fa2n9kq4xw81d7v 7 --times train.log --warmup 2 \\\n"
                    "      --pattern 'speed: ([0-9.]+)' --unit samples/s",
        .options = options,
        .min_arguments = 2,
        .max_arguments = 2};
    struct arguments arguments;
    const enum status st = options_parse(&line, argc, argv, &arguments, err);
    return st ? st : tell(&w, &arguments, err);
}

enum status session_fail(int argc, char **argv, struct error *err) {
    struct holder_options w = {.dataset = DEFAULT_DATASET, .lease_us = LEASE_US};
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
    struct holder holder;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st && (!reason || !*reason))
        st = error_set(err, ST_USAGE, "--reason says why, for those who look at the session later");
    if (!st)
        st = holder_of(&w, &arguments, &holder, err);
    const struct tune_outcome outcome = {.state = infeasible ? RECORD_INFEASIBLE : RECORD_FAILED, .reason = reason};
    return st ? st : end_trial(&w, &holder, &outcome, err);
}
