/* syncopate compare: every baseline on many models and clusters at once. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/compare_trials.h"
#include "cli/front.h"
#include "cli/inputs.h"
#include "cli/memory_output.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/runner_options.h"
#include "cli/table.h"
#include "cli/updates_output.h"
#include "simulator/tuned.h"
#include "strategy/memory.h"
#include "tuner/predict/comparison.h"

enum { MAX_WORDS = 64, COLUMNS = 7, MAX_THREADS = 63, MOST_TRIALS = 1000 };

static const char DEFAULT_CLUSTERS[] = "lab-4x1g,k80-8x10g,v100-16x10g,autosync-a";

struct column {
    struct inputs inputs; /* zeros where they cannot be read */
    enum status status;   /* of this column alone */
    struct error err;
    struct comparison comparison;
    size_t n_measured;
    struct compare_measured *measured; /* [n_measured], malloc'd */
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

/* Those made for devices that the four clusters do not have; parameter servers take minutes for billions of bytes. */
static void leave_out(const char *prefix, struct words *words) {
    size_t n = 0;
    for (size_t i = 0; i < words->n; i++)
        if (strncmp(words->items[i], prefix, strlen(prefix)) != 0)
            words->items[n++] = words->items[i];
    words->n = n;
}

/* "all": the shipped models but the llamas, by name. */
static enum status split_models(const char *list, struct words *out, struct error *err) {
    char names[8192];
    if (list && strcmp(list, "all") != 0)
        return split(list, out, err);
    enum status st = inputs_shipped("models", names, sizeof names, err);
    if (!st)
        st = split(names, out, err);
    if (!st)
        leave_out("llama-", out);
    return st;
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
    if (c->rows[row].over) {
        table_cell(table, "over");
        if (c->in_weather)
            table_cell(table, "over");
        return;
    }
    print_cell(table, comparison_us(c, row), c->fastest == row);
    if (c->in_weather)
        print_cell(table, c->rows[row].has_updates ? NAN : c->rows[row].iteration_us, false);
}

/* In the order in which they are shown. */
enum kind { SYSTEM, EXACT, GIVEN, KINDS };

static enum kind kind_of(const struct comparison_row *row) {
    return !row->baseline ? GIVEN : row->baseline->kind == BASELINE_EXACT ? EXACT : SYSTEM;
}

static void print_kind(struct table *table, const struct column *columns, size_t n, enum kind kind) {
    for (size_t r = 0; r < columns[0].comparison.n; r++) {
        if (kind_of(&columns[0].comparison.rows[r]) != kind)
            continue;
        table_cell(table, "%s", columns[0].comparison.rows[r].name);
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
        snprintf(heads[c], sizeof heads[c], ">%s", columns[c].inputs.model.name);
        all[k++] = heads[c];
        if (columns[c].comparison.in_weather)
            all[k++] = ">(quiet)";
    }
    table_init(&table, all);
    for (enum kind kind = SYSTEM; kind < KINDS; kind++)
        print_kind(&table, columns, n, kind);
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
        const double gap = comparison_gap(&columns[c].comparison);
        if (isnan(gap))
            table_cell(&table, "-");
        else
            table_cell(&table, "%.1f%%", fmax(gap, 0) * 100);
    }
    table_print(&table, stdout);
    table_release(&table);
    text_print(stdout, "\n");
}

/* What workers that do not wait for each other do: of a column, the rows with updates. */
static void print_updates_of(struct table *table, const struct column *column, size_t *rows) {
    const struct comparison *c = &column->comparison;
    char text[32];
    for (size_t r = 0; r < c->n; r++) {
        const struct updates_prediction *u = &c->rows[r].updates;
        if (!c->rows[r].has_updates || isnan(c->rows[r].iteration_us))
            continue;
        table_cell(table, "%s", c->rows[r].name);
        table_cell(table, "%s", column->inputs.model.name);
        table_cell(table, "%s", units_format_time(comparison_us(c, r), text, sizeof text));
        table_cell(table, "%.1f", updates_delay_mean(u));
        table_cell(table, "%.1f", sqrt(updates_delay_variance(u)));
        table_cell(table, "%lu", (unsigned long)u->delay_most);
        table_cell(table, "%.1f%%", updates_share_dropped(u) * 100);
        ++*rows;
    }
}

static void print_updates(const struct column *columns, size_t n) {
    struct table table;
    size_t rows = 0;
    table_init(&table,
               (const char *const[]){"UPDATES", "MODEL", ">ROUND", ">DELAY", ">DEVIATION", ">MOST", ">DROPPED", NULL});
    for (size_t c = 0; c < n; c++)
        print_updates_of(&table, &columns[c], &rows);
    if (rows > 0) {
        table_print(&table, stdout);
        text_print(
            stdout,
            "\nA round is the time in which %u updates are applied, one for each worker. It may do less for the "
            "loss than\nan iteration, so none of these is marked as the fastest. DELAY: versions of the model between "
            "the one that\nan update was computed from and its own.\n\n",
            columns[0].inputs.cluster.n_devices);
    }
    table_release(&table);
}

/* The row that needs least memory; c->n where none is known. */
static size_t least_memory(const struct comparison *c) {
    size_t least = c->n;
    for (size_t r = 0; r < c->n; r++)
        if (c->rows[r].peak_bytes > 0 && (least == c->n || c->rows[r].peak_bytes < c->rows[least].peak_bytes))
            least = r;
    return least;
}

static void print_memory(const struct column *columns, size_t n) {
    struct table table;
    char have[64], need[32];
    if (!columns[0].comparison.memory_bytes)
        return;
    table_init(&table, (const char *const[]){"MEMORY", ">OVER", ">LEAST", "OF", NULL});
    for (size_t i = 0; i < n; i++) {
        const struct comparison *c = &columns[i].comparison;
        const size_t least = least_memory(c);
        size_t over = 0;
        for (size_t r = 0; r < c->n; r++)
            over += c->rows[r].over;
        table_cell(&table, "%s", columns[i].inputs.model.name);
        table_cell(&table, "%zu of %zu", over, c->n);
        table_cell(&table, "%s", least < c->n ? units_format_bytes(c->rows[least].peak_bytes, need, sizeof need) : "-");
        table_cell(&table, "%s", least < c->n ? c->rows[least].name : "");
    }
    table_print(&table, stdout);
    table_release(&table);
    text_print(stdout,
               "\n\"over\" needs more than the %s that a device may have, at its peak (syncopate simulate tells "
               "of what), or more for a\nserver than its node has. LEAST: of these, what the smallest needs.\n\n",
               units_format_budget(columns[0].comparison.memory_bytes, have, sizeof have));
}

/* ---- time against memory ---- */

/* All points of one model on one cluster, for the caller to free; NULL: no memory. */
static struct front_point *points_of(const struct comparison *c, size_t *n) {
    struct front_point *points = calloc(c->n + 1, sizeof *points);
    *n = points ? comparison_points(c, points) : 0;
    return points;
}

static enum status print_front(const struct column *column, struct error *err) {
    size_t n;
    struct front_point *points = points_of(&column->comparison, &n);
    if (!points)
        return error_no_memory(err);
    if (n > 0) {
        front_print(n, points);
        memory_output_print_unknown(&column->inputs.model);
        text_print(stdout, "\n");
    }
    free(points);
    return ST_OK;
}

static enum status draw_front(const struct column *column, const char *path, struct error *err) {
    size_t n;
    struct front_point *points = points_of(&column->comparison, &n);
    char title[256];
    if (!points)
        return error_no_memory(err);
    snprintf(title, sizeof title, "%s on %s", column->inputs.model.name, column->inputs.cluster.name);
    enum status st = front_write_plot(n, points, title, path, err);
    if (!st)
        log_info("chart written to %s; any browser opens it", path);
    free(points);
    return st;
}

/* ---- for programs ---- */

static bool add_updates(cJSON *to, const struct updates_prediction *u) {
    cJSON *updates = cJSON_AddObjectToObject(to, "updates");
    return updates && updates_add_figures(updates, u);
}

static bool add_row(cJSON *to, const struct comparison *c, size_t r) {
    const struct comparison_row *row = &c->rows[r];
    const bool exact = kind_of(row) == EXACT;
    if (!cJSON_AddStringToObject(to, "name", row->name) || !cJSON_AddBoolToObject(to, "exact", exact) ||
        (*row->id.hex && !cJSON_AddStringToObject(to, "id", row->id.hex)))
        return false;
    if (row->peak_bytes > 0 && (!cJSON_AddNumberToObject(to, "peak_bytes", (double)row->peak_bytes) ||
                                (c->memory_bytes && !cJSON_AddBoolToObject(to, "fits", !row->over))))
        return false;
    if (isnan(row->iteration_us))
        return cJSON_AddNullToObject(to, "iteration_us") != NULL;
    return cJSON_AddNumberToObject(to, "iteration_us", row->iteration_us) &&
           (!c->in_weather || expectation_write(&row->expected, to)) &&
           (!row->has_updates || add_updates(to, &row->updates));
}

static bool add_front(const struct comparison *c, cJSON *to) {
    size_t n;
    struct front_point *points = points_of(c, &n);
    const bool ok = points && front_write(front_keep(n, points), points, to);
    free(points);
    return ok;
}

static enum status print_json(const struct column *column, struct error *err) {
    const struct comparison *c = &column->comparison;
    cJSON *root = cJSON_CreateObject(), *rows = NULL;
    bool ok = root && cJSON_AddStringToObject(root, "schema", "syncopate.comparison/1") &&
              cJSON_AddStringToObject(root, "model", column->inputs.model.name) &&
              cJSON_AddStringToObject(root, "cluster", column->inputs.cluster.name) &&
              (!c->memory_bytes || cJSON_AddNumberToObject(root, "memory_bytes", (double)c->memory_bytes)) &&
              (rows = cJSON_AddArrayToObject(root, "baselines"));
    for (size_t r = 0; r < c->n && ok; r++) {
        cJSON *row = cJSON_CreateObject();
        ok = row && cJSON_AddItemToArray(rows, row) && add_row(row, c, r);
    }
    ok = ok && add_front(c, root);
    double gap = comparison_gap(c);
    ok = ok && cJSON_AddNumberToObject(root, "all_reduce_at_best_us", c->all_reduce_us) &&
         cJSON_AddNumberToObject(root, "lower_bound_us", c->lower_bound_us) &&
         (isnan(gap) ? cJSON_AddNullToObject(root, "gap") : cJSON_AddNumberToObject(root, "gap", gap)) &&
         compare_trials_write(column->n_measured, column->measured, root);
    return output_line(root, ok, err);
}

/* ---- the command ---- */

static void print_cluster(const struct column *columns, size_t n) {
    const size_t most = columns[0].comparison.in_weather ? COLUMNS / 2 : COLUMNS;
    text_print(stdout, "%s: %u nodes, %u devices%s\n\n", columns[0].inputs.cluster.name,
               columns[0].inputs.cluster.n_nodes, columns[0].inputs.cluster.n_devices,
               columns[0].comparison.in_weather ? "; expected in weather, mean over the same seeds for all" : "");
    for (size_t at = 0; at < n; at += most)
        print_block(columns + at, n - at < most ? n - at : most);
    print_memory(columns, n);
    print_updates(columns, n);
}

/* What is printed of one model on one cluster alone. */
static enum status print_alone(const struct column *column, struct error *err) {
    enum status st = print_front(column, err);
    if (!st && column->n_measured)
        compare_trials_print(column->n_measured, column->measured);
    return st;
}

/* What is asked for. */
struct request {
    struct words models, clusters, with;
    uint64_t trials, memory_bytes;
    struct runner_options launch;
    const char *plot;
    bool json;
};

static bool is_alone(const struct request *r) {
    return r->models.n == 1 && r->clusters.n == 1;
}

/* Every model on every cluster, filled by a thread a processor; each takes the next. */
struct work {
    const struct request *request;
    struct column *columns; /* by cluster, then by model */
    atomic_size_t next;
};

/* The strategies that the words name, for one model and cluster. */
struct named {
    size_t n;
    struct strategy strategies[MAX_WORDS];
};

static void named_release(struct named *named) {
    for (size_t i = 0; i < named->n; i++)
        strategy_release(&named->strategies[i]);
}

static bool is_in_every_comparison(const char *word) {
    size_t n;
    const struct baseline *rows = baselines_list(&n), *row = baselines_find(word);
    return row && row >= rows && row < rows + n;
}

/* What needs more than the memory is built too, and is "over". */
static enum status named_build_one(const char *word, const struct inputs *inputs, uint64_t memory_bytes,
                                   struct strategy *out, struct error *err) {
    const struct baseline *row = baselines_find(word);
    return row ? tuned_build_for(row, &inputs->model, &inputs->cluster, memory_bytes, out, err)
               : inputs_strategy_word(inputs, word, 0, out, err);
}

/* `all`: also those that have a row anyway. */
static enum status named_build(const struct request *request, const struct inputs *inputs, bool all, struct named *out,
                               struct error *err) {
    const struct words *words = &request->with;
    const uint64_t bytes = request->memory_bytes > 0 ? request->memory_bytes : memory_of_devices(&inputs->cluster);
    enum status st = ST_OK;
    out->n = 0;
    for (size_t i = 0; i < words->n && !st; i++)
        if (all || !is_in_every_comparison(words->items[i])) {
            st = named_build_one(words->items[i], inputs, bytes, &out->strategies[out->n], err);
            out->n += !st;
        }
    return st;
}

static enum status compare_here(const struct request *request, const struct inputs *inputs, struct comparison *out,
                                struct error *err) {
    struct named *more = malloc(sizeof *more);
    if (!more)
        return error_no_memory(err);
    enum status st = named_build(request, inputs, false, more, err);
    if (!st)
        st = comparison_run(&inputs->model, &inputs->cluster, more->n, more->strategies, request->memory_bytes, out,
                            err);
    named_release(more);
    free(more);
    return st;
}

static void fill_column(const struct work *work, size_t i) {
    const struct request *q = work->request;
    struct column *column = &work->columns[i];
    struct inputs inputs;
    const char *model = q->models.items[i % q->models.n], *cluster = q->clusters.items[i / q->models.n];
    column->status = inputs_read(model, cluster, &inputs, &column->err);
    if (column->status)
        return;
    column->inputs = inputs;
    column->status = compare_here(q, &column->inputs, &column->comparison, &column->err);
}

static void *fill_columns(void *context) {
    struct work *work = context;
    const size_t n = work->request->models.n * work->request->clusters.n;
    for (size_t i; (i = atomic_fetch_add(&work->next, 1)) < n;)
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

/* Real runs of the strategies that were named. */
static enum status measure(const struct request *request, struct column *column, struct error *err) {
    struct inputs inputs;
    struct named *all = malloc(sizeof *all);
    if (!all)
        return error_no_memory(err);
    all->n = 0;
    enum status st = inputs_read(request->models.items[0], request->clusters.items[0], &inputs, err);
    if (!st) {
        st = named_build(request, &inputs, true, all, err);
        column->measured = calloc(all->n + 1, sizeof *column->measured);
        if (!st && !column->measured)
            st = error_no_memory(err);
        if (!st)
            st = compare_trials_run(&inputs, &request->launch, all->n, all->strategies, request->trials,
                                    column->measured, err);
        column->n_measured = st ? 0 : all->n;
        inputs_release(&inputs);
    }
    named_release(all);
    free(all);
    return st;
}

/* Where every row of all columns is over. */
static enum status check_any_fits(const struct column *columns, size_t n, struct error *err) {
    const struct column *column = NULL;
    const struct comparison_row *least = NULL;
    char name[160];
    for (size_t i = 0; i < n; i++) {
        const struct comparison *c = &columns[i].comparison;
        const size_t row = least_memory(c);
        if (c->fastest != SIZE_MAX || row == c->n)
            return ST_OK;
        if (least && c->rows[row].peak_bytes >= least->peak_bytes)
            continue;
        least = &c->rows[row];
        column = &columns[i];
    }
    snprintf(name, sizeof name, "%s%s%s", least->name, n > 1 ? " of " : "", n > 1 ? column->inputs.model.name : "");
    return memory_output_nothing_fits(&column->inputs.model, &column->inputs.cluster, column->comparison.memory_bytes,
                                      name, least->peak_bytes, err);
}

static enum status compare(const struct request *request, struct error *err) {
    const size_t n = request->models.n * request->clusters.n;
    struct work work = {request, calloc(n, sizeof *work.columns), 0};
    enum status st = ST_OK;
    if (!work.columns)
        return error_no_memory(err);
    if (request->trials > 0)
        st = measure(request, &work.columns[0], err);
    if (!st)
        fill_all(&work);
    for (size_t i = 0; i < n && !st; i += request->models.n)
        st = show(work.columns + i, request->models.n, request->json, err);
    if (!st && is_alone(request) && !request->json)
        st = print_alone(&work.columns[0], err);
    if (!st)
        st = check_any_fits(work.columns, n, err);
    if (!st && request->plot)
        st = draw_front(&work.columns[0], request->plot, err);
    for (size_t i = 0; i < n; i++) {
        comparison_release(&work.columns[i].comparison);
        inputs_release(&work.columns[i].inputs);
        free(work.columns[i].measured);
    }
    free(work.columns);
    return st;
}

static enum status check_request(const struct request *r, struct error *err) {
    if (r->trials > MOST_TRIALS)
        return error_set(err, ST_USAGE, "--measure must be at most %d", MOST_TRIALS);
    if (r->trials && !r->with.n)
        return error_set(err, ST_USAGE, "--measure runs the strategies of --with: name some");
    if ((r->trials || r->plot) && !is_alone(r))
        return error_set(err, ST_USAGE, "%s is for one model on one cluster", r->trials ? "--measure" : "--plot");
    return r->plot ? output_check(r->plot, err) : ST_OK;
}

enum status cmd_compare(int argc, char **argv, struct error *err) {
    struct request r = {.launch.runner = NULL};
    const char *with = NULL;
    const struct option options[] = {
        {"with", OPTION_TEXT, &with, "STRATEGY[,STRATEGY]",
         "these too: baselines that are built only by name, as async-ps and ssp, and files of strategies"},
        {"measure", OPTION_INTEGER, &r.trials, "N",
         "run each strategy of --with for real too, N times, of any baselines; for one model on one cluster"},
        {"runner", OPTION_TEXT, &r.launch.runner, RUNNER_NAMES, "where --measure runs them (default lab)"},
        RUNNER_OPTIONS(r.launch),
        {"memory", OPTION_MEMORY, &r.memory_bytes, "SIZE",
         "pass over what needs more memory of a device: 80GB, 24GiB (default: what a cluster says its devices have)"},
        {"plot", OPTION_TEXT, &r.plot, "FILE",
         "draw time against memory as SVG, every strategy and the front; for one model on one cluster"},
        {"json", OPTION_FLAG, &r.json, NULL, "print one syncopate.comparison/1 object a model and cluster"},
        {0}};
    const struct command_line line = {
        .usage = "compare [MODELS [CLUSTERS]] [options]",
        .about =
            "Predict every baseline and exact schedule for several models on several clusters: which system suits\n"
            "which model, and how far the fastest is from the best that is possible. MODELS and CLUSTERS are\n"
            "names or files with commas between; without them all shipped models but the llamas on four of the\n"
            "clusters.\n\n"
            "Where a cluster's description says how NICs and workers vary, times are those to expect in that weather,\n"
            "with the quiet network's beside them.\n\n"
            "Strategies of updates (a \"consistency\": async-ps, ssp, mlfabric-a, mlfabric-s) are compared where "
            "--with\n"
            "names them: their time is that of a round of updates, with delays and what is dropped below.\n\n"
            "Under --memory, or where a cluster says what memory its devices have, strategies that need more are "
            "\"over\",\n"
            "and fsdp-optimal (--with) is wrapped for it. If all are over the exit status is 3.\n\n"
            "Of one model on one cluster the front of time against memory follows: each strategy that is faster than "
            "all\n"
            "that need no more memory of a device (docs/memory.md). Of several, --json alone has each one's front.\n\n"
            "* marks the fastest of a column. \"all-reduce at best\" is what no schedule of dense all-reduces can "
            "beat,\n"
            "\"lower bound\" what no strategy can; unless one of --with has encodings or replicas, none that has.",
        .examples = "  syncopate compare resnet50,vgg16 v100-16x10g\n"
                    "  syncopate compare all h100-64x8\n"
                    "  syncopate compare bert-large v100-16x10g --memory 4GB\n"
                    "  syncopate compare gpt2-small lab-4x1g --with zero-1,zero-3,fsdp-per-block --plot front.svg\n"
                    "  syncopate compare cnn-small,resnet18 lab-4x1g,lab-4x1g-weather\n"
                    "  syncopate compare mlp-small lab-4x1g --with async-ps,ssp,mlfabric-a,tree-reduce\n"
                    "  syncopate compare mlp-small lab-4x1g --with pytorch-ddp,async-ps --measure 3",
        .options = options,
        .max_arguments = 2};
    struct arguments arguments;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (st)
        return st;
    st = split_models(arguments.n > 0 ? arguments.items[0] : NULL, &r.models, err);
    if (!st)
        st = split(arguments.n > 1 ? arguments.items[1] : DEFAULT_CLUSTERS, &r.clusters, err);
    if (!st && with)
        st = split(with, &r.with, err);
    if (!st)
        st = check_request(&r, err);
    r.launch.runner = r.launch.runner ? r.launch.runner : "lab";
    if (!st)
        st = compare(&r, err);
    free(r.models.text);
    free(r.clusters.text);
    free(r.with.text);
    return st;
}
