/* syncopate simulate: predicted iteration times. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/units.h"
#include "simulator/bound.h"
#include "simulator/closed_form.h"
#include "simulator/trace.h"
#include "strategy/baselines/baselines.h"
#include "tuner/cli/commands.h"
#include "tuner/cli/inputs.h"
#include "tuner/cli/options.h"
#include "tuner/cli/output.h"
#include "tuner/cli/table.h"

struct simulation {
    struct inputs inputs;
    struct cost cost;
    struct timeline *timeline;
    double bound_us;
    bool autosync;
};

struct row {
    struct id id;
    char name[64];
    struct prediction prediction;
};

static enum status simulation_init(struct simulation *out, const char *model, const char *cluster, struct error *err) {
    struct bound bound;
    enum status st = inputs_read(model, cluster, &out->inputs, err);
    if (!st)
        st = cost_init(&out->cost, &out->inputs.cluster, err);
    if (!st)
        st = bound_iteration(&out->inputs.model, &out->cost, &bound, err);
    if (!st && !(out->timeline = timeline_new()))
        st = error_no_memory(err);
    if (!st)
        out->bound_us = bound.iteration_us;
    return st;
}

static void simulation_release(struct simulation *s) {
    timeline_free(s->timeline);
    cost_release(&s->cost);
    inputs_release(&s->inputs);
}

static enum status predict(struct simulation *s, const struct strategy *strategy, const char *trace, struct row *out,
                           struct error *err) {
    struct plan plan;
    enum status st = plan_lower(&s->inputs.model, &s->inputs.cluster, strategy, &plan, err);
    if (st)
        return st;
    st = s->autosync ? closed_form_run(&plan, &s->cost, &out->prediction, err)
                     : timeline_run(s->timeline, &plan, &s->cost, NULL, &out->prediction, err);
    out->id = strategy->id;
    snprintf(out->name, sizeof out->name, "%s", strategy->name);
    if (!st && trace) {
        char *text = NULL;
        size_t size;
        FILE *memory = open_memstream(&text, &size);
        st = memory ? trace_write(memory, s->timeline, &plan, &s->cost, err) : error_no_memory(err);
        if (memory && fclose(memory) && !st)
            st = error_no_memory(err);
        if (!st)
            st = json_write_file(trace, text, err);
        free(text);
    }
    plan_release(&plan);
    return st;
}

/* syncopate.prediction/1, one line. */
static enum status print_json(const struct simulation *s, const struct row *row, struct error *err) {
    const struct prediction *p = &row->prediction;
    cJSON *root = cJSON_CreateObject();
    cJSON *strategy = NULL;
    bool ok = root && cJSON_AddStringToObject(root, "schema", "syncopate.prediction/1") &&
              cJSON_AddStringToObject(root, "model", s->inputs.model.name) &&
              cJSON_AddStringToObject(root, "cluster", s->inputs.cluster.name) &&
              (strategy = cJSON_AddObjectToObject(root, "strategy")) &&
              cJSON_AddStringToObject(strategy, "id", row->id.hex) &&
              cJSON_AddStringToObject(strategy, "name", row->name) &&
              cJSON_AddNumberToObject(root, "iteration_us", p->iteration_us) &&
              cJSON_AddNumberToObject(root, "compute_us", p->compute_us) &&
              cJSON_AddNumberToObject(root, "exposed_us", p->exposed_us) &&
              cJSON_AddNumberToObject(root, "lower_bound_us", s->bound_us) &&
              cJSON_AddNumberToObject(root, "messages", p->messages) &&
              cJSON_AddNumberToObject(root, "samples_per_s", p->samples_per_s);
    return output_line(root, ok, err);
}

/* In percent; without the sign of a zero. */
static double over_bound(double us, double bound_us) {
    double percent = bound_us > 0 ? (us / bound_us - 1) * 100 : 0;
    return fabs(percent) < 0.5 ? 0 : percent;
}

static void print_table(const struct simulation *s, const struct row *rows, size_t n) {
    struct table table;
    char text[32];
    printf("%s on %s: %u devices, lower bound %s\n\n", s->inputs.model.name, s->inputs.cluster.name,
           s->inputs.cluster.n_devices, units_format_time(s->bound_us, text, sizeof text));
    table_init(&table, (const char *const[]){"STRATEGY", ">ITERATION", ">COMPUTE", ">EXPOSED", ">OVER BOUND",
                                             ">MESSAGES", ">SAMPLES/S", NULL});
    for (size_t i = 0; i < n; i++) {
        const struct prediction *p = &rows[i].prediction;
        table_cell(&table, "%s", rows[i].name);
        table_cell(&table, "%s", units_format_time(p->iteration_us, text, sizeof text));
        table_cell(&table, "%s", units_format_time(p->compute_us, text, sizeof text));
        table_cell(&table, "%s", units_format_time(p->exposed_us, text, sizeof text));
        table_cell(&table, "%.0f%%", over_bound(p->iteration_us, s->bound_us));
        table_cell(&table, "%u", p->messages);
        table_cell(&table, "%.1f", p->samples_per_s);
    }
    table_print(&table, stdout);
    table_release(&table);
}

static int compare_rows(const void *a, const void *b) {
    double x = ((const struct row *)a)->prediction.iteration_us, y = ((const struct row *)b)->prediction.iteration_us;
    return (x > y) - (x < y);
}

static enum status predict_baselines(struct simulation *s, struct row *rows, size_t *n, struct error *err) {
    size_t count;
    const struct baseline *baselines = baselines_list(&count);
    enum status st = ST_OK;
    *n = 0;
    for (size_t i = 0; i < count && !st; i++) {
        struct strategy strategy;
        st = baselines_build(&baselines[i], &s->inputs.model, &s->inputs.cluster, &strategy, err);
        if (st == ST_INFEASIBLE) {
            log_info("%s: %s", baselines[i].name, err->message);
            st = ST_OK;
            continue;
        }
        if (!st)
            st = predict(s, &strategy, NULL, &rows[(*n)++], err);
        strategy_release(&strategy);
    }
    qsort(rows, *n, sizeof *rows, compare_rows);
    return st;
}

enum { MAX_ROWS = 64 };

static enum status simulate(struct simulation *s, const char *path, const char *baseline, bool all, const char *trace,
                            bool json, struct error *err) {
    struct row rows[MAX_ROWS];
    struct strategy strategy = {0};
    size_t n = 1;
    enum status st;
    if (all) {
        st = predict_baselines(s, rows, &n, err);
    } else {
        st = inputs_strategy(&s->inputs, path, baseline, &strategy, err);
        if (!st)
            st = predict(s, &strategy, trace, &rows[0], err);
        strategy_release(&strategy);
    }
    for (size_t i = 0; i < n && !st && json; i++)
        st = print_json(s, &rows[i], err);
    if (!st && !json)
        print_table(s, rows, n);
    if (!st && trace)
        log_info("timeline written to %s; open it at https://ui.perfetto.dev", trace);
    return st;
}

enum status cmd_simulate(int argc, char **argv, struct error *err) {
    const char *path = NULL, *baseline = NULL, *trace = NULL, *kind = "timeline";
    bool all = false, json = false;
    const struct option options[] = {
        {"strategy", OPTION_TEXT, &path, "FILE", "predict this strategy"},
        {"baseline", OPTION_TEXT, &baseline, "NAME", "predict this baseline"},
        {"all-baselines", OPTION_FLAG, &all, NULL, "predict every baseline, fastest first (the default)"},
        {"timeline", OPTION_TEXT, &trace, "FILE", "write a Chrome trace of one strategy: who computes and sends when"},
        {"model", OPTION_TEXT, &kind, "KIND",
         "timeline (default) or autosync, the closed form of AutoSync's equation 2"},
        {"json", OPTION_FLAG, &json, NULL, "one syncopate.prediction/1 object a line"},
        {0}};
    const struct command_line line = {
        .usage = "simulate MODEL CLUSTER [options]",
        .about = "Predict iteration times without running anything. MODEL and CLUSTER are files, or names of the\n"
                 "descriptions that come with syncopate.",
        .examples = "  syncopate simulate resnet50 v100-16x10g\n"
                    "  syncopate simulate bert-large h100-64x8 --baseline pytorch-ddp --timeline trace.json",
        .options = options,
        .min_arguments = 2,
        .max_arguments = 2};
    struct arguments arguments;
    struct simulation s = {0};
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (st)
        return st;
    if (!path && !baseline)
        all = true;
    s.autosync = !strcmp(kind, "autosync");
    if (!s.autosync && strcmp(kind, "timeline"))
        return error_set(err, ST_USAGE, "--model: \"%s\" is neither timeline nor autosync", kind);
    if (all && (path || baseline || trace))
        return error_set(err, ST_USAGE,
                         "--strategy, --baseline and --timeline are about one strategy: drop --all-baselines");
    if (trace && s.autosync)
        return error_set(err, ST_USAGE, "the closed form has no timeline: drop --model autosync");
    st = simulation_init(&s, arguments.items[0], arguments.items[1], err);
    if (!st)
        st = simulate(&s, path, baseline, all, trace, json, err);
    simulation_release(&s);
    return st;
}
