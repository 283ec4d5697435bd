/* syncopate advise: which way of data-parallel training at which memory. Every way is predicted on the cluster as it
 * is, and FSDP as it is wrapped for each memory, and for some between the smallest and the largest that it can use:
 * these fill the front of time against memory. At other rates of the NICs only what was asked for is predicted again.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/front.h"
#include "cli/inputs.h"
#include "cli/memory_output.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/simulation.h"
#include "cli/sweep.h"
#include "cli/table.h"
#include "strategy/baselines/fsdp_optimal.h"

/* What people call it, and how it is done. */
static const struct way {
    const char *kind, *baseline;
} ways[] = {
    {"DDP", "pytorch-ddp"},
    {"DDP, merged", "merge-optimal"},
    {"servers", "byteps"},
    {"ZeRO-1", "dear"},
    {"ZeRO-1", "megatron-distributed-optimizer"},
    {"ZeRO-1", "zero-1"},
    {"ZeRO-2", "zero-2"},
    {"ZeRO-3", "zero-3"},
    {"FSDP", "fsdp-per-block"},
    {"FSDP", "fsdp-whole"},
    {"HSDP", "hsdp"},
};
enum { WAYS = sizeof ways / sizeof ways[0], MOST_BUDGETS = 8, STEPS = 8, MOST_WRAPPINGS = MOST_BUDGETS + STEPS };
enum { MOST_CANDIDATES = WAYS + MOST_WRAPPINGS + 1 };

static const double rate_factors[] = {0.25, 0.5, 1, 2, 4};
enum { RATES = sizeof rate_factors / sizeof rate_factors[0] };

struct budgets {
    size_t n;
    uint64_t bytes[MOST_BUDGETS]; /* rising; UINT64_MAX: no limit */
};

struct candidate {
    const char *kind;
    bool between; /* wrapped for a memory that nobody asked about */
    struct strategy strategy;
    struct row row;
};

/* All candidates of one model and cluster. */
struct advice {
    struct simulation simulation;
    struct candidate candidates[MOST_CANDIDATES];
    size_t n;
};

/* ---- candidates ---- */

/* Predict it, unless it is there already; takes the strategy. */
static enum status add(struct advice *a, const char *kind, bool between, struct strategy *strategy, struct error *err) {
    struct candidate *c = &a->candidates[a->n];
    for (size_t i = 0; i < a->n; i++)
        if (!strcmp(a->candidates[i].strategy.id.hex, strategy->id.hex)) {
            strategy_release(strategy);
            return ST_OK;
        }
    enum status st =
        simulation_predict(&a->simulation, &(struct contender){strategy->name, NULL, strategy}, NULL, &c->row, err);
    if (st) {
        strategy_release(strategy);
        return st;
    }
    c->kind = kind;
    c->between = between;
    c->strategy = *strategy;
    a->n++;
    return ST_OK;
}

static enum status add_ways(struct advice *a, struct error *err) {
    enum status st = ST_OK;
    for (size_t i = 0; i < WAYS && !st; i++) {
        struct strategy s;
        st = baselines_build(baselines_find(ways[i].baseline), a->simulation.model, a->simulation.cluster, &s, err);
        if (!st)
            st = add(a, ways[i].kind, false, &s, err);
    }
    return st;
}

/* FSDP wrapped for each memory; what does not fit is no candidate. */
static enum status add_wrappings(struct advice *a, size_t n, const uint64_t *bytes, bool between, struct error *err) {
    uint64_t budgets[MOST_WRAPPINGS] = {0};
    struct strategy wrapped[MOST_WRAPPINGS];
    bool fits[MOST_WRAPPINGS];
    for (size_t i = 0; i < n; i++)
        budgets[i] = bytes[i] == UINT64_MAX ? 0 : bytes[i];
    enum status st = fsdp_optimal_for_each(a->simulation.model, &a->simulation.cost, n, budgets, wrapped, fits, err);
    if (st)
        return st;
    for (size_t i = n; i-- > 0;)
        if (fits[i] && !st)
            st = add(a, "FSDP", between, &wrapped[i], err);
        else if (fits[i])
            strategy_release(&wrapped[i]);
    return st;
}

static enum status add_least(struct advice *a, struct error *err) {
    struct strategy s;
    enum status st = fsdp_least_memory(a->simulation.model, &a->simulation.cost, &s, err);
    return st ? st : add(a, "FSDP", false, &s, err);
}

static void advice_release(struct advice *a) {
    for (size_t i = 0; i < a->n; i++)
        strategy_release(&a->candidates[i].strategy);
    simulation_release(&a->simulation);
}

static enum status advice_init(struct advice *a, const struct model *model, const struct cluster *cluster,
                               const struct budgets *budgets, struct error *err) {
    a->n = 0;
    enum status st = simulation_init(&a->simulation, model, cluster, false, err);
    if (st)
        return st;
    st = add_ways(a, err);
    if (!st)
        st = add_wrappings(a, budgets->n, budgets->bytes, false, err);
    if (!st)
        st = add_least(a, err);
    if (st)
        advice_release(a);
    return st;
}

/* ---- answers ---- */

static uint64_t needs(const struct candidate *c) {
    return c->row.memory.peak_bytes;
}

/* The fastest that fits; NULL: none does. */
static const struct candidate *best_within(const struct advice *a, uint64_t bytes) {
    const struct candidate *best = NULL;
    for (size_t i = 0; i < a->n; i++) {
        const struct candidate *c = &a->candidates[i];
        if (needs(c) <= bytes && (!best || c->row.prediction.iteration_us < best->row.prediction.iteration_us))
            best = c;
    }
    return best;
}

static const struct candidate *smallest(const struct advice *a) {
    const struct candidate *least = &a->candidates[0];
    for (size_t i = 1; i < a->n; i++)
        if (needs(&a->candidates[i]) < needs(least))
            least = &a->candidates[i];
    return least;
}

/* Wrap FSDP for memories between the least that anything needs and the most, each larger than the last by one factor.
 */
static enum status add_steps(struct advice *a, struct error *err) {
    uint64_t bytes[STEPS], most = 0;
    const double least = (double)needs(smallest(a));
    for (size_t i = 0; i < a->n; i++)
        most = needs(&a->candidates[i]) > most ? needs(&a->candidates[i]) : most;
    for (int i = 0; i < STEPS; i++)
        bytes[i] = (uint64_t)(least * pow((double)most / least, (i + 1.0) / (STEPS + 1)));
    return add_wrappings(a, STEPS, bytes, true, err);
}

/* Computing, or messages that computing does not hide. */
static const char *limit_of(const struct candidate *c, char *out, size_t room) {
    const struct prediction *p = &c->row.prediction;
    const double exposed = p->iteration_us > 0 ? 100 * p->exposed_us / p->iteration_us : 0;
    snprintf(out, room, exposed < 5 ? "computing" : "messages, %.0f%% of the time", exposed);
    return out;
}

static int compare_candidates(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    const double left = x->row.prediction.iteration_us, right = y->row.prediction.iteration_us;
    return (left > right) - (left < right);
}

/* ---- for people ---- */

static const char *budget_text(uint64_t bytes, char *out, size_t room) {
    return bytes == UINT64_MAX ? "any memory" : units_format_bytes(bytes, out, room);
}

static void print_candidates(const struct advice *a) {
    struct table table;
    char text[64];
    table_init(&table, (const char *const[]){"WAY", "STRATEGY", ">ITERATION", ">OVER BOUND", ">MEMORY", ">GROUPS",
                                             "LIMITED BY", NULL});
    for (size_t i = 0; i < a->n; i++) {
        const struct candidate *c = &a->candidates[i];
        const double us = c->row.prediction.iteration_us;
        if (c->between)
            continue;
        table_cell(&table, "%s", c->kind);
        table_cell(&table, "%s", c->strategy.name);
        table_cell(&table, "%s", units_format_time(us, text, sizeof text));
        table_cell(&table, "%.0f%%", c->row.bound_us > 0 ? fmax(us / c->row.bound_us - 1, 0) * 100 : 0);
        table_cell(&table, "%s", units_format_bytes(needs(c), text, sizeof text));
        table_cell(&table, "%u", c->strategy.n_groups);
        table_cell(&table, "%s", limit_of(c, text, sizeof text));
    }
    table_print(&table, stdout);
    table_release(&table);
}

static void print_answers(const struct advice *a, const struct budgets *budgets) {
    char room[32], us[32], memory[32];
    text_print(stdout, "\n");
    for (size_t i = 0; i < budgets->n; i++) {
        const struct candidate *best = best_within(a, budgets->bytes[i]);
        const char *budget = budget_text(budgets->bytes[i], room, sizeof room);
        if (best)
            text_print(stdout, "With %s: %s (%s), %s, and %s of memory.\n", budget, best->kind, best->strategy.name,
                       units_format_time(best->row.prediction.iteration_us, us, sizeof us),
                       units_format_bytes(needs(best), memory, sizeof memory));
        else
            text_print(stdout, "With %s: nothing fits.\n", budget);
    }
    const struct candidate *least = smallest(a);
    text_print(stdout, "The smallest memory at which anything fits: %s (%s, %u groups, %s).\n",
               units_format_bytes(needs(least), memory, sizeof memory), least->kind, least->strategy.n_groups,
               units_format_time(least->row.prediction.iteration_us, us, sizeof us));
    if (!least->row.memory.knows_optimizer)
        text_print(stdout, "Memory is without the optimizer's states: the model has no \"optimizer\".\n");
    if (!least->row.memory.knows_activations)
        text_print(stdout, "Memory is without activations: the model's operators have no \"activation_bytes\".\n");
}

/* ---- time against memory ---- */

static void find_front(const struct advice *a, struct front_point points[MOST_CANDIDATES]) {
    for (size_t i = 0; i < a->n; i++) {
        const struct candidate *c = &a->candidates[i];
        points[i] = (struct front_point){.way = c->kind,
                                         .name = c->strategy.name,
                                         .id = c->strategy.id.hex,
                                         .groups = c->strategy.n_groups,
                                         .us = c->row.prediction.iteration_us,
                                         .bytes = needs(c)};
    }
    front_find(a->n, points);
}

static enum status draw_front(const struct advice *a, const struct front_point *points, const char *folder,
                              struct error *err) {
    char path[4096], title[256];
    snprintf(path, sizeof path, "%s/front.svg", folder);
    snprintf(title, sizeof title, "%s on %s", a->simulation.model->name, a->simulation.cluster->name);
    return front_write_plot(title, a->n, points, path, err);
}

/* ---- other rates ---- */

/* The fastest NIC of a node with devices. */
static double rate_of(const struct cluster *cluster) {
    double rate = 0;
    for (uint32_t i = 0; i < cluster->n_nodes; i++)
        if (cluster->nodes[i].devices > 0)
            rate = fmax(rate, cluster->nodes[i].nic_gbit_per_s);
    return rate;
}

struct change {
    double gbit_per_s;
    char kind[MOST_BUDGETS][24];
    double us[MOST_BUDGETS]; /* INFINITY: nothing fits */
};

static void note_change(const struct advice *a, const struct budgets *budgets, double gbit_per_s, struct change *out) {
    *out = (struct change){.gbit_per_s = gbit_per_s};
    for (size_t i = 0; i < budgets->n; i++) {
        const struct candidate *best = best_within(a, budgets->bytes[i]);
        out->us[i] = best ? best->row.prediction.iteration_us : INFINITY;
        snprintf(out->kind[i], sizeof out->kind[i], "%s", best ? best->kind : "nothing fits");
    }
}

static enum status change_at(const struct inputs *inputs, const struct budgets *budgets, double gbit_per_s,
                             struct change *out, struct error *err) {
    const struct sweep sweep = {.axis = SWEEP_BANDWIDTH, .n = 1, .values = {gbit_per_s}};
    struct sweep_point point;
    struct advice a;
    enum status st = sweep_apply(&sweep, gbit_per_s, ALGORITHM_auto, &inputs->model, &inputs->cluster, &point, err);
    if (st)
        return st;
    st = advice_init(&a, &point.model, &point.cluster, budgets, err);
    if (!st) {
        note_change(&a, budgets, gbit_per_s, out);
        advice_release(&a);
    }
    sweep_point_release(&point);
    return st;
}

static void print_changes(const struct budgets *budgets, const struct change *changes) {
    const char *heads[MOST_BUDGETS + 2] = {">GBIT/S"};
    struct table table;
    struct arena arena = {0};
    char text[32];
    for (size_t i = 0; i < budgets->n; i++) {
        heads[i + 1] = arena_printf(&arena, "WITH %s", budget_text(budgets->bytes[i], text, sizeof text));
        heads[i + 1] = heads[i + 1] ? heads[i + 1] : "";
    }
    text_print(stdout, "\nAt other rates of the NICs:\n");
    table_init(&table, heads);
    for (size_t r = 0; r < RATES; r++) {
        table_cell(&table, "%g", changes[r].gbit_per_s);
        for (size_t i = 0; i < budgets->n; i++)
            if (isfinite(changes[r].us[i]))
                table_cell(&table, "%s, %s", changes[r].kind[i],
                           units_format_time(changes[r].us[i], text, sizeof text));
            else
                table_cell(&table, "nothing fits");
    }
    table_print(&table, stdout);
    table_release(&table);
    arena_release(&arena);
}

/* ---- for programs ---- */

static bool add_candidate(const struct candidate *c, const struct cluster *cluster, cJSON *array) {
    cJSON *object = cJSON_CreateObject();
    return object && cJSON_AddItemToArray(array, object) && cJSON_AddStringToObject(object, "way", c->kind) &&
           cJSON_AddStringToObject(object, "strategy", c->strategy.name) &&
           cJSON_AddStringToObject(object, "id", c->strategy.id.hex) &&
           cJSON_AddNumberToObject(object, "iteration_us", c->row.prediction.iteration_us) &&
           cJSON_AddNumberToObject(object, "exposed_us", c->row.prediction.exposed_us) &&
           cJSON_AddNumberToObject(object, "lower_bound_us", c->row.bound_us) &&
           cJSON_AddNumberToObject(object, "groups", c->strategy.n_groups) &&
           memory_write(&c->row.memory, cluster, object);
}

static bool add_answer(const struct candidate *best, uint64_t bytes, cJSON *array) {
    cJSON *object = cJSON_CreateObject();
    return object && cJSON_AddItemToArray(array, object) &&
           (bytes == UINT64_MAX || cJSON_AddNumberToObject(object, "memory_bytes", (double)bytes)) &&
           (!best || cJSON_AddStringToObject(object, "id", best->strategy.id.hex)) &&
           (best || cJSON_AddNullToObject(object, "id"));
}

static bool add_change(const struct change *change, const struct budgets *budgets, cJSON *array) {
    bool ok = true;
    for (size_t i = 0; i < budgets->n && ok; i++) {
        cJSON *object = cJSON_CreateObject();
        ok = object && cJSON_AddItemToArray(array, object) &&
             cJSON_AddNumberToObject(object, "gbit_per_s", change->gbit_per_s) &&
             (budgets->bytes[i] == UINT64_MAX ||
              cJSON_AddNumberToObject(object, "memory_bytes", (double)budgets->bytes[i])) &&
             (isfinite(change->us[i]) ? cJSON_AddStringToObject(object, "way", change->kind[i]) &&
                                            cJSON_AddNumberToObject(object, "iteration_us", change->us[i])
                                      : cJSON_AddNullToObject(object, "way") != NULL);
    }
    return ok;
}

static bool add_front(size_t n, const struct front_point *points, cJSON *array) {
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) {
        cJSON *object = points[i].on_front ? cJSON_CreateObject() : NULL;
        ok = !points[i].on_front ||
             (object && cJSON_AddItemToArray(array, object) && cJSON_AddStringToObject(object, "id", points[i].id) &&
              cJSON_AddNumberToObject(object, "peak_bytes", (double)points[i].bytes) &&
              cJSON_AddNumberToObject(object, "iteration_us", points[i].us));
    }
    return ok;
}

static enum status print_json(const struct advice *a, const struct budgets *budgets, const struct front_point *points,
                              const struct change *changes, struct error *err) {
    cJSON *root = cJSON_CreateObject(), *list;
    bool ok = root && cJSON_AddStringToObject(root, "schema", "syncopate.advice/1") &&
              cJSON_AddStringToObject(root, "model", a->simulation.model->name) &&
              cJSON_AddStringToObject(root, "cluster", a->simulation.cluster->name) &&
              (list = cJSON_AddArrayToObject(root, "candidates"));
    for (size_t i = 0; i < a->n && ok; i++)
        ok = add_candidate(&a->candidates[i], a->simulation.cluster, list);
    ok = ok && (list = cJSON_AddArrayToObject(root, "answers"));
    for (size_t i = 0; i < budgets->n && ok; i++)
        ok = add_answer(best_within(a, budgets->bytes[i]), budgets->bytes[i], list);
    ok = ok && cJSON_AddNumberToObject(root, "smallest_memory_bytes", (double)needs(smallest(a))) &&
         (list = cJSON_AddArrayToObject(root, "front")) && add_front(a->n, points, list) &&
         (list = cJSON_AddArrayToObject(root, "at_other_rates"));
    for (size_t r = 0; r < RATES && ok; r++)
        ok = add_change(&changes[r], budgets, list);
    return output_line(root, ok, err);
}

/* ---- files ---- */

static enum status write_candidate(struct advice *a, const struct candidate *c, const char *folder, struct error *err) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%.12s.json", folder, c->strategy.id.hex);
    cJSON *json = strategy_write(&c->strategy, a->simulation.model, a->simulation.cluster);
    char *text = json ? json_pretty(json) : NULL;
    enum status st = text ? json_write_file(path, text, err) : error_no_memory(err);
    free(text);
    cJSON_Delete(json);
    struct row row;
    snprintf(path, sizeof path, "%s/%.12s-timeline.json", folder, c->strategy.id.hex);
    return st ? st
              : simulation_predict(&a->simulation, &(struct contender){c->strategy.name, NULL, &c->strategy}, path,
                                   &row, err);
}

static enum status write_all(struct advice *a, const struct front_point *points, const char *folder,
                             struct error *err) {
    enum status st = paths_make_folder(folder, err);
    for (size_t i = 0; i < a->n && !st; i++)
        st = write_candidate(a, &a->candidates[i], folder, err);
    if (!st)
        st = draw_front(a, points, folder, err);
    if (!st)
        text_print(stderr, "%zu strategies, each with its timeline, and front.svg in %s\n", a->n, folder);
    return st;
}

/* ---- the command ---- */

static int compare_bytes(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* "24GB,80GB"; NULL: what the cluster's description says, and any. */
static enum status read_budgets(const char *list, const struct cluster *cluster, struct budgets *out,
                                struct error *err) {
    *out = (struct budgets){.n = 0};
    enum status st = ST_OK;
    for (const char *at = list; at && !st; at = strchr(at, ',')) {
        char word[64];
        at += *at == ',';
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at, ","), at);
        if (out->n == MOST_BUDGETS)
            return error_set(err, ST_USAGE, "--memory: at most %d sizes", MOST_BUDGETS);
        st = units_parse_bytes(word, &out->bytes[out->n++], err);
    }
    if (!list && memory_of_devices(cluster) > 0)
        out->bytes[out->n++] = memory_of_devices(cluster);
    if (!list)
        out->bytes[out->n++] = UINT64_MAX;
    qsort(out->bytes, out->n, sizeof *out->bytes, compare_bytes);
    return st;
}

struct request {
    const char *memory, *out;
    bool json;
};

static enum status answer(const struct inputs *inputs, const struct budgets *budgets, const struct request *r,
                          struct advice *a, struct error *err) {
    struct change changes[RATES];
    struct front_point points[MOST_CANDIDATES];
    const double rate = rate_of(&inputs->cluster);
    enum status st = ST_OK;
    for (size_t i = 0; i < RATES && !st; i++)
        if (rate_factors[i] == 1) /* the cluster as it is */
            note_change(a, budgets, rate, &changes[i]);
        else
            st = change_at(inputs, budgets, rate * rate_factors[i], &changes[i], err);
    find_front(a, points);
    if (!st && r->out)
        st = write_all(a, points, r->out, err);
    if (st)
        return st;
    if (r->json)
        return print_json(a, budgets, points, changes, err);
    text_print(stdout, "%s on %s: %u devices\n\n", inputs->model.name, inputs->cluster.name, inputs->cluster.n_devices);
    print_candidates(a);
    print_answers(a, budgets);
    front_print(a->n, points);
    print_changes(budgets, changes);
    return ST_OK;
}

static enum status advise(const char *model, const char *cluster, const struct request *r, struct error *err) {
    struct inputs inputs;
    struct budgets budgets;
    struct advice a;
    enum status st = inputs_read(model, cluster, &inputs, err);
    if (st)
        return st;
    st = read_budgets(r->memory, &inputs.cluster, &budgets, err);
    if (!st)
        st = advice_init(&a, &inputs.model, &inputs.cluster, &budgets, err);
    if (!st && (st = add_steps(&a, err)))
        advice_release(&a);
    if (!st) {
        qsort(a.candidates, a.n, sizeof *a.candidates, compare_candidates);
        st = answer(&inputs, &budgets, r, &a, err);
        advice_release(&a);
    }
    inputs_release(&inputs);
    return st;
}

enum status cmd_advise(int argc, char **argv, struct error *err) {
    struct request r = {0};
    const struct option options[] = {
        {"memory", OPTION_TEXT, &r.memory, "SIZE[,SIZE]",
         "what a device may hold; default: what the cluster's description says, and any"},
        {"out", OPTION_TEXT, &r.out, "FOLDER",
         "write each strategy and a Chrome trace of its iteration there, and front.svg: time against memory"},
        {"json", OPTION_FLAG, &r.json, NULL, "print one JSON object"},
        {0}};
    const struct command_line line = {
        .usage = "advise MODEL CLUSTER [options]",
        .about =
            "Which way of training at which memory: plain data parallel, servers, ZeRO or FSDP. Each way is "
            "predicted:\n"
            "its time, how far that is above the bound, the most memory that a device holds at once, and what limits\n"
            "it. FSDP is wrapped for each memory by itself, so that the iteration is shortest. Then the answer for\n"
            "each memory, the smallest memory at which anything fits, the front of time against memory, and what\n"
            "changes where NICs are slower or faster; measured curves hold for one rate and are left out there.",
        .examples = "  syncopate advise bert-large v100-16x10g --memory 1GB,2GB,16GB\n"
                    "  syncopate advise gpt2-small lab-4x1g --memory 400MB --out advice",
        .options = options,
        .min_arguments = 2,
        .max_arguments = 2};
    struct arguments arguments;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    return st ? st : advise(arguments.items[0], arguments.items[1], &r, err);
}
