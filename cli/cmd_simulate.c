/* syncopate simulate: predicted iteration times, of one strategy or many, at one size or over a sweep. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/delays_output.h"
#include "cli/grid.h"
#include "cli/inputs.h"
#include "cli/memory_output.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/remote.h"
#include "cli/remote_predict.h"
#include "cli/table.h"
#include "strategy/baselines/pytorch_ddp.h"
#include "strategy/cost/transport.h"
#include "tuner/predict/simulation.h"
#include "tuner/predict/sweep.h"

struct request {
    const char *paths, *baselines, *buckets, *trace, *kind, *sweep, *all_reduce, *csv, *plot, *measure;
    bool all, json;
    struct expectation_options weather;
    uint64_t seeds, memory_bytes;
    struct remote_options remote;
};

enum { MOST_SEEDS = 10000 };
static const double MIB = 1 << 20, LEAST_BUCKET_MIB = 0.001, MOST_BUCKET_MIB = 1e6;

/* The strategies to compare; given[i] is contenders[i] where it came from a file. */
struct field {
    struct strategy given[MAX_CONTENDERS];
    struct contender contenders[MAX_CONTENDERS];
    size_t n;
};

/* ---- one size ---- */

/* How far a time is above the bound, in percent; never -0. */
static double over_bound(double us, double bound_us) {
    double percent = bound_us > 0 ? (us / bound_us - 1) * 100 : 0;
    return fabs(percent) < 0.5 ? 0 : percent;
}

static void print_expected(const struct expectation *expected, struct table *table) {
    char text[32];
    table_cell(table, "%s", units_format_time(expected->mean_us, text, sizeof text));
    if (expectation_has_interval(expected) && isfinite(expected->high_us))
        table_cell(table, "%.1f%%", 50 * (expected->high_us - expected->low_us) / expected->mean_us);
    else
        table_cell(table, "-");
    table_cell(table, "%s", units_format_time(expected->p95_us, text, sizeof text));
}

/* A round in place of the iteration; without weather there is no other time. */
static void print_of_updates(bool in_weather, const struct prediction *p, struct table *table) {
    char text[32];
    table_cell(table, "%s", in_weather ? "-" : units_format_time(p->iteration_us, text, sizeof text));
    for (int i = 0; i < 3; i++)
        table_cell(table, "-");
}

static bool any_updates(const struct row *rows, size_t n) {
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any = any || rows[i].has_updates;
    return any;
}

/* What workers that do not wait for each other do. */
static void print_updates(const struct simulation *s, const struct row *rows, size_t n) {
    static const char *const heads[] = {
        "UPDATES",  ">A SECOND", ">WORKER'S ITERATION", ">95TH",      ">DELAY",   ">DEVIATION", ">MOST",
        ">DROPPED", ">LATE",     ">INTO SERVER",        ">OUT OF IT", ">BETWEEN", NULL};
    struct table table;
    char text[32];
    text_print(stdout, "\n");
    table_init(&table, heads);
    for (size_t i = 0; i < n; i++) {
        const struct updates_prediction *u = &rows[i].updates;
        const double ended = u->applied + u->dropped + u->late, rounds = u->applied / u->workers;
        if (!rows[i].has_updates)
            continue;
        table_cell(&table, "%s", rows[i].name);
        table_cell(&table, "%.2f", u->applied / u->us * 1e6);
        table_cell(
            &table, "%s",
            units_format_time(u->iterations > 0 ? u->iteration_sum_us / (double)u->iterations : 0, text, sizeof text));
        if (rows[i].expected.p95_us > 0)
            table_cell(&table, "%s", units_format_time(rows[i].expected.p95_us, text, sizeof text));
        else
            table_cell(&table, "-"); /* a service tells it in weather alone */
        table_cell(&table, "%.1f", updates_delay_mean(u));
        table_cell(&table, "%.1f", sqrt(updates_delay_variance(u)));
        table_cell(&table, "%lu", (unsigned long)u->delay_most);
        table_cell(&table, "%.1f%%", 100 * u->dropped / ended);
        table_cell(&table, "%.1f%%", 100 * u->late / ended);
        table_cell(&table, "%s", units_format_bytes((uint64_t)(u->in_bytes / rounds), text, sizeof text));
        table_cell(&table, "%s", units_format_bytes((uint64_t)(u->out_bytes / rounds), text, sizeof text));
        table_cell(&table, "%s", units_format_bytes((uint64_t)(u->between_bytes / rounds), text, sizeof text));
    }
    table_print(&table, stdout);
    table_release(&table);
    text_print(stdout,
               "\nTheir time above is a round's: the time in which %u updates, one for each worker, are applied.\n"
               "DELAY: versions of the model between the one an update was computed from and its own. DROPPED: at the\n"
               "worker, by the scheduler; LATE: by the server. Bytes are those of a round. What they compute is not\n"
               "what a synchronous strategy computes: a round may do less for the loss than an iteration.\n",
               s->cluster->n_devices);
}

static void print_delays(const struct row *rows, size_t n) {
    const char *names[MAX_CONTENDERS];
    struct delay_counts counts[MAX_CONTENDERS] = {0};
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        if (!rows[i].has_updates)
            continue;
        names[found] = rows[i].name;
        delays_add_predicted(&rows[i].updates, &counts[found++]);
    }
    delays_print(found, names, counts);
}

static void print_replicas(const struct row *rows, size_t n) {
    char text[32];
    for (size_t i = 0; i < n; i++) {
        const struct updates_prediction *u = &rows[i].updates;
        if (rows[i].has_updates && rows[i].replicated)
            text_print(stdout, "\nThe replica of %s gets %s a round and is at most %.3g norms of an update behind.\n",
                       rows[i].name,
                       units_format_bytes((uint64_t)(u->replica_bytes / u->applied * u->workers), text, sizeof text),
                       u->divergence_most);
    }
}

/* The bounds of what is shown: strategies with encodings, replicas or micro-batches have bounds of their own. */
static void print_head(const struct simulation *s, const struct row *rows, size_t n) {
    double least = INFINITY, most = 0;
    char low[32], high[32];
    for (size_t i = 0; i < n; i++) {
        if (rows[i].has_updates)
            continue;
        least = fmin(least, rows[i].bound_us);
        most = fmax(most, rows[i].bound_us);
    }
    if (!isfinite(least))
        least = most = s->bound_us;
    text_print(stdout, "%s on %s: %u devices, ", s->model->name, s->cluster->name, s->cluster->n_devices);
    units_format_time(least, low, sizeof low);
    units_format_time(most, high, sizeof high);
    if (strcmp(low, high) != 0)
        text_print(stdout, "lower bounds of these %s to %s\n\n", low, high);
    else
        text_print(stdout, "lower bound %s\n\n", high);
}

/* The closed form takes all computation to hide all communication, so it may be below. */
static void print_over_bound(const struct simulation *s, const struct row *row, struct table *table) {
    const double over = over_bound(row->prediction.iteration_us, row->bound_us);
    if (s->autosync && over < 0)
        table_cell(table, "below");
    else
        table_cell(table, "%.0f%%", over);
}

static void print_table(const struct simulation *s, const struct row *rows, size_t n) {
    static const char *const quiet[] = {"STRATEGY",    ">ITERATION", ">COMPUTE",   ">EXPOSED",
                                        ">OVER BOUND", ">MESSAGES",  ">SAMPLES/S", NULL};
    static const char *const weather[] = {"STRATEGY", ">IN WEATHER", ">+-",       ">95TH",      ">QUIET", ">COMPUTE",
                                          ">EXPOSED", ">OVER BOUND", ">MESSAGES", ">SAMPLES/S", NULL};
    struct table table;
    char text[32];
    print_head(s, rows, n);
    table_init(&table, simulation_expects(s) ? weather : quiet);
    for (size_t i = 0; i < n; i++) {
        const struct prediction *p = &rows[i].prediction;
        table_cell(&table, "%s", rows[i].name);
        if (simulation_expects(s))
            print_expected(&rows[i].expected, &table);
        if (rows[i].has_updates) {
            print_of_updates(simulation_expects(s), p, &table);
        } else {
            table_cell(&table, "%s", units_format_time(p->iteration_us, text, sizeof text));
            table_cell(&table, "%s", units_format_time(p->compute_us, text, sizeof text));
            table_cell(&table, "%s", units_format_time(p->exposed_us, text, sizeof text));
            print_over_bound(s, &rows[i], &table);
        }
        table_cell(&table, "%u", p->messages);
        table_cell(&table, "%.1f", p->samples_per_s);
    }
    table_print(&table, stdout);
    table_release(&table);
}

static void print_weather(const struct row *row) {
    char text[32];
    units_format_time(row->expected.until_us, text, sizeof text);
    if (expectation_has_interval(&row->expected))
        text_print(
            stdout,
            "\nIn weather: the mean over %u seeds (the same for all strategies), %s each, with its 95%% interval; "
            "95 of 100\n",
            row->expected.seeds, text);
    else
        text_print(stdout, "\nIn weather: 1 seed (the same for all strategies), %s; 95 of 100\n", text);
    text_print(
        stdout,
        "iterations are shorter than 95TH. QUIET and what follows: without weather. syncopate weather draws it.\n");
}

/* Which figures are not this cluster's own, and what such predictions are worth. */
static void print_figures(const struct cluster *cluster) {
    char typical[TRANSPORT_FIGURES_TEXT];
    const struct transport_error error = transport_known_error(cluster);
    const char *transport = transport_name(cluster_transport(cluster));
    transport_typical_figures(cluster, typical);
    if (cluster_transport(cluster) == TRANSPORT_ideal)
        text_print(stdout, "\nFigures: the description's; what it leaves out is free (transport ideal).");
    else if (*typical)
        text_print(stdout, "\nFigures: typical of %s, not measured here: %s.", transport, typical);
    else
        text_print(stdout, "\nFigures: measured here.");
    if (error.runs)
        text_print(stdout, " Known error: median %.0f%%, 90th percentile %.0f%% (%s).", error.median * 100,
                   error.p90 * 100, error.runs);
    text_print(stdout, "\n");
}

static enum status print_json(const struct simulation *s, const struct row *rows, size_t n, struct error *err) {
    enum status st = ST_OK;
    for (size_t i = 0; i < n && !st; i++) {
        bool whole;
        cJSON *json = simulation_json(s, &rows[i], &whole);
        st = output_line(json, whole, err);
    }
    return st;
}

/* What fits into the memory first; then by the time in weather, where there is one. */
static int compare_rows(const void *a, const void *b) {
    const struct row *first = a, *second = b;
    if (first->over != second->over)
        return first->over ? 1 : -1;
    bool expected = first->expected.seeds > 0;
    double x = expected ? first->expected.mean_us : first->prediction.iteration_us;
    double y = expected ? second->expected.mean_us : second->prediction.iteration_us;
    return (x > y) - (x < y);
}

/* Predict all. When there are several strategies, one that cannot run here is reported and left out. */
static enum status predict_all(struct simulation *s, const struct field *field, const char *trace, struct row *rows,
                               size_t *n, struct error *err) {
    *n = 0;
    for (size_t i = 0; i < field->n; i++) {
        enum status st = simulation_predict(s, &field->contenders[i], trace, &rows[*n], err);
        if (st == ST_INFEASIBLE && field->n > 1)
            log_info("%s: %s", field->contenders[i].name, ERROR_TEXT(err));
        else if (st)
            return st;
        else
            ++*n;
    }
    qsort(rows, *n, sizeof *rows, compare_rows);
    return ST_OK;
}

static enum status show_rows(const struct simulation *s, const struct row *rows, size_t n,
                             const struct request *request, struct error *err) {
    enum status st = ST_OK;
    if (request->json)
        st = print_json(s, rows, n, err);
    else
        print_table(s, rows, n);
    if (!request->json && any_updates(rows, n)) {
        print_updates(s, rows, n);
        print_delays(rows, n);
    }
    if (!request->json)
        print_replicas(rows, n);
    if (!request->json && simulation_expects(s) && n > 0)
        print_weather(&rows[0]);
    if (!request->json && simulation_tells_memory(s))
        memory_output_print(s, rows, n);
    if (!request->json)
        print_figures(s->cluster);
    if (!st && request->trace)
        log_info("timeline written to %s; open it at https://ui.perfetto.dev", request->trace);
    return st ? st : memory_output_check(s, rows, n, err);
}

/* Bytes of a device; 0: no budget is known. */
static uint64_t budget(const struct request *request, const struct cluster *cluster) {
    return request->memory_bytes > 0 ? request->memory_bytes : memory_of_devices(cluster);
}

static enum status simulate_once(const struct inputs *inputs, const struct field *field, const struct request *request,
                                 struct error *err) {
    struct simulation s;
    struct row rows[MAX_CONTENDERS];
    size_t n;
    enum status st = simulation_init(&s, &inputs->model, &inputs->cluster, !strcmp(request->kind, "autosync"), err);
    s.weather = request->weather;
    s.memory_bytes = budget(request, &inputs->cluster);
    if (!st)
        st = predict_all(&s, field, request->trace, rows, &n, err);
    if (!st)
        st = show_rows(&s, rows, n, request, err);
    simulation_release(&s);
    return st;
}

/* ---- a sweep ---- */

static enum status show_grid(const struct grid *grid, const struct request *request, enum grid_measure measure,
                             struct error *err) {
    bool csv_alone = request->csv && !strcmp(request->csv, "-");
    enum status st = ST_OK;
    if (!request->json && !csv_alone)
        grid_print(grid);
    if (request->csv)
        st = grid_write_csv(grid, request->csv, err);
    if (!st && request->plot)
        st = grid_write_plot(grid, measure, request->plot, err);
    if (!st && request->plot)
        log_info("chart written to %s; any browser opens it", request->plot);
    return st;
}

static enum status parse_algorithm(const char *word, enum algorithm *out, struct error *err) {
    for (int a = 0; a < ALL_REDUCE_COUNT; a++)
        if (!strcmp(algorithm_name((enum algorithm)a), word)) {
            *out = (enum algorithm)a;
            return ST_OK;
        }
    return error_set(err, ST_USAGE,
                     "--all-reduce: \"%s\" is none of auto, ring, tree, double_tree, recursive_doubling, "
                     "halving_doubling, hierarchical",
                     word);
}

/* What a sweep shows beside times counts the samples of one micro-batch. */
static enum status check_micro_batches(const struct field *field, struct error *err) {
    for (size_t i = 0; i < field->n; i++) {
        const struct strategy *s = field->contenders[i].strategy;
        if (s && s->micro_batches > 1)
            return error_set(err, ST_USAGE,
                             "%s has %u micro-batches, and a sweep counts the samples of one: drop --sweep", s->name,
                             s->micro_batches);
    }
    return ST_OK;
}

static enum status simulate_sweep(const struct inputs *inputs, const struct field *field, const struct request *request,
                                  const struct sweep *sweep, struct error *err) {
    struct grid_options options = {ALGORITHM_auto, !strcmp(request->kind, "autosync"), request->json, request->weather};
    enum grid_measure measure = GRID_SPEEDUP;
    struct grid grid;
    enum status st = parse_algorithm(request->all_reduce, &options.all_reduce, err);
    if (!st)
        st = check_micro_batches(field, err);
    if (!st)
        st = grid_parse_measure(request->measure, &measure, err);
    if (!st && request->csv)
        st = output_check(request->csv, err);
    if (!st && request->plot)
        st = output_check(request->plot, err);
    if (!st)
        st = grid_run(sweep, &inputs->model, &inputs->cluster, field->contenders, field->n, &options, &grid, err);
    if (st)
        return st;
    st = show_grid(&grid, request, measure, err);
    grid_release(&grid);
    return st;
}

/* ---- what is asked ---- */

static enum status check_request(const struct request *r, const struct sweep *sweep, struct error *err) {
    const char *listed = r->paths ? r->paths : r->baselines;
    bool several =
        r->all || (listed && r->buckets) || (listed && strchr(listed, ',')) || (r->buckets && strchr(r->buckets, ','));
    if (strcmp(r->kind, "autosync") && strcmp(r->kind, "timeline"))
        return error_set(err, ST_USAGE, "--model: \"%s\" is neither timeline nor autosync", r->kind);
    if (r->all && (r->paths || r->baselines || r->trace))
        return error_set(err, ST_USAGE,
                         "--strategy, --baseline and --timeline are about one strategy: drop --all-baselines");
    if (r->paths && r->baselines)
        return error_set(err, ST_USAGE, "give either --strategy FILE or --baseline NAME");
    if (r->trace && !strcmp(r->kind, "autosync"))
        return error_set(err, ST_USAGE, "the closed form has no timeline: drop --model autosync");
    if (r->trace && (several || r->sweep))
        return error_set(err, ST_USAGE, "--timeline is about one strategy at one size: give one, and no --sweep");
    if (!r->sweep && (r->csv || r->plot || strcmp(r->all_reduce, "auto") || strcmp(r->measure, "speedup")))
        return error_set(err, ST_USAGE, "--csv, --plot, --y and --all-reduce are about a --sweep: give one");
    if (r->sweep && r->memory_bytes > 0)
        return error_set(err, ST_USAGE, "--memory is about one size: drop it, or --sweep");
    if (r->json && r->csv && !strcmp(r->csv, "-"))
        return error_set(err, ST_USAGE, "--json and --csv - both want standard output: give --csv a file");
    if ((r->paths || r->buckets) && r->sweep && sweep->axis == SWEEP_WORKERS)
        return error_set(
            err, ST_USAGE,
            "what names the nodes of one cluster (a strategy file, --bucket-mib) is swept over bandwidth or "
            "batch; or give --baseline");
    return ST_OK;
}

/* What can be asked of a cluster with weather, and of one without. */
static enum status check_weather(const struct request *r, const struct cluster *cluster, struct error *err) {
    bool given = cluster->variability.given,
         asked = r->seeds > 0 || r->weather.until_us > 0 || r->weather.first_seed > 0;
    if (asked && !given)
        return error_set(err, ST_USAGE,
                         "--seed, --seeds and --time are about the weather of %s, but it has no \"variability\"",
                         cluster->name);
    if (asked && r->remote.server)
        return error_set(err, ST_USAGE, "a service chooses seeds and time itself: drop --seed, --seeds and --time");
    if (given && !strcmp(r->kind, "autosync"))
        return error_set(err, ST_USAGE, "%s has \"variability\": the closed form knows no weather; take it out",
                         cluster->name);
    return ST_OK;
}

static enum status check_room(const struct field *field, struct error *err) {
    return field->n < MAX_CONTENDERS ? ST_OK
                                     : error_set(err, ST_USAGE, "more than %d strategies at once", MAX_CONTENDERS);
}

static enum status add_baseline(struct field *field, const char *name, struct error *err) {
    const struct baseline *row = baselines_find(name);
    if (!row)
        return error_set(err, ST_USAGE, "there is no baseline \"%.60s\"; \"syncopate baselines\" lists them", name);
    for (size_t i = 0; i < field->n; i++)
        if (field->contenders[i].baseline == row)
            return error_set(err, ST_USAGE, "--baseline names %s twice", row->name);
    enum status st = check_room(field, err);
    if (!st)
        field->contenders[field->n++] = (struct contender){row->name, row, NULL};
    return st;
}

static enum status add_file(struct field *field, const struct inputs *inputs, const char *path, struct error *err) {
    enum status st = check_room(field, err);
    if (st)
        return st;
    struct strategy *given = &field->given[field->n];
    st = inputs_strategy(inputs, path, NULL, 0, given, err);
    if (!st)
        field->contenders[field->n++] = (struct contender){given->name, NULL, given};
    return st;
}

/* DistributedDataParallel with a bucket_cap_mb. */
static enum status add_buckets(struct field *field, const struct inputs *inputs, const char *mib, struct error *err) {
    char *end, name[64];
    const double cap = strtod(mib, &end);
    if (end == mib || *end || !(cap >= LEAST_BUCKET_MIB && cap <= MOST_BUCKET_MIB))
        return error_set(err, ST_USAGE, "--bucket-mib: \"%.60s\" is no number from %g to %g", mib, LEAST_BUCKET_MIB,
                         MOST_BUCKET_MIB);
    enum status st = check_room(field, err);
    if (st)
        return st;
    struct strategy *given = &field->given[field->n];
    snprintf(name, sizeof name, "bucket_cap_mb %g", cap);
    st = pytorch_ddp_build(&inputs->model, &inputs->cluster, (uint64_t)(cap * MIB), name, given, err);
    if (!st)
        field->contenders[field->n++] = (struct contender){given->name, NULL, given};
    return st;
}

enum listed { LISTED_FILES, LISTED_BASELINES, LISTED_BUCKETS };

static enum status add_one(struct field *field, const struct inputs *inputs, const char *name, enum listed what,
                           struct error *err) {
    if (what == LISTED_BUCKETS)
        return add_buckets(field, inputs, name, err);
    return what == LISTED_FILES ? add_file(field, inputs, name, err) : add_baseline(field, name, err);
}

/* "a,b,c"; NULL lists nothing. */
static enum status add_listed(struct field *field, const struct inputs *inputs, const char *list, enum listed what,
                              struct error *err) {
    struct arena arena = {0};
    enum status st = ST_OK;
    for (const char *at = list; at && !st; at = strchr(at, ',')) {
        at += *at == ',';
        const char *name = arena_printf(&arena, "%.*s", (int)strcspn(at, ","), at);
        st = name ? add_one(field, inputs, name, what, err) : error_no_memory(err);
    }
    arena_release(&arena);
    return st;
}

static void field_release(struct field *field) {
    for (size_t i = 0; i < field->n; i++)
        if (!field->contenders[i].baseline)
            strategy_release(&field->given[i]);
}

static enum status gather_field(const struct inputs *inputs, const struct request *request, struct field *out,
                                struct error *err) {
    size_t n;
    const struct baseline *rows = baselines_list(&n);
    enum status st = ST_OK;
    *out = (struct field){.n = 0};
    for (size_t i = 0; request->all && i < n && !st; i++)
        st = add_baseline(out, rows[i].name, err);
    if (!st)
        st = add_listed(out, inputs, request->paths, LISTED_FILES, err);
    if (!st)
        st = add_listed(out, inputs, request->baselines, LISTED_BASELINES, err);
    return st ? st : add_listed(out, inputs, request->buckets, LISTED_BUCKETS, err);
}

static enum status simulate_remotely(const char *model, const char *cluster, const struct request *request,
                                     struct error *err) {
    struct client *client;
    struct inputs inputs;
    struct field field = {.n = 0};
    struct row rows[MAX_CONTENDERS];
    size_t n;
    if (request->sweep || strcmp(request->kind, "timeline") != 0)
        return error_set(err, ST_USAGE, "a service knows no --sweep and no --model autosync: drop it, or --server");
    enum status st = check_request(request, NULL, err);
    if (!st)
        st = remote_open(&request->remote, REMOTE_TRIES, NULL, &client, err);
    if (st)
        return st;
    st = remote_inputs(client, model, cluster, &inputs, err);
    if (!st) {
        st = check_weather(request, &inputs.cluster, err);
        if (!st)
            st = gather_field(&inputs, request, &field, err);
        struct simulation s = {
            .model = &inputs.model, .cluster = &inputs.cluster, .memory_bytes = budget(request, &inputs.cluster)};
        if (!st)
            st = remote_predict(client, &s, field.n, field.contenders, request->trace, rows, &n, err);
        if (!st) {
            qsort(rows, n, sizeof *rows, compare_rows);
            st = show_rows(&s, rows, n, request, err);
        }
        field_release(&field);
        inputs_release(&inputs);
    }
    client_close(client);
    return st;
}

static enum status simulate(const char *model, const char *cluster, const struct request *request, struct error *err) {
    struct inputs inputs = {0};
    struct field field = {.n = 0};
    struct sweep sweep;
    enum status st = request->sweep ? sweep_parse(request->sweep, &sweep, err) : ST_OK;
    if (!st)
        st = check_request(request, &sweep, err);
    if (!st)
        st = inputs_read(model, cluster, &inputs, err);
    if (!st)
        st = check_weather(request, &inputs.cluster, err);
    if (!st)
        st = gather_field(&inputs, request, &field, err);
    if (!st && request->sweep)
        st = simulate_sweep(&inputs, &field, request, &sweep, err);
    else if (!st)
        st = simulate_once(&inputs, &field, request, err);
    field_release(&field);
    inputs_release(&inputs);
    return st;
}

enum status cmd_simulate(int argc, char **argv, struct error *err) {
    struct request r = {.kind = "timeline", .all_reduce = "auto", .measure = "speedup"};
    const struct option options[] = {
        {"strategy", OPTION_TEXT, &r.paths, "FILE[,FILE]", "predict these strategies"},
        {"baseline", OPTION_TEXT, &r.baselines, "BASELINE[,BASELINE]", "predict these baselines"},
        {"bucket-mib", OPTION_TEXT, &r.buckets, "X[,X]",
         "predict PyTorch's DistributedDataParallel with these as its bucket_cap_mb"},
        {"all-baselines", OPTION_FLAG, &r.all, NULL, "predict every baseline, fastest first (the default)"},
        {"timeline", OPTION_TEXT, &r.trace, "FILE",
         "write a Chrome trace of one strategy: who computes and sends when"},
        {"model", OPTION_TEXT, &r.kind, "timeline|autosync",
         "predict by the timeline (default), or by the closed form of AutoSync's equation 2"},
        {"sweep", OPTION_TEXT, &r.sweep, "AXIS=VALUES",
         "vary workers (devices), bandwidth (Gbit/s of every NIC) or batch (a device) over A..BxF, A..B+S or A,B,C"},
        {"all-reduce", OPTION_TEXT, &r.all_reduce,
         "auto|ring|tree|double_tree|recursive_doubling|halving_doubling|hierarchical",
         "in a sweep, do every all-reduce by this algorithm (default auto)"},
        {"plot", OPTION_TEXT, &r.plot, "FILE", "draw the sweep as SVG"},
        {"y", OPTION_TEXT, &r.measure, "speedup|throughput|efficiency|time",
         "what the chart shows (default speedup, over one device)"},
        {"csv", OPTION_TEXT, &r.csv, "FILE",
         "write the sweep's figures, a line a strategy and value; - is standard output"},
        {"seed", OPTION_INTEGER, &r.weather.first_seed, "N", "in weather: the first seed (default 1)"},
        {"seeds", OPTION_INTEGER, &r.seeds, "N", "in weather: simulate so many seeds (default 8)"},
        {"time", OPTION_TIME, &r.weather.until_us, "T",
         "in weather: simulate so much of each (default: 20 changes of rates, at least 50 iterations)"},
        {"memory", OPTION_MEMORY, &r.memory_bytes, "SIZE",
         "tell which fit into so much memory of a device: 80GB, 24GiB (default: what CLUSTER says its devices have)"},
        {"json", OPTION_FLAG, &r.json, NULL, "print one syncopate.prediction/1 object a line"},
        REMOTE_OPTIONS(r.remote),
        {0}};
    const struct command_line line = {
        .usage = "simulate MODEL CLUSTER [options]",
        .about =
            "Predict iteration times without running anything. MODEL and CLUSTER are files, or names of the\n"
            "descriptions that come with syncopate.\n"
            "Where the cluster's description says how NICs and workers vary (syncopate weather), iterations are\n"
            "simulated in that weather too, the same for all strategies.\n"
            "Where a budget of memory is known, or MODEL says what it keeps (\"optimizer\", \"activation_bytes\"), a\n"
            "second table tells the most that a device holds at once, of what, and where. fsdp-optimal is wrapped "
            "for the\n"
            "budget. What does not fit comes last; if nothing fits the exit status is 3.\n"
            "Of a strategy with micro-batches (\"accumulation\") an iteration is all of them, with their samples.\n"
            "A sweep over workers repeats the cluster's nodes; one over batch assumes operator times in\n"
            "proportion to it. In weather a sweep shows the mean to expect there: drawn rates keep their share of\n"
            "the NIC's, and of flows of other jobs each node has as many.",
        .examples = "  syncopate simulate resnet50 v100-16x10g\n"
                    "  syncopate simulate bert-large h100-64x8 --baseline pytorch-ddp --timeline trace.json\n"
                    "  syncopate simulate model.json measured.json --baseline pytorch-ddp --bucket-mib 1,5,10,50\n"
                    "  syncopate simulate resnet50-k80 k80-8x10g --baseline wfbp,single --sweep workers=4..2048x2 \\\n"
                    "      --plot scaling.svg\n"
                    "  syncopate simulate llama.json h100-64x8 --memory 80GB",
        .options = options,
        .min_arguments = 2,
        .max_arguments = 2};
    struct arguments arguments;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (st)
        return st;
    if (!r.paths && !r.baselines && !r.buckets)
        r.all = true;
    if (r.seeds > MOST_SEEDS)
        return error_set(err, ST_USAGE, "--seeds %llu: at most %d", (unsigned long long)r.seeds, MOST_SEEDS);
    r.weather.seeds = (uint32_t)r.seeds;
    return (r.remote.server ? simulate_remotely : simulate)(arguments.items[0], arguments.items[1], &r, err);
}
