/* syncopate trial: one real run of one strategy. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/statistics.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/interrupt.h"
#include "cli/job_options.h"
#include "cli/measured_trace.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/runner_options.h"
#include "cli/updates_output.h"
#include "simulator/expectation.h"
#include "strategy/memory.h"
#include "tuner/predict/predictor.h"
#include "tuner/session/runners.h"
#include "tuner/session/trials.h"

struct trial_command_options {
    const char *strategy, *baseline, *dataset, *trace;
    const char *train;
    double rate, momentum, target; /* NAN: not said */
    uint64_t iterations, warmup, seed, memory_bytes;
    bool json;
    struct runner_options launch;
    struct job_options job;
};

/* What simulation says of the trial. */
struct expected {
    double us;              /* an iteration, or a round of updates */
    uint64_t buffers_bytes; /* of messages, at most on a device; not of updates */
    struct updates_prediction updates;
};

static bool add_memory(cJSON *root, const struct expected *expected, const struct trial_result *result) {
    cJSON *memory = cJSON_AddObjectToObject(root, "memory");
    return memory && cJSON_AddNumberToObject(memory, "predicted_buffers_bytes", (double)expected->buffers_bytes) &&
           cJSON_AddNumberToObject(memory, "buffers_bytes", (double)result->buffers_bytes) &&
           cJSON_AddNumberToObject(memory, "grown_bytes", (double)result->grown_bytes);
}

static enum status print_json(const struct strategy *strategy, const struct summary *m, const struct expected *expected,
                              uint64_t seed, const struct tune_outcome *outcome, const struct trial_result *result,
                              struct error *err) {
    const struct trial_updates *updates = result->updates;
    cJSON *root = cJSON_CreateObject();
    bool ok = root && cJSON_AddStringToObject(root, "schema", "syncopate.trial/1") &&
              cJSON_AddStringToObject(root, "strategy", strategy->id.hex) &&
              cJSON_AddNumberToObject(root, "predicted_us", expected->us) &&
              cJSON_AddNumberToObject(root, "measured_us", m->median_us) &&
              cJSON_AddNumberToObject(root, "mean_us", m->mean_us) &&
              (!seed || cJSON_AddNumberToObject(root, "weather", (double)seed)) &&
              cJSON_AddNumberToObject(root, "low_us", m->low_us) &&
              cJSON_AddNumberToObject(root, "high_us", m->high_us) &&
              (!updates || (updates_add(root, updates) && updates_add_predicted(root, &expected->updates))) &&
              (!result->grown_bytes || add_memory(root, expected, result)) &&
              (!result->training.given || training_add(root, &result->training));
    cJSON *times = ok ? cJSON_AddArrayToObject(root, "iterations_us") : NULL;
    ok = ok && times;
    for (size_t i = 0; i < outcome->n && ok; i++)
        ok = cJSON_AddItemToArray(times, cJSON_CreateNumber(outcome->iterations_us[i]));
    return output_line(root, ok, err);
}

/* In weather the mean counts, since iterations differ for a reason. */
static void print_weather(const struct strategy *strategy, const struct summary *m, double predicted_us,
                          uint64_t seed) {
    char mean[32], median[32], predicted[32];
    text_print(stdout, "%s: in weather %llu %s an iteration (mean of %zu; median %s), predicted %s (%+.1f%%)\n",
               strategy->name, (unsigned long long)seed, units_format_time(m->mean_us, mean, sizeof mean), m->n,
               units_format_time(m->median_us, median, sizeof median),
               units_format_time(predicted_us, predicted, sizeof predicted), (predicted_us / m->mean_us - 1) * 100);
}

static void print_words(const struct strategy *strategy, const struct summary *m, double predicted_us) {
    char median[32], low[32], high[32], predicted[32];
    text_print(stdout, "%s: %s an iteration (95%% interval %s .. %s, %zu iterations), predicted %s (%+.1f%%)\n",
               strategy->name, units_format_time(m->median_us, median, sizeof median),
               units_format_time(m->low_us, low, sizeof low), units_format_time(m->high_us, high, sizeof high), m->n,
               units_format_time(predicted_us, predicted, sizeof predicted), (predicted_us / m->median_us - 1) * 100);
}

static void print_memory(const struct expected *expected, const struct trial_result *result) {
    char buffers[32], predicted[32], grown[32];
    text_print(
        stdout,
        "Buffers of messages: %s at once on the device that has most, predicted at most %s; its memory grew by %s.\n",
        units_format_bytes(result->buffers_bytes, buffers, sizeof buffers),
        units_format_bytes(expected->buffers_bytes, predicted, sizeof predicted),
        units_format_bytes(result->grown_bytes, grown, sizeof grown));
}

static enum status report(const struct strategy *strategy, const struct trial_command_options *words,
                          const struct expected *expected, const struct tune_outcome *outcome,
                          const struct trial_result *result, struct error *err) {
    struct summary summary;
    if (outcome->state != RECORD_COMPLETE)
        return error_set(err, outcome->state == RECORD_INFEASIBLE ? ST_INFEASIBLE : ST_TRIAL, "%s", outcome->reason);
    enum status st = summary_of_copy(outcome->n, outcome->iterations_us, &summary, err);
    if (!st && words->json)
        st = print_json(strategy, &summary, expected, words->seed, outcome, result, err);
    else if (!st && result->updates)
        updates_print(strategy->name, &summary, words->seed, result->updates, expected->us, &expected->updates);
    else if (!st && words->seed)
        print_weather(strategy, &summary, expected->us, words->seed);
    else if (!st)
        print_words(strategy, &summary, expected->us);
    if (!st && !words->json && result->grown_bytes > 0)
        print_memory(expected, result);
    if (!st && !words->json && result->training.given)
        training_print(words->train, &result->training);
    return st;
}

/* Run a trial. With a store it is recorded before and after. */
static enum status run_recorded(const struct trial_start *start, const struct tune_runner *run,
                                const struct tune_order *order, struct store *store, struct tune_outcome *outcome,
                                struct error *err) {
    int64_t trial;
    enum status st = store ? trial_record_start(store, start, &trial, err) : ST_OK;
    if (st)
        return st;
    st = run->run(run->context, order, outcome, err);
    if (st && store)
        store_trial_fail(store, trial, RECORD_CANCELLED, ERROR_TEXT(err), &(struct error){0});
    else if (store)
        st = trial_record_end(store, trial, outcome, err);
    return st;
}

static enum status write_trace(const struct measured_trace *trace, const struct inputs *inputs,
                               const struct strategy *strategy, const char *path, struct error *err) {
    enum status st = measured_trace_write(trace, inputs, strategy, path, err);
    if (!st)
        log_info("timelines written to %s; open it at https://ui.perfetto.dev", path);
    return st;
}

static enum status predict(const struct inputs *inputs, const struct strategy *strategy, double *out,
                           struct error *err) {
    struct predictor predictor;
    struct prediction prediction;
    enum status st = predictor_init(&predictor, &inputs->model, &inputs->cluster, err);
    if (st)
        return st;
    st = predictor_run(&predictor, strategy, &prediction, err);
    predictor_release(&predictor);
    if (!st)
        *out = prediction.iteration_us;
    return st;
}

/* As many iterations, or rounds of updates, as the trial has, in the weather of its seed. */
static enum status expect_plan(const struct plan *plan, const struct cost *cost,
                               const struct trial_command_options *words, struct expected *out, struct error *err) {
    const struct expectation_options options = {
        .first_seed = words->seed, .seeds = 1, .iterations = (uint32_t)(words->warmup + words->iterations)};
    struct expectation expected;
    enum status st;
    if (consistency_is_plain(&plan->consistency)) {
        struct timeline *timeline = timeline_new();
        st = timeline ? expectation_run(timeline, plan, cost, 0, &options, &expected, err) : error_no_memory(err);
        timeline_free(timeline);
    } else {
        st = expectation_run_updates(plan, cost, &options, &expected, &out->updates, err);
    }
    if (!st)
        out->us = expected.mean_us;
    return st;
}

static enum status expect_memory(const struct plan *plan, struct expected *out, struct error *err) {
    struct memory memory;
    if (!consistency_is_plain(&plan->consistency))
        return ST_OK;
    enum status st = memory_of_plan(plan, &memory, err);
    out->buffers_bytes = st ? 0 : memory.buffers_bytes;
    return st;
}

static enum status expect(const struct inputs *inputs, const struct strategy *strategy,
                          const struct trial_command_options *words, struct expected *out, struct error *err) {
    struct cost cost = {0};
    struct plan plan;
    enum status st = plan_lower(&inputs->model, &inputs->cluster, strategy, &plan, err);
    if (st)
        return st;
    st = expect_memory(&plan, out, err);
    if (st || (consistency_is_plain(&strategy->consistency) && words->seed == 0)) {
        plan_release(&plan);
        return st ? st : predict(inputs, strategy, &out->us, err);
    }
    st = cost_init(&cost, &inputs->cluster, err);
    if (!st)
        st = expect_plan(&plan, &cost, words, out, err);
    cost_release(&cost);
    plan_release(&plan);
    return st;
}

static struct training_options training_of(const struct trial_command_options *words) {
    struct training_options options = {.rate = 0.05, .momentum = 0.9, .target = 0.05};
    if (words->train)
        training_parse(words->train, &options.task);
    options.rate = isnan(words->rate) ? options.rate : words->rate;
    options.momentum = isnan(words->momentum) ? options.momentum : words->momentum;
    options.target = isnan(words->target) ? options.target : words->target;
    return options;
}

static enum status run_trial(const struct inputs *inputs, const struct strategy *strategy,
                             const struct trial_command_options *words, struct store *store, struct error *err) {
    struct runner runner;
    struct job_setup setup;
    struct tune_outcome outcome;
    struct measured_trace trace = {0};
    struct expected expected = {0};
    enum status st = expect(inputs, strategy, words, &expected, err);
    if (!st)
        st = job_runner_init(&setup, &words->job, &words->launch, inputs, interrupt_flag(), &runner, err);
    if (st)
        return st;
    runner.training = training_of(words);
    if (!runner.job)
        runner_tell(&runner.place);
    if (setup.limits.n)
        st = export_limits_check(&setup.limits, strategy, &inputs->model, &inputs->cluster, err);
    if (words->trace) {
        runner.on_interval = measured_trace_take;
        runner.context = &trace;
    }
    const struct tune_order order = {.strategy = strategy,
                                     .iterations = words->iterations,
                                     .warmup = words->warmup,
                                     .expected_us = expected.us,
                                     .number = 1,
                                     .weather = words->seed};
    const struct tune_runner run = runner_for_session(&runner);
    const struct trial_start start = {.model = &inputs->model,
                                      .cluster = &inputs->cluster,
                                      .strategy = strategy,
                                      .proposer = words->baseline ? words->baseline : "user",
                                      .runner = run.name,
                                      .predicted_us = expected.us};
    if (!st)
        st = run_recorded(&start, &run, &order, store, &outcome, err);
    if (!st)
        st = report(strategy, words, &expected, &outcome, &runner.last, err);
    if (!st && words->trace)
        st = write_trace(&trace, inputs, strategy, words->trace, err);
    measured_trace_release(&trace);
    runner_release(&runner);
    job_setup_release(&setup);
    return st;
}

static enum status check_training(const struct trial_command_options *words, struct error *err) {
    const struct training_options said = training_of(words);
    enum training_task task;
    if (!words->train && !(isnan(words->rate) && isnan(words->momentum) && isnan(words->target)))
        return error_set(err, ST_USAGE, "--learning-rate, --momentum and --target are for --train");
    if (!words->train)
        return ST_OK;
    if (!training_parse(words->train, &task) || task == TRAINING_NONE)
        return error_set(err, ST_USAGE, "--train: \"%s\" is neither softmax nor two-layer", words->train);
    if (words->job.command)
        return error_set(err, ST_USAGE, "--train is for a runner's trial; a command trains what it likes");
    if (!(said.rate > 0 && said.rate <= 1e6))
        return error_set(err, ST_USAGE, "--learning-rate must be above 0, and at most 1000000");
    if (!(said.momentum >= 0 && said.momentum < 1) || !(said.target > 0 && said.target < 1))
        return error_set(err, ST_USAGE, "--momentum must be from 0 to below 1, --target above 0%% and below 100%%");
    return ST_OK;
}

static enum status check_options(struct trial_command_options *words, struct error *err) {
    enum status st = check_training(words, err);
    if (!st)
        st = job_options_check(&words->job, err);
    if (st)
        return st;
    if (words->iterations < 1 || words->iterations > 100000 || words->warmup > 100000)
        return error_set(err, ST_USAGE, "--iterations must be 1 to 100000, --warmup at most 100000");
    if (words->job.command && words->launch.runner)
        return error_set(err, ST_USAGE, "--command and --runner: give one of them, not both");
    if (words->job.command && words->trace)
        return error_set(err, ST_USAGE, "--trace is of a runner's trial; a command has its own profiler");
    words->launch.runner = words->launch.runner ? words->launch.runner : "lab";
    return words->trace ? output_check(words->trace, err) : ST_OK;
}

/* Where the cluster has weather, a trial runs in it. */
static enum status choose_weather(const struct cluster *cluster, struct trial_command_options *words,
                                  struct error *err) {
    if (words->seed && !cluster->variability.given)
        return error_set(err, ST_USAGE, "--seed is about the weather of %s, but it has no \"variability\"",
                         cluster->name);
    if (cluster->variability.given && words->job.command)
        return error_set(err, ST_USAGE, "%s has \"variability\", but a --command does not play it; take it out",
                         cluster->name);
    if (cluster->variability.given && words->seed == 0)
        words->seed = 1;
    return ST_OK;
}

static enum status read_and_run(const struct arguments *arguments, struct trial_command_options *words,
                                struct error *err) {
    struct inputs inputs = {0};
    struct strategy strategy = {0};
    struct store *store = NULL;
    enum status st = inputs_read(arguments->items[0], arguments->items[1], &inputs, err);
    if (!st)
        st = choose_weather(&inputs.cluster, words, err);
    if (!st)
        st = inputs_strategy(&inputs, words->strategy, words->baseline, words->memory_bytes, &strategy, err);
    if (!st && words->dataset)
        st = store_open(words->dataset, STORE_READ_WRITE, &store, err);
    if (!st)
        st = run_trial(&inputs, &strategy, words, store, err);
    store_close(store);
    strategy_release(&strategy);
    inputs_release(&inputs);
    return st;
}

enum status cmd_trial(int argc, char **argv, struct error *err) {
    struct trial_command_options words = {.iterations = 10, .warmup = 2, .rate = NAN, .momentum = NAN, .target = NAN};
    const struct option options[] = {
        {"strategy", OPTION_TEXT, &words.strategy, "FILE", "run this strategy"},
        {"baseline", OPTION_TEXT, &words.baseline, "BASELINE", "or this baseline"},
        STRATEGY_MEMORY_OPTION(words.memory_bytes),
        {"runner", OPTION_TEXT, &words.launch.runner, RUNNER_NAMES, "where it runs (default lab)"},
        RUNNER_OPTIONS(words.launch),
        JOB_OPTIONS(words.job),
        {"logs", OPTION_TEXT, &words.job.logs, "DIR", "keep what it writes, and what it was given, in a folder there"},
        {"iterations", OPTION_INTEGER, &words.iterations, "N", "how many iterations are measured (default 10)"},
        {"warmup", OPTION_INTEGER, &words.warmup, "N", "how many before them do not count (default 2)"},
        {"seed", OPTION_INTEGER, &words.seed, "N",
         "which weather, where CLUSTER has \"variability\" (default 1): syncopate weather"},
        {"trace", OPTION_TEXT, &words.trace, "FILE",
         "write a Chrome trace of the first device: predicted, and next to it measured; not for strategies with a "
         "\"consistency\""},
        {"train", OPTION_TEXT, &words.train, "softmax|two-layer",
         "let the workers learn a small task whose least loss is known"},
        {"learning-rate", OPTION_NUMBER, &words.rate, "RATE", "how far an update goes (default 0.05)"},
        {"momentum", OPTION_NUMBER, &words.momentum, "SHARE", "how much of the last change is added (default 0.9)"},
        {"target", OPTION_PERCENT, &words.target, "PERCENT",
         "tell when so much of the way from the first loss to the least is left (default 5%)"},
        {"dataset", OPTION_TEXT, &words.dataset, "FILE", "record it there (default: not recorded)"},
        {"json", OPTION_FLAG, &words.json, NULL, "print one JSON object with every iteration's time"},
        {0}};
    const struct command_line line = {
        .usage = "trial MODEL CLUSTER (--strategy FILE | --baseline BASELINE)",
        .about =
            "Run one strategy for real: compute is replayed, communication is real MPI traffic between processes.\n"
            "The lab emulates CLUSTER's links on this machine; it needs root. Where CLUSTER says how its NICs and\n"
            "workers vary, the lab plays that weather: the same seed is the same weather for every strategy.\n"
            "Where the strategy has a \"consistency\" its workers send whole updates to their servers. An iteration "
            "is\n"
            "then a round of so many applied updates as there are workers, and the trial also tells how many updates\n"
            "came a second, their delays, and how many were dropped.",
        .examples =
            "  syncopate trial cnn-small lab-4x1g --baseline pytorch-ddp\n"
            "  syncopate trial cnn-small lab-4x1g --strategy best.json --trace trace.json\n"
            "  syncopate trial mlp-small lab-4x1g-weather --baseline ssp --train softmax --iterations 200\n"
            "  syncopate trial model.json cluster.json --baseline horovod --command ./train.sh --export-env horovod",
        .options = options,
        .min_arguments = 2,
        .max_arguments = 2};
    struct arguments arguments;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = check_options(&words, err);
    return st ? st : read_and_run(&arguments, &words, err);
}
