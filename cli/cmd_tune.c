/* syncopate tune: a session, and its answer. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/foreign.h"
#include "cli/inputs.h"
#include "cli/interrupt.h"
#include "cli/job_options.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/progress.h"
#include "cli/remote.h"
#include "cli/remote_session.h"
#include "cli/runner_options.h"
#include "cli/tuning_output.h"
#include "dataset/describe.h"
#include "dataset/query.h"
#include "strategy/memory.h"
#include "tuner/learn/rankers.h"
#include "tuner/session/asking.h"
#include "tuner/session/runners.h"
#include "tuner/session/tune.h"

static const uint64_t NOT_SAID = UINT64_MAX;
static const char DEFAULT_RANKER[] = "nearest";
enum { DEFAULT_TRIALS = 40 };

/* What was asked for. */
struct tune_command_options {
    const char *dataset, *resume, *out, *out_stale, *ranker; /* dataset: NULL until defaults are set */
    const char *sharded;                                     /* NULL: nothing */
    bool json, cold, weather;
    struct tune_options options; /* options.kept.launch.runner: NULL until defaults are set */
    struct remote_options remote;
    struct stored_session session; /* that is resumed; in an arena */
    const char *typed_runner;      /* NULL: none was typed */
    bool adopt;                    /* it is foreign, and what was typed becomes its own */
};

/* Decide how the trials of a resumed session are run. The job is the session's, and so are --hosts where the session
 * has them. For the other options of the launcher, what was typed overrides what the session says. */
static void take_over(const struct session_options *said, struct session_options *kept) {
    const struct runner_options *launch = &said->launch;
    struct runner_options *typed = &kept->launch;
    kept->job = said->job;
    typed->hosts = launch->hosts ? launch->hosts : typed->hosts;
    typed->worker = typed->worker ? typed->worker : launch->worker;
    typed->partition = typed->partition ? typed->partition : launch->partition;
    typed->account = typed->account ? typed->account : launch->account;
    typed->launch_options = typed->launch_options ? typed->launch_options : launch->launch_options;
    typed->pass = typed->pass ? typed->pass : launch->pass;
    typed->share_gpu |= launch->share_gpu;
}

/* Read the model, cluster and runner of a resumed session. A foreign session is not taken at its word. Texts live in
 * `arena`. */
static enum status inputs_of_session(struct store *store, const char *session, struct arena *arena, struct inputs *out,
                                     struct tune_command_options *words, struct error *err) {
    struct stored_session *stored = &words->session;
    struct session_options said, *kept = &words->options.kept;
    enum status st = asking_find(store, session, arena, stored, err);
    if (!st)
        st = store_get_model(store, stored->model, &out->model, err);
    if (!st)
        st = store_get_cluster(store, stored->cluster, &out->cluster, err);
    if (!st)
        st = session_options_read(stored, arena, &said, err);
    if (st)
        return st;
    const char *runner = said.launch.runner ? said.launch.runner : kept->launch.runner;
    words->ranker = said.ranker ? said.ranker : "none";
    kept->allow_lossy = said.allow_lossy;
    kept->allow_sharded = said.allow_sharded;
    kept->weather = said.weather;
    kept->allow_stale = said.allow_stale;
    kept->memory_bytes = said.memory_bytes;
    if (stored->origin) {
        kept->launch.runner = words->typed_runner;
        return foreign_read(stored, runner, arena, &kept->job, &kept->launch, &words->adopt, err);
    }
    kept->launch.runner = runner;
    take_over(&said, kept);
    return ST_OK;
}

/* Find the ranker that the user chose, and put it into the options; *out owns it. */
static enum status use_ranker(struct store *store, const struct inputs *inputs, struct tune_command_options *words,
                              struct stored_ranker *out, struct error *err) {
    const struct domain here = {.model = inputs->model, .cluster = inputs->cluster};
    enum status st = rankers_for_session(store, NULL, &here, words->ranker, out, err);
    if (!st && out->ranker) {
        words->options.ranker = out->ranker;
        words->options.kept.ranker = out->id.hex;
        log_info("ranker %s, trained on %lu trials", out->name, (unsigned long)out->origin.n_trials);
    }
    return st;
}

/* How trials are run. It must not move, since the runner refers to the setup. */
struct runs {
    struct job_setup setup;
    struct runner runner;
    bool ready;
};

/* Fails: what the runner lacks. */
static enum status runs_init(struct runs *runs, const struct tune_command_options *words, const struct inputs *inputs,
                             struct error *err) {
    const struct session_options *kept = &words->options.kept;
    enum status st =
        job_runner_init(&runs->setup, &kept->job, &kept->launch, inputs, interrupt_flag(), &runs->runner, err);
    runs->ready = !st;
    if (!st && kept->weather)
        st = runner_check_weather(&runs->runner, err);
    return !st && kept->allow_stale ? runner_check_updates(&runs->runner, err) : st;
}

static void runs_release(struct runs *runs) {
    if (!runs->ready)
        return;
    runner_release(&runs->runner);
    job_setup_release(&runs->setup);
}

static void tell_memory(const struct session_options *kept, const struct cluster *cluster) {
    char text[64];
    const uint64_t bytes = kept->memory_bytes > 0 ? kept->memory_bytes : memory_of_devices(cluster);
    if (bytes > 0)
        log_info("only strategies that need at most %s on a device are tried",
                 units_format_budget(bytes, text, sizeof text));
}

static enum status run_session(struct store *store, const struct inputs *inputs, struct tune_command_options *words,
                               struct runs *runs, struct outcome *out, struct error *err) {
    struct stored_ranker ranker;
    const struct export_limits *limits = &runs->setup.limits;
    const struct session_options *kept = &words->options.kept;
    enum status st = words->adopt ? foreign_adopt(store, &words->session, &kept->job, &kept->launch, err) : ST_OK;
    if (st)
        return st;
    if (!runs->runner.job)
        runner_tell(&runs->runner.place);
    words->options.limits = limits->n ? limits : NULL;
    tell_memory(kept, &inputs->cluster);
    if (limits->n)
        log_info("only strategies that %s can say are tried",
                 kept->job.export_to ? kept->job.export_to : kept->job.export_env);
    words->options.space.algorithms = runner_algorithms(&runs->runner);
    const struct tune_runner run = runner_for_session(&runs->runner);
    st = use_ranker(store, inputs, words, &ranker, err);
    if (!st)
        st = tune_run(store, &inputs->model, &inputs->cluster, &run, &words->options, words->resume, out, err);
    progress_end();
    stored_ranker_release(&ranker);
    return st;
}

static enum status write_strategy(const struct strategy *strategy, const struct inputs *inputs,
                                  const struct tune_command_options *words, const char *path, struct error *err) {
    enum status st = tuning_write_strategy(strategy, inputs, path, err);
    if (!st && !words->json)
        text_print(stdout, "Written to %s.\n", path);
    return st;
}

static enum status tell(const struct outcome *outcome, const struct inputs *inputs,
                        const struct tune_command_options *words, struct error *err) {
    enum status st = ST_OK;
    if (words->json)
        st = tuning_print_json(outcome, err);
    else
        st = tuning_print(outcome, inputs, NULL, err);
    if (!st && words->out)
        st = write_strategy(&outcome->strategy, inputs, words, words->out, err);
    if (!st && words->out_stale && outcome->stale.best == SIZE_MAX)
        log_warn("no trial with stale models completed: there is nothing to write to %s", words->out_stale);
    else if (!st && words->out_stale)
        st = write_strategy(&outcome->stale_strategy, inputs, words, words->out_stale, err);
    return st;
}

/* Log at the start how to resume, in case this process is killed. */
static void tell_how_to_resume(void *context, const char *session) {
    const struct tune_command_options *words = context;
    const bool elsewhere = strcmp(words->dataset, DEFAULT_DATASET) != 0;
    log_info("session %s; should it be interrupted, it goes on with: syncopate tune --resume %s%s%s%s%s%s%s", session,
             session, elsewhere ? " --dataset " : "", elsewhere ? words->dataset : "", words->out ? " --out " : "",
             words->out ? words->out : "", words->out_stale ? " --out-stale " : "",
             words->out_stale ? words->out_stale : "");
}

static enum status tune(struct store *store, struct inputs *inputs, struct tune_command_options *words,
                        struct runs *runs, struct error *err) {
    struct outcome outcome;
    words->options.kept.earlier = words->cold ? 0 : words->options.kept.earlier;
    words->options.cancel = interrupt_flag();
    words->options.opened = tell_how_to_resume;
    words->options.listen = progress_listen;
    words->options.context = words;
    enum status st = run_session(store, inputs, words, runs, &outcome, err);
    if (st)
        return st;
    st = tell(&outcome, inputs, words, err);
    outcome_release(&outcome);
    return st;
}

/* A session is in weather because the user says so: it answers another question, and its trials take longer. Rankers
 * have learned from quiet trials. */
static enum status choose_weather(struct tune_command_options *words, const struct cluster *cluster,
                                  struct error *err) {
    struct session_options *kept = &words->options.kept;
    const bool given = cluster->variability.given;
    if (given != words->weather)
        return error_set(err, ST_USAGE,
                         given ? "%s has \"variability\": --weather tunes in it; for the quiet network take it out"
                               : "--weather is about a cluster that varies, but %s has no \"variability\"",
                         cluster->name);
    if (given && strcmp(words->ranker, DEFAULT_RANKER) && strcmp(words->ranker, "none"))
        return error_set(err, ST_USAGE, "--ranker and --weather: rankers know no weather; give one of them");
    if (given) {
        kept->weather = words->options.seed ? words->options.seed : 1;
        words->ranker = "none";
    }
    return ST_OK;
}

/* ---- on a service ---- */

static void tell_who_runs_it(const struct remote_session *s, const struct tune_command_options *words) {
    const char *url = words->remote.server;
    if (words->resume) /* it may have ended, and runs are as its first command said */
        return;
    if (s->own)
        log_info("session %s: the service runs its trials", s->id);
    else
        log_info("session %s waits for agents; on a machine of the cluster run\n"
                 "  syncopate agent --server %s --session %s --runner %s",
                 s->id, url, s->id, words->options.kept.launch.runner ? words->options.kept.launch.runner : "lab");
}

static void tell_how_to_come_back(const struct remote_session *s, const char *url) {
    log_info("session %s goes on without you; to see more of it, and to stop it:\n"
             "  syncopate --server %s tune --resume %s\n"
             "  syncopate --server %s sessions stop %s",
             s->id, url, s->id, url, s->id);
}

static enum status begin_remotely(struct client *client, struct tune_command_options *words,
                                  const struct arguments *arguments, struct inputs *inputs,
                                  struct remote_session *session, struct error *err) {
    if (words->resume) {
        enum status st = remote_session_find(client, words->resume, session, err);
        return st ? st : remote_inputs_of_ids(client, session->model, session->cluster, inputs, err);
    }
    enum status st = remote_inputs(client, arguments->items[0], arguments->items[1], inputs, err);
    if (!st)
        st = choose_weather(words, &inputs->cluster, err);
    if (!st && !(words->options.kept.trial_us > 0))
        words->options.kept.trial_us = session_default_trial_us(&inputs->cluster);
    return st ? st
              : remote_session_open(client, inputs, &words->options, words->ranker, words->options.kept.launch.runner,
                                    session, err);
}

static enum status tune_remotely(struct tune_command_options *words, const struct arguments *arguments,
                                 struct error *err) {
    struct client *client;
    struct inputs inputs = {0};
    struct remote_session session;
    struct outcome outcome;
    words->options.kept.earlier = words->cold ? 0 : words->options.kept.earlier;
    enum status st = remote_open(&words->remote, REMOTE_TRIES, interrupt_flag(), &client, err);
    if (st)
        return st;
    st = begin_remotely(client, words, arguments, &inputs, &session, err);
    if (!st) {
        tell_who_runs_it(&session, words);
        st = remote_session_follow(client, &session, err);
        if (st == ST_CANCELLED)
            tell_how_to_come_back(&session, words->remote.server);
    }
    if (!st)
        st = remote_session_answer(client, &session, &inputs, &outcome, err);
    if (!st) {
        st = tell(&outcome, &inputs, words, err);
        outcome_release(&outcome);
    }
    inputs_release(&inputs);
    client_close(client);
    return st;
}

/* ---- what is asked ---- */

static enum status check_remote(const struct tune_command_options *words, struct error *err) {
    enum status st = remote_or_here(&words->remote, words->dataset, err);
    if (st)
        return st;
    if (words->options.kept.launch.hosts)
        return error_set(err, ST_USAGE, "--hosts is for who runs the trials: the service, or \"syncopate agent\"");
    if (words->options.kept.job.command)
        return error_set(err, ST_USAGE, "--command is for who runs the trials: \"syncopate agent\"");
    if (words->options.kept.job.export_env)
        return error_set(err, ST_USAGE,
                         "--export-env is for who runs the trials: \"syncopate agent\"; here, --export-to");
    if (words->options.kept.job.accept && !words->options.kept.job.export_to)
        return error_set(err, ST_USAGE, "--accept is about --export-to: name the form");
    return ST_OK;
}

static void set_defaults(struct tune_command_options *words) {
    words->typed_runner = words->options.kept.launch.runner;
    words->options.kept.launch.runner = words->options.kept.launch.runner ? words->options.kept.launch.runner
                                        : words->options.kept.job.command ? RUNNER_COMMAND
                                                                          : "lab";
    words->dataset = words->dataset ? words->dataset : DEFAULT_DATASET;
}

static enum status check_options(struct tune_command_options *words, const struct command_line *line,
                                 size_t n_arguments, struct error *err) {
    struct tune_options *o = &words->options;
    if (words->options.kept.job.command && !words->remote.server &&
        strcmp(words->options.kept.launch.runner, RUNNER_COMMAND) != 0)
        return error_set(err, ST_USAGE, "--command and --runner: give one of them, not both");
    if (words->resume && n_arguments)
        return error_set(err, ST_USAGE, "a resumed session knows its model and cluster: give --resume alone");
    if (words->resume && words->dataset && !store_may_be_there(words->dataset))
        return error_at(err, ST_NOT_FOUND, words->dataset,
                        "no such dataset; --dataset names the one that the session is in");
    if (!words->resume && n_arguments != 2)
        return error_set(err, ST_USAGE, "usage: syncopate %s   (--help explains)", line->usage);
    if (o->trials == NOT_SAID)
        o->trials = o->time_us > 0 ? 0 : DEFAULT_TRIALS;
    if (words->out && words->out_stale && !strcmp(words->out, words->out_stale))
        return error_set(err, ST_USAGE, "--out and --out-stale are one file, \"%s\"; there are two strategies",
                         words->out);
    if (words->out_stale && !words->resume && o->kept.allow_stale == NOT_SAID)
        return error_set(err, ST_USAGE, "--out-stale is for a session with --allow-stale");
    if (o->kept.allow_stale == NOT_SAID)
        o->kept.allow_stale = 0;
    else if (o->kept.allow_stale < 1 || o->kept.allow_stale > CONSISTENCY_MAX_STALENESS)
        return error_set(err, ST_USAGE, "--allow-stale must be 1 to %d; without it no model is stale",
                         CONSISTENCY_MAX_STALENESS);
    if (!o->trials && o->time_us <= 0)
        return error_set(err, ST_USAGE, "without a limit on trials a session needs --time");
    enum status st = words->sharded ? sharded_named(words->sharded, &o->kept.allow_sharded, err) : ST_OK;
    if (!st)
        st = job_options_check(&o->kept.job, err);
    if (!st && words->out)
        st = output_check(words->out, err);
    return !st && words->out_stale ? output_check(words->out_stale, err) : st;
}

/* Begin a session, or resume one. A new session's runner is checked before a dataset is made. */
static enum status begin_or_resume(struct tune_command_options *words, const struct arguments *arguments,
                                   struct error *err) {
    struct inputs inputs = {0};
    struct runs runs = {0};
    struct arena arena = {0};
    struct store *store = NULL;
    enum status st = ST_OK;
    if (!words->resume)
        st = inputs_read(arguments->items[0], arguments->items[1], &inputs, err);
    if (!st && !words->resume)
        st = choose_weather(words, &inputs.cluster, err);
    if (!st && !words->resume)
        st = session_check_stale(&words->options.kept, &inputs.cluster, NULL, err);
    if (!(words->options.kept.trial_us > 0))
        words->options.kept.trial_us = session_default_trial_us(&inputs.cluster);
    if (!st && !words->resume)
        st = runs_init(&runs, words, &inputs, err);
    if (!st)
        st = store_open(words->dataset, STORE_READ_WRITE, &store, err);
    if (!st && words->resume)
        st = inputs_of_session(store, words->resume, &arena, &inputs, words, err);
    if (!st && words->resume)
        st = runs_init(&runs, words, &inputs, err);
    if (!st)
        st = tune(store, &inputs, words, &runs, err);
    runs_release(&runs);
    store_close(store);
    inputs_release(&inputs);
    arena_release(&arena);
    return st;
}

static const char ABOUT[] =
    "Find the fastest way to synchronize MODEL's gradients on CLUSTER.\n\n"
    "Framework defaults and the best baselines run first; then, one after another, the candidate most worth\n"
    "a trial: proposers draw and improve hundreds against the simulator, and a Gaussian process over all\n"
    "trials so far (with a learned ranker, if the dataset has one) picks. At the end the best few run again,\n"
    "interleaved with the best baseline. Every run is recorded in the dataset. A session that was interrupted\n"
    "goes on with --resume; one that was merged or imported shows the commands that it would run, to be\n"
    "typed again.\n"
    "Under --memory, or where CLUSTER says what memory its devices have, a strategy whose predicted peak is above\n"
    "that is not tried; if nothing fits the exit status is 3, and the least that would do is said.\n"
    "--allow-sharded also tries ways to share out the optimizer's states, the gradients and the parameters. The\n"
    "search begins with ZeRO and FSDP. It changes what is sharded, which layers are gathered together, which of\n"
    "them stay, and how far ahead they are gathered. With --memory that may be all that fits.\n"
    "Where NICs and workers vary, --weather tries what is fastest in the mean over that: trials of a round run\n"
    "in the same weather, and the answer says what the quiet network's best strategy would lose.\n"
    "--allow-stale also tries asynchronous and stale-synchronous updates, which change what is computed: the best\n"
    "strategy stays a synchronous one, and beside it the answer says how fast the fastest of them is, how late its\n"
    "updates are, and how soon workers learn a small task with each. Their trials run at least 60 rounds.\n"
    "On a service the session goes on when this command ends; --resume shows it again.";

static const char EXAMPLES[] = "  syncopate tune cnn-small lab-4x1g --trials 24 --out best.json\n"
                               "  syncopate tune model.json cluster.json --command ./train.sh --export-env horovod \\\n"
                               "      --pattern 'iteration [0-9]+: ([0-9.]+) ms'\n"
                               "  syncopate tune cnn-small lab-4x1g-weather --weather --trials 24\n"
                               "  syncopate tune mlp-small lab-4x1g --allow-stale 4 --trials 30\n"
                               "  syncopate tune gpt2-small lab-4x1g --memory 600MB --allow-sharded parameters\n"
                               "  syncopate tune --resume 20261121-084117-3fa2n9kq4xw81d7v";

enum status cmd_tune(int argc, char **argv, struct error *err) {
    struct tune_command_options words = {.ranker = DEFAULT_RANKER, .options = tune_default_options()};
    struct tune_options *o = &words.options;
    o->kept.trial_us = 0; /* not said */
    o->trials = o->kept.allow_stale = NOT_SAID;
    const struct option options[] = {
        {"trials", OPTION_INTEGER, &o->trials, "N",
         "how many real runs, repeats included (default 40, or no limit with --time)"},
        {"time", OPTION_TIME, &o->time_us, "T",
         "end within about T: 90s, 10m, 1h; pauses before --resume do not count"},
        {"gap", OPTION_PERCENT, &o->gap, "P%", "end when the best is within P% of the lower bound"},
        {"least-gain", OPTION_PERCENT, &o->kept.least_gain, "P%",
         "end when no candidate promises to be P% faster than the best"},
        {"allow-lossy", OPTION_FLAG, &o->kept.allow_lossy, NULL,
         "let gradients lose something on their way: as 16-bit floats and, over mpi and nccl, 8-bit integers in "
         "blocks, their largest elements alone or products of thin matrices; check that the model still learns"},
        {"allow-sharded", OPTION_TEXT, &words.sharded, "optimizer|gradients|parameters",
         "try strategies too that keep only a part of this, and of what stands before it, on each device (ZeRO, FSDP); "
         "the trainer must be able to do it, as syncopate_torch is"},
        {"allow-stale", OPTION_INTEGER, &o->kept.allow_stale, "K",
         "try workers too that do not wait for each other, with models stale by at most K (versions, or iterations "
         "where "
         "workers wait for the slowest), and tell their delays and what is learned with them"},
        {"memory", OPTION_MEMORY, &o->kept.memory_bytes, "SIZE",
         "try only what needs at most so much memory of a device: 80GB, 24GiB (default: what CLUSTER says its devices "
         "have)"},
        {"weather", OPTION_FLAG, &words.weather, NULL,
         "find what is fastest in the weather that CLUSTER describes (\"variability\"), by the mean iteration; trials "
         "run "
         "in it"},
        {"ranker", OPTION_TEXT, &words.ranker, "RANKER",
         "rank with this one, by name or id, or with none (default: nearest, the nearest domain's, if any)"},
        {"cold", OPTION_FLAG, &words.cold, NULL, "learn nothing from earlier sessions on this model and cluster"},
        {"runner", OPTION_TEXT, &o->kept.launch.runner, RUNNER_NAMES,
         "where trials run (default lab); on a service: where its agents run them"},
        RUNNER_OPTIONS(o->kept.launch),
        JOB_OPTIONS(o->kept.job),
        {"logs", OPTION_TEXT, &o->kept.job.logs, "DIR",
         "keep what trials write, and what they were given, in folders there"},
        {"seed", OPTION_INTEGER, &o->seed, "K", "where every random choice comes from (default 1)"},
        {"rounds", OPTION_INTEGER, &o->kept.final_rounds, "N", "how often each finalist runs again (default 3)"},
        {"trial-time", OPTION_TIME, &o->kept.trial_us, "T",
         "measure for about T in each trial (default 4s; with --weather three changes of rates)"},
        {"dataset", OPTION_ONE_OF, &words.dataset, "FILE",
         "where measurements are kept, also postgresql://... (default " DEFAULT_DATASET ")"},
        {"resume", OPTION_TEXT, &words.resume, "ID",
         "go on with a session that was interrupted, with the budget that it began with"},
        {"out", OPTION_TEXT, &words.out, "FILE", "write the best strategy there"},
        {"out-stale", OPTION_TEXT, &words.out_stale, "FILE",
         "write the fastest strategy of --allow-stale there, which is never the best"},
        {"json", OPTION_FLAG, &words.json, NULL, "print the answer as one JSON object"},
        REMOTE_OPTIONS(words.remote),
        {0}};
    const struct command_line line = {.usage = "tune MODEL CLUSTER [options]",
                                      .about = ABOUT,
                                      .examples = EXAMPLES,
                                      .options = options,
                                      .max_arguments = 2};
    struct arguments arguments;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st && words.remote.server)
        st = check_remote(&words, err);
    else
        set_defaults(&words);
    if (!st)
        st = check_options(&words, &line, arguments.n, err);
    if (st)
        return st;
    return words.remote.server ? tune_remotely(&words, &arguments, err) : begin_or_resume(&words, &arguments, err);
}
