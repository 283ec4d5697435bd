/* syncopate session: one session of a dataset here whose trials are run by whoever asks for them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/inputs.h"
#include "cli/interrupt.h"
#include "cli/job_options.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/session_trials.h"
#include "cli/table.h"
#include "cli/tuning_output.h"

static const double TURN_US = 60e6; /* how long to wait for the dataset */
enum { DEFAULT_TRIALS = 40 };

/* ---- open ---- */

struct open_options {
    const char *dataset, *ranker, *sharded; /* sharded: NULL: nothing */
    bool cold, json;
    struct tune_options options;
};

static enum status record_session(const struct inputs *inputs, struct open_options *words, struct store *store,
                                  char id[64], struct error *err) {
    const struct domain here = {.model = inputs->model, .cluster = inputs->cluster};
    struct stored_ranker ranker;
    struct session *engine = NULL;
    enum status st = rankers_for_session(store, NULL, &here, words->ranker, &ranker, err);
    if (st)
        return st;
    words->options.ranker = ranker.ranker;
    words->options.kept.ranker = ranker.ranker ? ranker.id.hex : NULL;
    st = session_prepare(&inputs->model, &inputs->cluster, &words->options, &engine, err);
    if (!st)
        st = session_begin(engine, store, err);
    if (!st)
        session_warn_of_shards(engine);
    if (!st)
        snprintf(id, 64, "%s", session_id(engine));
    session_close(engine);
    stored_ranker_release(&ranker);
    return st;
}

static enum status open_here(const struct inputs *inputs, struct open_options *words, char id[64], struct error *err) {
    struct job_setup setup = {0};
    struct store *store = NULL;
    struct session_options *kept = &words->options.kept;
    enum status st = job_setup_init(&setup, &kept->job, inputs, err);
    words->options.limits = setup.limits.n ? &setup.limits : NULL;
    words->options.mode = STORED_SESSION_ASK;
    kept->earlier = words->cold ? 0 : kept->earlier;
    if (!st)
        st = asking_open(words->dataset, TURN_US, interrupt_flag(), &store, err);
    if (st == ST_NOT_FOUND && !store)
        st = store_open(words->dataset, STORE_READ_WRITE, &store, err);
    if (!st)
        st = record_session(inputs, words, store, id, err);
    store_close(store);
    job_setup_release(&setup);
    return st;
}

static enum status tell_opened(const struct open_options *words, const char *id, struct error *err) {
    if (words->json) {
        cJSON *json = cJSON_CreateObject();
        const bool whole = cJSON_AddStringToObject(json, "session", id) != NULL;
        return output_line(json, whole, err);
    }
    text_print(stdout, "%s\n", id);
    log_info("take its trials with: syncopate session suggest %s%s%s", id,
             strcmp(words->dataset, DEFAULT_DATASET) ? " --dataset " : "",
             strcmp(words->dataset, DEFAULT_DATASET) ? words->dataset : "");
    return ST_OK;
}

static enum status check_open(struct open_options *words, struct error *err) {
    struct tune_options *o = &words->options;
    if (o->trials == UINT64_MAX)
        o->trials = o->time_us > 0 ? 0 : DEFAULT_TRIALS;
    if (!o->trials && o->time_us <= 0)
        return error_set(err, ST_USAGE, "without a limit on trials a session needs --time");
    if (!(o->kept.trial_us > 0))
        return error_set(err, ST_USAGE, "--trial-time must be more than 0");
    return words->sharded ? sharded_named(words->sharded, &o->kept.allow_sharded, err) : ST_OK;
}

static enum status open_and_tell(const struct arguments *arguments, struct open_options *words, struct error *err) {
    struct inputs inputs;
    char id[64];
    enum status st = inputs_read(arguments->items[0], arguments->items[1], &inputs, err);
    if (st)
        return st;
    st = open_here(&inputs, words, id, err);
    if (!st)
        st = tell_opened(words, id, err);
    inputs_release(&inputs);
    return st;
}

static enum status session_open(int argc, char **argv, struct error *err) {
    struct open_options words = {.dataset = DEFAULT_DATASET, .ranker = "nearest", .options = tune_default_options()};
    struct tune_options *o = &words.options;
    o->trials = UINT64_MAX; /* not said */
    o->kept.launch.runner = "ask";
    const struct option options[] = {
        {"trials", OPTION_INTEGER, &o->trials, "N",
         "how many trials, repeats included (default 40, or no limit with --time)"},
        {"time", OPTION_TIME, &o->time_us, "T", "end within about T: 90s, 10m, 1h"},
        {"gap", OPTION_PERCENT, &o->gap, "P%", "end when the best is within P% of the lower bound"},
        {"least-gain", OPTION_PERCENT, &o->kept.least_gain, "P%",
         "end when no candidate promises to be P% faster than the best"},
        {"allow-lossy", OPTION_FLAG, &o->kept.allow_lossy, NULL,
         "let gradients lose something on their way, as tune does"},
        {"allow-sharded", OPTION_TEXT, &words.sharded, "optimizer|gradients|parameters",
         "try strategies too that keep only a part of these on each device, as tune does"},
        {"memory", OPTION_MEMORY, &o->kept.memory_bytes, "SIZE",
         "try only what needs at most so much memory of a device (default: what CLUSTER says its devices have)"},
        JOB_LIMIT_OPTIONS(o->kept.job),
        {"ranker", OPTION_TEXT, &words.ranker, "RANKER",
         "rank with this one, by name or id, or with none (default: nearest, the nearest domain's, if any)"},
        {"cold", OPTION_FLAG, &words.cold, NULL, "learn nothing from earlier sessions on this model and cluster"},
        {"runner", OPTION_TEXT, &o->kept.launch.runner, "NAME", "the name of the runner in records (default ask)"},
        {"seed", OPTION_INTEGER, &o->seed, "K", "where every random choice comes from (default 1)"},
        {"rounds", OPTION_INTEGER, &o->kept.final_rounds, "N", "how often each finalist runs again (default 3)"},
        {"trial-time", OPTION_TIME, &o->kept.trial_us, "T", "measure for about T in each trial (default 4s)"},
        {"dataset", OPTION_TEXT, &words.dataset, "FILE",
         "where measurements are kept, also postgresql://... (default " DEFAULT_DATASET ")"},
        {"json", OPTION_FLAG, &words.json, NULL, "print one JSON object"},
        {0}};
    const struct command_line line = {
        .usage = "session open MODEL CLUSTER [options]",
        .about = "Begin a session whose trials are run by whoever asks for them, and print its id. No process stays:\n"
                 "\"session suggest\" finds it in the dataset.",
        .examples = "  syncopate session open resnet50 lab-4x1g --trials 30 --export-to horovod",
        .options = options,
        .min_arguments = 2,
        .max_arguments = 2};
    struct arguments arguments;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = check_open(&words, err);
    return st ? st : open_and_tell(&arguments, &words, err);
}

/* ---- show ---- */

struct show_options {
    const char *dataset, *out;
    bool json;
};

struct shown {
    struct asking asking;
    struct inputs inputs; /* shallow: of the asking's */
    size_t n;
    struct record *records;
    bool answered;
    struct outcome outcome;
};

static cJSON *trial_json(const struct record *r, bool *whole) {
    cJSON *json = cJSON_CreateObject();
    *whole = *whole && json && cJSON_AddNumberToObject(json, "number", (double)r->number) &&
             cJSON_AddNumberToObject(json, "attempt", (double)r->attempt) &&
             cJSON_AddNumberToObject(json, "round", (double)r->round) &&
             cJSON_AddStringToObject(json, "state", record_state_word(r->state)) &&
             cJSON_AddStringToObject(json, "strategy", r->strategy_name ? r->strategy_name : "") &&
             cJSON_AddStringToObject(json, "strategy_id", r->strategy) &&
             cJSON_AddStringToObject(json, "proposer", r->proposer ? r->proposer : "") &&
             json_add_known(json, "predicted_us", r->predicted_us) &&
             json_add_known(json, "measured_us", r->median_us) &&
             (!r->client || cJSON_AddStringToObject(json, "client", r->client)) &&
             (!r->lease_until || cJSON_AddStringToObject(json, "lease_until", r->lease_until)) &&
             (!r->reason || cJSON_AddStringToObject(json, "reason", r->reason));
    return json;
}

static enum status print_json(const struct shown *s, struct error *err) {
    const struct stored_session *stored = &s->asking.stored;
    cJSON *json = cJSON_CreateObject();
    bool whole = json && cJSON_AddStringToObject(json, "session", stored->id) &&
                 cJSON_AddStringToObject(json, "state", stored_session_state_word(stored->state)) &&
                 (!stored->reason || cJSON_AddStringToObject(json, "reason", stored->reason));
    cJSON *trials = whole ? cJSON_AddArrayToObject(json, "trials") : NULL;
    for (size_t i = 0; i < s->n && trials; i++) {
        cJSON *trial = trial_json(&s->records[i], &whole);
        whole = cJSON_AddItemToArray(trials, trial) && whole;
    }
    cJSON *best = s->answered && trials ? cJSON_AddObjectToObject(json, "best") : NULL;
    if (s->answered)
        whole = best && cJSON_AddStringToObject(best, "strategy", s->outcome.strategy.id.hex) &&
                cJSON_AddStringToObject(best, "name", s->outcome.rows[s->outcome.best].name) &&
                cJSON_AddNumberToObject(best, "measured_us", s->outcome.rows[s->outcome.best].us) && whole;
    return output_line(json, whole && trials, err);
}

static void print_open_trials(const struct shown *s) {
    struct table table;
    table_init(&table, (const char *const[]){">TRIAL", ">ATTEMPT", "STRATEGY", "STATE", "WITH", "LEASE UNTIL", NULL});
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct record *r = &s->records[i];
        if (r->state != RECORD_WAITING && r->state != RECORD_RUNNING)
            continue;
        table_cell(&table, "%lu", (unsigned long)r->number);
        table_cell(&table, "%lu", (unsigned long)r->attempt);
        table_cell(&table, "%s", r->strategy_name ? r->strategy_name : "");
        table_cell(&table, "%s", record_state_word(r->state));
        table_cell(&table, "%s", r->client ? r->client : "-");
        table_cell(&table, "%s", r->lease_until ? r->lease_until : "-");
        n++;
    }
    if (n)
        table_print(&table, stdout);
    table_release(&table);
}

static enum status print_words(const struct shown *s, struct error *err) {
    const struct stored_session *stored = &s->asking.stored;
    const bool goes_on = stored->state == STORED_SESSION_RUNNING;
    const char *standing = goes_on ? "it goes on" : stored->reason ? stored->reason : "it has ended";
    text_print(stdout, "Session %s is %s: %lu trials were given, %lu are complete.\n", stored->id,
               stored_session_state_word(stored->state), (unsigned long)stored->trials,
               (unsigned long)stored->complete);
    print_open_trials(s);
    return s->answered ? tuning_print(&s->outcome, &s->inputs, standing, err) : ST_OK;
}

static enum status show(const char *session, const struct show_options *words, struct store *store, struct error *err) {
    struct shown s = {0};
    struct arena arena = {0};
    struct export_limits limits;
    enum status st = asking_load(&s.asking, store, session, session_limits, &limits, err);
    if (st)
        return st;
    s.inputs.model = s.asking.model;
    s.inputs.cluster = s.asking.cluster;
    st = store_trials(store, session, &arena, &s.n, &s.records, err);
    if (!st) {
        const enum status answer = session_answer(s.asking.engine, store, &s.outcome, err);
        s.answered = !answer;
        st = answer == ST_INFEASIBLE ? ST_OK : answer;
    }
    if (!st && words->out && !s.answered)
        st = error_set(err, ST_INFEASIBLE, "no trial of session %s has completed, so it has no best strategy", session);
    if (!st && words->out)
        st = tuning_write_strategy(&s.outcome.strategy, &s.inputs, words->out, err);
    if (!st)
        st = words->json ? print_json(&s, err) : print_words(&s, err);
    if (s.answered)
        outcome_release(&s.outcome);
    arena_release(&arena);
    asking_release(&s.asking);
    return st;
}

static enum status session_show(int argc, char **argv, struct error *err) {
    struct show_options words = {.dataset = DEFAULT_DATASET};
    const struct option options[] = {
        {"out", OPTION_TEXT, &words.out, "FILE", "write the best strategy so far there"},
        {"dataset", OPTION_TEXT, &words.dataset, "FILE", "where the session is (default " DEFAULT_DATASET ")"},
        {"json", OPTION_FLAG, &words.json, NULL, "print one JSON object with every trial"},
        {0}};
    const struct command_line line = {
        .usage = "session show SESSION [options]",
        .about = "What a session has found so far, and who has which trial. It never waits for other processes.",
        .examples = "  syncopate session show 20261121-084117-3fa2n9kq4xw81d7v --out best.json",
        .options = options,
        .min_arguments = 1,
        .max_arguments = 1};
    struct arguments arguments;
    struct store *store = NULL;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st && words.out)
        st = output_check(words.out, err);
    if (!st)
        st = store_open(words.dataset, STORE_READ_ONLY, &store, err);
    if (!st)
        st = show(arguments.items[0], &words, store, err);
    store_close(store);
    return st;
}

/* ---- stop ---- */

static enum status stop(struct store *store, const char *session, struct error *err) {
    struct arena arena = {0};
    struct stored_session stored;
    struct record *records;
    size_t n = 0;
    enum status st = asking_find(store, session, &arena, &stored, err);
    if (!st && (stored.mode != STORED_SESSION_ASK || !stored_session_is_open(stored.state)))
        st = error_set(err, ST_CONFLICT, "session %s is %s", session,
                       stored.mode == STORED_SESSION_ASK ? stored_session_state_word(stored.state)
                                                         : "that of a process, which Ctrl-C stops");
    if (!st)
        st = store_trials(store, session, &arena, &n, &records, err);
    if (!st)
        st = store_begin(store, err);
    if (!st) {
        for (size_t i = 0; i < n && !st; i++)
            if (records[i].state == RECORD_WAITING || records[i].state == RECORD_RUNNING)
                st = store_trial_fail(store, records[i].trial, RECORD_CANCELLED, "it was stopped", err);
        if (!st)
            st = store_session_update(store, session, STORED_SESSION_STOPPED, "it was stopped", err);
        st = store_end(store, st, err);
    }
    arena_release(&arena);
    return st;
}

static enum status session_stop_here(int argc, char **argv, struct error *err) {
    const char *dataset = DEFAULT_DATASET;
    const struct option options[] = {
        {"dataset", OPTION_TEXT, &dataset, "FILE", "where the session is (default " DEFAULT_DATASET ")"}, {0}};
    const struct command_line line = {.usage = "session stop SESSION [options]",
                                      .about = "End it; what was found so far is its answer.",
                                      .options = options,
                                      .min_arguments = 1,
                                      .max_arguments = 1};
    struct arguments arguments;
    struct store *store = NULL;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = asking_open(dataset, TURN_US, interrupt_flag(), &store, err);
    if (!st)
        st = stop(store, arguments.items[0], err);
    if (!st)
        log_info("session %s is stopped", arguments.items[0]);
    store_close(store);
    return st;
}

enum status cmd_session(int argc, char **argv, struct error *err) {
    static const struct command rows[] = {{"open", session_open, "begin a session whose trials others run"},
                                          {"suggest", session_suggest_trials, "take the next trial, under a lease"},
                                          {"heartbeat", session_heartbeat, "keep a trial: its lease begins anew"},
                                          {"complete", session_complete, "tell what a trial measured"},
                                          {"fail", session_fail, "report that a trial failed, or cannot run there"},
                                          {"show", session_show, "what was found so far, and who has which trial"},
                                          {"stop", session_stop_here, "end a session"},
                                          {0}};
    return commands_run(rows, "session",
                        "Run the trials of a session yourself, in your own scripts, without a service: ask for one,\n"
                        "tell what it measured. Everything is in the dataset, and several processes on this machine\n"
                        "may take part. (\"sessions\" is about all those of a service.)",
                        argc, argv, err);
}
