/* syncopate compare: every baseline on many models and clusters at once. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/table.h"
#include "tuner/predict/comparison.h"

enum { MAX_WORDS = 64, COLUMNS = 7, MAX_THREADS = 63 };

static const char DEFAULT_CLUSTERS[] = "lab-4x1g,k80-8x10g,v100-16x10g,autosync-a";

struct column {
    char model[64], cluster[64];
    uint32_t n_nodes, n_devices;
    enum status status; /* of this column alone */
    struct error err;
    struct comparison comparison;
};

/* ---- what to compare ---- */

struct words {
    char *text; /* malloc'd; items point into it */
    size_t n;
    const char *items[MAX_WORDS];
};

static enum status split(const char *list, struct words *out, struct error *err) {
    char *rest = NULL;
    *out = (struct words){.text = strdup(list)};
    if (!out->text)
        return error_no_memory(err);
    for (char *word = strtok_r(out->text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        if (out->n == MAX_WORDS)
            return error_set(err, ST_USAGE, "more than %d in one list: \"%.40s...\"", MAX_WORDS, list);
        out->items[out->n++] = word;
    }
    return out->n ? ST_OK : error_set(err, ST_USAGE, "an empty list where names were expected");
}

/* "all": the shipped models, by name. */
static enum status split_models(const char *list, struct words *out, struct error *err) {
    char names[8192];
    enum status st = ST_OK;
    if (!list || !strcmp(list, "all")) {
        st = inputs_shipped("models", names, sizeof names, err);
        list = names;
    }
    return st ? st : split(list, out, err);
}

/* ---- for people ---- */

static void print_cell(struct table *table, double us, bool fastest) {
    if (isnan(us))
        table_cell(table, "-");
    else
        table_cell(table, "%s%.*f", fastest ? "*" : "", us < 9995 ? 2 : 1, us / 1000);
}

/* In weather a model has two columns: what to expect there, and what the quiet network takes. */
static void print_cells(struct table *table, const struct comparison *c, size_t row) {
    print_cell(table, comparison_us(c, row), c->fastest == row);
    if (c->in_weather)
        print_cell(table, c->rows[row].iteration_us, false);
}

static void print_kind(struct table *table, const struct column *columns, size_t n, bool exact) {
    for (size_t r = 0; r < columns[0].comparison.n; r++) {
        const struct baseline *baseline = columns[0].comparison.rows[r].baseline;
        if ((baseline->kind == BASELINE_EXACT) != exact)
            continue;
        table_cell(table, "%s", baseline->name);
        for (size_t c = 0; c < n; c++)
            print_cells(table, &columns[c].comparison, r);
    }
}

/* Bounds are the quiet network's: no weather makes anything faster. */
static void print_bound(struct table *table, const struct comparison *c, double us) {
    if (c->in_weather)
        table_cell(table, "%s", "");
    print_cell(table, us, false);
}

static void print_block(const struct column *columns, size_t n) {
    char heads[COLUMNS][72];
    const char *all[COLUMNS + 2] = {"ms an iteration"};
    struct table table;
    size_t k = 1;
    for (size_t c = 0; c < n; c++) {
        snprintf(heads[c], sizeof heads[c], ">%s", columns[c].model);
        all[k++] = heads[c];
        if (columns[c].comparison.in_weather)
            all[k++] = ">(quiet)";
    }
    table_init(&table, all);
    print_kind(&table, columns, n, false);
    print_kind(&table, columns, n, true);
    table_cell(&table, "all-reduce at best");
    for (size_t c = 0; c < n; c++)
        print_bound(&table, &columns[c].comparison, columns[c].comparison.all_reduce_us);
    table_cell(&table, "lower bound");
    for (size_t c = 0; c < n; c++)
        print_bound(&table, &columns[c].comparison, columns[c].comparison.lower_bound_us);
    table_cell(&table, "gap of the fastest");
    for (size_t c = 0; c < n; c++) {
        if (columns[c].comparison.in_weather)
            table_cell(&table, "%s", "");
        table_cell(&table, "%.1f%%", fmax(comparison_gap(&columns[c].comparison), 0) * 100);
    }
    table_print(&table, stdout);
    table_release(&table);
    text_print(stdout, "\n");
}

/* ---- for programs ---- */

static bool add_row(cJSON *to, const struct comparison *c, size_t r) {
    const struct comparison_row *row = &c->rows[r];
    const bool exact = row->baseline->kind == BASELINE_EXACT;
    if (!cJSON_AddStringToObject(to, "name", row->baseline->name) || !cJSON_AddBoolToObject(to, "exact", exact))
        return false;
    if (isnan(row->iteration_us))
        return cJSON_AddNullToObject(to, "iteration_us") != NULL;
    return cJSON_AddNumberToObject(to, "iteration_us", row->iteration_us) &&
           (!c->in_weather || expectation_write(&row->expected, to));
}

static enum status print_json(const struct column *column, struct error *err) {
    const struct comparison *c = &column->comparison;
    cJSON *root = cJSON_CreateObject(), *rows = NULL;
    bool ok = root && cJSON_AddStringToObject(root, "schema", "syncopate.comparison/1") &&
              cJSON_AddStringToObject(root, "model", column->model) &&
              cJSON_AddStringToObject(root, "cluster", column->cluster) &&
              (rows = cJSON_AddArrayToObject(root, "baselines"));
    for (size_t r = 0; r < c->n && ok; r++) {
        cJSON *row = cJSON_CreateObject();
        ok = row && cJSON_AddItemToArray(rows, row) && add_row(row, c, r);
    }
    double gap = comparison_gap(c);
    ok = ok && cJSON_AddNumberToObject(root, "all_reduce_at_best_us", c->all_reduce_us) &&
         cJSON_AddNumberToObject(root, "lower_bound_us", c->lower_bound_us) &&
         (isnan(gap) ? cJSON_AddNullToObject(root, "gap") : cJSON_AddNumberToObject(root, "gap", gap));
    return output_line(root, ok, err);
}

/* ---- the command ---- */

static void print_cluster(const struct column *columns, size_t n) {
    const size_t most = columns[0].comparison.in_weather ? COLUMNS / 2 : COLUMNS;
    text_print(stdout, "%s: %u nodes, %u devices%s\n\n", columns[0].cluster, columns[0].n_nodes, columns[0].n_devices,
               columns[0].comparison.in_weather ? "; expected in weather, mean over the same seeds for all" : "");
    for (size_t at = 0; at < n; at += most)
        print_block(columns + at, n - at < most ? n - at : most);
}

/* Every model on every cluster, filled by a thread a processor; each takes the next. */
struct work {
    const struct words *models, *clusters;
    struct column *columns; /* by cluster, then by model */
    atomic_size_t next;
};

static void fill_column(const struct work *work, size_t i) {
    struct column *column = &work->columns[i];
    struct inputs inputs;
    const char *model = work->models->items[i % work->models->n];
    column->status = inputs_read(model, work->clusters->items[i / work->models->n], &inputs, &column->err);
    if (column->status)
        return;
    column->status = comparison_run(&inputs.model, &inputs.cluster, &column->comparison, &column->err);
    snprintf(column->model, sizeof column->model, "%s", inputs.model.name);
    snprintf(column->cluster, sizeof column->cluster, "%s", inputs.cluster.name);
    column->n_nodes = inputs.cluster.n_nodes;
    column->n_devices = inputs.cluster.n_devices;
    inputs_release(&inputs);
}

static void *fill_columns(void *context) {
    struct work *work = context;
    for (size_t i; (i = atomic_fetch_add(&work->next, 1)) < work->models->n * work->clusters->n;)
        fill_column(work, i);
    return NULL;
}

/* This thread works too; a helper that cannot be started is done without. */
static void fill_all(struct work *work) {
    pthread_t helpers[MAX_THREADS];
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t n = 0;
    while (n < MAX_THREADS && (long)n + 1 < processors && !pthread_create(&helpers[n], NULL, fill_columns, work))
        n++;
    fill_columns(work);
    for (size_t i = 0; i < n; i++)
        pthread_join(helpers[i], NULL);
}

static enum status show(const struct column *columns, size_t n, bool json, struct error *err) {
    enum status st = ST_OK;
    for (size_t i = 0; i < n && !st; i++)
        if ((st = columns[i].status))
            *err = columns[i].err;
    for (size_t i = 0; i < n && !st && json; i++)
        st = print_json(&columns[i], err);
    if (!st && !json)
        print_cluster(columns, n);
    return st;
}

static enum status compare(const struct words *models, const struct words *clusters, bool json, struct error *err) {
    size_t n = models->n * clusters->n;
    struct work work = {models, clusters, calloc(n, sizeof *work.columns), 0};
    enum status st = ST_OK;
    if (!work.columns)
        return error_no_memory(err);
    fill_all(&work);
    for (size_t i = 0; i < n && !st; i += models->n)
        st = show(work.columns + i, models->n, json, err);
    for (size_t i = 0; i < n; i++)
        comparison_release(&work.columns[i].comparison);
    free(work.columns);
    return st;
}

enum status cmd_compare(int argc, char **argv, struct error *err) {
    bool json = false;
    const struct option options[] = {
        {"json", OPTION_FLAG, &json, NULL, "print one syncopate.comparison/1 object a model and cluster"}, {0}};
    const struct command_line line = {
        .usage = "compare [MODELS [CLUSTERS]] [options]",
        .about =
            "Predict every baseline and exact schedule for several models on several clusters: which system suits\n"
            "which model, and how far the fastest is from the best that is possible. MODELS and CLUSTERS are\n"
            "names or files with commas between; without them all shipped models on four of the clusters.\n\n"
            "Where a cluster's description says how NICs and workers vary, times are those to expect in that weather,\n"
            "with the quiet network's beside them.\n\n"
            "* marks the fastest of a column. \"all-reduce at best\" is what no schedule of dense all-reduces can "
            "beat,\n"
            "\"lower bound\" what no strategy at all can.",
        .examples = "  syncopate compare resnet50,vgg16 v100-16x10g\n"
                    "  syncopate compare all h100-64x8\n"
                    "  syncopate compare cnn-small,resnet18 lab-4x1g,lab-4x1g-weather",
        .options = options,
        .max_arguments = 2};
    struct arguments arguments;
    struct words models = {0}, clusters = {0};
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (st)
        return st;
    st = split_models(arguments.n > 0 ? arguments.items[0] : NULL, &models, err);
    if (!st)
        st = split(arguments.n > 1 ? arguments.items[1] : DEFAULT_CLUSTERS, &clusters, err);
    if (!st)
        st = compare(&models, &clusters, json, err);
    free(models.text);
    free(clusters.text);
    return st;
}
