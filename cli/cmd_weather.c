/* syncopate weather: how a cluster's NICs and workers vary, as a picture or as a trace. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/options.h"
#include "cli/output.h"
#include "strategy/weather.h"

enum { COLUMNS = 60, FLOWS = 12, MOST_CHANGES = 10000000 };

/* The weather of one seed up to a time; `rates` and what has been drawn so far belong to it. */
struct view {
    const struct cluster *cluster;
    struct weather weather;
    double until_us;
};

static enum status view_begin(const struct cluster *cluster, uint64_t seed, double until_us, struct view *out,
                              struct error *err) {
    double *rates = calloc((size_t)cluster->n_nodes * WEATHER_NUMBERS, sizeof *rates);
    if (!rates)
        return error_no_memory(err);
    *out = (struct view){cluster, {.cluster = cluster, .seed = seed, .gbit_per_s = rates}, until_us};
    weather_begin(&out->weather);
    return ST_OK;
}

static void view_end(struct view *view) {
    free(view->weather.gbit_per_s);
}

/* ---- as a trace ---- */

/* Add the ports whose rate is not the one in `last`, and remember theirs. */
static bool add_changes(const struct view *view, double at_us, double *last, cJSON *changes) {
    const struct cluster *cluster = view->cluster;
    for (uint32_t port = 0; port < cluster->n_nodes * DIRECTION_COUNT; port++) {
        double rate = view->weather.gbit_per_s[port];
        cJSON *change = rate == last[port] ? NULL : cJSON_CreateObject();
        if (rate == last[port])
            continue;
        last[port] = rate;
        if (!change || !cJSON_AddItemToArray(changes, change) || !cJSON_AddNumberToObject(change, "at_us", at_us) ||
            !cJSON_AddStringToObject(change, "node", cluster->nodes[port / DIRECTION_COUNT].name) ||
            !cJSON_AddStringToObject(change, "direction", direction_name(port % DIRECTION_COUNT)) ||
            !cJSON_AddNumberToObject(change, "gbit_per_s", rate))
            return false;
    }
    return true;
}

static enum status print_trace(struct view *view, struct error *err) {
    const struct cluster *cluster = view->cluster;
    cJSON *json = cJSON_CreateObject(), *changes = json ? cJSON_AddArrayToObject(json, "changes") : NULL;
    double *last = calloc((size_t)cluster->n_nodes * DIRECTION_COUNT, sizeof *last), at_us = 0;
    bool ok = changes && last && cJSON_AddNumberToObject(json, "until_us", view->until_us);
    for (uint32_t port = 0; ok && port < cluster->n_nodes * DIRECTION_COUNT; port++)
        last[port] = cluster->nodes[port / DIRECTION_COUNT].nic_gbit_per_s;
    while (ok && at_us < view->until_us) {
        ok = add_changes(view, at_us, last, changes);
        at_us = weather_next_us(&view->weather);
        if (at_us < view->until_us)
            weather_advance(&view->weather);
    }
    free(last);
    return output_line(json, ok, err);
}

/* ---- as a picture ---- */

static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

/* Add the rates that hold from one time to another to the columns that lie between. */
static void add_to_columns(const struct view *view, double from_us, double to_us, double *mean) {
    const double width = view->until_us / COLUMNS;
    for (uint32_t column = 0; column < COLUMNS; column++) {
        const double overlap = fmin(to_us, (column + 1) * width) - fmax(from_us, column * width);
        for (uint32_t port = 0; port < view->cluster->n_nodes * DIRECTION_COUNT && overlap > 0; port++)
            mean[port * COLUMNS + column] += view->weather.gbit_per_s[port] * overlap / width;
    }
}

/* Mean rates by port and column. */
static void fill_columns(struct view *view, double *mean) {
    for (double at_us = 0; at_us < view->until_us;) {
        const double next_us = fmin(weather_next_us(&view->weather), view->until_us);
        add_to_columns(view, at_us, next_us, mean);
        at_us = next_us;
        if (at_us < view->until_us)
            weather_advance(&view->weather);
    }
}

static const char *block_of(double rate, double most) {
    double eighths = rate / most * 8 - 0.5;
    return blocks[eighths < 0 ? 0 : eighths > 7 ? 7 : (int)eighths];
}

static void print_port(const struct cluster *cluster, uint32_t port, const double *mean) {
    const struct node *node = &cluster->nodes[port / DIRECTION_COUNT];
    double sum = 0, least = INFINITY;
    text_print(stdout, "%-12s %-4s ", node->name, direction_name(port % DIRECTION_COUNT));
    for (uint32_t k = 0; k < COLUMNS; k++) {
        text_print(stdout, "%s", block_of(mean[k], node->nic_gbit_per_s));
        sum += mean[k];
        least = fmin(least, mean[k]);
    }
    text_print(stdout, "  %6.3g %6.3g\n", sum / COLUMNS, least);
}

static void print_flow(const struct cluster *cluster, const struct weather_flow *flow) {
    text_print(stdout, "%10.4g s %10.4g s  %-12s %-12s %8.3g\n", flow->start_us / 1e6,
               (flow->end_us - flow->start_us) / 1e6, cluster->nodes[flow->from].name, cluster->nodes[flow->to].name,
               flow->gbit_per_s);
}

/* The first flows, and how many there are. */
static void print_flows(struct view *view) {
    struct weather *w = &view->weather;
    uint64_t seen = 0;
    text_print(stdout, "\nFlows in the background\n%12s %12s  %-12s %-12s %8s\n", "START", "LASTS", "FROM", "TO",
               "Gbit/s");
    for (weather_begin(w);; weather_advance(w)) {
        for (; seen < w->n_started; seen++)
            if (seen < FLOWS)
                print_flow(view->cluster, &w->flows[w->n_flows - (w->n_started - seen)]);
        if (weather_next_us(w) >= view->until_us)
            break;
    }
    if (seen > FLOWS)
        text_print(stdout, "and %llu more\n", (unsigned long long)(seen - FLOWS));
}

static void print_slowness(const struct view *view) {
    const struct cluster *cluster = view->cluster;
    const struct variability *v = &cluster->variability;
    text_print(stdout, "\nIterations 1 to %d; x: takes %g times as long\n", COLUMNS, v->slow_factor);
    for (uint32_t i = 0; i < cluster->n_nodes; i++) {
        if (cluster->nodes[i].devices == 0)
            continue;
        text_print(stdout, "%-12s      ", cluster->nodes[i].name);
        for (uint64_t k = 0; k < COLUMNS; k++)
            text_print(stdout, "%c", weather_slowness(cluster, view->weather.seed, i, k) > 1 ? 'x' : '.');
        text_print(stdout, "\n");
    }
}

static enum status print_picture(struct view *view, struct error *err) {
    const struct cluster *cluster = view->cluster;
    const struct variability *v = &cluster->variability;
    uint32_t ports = cluster->n_nodes * DIRECTION_COUNT;
    double *mean = calloc((size_t)ports * COLUMNS, sizeof *mean);
    if (!mean)
        return error_no_memory(err);
    if (weather_shows_us(v, 1) > 0) {
        fill_columns(view, mean);
        text_print(stdout, "%-12s %-4s 0 s %*.3g s  %6s %6s  Gbit/s\n", "NODE", "WAY", COLUMNS - 6,
                   view->until_us / 1e6, "MEAN", "LEAST");
        for (uint32_t port = 0; port < ports; port++)
            print_port(cluster, port, mean + (size_t)port * COLUMNS);
    }
    free(mean);
    if (v->background.flows_per_s > 0 || v->background.n_flows > 0)
        print_flows(view);
    if (v->slow_share > 0)
        print_slowness(view);
    return ST_OK;
}

/* Fails: ST_INVALID (no weather), ST_TOO_LARGE (more changes than fit into memory). */
static enum status check(const struct inputs *inputs, double until_us, struct error *err) {
    const struct variability *v = &inputs->cluster.variability;
    const struct background *b = &v->background;
    double changes = v->n_rates > 0     ? until_us / v->every_us * inputs->cluster.n_nodes * DIRECTION_COUNT
                     : v->n_changes > 0 ? (until_us / v->trace_us + 1) * v->n_changes
                                        : 0;
    changes += b->n_flows > 0 ? (until_us / b->trace_us + 1) * b->n_flows * 4 : until_us / 1e6 * b->flows_per_s * 4;
    if (!v->given)
        return error_set(err, ST_INVALID,
                         "%s has no \"variability\": nothing varies there; \"syncopate weather --help\" shows one",
                         inputs->cluster_path);
    if (changes > MOST_CHANGES)
        return error_set(err, ST_TOO_LARGE, "%.3g changes of rates; at most %d: give a shorter --time", changes,
                         MOST_CHANGES);
    return ST_OK;
}

enum status cmd_weather(int argc, char **argv, struct error *err) {
    bool json = false;
    uint64_t seed = 1;
    double until_us = 60e6;
    const struct option options[] = {{"seed", OPTION_INTEGER, &seed, "N", "which weather to draw (default 1)"},
                                     {"time", OPTION_TIME, &until_us, "T", "draw so much of it (default 60s)"},
                                     {"json", OPTION_FLAG, &json, NULL,
                                      "print the rates as a trace, which can stand as \"network\" in a description"},
                                     {0}};
    const struct command_line line = {
        .usage = "weather CLUSTER [options]",
        .about =
            "Draw how the NICs and the workers of a cluster vary, as its description says. The same seed always\n"
            "draws the same weather, for simulations and for real runs, so that strategies can be compared in it.\n"
            "A description says it like this (rates of MLfabric's setting N1, workers of its C2):\n"
            "  \"variability\": {\n"
            "    \"network\": {\"every_us\": 5000000, \"rates\": [{\"gbit_per_s\": 5, \"share\": 0.1},\n"
            "                                                {\"gbit_per_s\": 10, \"share\": 0.9}]},\n"
            "    \"compute\": {\"share\": 0.1, \"factor\": 4},\n"
            "    \"background\": {\"flows_per_s\": 0.5, \"mbytes\": 2000, \"gbit_per_s\": 5}}\n"
            "The last are flows of other jobs between the nodes: so many start in a second on average, each carries\n"
            "so much and takes up to this rate; the job shares the NICs with them. They may also be recorded.",
        .examples = "  syncopate weather lab-4x1g-weather\n"
                    "  syncopate weather lab-4x1g-weather --seed 7 --time 5m --json",
        .options = options,
        .min_arguments = 1,
        .max_arguments = 1};
    struct arguments arguments;
    struct inputs inputs = {0};
    struct view view;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = inputs_find(arguments.items[0], "clusters", inputs.cluster_path, sizeof inputs.cluster_path, err);
    if (!st)
        st = cluster_read_file(inputs.cluster_path, &inputs.cluster, err);
    if (st)
        return st;
    st = check(&inputs, until_us, err);
    if (!st && !(st = view_begin(&inputs.cluster, seed, until_us, &view, err))) {
        st = json ? print_trace(&view, err) : print_picture(&view, err);
        view_end(&view);
    }
    cluster_release(&inputs.cluster);
    return st;
}
