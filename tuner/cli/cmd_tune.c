/* syncopate tune: a session, and its answer. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/units.h"
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
#include "tuner/cli/table.h"
#include "tuner/search/starts.h"
#include "tuner/session.h"

static const double DEFAULT_TRIAL_US = 4e6;
enum { DEFAULT_TRIALS = 40 };

struct tune_words {
    const char *runner, *dataset, *resume, *out, *hosts;
    bool json;
};

/* ---- the answer for people ---- */

static void row_cells(struct table *table, const struct tune_row *row, const struct tuning *t) {
    char text[64], low[32], high[32];
    const struct summary *m = &row->measured;
    size_t index = (size_t)(row - t->rows);
    table_cell(table, "%s%s", index == t->best ? "* " : "  ", row->name);
    table_cell(table, "%s", isnan(row->predicted_us) ? "" : units_format_time(row->predicted_us, text, sizeof text));
    if (!m->n) {
        table_cell(table, "%s", record_state_word(row->state));
        table_cell(table, "%.60s", row->reason);
        table_cell(table, "%s", "");
        return;
    }
    table_cell(table, "%s", units_format_time(m->median_us, text, sizeof text));
    table_cell(table, "%s .. %s", units_format_time(m->low_us, low, sizeof low),
               units_format_time(m->high_us, high, sizeof high));
    table_cell(table, "%zu%s", m->n, row->final ? " final" : "");
}

static void print_rows(const struct tuning *t) {
    enum { OTHERS = 5 };
    struct table table;
    size_t others = 0;
    table_init(&table,
               (const char *const[]){"  STRATEGY", ">PREDICTED", ">MEASURED", "95% INTERVAL", ">ITERATIONS", NULL});
    for (size_t i = 0; i < t->n_rows; i++)
        if (t->rows[i].baseline || others++ < OTHERS || i == t->best)
            row_cells(&table, &t->rows[i], t);
    table_print(&table, stdout);
    table_release(&table);
    if (others > OTHERS)
        printf("  and %zu more candidates\n", others - OTHERS);
    if (t->hopeless)
        printf("  %zu more baselines were predicted to take over %g times the fastest, and were not run\n", t->hopeless,
               STARTS_HOPELESS);
}

/* The one sentence that somebody in a hurry reads. */
static void print_verdict(const struct tuning *t) {
    const struct tune_row *best = &t->rows[t->best];
    char text[32], bound[32];
    units_format_time(best->measured.median_us, text, sizeof text);
    if (t->best_baseline == SIZE_MAX)
        printf("\nUse %s: %s an iteration. No baseline completed to compare it with.\n", best->name, text);
    else if (t->best == t->best_baseline)
        printf("\nNothing to gain: the baseline %s is the fastest of all that was tried, %s an iteration.\n",
               best->name, text);
    else if (t->overlap)
        printf("\nNo measurable difference: %s (%s) and the baseline %s are within each other's noise. Keep what you "
               "have.\n",
               best->name, text, t->rows[t->best_baseline].name);
    else
        printf("\nUse %s: %s an iteration, %.2fx as fast as the best baseline, %s.\n", best->name, text, t->speedup,
               t->rows[t->best_baseline].name);
    units_format_time(t->lower_bound_us, bound, sizeof bound);
    if (t->gap >= 0)
        printf("No strategy can take less than %s here; this one is %.0f%% above that.\n", bound, t->gap * 100);
    else
        printf("By its description this cluster allows no less than %s: it is faster than described; bench it again.\n",
               bound);
}

static bool best_is_confirmed(const struct tuning *t) {
    return t->rows[t->best].final;
}

static void print_answer(const struct tuning *t, const struct inputs *inputs) {
    printf("%s on %s, session %s, %lu trials; %s\n\n", inputs->model.name, inputs->cluster.name, t->session,
           (unsigned long)t->trials, tune_stop_words(t->stop));
    print_rows(t);
    print_verdict(t);
    if (!best_is_confirmed(t))
        printf("Not confirmed: no final was run, or none of its trials completed; these are single runs.\n");
}

/* ---- the answer for programs: syncopate.tuning/1 ---- */

static bool add_best(cJSON *root, const struct tune_row *best) {
    cJSON *object = cJSON_AddObjectToObject(root, "best");
    return object && cJSON_AddStringToObject(object, "strategy", best->id.hex) &&
           cJSON_AddNumberToObject(object, "measured_us", best->measured.median_us) &&
           cJSON_AddNumberToObject(object, "low_us", best->measured.low_us) &&
           cJSON_AddNumberToObject(object, "high_us", best->measured.high_us);
}

static bool add_baselines(cJSON *root, const struct tuning *t) {
    cJSON *array = cJSON_AddArrayToObject(root, "baselines");
    bool ok = array;
    for (size_t i = 0; i < t->n_rows && ok; i++) {
        const struct tune_row *row = &t->rows[i];
        if (!row->baseline || !row->measured.n)
            continue;
        cJSON *object = cJSON_CreateObject();
        ok = object && cJSON_AddItemToArray(array, object) && cJSON_AddStringToObject(object, "name", row->name) &&
             cJSON_AddNumberToObject(object, "measured_us", row->measured.median_us);
    }
    return ok;
}

static enum status print_json(const struct tuning *t, struct error *err) {
    cJSON *root = cJSON_CreateObject();
    bool ok = root && cJSON_AddStringToObject(root, "schema", "syncopate.tuning/1") &&
              cJSON_AddStringToObject(root, "session", t->session) &&
              cJSON_AddNumberToObject(root, "trials", (double)t->trials) && add_best(root, &t->rows[t->best]) &&
              add_baselines(root, t) &&
              (isnan(t->speedup) ? (bool)cJSON_AddNullToObject(root, "speedup")
                                 : (bool)cJSON_AddNumberToObject(root, "speedup", t->speedup)) &&
              cJSON_AddNumberToObject(root, "lower_bound_us", t->lower_bound_us) &&
              cJSON_AddNumberToObject(root, "gap", t->gap);
    return output_line(root, ok, err);
}

static enum status write_strategy(const struct tuning *t, const struct inputs *inputs, const char *path,
                                  struct error *err) {
    cJSON *json = strategy_write(&t->strategy, &inputs->model, &inputs->cluster);
    char *text = json ? json_pretty(json) : NULL;
    cJSON_Delete(json);
    enum status st = text ? json_write_file(path, text, err) : error_no_memory(err);
    free(text);
    return st;
}

/* ---- the command ---- */

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
    if ((runner && !(words->runner = arena_strdup(arena, runner))) ||
        (hosts && !(words->hosts = arena_strdup(arena, hosts))))
        st = error_no_memory(err);
    cJSON_Delete(options);
    return st;
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
    st = tune_run(store, &inputs->model, &inputs->cluster, &run, options, words->resume, &tuning, err);
    progress_end();
    runner_release(&runner);
    if (st)
        return st;
    if (words->json)
        st = print_json(&tuning, err);
    else
        print_answer(&tuning, inputs);
    if (!st && words->out)
        st = write_strategy(&tuning, inputs, words->out, err);
    if (!st && words->out && !words->json)
        printf("Written to %s.\n", words->out);
    tuning_release(&tuning);
    return st;
}

enum status cmd_tune(int argc, char **argv, struct error *err) {
    struct tune_words words = {.runner = "lab", .dataset = DEFAULT_DATASET};
    struct tune_options o = tune_default_options();
    o.trial_us = DEFAULT_TRIAL_US;
    o.trials = UINT64_MAX; /* not said */
    const struct option options[] = {
        {"trials", OPTION_INTEGER, &o.trials, "N",
         "how many real runs, repeats included (default 40, or no limit with --time)"},
        {"time", OPTION_TIME, &o.time_us, "T", "end within about T: 90s, 10m, 1h"},
        {"gap", OPTION_PERCENT, &o.gap, "P%", "end when the best is within P% of the lower bound"},
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
            "The baselines and the exact schedules run first; then rounds of candidates that the simulator ranks\n"
            "highest, each run for real and learned from; at the end the best few run again, interleaved with the\n"
            "best baseline. Every run is recorded in the dataset. A session that was interrupted goes on with\n"
            "--resume.",
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
    o.cancel = interrupt_flag();
    o.listen = progress_listen;
    if (!st)
        st = tune(store, &inputs, &words, &o, err);
    store_close(store);
    inputs_release(&inputs);
    arena_release(&arena);
    return st;
}
