/* syncopate weather: how a cluster's NICs and workers vary, as a picture or as a trace. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/picture.h"
#include "strategy/weather.h"

/* NAME: at least so wide is a name. BESIDE and FLOW: characters of a line beside a name and the picture, and beside two
 * names. */
enum { NAME = 12, BESIDE = 29, FLOW = 35, FLOWS = 12, MOST_CHANGES = 10000000 };

/* How the lines are shared out: names in columns, and the picture. */
struct layout {
    int name;
    size_t cells;
};

/* The longest name has room, as far as a flow's line has room for two. Longer ones are cut. */
static struct layout find_layout(const struct cluster *cluster) {
    const size_t width = picture_width(), most = (width - FLOW) / 2;
    size_t name = NAME;
    for (uint32_t i = 0; i < cluster->n_nodes; i++) {
        const size_t columns = text_columns(cluster->nodes[i].name, strlen(cluster->nodes[i].name));
        name = columns > name ? columns : name;
    }
    name = name < most ? name : most;
    return (struct layout){(int)name, width - BESIDE - name};
}

static enum status print_trace(const struct cluster *cluster, uint64_t seed, double until_us, struct error *err) {
    cJSON *json = cJSON_CreateObject();
    const bool ok = json && weather_write(cluster, seed, until_us, json);
    return output_line(json, ok, err);
}

/* ---- as a picture ---- */

static void print_port(const struct cluster *cluster, const struct layout *layout, size_t port, const double *mean,
                       double least) {
    const struct node *node = &cluster->nodes[port / DIRECTION_COUNT];
    const size_t n = layout->cells;
    double sum = 0;
    text_print(stdout, "%-*.*s %-4s ", layout->name, layout->name, node->name,
               direction_name((enum direction)(port % DIRECTION_COUNT)));
    for (size_t k = 0; k < n; k++) {
        text_print(stdout, "%s", picture_column(mean[k] / node->nic_gbit_per_s));
        sum += mean[k];
    }
    text_print(stdout, "  %6.3g %6.3g\n", sum / (double)n, least);
}

static void print_flow(const struct cluster *cluster, const struct layout *layout, const struct weather_flow *flow) {
    text_print(stdout, "%9.4g s %9.4g s  %-*.*s %-*.*s %8.3g\n", flow->start_us / 1e6,
               (flow->end_us - flow->start_us) / 1e6, layout->name, layout->name, cluster->nodes[flow->from].name,
               layout->name, layout->name, cluster->nodes[flow->to].name, flow->gbit_per_s);
}

/* The first flows, and how many there are. */
static enum status print_flows(const struct cluster *cluster, const struct layout *layout, uint64_t seed,
                               double until_us, struct error *err) {
    double *rates = calloc((size_t)cluster->n_nodes * WEATHER_NUMBERS, sizeof *rates);
    struct weather w = {.cluster = cluster, .seed = seed, .gbit_per_s = rates};
    uint64_t seen = 0;
    if (!rates)
        return error_no_memory(err);
    text_print(stdout, "\nFlows in the background\n%11s %11s  %-*s %-*s %8s\n", "START", "LASTS", layout->name, "FROM",
               layout->name, "TO", "Gbit/s");
    for (weather_begin(&w);; weather_advance(&w)) {
        for (; seen < w.n_started; seen++)
            if (seen < FLOWS)
                print_flow(cluster, layout, &w.flows[w.n_flows - (w.n_started - seen)]);
        if (weather_next_us(&w) >= until_us)
            break;
    }
    if (seen > FLOWS)
        text_print(stdout, "and %llu more\n", (unsigned long long)(seen - FLOWS));
    free(rates);
    return ST_OK;
}

static void print_slowness(const struct cluster *cluster, const struct layout *layout, uint64_t seed) {
    text_print(stdout, "\nIterations 1 to %zu; x: takes %g times as long\n", layout->cells,
               cluster->variability.slow_factor);
    for (uint32_t i = 0; i < cluster->n_nodes; i++) {
        if (cluster->nodes[i].devices == 0)
            continue;
        text_print(stdout, "%-*.*s      ", layout->name, layout->name, cluster->nodes[i].name);
        for (uint64_t k = 0; k < layout->cells; k++)
            text_print(stdout, "%c", weather_slowness(cluster, seed, i, k) > 1 ? 'x' : '.');
        text_print(stdout, "\n");
    }
}

/* Of each NIC and direction, as long as it lasts at all. */
static enum status find_least(const struct cluster *cluster, uint64_t seed, double until_us, double *least,
                              struct error *err) {
    const size_t ports = (size_t)cluster->n_nodes * DIRECTION_COUNT;
    double *rates = calloc((size_t)cluster->n_nodes * WEATHER_NUMBERS, sizeof *rates), at_us = 0, next_us;
    struct weather w = {.cluster = cluster, .seed = seed, .gbit_per_s = rates};
    if (!rates)
        return error_no_memory(err);
    for (size_t port = 0; port < ports; port++)
        least[port] = INFINITY;
    for (weather_begin(&w); at_us < until_us; at_us = next_us) {
        next_us = fmin(weather_next_us(&w), until_us);
        for (size_t port = 0; port < ports && next_us > at_us; port++)
            least[port] = fmin(least[port], rates[port]);
        if (next_us < until_us)
            weather_advance(&w);
    }
    free(rates);
    return ST_OK;
}

static enum status print_rates(const struct cluster *cluster, const struct layout *layout, uint64_t seed,
                               double until_us, struct error *err) {
    const size_t ports = (size_t)cluster->n_nodes * DIRECTION_COUNT, n = layout->cells;
    double *mean = calloc(ports * (n + 1), sizeof *mean), *least = mean ? mean + ports * n : NULL;
    enum status st = mean ? weather_means(cluster, seed, 0, until_us, n, mean, err) : error_no_memory(err);
    if (!st)
        st = find_least(cluster, seed, until_us, least, err);
    if (!st) {
        text_print(stdout, "%-*s %-4s 0 s %*.3g s  %6s %6s  Gbit/s\n", layout->name, "NODE", "WAY", (int)n - 6,
                   until_us / 1e6, "MEAN", "LEAST");
        for (size_t port = 0; port < ports; port++)
            print_port(cluster, layout, port, mean + port * n, least[port]);
    }
    free(mean);
    return st;
}

static enum status print_picture(const struct cluster *cluster, uint64_t seed, double until_us, struct error *err) {
    const struct variability *v = &cluster->variability;
    const struct layout layout = find_layout(cluster);
    enum status st = ST_OK;
    if (weather_shows_us(v, 1) > 0)
        st = print_rates(cluster, &layout, seed, until_us, err);
    if (!st && (v->background.flows_per_s > 0 || v->background.n_flows > 0))
        st = print_flows(cluster, &layout, seed, until_us, err);
    if (!st && v->slow_share > 0)
        print_slowness(cluster, &layout, seed);
    return st;
}

/* Fails: ST_USAGE (no time, no seed), ST_INVALID (no weather), ST_TOO_LARGE (more changes than fit into memory). */
static enum status check(const struct inputs *inputs, uint64_t seed, double until_us, struct error *err) {
    const double changes = weather_changes(&inputs->cluster, until_us);
    const struct variability *v = &inputs->cluster.variability;
    if (!(until_us > 0))
        return error_set(err, ST_USAGE, "--time must be above 0");
    if (seed == 0)
        return error_set(err, ST_USAGE, "--seed must be above 0: no simulation and no trial meets the weather 0");
    if (!v->given || (weather_shows_us(v, 1) <= 0 && v->slow_share <= 0))
        return error_set(
            err, ST_INVALID,
            v->given ? "\"variability\" of %s has nothing that varies; \"syncopate weather --help\" shows one"
                     : "%s has no \"variability\": nothing varies there; \"syncopate weather --help\" shows one",
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
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = inputs_find(arguments.items[0], "clusters", inputs.cluster_path, sizeof inputs.cluster_path, err);
    if (!st)
        st = cluster_read_file(inputs.cluster_path, &inputs.cluster, err);
    if (st)
        return st;
    st = check(&inputs, seed, until_us, err);
    if (!st)
        st = (json ? print_trace : print_picture)(&inputs.cluster, seed, until_us, err);
    cluster_release(&inputs.cluster);
    return st;
}
