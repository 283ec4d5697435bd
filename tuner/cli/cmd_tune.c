/* syncopate tune: a session, and its answer. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "dataset/describe.h"
#include "dataset/query.h"
#include "tuner/cli/commands.h"
#include "tuner/cli/inputs.h"
#include "tuner/cli/interrupt.h"
#include "tuner/cli/options.h"
#include "tuner/cli/output.h"
#include "tuner/cli/paths.h"
#include "tuner/cli/progress.h"
#include "tuner/cli/runners.h"
#include "tuner/cli/tuning_output.h"
#include "tuner/rankers.h"
#include "tuner/session.h"

static const double DEFAULT_TRIAL_US = 4e6;
enum { DEFAULT_TRIALS = 40 };

struct tune_words {
    const char *runner, *dataset, *resume, *out, *hosts, *ranker;
    bool json, cold;
};

/* A resumed session knows its model, its cluster and its runner; words live in `arena`. */
static enum status inputs_of_session(struct store *store, const char *session, struct arena *arena, struct inputs *out,
                                     struct tune_words *words, struct error *err) {
    struct stored_session stored;
    enum status st = store_session_get(store, session, arena, &stored, err);
    if (!st)
        st = store_get_model(store, stored.model, &out->model, err);
    if (!st)
        st = store_get_cluster(store, stored.cluster, &out->cluster, err);
    cJSON *options = st ? NULL : cJSON_Parse(stored.options);
    const char *runner = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(options, "runner"));
    const char *hosts = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(options, "hosts"));
    const char *ranker = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(options, "ranker"));
    if ((runner && !(words->runner = arena_strdup(arena, runner))) ||
        (hosts && !(words->hosts = arena_strdup(arena, hosts))) ||
        !(words->ranker = arena_strdup(arena, ranker ? ranker : "none")))
        st = error_no_memory(err);
    cJSON_Delete(options);
    return st;
}

/* The ranker that `word` asks for; none is no failure for "nearest". */
static enum status find_ranker(struct store *store, const struct inputs *inputs, const char *word,
                               struct stored_ranker *out, struct error *err) {
    *out = (struct stored_ranker){0};
    if (!strcmp(word, "none"))
        return ST_OK;
    if (strcmp(word, "nearest")) {
        enum status st = rankers_get(store, word, out, err);
        if (!st && !ranker_residual(out->ranker)) {
            stored_ranker_release(out);
            *out = (struct stored_ranker){0};
            st = error_set(err, ST_USAGE, "--ranker %s: it only ranks and tells no times, which a session needs", word);
        }
        return st;
    }
    const struct domain here = {.model = inputs->model, .cluster = inputs->cluster};
    enum status st = rankers_nearest(store, &here, out, NULL, err);
    if (!st && !ranker_residual(out->ranker)) {
        stored_ranker_release(out);
        *out = (struct stored_ranker){0};
    }
    return st == ST_NOT_FOUND ? ST_OK : st;
}

static enum status tune(struct store *store, struct inputs *inputs, const struct tune_words *words,
                        struct tune_options *options, struct error *err) {
    struct runner runner;
    struct tuning tuning;
    enum status st =
        runner_init(&runner, words->runner, words->hosts, &inputs->model, &inputs->cluster, options->cancel, err);
    if (st)
        return st;
    options->space.algorithms = runner_algorithms(&runner);
    const struct tune_runner run = runner_for_session(&runner);
    struct stored_ranker ranker;
    st = find_ranker(store, inputs, words->ranker, &ranker, err);
    if (!st && ranker.ranker) {
        options->ranker = ranker.ranker;
        options->ranker_id = ranker.id.hex;
        log_info("ranker %s, trained on %lu trials", ranker.name, (unsigned long)ranker.origin.n_trials);
    }
    if (!st)
        st = tune_run(store, &inputs->model, &inputs->cluster, &run, options, words->resume, &tuning, err);
    progress_end();
    runner_release(&runner);
    stored_ranker_release(&ranker);
    if (st)
        return st;
    if (words->json)
        st = tuning_print_json(&tuning, err);
    else
        tuning_print(&tuning, inputs);
    if (!st && words->out)
        st = tuning_write_strategy(&tuning, inputs, words->out, err);
    if (!st && words->out && !words->json)
        printf("Written to %s.\n", words->out);
    tuning_release(&tuning);
    return st;
}

enum status cmd_tune(int argc, char **argv, struct error *err) {
    struct tune_words words = {.runner = "lab", .dataset = DEFAULT_DATASET, .ranker = "nearest"};
    struct tune_options o = tune_default_options();
    o.trial_us = DEFAULT_TRIAL_US;
    o.trials = UINT64_MAX; /* not said */
    const struct option options[] = {
        {"trials", OPTION_INTEGER, &o.trials, "N",
         "how many real runs, repeats included (default 40, or no limit with --time)"},
        {"time", OPTION_TIME, &o.time_us, "T", "end within about T: 90s, 10m, 1h"},
        {"gap", OPTION_PERCENT, &o.gap, "P%", "end when the best is within P% of the lower bound"},
        {"least-gain", OPTION_PERCENT, &o.least_gain, "P%",
         "end when no candidate promises to be P% faster than the best"},
        {"ranker", OPTION_TEXT, &words.ranker, "R",

         "a learned ranker by name or id, or none (default: nearest, the nearest domain's, if any)"},
        {"cold", OPTION_FLAG, &words.cold, NULL, "learn nothing from earlier sessions on this model and cluster"},
        {"runner", OPTION_TEXT, &words.runner, "R", "lab (default), local or mpirun"},
        {"hosts", OPTION_TEXT, &words.hosts, "FILE", "host file for mpirun, in the order of the cluster's nodes"},
        {"seed", OPTION_INTEGER, &o.seed, "K", "of every random choice (default 1)"},
        {"rounds", OPTION_INTEGER, &o.final_rounds, "N", "repeats of each finalist (default 3)"},
        {"trial-time", OPTION_TIME, &o.trial_us, "T", "measured time of one trial (default 4s)"},
        {"dataset", OPTION_TEXT, &words.dataset, "FILE", "where measurements are kept (default " DEFAULT_DATASET ")"},
        {"resume", OPTION_TEXT, &words.resume, "ID",
         "go on with a session that was interrupted, with the budget that it began with"},
        {"out", OPTION_TEXT, &words.out, "FILE", "write the best strategy there"},
        {"json", OPTION_FLAG, &words.json, NULL, "the answer as one JSON object"},
        {0}};
    const struct command_line line = {
        .usage = "tune MODEL CLUSTER [options]",
        .about =
            "Find the fastest way to synchronize MODEL's gradients on CLUSTER.\n\n"
            "Framework defaults and the best baselines run first; then, one after another, the candidate most worth\n"
            "a trial: proposers draw and improve thousands against the simulator, and a Gaussian process over all\n"
            "trials so far (with a learned ranker, if the dataset has one) picks. At the end the best few run again,\n"
            "interleaved with the best baseline. Every run is recorded in the dataset. A session that was\n"
            "interrupted goes on with --resume.",
        .examples = "  syncopate tune cnn-small lab-4x1g --trials 24 --out best.json\n"
                    "  syncopate tune --resume 20261121-084117-3fa2",
        .options = options,
        .max_arguments = 2};
    struct arguments arguments;
    struct inputs inputs = {0};
    struct store *store;
    struct runner runner; /* made here only to say at once, before there is a dataset, what is missing for it */
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st && words.resume && arguments.n)
        st = error_set(err, ST_USAGE, "a resumed session knows its model and cluster: give --resume alone");
    if (!st && words.resume && access(words.dataset, F_OK))
        st = error_set(err, ST_NOT_FOUND, "%s: no such dataset; --dataset names the one that the session is in",
                       words.dataset);
    if (!st && words.out)
        st = output_check(words.out, err);
    if (!st && !words.resume && arguments.n != 2)
        st = error_set(err, ST_USAGE, "usage: syncopate %s   (--help explains)", line.usage);
    if (o.trials == UINT64_MAX)
        o.trials = o.time_us > 0 ? 0 : DEFAULT_TRIALS;
    if (!st && !o.trials && o.time_us <= 0)
        st = error_set(err, ST_USAGE, "without a limit on trials a session needs --time");
    if (!st && !words.resume)
        st = inputs_read(arguments.items[0], arguments.items[1], &inputs, err);
    if (!st && !words.resume)
        st = runner_init(&runner, words.runner, words.hosts, &inputs.model, &inputs.cluster, NULL, err);
    if (!st)
        st = store_open(words.dataset, STORE_READ_WRITE, &store, err);
    if (st) {
        inputs_release(&inputs);
        return st;
    }
    struct arena arena = {0};
    if (words.resume)
        st = inputs_of_session(store, words.resume, &arena, &inputs, &words, err);
    o.hosts = words.hosts;
    o.earlier = words.cold ? 0 : o.earlier;
    o.cancel = interrupt_flag();
    o.listen = progress_listen;
    if (!st)
        st = tune(store, &inputs, &words, &o, err);
    store_close(store);
    inputs_release(&inputs);
    arena_release(&arena);
    return st;
}
